"""Distinct pre-tokens and how often each occurs: all that training needs to know of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from dask_bpe.count_table import CountTable
from dask_bpe.errors import ParameterError, VocabularyError, whole_number
from dask_bpe.io import columns
from dask_bpe.kernels import deal as dealing
from dask_bpe.kernels import sort
from dask_bpe.pretokenize import PatternSpec, SpecialTokens, get_pattern
from dask_bpe.pretokenize.patterns import pattern_from_json, pattern_to_json
from dask_bpe.pruning import Dropped
from dask_bpe.ragged import Ragged

Int64s = npt.NDArray[np.int64]

FORMAT = "dask_bpe.counts"
VERSION = 1


@dataclass(frozen=True, eq=False)
class PretokenCounts:
    """The distinct pre-tokens of a corpus, with their counts. Two of them add up: ``a + b``.

    Attributes
    ----------
    strings : the n distinct pre-tokens, ascending as byte strings; ``strings[k]`` is one, ``strings.to_list()`` all.
    counts : int64[n], how often each occurs.
    first : int64[n], where each occurs first in the corpus. Only the order matters: it breaks ties under
        the rule "first".
    pattern : what cut the text, as `train` takes it.
    special_tokens : the texts that were cut out, in the order given.
    n_bytes, n_documents, n_invalid : bytes and documents of the text, and the invalid UTF-8 sequences that
        were replaced or dropped in it.
    n_unmatched : bytes of the text that the pattern leaves unmatched: they are in no pre-token.
    n_quarantined : documents that could not be read: they are not in the counts.
    dropped : what is not among the strings because it is rare; None when nothing was left out. Not compared.
    """

    strings: Ragged
    counts: Int64s
    first: Int64s
    pattern: PatternSpec = "gpt2"
    special_tokens: tuple[str, ...] = ()
    n_bytes: int = 0
    n_documents: int = 0
    n_invalid: int = 0
    n_unmatched: int = 0
    n_quarantined: int = 0
    dropped: Dropped | None = None

    def __len__(self) -> int:
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        mine, theirs = self.ranked(), other.ranked()
        return (
            self._rules() == other._rules()
            and self.totals() == other.totals()
            and np.array_equal(mine.counts, theirs.counts)
            and np.array_equal(mine.first, theirs.first)
            and np.array_equal(mine.strings.offsets, theirs.strings.offsets)
            and np.array_equal(mine.strings.values, theirs.strings.values)
        )

    def __repr__(self) -> str:
        return f"PretokenCounts({len(self):,} distinct, {self.total:,} in all, pattern={self.pattern!r})"

    def _repr_html_(self) -> str:
        from dask_bpe.pages.outputs import of_counts

        return of_counts(self)

    @property
    def total(self) -> int:
        """Pre-tokens of the corpus, repeats included."""
        return int(self.counts.sum())

    def _rules(self) -> tuple[Any, ...]:
        return get_pattern(self.pattern), self.special_tokens

    def totals(self) -> tuple[int, int, int, int, int]:
        """`n_bytes`, `n_documents`, `n_invalid`, `n_unmatched` and `n_quarantined`."""
        return self.n_bytes, self.n_documents, self.n_invalid, self.n_unmatched, self.n_quarantined

    @classmethod
    def from_table(cls, table: CountTable, **fields: Any) -> PretokenCounts:
        """The counts of a table; `fields` are those that it does not know."""
        return cls(*table.in_order(), **fields)

    @classmethod
    def from_mapping(
        cls,
        counts: Mapping[bytes, int] | Mapping[str, int],
        *,
        pattern: PatternSpec = "gpt2",
        special_tokens: Sequence[str] = (),
    ) -> PretokenCounts:
        """Counts that another program has made; the order of the mapping is that of first occurrence.

        Raises
        ------
        ParameterError
            When a count is not a positive integer, or a pre-token is empty.
        """
        strings = [key.encode() if isinstance(key, str) else bytes(key) for key in counts]
        for string, number in zip(strings, counts.values(), strict=True):
            if not string:
                raise ParameterError("a pre-token is empty: leave it out")
            whole_number(f"the count of {string!r}", number)
        table = CountTable()
        numbers = np.array([int(number) for number in counts.values()], np.int64)
        table.add_strings(Ragged.from_list(strings), numbers, np.arange(len(strings), dtype=np.int64))
        return cls.from_table(
            table,
            pattern=get_pattern(pattern).spec,
            special_tokens=SpecialTokens(special_tokens).tokens,
            n_bytes=int(sum(len(s) * int(n) for s, n in zip(strings, numbers, strict=True))),
        )

    def to_dict(self) -> dict[bytes, int]:
        """Pre-token -> count, in the order of the strings."""
        return dict(zip(self.strings.to_list(), self.counts.tolist(), strict=True))

    def to_parquet(self, path: str | PathLike[str]) -> tuple[int, str]:
        """Write the counts to one Parquet file, whole or not at all: columns pretoken, count, first.

        What cut the text, and the totals, stand in the metadata of the schema. Returns the size of the file in bytes,
        and its xxh3_128 as 32 hex digits. Raises OutputError when it cannot be written.
        """
        ranked = self.ranked()
        about = {
            "format": FORMAT,
            "version": VERSION,
            "pattern": pattern_to_json(self.pattern),
            "special_tokens": list(self.special_tokens),
            "totals": list(self.totals()),
        }
        if self.dropped is not None:
            about["dropped"] = self.dropped.to_json()
        return columns.write(path, {"pretoken": ranked.strings, "count": ranked.counts, "first": ranked.first}, about)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> PretokenCounts:
        """Read what `to_parquet` wrote.

        Raises
        ------
        VocabularyError
            When the file is missing, damaged or something else.
        """
        data, about = columns.read(path, FORMAT, VERSION, ("pretoken", "count", "first"))
        try:
            return cls._checked(data["pretoken"], data["count"], data["first"], about)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise VocabularyError(f"{path}: is damaged ({error}): count the text again") from error

    @classmethod
    def _checked(cls, strings: Ragged, counts: Int64s, first: Int64s, about: Mapping[str, Any]) -> PretokenCounts:
        if not isinstance(strings, Ragged) or isinstance(counts, Ragged) or isinstance(first, Ragged):
            raise ValueError("a column has the wrong type")
        if len(counts) and (int(counts.min()) < 1 or int(np.diff(strings.offsets).min()) < 1):
            raise ValueError("a count is below 1 or a pre-token is empty")
        if not np.array_equal(np.sort(first), np.arange(len(first))):
            raise ValueError("the order of first occurrence is not 0, 1, 2 ...")
        if sort.first_not_ascending(strings.values, strings.offsets) >= 0:
            raise ValueError("the pre-tokens are not in order")
        totals = [whole_number("a total", n, 0) for n in about["totals"]]
        specials = SpecialTokens(about["special_tokens"]).tokens
        pattern = pattern_from_json(about["pattern"])
        dropped = Dropped.from_json(about["dropped"]) if "dropped" in about else None
        n_bytes, n_documents, n_invalid, n_unmatched, n_quarantined = totals
        return cls(
            strings,
            counts,
            first,
            pattern,
            specials,
            n_bytes,
            n_documents,
            n_invalid,
            n_unmatched,
            n_quarantined,
            dropped,
        )

    def digest(self) -> str:
        """A checksum of all that a training depends on: strings, counts, order of first occurrence, and what cut the
        text. 32 hex digits, the same for the same counts wherever they come from."""
        digest = xxhash.xxh3_128(repr((pattern_to_json(self.pattern), self.special_tokens)).encode())
        for array in (self.strings.values, self.strings.offsets, self.counts, self.ranked().first):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def ranked(self) -> PretokenCounts:
        """The same counts with `first` numbered 0, 1, 2 ...: what depends on no position in any file."""
        if len(self) and int(self.first.min()) == 0 and int(self.first.max()) == len(self) - 1:
            return self  # no two occur first at the same place
        first = np.empty(len(self), np.int64)
        first[np.argsort(self.first)] = np.arange(len(self))
        return self._replace(strings=self.strings, counts=self.counts, first=first)

    def _replace(self, *, strings: Ragged, counts: Int64s, first: Int64s) -> PretokenCounts:
        return PretokenCounts(strings, counts, first, self.pattern, self.special_tokens, *self.totals(), self.dropped)

    def at_least(self, count: int) -> PretokenCounts:
        """Without the pre-tokens that occur less often than `count` times, which are recorded in `dropped`."""
        rare = np.flatnonzero(self.counts < count)
        if not len(rare):
            return self
        dropped = Dropped.of(_take(self.strings, rare), self.counts[rare], count)
        kept = self.take(np.flatnonzero(self.counts >= count))
        return replace(kept, dropped=dropped if self.dropped is None else self.dropped + dropped)

    def take(self, order: Int64s) -> PretokenCounts:
        """The pre-tokens of these rows, int64[m], in this order; the totals stay those of the text."""
        return self._replace(strings=_take(self.strings, order), counts=self.counts[order], first=self.first[order])

    def deal(self, n_buckets: int) -> list[PretokenCounts]:
        """The counts dealt to buckets by a hash of each pre-token, which is the same everywhere.

        They add up to these; the totals, and what was dropped, are in the first one.
        """
        if n_buckets == 1:
            return [self]
        bucket = np.empty(len(self), np.int64)
        dealing.bucket_of(self.strings.values, self.strings.offsets, n_buckets, bucket)
        nothing: dict[str, Any] = dict.fromkeys(
            ("n_bytes", "n_documents", "n_invalid", "n_unmatched", "n_quarantined"), 0
        )
        dealt = [self.take(np.flatnonzero(bucket == number)) for number in range(n_buckets)]
        return [dealt[0], *(replace(counts, dropped=None, **nothing) for counts in dealt[1:])]

    def in_order_of_first(self) -> PretokenCounts:
        """The same counts with the pre-tokens in the order in which they occur first, not ascending."""
        return self.take(np.argsort(self.first))

    def __add__(self, other: PretokenCounts) -> PretokenCounts:
        """Counts of both corpora as one, the other's text after this one's."""
        after = int(self.first.max()) + 1 - min(int(other.first.min()), 0) if len(self) and len(other) else 0
        shifted = other._replace(strings=other.strings, counts=other.counts, first=other.first + after)
        return combine([self, shifted])


def combine(parts: Iterable[PretokenCounts]) -> PretokenCounts:
    """Counts of several parts of one corpus together; associative and commutative.

    `first` must count positions in the corpus as a whole.

    Raises
    ------
    ParameterError
        When the parts were not cut by the same pattern and special tokens.
    """
    items = list(parts)
    if not items:
        raise ParameterError("no counts to combine")
    if len(items) == 1:
        return items[0]
    for item in items[1:]:
        if item._rules() != items[0]._rules():
            raise ParameterError(
                f"counts of pattern {items[0].pattern!r}, special tokens {list(items[0].special_tokens)} and of"
                f" {item.pattern!r}, {list(item.special_tokens)} don't add up: count with the same ones"
            )
    while len(items) > 1:
        # In pairs of neighbours: so each string is copied as often as the logarithm of their number says.
        pairs = [_add_sorted(one, other) for one, other in zip(items[::2], items[1::2], strict=False)]
        items = pairs + items[2 * len(pairs) :]
    return items[0]


def _add_sorted(one: PretokenCounts, other: PretokenCounts) -> PretokenCounts:
    n, n_bytes = len(one) + len(other), len(one.strings.values) + len(other.strings.values)
    values, bounds = np.empty(n_bytes + sort.SPARE, np.uint8), np.empty(n + 1, np.int64)
    counts, first = np.empty(n, np.int64), np.empty(n, np.int64)
    parts = [(part.strings.values, part.strings.offsets, part.counts, part.first) for part in (one, other)]
    n = sort.add_sorted(*parts[0], *parts[1], values, bounds, counts, first)
    n_bytes, n_documents, n_invalid, n_unmatched, n_quarantined = map(
        sum, zip(one.totals(), other.totals(), strict=True)
    )
    strings = Ragged(values[: bounds[n]], bounds[: n + 1])
    records = [part.dropped for part in (one, other) if part.dropped is not None]
    dropped = sum(records[1:], records[0]) if records else None
    return PretokenCounts(
        strings, counts[:n], first[:n], one.pattern, one.special_tokens,
        n_bytes, n_documents, n_invalid, n_unmatched, n_quarantined, dropped,
    )  # fmt: skip


def is_saved(path: str | PathLike[str]) -> bool:
    """Whether a file holds counts that `to_parquet` wrote."""
    return str(path).endswith(".parquet") and columns.format_of(path) == FORMAT


def _take(strings: Ragged, order: Int64s) -> Ragged:
    lengths = np.diff(strings.offsets)[order]
    n_bytes = int(lengths.sum())
    values, offsets = np.empty(n_bytes + sort.SPARE, np.uint8), np.empty(len(order) + 1, np.int64)
    sort.take_strings(strings.values, strings.offsets, order, values, offsets)
    return Ragged(values[:n_bytes], offsets)
