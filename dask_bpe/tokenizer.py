"""`Tokenizer`: text to token ids and back, in one process."""

from __future__ import annotations

import pickle
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from dask_bpe.decoding import IncrementalDecoder, TokenTable, flattened
from dask_bpe.errors import ParameterError
from dask_bpe.interchange.course_json import read_pair, write_pair
from dask_bpe.interchange.gpt2 import read_gpt2, write_gpt2
from dask_bpe.interchange.huggingface_read import read_huggingface
from dask_bpe.interchange.huggingface_write import write_huggingface
from dask_bpe.interchange.minbpe_model import read_minbpe, write_minbpe
from dask_bpe.interchange.tiktoken_ranks import read_tiktoken, write_tiktoken
from dask_bpe.normalizer import Normalizer
from dask_bpe.offsets import Encoding, into_text, kept_pieces, tile, to_characters
from dask_bpe.pretokenize import PatternSpec, Scanner, get_pattern
from dask_bpe.pretokenize.allowed import Choices, Specials, Texts
from dask_bpe.shrinking import shrink
from dask_bpe.streaming import safe_blocks, to_bytes
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dask_bpe.cluster.train import TrainingReport
    from dask_bpe.encoder import Encoder

# Texts of a batch meet the kernels together, up to about this many bytes at a time.
BATCH_BYTES = 1 << 24

_T = TypeVar("_T")
_to_list: Callable[[npt.NDArray[np.uint32]], list[int]] = np.ndarray.tolist
# Texts of more bytes or characters become ids in an array of the type asked for without a copy.
_LONG = 1 << 22

_NO_IDS = np.empty(0, np.uint32)
_NOTHING = 0xFFFFFFFF  # as `encoder.NOTHING`, which is not imported before there is something to encode

# Tokenizers that came to this process in pickles, the one that was used last at the end.
_RESTORED: dict[tuple[type[Tokenizer], str], Tokenizer] = {}
_MOST_RESTORED = 8
_RESTORING = threading.Lock()


class Tokenizer:
    """A byte-level BPE tokenizer. Immutable, safe to use from several threads, pickled as its vocabulary.

    Text is str or bytes. Bytes need not be valid UTF-8; in a str, lone surrogates become U+FFFD.

    In a Dask graph of your own, make it a key of the graph: it then travels to every worker once. Given to tasks as
    an ordinary argument it travels with each of them, half a megabyte for GPT-2's vocabulary; a worker makes but
    one tokenizer of what comes, either way.

        shared = dask.delayed(tokenizer, pure=True)  # or client.scatter(tokenizer, broadcast=True)
        bag.map_partitions(lambda texts, tokenizer: tokenizer.encode_batch(texts), shared)

    Parameters
    ----------
    vocab : mapping of id to bytes, or Vocabulary
        A `Vocabulary` comes with everything; the other arguments are then left out.
    merges : sequence of pairs of bytes
        In rank order.
    special_tokens : sequence of str
        Those that `vocab` does not hold get the next ids. Where they overlap in a text, the leftmost and
        then the longest wins.
    pattern : str or None
        How text is split before merging: a name ("gpt2"), a regular expression, or None for not at all.
    ties : str
        The tie rule of the training, for the record.

    Raises
    ------
    VocabularyError, ParameterError, PatternError
        As `Vocabulary.from_tokens` says; the pattern is unknown or invalid.

    Examples
    --------
    >>> vocab = {i: bytes([i]) for i in range(256)} | {256: b"he"}
    >>> tokenizer = Tokenizer(vocab, [(b"h", b"e")], ["<|endoftext|>"])
    >>> tokenizer.encode("hey<|endoftext|>")
    [256, 121, 257]
    >>> tokenizer.decode([256, 121])
    'hey'
    """

    # What its training read, learned and spent, of a tokenizer that `train` made in this process.
    training: TrainingReport | None = None

    def __init__(
        self,
        vocab: Mapping[int, bytes] | Vocabulary,
        merges: Sequence[tuple[bytes, bytes]] | None = None,
        special_tokens: Sequence[str] | None = None,
        *,
        pattern: str | None = "gpt2",
        ties: str = "bytes",
    ) -> None:
        if isinstance(vocab, Vocabulary):
            if (merges, special_tokens, pattern, ties) != (None, None, "gpt2", "bytes"):
                raise ParameterError("a Vocabulary comes with everything; leave the other arguments out")
            self._vocabulary = vocab
        elif merges is None:
            raise ParameterError("merges are missing; they are needed beside a mapping of ids to bytes")
        else:
            self._vocabulary = Vocabulary.from_tokens(vocab, merges, special_tokens or (), pattern=pattern, ties=ties)
        get_pattern(self._vocabulary.pattern)  # refuse one that is not known here and not at the first text
        specials, rules = self._vocabulary.special_tokens, self._vocabulary.added_rules
        self._specials = Specials(specials, rules)
        self._choices = Choices(specials, rules)

    @classmethod
    def from_files(
        cls,
        vocab_path: str | PathLike[str],
        merges_path: str | PathLike[str],
        special_tokens: Sequence[str] | None = None,
        *,
        pattern: str | None = "gpt2",
        ties: str = "bytes",
    ) -> Tokenizer:
        """Read the course's pair of JSON files: ``{"0": [72], ...}`` and ``[[[104], [101]], ...]``.

        Raises VocabularyError, naming the file, if one is missing or damaged.
        """
        return cls(read_pair(vocab_path, merges_path, special_tokens or (), pattern=pattern, ties=ties))

    @classmethod
    def from_gpt2(
        cls,
        vocab_path: str | PathLike[str],
        merges_path: str | PathLike[str],
        special_tokens: Sequence[str] = ("<|endoftext|>",),
    ) -> Tokenizer:
        """Read GPT-2's ``vocab.json`` and ``merges.txt``, or files written like them.

        Raises VocabularyError, naming the file, if one is missing or damaged.
        """
        return cls(read_gpt2(vocab_path, merges_path, special_tokens))

    @classmethod
    def from_huggingface(cls, source: Any) -> Tokenizer:
        """Read a ``tokenizer.json`` of byte-level BPE: the path of it or of its folder, its text or content, a
        `tokenizers.Tokenizer`, or a fast tokenizer of `transformers`. Neither package is needed.

        Raises VocabularyError when it is damaged, or naming the part of it that would give other ids here.
        """
        return cls(read_huggingface(source))

    @classmethod
    def from_tiktoken(
        cls,
        ranks: str | PathLike[str] | Mapping[bytes, int] | Any,
        pattern: PatternSpec = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Read tiktoken's ranks: a file of them, a mapping of bytes to rank, or a `tiktoken.Encoding`.

        A file or mapping holds neither `pattern` ("none": text is not split) nor `special_tokens`; files that
        `to_tiktoken` wrote have both beside them, and those of OpenAI are known by their checksum.

        Raises VocabularyError when the file is damaged or the pattern may mean something else here;
        ParameterError when no pattern is given or known.
        """
        return cls(read_tiktoken(ranks, pattern, special_tokens))

    @classmethod
    def from_minbpe(cls, path: str | PathLike[str]) -> Tokenizer:
        """Read a ``.model`` file of minbpe. Raises VocabularyError, naming the place, if it is damaged."""
        return cls(read_minbpe(path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tokenizer:
        """Read a vocabulary file that `save` wrote. Raises VocabularyError for any other, naming it."""
        return cls(Vocabulary.load(path))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the vocabulary file: one JSON file with everything, checksummed, whole or not at all."""
        self._vocabulary.save(path)

    def to_files(self, vocab_path: str | PathLike[str], merges_path: str | PathLike[str]) -> None:
        """Write the course's pair of JSON files, which hold neither pattern nor the names of special tokens.

        Raises VocabularyError, before it writes, if `from_files` would not give the same ids back.
        """
        write_pair(self._vocabulary, vocab_path, merges_path)

    def to_huggingface(self, path: str | PathLike[str]) -> None:
        """Write a ``tokenizer.json`` that `tokenizers` loads: a file if `path` ends with ".json", else into the
        folder `path`, with the ``tokenizer_config.json`` that `transformers` needs.

        Raises VocabularyError, before it writes, if the ids would be others.
        """
        write_huggingface(self._vocabulary, path)

    def to_tiktoken(self, path: str | PathLike[str]) -> str:
        """Write tiktoken's ranks, and ``<path>.json`` with pattern and special tokens beside them.

        Returns two lines of Python that load them. Raises VocabularyError, before it writes, if the ids would be
        others, as where the order of the merges is not that of ids.
        """
        return write_tiktoken(self._vocabulary, path)

    def to_gpt2(self, vocab_path: str | PathLike[str], merges_path: str | PathLike[str]) -> None:
        """Write ``vocab.json`` and ``merges.txt`` as GPT-2 has them. Raises VocabularyError, before it writes, if
        readers, who split as GPT-2 does, would get other ids.
        """
        write_gpt2(self._vocabulary, vocab_path, merges_path)

    def to_minbpe(self, path: str | PathLike[str]) -> None:
        """Write a ``.model`` file of minbpe. Raises VocabularyError, before it writes, if the ids would be others,
        as where bytes are not ids 0 to 255.
        """
        write_minbpe(self._vocabulary, path)

    def shrink(self, vocab_size: int) -> Tokenizer:
        """The tokenizer of the first `vocab_size` ids: what its last merges made is cut off.

        Ids stay, but for those of special tokens at the end, which then follow the last merge that is left. Raises
        ParameterError when there are fewer ids, or when bytes and special tokens alone are more.
        """
        return type(self)(shrink(self._vocabulary, vocab_size))

    @property
    def vocabulary(self) -> Vocabulary:
        """The bytes of every id, the merges, the special tokens."""
        return self._vocabulary

    @property
    def vocab_size(self) -> int:
        """Number of ids, special tokens included."""
        return len(self._vocabulary)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Text and id of every special token, in the order given."""
        return dict(self._vocabulary.special_tokens)

    @property
    def pattern(self) -> PatternSpec:
        """How text is split: a name, a regular expression, None for not at all, or a sequence of splits."""
        return self._vocabulary.pattern

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __repr__(self) -> str:
        names = list(self._vocabulary.special_tokens)
        return f"Tokenizer(vocab_size={len(self)}, special_tokens={names}, pattern={self.pattern!r})"

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_vocabulary

        return of_vocabulary(self._vocabulary)

    def __eq__(self, other: object) -> bool:
        return self._vocabulary == other._vocabulary if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._vocabulary)

    def __dask_tokenize__(self) -> tuple[str, str]:
        return (type(self).__name__, self._vocabulary.fingerprint())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._vocabulary.fingerprint(), self._packed)

    @cached_property
    def _packed(self) -> bytes:
        """The vocabulary in few bytes, which a process that has it need not look into."""
        return zlib.compress(pickle.dumps(self._vocabulary, pickle.HIGHEST_PROTOCOL), 1)

    @cached_property
    def encoder(self) -> Encoder:
        """What turns segments of text into ids; made when it is first needed."""
        # Imported here: a training need not wait until the encoder's kernels are compiled.
        from dask_bpe.encoder import Encoder

        return Encoder.of(self._vocabulary)

    @cached_property
    def _table(self) -> TokenTable:
        return TokenTable(self._vocabulary.tokens)

    def encode(
        self,
        text: str | bytes,
        *,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """The ids of `text`; special tokens in it become their ids.

        Parameters
        ----------
        text : str or bytes
        allowed_special, disallowed_special : "all", or a set of special tokens
            If one of them is given, both have the meaning and the default of tiktoken: a special token in the
            text becomes its id if it is allowed (by default none is), is an error if it is disallowed (by default
            all that are not allowed), and is text if it is neither. Give ``disallowed_special=()`` to encode text
            from outside, in which nothing but what you allow may be more than text.
        add_special_tokens : bool
            Whether the ids of the vocabulary's `template`, such as that of a beginning of text, go around them.

        Raises
        ------
        ParameterError
            There is a disallowed special token; the message names it and its place.
        """
        return self._encoded(text, allowed_special, disallowed_special, add_special_tokens, _to_list)

    def encode_ordinary(self, text: str | bytes) -> list[int]:
        """The ids of `text`, in which nothing is a special token."""
        data = to_bytes(text)
        return self.encoder.encode_text(data, _to_list) if data else []

    def encode_to_numpy(
        self,
        text: str | bytes,
        *,
        dtype: npt.DTypeLike | None = None,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> npt.NDArray[Any]:
        """As `encode`, in an array of `dtype`: by default uint16 if every id fits, else uint32.

        Raises ParameterError if an id of this vocabulary might not fit `dtype`.
        """
        wanted = self._vocabulary.checked_dtype(dtype)
        if len(text) > _LONG and not add_special_tokens:
            data = to_bytes(text)
            specials = self._chosen((data,), allowed_special, disallowed_special)
            starts, ends, after, _ = _segments(data, [0], [len(data)], specials)
            return self.encoder.encode_array(np.frombuffer(data, np.uint8), starts, ends, after, wanted)

        def take(ids: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
            return ids.astype(wanted)  # a copy even when the type is right

        return self._encoded(text, allowed_special, disallowed_special, add_special_tokens, take)

    def encode_with_offsets(
        self, text: str | bytes, *, allowed_special: Texts = None, disallowed_special: Texts = None
    ) -> Encoding:
        """The ids of `text` as `encode` gives them, and where each token stands: in bytes and in characters.

        A special token that takes the white space around it has that in its place too. Text that the pattern
        removes lies between the places of tokens.

        Raises
        ------
        ParameterError
            There is a disallowed special token; or the vocabulary's normalizer changes this text, whose tokens
            then have no place in it.
        """
        data = to_bytes(text)
        specials = self._chosen([data], allowed_special, disallowed_special)
        array = np.frombuffer(data, np.uint8)
        starts, ends, special = specials.find(array, 0, len(data)) if specials.may_be_in(data) else ([], [], [])
        segments = np.array(([0, *ends], [*starts, len(data)]), np.int64)
        self._refuse_normalized(data, segments)
        ids, bounds = self.encoder.encode_segments(
            array, segments[0], segments[1], np.array([*special, _NOTHING], np.uint32)
        )
        others = np.array((starts, ends), np.int64)
        lengths = self._table.lengths[ids].astype(np.int64)
        lengths[bounds[1:-1] - 1] = others[1] - others[0]
        offsets = tile(lengths)
        if lengths.sum() < len(data):
            scanner = Scanner(get_pattern(self._vocabulary.pattern), keep_all=True)
            offsets = into_text(offsets, kept_pieces(scanner, array, segments, others))
        return Encoding(ids.tolist(), offsets, to_characters(text, offsets))

    def encode_batch(
        self,
        texts: Iterable[str | bytes],
        *,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """The `encode` of every text, quicker than one by one."""
        results: list[list[int]] = []
        for ids, bounds in self._encode_groups(texts, allowed_special, disallowed_special, add_special_tokens):
            flat, at = ids.tolist(), bounds.tolist()
            results += [flat[start:end] for start, end in pairwise(at)]
        return results

    def encode_batch_to_numpy(
        self,
        texts: Iterable[str | bytes],
        *,
        dtype: npt.DTypeLike | None = None,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The `encode` of every text in two arrays: the ids of all, one after the other, and where each text begins.

        Returns
        -------
        ids : uint16[m] if every id fits, else uint32[m]; or of `dtype`.
        offsets : int64[n + 1]
            Those of text k are ``ids[offsets[k]:offsets[k + 1]]``.
        """
        wanted = self._vocabulary.checked_dtype(dtype)
        parts, counts = [np.empty(0, wanted)], [np.zeros(1, np.int64)]
        for ids, bounds in self._encode_groups(texts, allowed_special, disallowed_special, add_special_tokens):
            parts.append(ids.astype(wanted))
            counts.append(np.diff(bounds))
        return np.concatenate(parts), np.cumsum(np.concatenate(counts))

    def encode_iterable(self, chunks: Iterable[str | bytes]) -> Iterator[int]:
        """The ids of the chunks joined, be they cut inside a word, a special token or a character.

        Lazy: ids come out while the chunks go in, and memory holds no more than a block of text and what
        the pattern forbids to cut. With a normalizer that is all text between two special tokens, and all there
        is where the special tokens look at the text around them. An open file will do as `chunks`.
        """
        pattern = get_pattern(self._vocabulary.cut_pattern)
        return chain.from_iterable(map(self.encode, safe_blocks(chunks, pattern, self._specials.tokens)))

    def count_tokens(
        self,
        text: str | bytes,
        *,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> int:
        """How many ids `encode` gives."""
        return self._encoded(text, allowed_special, disallowed_special, add_special_tokens, len)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of an id. Raises ParameterError if no token has it."""
        return self._table.decode([token])

    def id_of(self, token: str | bytes) -> int:
        """The id of a token: of the special token of this text, else the lowest one that spells it.

        Raises ParameterError if there is none: what several tokens spell, `encode` tells.
        """
        special = self._vocabulary.special_tokens.get(token) if isinstance(token, str) else None
        index = self._id_of_bytes.get(to_bytes(token)) if special is None else special
        if index is None:
            raise ParameterError(f"{token!r} is not a token: encode() gives the ids of the tokens that spell a text")
        return index

    def decode(self, ids: Iterable[int] | npt.NDArray[np.integer[Any]], *, skip_special_tokens: bool = False) -> str:
        """The text of the ids; bytes that are not UTF-8, as where a character was cut, become U+FFFD.

        With `skip_special_tokens` special tokens are left out, but not those added ones that are "ordinary".

        Raises ParameterError naming the first unknown id and its position.
        """
        return self._table_for(skip_special_tokens).decode(ids).decode("utf-8", "replace")

    def decode_bytes(
        self, ids: Iterable[int] | npt.NDArray[np.integer[Any]], *, skip_special_tokens: bool = False
    ) -> bytes:
        """The bytes of the ids: exactly what was encoded. Raises ParameterError as `decode` does."""
        return self._table_for(skip_special_tokens).decode(ids)

    def decode_batch(
        self,
        batch: Iterable[Iterable[int] | npt.NDArray[np.integer[Any]]]
        | tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]],
        *,
        skip_special_tokens: bool = False,
    ) -> list[str]:
        """The `decode` of every text.

        Parameters
        ----------
        batch : iterable of ids, or (ids, offsets)
            What `encode_batch` gives, or the pair of arrays that `encode_batch_to_numpy` gives. A tuple of two
            arrays is such a pair; arrays of ids go into a list.

        Raises ParameterError as `decode` does, and for offsets that are not ascending from 0 to the number of ids.
        """
        if isinstance(batch, tuple) and len(batch) == 2 and all(isinstance(part, np.ndarray) for part in batch):
            ids, offsets = batch
            return self._decode_ragged(np.asarray(ids), np.asarray(offsets), skip_special_tokens)
        if not isinstance(batch, Iterable):
            raise ParameterError(f"batch is {batch!r}: the ids of several texts were expected")
        rows = list(batch)
        with suppress(ParameterError):  # which is said again below, with the number of the text
            if flat := flattened(rows):
                return self._table_for(skip_special_tokens).decode_texts(*flat)
        texts = []
        for number, ids in enumerate(rows):
            try:
                texts.append(self.decode(ids, skip_special_tokens=skip_special_tokens))
            except ParameterError as error:
                raise ParameterError(f"text {number}: {error}") from None
        return texts

    def decoder(self) -> IncrementalDecoder:
        """A decoder for ids that arrive bit by bit, which holds back an unfinished character."""
        return IncrementalDecoder(self._table)

    @cached_property
    def _id_of_bytes(self) -> dict[bytes, int]:
        """The lowest id of bytes, that of a special token only if there is no other."""
        tokens, special = self._vocabulary.tokens, set(self._vocabulary.special_tokens.values())
        order = sorted(range(len(tokens)), key=lambda index: (index in special, index), reverse=True)
        return {tokens[index]: index for index in order if tokens[index]}

    def _table_for(self, skip_special_tokens: bool) -> TokenTable:
        return self._table_without_special if skip_special_tokens else self._table

    @cached_property
    def _table_without_special(self) -> TokenTable:
        """The table without the ids that `skip_special_tokens` leaves out."""
        rules = self._vocabulary.added_rules
        specials = self._vocabulary.special_tokens.items()
        skipped = {index for text, index in specials if "ordinary" not in rules.get(text, ())}
        return TokenTable(self._vocabulary.tokens, skipped) if skipped else self._table

    def _decode_ragged(self, ids: npt.NDArray[Any], offsets: npt.NDArray[Any], skip: bool) -> list[str]:
        if (
            ids.ndim != 1
            or offsets.ndim != 1
            or offsets.dtype.kind not in "iu"
            or not len(offsets)
            or (offsets[0], offsets[-1]) != (0, len(ids))
            or (offsets[1:] < offsets[:-1]).any()
        ):
            raise ParameterError(f"offsets do not go from 0 to {ids.size}, the number of ids, without going back")
        if ids.size and ids.dtype.kind not in "iu":
            raise ParameterError(f"token ids must be integers in one dimension, not {ids.dtype} {ids.shape}")
        return self._table_for(skip).decode_texts(ids, offsets.astype(np.int64))

    def _chosen(self, texts: Sequence[bytes], allowed: Texts, disallowed: Texts) -> Specials:
        """The special tokens that become ids. Raises ParameterError where a text holds a disallowed one."""
        if allowed is None and disallowed is None:
            return self._specials
        choice = self._choices.choice(allowed, disallowed)
        for data in texts:
            choice.refuse(data)
        return choice.allowed

    def _encoded(
        self,
        text: str | bytes,
        allowed: Texts,
        disallowed: Texts,
        framed: bool,
        take: Callable[[npt.NDArray[np.uint32]], _T],
    ) -> _T:
        """What `take`, which must copy, makes of the ids of a text."""
        data = to_bytes(text)
        plain = allowed is None and disallowed is None
        specials = self._specials if plain else self._chosen((data,), allowed, disallowed)
        if framed or specials.may_be_in(data):
            ids, bounds = self._encode_texts(data, [0], [len(data)], specials)
            return take(self._framed(ids, bounds)[0] if framed else ids)
        return self.encoder.encode_text(data, take) if data else take(_NO_IDS)

    def _framed(
        self, ids: npt.NDArray[np.uint32], bounds: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """The ids with those of the template around each text."""
        before, after = self._vocabulary.template
        n = len(bounds) - 1
        places = np.concatenate((np.tile(bounds[:-1], (len(before), 1)), np.tile(bounds[1:], (len(after), 1))))
        ids = np.insert(ids, places.T.ravel(), np.tile(np.array(before + after, np.uint32), n))
        return ids, bounds + np.arange(n + 1) * (len(before) + len(after))

    def _encode_groups(
        self, texts: Iterable[str | bytes], allowed: Texts, disallowed: Texts, framed: bool
    ) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]]:
        """Ids and bounds of the texts, some megabytes at a time."""
        for first, group in _groups(texts):
            specials = self._specials
            if allowed is not None or disallowed is not None:
                choice = self._choices.choice(allowed, disallowed)
                for number, data in enumerate(group, first):
                    choice.refuse(data, f"text {number}")
                specials = choice.allowed
            ends = np.cumsum([len(data) for data in group], dtype=np.int64).tolist()
            ids, bounds = self._encode_texts(b"".join(group), [0, *ends[:-1]], ends, specials)
            yield self._framed(ids, bounds) if framed else (ids, bounds)

    def _encode_texts(
        self, data: bytes, starts: list[int], ends: list[int], specials: Specials
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Ids of the texts data[starts[i]:ends[i]], and int64[n + 1] where those of each text begin."""
        segment_starts, segment_ends, after, segments = _segments(data, starts, ends, specials)
        text = np.frombuffer(data, np.uint8)
        ids, offsets = self.encoder.encode_segments(text, segment_starts, segment_ends, after)
        return ids, offsets[segments]

    def _refuse_normalized(self, data: bytes, segments: npt.NDArray[np.int64]) -> None:
        """Raise ParameterError if the normalizer changes a segment of a text."""
        if not self._vocabulary.normalizer:
            return
        normalizer = Normalizer(self._vocabulary.normalizer)
        for start, end in segments.T.tolist():
            if normalizer(data[start:end]) != data[start:end]:
                raise ParameterError(
                    f"the normalizer of this vocabulary changes the text in bytes {start} to {end}, so that its tokens"
                    " have no place in it: encode() gives the ids without places"
                )


def _restored(kind: type[Tokenizer], fingerprint: str, packed: bytes) -> Tokenizer:
    """The tokenizer of a pickle; the one that was made of it before, if it is among the last ones."""
    with _RESTORING:
        tokenizer = _RESTORED.pop((kind, fingerprint), None)
        if tokenizer is None:
            tokenizer = kind(pickle.loads(zlib.decompress(packed)))
            if len(_RESTORED) >= _MOST_RESTORED:
                del _RESTORED[next(iter(_RESTORED))]
        _RESTORED[kind, fingerprint] = tokenizer
    return tokenizer


def _segments(
    data: bytes, starts: list[int], ends: list[int], specials: Specials
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The texts data[starts[i]:ends[i]] cut at special tokens.

    Each special token ends a segment and goes after its ids; the end of a text ends one too. Starts and ends of the
    segments, what goes after each, and int64[n + 1], the number of segments before each text.
    """
    text = np.frombuffer(data, np.uint8)
    if not specials.may_be_in(data):
        after = np.full(len(starts), _NOTHING, np.uint32)
        return np.array(starts, np.int64), np.array(ends, np.int64), after, np.arange(len(starts) + 1)
    segment_starts, segment_ends, follow, segments = [], [], [], [0]
    for start, end in zip(starts, ends, strict=True):
        segment_starts.append(start)
        if specials.may_be_in(data, start, end):
            found_starts, found_ends, found = specials.find(text, start, end)
            segment_starts += found_ends
            segment_ends += found_starts
            follow += found
        segment_ends.append(end)
        follow.append(_NOTHING)
        segments.append(len(follow))
    return (
        np.array(segment_starts, np.int64),
        np.array(segment_ends, np.int64),
        np.array(follow, np.uint32),
        np.array(segments, np.int64),
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
