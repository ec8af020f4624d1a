"""The merges of a training, one by one: what was joined, how often it stood in the corpus, what was left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dask_bpe.analysis.curve import is_cumulative
from dask_bpe.analysis.legible import brief
from dask_bpe.analysis.shown import output
from dask_bpe.analysis.table import Table, Tabular
from dask_bpe.analysis.usage import n_bytes_of
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import ParameterError, whole_number
from dask_bpe.pages import Axis, Plot, Series
from dask_bpe.progress import Progress
from dask_bpe.training.fit import fit
from dask_bpe.training.merger import MergeLog
from dask_bpe.vocabulary import Vocabulary

Int64s = npt.NDArray[np.int64]

_SHOWN = 20


@dataclass(frozen=True, eq=False)
class MergeTrace(Tabular):
    """The merges of a vocabulary with what the training saw, or some of them.

    Attributes
    ----------
    vocabulary : whose merges they are.
    log : a row for every merge.
    n_before : tokens of the corpus before the first merge: its bytes.
    ranks : int64[n], the merges that are in this trace, ascending.
    """

    vocabulary: Vocabulary
    log: MergeLog
    n_before: int
    ranks: Int64s

    def __len__(self) -> int:
        return len(self.ranks)

    def head(self, n: int = _SHOWN) -> MergeTrace:
        """The first n of these merges."""
        return replace(self, ranks=self.ranks[: whole_number("n", n, 0)])

    def tail(self, n: int = _SHOWN) -> MergeTrace:
        """The last n of these merges."""
        return replace(self, ranks=self.ranks[max(len(self) - whole_number("n", n, 0), 0) :])

    def around(self, token: str | bytes, n: int = _SHOWN // 2) -> MergeTrace:
        """The merge that makes a token, with the n before and after it. Raises ParameterError when none makes it."""
        wanted = token.encode() if isinstance(token, str) else token
        tokens = self.vocabulary.tokens
        at = next((k for k, rank in enumerate(self.ranks.tolist()) if tokens[self.log.token[rank]] == wanted), None)
        if at is None:
            raise ParameterError(f"none of the {len(self):,} merges makes {token!r}: it is a byte, or not a token")
        whole_number("n", n, 0)
        return replace(self, ranks=self.ranks[max(at - n, 0) : at + n + 1])

    def about(self, token: str | bytes) -> MergeTrace:
        """The merges of which a token is a half, and the one that makes it."""
        wanted = token.encode() if isinstance(token, str) else token
        same = np.array([spelled == wanted for spelled in self.vocabulary.tokens], np.bool_)
        log = self.log
        kept = same[log.left[self.ranks]] | same[log.right[self.ranks]] | same[log.token[self.ranks]]
        return replace(self, ranks=self.ranks[kept])

    def at_least(self, count: int) -> MergeTrace:
        """The merges of pairs that stood so often in the corpus."""
        return replace(self, ranks=self.ranks[self.log.count[self.ranks] >= whole_number("count", count, 0)])

    def tables(self) -> tuple[Table, ...]:
        """A row for each merge."""
        tokens = self.vocabulary.tokens

        def spelled(ids: npt.NDArray[np.int32]) -> list[str]:
            return [brief(tokens[index]) for index in ids[self.ranks].tolist()]

        columns: dict[str, Any] = {
            "rank": self.ranks.tolist(),
            "left": spelled(self.log.left),
            "right": spelled(self.log.right),
            "merged": spelled(self.log.token),
            "id": self.log.token[self.ranks].tolist(),
            "count": self.log.count[self.ranks].tolist(),
            "tokens_after": self.log.tokens_after[self.ranks].tolist(),
        }
        title = f"{len(self):,} of {len(self.log):,} merges; {self.n_before:,} bytes at first"
        return (Table("merges", columns, title=title, formats={"rank": "d", "id": "d"}),)

    def _repr_html_(self) -> str:
        counts, after = self.log.count[self.ranks], self.log.tokens_after[self.ranks]
        merges = Axis("merges", log=True)
        left = Plot("line", merges, Axis("tokens of the corpus"), [Series("", self.ranks + 1, after)], "What was left.")
        pairs = Plot("line", merges, Axis("occurrences of the pair", log=True), [Series("", self.ranks + 1, counts)])
        return output("Merges", self, [left, replace(pairs, caption="How often the pair stood there.")])

    def shown(self) -> tuple[Table, ...]:
        """The rows; of many the first and the last."""
        if len(self) <= 2 * _SHOWN:
            return self.tables()
        ends = replace(self, ranks=np.concatenate([self.ranks[:_SHOWN], self.ranks[-_SHOWN:]]))
        return ends.tables()


def trace_of(vocabulary: Vocabulary, log: MergeLog, n_before: int) -> MergeTrace:
    """All merges of a training. `n_before`: bytes of the corpus's pre-tokens."""
    return MergeTrace(vocabulary, log, n_before, np.arange(len(log)))


def train_trace(counts: PretokenCounts, vocab_size: int, progress: Progress | None = None, **rules: Any) -> MergeTrace:
    """Train on counts by the rules of `training.fit`, and keep what it saw. Raises ParameterError as it does."""
    result = fit(counts, vocab_size, progress=progress, **rules)
    return trace_of(result.vocabulary, result.log, n_bytes_of(counts))


def retrace(
    vocabulary: Vocabulary, counts: PretokenCounts, progress: Progress | None = None, **rules: Any
) -> MergeTrace:
    """The trace of a vocabulary that was trained on these counts, by training again.

    rules : `min_frequency` and `max_token_length` of the training, if it had any.

    Raises
    ------
    ParameterError
        When the training gives other merges: the counts or the rules were others.
    """
    if not is_cumulative(vocabulary):
        raise ParameterError("the vocabulary keeps no merges in the order of a training: there is nothing to trace")
    n_merges = len(vocabulary.merges)
    result = fit(counts, 256 + n_merges, special_tokens=(), ties=vocabulary.ties, progress=progress, **rules)
    ours, theirs = result.vocabulary.merge_bytes(), vocabulary.merge_bytes()
    if ours != theirs:
        rank = next((k for k, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(ours))
        found = _joined(ours[rank]) if rank < len(ours) else "nothing"
        raise ParameterError(
            f"merge {rank} of the vocabulary joins {_joined(theirs[rank])}, and a training on these counts {found}:"
            " it was trained on other text or by other rules"
        )
    left, right, token = np.ascontiguousarray(vocabulary.merges.T)
    log = MergeLog(left, right, token, result.log.count, result.log.tokens_after)
    return trace_of(vocabulary, log, n_bytes_of(counts))


def _joined(pair: tuple[bytes, bytes]) -> str:
    return f"{brief(pair[0])} and {brief(pair[1])}"
