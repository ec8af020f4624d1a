"""Writes Hugging Face's ``tokenizer.json``, or refuses a vocabulary that it cannot express."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from dask_bpe.interchange import dialects
from dask_bpe.interchange.expressible import refused
from dask_bpe.interchange.folders import new_folder
from dask_bpe.interchange.gpt2 import CHARACTER_OF_BYTE
from dask_bpe.interchange.huggingface_pipeline import WHITESPACE
from dask_bpe.interchange.huggingface_read import FILE_NAME, spelled_bytes
from dask_bpe.interchange.normal_forms import meets
from dask_bpe.interchange.punctuation import PUNCTUATION
from dask_bpe.io.atomic import atomic_write
from dask_bpe.pretokenize import PATTERNS, Split, get_pattern
from dask_bpe.vocabulary import Vocabulary

_NAME = "tokenizer.json"
_GPT2 = PATTERNS["gpt2"][0].regex
_BEHAVIORS = {
    "matches": "Isolated",
    "isolated": "Isolated",
    "removed": "Removed",
    "merged_with_previous": "MergedWithPrevious",
    "merged_with_next": "MergedWithNext",
    "contiguous": "Contiguous",
}
# What `transformers` needs beside the file to know what it is.
_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}

Json = dict[str, Any]


def write_huggingface(vocabulary: Vocabulary, path: str | PathLike[str]) -> None:
    """Write a ``tokenizer.json``: the file itself if `path` ends so (in ".json"), else into the folder `path`.

    A folder also gets the ``tokenizer_config.json`` with which `transformers` opens it.

    Raises
    ------
    VocabularyError
        Before anything is written, if `tokenizers` would give other ids: two tokens of the same text, a pattern
        that its regular expressions take otherwise, ...
    """
    text = json.dumps(to_json(vocabulary), ensure_ascii=False, indent=1).encode() + b"\n"
    if str(path).endswith(".json"):
        with atomic_write(path) as file:
            file.write(text)
        return
    folder = new_folder(path)
    config = json.dumps(_CONFIG, indent=2).encode() + b"\n"
    with atomic_write(folder / FILE_NAME) as file, atomic_write(folder / "tokenizer_config.json") as beside:
        file.write(text)
        beside.write(config)


def to_json(vocabulary: Vocabulary) -> Json:
    """The content of the file. Raises VocabularyError as `write_huggingface` does."""
    ids = _model_ids(vocabulary)
    names = _names(ids)
    # Where ranks are those of tokens, the merges hold every way to divide one. At most one of them ever stands side
    # by side in a text (see `divisions`), so that the order among them does not matter.
    merges = [f"{names[left]} {names[right]}" for left, right, _ in vocabulary.merges.tolist()]
    normalizer, prefix_space = _normalizer(vocabulary)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        "normalizer": normalizer,
        "pre_tokenizer": _pre_tokenizer(vocabulary, prefix_space),
        "post_processor": _post_processor(vocabulary, names),
        "decoder": _byte_level(),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": vocabulary.whole_tokens,
            "vocab": ids,
            "merges": merges,
        },
    }


def characters(token: bytes) -> str:
    """A token of the model in the characters of ByteLevel."""
    return "".join(map(CHARACTER_OF_BYTE.__getitem__, token))


def _names(ids: Mapping[str, int]) -> dict[int, str]:
    return {index: text for text, index in ids.items()}


def _model_ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Text -> id of the model.

    Special tokens are among them if `tokenizers` would number them otherwise: it gives those that the model does
    not know the next ids, in the order of the file.
    """
    specials = vocabulary.special_tokens
    merging = {index for row in vocabulary.merges.tolist() for index in row}
    reserved = set(specials.values())
    ids: dict[str, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if token and (index not in reserved or index in merging or len(token) == 1):
            text = characters(token)
            if ids.setdefault(text, index) != index:
                raise refused(_NAME, f"ids {ids[text]} and {index} both spell {token!r}")
    numbered = list(range(len(ids), len(ids) + len(specials)))
    outside = sorted(reserved) == numbered and not any(text in ids for text in specials)
    for text, index in specials.items():
        if ids.get(text, index) != index:
            raise refused(
                _NAME, f"the special token {text!r} with id {index} is written as the token with id {ids[text]} is"
            )
        if outside:
            continue
        spelled = spelled_bytes(text)
        if index in merging and spelled != text.encode():
            raise refused(_NAME, f"the special token {text!r} takes part in merges")
        rules = vocabulary.added_rules.get(text, frozenset())
        if vocabulary.whole_tokens and spelled is not None and (spelled != text.encode() or "single_word" in rules):
            raise refused(_NAME, f"text that spells {spelled!r} would become the special token {text!r}")
        ids[text] = index
    if len(set(ids.values())) != len(ids):
        raise refused(
            _NAME, "a special token takes part in merges, or is a single byte, and is written otherwise as such"
        )
    return dict(sorted(ids.items(), key=lambda item: item[1]))


def _added_tokens(vocabulary: Vocabulary) -> list[Json]:
    added = []
    for text, index in sorted(vocabulary.special_tokens.items(), key=lambda item: item[1]):
        rules = vocabulary.added_rules.get(text, frozenset())
        if "normalized" in rules and (reason := meets(vocabulary.normalizer, text)):
            raise refused(_NAME, f'the special token {text!r} is "normalized", and the normalizer {reason}')
        flags = {name: name in rules for name in ("single_word", "lstrip", "rstrip", "normalized")}
        added.append({"id": index, "content": text, **flags, "special": "ordinary" not in rules})
    return added


def _normalizer(vocabulary: Vocabulary) -> tuple[Json | None, bool]:
    """The normalizer, and whether ByteLevel puts a space before text."""
    steps = list(vocabulary.normalizer)
    prefix_space = bool(steps) and steps[-1] == ("prefix_space",)
    written = [_normalizer_step(*step) for step in (steps[:-1] if prefix_space else steps)]
    return _sequence(written, "normalizers"), prefix_space


def _normalizer_step(name: str, *texts: str) -> Json:
    if name == "lowercase":
        return {"type": "Lowercase"}
    if name == "prepend":
        return {"type": "Prepend", "prepend": texts[0]}
    if name == "replace":
        return {"type": "Replace", "pattern": {"String": texts[0]}, "content": texts[1]}
    if name == "prefix_space":
        raise refused(_NAME, "its normalizer puts a space before text and goes on after that")
    return {"type": name.upper()}


def _pre_tokenizer(vocabulary: Vocabulary, prefix_space: bool) -> Json | None:
    splits = get_pattern(vocabulary.pattern).splits
    # GPT-2's own split is part of ByteLevel.
    own = bool(splits) and splits[-1].regex == _GPT2 and _kept(splits[-1])
    if prefix_space and len(splits) > own:
        raise refused(_NAME, "its normalizer puts a space before text, and its pattern is another than GPT-2's")
    steps = [_split(split) for split in (splits[:-1] if own else splits)]
    return _sequence([*steps, _byte_level(add_prefix_space=prefix_space, use_regex=own)], "pretokenizers")


def _kept(split: Split) -> bool:
    return split.behavior in ("matches", "isolated") and not split.invert


def _split(split: Split) -> Json:
    behavior = _BEHAVIORS[split.behavior]
    if split == WHITESPACE:
        return {"type": "Whitespace"}
    if split.regex == PUNCTUATION and not split.invert:
        return {"type": "Punctuation", "behavior": behavior}
    expression = dialects.write_pattern(split.regex, "oniguruma")
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": split.invert}


def _byte_level(*, add_prefix_space: bool = False, use_regex: bool = False) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": False, "use_regex": use_regex}


def _sequence(steps: list[Json], members: str) -> Json | None:
    if len(steps) < 2:
        return steps[0] if steps else None
    return {"type": "Sequence", members: steps}


def _post_processor(vocabulary: Vocabulary, names: Mapping[int, str]) -> Json | None:
    before, after = vocabulary.template
    if not before and not after:
        return None
    texts = dict(names) | {index: text for text, index in vocabulary.special_tokens.items()}

    def around(sequence: str, kind: int) -> list[Json]:
        return [
            *_pieces(before, texts, kind),
            {"Sequence": {"id": sequence, "type_id": kind}},
            *_pieces(after, texts, kind),
        ]

    return {
        "type": "TemplateProcessing",
        "single": around("A", 0),
        "pair": around("A", 0) + around("B", 1),
        "special_tokens": {
            texts[index]: {"id": texts[index], "ids": [index], "tokens": [texts[index]]}
            for index in dict.fromkeys((*before, *after))
        },
    }


def _pieces(ids: Iterable[int], texts: Mapping[int, str], kind: int) -> list[Json]:
    return [{"SpecialToken": {"id": texts[index], "type_id": kind}} for index in ids]
