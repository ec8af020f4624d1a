"""`Tokenizer`: text to token ids and back, in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from dask_bpe.offsets import Encoding
from dask_bpe.pretokenize import PatternSpec, get_pattern
from dask_bpe.pretokenize.allowed import Texts
from dask_bpe.shrinking import shrink
from dask_bpe.streaming import safe_blocks, to_bytes
from dask_bpe.text_encoder import TextEncoder
from dask_bpe.unpickling import pack, restore
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.ids import lowest_ids

if TYPE_CHECKING:
    from dask_bpe.cluster.train import TrainingReport
    from dask_bpe.encoder import Encoder

_to_list: Callable[[npt.NDArray[np.uint32]], list[int]] = np.ndarray.tolist


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
        self._texts = TextEncoder(self._vocabulary)

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
        return restore, (type(self), self._vocabulary.fingerprint(), self._packed)

    @cached_property
    def _packed(self) -> bytes:
        return pack(self._vocabulary)

    @cached_property
    def encoder(self) -> Encoder:
        """What turns segments of text into ids; made when it is first needed."""
        return self._texts.encoder

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
        InputError
            The vocabulary's pattern leaves a part of the text unmatched, which then has no ids.
        TypeError
            `text` is neither str nor bytes.
        """
        return self._texts.encode(text, allowed_special, disallowed_special, add_special_tokens, _to_list)

    def encode_ordinary(self, text: str | bytes) -> list[int]:
        """The ids of `text`, in which nothing is a special token. Raises InputError and TypeError as `encode`."""
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
        """As `encode`, in an array of `dtype`, [n]: by default uint16 if every id fits, else uint32.

        Raises what `encode` does, and ParameterError if an id of this vocabulary might not fit `dtype`.
        """
        wanted = self._vocabulary.checked_dtype(dtype)
        return self._texts.encode_array(text, allowed_special, disallowed_special, add_special_tokens, wanted)

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
        return self._texts.encode_with_offsets(text, allowed_special, disallowed_special, self._table.lengths)

    def encode_batch(
        self,
        texts: Iterable[str | bytes],
        *,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """The `encode` of every text, quicker than one by one. Raises what `encode` does."""
        results: list[list[int]] = []
        for ids, bounds in self._texts.encode_batch(texts, allowed_special, disallowed_special, add_special_tokens):
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

        Raises what `encode_to_numpy` does.
        """
        wanted = self._vocabulary.checked_dtype(dtype)
        parts, counts = [np.empty(0, wanted)], [np.zeros(1, np.int64)]
        for ids, bounds in self._texts.encode_batch(texts, allowed_special, disallowed_special, add_special_tokens):
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
        return chain.from_iterable(map(self.encode, safe_blocks(chunks, pattern, self._texts.specials.tokens)))

    def count_tokens(
        self,
        text: str | bytes,
        *,
        allowed_special: Texts = None,
        disallowed_special: Texts = None,
        add_special_tokens: bool = False,
    ) -> int:
        """How many ids `encode` gives."""
        return self._texts.encode(text, allowed_special, disallowed_special, add_special_tokens, len)

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
        return self._table_for(skip_special_tokens).decode_batch(batch)

    def decoder(self) -> IncrementalDecoder:
        """A decoder for ids that arrive bit by bit, which holds back an unfinished character."""
        return IncrementalDecoder(self._table)

    @cached_property
    def _id_of_bytes(self) -> dict[bytes, int]:
        """The lowest id of bytes, that of a special token only if there is no other."""
        lowest = lowest_ids(self._vocabulary.tokens, self._vocabulary.special_tokens.values())
        lowest.pop(b"", None)  # of ids that no token has
        return lowest

    def _table_for(self, skip_special_tokens: bool) -> TokenTable:
        return self._table_without_special if skip_special_tokens else self._table

    @cached_property
    def _table_without_special(self) -> TokenTable:
        """The table without the ids that `skip_special_tokens` leaves out."""
        rules = self._vocabulary.added_rules
        specials = self._vocabulary.special_tokens.items()
        skipped = {index for text, index in specials if "ordinary" not in rules.get(text, ())}
        return TokenTable(self._vocabulary.tokens, skipped) if skipped else self._table
