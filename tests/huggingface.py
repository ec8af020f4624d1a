"""Small tokenizers of Hugging Face's `tokenizers`, and the vocabularies that must give the same ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import reference
import tokenizers
from tokenizers import AddedToken, models, pre_tokenizers

from dask_bpe.vocabulary import Vocabulary

MERGES = [(b"a", b"b"), (b" ", b"a"), (b"ab", b"ab"), (b" ", b" "), (b"<", b"s"), (b"\xc3", b"\xa9"), (b"e", b"\xcc")]


def build(
    added: Mapping[str, Sequence[str]] | None = None,
    *,
    merges: Sequence[tuple[bytes, bytes]] = MERGES,
    more: Sequence[bytes] = (),
    ignore_merges: bool = False,
    normalizer: Any = None,
    steps: Sequence[Sequence[str]] = (),
    prefix_space: bool = False,
) -> tuple[tokenizers.Tokenizer, Vocabulary]:
    """Both without a pattern. `added` are texts and rules, `more` are tokens that no merge makes."""
    character = reference.byte_to_character()
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(a + b for a, b in merges), *more])
    names = {"".join(character[byte] for byte in token): index for index, token in enumerate(tokens)}
    pairs = [tuple("".join(character[byte] for byte in part) for part in pair) for pair in merges]
    model = tokenizers.Tokenizer(models.BPE(vocab=names, merges=pairs, ignore_merges=ignore_merges))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=False)
    if normalizer is not None:
        model.normalizer = normalizer
    for text, rules in (added or {}).items():
        flags = {rule: rule in rules for rule in ("lstrip", "rstrip", "single_word", "normalized")}
        model.add_tokens([AddedToken(text, special="ordinary" not in rules, **flags)])
    vocabulary = Vocabulary.from_tokens(
        dict(enumerate(tokens)),
        merges,
        {text: model.token_to_id(text) for text in added or {}},
        pattern=None,
        normalizer=steps,
        added_rules=added or {},
        whole_tokens=ignore_merges,
    )
    return model, vocabulary
