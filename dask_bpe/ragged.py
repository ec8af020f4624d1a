"""Many byte strings in two arrays: the shape in which strings meet the kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Ragged:
    """Byte strings laid end to end.

    Attributes
    ----------
    values : uint8[n_bytes]
        The strings, one after the other.
    offsets : int64[n + 1]
        String ``i`` is ``values[offsets[i]:offsets[i + 1]]``; ``offsets[0] == 0``.
    """

    values: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.values[self.offsets[index] : self.offsets[index + 1]].tobytes()

    @classmethod
    def from_list(cls, strings: Iterable[bytes]) -> Ragged:
        """Lay the strings end to end, in the order given."""
        items = list(strings)
        offsets = np.zeros(len(items) + 1, np.int64)
        np.cumsum([len(item) for item in items], out=offsets[1:])
        return cls(np.frombuffer(b"".join(items), np.uint8), offsets)

    def to_list(self) -> list[bytes]:
        """The strings as Python bytes."""
        data = self.values.tobytes()
        bounds = self.offsets.tolist()
        return [data[start:end] for start, end in pairwise(bounds)]
