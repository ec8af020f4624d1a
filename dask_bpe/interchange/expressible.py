"""Whether a format of others can say all that a vocabulary says: checked before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np

from dask_bpe.errors import VocabularyError
from dask_bpe.interchange.divisions import last_division, last_divisions
from dask_bpe.pretokenize.special import overlap
from dask_bpe.vocabulary import Vocabulary

WAY_OUT = "the tokenizer's own file (save) keeps it"
CANNOT_TELL = f"which this format cannot tell apart; {WAY_OUT}"
Pair = tuple[int, int]


def refused(name: str, reason: str) -> VocabularyError:
    """A format has no place for a part of a vocabulary, for this reason."""
    return VocabularyError(f"{name} cannot express this tokenizer: {reason}; {WAY_OUT}")


def check_plain(vocabulary: Vocabulary, name: str) -> None:
    """Refuse what no format but Hugging Face's has a place for: normalizers, templates, rules of special tokens."""
    if vocabulary.normalizer:
        raise refused(name, f"it has a normalizer, {[step[0] for step in vocabulary.normalizer]}")
    if any(vocabulary.template):
        raise refused(name, "it has a template that puts ids around a text")
    check_rules(vocabulary, name)


def check_rules(vocabulary: Vocabulary, name: str) -> None:
    """Refuse special tokens that are not simply looked for, all of them together, the leftmost and longest first."""
    rules = {text: vocabulary.added_rules.get(text, frozenset()) for text in vocabulary.special_tokens}
    for text, names in rules.items():
        special = sorted(names & {"lstrip", "rstrip", "single_word"})
        if special:
            raise refused(name, f"the special token {text!r} follows the rule {special[0]!r}")
    late = {text for text, names in rules.items() if "normalized" in names}
    for one in late if len(late) < len(rules) else ():
        other = next((other for other in rules if other not in late and overlap(one, other)), None)
        if other is not None:
            raise refused(name, f"special token {one!r} is looked for after {other!r}, and they may overlap in a text")


def prefix_of_another(texts: Collection[str]) -> tuple[str, str] | None:
    """A text and a longer one that begins with it, if there are such."""
    ordered = sorted(texts)
    for place, text in enumerate(ordered[:-1]):
        if ordered[place + 1].startswith(text):
            return text, ordered[place + 1]
    return None


def shorter_first(texts: Sequence[str]) -> tuple[str, str] | None:
    """A text and a later, longer one that begins with it, if there are such."""
    for place, text in enumerate(texts):
        longer = next((later for later in texts[place + 1 :] if later.startswith(text)), None)
        if longer is not None:
            return text, longer
    return None


def ordinary_tokens(vocabulary: Vocabulary, name: str) -> dict[bytes, int]:
    """Bytes -> id of the tokens that are not special; refused when two spell the same, or a byte is not there."""
    reserved = set(vocabulary.special_tokens.values())
    ids: dict[bytes, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if token and index not in reserved and ids.setdefault(token, index) != index:
            raise refused(name, f"ids {ids[token]} and {index} both spell {token!r}")
    if vocabulary.merges.size:
        used = np.unique(vocabulary.merges)
        special = np.intersect1d(used, np.array(sorted(reserved), np.int64))
        if special.size:
            raise refused(name, f"the special token {vocabulary.tokens[special[0]]!r} takes part in merges")
    missing = next((byte for byte in range(256) if bytes([byte]) not in ids), None)
    if missing is not None:
        raise refused(name, f"the byte 0x{missing:02x} has no id but that of a special token")
    return ids


def check_whole_tokens(vocabulary: Vocabulary, name: str) -> None:
    """Refuse a vocabulary in which a pre-token may become a token that merges do not make of it."""
    if vocabulary.whole_tokens and (token := unmerged(vocabulary)) is not None:
        raise refused(name, f"it makes a token of a pre-token {token!r} that merges do not make of it")


def unmerged(vocabulary: Vocabulary) -> bytes | None:
    """A token, not a special one, that the merges do not make of its bytes; None if there is none."""
    reserved = set(vocabulary.special_tokens.values())
    byte_ids = vocabulary.byte_ids.tolist()
    rows = enumerate(vocabulary.merges.tolist())
    pairs = {(left, right): (rank, product) for rank, (left, right, product) in rows}
    for index, token in enumerate(vocabulary.tokens):
        if token and index not in reserved and merged(token, byte_ids, pairs) != [index]:
            return token
    return None


def merged(token: bytes, byte_ids: list[int], pairs: Mapping[Pair, tuple[int, int]]) -> list[int]:
    """The ids of one pre-token. `pairs` maps two neighbours to their rank and to what they become."""
    ids = [byte_ids[byte] for byte in token]
    while len(ids) > 1:
        found = [(pairs[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in pairs]
        if not found:
            break
        (_, product), at = min(found)
        ids[at : at + 2] = [product]
    return ids


def divided_merges(vocabulary: Vocabulary, ranks: Mapping[bytes, int]) -> list[tuple[int, int, int]]:
    """The merges in rank order. Of a vocabulary whose ranks are those of tokens, the one that makes each token."""
    if vocabulary.ranks == "merges":
        return [(left, right, product) for left, right, product in vocabulary.merges.tolist()]
    found = last_divisions(ranks)
    rows = [(ranks[left], ranks[right], ranks[token]) for token, (left, right) in found.items()]
    return sorted(rows, key=lambda row: row[2])


def check_ranks(vocabulary: Vocabulary, ranks: Mapping[bytes, int], name: str) -> None:
    """Refuse a vocabulary whose merges are others than those that the ids of its tokens mean (see `divisions`)."""
    rows = vocabulary.merges.tolist()
    if vocabulary.ranks == "merges":
        products = vocabulary.merges[:, 2]
        falling = np.flatnonzero(np.diff(products) < 0)
        if falling.size:
            rank = int(falling[0]) + 1
            raise refused(
                name, f"merge {rank} makes id {products[rank]} after id {products[rank - 1]}, and ids mean the order"
            )
    known = {(left, right) for left, right, _ in rows}
    for token, index in ranks.items():
        division = last_division(token, ranks) if len(token) > 1 else None
        if division is not None and (ranks[division[0]], ranks[division[1]]) not in known:
            raise refused(
                name,
                f"id {index}, {token!r}, would be made of {division[0]!r} and {division[1]!r}, and no merge does so",
            )
        if division is None and len(token) > 1 and not vocabulary.whole_tokens:
            raise refused(
                name, f"merges never make id {index}, {token!r}, and a pre-token that spells it would become it"
            )


def check_read_back(vocabulary: Vocabulary, again: Vocabulary) -> None:
    """Refuse to write what would be read as other ids: `again` is what was found by bytes and names alone."""
    for text, index in vocabulary.special_tokens.items():
        other = again.special_tokens[text]
        if other != index:
            raise VocabularyError(
                f"special token {text!r} has id {index}, and id {other} spells the same bytes, {CANNOT_TELL}"
            )
    different = np.argwhere(again.merges != vocabulary.merges)
    if len(different):
        place = tuple(different[0].tolist())
        raise VocabularyError(
            f"merge {place[0]} refers to id {vocabulary.merges[place]}, "
            f"and id {again.merges[place]} spells the same bytes, {CANNOT_TELL}"
        )


def check_no_gaps(vocabulary: Vocabulary, name: str) -> None:
    """Refuse ids that no token has."""
    gap = next((index for index, token in enumerate(vocabulary.tokens) if not token), None)
    if gap is not None:
        raise refused(name, f"no token has the id {gap}")
