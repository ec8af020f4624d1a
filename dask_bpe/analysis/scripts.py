"""What kind of character each is: a letter of which script, a digit, punctuation, white space.

The `regex` package is asked, as everywhere: its Unicode is that of the split patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import regex

DIGITS, PUNCTUATION, WHITE_SPACE, OTHER = "digits", "punctuation", "whitespace", "other"
# Letters that all scripts use, and marks that join any of them: they make no token one of several scripts.
SHARED = "Common"

_KINDS = {WHITE_SPACE: r"[\s\p{Z}]", DIGITS: r"\p{N}", PUNCTUATION: r"[\p{P}\p{S}]"}

# The scripts of Unicode 15, by the names in its Scripts.txt; the most written ones first, for they are looked for in
# this order.
_NAMES = """
Latin Han Cyrillic Hangul Arabic Hiragana Katakana Devanagari Greek Hebrew Thai Bengali Tamil Telugu Kannada Malayalam
Gujarati Gurmukhi Oriya Sinhala Myanmar Khmer Lao Tibetan Georgian Armenian Ethiopic Mongolian Bopomofo Common
Inherited Adlam Ahom Anatolian_Hieroglyphs Avestan Balinese Bamum Bassa_Vah Batak Bhaiksuki Brahmi Braille Buginese
Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Coptic Cuneiform Cypriot
Cypro_Minoan Deseret Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Glagolitic Gothic Grantha
Gunjala_Gondi Hanifi_Rohingya Hanunoo Hatran Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian Javanese
Kaithi Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khojki Khudawadi Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian
Mahajani Makasar Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive
Meroitic_Hieroglyphs Miao Modi Mro Multani Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu
Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian
Old_South_Arabian Old_Turkic Old_Uyghur Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician
Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sogdian Sora_Sompeng Soyombo
Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tangsa Tangut Thaana Tifinagh Tirhuta
Toto Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
SCRIPTS = tuple(_NAMES.split())


def kinds_of(characters: Iterable[str]) -> dict[str, str]:
    """The kind of each of some characters: DIGITS, PUNCTUATION (symbols too), WHITE_SPACE, OTHER, or, of a letter or a
    mark, its script: one of SCRIPTS, without the underscores, or SHARED."""
    left = "".join(sorted(set(characters)))
    kinds: dict[str, str] = {}
    for kind, expression in _expressions().items():
        if not left:
            break
        found = expression.findall(left)
        if found:
            kinds.update(dict.fromkeys(found, kind))
            left = expression.sub("", left)
    kinds.update(dict.fromkeys(left, OTHER))
    return kinds


@cache
def _expressions() -> dict[str, regex.Pattern[str]]:
    expressions = {kind: regex.compile(expression) for kind, expression in _KINDS.items()}
    for script in SCRIPTS:
        name = SHARED if script in ("Common", "Inherited") else script.replace("_", " ")
        expression = rf"[\p{{Script={script}}}&&[\p{{L}}\p{{M}}]]"
        if name == SHARED:
            expression = r"[[\p{Script=Common}\p{Script=Inherited}]&&[\p{L}\p{M}]]"
        expressions[name] = regex.compile(expression, regex.VERSION1)
    return expressions
