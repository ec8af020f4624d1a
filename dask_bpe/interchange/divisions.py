"""How tokens come about when the lowest rank merges first, as in tiktoken.

There any two neighbours whose bytes joined are a token may merge. Yet every token arises in one way only:
merges within a stretch of text, until one reaches over its ends, are those of the stretch alone, in the same
order; and merging the bytes of a token alone passes through one state of two parts at most. So wherever two
neighbours join to a token, in whatever text, they are the two parts found here; other ways to divide it never
stand side by side, and neither their presence among the merges nor their order among themselves matters.
"""

from __future__ import annotations

from collections.abc import Mapping

Division = tuple[bytes, bytes]


def last_division(token: bytes, ranks: Mapping[bytes, int]) -> Division | None:
    """The two parts that merge last into `token` (two bytes or more), or None if its bytes end up otherwise."""
    parts = [token[at : at + 1] for at in range(len(token))]
    joined = [ranks.get(token[at : at + 2]) for at in range(len(token) - 1)]
    while len(parts) > 2:
        best = min((rank for rank in joined if rank is not None), default=None)
        if best is None:
            return None
        at = joined.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del joined[at]
        if at < len(joined):
            joined[at] = ranks.get(parts[at] + parts[at + 1])
        if at:
            joined[at - 1] = ranks.get(parts[at - 1] + parts[at])
    return (parts[0], parts[1]) if joined[0] is not None else None


def last_divisions(ranks: Mapping[bytes, int]) -> dict[bytes, Division]:
    """`last_division` of every token of two bytes or more that has one."""
    found = {token: last_division(token, ranks) for token in ranks if len(token) > 1}
    return {token: division for token, division in found.items() if division is not None}
