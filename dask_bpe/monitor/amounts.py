"""Numbers as people read them."""

from __future__ import annotations

from dask_bpe.pages.cells import format_bytes, format_seconds

__all__ = ["format_amount", "format_part", "format_rate", "format_seconds"]


def format_amount(amount: int, unit: str) -> str:
    """`150.0 MB` for bytes (unit "B"; powers of 1000), `31,743 merges` and `1 merge` for anything else."""
    if unit != "B":
        return f"{amount:,} {unit.removesuffix('s') if amount == 1 else unit}"
    return format_bytes(amount)


def format_part(done: int, total: int | None, unit: str) -> str:
    """`12.0 MB of 150.0 MB`, `3 of 31,743 merges`; without "of" when there is no total."""
    if not total:
        return format_amount(done, unit)
    part = format_amount(done, unit) if unit == "B" else f"{done:,}"
    return f"{part} of {format_amount(total, unit)}"


def format_rate(per_second: float, unit: str) -> str:
    """`410.2 MB/s` for bytes, `24,000 merges/s` for anything else."""
    # GB/s would be harder to compare with what one reads elsewhere.
    if unit == "B" and per_second >= 1e6:
        return f"{per_second / 1e6:,.1f} MB/s"
    if 0 < per_second < 10 and unit != "B":
        return f"{per_second:.1f} {unit}/s"
    return f"{format_amount(int(per_second), unit)}/s"
