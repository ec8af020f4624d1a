"""Tokenizers of Hugging Face made in the tests, and the text that they are compared on."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import reference
import strategies
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CORPUS = [
    "low lower lowest, newer and newest: it's he'll we've 2024 12345 times!\n",
    "The the THE İstanbul straße naïve cafe\u0301 Ωμέγα 自君之出矣 思君如月\n\n",
    "12 １２  indented\tcode() { return; }\n",
    "aaaaaaaa aaa abababab ... --- don't DON'T \u00a0 \u2003 x² ½ Ⅷ 😀😀 👩‍👩‍👧 \r\n\r\n",
    "مرحبا नमस्ते สวัสดี",
] * 4

Json = dict[str, Any]


def added(text: str, index: int, *flags: str, special: bool = True) -> Json:
    """An added token as the file has it."""
    names = ("single_word", "lstrip", "rstrip", "normalized")
    return {"id": index, "content": text, **{name: name in flags for name in names}, "special": special}


def byte_level(*, prefix: bool = False, regex: bool = False) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern: str, behavior: str = "Isolated", *, invert: bool = False, kind: str = "Regex") -> Json:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps: Json, members: str = "pretokenizers") -> Json:
    return {"type": "Sequence", members: list(steps)}


def content(vocab: Mapping[str, int], merges: Sequence[Any], **parts: Any) -> Json:
    """What a tokenizer.json holds; `parts` replace what is there."""
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": dict(vocab),
        "merges": list(merges),
    }
    plain = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": byte_level(regex=True),
        "post_processor": None,
        "decoder": byte_level(),
    }
    return plain | {"model": model | parts.pop("model", {})} | parts


def trained(pre_tokenizer: Any = "gpt2", size: int = 420, **parts: Any) -> Json:
    """What Hugging Face's own trainer learns on a small corpus; `parts` replace what is there."""
    tokenizer = Tokenizer(models.BPE())
    # Merges that cross the cuts of any pattern: ids show where a text was cut.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet))
    model = json.loads(tokenizer.to_str())["model"]
    given = {"pre_tokenizer": byte_level(regex=True) if pre_tokenizer == "gpt2" else pre_tokenizer} | parts
    model_parts = {"merges": model["merges"]} | given.pop("model", {})
    return content(model["vocab"], (), model=model_parts, **given)


def loaded(file: Json) -> Tokenizer:
    """By the library itself."""
    return Tokenizer.from_str(json.dumps(file))


def known(text: str) -> bool:
    """Whether the classes of all characters are the same in the Unicode versions of today's libraries.

    U+0295 has become another letter in Unicode 17.
    """
    return all(unicodedata.category(character) != "Cn" and character != "\u0295" for character in text)


def texts(*more: str) -> st.SearchStrategy[str]:
    """Text where classes of characters meet, with pieces of the corpus and of one's own in it."""
    own = ["lower", " newest", "aaa", "abab", "it's", "12345", " the", "自君", "\r\n", "  ", "cafe\u0301", *more]
    parts = st.one_of(st.sampled_from(own), strategies.text(4).filter(known))
    return st.lists(parts, max_size=8).map("".join)


SAMPLES = [*CORPUS, "", " ", "a", "\n", *(piece for piece in strategies.PIECES if known(piece))]
SAMPLES += ["".join(strategies.PIECES).replace("\U0010ffff", ""), reference.GPT2]
