"""What was measured. Plain data: it goes to JSON and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

OURS = "dask_bpe"
OTHER = "OTHER RESULT"
FAILED = "failed"


@dataclass
class Row:
    """One contestant.

    Attributes
    ----------
    name : the contestant.
    n_bytes : of its text.
    first : seconds of its first call, which warms up; the figure itself where no run follows.
    runs, cpu : seconds of the timed runs, by the wall clock and of all its threads.
    peak : largest resident size up to the end of the first call, in bytes.
    same : whether its result is what it must be; None where there is nothing to compare with.
    slower : times that it is slower than what it is compared with; None where that is refused or nothing.
    error : why it has no figures.
    facts : what else it told.
    """

    name: str
    n_bytes: int = 0
    first: float = 0.0
    runs: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: int = 0
    same: bool | None = None
    slower: float | None = None
    error: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The figure that counts."""
        return median(self.runs or [self.first])

    @property
    def speed(self) -> float:
        """Megabytes a second."""
        return self.n_bytes / 1e6 / self.seconds

    @property
    def problem(self) -> str:
        """Why nothing can be said of it; empty if something can."""
        if self.error:
            return FAILED
        return OTHER if self.same is False else ""


@dataclass
class Contest:
    """Contestants that did the same; `labels` say on which text, with which vocabulary."""

    job: str
    labels: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    def row(self, name: str) -> Row | None:
        """The row of a contestant, if it took part."""
        return next((row for row in self.rows if row.name == name), None)

    @property
    def place(self) -> str:
        """The labels in a line."""
        return ", ".join(self.labels.values())


@dataclass
class Figures:
    """All that a run of the benchmark found, and what it stands on."""

    command: str = ""
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    texts: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    results: dict[str, list[Contest]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the medians for those who read the file."""
        data = asdict(self)
        for contests, plain in zip(self.results.values(), data["results"].values(), strict=True):
            for contest, contest_data in zip(contests, plain, strict=True):
                for row, row_data in zip(contest.rows, contest_data["rows"], strict=True):
                    row_data["seconds"] = row.seconds
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Figures:
        """What `to_json` made."""
        results = {
            job: [
                Contest(
                    contest["job"],
                    contest["labels"],
                    [Row(**{key: value for key, value in row.items() if key != "seconds"}) for row in contest["rows"]],
                )
                for contest in contests
            ]
            for job, contests in data["results"].items()
        }
        return cls(**(data | {"results": results}))

    def problems(self) -> Iterator[str]:
        """What makes the run a failure."""
        for job, error in self.broken.items():
            yield f"{job}: {error}"
        for contests in self.results.values():
            for contest in contests:
                for row in contest.rows:
                    if row.problem:
                        yield f"{contest.job}, {contest.place}: {row.name}: {row.error or row.problem}"
