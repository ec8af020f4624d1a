"""Rare pre-tokens that are dropped: what is said of them is true, and so is what is said of the merges."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import reference
import strategies
from hypothesis import given
from hypothesis import strategies as st
from reference import TIES
from strategies import examples

import dask_bpe
from dask_bpe import PretokenCounts, Tokenizer
from dask_bpe.counts import combine
from dask_bpe.errors import ParameterError
from dask_bpe.training import fit as training


def steps(result: training.TrainingResult) -> list[tuple[int, int]]:
    return [*zip(result.log.left.tolist(), result.log.right.tolist(), strict=True)]


# Counts far apart, so that there is something to prove, and rare strings of the same letters.
clear_counts = st.dictionaries(
    st.text("abcd", min_size=1, max_size=6).map(str.encode),
    st.sampled_from([1, 1, 1, 1, 2, 2, 3, 5, 20, 100, 300, 1000, 5000, 20_000]),
    min_size=1,
    max_size=30,
)


@pytest.mark.parametrize("ties", TIES)
@given(
    words=st.one_of(strategies.tied_counts(), clear_counts),
    min_count=st.integers(1, 6),
    n_merges=st.integers(0, 40),
    min_frequency=st.sampled_from([1, 1, 2, 10]),
    max_token_length=st.sampled_from([None, None, 3]),
)
def test_merges_that_are_proved_are_those_without_dropping(
    ties: str, words: dict[bytes, int], min_count: int, n_merges: int, min_frequency: int, max_token_length: int | None
) -> None:
    counts = PretokenCounts.from_mapping(words)
    kept = counts.at_least(min_count)
    size, rules = 256 + n_merges, (ties, min_frequency, max_token_length)
    result = training.fit(kept, size, ties=ties, min_frequency=min_frequency, max_token_length=max_token_length)
    expected = [(left, right) for left, right, *_ in reference.train(words, size, [], *rules).log]
    assert 0 <= result.n_proved <= len(result.log)
    assert steps(result)[: result.n_proved] == expected[: result.n_proved]
    if kept.dropped is None:
        assert result.n_proved == len(result.log)
        assert steps(result) == expected


def test_what_is_clear_is_proved() -> None:
    """Margins of hundreds, and what was dropped holds no pair more than twice."""
    words = {b"ab": 1000, b"cd": 500, b"abcd": 200, b"xy": 60, b"aby": 1, b"ya": 1, b"zz": 1}
    kept = PretokenCounts.from_mapping(words).at_least(2)
    assert kept.dropped is not None
    assert (kept.dropped.n_distinct, kept.dropped.n_occurrences, kept.dropped.most) == (3, 3, 1)
    result = training.fit(kept, 260)
    assert result.n_proved == len(result.log) == 4
    # A fifth merge is not there to be made; without dropping it would be.
    assert training.fit(kept, 261).n_proved == len(training.fit(kept, 261).log) == 4
    assert training.fit(kept, 261).stop == "exhausted"


def test_what_may_be_otherwise_is_not_proved() -> None:
    words = {b"ab": 1000, b"cd": 501, b"ef": 500, b"gh": 100} | {b"ef%d" % k: 1 for k in range(5)}
    result = training.fit(PretokenCounts.from_mapping(words).at_least(2), 259)
    whole = training.fit(PretokenCounts.from_mapping(words), 259)
    assert result.n_proved == 1
    assert steps(result)[1] != steps(whole)[1]


def test_single_bytes_that_are_dropped_change_nothing() -> None:
    result = training.fit(PretokenCounts.from_mapping({b"ab": 2, b"cd": 2, b"x": 1}).at_least(2), 300)
    assert result.n_proved == len(result.log) == 2


@given(words=strategies.tied_counts(), min_count=st.integers(2, 5))
def test_the_bound_holds_for_every_pair(words: dict[bytes, int], min_count: int) -> None:
    dropped = PretokenCounts.from_mapping(words).at_least(min_count).dropped
    rare = {word: count for word, count in words.items() if count < min_count}
    if dropped is None:
        assert not rare
        return
    assert (dropped.n_distinct, dropped.n_occurrences) == (len(rare), sum(rare.values()))
    found: Counter[bytes] = Counter()
    for word, count in rare.items():
        for start in range(len(word)):
            for end in range(start + 2, len(word) + 1):
                found[word[start:end]] += count
    assert all(dropped.bound(spelling) >= count for spelling, count in found.items())
    assert dropped.most == max((count for spelling, count in found.items() if len(spelling) == 2), default=0)


@given(words=strategies.tied_counts(), n_buckets=st.integers(1, 9), min_count=st.integers(1, 4))
def test_buckets_add_up_to_the_counts(words: dict[bytes, int], n_buckets: int, min_count: int) -> None:
    counts = PretokenCounts.from_mapping(words)
    dealt = counts.deal(n_buckets)
    assert len(dealt) == n_buckets
    assert combine(dealt) == counts
    # A pre-token is in the same bucket whatever else there is, so buckets can be pruned by themselves.
    other = PretokenCounts.from_mapping(dict.fromkeys(list(words)[::2], 1)).deal(n_buckets)
    for bucket, part in zip(dealt, other, strict=True):
        assert part.to_dict().keys() <= bucket.to_dict().keys()
    pruned, expected = combine([bucket.at_least(min_count) for bucket in dealt]).ranked(), counts.at_least(min_count)
    assert pruned == expected.ranked()
    assert (pruned.dropped is None) == (expected.dropped is None)
    if pruned.dropped is not None and expected.dropped is not None:
        assert pruned.dropped.to_json() == expected.dropped.to_json()


def test_strings_are_dealt_evenly_and_as_ever() -> None:
    words = {b"word %d" % k: 1 for k in range(4000)} | {b"a string of many bytes, %d" % k: 1 for k in range(4000)}
    sizes = [len(bucket) for bucket in PretokenCounts.from_mapping(words).deal(8)]
    assert min(sizes) > 900
    # Counts on disk were dealt by an earlier version, or on another machine.
    (bucket,) = (k for k, part in enumerate(PretokenCounts.from_mapping({"the": 1}).deal(1000)) if len(part))
    (long,) = (k for k, part in enumerate(PretokenCounts.from_mapping({"x" * 40: 1}).deal(1000)) if len(part))
    assert (bucket, long) == (395, 311)


@given(
    texts=st.lists(strategies.tied_text(60), min_size=1, max_size=4),
    memory=st.sampled_from([20_000, 50_000, 200_000, None]),
    split_every=st.integers(2, 4),
    min_count=st.integers(1, 3),
)
@examples(0.3)
def test_counts_do_not_depend_on_memory(
    texts: list[str], memory: int | None, split_every: int, min_count: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    for number, text in enumerate(["a", *texts]):
        (folder / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    expected = reference.count(["a", *texts])
    counts = dask_bpe.count_pretokens(
        folder, block_bytes=20, memory_per_worker=memory, split_every=split_every, min_count=min_count
    )
    assert counts.to_dict() == {word: n for word, n in sorted(expected.items()) if n >= min_count}


def test_the_report_says_what_was_dropped(corpus: list[str], tmp_path: Path) -> None:
    counts = dask_bpe.count_pretokens(iter(corpus))
    tokenizer = dask_bpe.train(iter(corpus), 300, min_count=2)
    report = tokenizer.training
    assert report is not None
    once = int((counts.counts == 1).sum())
    assert (report.n_dropped, report.n_dropped_distinct) == (once, once)
    assert report.n_pretokens == counts.total - once
    assert report.n_distinct == len(counts) - once
    assert 0 <= report.n_proved <= report.n_merges
    assert tokenizer.vocabulary == dask_bpe.train(counts, 300, min_count=2).vocabulary
    # It survives a file.
    counts.at_least(2).to_parquet(tmp_path / "counts.parquet")
    kept = PretokenCounts.from_parquet(tmp_path / "counts.parquet")
    again: Tokenizer = dask_bpe.train(kept, 300)
    assert again.training is not None
    assert (again.training.n_dropped, again.training.n_proved) == (once, report.n_proved)
    whole = dask_bpe.train(counts, 300).training
    assert whole is not None
    assert (whole.n_dropped, whole.n_proved) == (0, whole.n_merges)


def test_merges_that_need_more_memory_than_there_is_are_refused(corpus: list[str]) -> None:
    with pytest.raises(ParameterError, match=r"merging [\d,]+ distinct .* min_count=2 \(--min-count 2\)") as caught:
        dask_bpe.train(iter(corpus), 300, driver_memory=1_000_000)
    assert "\n" not in str(caught.value)
    assert len(dask_bpe.train(iter(corpus), 300, driver_memory=1 << 30)) == 300


@pytest.mark.parametrize("name", ["min_count", "memory_per_worker", "driver_memory"])
def test_numbers_must_be_positive(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b")
    with pytest.raises(ParameterError, match=name):
        dask_bpe.train(tmp_path / "a.txt", 300, **{name: 0})  # type: ignore[arg-type]


MEMORY_OF_A_FIT = """
import sys, threading, time
from pathlib import Path
from dask_bpe import PretokenCounts
from dask_bpe.training.fit import fit, merge_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

counts = PretokenCounts.from_parquet(sys.argv[1])
fit(PretokenCounts.from_mapping({"abc": 3}), 260)
before, most, over = resident(), [0], threading.Event()

def watch():
    while not over.wait(0.001):
        most[0] = max(most[0], resident())

thread = threading.Thread(target=watch)
thread.start()
fit(counts, int(sys.argv[2]))
over.set()
thread.join()
print(most[0] - before, merge_memory(counts, int(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident size from /proc")
@pytest.mark.parametrize("vocab_size", [1000, 30_000])
def test_the_memory_of_the_merges_is_foreseen(vocab_size: int, tmp_path: Path) -> None:
    chance = random.Random(1)
    parts = ["".join(chance.choices("etaoinshrdlucmfwyp", k=chance.randint(1, 4))) for _ in range(600)]
    words = {f" {''.join(chance.choices(parts, k=3))}": int(1e6 / (k + 1)) + 1 for k in range(800_000)}
    PretokenCounts.from_mapping(words).to_parquet(tmp_path / "counts.parquet")
    command = [sys.executable, "-P", "-c", MEMORY_OF_A_FIT, str(tmp_path / "counts.parquet"), str(vocab_size)]
    measured, foreseen = map(int, subprocess.run(command, check=True, capture_output=True).stdout.split())
    assert 0.8 * measured < foreseen < 1.25 * measured
