"""Held-out text under a vocabulary: what it costs, and what of it the training never met."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.characters import character_counts, describe_character
from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.table import Table, Tabular
from dask_bpe.analysis.usage import TokenUsage, token_usage
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.errors import ParameterError
from dask_bpe.pretokenize import get_pattern
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]

_SHOWN = 10
_TRAINING, _HELD_OUT = 1, 2


@dataclass(frozen=True, eq=False)
class Coverage(Tabular):
    """Held-out text beside that of a training.

    Attributes
    ----------
    usage : the tokens of the held-out text.
    n_distinct, n_distinct_unseen : distinct pre-tokens of it, and those that the training did not meet.
    n_unseen : their occurrences.
    n_distinct_characters : distinct characters of it.
    n_characters_unseen : occurrences of those that the training did not meet.
    n_single_bytes, n_single_bytes_beyond_ascii : bytes of it that are a token each, and those of them beyond ASCII:
        parts of characters that no merge put together.
    unseen_characters : int64[n, 2], code point and occurrences of those, the most frequent first.
    unseen_pretokens : the most frequent ones, with their occurrences.
    n_left_out : distinct pre-tokens that the counts of the training had dropped as rare: they count as unseen.
    """

    usage: TokenUsage
    n_distinct: int
    n_distinct_unseen: int
    n_unseen: int
    n_distinct_characters: int
    n_characters_unseen: int
    n_single_bytes: int
    n_single_bytes_beyond_ascii: int
    unseen_characters: Int64s
    unseen_pretokens: tuple[tuple[bytes, int], ...]
    n_left_out: int

    def tables(self) -> tuple[Table, ...]:
        """All figures in one row; unseen characters; unseen pre-tokens."""
        return Table.of("coverage", [self._figures()]), self._characters(), self._pretokens()

    def shown(self) -> tuple[Table, ...]:
        """A figure a line, and the most frequent of what was not seen."""
        f = self._figures()
        rows = [
            ("text", f"{f['bytes']:,} bytes, {f['characters']:,} characters, {f['pretokens']:,} pre-tokens"),
            ("tokens", f"{f['tokens']:,}"),
            ("bytes per token", _number(f["bytes_per_token"])),
            ("tokens per character", _number(f["tokens_per_character"])),
            (
                "pre-tokens not met in training",
                f"{_share(f['unseen_pretokens'], f['pretokens'])}:"
                f" {f['unseen_distinct_pretokens']:,} of {f['distinct_pretokens']:,} distinct",
            ),
            (
                "characters not met in training",
                f"{_share(f['unseen_characters'], f['characters'])}:"
                f" {f['unseen_distinct_characters']:,} of {f['distinct_characters']:,} distinct",
            ),
            ("bytes that are a token each", _share(f["single_bytes"], f["bytes"])),
            ("the same, beyond ASCII", _share(f["single_bytes_beyond_ascii"], f["bytes"])),
        ]
        notes: tuple[str, ...] = ()
        if self.n_left_out:
            notes = (f"The training had dropped {self.n_left_out:,} rare pre-tokens, which count as not met.",)
        columns = {"figure": [label for label, _ in rows], "value": [text for _, text in rows]}
        head = Table("coverage", columns, title="Held-out text", notes=notes)
        return head, self._characters(_SHOWN), self._pretokens()

    def _figures(self) -> dict[str, Any]:
        usage = self.usage
        return {
            "bytes": usage.n_bytes,
            "characters": usage.n_characters,
            "pretokens": usage.n_pretokens,
            "distinct_pretokens": self.n_distinct,
            "distinct_characters": self.n_distinct_characters,
            "tokens": usage.n_tokens,
            "bytes_per_token": usage.n_bytes / usage.n_tokens if usage.n_tokens else None,
            "tokens_per_character": usage.n_tokens / usage.n_characters if usage.n_characters else None,
            "unseen_pretokens": self.n_unseen,
            "unseen_distinct_pretokens": self.n_distinct_unseen,
            "unseen_characters": self.n_characters_unseen,
            "unseen_distinct_characters": len(self.unseen_characters),
            "single_bytes": self.n_single_bytes,
            "single_bytes_beyond_ascii": self.n_single_bytes_beyond_ascii,
        }

    def _characters(self, most: int | None = None) -> Table:
        rows = self.unseen_characters[:most].tolist()
        columns: dict[str, Any] = {
            "character": [describe_character(point) for point, _ in rows],
            "occurrences": [number for _, number in rows],
        }
        title = f"Characters not met in training: {len(self.unseen_characters):,}"
        return Table("unseen_characters", columns, title=title)

    def _pretokens(self) -> Table:
        columns: dict[str, Any] = {
            "pretoken": [brief(string) for string, _ in self.unseen_pretokens],
            "occurrences": [number for _, number in self.unseen_pretokens],
        }
        title = f"Pre-tokens not met in training: {self.n_distinct_unseen:,} distinct, the most frequent of them"
        return Table("unseen_pretokens", columns, title=title)


def held_out_coverage(
    vocabulary: Vocabulary, training: PretokenCounts, held_out: PretokenCounts, n_named: int = _SHOWN
) -> Coverage:
    """Compare the counts of held-out text with those of the text that a vocabulary was trained on.

    n_named : how many of the unseen pre-tokens are named.

    Raises
    ------
    ParameterError
        The counts were cut by different patterns, or as `token_usage` says.
    InputError
        A pre-token is not UTF-8.
    """
    if get_pattern(training.pattern) != get_pattern(held_out.pattern):
        raise ParameterError(
            f"the counts of the training were cut by the pattern {training.pattern!r}, those of the held-out text by"
            f" {held_out.pattern!r}: count both with the same one"
        )
    usage = token_usage(vocabulary, held_out)
    unseen = np.flatnonzero(is_unseen(training, held_out))
    numbers = held_out.counts[unseen]
    top = unseen[np.argsort(-numbers, kind="stable")[:n_named]]
    characters = character_counts(held_out)
    strange = np.where(character_counts(training) == 0, characters, 0)
    points = np.argsort(-strange, kind="stable")[: np.count_nonzero(strange)]
    bytes_used = usage.uses[vocabulary.byte_ids]
    return Coverage(
        usage=usage,
        n_distinct=len(held_out),
        n_distinct_unseen=len(unseen),
        n_unseen=int(numbers.sum()),
        n_distinct_characters=int(np.count_nonzero(characters)),
        n_characters_unseen=int(strange.sum()),
        n_single_bytes=int(bytes_used.sum()),
        n_single_bytes_beyond_ascii=int(bytes_used[128:].sum()),
        unseen_characters=np.stack([points, strange[points]], axis=1),
        unseen_pretokens=tuple((held_out.strings[i], int(held_out.counts[i])) for i in top.tolist()),
        n_left_out=training.dropped.n_distinct if training.dropped else 0,
    )


def is_unseen(training: PretokenCounts, held_out: PretokenCounts) -> npt.NDArray[np.bool_]:
    """Whether each pre-token of `held_out` is missing from `training`. bool[len(held_out)]."""
    parts = [
        replace(part, counts=np.full(len(part), mark, np.int64), special_tokens=())
        for part, mark in ((training, _TRAINING), (held_out, _HELD_OUT))
    ]
    marks = combine(parts).counts
    # All strings ascend: those of the held-out text stand in the sum in their own order.
    unseen: npt.NDArray[np.bool_] = marks[marks >= _HELD_OUT] == _HELD_OUT
    return unseen


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.3f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3%} ({part:,})" if whole else "–"
