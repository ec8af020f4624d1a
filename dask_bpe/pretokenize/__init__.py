"""How text is cut: split patterns, special tokens, and the places where blocks may end."""

from dask_bpe.pretokenize.patterns import PATTERNS, Pattern, PatternSpec, Split, get_pattern
from dask_bpe.pretokenize.scanner import Scanner
from dask_bpe.pretokenize.special import RULES, SpecialTokens

__all__ = ["PATTERNS", "RULES", "Pattern", "PatternSpec", "Scanner", "SpecialTokens", "Split", "get_pattern"]
