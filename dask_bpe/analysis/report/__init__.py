"""A vocabulary as a report: what it costs, how it is used, what is in it, and what is odd.

evidence    what is known of each corpus under the vocabulary
findings    sentences, each with its figure
sections    what the report shows
"""

from __future__ import annotations

from dask_bpe.analysis.report.evidence import CorpusEvidence, VocabularyEvidence, corpus_evidence
from dask_bpe.analysis.report.sections import report

__all__ = ["CorpusEvidence", "VocabularyEvidence", "corpus_evidence", "report"]
