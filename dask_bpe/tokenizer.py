"""`Tokenizer`: text to token ids and back, in one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dask_bpe.decoding import IncrementalDecoder, TokenTable
from dask_bpe.errors import ParameterError
from dask_bpe.interchange.course_json import read_pair, write_pair
from dask_bpe.interchange.gpt2 import read_gpt2, write_gpt2
from dask_bpe.interchange.huggingface_read import read_huggingface
from dask_bpe.interchange.huggingface_write import write_huggingface
from dask_bpe.interchange.minbpe_model import read_minbpe, write_minbpe
from dask_bpe.interchange.tiktoken_ranks import read_tiktoken, write_tiktoken
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.streaming import safe_blocks, to_bytes
from dask_bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dask_bpe.cluster.train import TrainingReport
    from dask_bpe.encoder import Encoder

# Texts of a batch meet the kernels together, up to about this many bytes at a time.
BATCH_BYTES = 1 << 24

_START = np.zeros(1, np.int64)
_NO_IDS = np.empty(0, np.uint32)


class Tokenizer:
    """A byte-level BPE tokenizer. Immutable, safe to use from several threads, pickled as its vocabulary.

    Text is str or bytes. Bytes need not be valid UTF-8; in a str, lone surrogates become U+FFFD.

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
        specials = self._vocabulary.special_tokens
        self._special_tokens = SpecialTokens(tuple(specials), self._vocabulary.added_rules)
        self._special_ids = np.array(list(specials.values()), np.uint32)
        # Text that does not hold what all special tokens begin with needs no search for them.
        self._special_mark = _common_beginning(self._special_tokens.encoded)

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

    def __eq__(self, other: object) -> bool:
        return self._vocabulary == other._vocabulary if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._vocabulary)

    def __dask_tokenize__(self) -> tuple[str, str]:
        return (type(self).__name__, self._vocabulary.fingerprint())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._vocabulary,)

    @cached_property
    def encoder(self) -> Encoder:
        """What turns segments of text into ids; made when it is first needed."""
        # Imported here: a training need not wait until the encoder's kernels are compiled.
        from dask_bpe.encoder import Encoder

        return Encoder.of(self._vocabulary)

    @cached_property
    def _table(self) -> TokenTable:
        return TokenTable(self._vocabulary.tokens)

    def encode(self, text: str | bytes) -> list[int]:
        """The ids of `text`; special tokens in it become their ids."""
        ids: list[int] = self._encode(to_bytes(text)).tolist()
        return ids

    def encode_ordinary(self, text: str | bytes) -> list[int]:
        """The ids of `text`, in which nothing is a special token."""
        ids: list[int] = self._encode_ordinary(to_bytes(text)).tolist()
        return ids

    def encode_to_numpy(self, text: str | bytes, *, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """As `encode`, in an array of `dtype`: by default uint16 if every id fits, else uint32.

        Raises ParameterError if an id of this vocabulary might not fit `dtype`.
        """
        wanted = self._vocabulary.dtype if dtype is None else np.dtype(dtype)
        if wanted.kind not in "iu" or np.iinfo(wanted).max < len(self) - 1:
            raise ParameterError(f"{wanted} does not hold all ids up to {len(self) - 1}; use uint32")
        # A copy even when the type is right: the array at hand has room for an id per byte of text.
        return self._encode(to_bytes(text)).astype(wanted)

    def encode_batch(self, texts: Iterable[str | bytes]) -> list[list[int]]:
        """The `encode` of every text, quicker than one by one."""
        results: list[list[int]] = []
        group: list[bytes] = []
        size = 0
        for text in texts:
            group.append(to_bytes(text))
            size += len(group[-1])
            if size >= BATCH_BYTES:
                results += self._encode_group(group)
                group, size = [], 0
        return results + self._encode_group(group) if group else results

    def encode_iterable(self, chunks: Iterable[str | bytes]) -> Iterator[int]:
        """The ids of the chunks joined, be they cut inside a word, a special token or a character.

        Lazy: ids come out while the chunks go in, and memory holds no more than a block of text and what
        the pattern forbids to cut. With a normalizer that is all text between two special tokens, and all there
        is where the special tokens look at the text around them. An open file will do as `chunks`.
        """
        pattern = get_pattern(self._vocabulary.cut_pattern)
        return chain.from_iterable(map(self.encode, safe_blocks(chunks, pattern, self._special_tokens)))

    def count_tokens(self, text: str | bytes) -> int:
        """How many ids `encode` gives."""
        return len(self._encode(to_bytes(text)))

    def decode(self, ids: Iterable[int] | npt.NDArray[np.integer[Any]]) -> str:
        """The text of the ids; bytes that are not UTF-8, as where a character was cut, become U+FFFD.

        Raises ParameterError naming the first unknown id and its position.
        """
        return self._table.decode(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int] | npt.NDArray[np.integer[Any]]) -> bytes:
        """The bytes of the ids: exactly what was encoded. Raises ParameterError as `decode` does."""
        return self._table.decode(ids)

    def decoder(self) -> IncrementalDecoder:
        """A decoder for ids that arrive bit by bit, which holds back an unfinished character."""
        return IncrementalDecoder(self._table)

    def _encode_ordinary(self, data: bytes) -> npt.NDArray[np.uint32]:
        if not data:
            return _NO_IDS
        text = np.frombuffer(data, np.uint8)
        return self.encoder.encode_segments(text, _START, np.array([len(data)], np.int64))[0]

    def _encode(self, data: bytes) -> npt.NDArray[np.uint32]:
        if self._may_hold_special(data):
            return self._encode_texts(data, [0], [len(data)])[0]
        return self._encode_ordinary(data)

    def _may_hold_special(self, data: bytes) -> bool:
        return len(self._special_ids) > 0 and self._special_mark in data

    def _encode_group(self, group: list[bytes]) -> list[list[int]]:
        ends = np.cumsum([len(data) for data in group], dtype=np.int64).tolist()
        ids, bounds = self._encode_texts(b"".join(group), [0, *ends[:-1]], ends)
        flat, at = ids.tolist(), bounds.tolist()
        return [flat[start:end] for start, end in pairwise(at)]

    def _encode_texts(
        self, data: bytes, starts: list[int], ends: list[int]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Ids of the texts data[starts[i]:ends[i]], and int64[n + 1] where those of each text begin."""
        text = np.frombuffer(data, np.uint8)
        if not self._may_hold_special(data):
            return self.encoder.encode_segments(text, np.array(starts, np.int64), np.array(ends, np.int64))
        # Each special token ends a segment and goes after its ids; the end of a text ends one too.
        segment_starts, segment_ends, specials, segments = [], [], [], [0]
        for start, end in zip(starts, ends, strict=True):
            if data.find(self._special_mark, start, end) >= 0:
                found_starts, found_ends, found = self._special_tokens.find(text, start, end)
                segment_starts += [start, *found_ends.tolist()]
                segment_ends += [*found_starts.tolist(), end]
                specials += [*found.tolist(), -1]
            else:
                segment_starts.append(start)
                segment_ends.append(end)
                specials.append(-1)
            segments.append(len(specials))
        ids, offsets = self.encoder.encode_segments(
            text, np.array(segment_starts, np.int64), np.array(segment_ends, np.int64)
        )
        special = np.array(specials, np.int64)
        inserted = special >= 0
        ids = np.insert(ids, offsets[1:][inserted], self._special_ids[special[inserted]])
        offsets[1:] += np.cumsum(inserted)
        return ids, offsets[segments]


def _common_beginning(strings: Sequence[bytes]) -> bytes:
    # What the first and the last in sorted order have in common, all have.
    first, last = min(strings, default=b""), max(strings, default=b"")
    length = next((at for at, byte in enumerate(first) if byte != last[at]), len(first))
    return first[:length]
