"""A job as a report: how its runs went, what they made, and what would have made them faster.

evidence    what a folder, or a result, knows of its runs
findings    rules that say what time went by, each with its figures
sections    what the report shows
"""

from __future__ import annotations

from dask_bpe.run_report.evidence import Evidence, read_evidence
from dask_bpe.run_report.sections import report

__all__ = ["Evidence", "read_evidence", "report"]
