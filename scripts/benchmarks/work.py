"""What the process of a contestant gets, a `Task`, and what it makes of it, a `Work`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.texts import READ_BYTES, SEPARATOR
from benchmarks.vocabularies import VocabularyFile

# How a line of standard output begins that is a report of the process.
MARK = "--- report "
# For those who take lists: all ids of a corpus as Python integers would fill the memory.
DOCUMENTS_PER_CALL = 1024


@dataclass(frozen=True)
class Task:
    """One contestant of one job.

    Attributes
    ----------
    job, contestant : which set-up, of `benchmarks.jobs`.
    folder : an empty one of its own.
    text : path of the text; valid UTF-8.
    vocabulary : file of the vocabulary.
    threads : how many it may use.
    settings : what else the job needs.
    """

    job: str
    contestant: str
    folder: str
    text: str = ""
    vocabulary: VocabularyFile | None = None
    threads: int = 1
    settings: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """As an argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """What `to_json` made."""
        data = json.loads(text)
        if data["vocabulary"]:
            data["vocabulary"] = VocabularyFile(**data["vocabulary"])
        return cls(**data)

    @property
    def files(self) -> VocabularyFile:
        """The vocabulary, of a job that has one."""
        assert self.vocabulary is not None
        return self.vocabulary

    def path(self, name: str) -> Path:
        """A path in the folder."""
        return Path(self.folder) / name

    def read(self) -> bytes:
        """The text."""
        return Path(self.text).read_bytes()

    def documents(self) -> Iterator[str]:
        """What lies before, between and behind the separators, for those who cannot read a file; a block in memory
        at most. The last document is empty where the text ends with a separator."""
        rest = b""
        with Path(self.text).open("rb") as file:
            while block := file.read(READ_BYTES):
                *documents, rest = (rest + block).split(SEPARATOR.encode())
                for document in documents:
                    yield document.decode()
        yield rest.decode()

    def document_batches(self) -> Iterator[list[str]]:
        """The same, a list of documents at a time."""
        documents = self.documents()
        while batch := list(islice(documents, DOCUMENTS_PER_CALL)):
            yield batch


def no_facts(result: Any) -> dict[str, Any]:
    """Nothing more to tell."""
    return {}


@dataclass(frozen=True)
class Work:
    """What a contestant does after its set-up.

    Attributes
    ----------
    run : what is timed; called again and again.
    made : what `run` made, as bytes that are the same for whoever made the same. Not timed.
    facts : other figures that `run` returned.
    """

    run: Callable[[], Any]
    made: Callable[[Any], Iterable[bytes]]
    facts: Callable[[Any], dict[str, Any]] = no_facts


SetUp = Callable[[Task], Work]


def file_blocks(path: Path) -> Iterator[bytes]:
    """The content of a file, as `Work.made` gives it."""
    with path.open("rb") as file:
        while block := file.read(READ_BYTES):
            yield block
