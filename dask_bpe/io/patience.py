"""Requests that are made again: of a store that answers many thousands, some fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

# Seconds before storage that refused is asked again.
WAITS = (0.5, 2.0, 8.0)
# What waiting does not mend.
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


def patiently(ask: Callable[[], _T]) -> _T:
    """What `ask` gives; after an OSError it is called again, three times at most. Raises OSError."""
    for wait in WAITS:
        try:
            return ask()
        except _FINAL:
            raise
        except OSError:
            time.sleep(wait)
    return ask()
