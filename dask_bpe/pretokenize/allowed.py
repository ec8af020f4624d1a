"""Which special tokens of a text become ids: `allowed_special` and `disallowed_special` as tiktoken has them.

An allowed special token becomes its id. A disallowed one is an error, wherever it stands. One that is neither is
text. By default none is allowed; disallowed are by default all that are not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dask_bpe.errors import ParameterError
from dask_bpe.pretokenize.special import SpecialTokens

# What the arguments may be: "all", some texts, or None for the default.
Texts = Iterable[str] | None

# Choices that are remembered; whoever makes up a new one for every text does not fill the memory.
_REMEMBERED = 64


class Specials:
    """Special tokens to be found in text, and their ids.

    Attributes
    ----------
    tokens : the special tokens.
    ids : uint32[n], their ids in the same order.
    """

    def __init__(self, tokens: Mapping[str, int], rules: Mapping[str, Iterable[str]]) -> None:
        """`tokens` : text -> id. `rules` : those of `SpecialTokens`; of others than `tokens` they are left aside."""
        self.tokens = SpecialTokens(tuple(tokens), {text: rules[text] for text in tokens if text in rules})
        self.ids = np.array(list(tokens.values()), np.uint32)
        # Text that does not hold what all of them begin with needs no search.
        self._mark = _common_beginning(self.tokens.encoded)
        self._any = bool(tokens)

    def may_be_in(self, data: bytes, start: int = 0, end: int | None = None) -> bool:
        """False if there is certainly none in ``data[start:end]``."""
        if self._mark[:1] not in data:  # in a short text a byte is found in a fifth of the time of a string
            return False
        return self._any and data.find(self._mark, start, end) >= 0

    def find(self, text: npt.NDArray[np.uint8], start: int, end: int) -> tuple[list[int], list[int], list[int]]:
        """Starts, ends and ids of those in ``text[start:end]``."""
        starts, ends, index = self.tokens.find(text, start, end)
        return starts.tolist(), ends.tolist(), self.ids[index].tolist()


@dataclass(frozen=True)
class Choice:
    """What a pair of arguments means for a vocabulary."""

    allowed: Specials
    disallowed: frozenset[str]

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        longest_first = sorted((text.encode(errors="surrogatepass") for text in self.disallowed), key=len, reverse=True)
        return re.compile(b"|".join(map(re.escape, longest_first)))

    def refuse(self, data: bytes, which: str = "the text") -> None:
        """Raise ParameterError if there is a disallowed special token in `data`; `which` says whose text that is."""
        if self.disallowed and (found := self._pattern.search(data)):
            token = found[0].decode(errors="replace")
            raise ParameterError(
                f"{which} holds the special token {token!r} at byte {found.start()}: with allowed_special={{{token!r}}}"
                " it becomes its id, with disallowed_special=() it is encoded as text"
            )


class Choices:
    """The choices for one vocabulary; made once, used for many texts.

    Parameters
    ----------
    tokens, rules : its special tokens, as `Specials` takes them.
    """

    def __init__(self, tokens: Mapping[str, int], rules: Mapping[str, Iterable[str]]) -> None:
        self._tokens, self._rules = dict(tokens), rules
        self._made: dict[tuple[object, object], Choice] = {}

    def choice(self, allowed: Texts, disallowed: Texts) -> Choice:
        """The choice of these arguments.

        Raises
        ------
        ParameterError
            For an argument that is neither "all" nor a collection of texts.
        """
        key = _checked("allowed_special", allowed), _checked("disallowed_special", disallowed)
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            made = self._made[key] = self._make(*key)
        return made

    def _make(self, allowed: Collection[str] | None, disallowed: Collection[str] | None) -> Choice:
        everything = self._tokens
        chosen = (
            everything
            if allowed == "all"
            else {text: everything[text] for text in everything if text in (allowed or ())}
        )
        if disallowed is None or disallowed == "all":
            disallowed = everything.keys() - (chosen if allowed == "all" else allowed or frozenset())
        return Choice(Specials(chosen, self._rules), frozenset(disallowed))


def _checked(name: str, texts: Texts) -> Collection[str] | None:
    if texts is None or texts == "all":
        return texts
    if not isinstance(texts, str):
        try:
            checked = frozenset(texts)
        except TypeError:
            checked = frozenset([""])
        if all(isinstance(text, str) and text for text in checked):
            return checked
    raise ParameterError(f'{name} is {texts!r}: "all" or a set of special tokens was expected')


def _common_beginning(strings: Collection[bytes]) -> bytes:
    # What the first and the last in sorted order have in common, all have.
    first, last = min(strings, default=b""), max(strings, default=b"")
    length = next((at for at, byte in enumerate(first) if byte != last[at]), len(first))
    return first[:length]
