"""Tokenizers compared: on corpora, and on the same text in several languages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dask_bpe.analysis.compare import Comparison, Pair
from dask_bpe.analysis.languages import DECLARATION, LanguageCost, LanguageCosts, declaration
from dask_bpe.analysis.tokenizers import Given, load_tokenizers
from dask_bpe.cluster.contents import Errors
from dask_bpe.cluster.count import Source, as_paths
from dask_bpe.cluster.measure import Result, measure
from dask_bpe.cluster.measure_partition import Wanted
from dask_bpe.errors import InputError, ParameterError, whole_number
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.inputs.compression import without_compression
from dask_bpe.io.source import list_files
from dask_bpe.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

Tokenizers: TypeAlias = Given | Sequence[Given] | Mapping[str, Given]
Texts: TypeAlias = Mapping[str, str | Iterable[str]] | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

END = "<|endoftext|>"


def compare(
    tokenizers: Tokenizers,
    corpora: Mapping[str, Source] | Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    sample: int | None = None,
    contexts: Sequence[int] = (2048, 8192),
    separator: str | None = END,
    input_format: InputFormat | None = None,
    errors: Errors = "replace",
    block_bytes: int | None = None,
    client: Client | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """What corpora cost with several tokenizers: tokens, bytes and characters for a token, what becomes of words.

    Text is encoded as it stands: nothing in a document is a special token, and what separates documents in text files
    counts for nothing. The figures are the same for any partitions and any cluster.

    Parameters
    ----------
    tokenizers : one or several, the first of which the others are compared with: a `Tokenizer`, a file or folder of any
        format that `convert` reads, a name in tiktoken; or a mapping of names to those.
    corpora : each a path, a folder, a glob or a URL; or a mapping of names to sources as `count_pretokens` takes them.
    sample : read about so many bytes of the files of each corpus: up to 64 pieces spread over it, the same every time.
    contexts : lengths in tokens; documents that have more are counted.
    separator : what ends a document in text files; None: a file is a document.
    input_format : which kind of files these are and where in them the text is; by default their names tell.
    errors : about invalid UTF-8: "replace" (by U+FFFD), "skip", or "strict": the document is left out, and said to be.
    block_bytes : text per task; by default chosen by the size of the corpora, 16 MB at most.
    client : the cluster to run on; by default the active one, else the threads of this process.
    progress : told of the bytes measured, as stage "measuring".

    Raises
    ------
    InputError, ParameterError, VocabularyError, ClusterError
    IncompleteError
        A partition failed for good.
    """
    models = load_tokenizers(tokenizers)
    lengths = tuple(sorted({whole_number("a context length", length) for length in contexts}))
    if sample is not None:
        whole_number("sample", sample)
    wanted = Wanted.of(models.values(), lengths, separator, errors, input_format or InputFormat())
    sources = _named(corpora)
    if not sources:
        raise ParameterError("no corpus is given: one or more were expected")
    result = measure(sources, wanted, sample=sample, block_bytes=block_bytes, client=client, progress=progress)
    pairs: list[Pair] = []
    for corpus, (amount, costs) in result.groups.items():
        if not amount.n_bytes:
            raise InputError(f"{corpus} holds no text: there is nothing to compare{_why(result)}")
        pairs += [Pair(name, corpus, amount, cost, costs[0]) for name, cost in zip(models, costs, strict=True)]
    return Comparison(tuple(pairs), lengths, _notes(result))


def compare_languages(
    tokenizers: Tokenizers,
    texts: Texts | None = None,
    *,
    reference: str | None = None,
    input_format: InputFormat | None = None,
    errors: Errors = "replace",
    client: Client | None = None,
    progress: Progress | None = None,
) -> LanguageCosts:
    """What the same text costs in several languages.

    Parameters
    ----------
    tokenizers : as for `compare`.
    texts : the text, or documents, of each language; a folder with a file for each, named by it; or one or several
        files of documents that name their language: JSON Lines, Parquet, Arrow. None: articles 1 to 10 of the Universal
        Declaration of Human Rights in 33 languages, which come with the package.
    reference : the language that the others are compared with; by default the first.
    input_format : where the text is in files of documents; `id_field` is the field with the language: "lang".
    errors, client, progress : as for `compare`.

    Raises
    ------
    InputError
        A language has no text, or the one of `reference` is not there.
    ParameterError, VocabularyError, ClusterError, IncompleteError
    """
    models = load_tokenizers(tokenizers)
    how = input_format or InputFormat(id_field="lang")
    wanted = Wanted.of(models.values(), (), END, errors, how)
    sources = _by_language(declaration() if texts is None else texts, how)
    result = measure(sources, wanted, client=client, progress=progress)
    notes = (DECLARATION,) if texts is None else _notes(result)
    amounts = result.groups
    empty = [language for language, (amount, _) in amounts.items() if not amount.n_bytes]
    if empty or not amounts:
        raise InputError(f"there is no text in {', '.join(empty) or 'any language'}{_why(result)}")
    chosen = next(iter(amounts)) if reference is None else reference
    if chosen not in amounts:
        raise InputError(f"there is no text in {chosen!r} to compare with: languages are {', '.join(amounts)}")
    rows = [
        LanguageCost(name, language, amount, costs[number], amounts[chosen][1][number])
        for number, name in enumerate(models)
        for language, (amount, costs) in amounts.items()
    ]
    return LanguageCosts(tuple(rows), chosen, notes)


def _named(
    corpora: Mapping[str, Source] | Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
) -> dict[str | None, Source]:
    """Corpora by name: that of the file or folder, or the whole path where two would be called the same."""
    if isinstance(corpora, Mapping):
        return {name: source for name, source in corpora.items()}  # noqa: C416
    if as_paths(corpora) is None:
        raise ParameterError(
            f"corpora is of type {type(corpora).__name__}: paths, or a mapping of names to sources, were expected"
        )
    several = [corpora] if isinstance(corpora, str | os.PathLike) else list(corpora)
    paths = list(dict.fromkeys(os.fspath(path) for path in several))
    names = [Path(path).name or path for path in paths]
    return {path if names.count(name) > 1 else name: path for name, path in zip(names, paths, strict=True)}


def _by_language(texts: Texts, how: InputFormat) -> dict[str | None, Source]:
    """The sources of languages by name; under None those that say the language of every document."""
    if isinstance(texts, Mapping):
        return {name: iter([text] if isinstance(text, str) else text) for name, text in texts.items()}
    if as_paths(texts) is None:
        raise ParameterError(
            f"texts is of type {type(texts).__name__}: a path, or a mapping of languages to text, was expected"
        )
    by_file: dict[str | None, list[str]] = {}
    for file in list_files(texts):
        plain = how.kind_of(file.path) == "text"
        language = without_compression(Path(file.path).name).rsplit(".", 1)[0] if plain else None
        by_file.setdefault(language, []).append(file.path)
    return {**by_file}


def _notes(result: Result) -> tuple[str, ...]:
    """What is to be said of what was read."""
    notes = []
    if result.sampled is not None:
        notes.append(
            f"A sample: {result.sampled:,} bytes of files, in up to 64 pieces spread over each corpus, the same every"
            " time. What is cut off at their ends counts as a document."
        )
    if result.unread.number:
        notes.append(f"Could not be read: {result.unread}")
    return tuple(notes)


def _why(result: Result) -> str:
    """What could not be read, after a sentence."""
    return f": {result.unread}" if result.unread.number else ""
