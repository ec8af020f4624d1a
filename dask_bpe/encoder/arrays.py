"""The arrays of a workspace: the cache of pre-tokens that were met, with their ids, and scratch arrays for merging."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dask_bpe.kernels import encode as kernels
from dask_bpe.kernels import front, lanes, memory, merge_windows, merging, table

# Lines of the front table, 64 bytes each: 512 KB. Half of it lost 0 to 8 %; two or four times as much gained nothing.
_FRONT_LINES = 1 << 13
# Pieces of phrases that are remembered, 32 bytes each. Room for the seams of a phrase.
_PIECES = 1 << 14
_SEAMS = kernels.CACHED_BYTES + lanes.LANES
# Slots of the index of the cache at first, and bytes of all its arrays at most. Full arrays are made twice as large;
# past the limit only the first half of the entries is kept: what is frequent came early. 420 MB in many languages took
# a quarter to a half longer when none was kept, a fifth with a quarter of them, a twentieth with three quarters.
_FIRST, _MOST = 1 << 16, 1 << 28
_KEPT = 1 / 2


def make_scratch(length: int) -> merging.Scratch:
    """Scratch arrays for the merging of pre-tokens of up to `length` bytes."""
    return merging.Scratch(
        np.empty(length, np.uint32),
        np.empty(length, np.uint64),
        np.empty(2 * length, np.int64),
        np.empty(3 * length, np.uint64),
        np.zeros(merge_windows.RECENT * merge_windows.WINDOW, np.uint8),
        np.zeros(merge_windows.RECENT * (merge_windows.WINDOW + 2), np.uint32),
        memory.zeros(table.WIDTH * _PIECES),
        np.empty(_SEAMS, np.int64),
    )


class _Sizes(NamedTuple):
    """How much a cache has room for: slots of its index, 5/8 of which may be filled; strings of 16 bytes or more, and
    the bytes of those; ids of pre-tokens that have more than four."""

    slots: int
    strings: int
    n_bytes: int
    ids: int

    @property
    def memory(self) -> int:
        """Bytes of all arrays."""
        return self.slots * (8 + 5 * table.WIDTH) + 8 * self.strings + self.n_bytes + 4 * self.ids


# What a batch may need.
_NEEDED = _Sizes(
    2 * front.BATCH, front.BATCH, front.BATCH * kernels.CACHED_BYTES, front.BATCH * kernels.CACHED_BYTES + kernels.SPARE
)


def make_cache() -> kernels.Cache:
    """An empty cache, with room for a long string in every fifth entry and two ids in `overflow`."""
    return _of_sizes(_Sizes(*map(max, (_FIRST, _FIRST // 8, _FIRST, _FIRST), _NEEDED)))


def _of_sizes(sizes: _Sizes) -> kernels.Cache:
    return kernels.Cache(
        front=memory.zeros(front.LINE * _FRONT_LINES),
        index=memory.zeros(sizes.slots),
        entries=memory.zeros(table.WIDTH * (sizes.slots // 8 * 5)),
        values=np.empty(sizes.n_bytes, np.uint8),
        offsets=np.zeros(sizes.strings, np.int64),
        overflow=np.empty(sizes.ids, np.uint32),
        used=np.zeros(4, np.int64),
    )


def enlarged(cache: kernels.Cache) -> kernels.Cache:
    """A full cache with twice the room for what it lacks room for; past the limit with its first entries only."""
    sizes = _Sizes(len(cache.index), len(cache.offsets), len(cache.values), len(cache.overflow))
    n_entries, strings, n_bytes, ids = cache.used.tolist()
    wanted = [a + b for a, b in zip((n_entries * 8 // 5, strings, n_bytes, ids), _NEEDED, strict=True)]
    grown = _Sizes(*(2 * size if want >= size else size for size, want in zip(sizes, wanted, strict=True)))
    if grown.memory > _MOST:
        kernels.keep_first(int(_KEPT * n_entries), cache)
        return cache
    larger = cache._replace(
        values=_extended(cache.values, grown.n_bytes),
        offsets=_extended(cache.offsets, grown.strings),
        overflow=_extended(cache.overflow, grown.ids),
    )
    if grown.slots == sizes.slots:
        return larger
    index, entries = memory.zeros(grown.slots), memory.zeros(table.WIDTH * (grown.slots // 8 * 5))
    entries[: len(cache.entries)] = cache.entries
    table.rebuild_index(entries, n_entries, index)
    return larger._replace(index=index, entries=entries)


def _extended(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """An array with room at its end: itself if it has the length asked for."""
    if length == len(array):
        return array
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    return longer
