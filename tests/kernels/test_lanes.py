"""What works on eight pre-tokens or characters at a time gives what one at a time gives."""

from __future__ import annotations

import random

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dask_bpe import Tokenizer
from dask_bpe.count_table import CountTable
from dask_bpe.counts import PretokenCounts
from dask_bpe.encoder import Encoder
from dask_bpe.kernels import front, lanes, memory
from dask_bpe.kernels._jit import i64, i64s, kernel, none, text_type, u64s
from dask_bpe.kernels.utf8 import code_point, decode_lanes
from dask_bpe.pretokenize import Scanner, get_pattern

pytestmark = pytest.mark.skipif(not lanes.WIDE, reason="this processor has no lanes")


@kernel(none, text_type, u64s, i64s)
def decode_by_lanes(text, starts, out):
    for k in range(0, starts.size, lanes.LANES):
        points, lengths = decode_lanes(lanes.gather8(text, lanes.load8(starts, k)))
        lanes.store8(out, 2 * k, points)
        lanes.store8(out, 2 * k + lanes.LANES, lengths)


@kernel(none, text_type, u64s, i64s)
def decode_one_by_one(text, starts, out):
    for k in range(starts.size):
        point, length = code_point(text, np.int64(starts[k]), text.size)
        valid = point >= 0
        group, lane = k // lanes.LANES, k % lanes.LANES
        at = 2 * lanes.LANES * group + lane
        out[at] = point if valid else 0
        out[at + lanes.LANES] = length if valid else 0


@kernel(i64, text_type, i64s, i64s, i64, u64s, u64s, front.batch_type)
def look_up(text, starts, ends, wide, table, index, batch):
    return front.look_up(text, starts, ends, wide, table, index, batch)


def test_every_character_and_every_damaged_one_is_decoded_like_one_by_one() -> None:
    rng = np.random.default_rng(0)
    points = [*range(0xC0, 0x3000), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010), *range(0x10FFF0, 0x110000)]
    parts = [chr(point).encode("utf-8", "surrogatepass") for point in points]
    # What looks like a character and is none: overlong, too large, cut off, with another byte in it.
    parts += [
        bytes([lead, *tail]) for lead in range(0xC0, 0x100) for tail in rng.integers(0x70, 0xD0, (64, 3)).tolist()
    ]
    text = np.frombuffer(b"".join(parts) + bytes(16), np.uint8)
    starts = np.flatnonzero(text >= 0xC0).astype(np.uint64)
    starts = np.append(starts, np.repeat(starts[:1], -len(starts) % lanes.LANES))
    ours, expected = np.empty((2, 2 * len(starts)), np.int64)
    decode_by_lanes(text, starts, ours)
    decode_one_by_one(text, starts, expected)
    np.testing.assert_array_equal(ours, expected)


def long_text(parts: list[bytes], seed: int, n_parts: int = 1500) -> bytes:
    """Several full batches of pre-tokens, some of them over and over."""
    rng = random.Random(seed)
    return b"".join(rng.choices([*parts, b" the", b" a", b"internationalization" * 3], k=n_parts))


parts_of_text = st.lists(st.one_of(strategies.text().map(str.encode), st.binary(max_size=20)), min_size=1, max_size=30)


@given(parts=parts_of_text, seed=st.integers(0, 1 << 30))
def test_full_batches_are_looked_up_as_others(parts: list[bytes], seed: int) -> None:
    text = np.frombuffer(long_text(parts, seed), np.uint8)
    segments = np.array([[0], [len(text)]], np.int64)
    batch, other = front.Batch.empty(), front.Batch.empty()
    table, index = memory.zeros(front.LINE * 4), memory.zeros(16)
    for found in Scanner(get_pattern("gpt2")).scan(text, segments):
        starts, ends = found.spans[:, : found.n_spans]
        for k in range(0, found.n_spans - front.BATCH, front.BATCH):
            arguments = starts[k : k + front.BATCH].copy(), ends[k : k + front.BATCH].copy()
            missed = look_up(text, *arguments, 1, table, index, batch)
            assert missed == look_up(text, *arguments, 0, table, index, other)
            for ours, expected in zip(batch[:3], other[:3], strict=True):
                np.testing.assert_array_equal(ours, expected)
            np.testing.assert_array_equal(batch.missed[:missed], other.missed[:missed])


@given(parts=parts_of_text, seed=st.integers(0, 1 << 30), pattern=st.sampled_from(["gpt2", "cl100k", "o200k"]))
def test_ids_are_the_same_with_and_without(parts: list[bytes], seed: int, pattern: str) -> None:
    data = long_text(parts, seed)
    tokens = {i: bytes([i]) for i in range(256)} | {256: b"th", 257: b" th", 258: b" the", 259: b"in", 260: b"at"}
    merges = [(b"t", b"h"), (b" ", b"th"), (b" th", b"e"), (b"i", b"n"), (b"a", b"t")]
    vocabulary = Tokenizer(tokens, merges, pattern=pattern).vocabulary
    encoder, text = Encoder(vocabulary), np.frombuffer(data, np.uint8)

    def encode(encoder: Encoder) -> list[int]:
        return encoder.encode_segments(text, np.zeros(1, np.int64), np.array([len(text)], np.int64))[0].tolist()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "IN_USE", True)
        ours = encode(encoder), encode(encoder)
        patch.setattr(lanes, "IN_USE", False)
        expected = encode(Encoder(vocabulary))
    assert ours == (expected, expected)
    assert b"".join(vocabulary.tokens[i] for i in expected) == data


@given(parts=parts_of_text, seed=st.integers(0, 1 << 30))
def test_counts_are_the_same_with_and_without(parts: list[bytes], seed: int) -> None:
    data = long_text(parts, seed)
    text, segments = np.frombuffer(data, np.uint8), np.array([[0], [len(data)]], np.int64)

    def counted() -> PretokenCounts:
        table = CountTable()
        table.add_segments(text, segments, Scanner(get_pattern("gpt2")), 5)
        return PretokenCounts.from_table(table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "IN_USE", True)
        ours = counted()
        patch.setattr(lanes, "IN_USE", False)
        expected = counted()
    assert ours.to_dict() == expected.to_dict()
    assert ours.first.tolist() == expected.first.tolist()
