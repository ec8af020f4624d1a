"""Split patterns by name, each with its source and an example that is easy to get wrong.

A pattern is a sequence of splits: the first one cuts the text into pieces, the next one cuts each piece on its
own, and so on. What one split does is one regular expression of the `regex` package and what becomes of the
matches and of the text between them; most patterns are one split whose matches are the pre-tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import regex

from dask_bpe.errors import PatternError

# "matches" is what a plain regular expression means: the matches are the pre-tokens; text that it leaves unmatched
# is passed over in counting and an error in encoding. The others are those of Hugging Face's `Split`.
BEHAVIORS = ("matches", "isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous")


@dataclass(frozen=True)
class Split:
    """One step of a pattern.

    Attributes
    ----------
    regex : the regular expression.
    behavior : what becomes of its matches, one of `BEHAVIORS`. Text between two matches is one piece.
    invert : whether the matches and the text between them change places.
    """

    regex: str
    behavior: str = "isolated"
    invert: bool = False

    def __post_init__(self) -> None:
        if self.behavior not in BEHAVIORS:
            raise PatternError(f"behavior {self.behavior!r} of a split is not known: {', '.join(BEHAVIORS)} are")
        if not isinstance(self.regex, str) or not self.regex:
            raise PatternError(f"a split has {self.regex!r} where a regular expression was expected")
        try:
            regex.compile(self.regex)
        except regex.error as error:
            raise PatternError(f"pattern {self.regex!r} is not a regular expression: {error}") from error


# A name, a regular expression, None for whole documents, or a sequence of splits (a str in it is isolated).
PatternSpec: TypeAlias = str | Sequence[str | Split] | None

# GPT-2's encoder.py (OpenAI, 2019), as tiktoken wrote it first: contractions without alternatives by case.
# "I'LL'll  go\n" -> "I" "'" "LL" "'ll" " " " go" "\n"
_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# tiktoken_ext/openai_public.py (OpenAI), cl100k_base of GPT-3.5 and GPT-4. White space at the end is one pre-token.
# "it'S 1234\n\n x" -> "it" "'S" " " "123" "4" "\n\n" " x"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    r"\s+(?!\S)|\s"
)
# The same file, o200k_base of GPT-4o. A word is upper case, then lower case; contractions stay with it.
# "HTTPServer's ÉCOLE//\n" -> "HTTPServer's" " ÉCOLE" "//\n"
_O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
# tokenizer.json of Llama 3 (Meta). As cl100k, but white space at the end ends with the last newline.
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
# tokenizer.json of Qwen 2, 2.5 and 3 (Alibaba). Every digit alone: "1234" -> "1" "2" "3" "4"
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
# Qwen 3.5: combining marks belong to words. "e\u0301a" -> one pre-token
_QWEN35 = _QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
# tokenizer.json of OLMo 2 and 3 (Ai2, dolma2-tokenizer).
_OLMO = _LLAMA3.replace(r"\s*[\r\n]+", r"\s*[\r\n]")
# tokenizer.json of DeepSeek V3: numbers by three, then Han and kana, then the rest, in which what no alternative
# matches (control characters, say) stays in one piece. "abc你好1234!x" -> "abc" "你好" "123" "4" "!x"
_DEEPSEEK = (
    Split(r"\p{N}{1,3}"),
    Split("[一-龥\u3040-ゟ゠-ヿ]+"),
    Split(
        r'[!"'
        r"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^{}\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[{}]*|"
        r"\s*[{}]+|\s+(?!\S)|\s+".replace("{}", "\r\n")
    ),
)

PATTERNS: dict[str, tuple[Split, ...]] = {
    "gpt2": (Split(_GPT2, "matches"),),
    "cl100k": (Split(_CL100K, "matches"),),
    "o200k": (Split(_O200K, "matches"),),
    "llama3": (Split(_LLAMA3, "matches"),),
    "qwen2": (Split(_QWEN2, "matches"),),
    "qwen3.5": (Split(_QWEN35, "matches"),),
    "deepseek": _DEEPSEEK,
    "olmo": (Split(_OLMO, "matches"),),
    # tokenizer.json of StarCoder (BigCode): every digit alone, then GPT-2's. "in 2024" -> "in" " " "2" "0" "2" "4"
    "starcoder": (Split(r"\p{N}"), Split(_GPT2)),
    # For teaching: punctuation and newlines alone, so that merges never cross them, but do cross spaces.
    "punctuation": (Split(r"[\r\n]|\p{P}|[^\r\n\p{P}]+", "matches"),),
    # Words as white space separates them, each with the space before it. "a  b.c" -> "a" " " " b.c"
    "whitespace": (Split(r" ?\S+|\s+(?!\S)|\s+", "matches"),),
    "none": (),
}
_NAMES = {splits: name for name, splits in reversed(PATTERNS.items())}
_BARE_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Pattern:
    """A split pattern.

    Attributes
    ----------
    name : the name of a known pattern, else "regex" (one split, of behavior "matches") or "sequence".
    splits : its steps; none at all for "none".
    """

    name: str
    splits: tuple[Split, ...]

    @property
    def spec(self) -> str | tuple[Split, ...] | None:
        """What `get_pattern` makes this pattern of: what files record."""
        if not self.splits:
            return None
        if self.name == "sequence":
            return self.splits
        return self.splits[0].regex if self.name == "regex" else self.name


def get_pattern(pattern: PatternSpec) -> Pattern:
    """The pattern of a name, a regular expression, None ("none"): whole documents, or a sequence of splits.

    Raises
    ------
    PatternError
        When the name is not known, or an expression is not one that `regex` compiles.
    """
    if pattern is None:
        return Pattern("none", ())
    if isinstance(pattern, str):
        if pattern in PATTERNS:
            return Pattern(pattern, PATTERNS[pattern])
        if not pattern or _BARE_NAME.fullmatch(pattern):
            raise PatternError(
                f"unknown pattern {pattern!r}: known are {', '.join(PATTERNS)}, or give a regular expression"
            )
        splits: tuple[Split, ...] = (Split(pattern, "matches"),)
    else:
        splits = _as_splits(pattern)
    default = "regex" if len(splits) == 1 and splits[0] == Split(splits[0].regex, "matches") else "sequence"
    return Pattern(_NAMES.get(splits, default), splits)


def _as_splits(steps: Sequence[str | Split]) -> tuple[Split, ...]:
    try:
        steps = tuple(steps)
    except TypeError:
        raise PatternError(f"pattern is {steps!r}: a name, a regular expression, None or a list was expected") from None
    for step in steps:
        if not isinstance(step, str | Split):
            raise PatternError(f"a pattern has the step {step!r}: a regular expression or a Split was expected")
    return tuple(Split(step) if isinstance(step, str) else step for step in steps)


def pattern_to_json(spec: PatternSpec) -> Any:
    """A spec as JSON has it: a string, null, or a list of ``[regex, behavior, invert]``."""
    if spec is None or isinstance(spec, str):
        return spec
    return [[split.regex, split.behavior, split.invert] for split in _as_splits(spec)]


def pattern_from_json(value: Any) -> str | tuple[Split, ...] | None:
    """The spec that `pattern_to_json` wrote. Raises PatternError for anything else, or an invalid one."""
    if value is None or isinstance(value, str):
        return get_pattern(value).spec
    try:
        steps = [(str(expression), str(behavior), bool(invert)) for expression, behavior, invert in value]
    except (TypeError, ValueError) as error:
        raise PatternError(f"pattern is {value!r}: a list of [regex, behavior, invert] was expected") from error
    return get_pattern([Split(*step) for step in steps]).spec
