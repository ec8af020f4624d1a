"""Reads Hugging Face's ``tokenizer.json`` of byte-level BPE, or refuses it and names the part.

The file is a pipeline, which `tokenizers` runs in this order:

    added_tokens     those that are not "normalized" are cut out of the text
    normalizer       changes what lies between them
    added_tokens     the "normalized" ones are cut out of that
    pre_tokenizer    splits, and at its end maps bytes to printable characters (`ByteLevel`)
    model            merges
    post_processor   puts ids before and after (`TemplateProcessing`)
    decoder          maps the characters back to bytes

Nothing of it is run here; the parts are translated to a `Vocabulary` that gives the same ids. The `id` of an
added token is no more than a remark: `tokenizers` takes the id that the model's vocabulary has for its text,
and else the next free one. Files where both differ are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dask_bpe.errors import BpeError, VocabularyError
from dask_bpe.interchange import dialects
from dask_bpe.interchange.gpt2 import BYTE_OF_CHARACTER
from dask_bpe.interchange.huggingface_pipeline import (
    Json,
    Steps,
    check_decoder,
    read_normalizer,
    read_pre_tokenizer,
    read_template,
    refused,
)
from dask_bpe.interchange.normal_forms import meets
from dask_bpe.vocabulary import Vocabulary
from dask_bpe.vocabulary.ids import as_id
from dask_bpe.vocabulary.json_file import read_file

FILE_NAME = "tokenizer.json"
_PARTS = (
    "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
    "model",
)  # fmt: skip
_MODEL_FIELDS = (
    "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
    "ignore_merges", "vocab", "merges",
)  # fmt: skip


def read_huggingface(source: Any) -> Vocabulary:
    """The vocabulary of a ``tokenizer.json``.

    Parameters
    ----------
    source : path of the file or of its folder, its text or its content as a dict, a `tokenizers.Tokenizer`, or a
        fast tokenizer of `transformers`.

    Raises
    ------
    VocabularyError
        It cannot be read, is damaged, or has a part that would give other ids here; the message names it. How ties
        were broken in training is not in the file; every merge made a new id, so `ties` is "ids".
    """
    name, content = _load(source)
    try:
        return _vocabulary(content)
    except BpeError as error:
        raise VocabularyError(f"{name}: {error}") from None


def _load(source: Any) -> tuple[str, Json]:
    """What to call the source in messages, and its content."""
    # A tokenizer of transformers sets padding and truncation anew in each call: what it left behind counts not.
    wrapped = getattr(source, "backend_tokenizer", None)
    if wrapped is not None:
        return type(source).__name__, _parsed(type(source).__name__, wrapped.to_str()) | {
            "padding": None, "truncation": None,
        }  # fmt: skip
    if hasattr(source, "to_str"):
        return "the tokenizer", _parsed("the tokenizer", source.to_str())
    if isinstance(source, Mapping):
        return "the tokenizer", source
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return "the tokenizer", _parsed("the tokenizer", source)
    if not isinstance(source, str | PathLike):
        raise VocabularyError(f"{source!r} is no tokenizer: a path, a dict or a tokenizers.Tokenizer was expected")
    # Not `Path.is_dir`, which raises for what can be no name; reading it says so in one line.
    path = str(Path(source) / FILE_NAME) if os.path.isdir(source) else str(source)  # noqa: PTH112
    try:
        return path, _parsed(path, read_file(path))
    except VocabularyError as error:
        raise VocabularyError(str(error) if str(error).startswith(path) else f"{path}: {error}") from None


def _parsed(name: str, text: str | bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{name}: not JSON ({error}); was it cut short?") from None
    if not isinstance(content, dict):
        raise VocabularyError(f"{name}: a JSON object with a model was expected")
    return content


def _vocabulary(content: Json) -> Vocabulary:
    model = content.get("model")
    if not isinstance(model, Mapping):
        raise VocabularyError('there is no "model"; is it a tokenizer.json?')
    for part in content:
        if part not in _PARTS and content[part] not in (None, False):
            raise refused(part, "it is not known here")
    for part in ("truncation", "padding"):
        if content.get(part) is not None:
            raise refused(part, f"it would change ids; set it to null ({'no_' + part}() of the tokenizer does)")
    _check_model(model)
    ids = _checked_ids(model)
    whole_tokens = bool(model.get("ignore_merges"))
    added = _added_tokens(content.get("added_tokens") or [], ids)
    normalizer = read_normalizer(content.get("normalizer"))
    splits, prefix_space = read_pre_tokenizer(content.get("pre_tokenizer"))
    check_decoder(content.get("decoder"))
    rules = {text: _rules(token) for text, (_, token) in added.items()}
    _check_normalized(normalizer, rules)
    specials = {text: index for text, (index, _) in added.items()}
    merges = _merges(model, ids)
    tokens = _tokens(ids, specials, merges, rules, whole_tokens)
    return Vocabulary(
        tuple(tokens),
        np.array(merges, np.int32).reshape(-1, 3),
        specials,
        dialects.canonical(splits) if splits else None,
        "ids",
        normalizer=(*normalizer, *([("prefix_space",)] if prefix_space else [])),
        added_rules={text: names for text, names in rules.items() if names},
        template=read_template(content.get("post_processor")),
        whole_tokens=whole_tokens,
    )


# The model.


def _check_model(model: Json) -> None:
    if model.get("type", "BPE") != "BPE" or not ("vocab" in model and "merges" in model):
        raise refused("model", f"it is of type {model.get('type')!r}; a BPE with vocab and merges was expected")
    if model.get("dropout"):
        raise refused("model.dropout", f"it is {model['dropout']}, so that ids are drawn by lot; set it to null")
    for field in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(field):
            raise refused(f"model.{field}", f"it is {model[field]!r}; tokens of bytes have none")
    for field in model:
        if field not in _MODEL_FIELDS and model[field] not in (None, False):
            raise refused(f"model.{field}", "it is not known here")
    # unk_token, fuse_unk and byte_fallback say what becomes of characters without a token. Where all 256 bytes have
    # one, which `Vocabulary` asks for, there are none.


def _checked_ids(model: Json) -> dict[str, int]:
    ids = model["vocab"]
    if not isinstance(ids, Mapping):
        raise VocabularyError(f'model.vocab is {str(ids)[:60]}: an object {{"!": 0, ...}} was expected')
    texts: dict[int, str] = {}
    for text, index in ids.items():
        if type(index) is not int or index < 0:
            raise VocabularyError(f"model.vocab: {text[:40]!r} has {index!r}, which is not an id")
        if texts.setdefault(index, text) != text:
            raise VocabularyError(f"model.vocab: id {index} is given to {texts[index][:40]!r} and to {text[:40]!r}")
    return dict(ids)


def _merges(model: Json, ids: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Rows of left, right, product, by rank."""
    given = model["merges"]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise VocabularyError(f"model.merges is {str(given)[:60]}: a list of pairs was expected")
    rows: list[tuple[int, int, int]] = []
    for rank, merge in enumerate(given):
        if isinstance(merge, str):
            if merge.startswith("#version"):
                continue
            merge = merge.split(" ")
        if not isinstance(merge, Sequence) or len(merge) != 2 or not all(isinstance(text, str) for text in merge):
            raise VocabularyError(f"model.merges: merge {rank} is {str(given[rank])[:60]!r}, which is not two tokens")
        left, right = merge
        try:
            pair, product = (ids[left], ids[right]), ids[left + right]
        except KeyError as error:
            raise VocabularyError(
                f"model.merges: merge {rank} joins {left[:40]!r} and {right[:40]!r}, "
                f"and model.vocab has no {error.args[0][:80]!r}"
            ) from None
        rows.append((*pair, product))
    return rows


def _tokens(
    ids: Mapping[str, int],
    specials: Mapping[str, int],
    merges: Sequence[tuple[int, int, int]],
    rules: Mapping[str, frozenset[str]],
    whole_tokens: bool,
) -> list[bytes]:
    """The bytes of ids 0, 1, 2, ..., b"" where there is no token."""
    merging = {index for row in merges for index in row}
    for text, index in (*ids.items(), *specials.items()):
        as_id(index, text)  # before there is room made for all ids below it
    tokens = [b""] * (max([*ids.values(), *specials.values()], default=-1) + 1)
    for text, index in ids.items():
        spelled = spelled_bytes(text)
        plain = text.encode("utf-8", "surrogatepass")
        if text in specials:
            # The model may give this id to what the characters stand for, not to the text of the added token.
            used = index in merging or len(spelled or b"") == 1 or (whole_tokens and _is_text(spelled))
            if (spelled != plain and used) or (whole_tokens and "single_word" in rules[text]):
                raise refused(
                    f"added token {text!r}", f"its id {index} is also that of the bytes {spelled!r} in the model"
                )
            spelled = plain
        elif spelled is None:
            # No text is ever mapped to it; it can only be decoded.
            if index in merging or whole_tokens:
                raise refused("model.vocab", f"{text[:40]!r} is not written in the characters of ByteLevel")
            spelled = plain
        if not spelled:
            raise VocabularyError(f"model.vocab: the token with id {index} is empty")
        tokens[index] = spelled
    for text, index in specials.items():
        if text not in ids:
            if tokens[index]:
                raise refused(
                    f"added token {text!r}", f"`tokenizers` gives it id {index}, which {tokens[index]!r} has too"
                )
            tokens[index] = text.encode("utf-8", "surrogatepass")
    return tokens


def spelled_bytes(text: str) -> bytes | None:
    """The bytes that a token of the model stands for, or None if it is not written in ByteLevel's characters."""
    try:
        return bytes(map(BYTE_OF_CHARACTER.__getitem__, text))
    except KeyError:
        return None


def _is_text(token: bytes | None) -> bool:
    try:
        return token is not None and bool(token.decode())
    except UnicodeDecodeError:
        return False


# Added tokens.


def _added_tokens(given: Any, ids: Mapping[str, int]) -> dict[str, tuple[int, Json]]:
    """Text -> the id that `tokenizers` gives an added token, and its entry."""
    if not isinstance(given, Sequence):
        raise VocabularyError(f"added_tokens is {str(given)[:60]}: a list was expected")
    added: dict[str, tuple[int, Json]] = {}
    following = len(ids)
    for place, token in enumerate(given):
        text = token.get("content") if isinstance(token, Mapping) else None
        if not isinstance(text, str) or type(token.get("id")) is not int:
            raise VocabularyError(f"added_tokens: entry {place} is {str(token)[:60]}, not one with an id and a content")
        if not text:
            continue
        if text in added:
            raise VocabularyError(f"added_tokens: {text!r} is there twice; leave one out")
        index = ids.get(text, following)
        following = max(following, index + 1)
        if index != token["id"]:
            raise refused(
                f"added token {text!r}",
                f"it has id {token['id']} in the file, and `tokenizers` gives it {index}; "
                "in model.vocab too it would keep its own",
            )
        added[text] = index, token
    return added


def _rules(token: Json) -> frozenset[str]:
    rules = {name for name in ("lstrip", "rstrip", "single_word") if token.get(name)}
    if token.get("normalized", not token.get("special")):
        rules.add("normalized")
    if not token.get("special"):
        rules.add("ordinary")
    return frozenset(rules)


def _check_normalized(normalizer: Steps, rules: Mapping[str, frozenset[str]]) -> None:
    for text, names in rules.items():
        if "normalized" in names and (reason := meets(normalizer, text)):
            raise refused(
                f"added token {text!r}", f'it is "normalized", and the normalizer {reason}; set "normalized" to false'
            )
