"""What the tests share: profiles of hypothesis, tiny corpora, GPT-2's vocabulary, one cluster for all."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from hypothesis import HealthCheck, settings

import dask_bpe

DATA = Path(__file__).parent / "data"

# `pytest --hypothesis-profile=thorough` before a release. No example has a deadline: the first call of a
# kernel may compile it.
settings.register_profile("fast", max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("fast"), max_examples=1000)
settings.load_profile("fast")


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """A client of two worker processes, not the default one: only calls that name it use it."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="class")
def no_cache_folder() -> Iterator[None]:
    """Classes of code points are kept nowhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.devnull)
        yield


@pytest.fixture(scope="session")
def alice() -> str:
    """English: 60,000 characters of Alice, without its special tokens."""
    return bundled("alice.txt").replace("<|endoftext|>", "")[:60_000]


@pytest.fixture(scope="session")
def poems() -> str:
    """Chinese: 10,000 characters of poems."""
    return bundled("poems.txt")[:10_000]


@pytest.fixture(scope="session")
def corpus(alice: str, poems: str) -> list[str]:
    """Some 120 lines in English and Chinese, 7,000 characters in all."""
    return [line for line in (alice[:6_000] + poems[:1_000]).split("\n") if line]


def bundled(name: str) -> str:
    """A text that comes with the package."""
    return (Path(dask_bpe.__file__).parent / "data" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def gpt2_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """GPT-2's own vocab.json and merges.txt, unpacked."""
    folder = tmp_path_factory.mktemp("gpt2")
    for name in ("vocab.json", "merges.txt"):
        with gzip.open(DATA / "gpt2" / f"{name}.gz") as packed, (folder / name).open("wb") as file:
            shutil.copyfileobj(packed, file)
    return folder / "vocab.json", folder / "merges.txt"
