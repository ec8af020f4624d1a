"""The teaching lab: two texts, two vocabularies, and what each text costs under either.

One vocabulary is trained on both texts together ("shared"), one on the English text alone. Both by the lab's rules:
merges within the whole text (no pattern), ties to the smallest pair of ids, no pair that occurs only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dask_bpe.analysis.characters import character_counts
from dask_bpe.analysis.curve import Curve, cut_curve, train_curve
from dask_bpe.analysis.scripts import kinds_of
from dask_bpe.analysis.usage import n_bytes_of, n_characters_of
from dask_bpe.counts import PretokenCounts
from dask_bpe.errors import InputError, ParameterError
from dask_bpe.pretokenize import get_pattern
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.vocabulary import Vocabulary

KO, EN = "ko", "en"
RULES: dict[str, Any] = {"ties": "ids", "min_frequency": 2}
SIZES = (256, 320, 384, 512)


@dataclass(frozen=True, eq=False)
class LabTexts:
    """The two texts, as counts of whole documents.

    Attributes
    ----------
    ko, en : their counts.
    named_by : why the one is called ko and the other en: "scripts", or "order" when their letters don't say.
    swapped : whether the English one was given first.
    """

    ko: PretokenCounts
    en: PretokenCounts
    named_by: str
    swapped: bool

    @classmethod
    def of(cls, one: PretokenCounts, other: PretokenCounts) -> LabTexts:
        """Two texts: the one with the larger share of Hangul is ko; with none in either, the first.

        Raises
        ------
        ParameterError
            They were cut by a pattern.
        InputError
            One holds no text, or is not UTF-8.
        """
        for counts in (one, other):
            if get_pattern(counts.pattern).splits:
                raise ParameterError(f"the lab takes whole texts, and these counts were cut by {counts.pattern!r}")
            if not len(counts):
                raise InputError("a text of the lab is empty")
        first, second = _share_of_hangul(one), _share_of_hangul(other)
        if first == second == 0:
            return cls(one, other, "order", False)
        return cls(one, other, "scripts", False) if first >= second else cls(other, one, "scripts", True)


def _share_of_hangul(counts: PretokenCounts) -> float:
    characters = character_counts(counts)
    points = characters.nonzero()[0].tolist()
    kinds = kinds_of(map(chr, points))
    hangul = sum(int(characters[point]) for point in points if kinds[chr(point)] == "Hangul")
    return hangul / int(characters.sum())


@dataclass(frozen=True, eq=False)
class Lab:
    """What the lab measures.

    Attributes
    ----------
    texts : the two of them.
    vocab_size : ids asked for.
    shared, en_only : the vocabularies.
    shared_curve, en_only_curve : tokens of each text under either, by size. Under the shared one also of both together.
    roundtrip_ok : whether both vocabularies give both texts back, byte for byte.
    """

    texts: LabTexts
    vocab_size: int
    shared: Vocabulary
    en_only: Vocabulary
    shared_curve: Curve
    en_only_curve: Curve
    roundtrip_ok: bool

    def to_dict(self) -> dict[str, Any]:
        """The figures under the names that the lab gives them."""
        ko, en = self.texts.ko, self.texts.en
        ko_shared, en_shared = (self.shared_curve.of(name)[-1] for name in (KO, EN))
        ko_alone, en_alone = (self.en_only_curve.of(name)[-1] for name in (KO, EN))
        return {
            "vocab_size": self.vocab_size,
            "ko_chars": n_characters_of(ko),
            "ko_bytes": n_bytes_of(ko),
            "en_chars": n_characters_of(en),
            "en_bytes": n_bytes_of(en),
            "shared_rules": len(self.shared.merges),
            "en_only_rules": len(self.en_only.merges),
            "ko_tokens_shared": ko_shared.n_tokens,
            "en_tokens_shared": en_shared.n_tokens,
            "ko_tokens_en_only": ko_alone.n_tokens,
            "en_tokens_en_only": en_alone.n_tokens,
            "ko_bytes_per_token": ko_shared.bytes_per_token,
            "en_bytes_per_token": en_shared.bytes_per_token,
            "curve": [
                {
                    "vocab_size": ko_point.vocab_size,
                    "rules": ko_point.n_merges,
                    "ko_tokens": ko_point.n_tokens,
                    "en_tokens": en_point.n_tokens,
                    "ko_bytes_per_token": ko_point.bytes_per_token,
                    "en_bytes_per_token": en_point.bytes_per_token,
                }
                for ko_point, en_point in zip(self.shared_curve.of(KO), self.shared_curve.of(EN), strict=True)
            ],
            "roundtrip_ok": self.roundtrip_ok,
        }


def measure_lab(texts: LabTexts, sizes: Sequence[int] = SIZES) -> Lab:
    """Train both vocabularies to the largest size and look at both texts.

    sizes : ids in all, of the curve.

    Raises
    ------
    ParameterError
        For a size below 256.
    """
    both = {KO: texts.ko, EN: texts.en}
    shared_curve = train_curve(both, sizes, **RULES)
    en_only = train_curve(texts.en, sizes, **RULES).vocabulary
    wanted = [point.vocab_size for point in shared_curve.of(EN)]
    vocabularies = shared_curve.vocabulary, en_only
    return Lab(
        texts,
        max(sizes),
        *vocabularies,
        shared_curve,
        cut_curve(en_only, both, wanted),
        all(gives_back(vocabulary, counts) for vocabulary in vocabularies for counts in both.values()),
    )


def gives_back(vocabulary: Vocabulary, counts: PretokenCounts) -> bool:
    """Whether every document is, encoded and decoded again, what it was."""
    tokenizer = Tokenizer(vocabulary)
    return all(tokenizer.decode_bytes(tokenizer.encode(text)) == text for text in counts.strings.to_list())
