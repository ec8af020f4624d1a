"""Find places where text may be cut for certain: between a class of characters and another (`automaton.certain_cuts`).

classes : uint8[0x110000], the class of a code point.
cuts : uint8[n_classes * n_classes], whether text may be cut between a class and another.
"""

from __future__ import annotations

import numpy as np

from dask_bpe.kernels._jit import i64, inlined, kernel, text_type
from dask_bpe.kernels.utf8 import code_point


@inlined
def _class_before(text, at, classes):
    """Class of the character that ends at `at`, -1 where that is not valid UTF-8."""
    lead = at - 1
    while lead > 0 and lead > at - 4 and (text[lead] & np.uint8(0xC0)) == np.uint8(0x80):
        lead -= 1
    point, length = code_point(text, lead, at)
    return np.int64(classes[point]) if point >= 0 and lead + length == at else np.int64(-1)


@inlined
def _is_certain(text, at, classes, n_classes, cuts):
    """Whether text may be cut at `at`. Characters on both sides must be valid."""
    point, _ = code_point(text, at, text.size)
    if point < 0:
        return False
    before = _class_before(text, at, classes)
    return before >= 0 and cuts[before * n_classes + np.int64(classes[point])] != 0


@kernel(i64, text_type, i64, i64, text_type, i64, text_type)
def first_certain_cut(text, start, stop, classes, n_classes, cuts):
    """The first position of ``start..stop - 1`` where the text may be cut, -1 if there is none."""
    for at in range(max(start, 1), min(stop, text.size)):
        if _is_certain(text, at, classes, n_classes, cuts):
            return at
    return -1


@kernel(i64, text_type, text_type, i64, text_type)
def last_certain_cut(text, classes, n_classes, cuts):
    """The last position in `text` where it may be cut, -1 if there is none."""
    for at in range(text.size - 1, 0, -1):
        if _is_certain(text, at, classes, n_classes, cuts):
            return at
    return -1
