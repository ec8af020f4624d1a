"""How many tokens a corpus has under vocabularies of many sizes, from one of them.

Each merge puts one token in the place of two. So after k merges a corpus has as many tokens as bytes, less the
occurrences of the first k pairs at the time of their merge; and under a vocabulary of k merges it has just these, for
the merges of a smaller vocabulary are the first ones of a larger one (Sennrich, Haddow and Birch 2016). How often a
merge took place is how often its token stands in the corpus, or within a token that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.shown import output
from dask_bpe.analysis.table import Table, Tabular
from dask_bpe.analysis.token_kinds import learned_tokens
from dask_bpe.analysis.usage import n_bytes_of, n_characters_of, token_usage
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.pages import Axis, Plot, Series
from dask_bpe.pretokenize import SpecialTokens
from dask_bpe.progress import Progress
from dask_bpe.training.fit import fit
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]

ALL = "all"


@dataclass(frozen=True)
class CurvePoint:
    """A corpus under a vocabulary of one size.

    Attributes
    ----------
    source : the name of the corpus; ALL for all together.
    vocab_size : ids in all, as asked for.
    n_merges : merges of that vocabulary; fewer than the size has room for where no pair was left.
    n_tokens : tokens of the corpus.
    n_bytes, n_characters : of the corpus's pre-tokens.
    """

    source: str
    vocab_size: int
    n_merges: int
    n_tokens: int
    n_bytes: int
    n_characters: int

    @property
    def bytes_per_token(self) -> float:
        """NaN for a corpus without text."""
        return self.n_bytes / self.n_tokens if self.n_tokens else float("nan")

    @property
    def characters_per_token(self) -> float:
        """NaN for a corpus without text."""
        return self.n_characters / self.n_tokens if self.n_tokens else float("nan")


@dataclass(frozen=True)
class Curve(Tabular):
    """Size of the vocabulary against tokens of a corpus, or of several.

    Attributes
    ----------
    points : by source, then by size.
    largest : ids of the largest vocabulary that there is: sizes beyond it are the same vocabulary.
    vocabulary : that one.
    """

    points: tuple[CurvePoint, ...]
    largest: int
    vocabulary: Vocabulary

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the corpora."""
        return tuple(dict.fromkeys(point.source for point in self.points))

    def of(self, source: str) -> tuple[CurvePoint, ...]:
        """The points of one corpus. Raises ParameterError for a name that there is not."""
        points = tuple(point for point in self.points if point.source == source)
        if not points:
            raise ParameterError(f"there is no source {source!r}: known are {', '.join(self.sources)}")
        return points

    def tables(self) -> tuple[Table, ...]:
        """A row for each point."""
        rows: list[dict[str, Any]] = [
            {
                "source": point.source,
                "vocab_size": point.vocab_size,
                "merges": point.n_merges,
                "tokens": point.n_tokens,
                "bytes": point.n_bytes,
                "characters": point.n_characters,
                "bytes_per_token": point.bytes_per_token if point.n_tokens else None,
                "characters_per_token": point.characters_per_token if point.n_tokens else None,
            }
            for point in self.points
        ]
        return (Table.of("curve", rows, title="Tokens by size of the vocabulary", notes=self._notes()),)

    def _repr_html_(self) -> str:
        return output("Tokens by size", self, [curve_plot([(source, self.of(source)) for source in self.sources])])

    def _notes(self) -> tuple[str, ...]:
        beyond = sorted({point.vocab_size for point in self.points if point.vocab_size > self.largest})
        if not beyond:
            return ()
        sizes = ", ".join(f"{size:,}" for size in beyond)
        return (f"No more than {self.largest:,} ids: beyond, at {sizes}, the vocabulary is the same.",)


def curve_plot(lines: Iterable[tuple[str, Sequence[CurvePoint]]]) -> Plot:
    """Bytes per token by size, a line for each corpus by its name."""
    return Plot(
        "line",
        Axis("size of the vocabulary", "ids", log=True),
        Axis("bytes per token"),
        [Series(name, [p.vocab_size for p in points], [p.bytes_per_token for p in points]) for name, points in lines],
        "Bytes that a token stands for, by the size to which the vocabulary is cut.",
    )


def train_curve(
    counts: PretokenCounts | Mapping[str, PretokenCounts],
    sizes: Iterable[int],
    *,
    special_tokens: Sequence[str] | None = None,
    progress: Progress | None = None,
    **rules: Any,
) -> Curve:
    """Train once, to the largest size, and tell the tokens of every size: exactly those of a training of that size.

    Parameters
    ----------
    counts : of one corpus; or several by name, on the sum of which the vocabulary is trained. Each is told then, and
        ALL.
    sizes : of vocabularies: ids in all.
    special_tokens : those of the vocabulary; None: those that the counts were cut at.
    rules : of the merges, as `training.fit` takes them.

    Raises
    ------
    ParameterError
        For a size that cannot hold bytes and special tokens, a rule that is not known, or counts of other cuts.
    """
    by_name = named(counts)
    total = reduce(add, by_name.values())
    specials = SpecialTokens(total.special_tokens if special_tokens is None else special_tokens).tokens
    wanted = checked_sizes(sizes, len(specials))
    result = fit(total, wanted[-1], special_tokens=specials, progress=progress, **rules)
    vocabulary = result.vocabulary
    after = np.concatenate([[n_bytes_of(total)], result.log.tokens_after])
    if not isinstance(counts, PretokenCounts):
        points = [
            _points(name, part, wanted, _after(vocabulary, part), len(specials)) for name, part in by_name.items()
        ]
        points.append(_points(ALL, total, wanted, after, len(specials)))
    else:
        points = [_points(ALL, total, wanted, after, len(specials))]
    return Curve(tuple(point for part in points for point in part), len(vocabulary), vocabulary)


def cut_curve(
    vocabulary: Vocabulary,
    counts: PretokenCounts | Mapping[str, PretokenCounts],
    sizes: Iterable[int] | None = None,
    *,
    uses: Mapping[str, Int64s] | None = None,
) -> Curve:
    """The tokens of a corpus under a vocabulary that is cut to smaller sizes: its first merges, the others left out.

    Parameters
    ----------
    vocabulary : any; the largest size of the curve.
    counts : of one corpus, or of several by name.
    sizes : ids in all; None: all doublings of 256, and the whole vocabulary.
    uses : int64[n_ids] by name of the corpus, the tokens of it, if they are known already.

    Raises
    ------
    ParameterError
        As `usage.token_usage`; for a size that cannot hold bytes and special tokens.
    """
    n_special = n_reserved(vocabulary)
    whole = 256 + n_special + len(learned_tokens(vocabulary))
    wanted = checked_sizes(doublings(whole, n_special) if sizes is None else sizes, n_special)
    points: list[CurvePoint] = []
    for name, part in named(counts).items():
        if is_cumulative(vocabulary):
            known = token_usage(vocabulary, part).uses if uses is None else uses[name]
            after = tokens_after_merges(vocabulary, known, n_bytes_of(part))
            points += _points(name, part, wanted, after, n_special)
        else:
            points += _points_by_encoding(name, part, wanted, vocabulary, n_special)
    return Curve(tuple(points), whole, vocabulary)


def named(counts: PretokenCounts | Mapping[str, PretokenCounts]) -> Mapping[str, PretokenCounts]:
    """Counts by the name of their source: ALL for a single one. Raises ParameterError when there is none."""
    if isinstance(counts, PretokenCounts):
        return {ALL: counts}
    if not counts:
        raise ParameterError("no counts: give those of at least one source")
    if ALL in counts and len(counts) > 1:
        raise ParameterError(f"a source is called {ALL!r}, as all of them together are: give it another name")
    return counts


def doublings(whole: int, n_special: int = 0) -> list[int]:
    """256, 512, 1024, ... below a size, from where bytes and special tokens have room on, and that size."""
    least = 256 + n_special
    powers = [256 << k for k in range(64) if least <= 256 << k < whole]
    return sorted({least, *powers, whole})


def checked_sizes(sizes: Iterable[int], n_special: int) -> list[int]:
    """The sizes ascending, each once. Raises ParameterError when one cannot hold bytes and special tokens."""
    wanted = sorted({whole_number("a size of the vocabulary", size) for size in sizes})
    if not wanted:
        raise ParameterError("no sizes: give at least one")
    if wanted[0] < 256 + n_special:
        raise ParameterError(
            f"vocabulary size {wanted[0]} cannot hold the 256 bytes and {n_special} special tokens:"
            f" give at least {256 + n_special}"
        )
    return wanted


def is_cumulative(vocabulary: Vocabulary) -> bool:
    """Whether the tokens of fewer merges follow from those of all.

    They do where encoding makes the merges in the order of their ranks, as training did: every merge joins what merges
    before it made, and no token is made by two.
    """
    if vocabulary.ranks == "tokens" or vocabulary.whole_tokens:
        return False
    known = set(vocabulary.byte_ids.tolist())
    for left, right, token in vocabulary.merges.tolist():
        if left not in known or right not in known or token in known:
            return False
        known.add(token)
    return True


def tokens_after_merges(vocabulary: Vocabulary, uses: Int64s, n_bytes: int) -> Int64s:
    """Tokens of a corpus after 0, 1, 2, ... merges of a vocabulary that `is_cumulative`. int64[n_merges + 1].

    uses : int64[n_ids], the tokens of the corpus under the whole vocabulary.
    """
    made = uses.tolist()
    for left, right, token in reversed(vocabulary.merges.tolist()):
        made[left] += made[token]
        made[right] += made[token]
    replaced = np.array([made[token] for token in vocabulary.merges[:, 2].tolist()], np.int64)
    return n_bytes - np.concatenate([np.zeros(1, np.int64), np.cumsum(replaced)])


def _after(vocabulary: Vocabulary, counts: PretokenCounts) -> Int64s:
    return tokens_after_merges(vocabulary, token_usage(vocabulary, counts).uses, n_bytes_of(counts))


def _points(
    name: str, counts: PretokenCounts, sizes: Sequence[int], tokens_after: Int64s, n_special: int
) -> list[CurvePoint]:
    n_bytes, n_characters = n_bytes_of(counts), n_characters_of(counts)
    merges = [min(size - 256 - n_special, len(tokens_after) - 1) for size in sizes]
    return [
        CurvePoint(name, size, k, int(tokens_after[k]), n_bytes, n_characters)
        for size, k in zip(sizes, merges, strict=True)
    ]


def _points_by_encoding(
    name: str, counts: PretokenCounts, sizes: Sequence[int], vocabulary: Vocabulary, n_special: int
) -> list[CurvePoint]:
    n_bytes, n_characters, learned = n_bytes_of(counts), n_characters_of(counts), len(learned_tokens(vocabulary))
    points = []
    for size in sizes:
        k = min(size - 256 - n_special, learned)
        n_tokens = token_usage(cut_vocabulary(vocabulary, k), counts).n_tokens
        points.append(CurvePoint(name, size, k, n_tokens, n_bytes, n_characters))
    return points


def cut_vocabulary(vocabulary: Vocabulary, n_learned: int) -> Vocabulary:
    """A vocabulary that knows only the bytes and the first so many of its `learned_tokens`. Ids stay as they are."""
    kept = {*learned_tokens(vocabulary)[:n_learned].tolist(), *vocabulary.byte_ids.tolist()}
    tokens = [token if i in kept else b"" for i, token in enumerate(vocabulary.tokens)]
    while not tokens[-1]:
        tokens.pop()
    merges = vocabulary.merges[np.isin(vocabulary.merges, list(kept)).all(axis=1)]
    return replace(
        vocabulary, tokens=tuple(tokens), merges=merges, special_tokens={}, added_rules={}, template=((), ())
    )


def n_reserved(vocabulary: Vocabulary) -> int:
    """Special tokens that no merge makes: the ids beside bytes and learned tokens."""
    learned = set(learned_tokens(vocabulary).tolist())
    return sum(index not in learned for index in vocabulary.special_tokens.values())
