"""From texts, in which special tokens may stand, to token ids: one text at a time, or megabytes of texts together.

`Encoder` knows of segments alone: a text is cut into them at its special tokens, whose ids come after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dask_bpe.normalizer import Normalizer
from dask_bpe.offsets import Encoding, into_text, kept_pieces, refuse_changed, tile, to_characters
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.pretokenize.allowed import Choices, Specials, Texts
from dask_bpe.streaming import to_bytes
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dask_bpe.encoder import Encoder

# Texts of a batch meet the kernels together, up to about this many bytes at a time.
BATCH_BYTES = 1 << 24

Int64s = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]
_T = TypeVar("_T")

# Texts of more bytes or characters become ids in an array of the type asked for without a copy.
_LONG = 1 << 22

_NO_IDS = np.empty(0, np.uint32)
_NOTHING = 0xFFFFFFFF  # as `encoder.NOTHING`, which is not imported before there is something to encode


class TextEncoder:
    """Encodes texts with one vocabulary. Safe to use from several threads.

    Of every method: `allowed` and `disallowed` are the arguments that `Tokenizer.encode` has by these names;
    `framed` says whether the vocabulary's template goes around a text. ParameterError is raised where a text holds a
    disallowed special token.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.specials = Specials(vocabulary.special_tokens, vocabulary.added_rules)
        self._choices = Choices(vocabulary.special_tokens, vocabulary.added_rules)

    @cached_property
    def encoder(self) -> Encoder:
        """What turns segments of text into ids; made when it is first needed."""
        # Imported here: a training need not wait until the encoder's kernels are compiled.
        from dask_bpe.encoder import Encoder

        return Encoder.of(self._vocabulary)

    def encode(
        self, text: str | bytes, allowed: Texts, disallowed: Texts, framed: bool, take: Callable[[Ids], _T]
    ) -> _T:
        """What `take`, which must copy, makes of the ids of a text."""
        data = to_bytes(text)
        plain = allowed is None and disallowed is None
        specials = self.specials if plain else self._chosen(data, allowed, disallowed)
        if framed or specials.may_be_in(data):
            ids, bounds = self._encode_texts(data, [0], [len(data)], specials)
            return take(self._framed(ids, bounds)[0] if framed else ids)
        return self.encoder.encode_text(data, take) if data else take(_NO_IDS)

    def encode_array(
        self, text: str | bytes, allowed: Texts, disallowed: Texts, framed: bool, dtype: np.dtype[Any]
    ) -> npt.NDArray[Any]:
        """The ids of a text in an array of `dtype`, which every id must fit."""
        if len(text) > _LONG and not framed:
            data = to_bytes(text)
            cut = _cut(data, [0], [len(data)], self._chosen(data, allowed, disallowed))
            return self.encoder.encode_array(np.frombuffer(data, np.uint8), cut.starts, cut.ends, cut.after, dtype)

        def take(ids: Ids) -> npt.NDArray[Any]:
            return ids.astype(dtype)  # a copy even when the type is right

        return self.encode(text, allowed, disallowed, framed, take)

    def encode_batch(
        self, texts: Iterable[str | bytes], allowed: Texts, disallowed: Texts, framed: bool
    ) -> Iterator[tuple[Ids, Int64s]]:
        """Ids of the texts, some megabytes at a time: those of text k are ``ids[bounds[k]:bounds[k + 1]]``."""
        for first, group in _groups(texts):
            specials = self.specials
            if allowed is not None or disallowed is not None:
                choice = self._choices.choice(allowed, disallowed)
                for number, data in enumerate(group, first):
                    choice.refuse(data, f"text {number}")
                specials = choice.allowed
            ends = np.cumsum([len(data) for data in group], dtype=np.int64).tolist()
            ids, bounds = self._encode_texts(b"".join(group), [0, *ends[:-1]], ends, specials)
            yield self._framed(ids, bounds) if framed else (ids, bounds)

    def encode_with_offsets(
        self, text: str | bytes, allowed: Texts, disallowed: Texts, lengths: npt.NDArray[np.uint32]
    ) -> Encoding:
        """The ids of a text and their places. lengths : uint32[n], bytes of every id.

        Raises ParameterError where the normalizer changes the text, too.
        """
        data = to_bytes(text)
        specials = self._chosen(data, allowed, disallowed)
        array = np.frombuffer(data, np.uint8)
        cut = _cut(data, [0], [len(data)], specials)
        segments, others = np.array((cut.starts, cut.ends)), np.array((cut.ends[:-1], cut.starts[1:]))
        if self._vocabulary.normalizer:
            refuse_changed(data, segments, Normalizer(self._vocabulary.normalizer))
        ids, bounds = self.encoder.encode_segments(array, cut.starts, cut.ends, cut.after)
        sizes = lengths[ids].astype(np.int64)
        sizes[bounds[1:-1] - 1] = others[1] - others[0]
        offsets = tile(sizes)
        if sizes.sum() < len(data):
            scanner = Scanner(get_pattern(self._vocabulary.pattern), keep_all=True)
            offsets = into_text(offsets, kept_pieces(scanner, array, segments, others))
        return Encoding(ids.tolist(), offsets, to_characters(text, offsets))

    def _chosen(self, data: bytes, allowed: Texts, disallowed: Texts) -> Specials:
        """The special tokens that become ids in a text."""
        if allowed is None and disallowed is None:
            return self.specials
        choice = self._choices.choice(allowed, disallowed)
        choice.refuse(data)
        return choice.allowed

    def _framed(self, ids: Ids, bounds: Int64s) -> tuple[Ids, Int64s]:
        """The ids with those of the template around each text."""
        before, after = self._vocabulary.template
        n = len(bounds) - 1
        places = np.concatenate((np.tile(bounds[:-1], (len(before), 1)), np.tile(bounds[1:], (len(after), 1))))
        ids = np.insert(ids, places.T.ravel(), np.tile(np.array(before + after, np.uint32), n))
        return ids, bounds + np.arange(n + 1) * (len(before) + len(after))

    def _encode_texts(self, data: bytes, starts: list[int], ends: list[int], specials: Specials) -> tuple[Ids, Int64s]:
        """Ids of the texts data[starts[i]:ends[i]], and int64[n + 1] where those of each text begin."""
        cut = _cut(data, starts, ends, specials)
        ids, offsets = self.encoder.encode_segments(np.frombuffer(data, np.uint8), cut.starts, cut.ends, cut.after)
        return ids, offsets[cut.before]


class _Cut(NamedTuple):
    """Texts cut at special tokens: each of those ends a segment and comes after its ids, and so does the end of a text.

    Attributes
    ----------
    starts, ends : int64[k], of the segments.
    after : uint32[k], the id that comes after each.
    before : int64[n + 1], the number of segments before each text.
    """

    starts: Int64s
    ends: Int64s
    after: Ids
    before: Int64s


def _cut(data: bytes, starts: list[int], ends: list[int], specials: Specials) -> _Cut:
    """The texts data[starts[i]:ends[i]] cut at special tokens."""
    text = np.frombuffer(data, np.uint8)
    if not specials.may_be_in(data):
        after = np.full(len(starts), _NOTHING, np.uint32)
        return _Cut(np.array(starts, np.int64), np.array(ends, np.int64), after, np.arange(len(starts) + 1))
    segment_starts, segment_ends, follow, before = [], [], [], [0]
    for start, end in zip(starts, ends, strict=True):
        segment_starts.append(start)
        if specials.may_be_in(data, start, end):
            found_starts, found_ends, found = specials.find(text, start, end)
            segment_starts += found_ends
            segment_ends += found_starts
            follow += found
        segment_ends.append(end)
        follow.append(_NOTHING)
        before.append(len(follow))
    return _Cut(
        np.array(segment_starts, np.int64),
        np.array(segment_ends, np.int64),
        np.array(follow, np.uint32),
        np.array(before, np.int64),
    )


def _groups(texts: Iterable[str | bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The texts as UTF-8, several in a list, with the number of the first of them."""
    group: list[bytes] = []
    first = size = 0
    for text in texts:
        group.append(to_bytes(text))
        size += len(group[-1])
        if size >= BATCH_BYTES:
            yield first, group
            first, group, size = first + len(group), [], 0
    if group:
        yield first, group
