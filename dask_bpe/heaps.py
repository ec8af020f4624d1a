"""Heaps' law: distinct pre-tokens grow as a power of the text (Heaps, "Information Retrieval", 1978)."""

from __future__ import annotations

# As measured on OpenWebText with the pattern of GPT-2.
HEAPS_EXPONENT = 0.62
_SCALE = 3.45


def expected_distinct(n_bytes: int) -> int:
    """How many distinct pre-tokens so much web text has: 3.45 n ** `HEAPS_EXPONENT`."""
    return int(_SCALE * n_bytes**HEAPS_EXPONENT)
