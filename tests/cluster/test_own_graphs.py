"""A tokenizer in the graphs of users: it travels to a worker once, and a worker makes one of it however it comes."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.bag
import pytest
from distributed import Client

from dask_bpe import Tokenizer
from dask_bpe.unpickling import _MOST_RESTORED

TEXTS = [f"text number {number} of many" for number in range(20)]
Met = tuple[int, int, int, list[int]]


@pytest.fixture(scope="module")
def gpt2(gpt2_files: tuple[Path, Path]) -> Tokenizer:
    return Tokenizer.from_gpt2(*gpt2_files)


def work(text: str, tokenizer: Tokenizer) -> Met:
    """Which process met which tokenizer and which encoder, and what it made of the text."""
    return os.getpid(), id(tokenizer), id(tokenizer.encoder), tokenizer.encode(text)


# The processes of the cluster cannot import the tests: what seems to be of the main program is sent by value.
work.__module__ = "__main__"


def assert_one_per_process(met: Any, tokenizer: Tokenizer) -> None:
    found = list(met)
    assert [ids for *_, ids in found] == [tokenizer.encode(text) for text in TEXTS]
    processes = {process for process, *_ in found}
    assert os.getpid() not in processes
    assert len({(process, made, encoder) for process, made, encoder, _ in found}) == len(processes)


def graph_bytes(collections: Any) -> int:
    """What of a graph goes through the wire: the size of every task by itself, as the scheduler sends them."""
    graph = collections.__dask_graph__()
    return sum(len(cloudpickle.dumps(graph[key])) for key in graph)


def test_as_a_key_of_the_graph_it_travels_once(gpt2: Tokenizer, client: Client) -> None:
    shared = dask.delayed(gpt2, pure=True)
    tasks = [dask.delayed(work)(text, shared) for text in TEXTS]
    assert_one_per_process(client.gather(client.compute(tasks)), gpt2)
    whole, one = dask.delayed(list)(tasks), len(pickle.dumps(gpt2))
    assert one < graph_bytes(whole) < 1.1 * one
    assert dask.delayed(gpt2, pure=True).key == shared.key == dask.delayed(Tokenizer(gpt2.vocabulary), pure=True).key


def test_in_a_bag_it_travels_once(gpt2: Tokenizer, client: Client) -> None:
    bag = dask.bag.from_sequence(TEXTS, npartitions=10).map(work, tokenizer=dask.delayed(gpt2, pure=True))
    assert graph_bytes(bag) < 1.1 * len(pickle.dumps(gpt2))
    assert_one_per_process(client.compute(bag).result(), gpt2)


def test_scattered_it_is_not_in_the_graph(gpt2: Tokenizer, client: Client) -> None:
    (scattered,) = client.scatter([gpt2], broadcast=True)
    assert_one_per_process(client.gather(client.map(work, TEXTS, tokenizer=scattered)), gpt2)


def test_in_every_task_it_is_still_made_once(gpt2: Tokenizer, client: Client) -> None:
    assert_one_per_process(client.gather(client.map(work, TEXTS, tokenizer=gpt2)), gpt2)
    methods = client.map(gpt2.encode, TEXTS)
    assert client.gather(methods) == [gpt2.encode(text) for text in TEXTS]


def test_a_pickle_is_small_and_made_once(gpt2: Tokenizer) -> None:
    data = pickle.dumps(gpt2)
    assert len(data) < 600_000
    again = pickle.loads(data)
    assert again == gpt2
    assert again.encoder is gpt2.encoder
    assert pickle.loads(data) is pickle.loads(pickle.dumps(again)) is again


def test_few_are_kept() -> None:
    made = [Tokenizer({i: bytes([i]) for i in range(256)}, [], [f"<{k}>"]) for k in range(_MOST_RESTORED + 1)]
    data = [pickle.dumps(tokenizer) for tokenizer in made]
    first, second, *_ = [pickle.loads(each) for each in data[:-1]]
    assert pickle.loads(data[0]) is first  # now the second is the one that was not asked for longest
    pickle.loads(data[-1])
    assert pickle.loads(data[0]) is first
    assert pickle.loads(data[1]) is not second
    assert [pickle.loads(each) for each in data] == made


def test_a_subclass_comes_back_as_itself() -> None:
    tokenizer = Special({i: bytes([i]) for i in range(256)}, [])
    plain = pickle.loads(pickle.dumps(Tokenizer(tokenizer.vocabulary)))
    assert type(plain) is Tokenizer
    assert type(pickle.loads(cloudpickle.dumps(tokenizer))) is Special


class Special(Tokenizer):
    """A tokenizer of somebody else."""
