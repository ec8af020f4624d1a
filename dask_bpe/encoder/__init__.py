"""From segments of text to token ids, in one thread or several at once.

rules       the merges, and the tokens that a pre-token may be as a whole, in tables
workspace   what one thread keeps from one call to the next, and the call of a kernel
arrays      the arrays of a workspace, which grow
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dask_bpe.encoder.rules import rules_of
from dask_bpe.encoder.workspace import NOTHING, NOTHING_AFTER, SHORT, Workspace
from dask_bpe.kernels import encode as kernels
from dask_bpe.normalizer import Normalizer
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.ragged import Ragged
from dask_bpe.vocabulary import Vocabulary

__all__ = ["NOTHING", "SHORT", "SLICE_BYTES", "Encoder", "slices"]

Text = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]

# Text whose ids and what is made of them stay in the L2 cache.
SLICE_BYTES = 1 << 20

_T = TypeVar("_T")
_MAKING = threading.Lock()


class Encoder:
    """Encodes text with one vocabulary. Safe to use from many threads: each call takes a workspace of its own.

    A workspace keeps the ids of the pre-tokens it has met, within 256 MiB; it is reused by later calls.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._pattern = get_pattern(vocabulary.pattern)
        self._normalizer = Normalizer(vocabulary.normalizer) if vocabulary.normalizer else None
        self._rules = rules_of(vocabulary)
        self._idle: deque[Workspace] = deque()

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Encoder:
        """The encoder of this process for a vocabulary: its caches stay warm from one use to the next."""
        with _MAKING:
            return _encoder_of(vocabulary)

    def encode_segments(
        self, text: Text, starts: Int64s, ends: Int64s, after: Ids = NOTHING_AFTER, out: Ids | None = None
    ) -> tuple[Ids, Int64s]:
        """Encode each segment ``text[starts[k]:ends[k]]`` on its own; special tokens are not looked for.

        A segment is what a normalizer is applied to: it must be all the text between two special tokens.

        Parameters
        ----------
        text : uint8[n], contiguous.
        starts, ends : int64[k].
        after : uint32[k], an id to put after each segment, such as that of the special token that ended it;
            `NOTHING` for none. Left out: none anywhere.
        out : uint32[n], where the ids are written if it is large enough; those returned are a part of it then. Memory
            that is used again need not be cleared by the system.

        Returns
        -------
        ids : uint32[m], those of all segments, one after the other.
        offsets : int64[k + 1], segment k, with what comes after it, is ``ids[offsets[k]:offsets[k + 1]]``.

        Raises
        ------
        InputError
            When the vocabulary's pattern leaves a part of the text unmatched.
        """
        if self._normalizer is not None:
            text, starts, ends = _normalized(self._normalizer, text, starts, ends)
        # The kernels take arrays as they are, without a look at their types.
        text, after = np.ascontiguousarray(text, np.uint8), np.ascontiguousarray(after, np.uint32)
        segments = np.array((starts, ends), np.int64)
        room = int((segments[1] - segments[0]).sum()) + segments.shape[1] + kernels.SPARE
        if out is None or len(out) < room:
            out = np.empty(room, np.uint32)
        offsets = np.zeros(segments.shape[1] + 1, np.int64)
        workspace = self._workspace()
        written = workspace.encode(text, segments, after, self._rules, out, offsets)
        # Only a workspace whose call went well is used again: a MemoryError may leave one half made.
        self._idle.append(workspace.shrunk())
        return out[:written], offsets

    def encode_array(
        self, text: Text, starts: Int64s, ends: Int64s, after: Ids, dtype: npt.DTypeLike
    ) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The ids that `encode_segments` gives, in an array of `dtype`, which every id of the vocabulary must fit.

        For long texts: what is written and cast piece by piece needs new memory only for the result.
        """
        ids = np.empty(int((ends - starts).sum()) + len(starts), dtype)
        out = np.empty(2 * SLICE_BYTES, np.uint32)
        written = 0
        for first, last in slices(starts, ends):
            part = self.encode_segments(text, starts[first:last], ends[first:last], after[first:last], out)[0]
            ids[written : written + len(part)] = part
            written += len(part)
        ids.resize(written, refcheck=False)  # gives back what was never touched
        return ids

    def encode_text(self, data: bytes, take: Callable[[Ids], _T]) -> _T:
        """What `take` makes of the ids of one text, uint32[n], which is a segment of its own.

        `take` must copy: the memory of the ids is used again. Raises as `encode_segments`.
        """
        if len(data) <= SHORT and self._normalizer is None:
            workspace = self._workspace()
            ids = workspace.encode_short(data, self._rules)
            taken = None if ids is None else take(ids)
            self._idle.append(workspace)
            if taken is not None:
                return taken
        text = np.frombuffer(data, np.uint8)
        return take(self.encode_segments(text, np.zeros(1, np.int64), np.array([len(data)], np.int64))[0])

    def _workspace(self) -> Workspace:
        """A workspace that nobody uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return Workspace(Scanner(self._pattern, keep_all=True))


def slices(starts: Int64s, ends: Int64s, n_bytes: int = SLICE_BYTES) -> Iterator[tuple[int, int]]:
    """Ranges of segments, from one to another, of about `n_bytes` each."""
    first = 0
    while first < len(ends):
        last = int(np.searchsorted(ends, starts[first] + n_bytes, side="right"))
        last = max(last, first + 1)
        yield first, last
        first = last


@lru_cache(maxsize=4)
def _encoder_of(vocabulary: Vocabulary) -> Encoder:
    return Encoder(vocabulary)


def _normalized(normalizer: Normalizer, text: Text, starts: Int64s, ends: Int64s) -> tuple[Text, Int64s, Int64s]:
    """The segments after the normalizer, in a text that holds nothing else."""
    if len(starts) == 0:
        return text, starts, ends
    if normalizer.keeps_ascii and text[int(starts.min()) : int(ends.max())].max(initial=0) < 0x80:
        return text, starts, ends
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    segments = Ragged.from_list(normalizer(text[start:end].tobytes()) for start, end in bounds)
    return segments.values, segments.offsets[:-1], segments.offsets[1:]
