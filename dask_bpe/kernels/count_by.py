"""What the kernels take that cut by a vector scanner and count, without a step of Python in between.

Each scanner has a kernel of its own in a module of its own (`count_gpt2` and the like): only what is used is compiled.

The loops of these modules are alike but for the scanner. It cannot be given to one loop: what a closure holds is
another object in every process, for which numba finds nothing in its cache; a step given as an argument is called by
its address.
"""

from __future__ import annotations

from dask_bpe.kernels._jit import given_i64m, i64, i64m, i64s, text_type, u8s, u64s
from dask_bpe.kernels.count import table_type
from dask_bpe.kernels.front import batch_type

# What such a kernel returns and takes: the arguments of a scanner, see `segments.SCANNER`, and those of `count_spans`.
# cut : int64[3]: the pre-tokens that `spans` holds, in its first place. Where it returns something else than DONE, a
# call with the same arguments goes on when there is more room.
COUNTER = (
    i64, text_type, given_i64m, i64s, u8s, u8s, u64s, i64m, i64s, i64s, i64s, i64, table_type, batch_type, i64,
)  # fmt: skip
