"""The parts of a ``tokenizer.json`` around its model: normalizer, pre-tokenizer, post-processor, decoder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dask_bpe.errors import VocabularyError
from dask_bpe.interchange import dialects
from dask_bpe.interchange.punctuation import PUNCTUATION
from dask_bpe.pretokenize import PATTERNS, Split
from dask_bpe.pretokenize.syntax import may_be_empty

_BEHAVIORS = {
    "Isolated": "isolated",
    "Removed": "removed",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
_FORMS = {"NFC": "nfc", "NFD": "nfd", "NFKC": "nfkc", "NFKD": "nfkd"}
_GPT2 = Split(PATTERNS["gpt2"][0].regex)
WHITESPACE = Split(r"\w+|[^\w\s]+", "removed", invert=True)

Json = Mapping[str, Any]
Steps = tuple[tuple[str, ...], ...]


def refused(part: str, reason: str) -> VocabularyError:
    """The error about a part that would give other ids here."""
    return VocabularyError(f"{part} cannot be taken over exactly: {reason}")


def kind_of(part: Any, where: str) -> str:
    """The type of a part."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        raise VocabularyError(f'{where} is {str(part)[:60]}: an object with a "type" was expected')
    return kind


def _flattened(part: Any, where: str, members: str) -> list[Json]:
    """The steps of a part, sequences in it dissolved."""
    if part is None:
        return []
    if kind_of(part, where) != "Sequence":
        return [part]
    steps = part.get(members)
    if not isinstance(steps, Sequence):
        raise VocabularyError(f"{where} is a Sequence without {members!r}")
    return [inner for step in steps for inner in _flattened(step, where, members)]


def read_normalizer(part: Any) -> Steps:
    """The steps of `Vocabulary.normalizer`."""
    steps: list[tuple[str, ...]] = []
    for step in _flattened(part, "normalizer", "normalizers"):
        kind = kind_of(step, "normalizer")
        if kind in _FORMS:
            steps.append((_FORMS[kind],))
        elif kind == "Lowercase":
            steps.append(("lowercase",))
        elif kind == "Prepend":
            steps += [("prepend", _text(step, "prepend", "normalizer"))] if step.get("prepend") else []
        elif kind == "Replace":
            steps.append(("replace", _literal(step), _text(step, "content", "normalizer")))
        else:
            raise refused(f"normalizer {kind}", f"known are {', '.join(_FORMS)}, Lowercase, Prepend and Replace")
    return tuple(steps)


def _text(step: Json, field: str, where: str) -> str:
    value = step.get(field)
    if not isinstance(value, str):
        raise VocabularyError(f"{where} {step['type']}: {field} is {str(value)[:60]}, where a text was expected")
    return value


def _literal(step: Json) -> str:
    kind, text = _pattern(step, "normalizer")
    if kind == "Regex" and re.search(r"[\\^$.|?*+()\[\]{}]", text):
        raise refused("normalizer Replace", f"it replaces what a regular expression matches, {text[:60]!r}")
    if not text:
        raise refused("normalizer Replace", "its pattern is empty")
    return text


def _pattern(step: Json, where: str) -> tuple[str, str]:
    given = step.get("pattern")
    if isinstance(given, Mapping) and len(given) == 1:
        kind, text = next(iter(given.items()))
        if kind in ("String", "Regex") and isinstance(text, str):
            return kind, text
    raise VocabularyError(f"{where} {step['type']}: its pattern is {str(given)[:60]}, neither a String nor a Regex")


def read_pre_tokenizer(part: Any) -> tuple[tuple[Split, ...], bool]:
    """The splits, and whether a space is put before text that has none."""
    steps = _flattened(part, "pre_tokenizer", "pretokenizers")
    kinds = [kind_of(step, "pre_tokenizer") for step in steps]
    if "ByteLevel" not in kinds:
        raise refused(
            f"pre_tokenizer {', '.join(kinds) or 'null'}", "there is no ByteLevel in it: its tokens are not of bytes"
        )
    if kinds.index("ByteLevel") < len(kinds) - 1:
        following = kinds[kinds.index("ByteLevel") + 1]
        raise refused(f"pre_tokenizer {following}", "it comes after ByteLevel and splits within characters")
    splits = tuple(_split(step, kind) for step, kind in zip(steps[:-1], kinds, strict=False))
    byte_level = steps[-1]
    if byte_level.get("add_prefix_space", True) and splits:
        raise refused("pre_tokenizer ByteLevel", "add_prefix_space is true, and every piece that is split gets a space")
    if byte_level.get("use_regex", True):
        splits = (*splits, _GPT2)
    return splits, bool(byte_level.get("add_prefix_space", True))


def _split(step: Json, kind: str) -> Split:
    if kind == "Split":
        given, text = _pattern(step, "pre_tokenizer")
        if not text:
            raise refused("pre_tokenizer Split", "its pattern is empty")
        try:
            expression = re.escape(text) if given == "String" else dialects.read_pattern(text, "oniguruma")
        except VocabularyError as error:
            raise refused("pre_tokenizer Split", str(error)) from None
        if may_be_empty(expression):
            raise refused("pre_tokenizer Split", f"{text!r} may match the empty string, where it would cut too")
        return Split(expression, _behavior(step, kind), bool(step.get("invert")))
    if kind == "Digits":
        return Split(r"\p{N}", "isolated" if step.get("individual_digits") else "contiguous")
    if kind == "Punctuation":
        return Split(PUNCTUATION, _behavior(step, kind))
    if kind == "Whitespace":
        return WHITESPACE
    if kind == "WhitespaceSplit":
        return Split(r"\s", "removed")
    if kind == "CharDelimiterSplit":
        return Split(re.escape(_text(step, "delimiter", "pre_tokenizer")), "removed")
    raise refused(f"pre_tokenizer {kind}", "it has no equal among the splits of a pattern")


def _behavior(step: Json, kind: str) -> str:
    behavior = step.get("behavior", "Isolated" if kind == "Punctuation" else None)
    if behavior not in _BEHAVIORS:
        raise refused(f"pre_tokenizer {kind}", f"its behavior {behavior!r} is none of {', '.join(_BEHAVIORS)}")
    return _BEHAVIORS[behavior]


def read_template(part: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids before and after a single text."""
    template: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    for step in _flattened(part, "post_processor", "processors"):
        kind = kind_of(step, "post_processor")
        try:
            found = _template_of(step, kind)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise VocabularyError(f"post_processor {kind}: {str(step)[:60]}... is not complete") from None
        if any(found) and any(template):
            raise refused("post_processor", "it puts ids around a text more than once")
        template = found if any(found) else template
    return template


def _template_of(step: Json, kind: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if kind == "ByteLevel":  # changes offsets only
        return (), ()
    if kind in ("BertProcessing", "RobertaProcessing"):
        return (int(step["cls"][1]),), (int(step["sep"][1]),)
    if kind != "TemplateProcessing":
        raise refused(f"post_processor {kind}", "known are ByteLevel, TemplateProcessing and those of BERT and RoBERTa")
    sides: tuple[list[int], list[int]] = [], []
    texts = 0
    for piece in step["single"]:
        if "Sequence" in piece:
            texts += piece["Sequence"]["id"] == "A" or 2
        else:
            sides[texts > 0].extend(map(int, step["special_tokens"][piece["SpecialToken"]["id"]]["ids"]))
    if texts != 1:
        raise refused("post_processor TemplateProcessing", "its template for a single text does not hold $A once")
    return tuple(sides[0]), tuple(sides[1])


def check_decoder(part: Any) -> None:
    """Refuse a decoder that does not give back the bytes of tokens."""
    # Without any, `tokenizers` shows the characters of ByteLevel; to show text is no other tokenizer.
    for step in _flattened(part, "decoder", "decoders"):
        kind = kind_of(step, "decoder")
        if kind not in ("ByteLevel", "Fuse"):
            raise refused(f"decoder {kind}", "only ByteLevel gives back the bytes of tokens")
