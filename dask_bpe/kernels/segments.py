"""The frame of every vector scanner: segment after segment, until all are cut or the spans are full."""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, inlined, text_type, u8s, u64s

# Pre-tokens for which there must be room before a segment is begun.
MARGIN = 130
# What a scanner returns and takes; see `scan_segments`.
SCANNER = (i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s)


@inlined
def scan_segments(scan_segment, text, segments, cursor, classes, scratch, words, spans, stops):
    """Cut segments, each one by ``scan_segment(text, begin, end, classes, scratch, words, spans, found)``.

    That cuts ``text[begin:end]``, not empty, from the pre-token start `begin` on, after `found` spans. It returns how
    many there are then, as a negative number; or, if `spans` is full, how many have begun: the last has no end yet.

    The contract is that of `scan`. scratch : uint8[64], words : uint64[73], any contents.
    """
    found = 0
    while cursor[0] < segments.shape[1]:
        end = segments[1, cursor[0]]
        position = max(cursor[1], segments[0, cursor[0]])
        if position < end:
            if found + MARGIN > spans.shape[1]:
                cursor[1] = position
                return found
            found = scan_segment(text, position, end, classes, scratch, words, spans, found)
            if found > 0:
                cursor[1] = spans[0, found - 1]
                return found - 1
            found = -found
        stops[cursor[0]] = found
        cursor[0] += 1
        cursor[1] = 0
    return found
