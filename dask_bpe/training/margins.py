"""Whether pre-tokens that were dropped could have changed a merge.

Let the merges so far be those of a training with all pre-tokens. The pair to merge next occurs n times in what was
kept, so n times or more in all. Another pair occurs k times in what was kept, and in what was dropped at most as often
as the rarest pair of bytes in its spelling does. If k plus that is below n for every other pair, the merge is the same
with all pre-tokens; and so on from the first merge. That holds under every tie rule, for there is no tie.

The proof ends at the first merge for which this cannot be said. It may be the same nevertheless; but in real text soon
come pairs of nearly equal counts, of which the rare pre-tokens do decide.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.pruning import Dropped
from dask_bpe.training.merger import Merger

# So many pairs that nearly equal the best one are looked at; among more, one that can win is all but certain.
_MOST_RIVALS = 1000


def next_is_certain(merger: Merger, dropped: Dropped, min_frequency: int) -> bool:
    """Whether the next merge is proved to be that of a training without `dropped`, if those before it are."""
    if dropped.most == 0:
        return True  # single bytes only: no pair has lost anything
    counts = merger.pair_counts()
    if not len(counts):
        return False
    best = int(np.argmax(counts))
    n = int(counts[best])
    # Pairs without a record occur in what was kept less often than `min_frequency`, most of them never.
    if n < min_frequency or dropped.most + min_frequency - 1 >= n:
        return False
    rivals = np.flatnonzero(counts >= n - dropped.most)
    if len(rivals) > _MOST_RIVALS:
        return False
    return all(
        int(counts[pair]) + dropped.bound(merger.spelling_of(pair)) < n for pair in rivals.tolist() if pair != best
    )
