"""However text is cut into blocks, and whatever runs them: the same counts, vocabulary file, token stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.bag
import pytest
import reference
import strategies
from asserts import assert_encoded, crossing, documents_of, trained_on
from distributed import Client, get_task_stream
from hypothesis import given
from hypothesis import strategies as st
from reference import TIES
from strategies import examples

import dask_bpe

ENDOFTEXT = "<|endoftext|>"
BLOCKS = [1, 2, 3, 7, 64, 1000]
SCHEDULERS = ["threads", "synchronous", "cluster"]

# name -> special tokens (the first one ends a document), and the text.
CASES: dict[str, tuple[list[str], str]] = {
    "documents that straddle blocks": (
        [ENDOFTEXT],
        f"one two three{ENDOFTEXT}four five six seven{ENDOFTEXT}eight",
    ),
    "a separator at start and end": ([ENDOFTEXT], f"{ENDOFTEXT}in between{ENDOFTEXT}"),
    "consecutive separators": ([ENDOFTEXT], f"a{ENDOFTEXT}{ENDOFTEXT}{ENDOFTEXT}b b{ENDOFTEXT}{ENDOFTEXT}"),
    "only separators": ([ENDOFTEXT], ENDOFTEXT * 5),
    "no separator": (
        [ENDOFTEXT],
        "it's a text, that goes on  and on\n\n and has no end of   its own, 123 times. " * 3,
    ),
    "no special token": ([], "it's a text  with\tno special 1234 token\n\n\n at all... " * 3),
    "one long document": (
        [ENDOFTEXT],
        f"{'all work and no play makes ' * 9}{ENDOFTEXT}x{ENDOFTEXT}{'1234' * 20}",
    ),
    "nothing to cut at": ([ENDOFTEXT], "x" * 150 + " " * 150 + "…" * 50),
    "line ends": ([ENDOFTEXT], f"one\r\ntwo\r\n\r\nthree\r{ENDOFTEXT}\r\nfour\n\r five \r\n{ENDOFTEXT}\r\n"),
    "wide characters": (
        [ENDOFTEXT],
        f"自君之出矣😀 é\u0301ü 𠮷𠮷{ENDOFTEXT}不復理　　殘機。{ENDOFTEXT}\u2028\u3000\u00a0é",
    ),
    "separators nearly": (
        [ENDOFTEXT],
        f"<|endoftext|<|endoftext|>endoftext|>{ENDOFTEXT}<|end{ENDOFTEXT[:-1]}",
    ),
    "a longer special token": (["<|a|>", "<|a|><|b|>"], "x<|a|><|b|>y<|a|>z<|a|><|b|<|a|><|a|><|b|><|b|>"),
    "a shorter special token": (["<|a|><|b|>", "<|a|>"], "x<|a|><|b|>y<|a|>z<|a|><|b|<|a|><|a|><|b|><|b|>"),
    "a separator inside another": (["b|>", "<|a|b|>"], "x<|a|b|>y b|> z<|a|b<|a|b|>|>b|>"),
    "a separator that overlaps itself": (["aa"], "aaaaa b aaa aaaa a ab aab" + "a" * 33 + "baa"),
    "two that overlap each other": (["ab", "ba"], "abababa ba aba bab abba" + "ab" * 20 + "a"),
    "a separator of one byte": (["\n"], "one\ntwo\r\n\n\nthree  \n four\n"),
    "a separator that is a space": ([" "], "one two   three  four "),
    "a wide separator": (["。", "。。"], "自君之出矣。不復。。理殘機。。。思君"),
    "contractions": ([ENDOFTEXT], f"it's we'll they've I'd ''s 's'll x'{ENDOFTEXT}s 'l l{ENDOFTEXT}'re"),
}


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Callable[[str], AbstractContextManager[dict[str, Any]]]:
    """Arguments that make a call run where the name says; the cluster starts when first asked for."""

    @contextmanager
    def on(scheduler: str) -> Iterator[dict[str, Any]]:
        if scheduler == "cluster":
            client: Client = request.getfixturevalue("client")
            yield {"client": client}
        else:
            with dask.config.set(scheduler=scheduler):
                yield {}

    return on


def write(folder: Path, *texts: str | bytes) -> list[str]:
    """The texts as files, in order."""
    paths = []
    for i, text in enumerate(texts):
        path = folder / f"{i:03}.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("case", CASES)
def test_counts_do_not_depend_on_blocks(case: str, block_bytes: int, tmp_path: Path) -> None:
    special, text = CASES[case]
    counts = dask_bpe.count_pretokens(write(tmp_path, text), special_tokens=special, block_bytes=block_bytes)
    assert counts.to_dict() == reference.count([text], special_tokens=special)
    assert counts.n_bytes == len(text.encode())
    # Every special token cuts the text and ends a document when it is counted.
    pieces = [piece for piece, _ in reference.cut(text, special)]
    ends = [piece in special for piece in pieces]
    assert counts.n_documents == sum(ends) + (not ends[-1])


@pytest.mark.parametrize(
    ("fmt", "block_bytes"), [*(("bin", block_bytes) for block_bytes in BLOCKS), ("parquet", 2), ("parquet", 64)]
)
@pytest.mark.parametrize("case", CASES)
def test_the_token_stream_does_not_depend_on_blocks(case: str, fmt: str, block_bytes: int, tmp_path: Path) -> None:
    special, text = CASES[case]
    tokenizer = crossing([text], special)
    (tmp_path / "text").mkdir()
    separator = special[0] if special else None
    report = dask_bpe.encode_corpus(
        write(tmp_path / "text", text),
        tokenizer,
        tmp_path / "out",
        format=fmt,
        separator=separator,
        block_bytes=block_bytes,
    )
    assert_encoded(tmp_path / "out", [text], tokenizer, separator)
    documents = documents_of([text], tokenizer, separator)
    assert report.n_tokens == sum(map(len, documents))
    assert report.n_bytes == len(text.encode())
    assert report.n_documents == len(documents)
    assert report.max_id == max(map(max, documents))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("ties", TIES)
def test_the_vocabulary_file_is_the_same_everywhere(
    ties: str, scheduler: str, runner: Callable[..., Any], corpus: list[str], tmp_path: Path
) -> None:
    texts = [
        ENDOFTEXT.join(corpus[:20]),
        ENDOFTEXT.join(corpus[20:40]) + ENDOFTEXT,
        "\r\n".join(corpus[40:60]),
    ]
    expected = trained_on(texts, [ENDOFTEXT], 100, ties)
    expected.save(tmp_path / "expected.json")
    (tmp_path / "text").mkdir()
    paths = write(tmp_path / "text", *texts)
    variants: list[dict[str, Any]] = [
        {"block_bytes": 97, "split_every": 2},
        {"block_bytes": 1000, "split_every": 3},
        {"block_bytes": 1 << 20, "split_every": 8},
        {},
    ]
    for i, options in enumerate(variants):
        with runner(scheduler) as where:
            tokenizer = dask_bpe.train(paths, 357, special_tokens=[ENDOFTEXT], ties=ties, **options, **where)
        tokenizer.save(tmp_path / f"{i}.json")
        assert (tmp_path / f"{i}.json").read_bytes() == (tmp_path / "expected.json").read_bytes(), options


@pytest.mark.parametrize("fmt", ["bin", "parquet"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_token_stream_is_the_same_everywhere(
    scheduler: str, fmt: str, runner: Callable[..., Any], corpus: list[str], tmp_path: Path
) -> None:
    texts = [
        ENDOFTEXT.join(corpus[:20]),
        ENDOFTEXT.join(corpus[20:40]) + ENDOFTEXT,
        "\r\n".join(corpus[40:60]),
    ]
    tokenizer = crossing([text[:500] for text in texts], [ENDOFTEXT])
    (tmp_path / "text").mkdir()
    paths = write(tmp_path / "text", *texts)
    for block_bytes in (211, 1000, None):
        out = tmp_path / f"out-{block_bytes}"
        with runner(scheduler) as where:
            dask_bpe.encode_corpus(paths, tokenizer, out, format=fmt, block_bytes=block_bytes, **where)
        assert_encoded(out, texts, tokenizer, ENDOFTEXT)


def test_a_shard_is_the_same_bytes_on_every_scheduler(
    runner: Callable[..., Any], corpus: list[str], tmp_path: Path
) -> None:
    text = ENDOFTEXT.join(corpus[:40])
    tokenizer = trained_on([text], [ENDOFTEXT], 50)
    (tmp_path / "text").mkdir()
    paths = write(tmp_path / "text", text)
    for fmt in ("bin", "parquet"):
        folders = []
        for scheduler in SCHEDULERS:
            folders.append(tmp_path / f"{fmt}-{scheduler}")
            with runner(scheduler) as where:
                dask_bpe.encode_corpus(paths, tokenizer, folders[-1], format=fmt, block_bytes=500, **where)
        contents = [{path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))} for folder in folders]
        assert contents[0] == contents[1] == contents[2]
        assert contents[0]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("block_bytes", [1, 3, 50])
def test_small_blocks_on_every_scheduler(
    block_bytes: int, scheduler: str, runner: Callable[..., Any], tmp_path: Path
) -> None:
    text = f"one 自two\r\n{ENDOFTEXT}three{ENDOFTEXT}"
    tokenizer = trained_on([text], [ENDOFTEXT])
    (tmp_path / "text").mkdir()
    paths = write(tmp_path / "text", text)
    with runner(scheduler) as where:
        counts = dask_bpe.count_pretokens(
            paths, special_tokens=[ENDOFTEXT], block_bytes=block_bytes, split_every=2, **where
        )
        dask_bpe.encode_corpus(paths, tokenizer, tmp_path / "out", block_bytes=block_bytes, **where)
    assert counts.to_dict() == reference.count([text], special_tokens=[ENDOFTEXT])
    assert_encoded(tmp_path / "out", [text], tokenizer, ENDOFTEXT)


def test_the_active_client_is_used(client: Client, tmp_path: Path) -> None:
    text = f"one two{ENDOFTEXT}two three"
    paths = write(tmp_path, text)
    with client.as_current(), get_task_stream(client) as tasks:
        tokenizer = dask_bpe.train(paths, 270, special_tokens=[ENDOFTEXT], block_bytes=5)
    assert tokenizer.vocabulary == trained_on([text], [ENDOFTEXT], 13).vocabulary
    assert tasks.data


@given(data=st.data())
@examples(0.7)
def test_any_text_in_any_blocks(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    text, special = data.draw(strategies.with_special_tokens(strategies.text(4)))
    text += data.draw(st.sampled_from(["", "a", special[0]]))
    text = text or "a"
    block_bytes = data.draw(st.integers(1, 40))
    folder = tmp_path_factory.mktemp("any")
    (folder / "text").mkdir()
    paths = write(folder / "text", text)
    counts = dask_bpe.count_pretokens(paths, special_tokens=special, block_bytes=block_bytes, split_every=3)
    assert counts.to_dict() == reference.count([text], special_tokens=special)
    tokenizer = crossing([text], special)
    fmt = data.draw(st.sampled_from(["bin", "parquet"]))
    dask_bpe.encode_corpus(paths, tokenizer, folder / "out", format=fmt, separator=special[0], block_bytes=block_bytes)
    assert_encoded(folder / "out", [text], tokenizer, special[0])


@pytest.mark.parametrize("script", ["english", "chinese", "chinese without spaces", "russian", "code", "numbers"])
def test_a_document_in_any_script_is_divided(script: str, alice: str, poems: str, tmp_path: Path) -> None:
    """A document larger than a block is no task of its own: neither time nor memory would be bounded."""
    text = {
        "english": alice,
        "chinese": poems,
        "chinese without spaces": poems.replace("\n", ""),
        "russian": "Все люди рождаются свободными и равными в своём достоинстве и правах.\n" * 300,
        "code": 'x = {\n    "a": [1, 2],\n}\n' * 1000,
        "numbers": "1,2,3\n" * 4000,
    }[script]
    (tmp_path / "text").mkdir()
    paths = write(tmp_path / "text", text)
    tokenizer = crossing([text[:300]], [])
    report = dask_bpe.encode_corpus(paths, tokenizer, tmp_path / "out", block_bytes=2000)
    assert_encoded(tmp_path / "out", [text], tokenizer, None)
    assert report.n_shards > len(text.encode()) / 2000 / 2


@pytest.mark.filterwarnings("ignore::dask_bpe.errors.PatternWarning")
@given(data=st.data())
@examples(0.4)
def test_any_pattern_in_any_blocks(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A document is cut only where the pattern cannot look across."""
    pattern = data.draw(st.sampled_from([*strategies.PATTERNS, None]))
    text = data.draw(strategies.text(25)) or "a"
    folder = tmp_path_factory.mktemp("any")
    (folder / "text").mkdir()
    paths = write(folder / "text", text)
    block_bytes = data.draw(st.integers(1, 40))
    counts = dask_bpe.count_pretokens(paths, pattern=pattern, block_bytes=block_bytes)
    assert counts.to_dict() == reference.count([text], pattern)
    tokenizer = crossing([text], [], pattern)
    dask_bpe.encode_corpus(paths, tokenizer, folder / "out", block_bytes=block_bytes)
    assert_encoded(folder / "out", [text], tokenizer, None)


def test_without_a_pattern_a_document_is_never_cut(tmp_path: Path) -> None:
    text = f"in the end{ENDOFTEXT}the cat and the dog\n\n and all{ENDOFTEXT}{ENDOFTEXT}the rest"
    for block_bytes in BLOCKS:
        counts = dask_bpe.count_pretokens(
            write(tmp_path, text), pattern=None, special_tokens=[ENDOFTEXT], block_bytes=block_bytes
        )
        assert counts.to_dict() == reference.count([text], None, [ENDOFTEXT])


@pytest.mark.parametrize("ties", TIES)
def test_the_order_of_files_matters_to_the_rule_first_alone(ties: str, corpus: list[str], tmp_path: Path) -> None:
    texts = [text for text in corpus if text][:30]
    paths = write(tmp_path, *texts)
    order = list(range(len(texts)))
    for seed in range(3):
        random.Random(seed).shuffle(order)
        tokenizer = dask_bpe.train([paths[i] for i in order], 330, ties=ties, block_bytes=100, split_every=2)
        told = [texts[i] for i in order] if ties == "first" else texts
        assert tokenizer.vocabulary == trained_on(told, [], 74, ties).vocabulary


@pytest.mark.parametrize("block_bytes", [7, 64, None])
def test_many_files_some_of_them_empty(block_bytes: int | None, tmp_path: Path) -> None:
    texts = ["", "one two", "", f"{ENDOFTEXT}", "three's", f"a{ENDOFTEXT}b", " ", ""]
    (tmp_path / "text").mkdir()
    write(tmp_path / "text", *texts)
    counts = dask_bpe.count_pretokens(tmp_path / "text", special_tokens=[ENDOFTEXT], block_bytes=block_bytes)
    assert counts.to_dict() == reference.count(texts, special_tokens=[ENDOFTEXT])
    tokenizer = crossing(texts, [ENDOFTEXT])
    dask_bpe.encode_corpus(tmp_path / "text", tokenizer, tmp_path / "out", block_bytes=block_bytes)
    assert_encoded(tmp_path / "out", texts, tokenizer, ENDOFTEXT)


@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
def test_invalid_utf8_is_repaired_as_in_the_whole(block_bytes: int, policy: str, tmp_path: Path) -> None:
    data = (
        b"ab\xff cd\xe2\x82 \xf0\x9f\x98"
        + f"{ENDOFTEXT}é自😀".encode()
        + b"\xed\xa0\x80x\xc3"
        + ENDOFTEXT.encode()
        + b"\x80 ok\xf0\x9f"
    )
    text = data.decode("utf-8", "replace" if policy == "replace" else "ignore")
    (tmp_path / "text").mkdir()
    paths = write(tmp_path / "text", data)
    counts = dask_bpe.count_pretokens(paths, special_tokens=[ENDOFTEXT], errors=policy, block_bytes=block_bytes)
    assert counts.to_dict() == reference.count([text], special_tokens=[ENDOFTEXT])
    tokenizer = crossing([text], [ENDOFTEXT])
    report = dask_bpe.encode_corpus(paths, tokenizer, tmp_path / "out", errors=policy, block_bytes=block_bytes)
    assert_encoded(tmp_path / "out", [text], tokenizer, ENDOFTEXT)
    invalid = data.decode("utf-8", "replace").count("\ufffd")
    assert counts.n_invalid == report.n_invalid == invalid


@pytest.mark.parametrize("policy", ["replace", "skip"])
@given(data=strategies.broken_utf8(), block_bytes=st.integers(1, 20))
@examples(0.5)
def test_any_bytes_are_repaired_as_in_the_whole(
    policy: str, data: bytes, block_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"a" + data
    text = data.decode("utf-8", "replace" if policy == "replace" else "ignore")
    folder = tmp_path_factory.mktemp("any")
    (folder / "text").mkdir()
    paths = write(folder / "text", data)
    counts = dask_bpe.count_pretokens(paths, errors=policy, block_bytes=block_bytes)
    assert counts.to_dict() == reference.count([text])
    assert counts.n_invalid == data.decode("utf-8", "replace").count("\ufffd") - data.count("\ufffd".encode())
    tokenizer = crossing([text], [])
    dask_bpe.encode_corpus(paths, tokenizer, folder / "out", errors=policy, block_bytes=block_bytes)
    assert_encoded(folder / "out", [text], tokenizer, None)


def test_a_bag_of_strings_is_a_corpus(corpus: list[str]) -> None:
    expected = {ties: trained_on(corpus, [], 44, ties).vocabulary for ties in TIES}
    for partitions in (1, 3, 20):
        bag = dask.bag.from_sequence(corpus, npartitions=partitions)
        assert dask_bpe.count_pretokens(bag).to_dict() == reference.count(corpus)
        for ties in TIES:
            assert dask_bpe.train(bag, 300, ties=ties).vocabulary == expected[ties]
