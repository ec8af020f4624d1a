"""Everything that can go wrong for a reason a user can mend.

    BpeError
    ├── InputError        the text: missing, empty, not UTF-8 under ``errors="strict"``
    ├── ParameterError    an argument (also a ValueError)
    │   └── PatternError  a split pattern: unknown name, invalid regular expression
    ├── OutputError       the place to write to: not empty, not writable
    ├── IncompleteError   parts of a job that failed for good; the rest is done
    ├── VocabularyError   a vocabulary or count file: damaged, inconsistent
    ├── ShardError        token shards or their manifest: damaged, incomplete
    └── ClusterError      the Dask cluster: unreachable, without workers

A message is one line: what was found, where, what was expected, the way out. ``exit_code`` is what the
command line ends with.
"""

from __future__ import annotations

import operator


class BpeError(Exception):
    """Root of every error that dask_bpe raises on purpose."""

    exit_code = 2


class InputError(BpeError):
    """The text to train on or to encode cannot be used."""


class CorruptError(InputError):
    """Compressed data is damaged or cut short; everything before the damage could be read."""


class ParameterError(BpeError, ValueError):
    """An argument has a value that cannot work."""


class PatternError(ParameterError):
    """A split pattern is unknown or not a valid regular expression."""


class PatternWarning(UserWarning):
    """A split pattern cannot be compiled: it cuts as it should, but slowly."""


class OutputError(BpeError):
    """The output cannot be written where it was asked for."""


class IncompleteError(BpeError):
    """A part of the work could not be done; the rest is, and stays."""

    exit_code = 4


class VocabularyError(BpeError):
    """A vocabulary, or a file that holds one, is damaged or inconsistent."""


class ShardError(BpeError):
    """Token shards or their manifest are damaged or incomplete."""


class ClusterError(BpeError):
    """The Dask cluster cannot be reached or has no workers."""

    exit_code = 3


def whole_number(name: str, value: object, least: int = 1) -> int:
    """The value of an argument if it is a whole number of at least `least`, and below 2**62.

    Raises
    ------
    ParameterError
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ParameterError(f"{name} is {value!r}, of type {type(value).__name__}: a whole number was expected")
    number = operator.index(value)
    if not least <= number < 1 << 62:
        raise ParameterError(
            f"{name} is {value!r}: {least} or more was expected" + (", below 2**62" if number >= least else "")
        )
    return number
