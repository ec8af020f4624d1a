"""How a text falls into tokens, with one tokenizer or several beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dask_bpe.analysis.legible import legible
from dask_bpe.analysis.measure import spans
from dask_bpe.analysis.merge_tree import MergeRules, MergeTree
from dask_bpe.analysis.shortest import encode_shortest
from dask_bpe.analysis.table import Table, Tabular, Value
from dask_bpe.analysis.tokenizers import Given, load_tokenizers
from dask_bpe.pretokenize import Scanner, get_pattern
from dask_bpe.streaming import to_bytes
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.vocabulary import Vocabulary

_BETWEEN = " | "


@dataclass(frozen=True)
class Piece:
    """A token of a text.

    Attributes
    ----------
    id, token : the id and its bytes.
    rank : of the last merge that made it; None of a byte, a special token, and what is taken as a whole.
    pretoken : the number of the pre-token that it is a part of; None of a special token.
    """

    id: int
    token: bytes
    rank: int | None
    pretoken: int | None


@dataclass(frozen=True)
class Segmentation:
    """The tokens of a text.

    Attributes
    ----------
    tokenizer : its name.
    pieces : the tokens.
    trees : by id, the merges that built each.
    least : pre-token by pre-token the ids of the fewest tokens that spell it, and their bytes; None if not asked for.
    spelled : whether the tokens spell the text; a normalizer or a pattern that leaves text out may change it.
    """

    tokenizer: str
    pieces: tuple[Piece, ...]
    trees: Mapping[int, MergeTree]
    least: tuple[tuple[tuple[int, bytes], ...], ...] | None
    spelled: bool

    def line(self) -> str:
        """The tokens in one line: `自 | 君 | [e5 b8] | [82]`."""
        return _BETWEEN.join(legible(piece.token) for piece in self.pieces)

    @property
    def n_least(self) -> int | None:
        """The least number of tokens, special tokens among them."""
        if self.least is None:
            return None
        return sum(map(len, self.least)) + sum(piece.pretoken is None for piece in self.pieces)

    def differences(self) -> Iterator[tuple[str, str]]:
        """The pre-tokens that fewer tokens would spell: as they are merged, and as short as can be."""
        if self.least is None:
            return
        merged: list[list[bytes]] = [[] for _ in self.least]
        for piece in self.pieces:
            if piece.pretoken is not None:
                merged[piece.pretoken].append(piece.token)
        for tokens, least in dict.fromkeys(
            (tuple(tokens), least) for tokens, least in zip(merged, self.least, strict=True) if len(least) < len(tokens)
        ):
            yield _BETWEEN.join(map(legible, tokens)), _BETWEEN.join(legible(token) for _, token in least)


@dataclass(frozen=True)
class Inspection(Tabular):
    """A text as several tokenizers see it."""

    segmentations: tuple[Segmentation, ...]

    def tables(self) -> tuple[Table, ...]:
        """A row for each token of each tokenizer."""
        rows = [row for one in self.segmentations for row in _rows(one)]
        columns = ("tokenizer", "position", "id", "token", "bytes", "rank", "pretoken")
        return (Table.of("tokens", rows, columns, formats={"id": "d", "rank": "d"}),)

    def shown(self) -> tuple[Table, ...]:
        """A line for each tokenizer; then where fewer tokens would do, if that was asked for."""
        rows: list[dict[str, Value]] = [
            {
                "tokenizer": one.tokenizer,
                "tokens": len(one.pieces),
                **({} if one.least is None else {"least": one.n_least}),
                "text": one.line(),
            }
            for one in self.segmentations
        ]
        changed = [one.tokenizer for one in self.segmentations if not one.spelled]
        notes = (f"The tokens spell another text than was given, with: {', '.join(changed)}.",) if changed else ()
        shorter = [
            {"tokenizer": one.tokenizer, "merged": merged, "shortest": shortest}
            for one in self.segmentations
            for merged, shortest in one.differences()
        ]
        tables = Table.of("text", rows, notes=notes), Table.of("shorter", shorter)
        return tables if shorter else tables[:1]

    def to_dict(self) -> dict[str, list[dict[str, object]]]:
        """The tokens of each tokenizer, the ids of the fewest, and the trees of merges, as JSON has them."""
        return {
            "tokenizers": [
                {
                    "tokenizer": one.tokenizer,
                    "spelled": one.spelled,
                    "tokens": [{key: value for key, value in row.items() if key != "tokenizer"} for row in _rows(one)],
                    "least": None if one.least is None else [[index for index, _ in ids] for ids in one.least],
                    "merges": {str(index): _merges(tree) for index, tree in one.trees.items()},
                }
                for one in self.segmentations
            ]
        }


def inspect_text(
    text: str | bytes, tokenizers: Given | Sequence[Given] | Mapping[str, Given], *, shortest: bool = False
) -> Inspection:
    """How a text falls into tokens; special tokens in it are special tokens.

    Parameters
    ----------
    text : for eyes: up to some thousand characters.
    tokenizers : one or several: a `Tokenizer`, a file or folder of any format that `convert` reads, a name in tiktoken;
        or a mapping of names to those.
    shortest : whether to find the least number of tokens too.

    Raises
    ------
    ParameterError, VocabularyError, InputError
    """
    return Inspection(tuple(_segmented(name, one, text, shortest) for name, one in load_tokenizers(tokenizers).items()))


def _segmented(name: str, tokenizer: Tokenizer, text: str | bytes, shortest: bool) -> Segmentation:
    ids = tokenizer.encode(text)
    vocabulary = tokenizer.vocabulary
    specials = set(vocabulary.special_tokens.values())
    trees = _trees(vocabulary, [index for index in dict.fromkeys(ids) if index not in specials])
    pretokens = _pretokens(tokenizer, ids, specials)
    numbers = iter([number for number, tokens in enumerate(pretokens) for _ in tokens])
    pieces = [
        Piece(
            index,
            vocabulary.tokens[index],
            trees[index].rank if index in trees else None,
            None if index in specials else next(numbers),
        )
        for index in ids
    ]
    least = _least(tokenizer, pretokens) if shortest else None
    return Segmentation(name, tuple(pieces), trees, least, tokenizer.decode_bytes(ids) == to_bytes(text))


def _trees(vocabulary: Vocabulary, ids: Sequence[int]) -> dict[int, MergeTree]:
    """The trees of those ids that have one."""
    rules = MergeRules(vocabulary)
    trees = {index: rules.tree(index) for index in ids}
    return {index: tree for index, tree in trees.items() if tree is not None}


def _merges(tree: MergeTree) -> list[list[int | None]]:
    """Left id, right id, resulting id and rank of every merge in a tree."""
    return [[*(part.id for part in merge.parts), merge.id, merge.rank] for merge in tree.merges()]


def _least(tokenizer: Tokenizer, pretokens: Sequence[Sequence[int]]) -> tuple[tuple[tuple[int, bytes], ...], ...]:
    """Ids and bytes of the fewest tokens for each pre-token."""
    tokens = tokenizer.vocabulary.tokens
    spelled = [b"".join(tokens[index] for index in ids) for ids in pretokens]
    return tuple(tuple((index, tokens[index]) for index in ids) for ids in encode_shortest(tokenizer, spelled))


def _pretokens(tokenizer: Tokenizer, ids: Sequence[int], specials: set[int]) -> list[list[int]]:
    """The ids of each pre-token of the text that the tokens spell."""
    pretokens: list[list[int]] = []
    scanner = Scanner(get_pattern(tokenizer.pattern), keep_all=True)
    for run in _runs(ids, specials):
        lengths = [len(tokenizer.vocabulary.tokens[index]) for index in run]
        text = np.frombuffer(tokenizer.decode_bytes(run), np.uint8)
        ends = iter(spans(scanner, text, np.array([[0], [len(text)]]))[1].tolist())
        at, end = 0, 0
        for index, length in zip(run, lengths, strict=True):
            if at >= end:
                pretokens.append([])
                end = next(ends)
            pretokens[-1].append(index)
            at += length
    return pretokens


def _runs(ids: Sequence[int], specials: set[int]) -> Iterator[list[int]]:
    """The ids between special tokens."""
    run: list[int] = []
    for index in ids:
        if index not in specials:
            run.append(index)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _rows(one: Segmentation) -> Iterator[dict[str, Value]]:
    position = 0
    for piece in one.pieces:
        yield {
            "tokenizer": one.tokenizer,
            "position": position,
            "id": piece.id,
            "token": legible(piece.token),
            "bytes": piece.token.hex(" "),
            "rank": piece.rank,
            "pretoken": piece.pretoken,
        }
        position += len(piece.token)
