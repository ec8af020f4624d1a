"""The work of the jobs done on pieces of a corpus, and what each kind of it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from dask_bpe.cluster.contents import Content, Reading
from dask_bpe.cluster.encode_partition import Encoding, write_content
from dask_bpe.cluster.planning import clock
from dask_bpe.cluster.planning.growth import Growth
from dask_bpe.cluster.planning.sample_pieces import Piece, beginning, format_name, read_piece
from dask_bpe.count_table import CountTable
from dask_bpe.counts import PretokenCounts, combine
from dask_bpe.io.inputs import InputFormat
from dask_bpe.io.job import JobFolder
from dask_bpe.io.origins import Origins
from dask_bpe.io.paths import is_remote
from dask_bpe.io.series import ShardSeries
from dask_bpe.io.shards import Shard, ShardWriter, TokenIds, open_writer
from dask_bpe.io.source import read_range
from dask_bpe.pretokenize import PatternSpec, Scanner, get_pattern
from dask_bpe.progress import Progress
from dask_bpe.tokenizer import Tokenizer
from dask_bpe.training.fit import fit

# Seconds that no division fails by.
MOMENT = 1e-6
_WARM_BYTES = 1 << 18
_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Wanted:
    """What the jobs would be asked for, as far as it changes their speed.

    vocab_size, tokenizer : ids in all, and what encodes; None: what is trained on the sample.
    pattern, special_tokens : what cuts the text.
    how, format : the formats of the files and of the shards.
    """

    vocab_size: int
    tokenizer: Tokenizer | None
    pattern: PatternSpec
    special_tokens: tuple[str, ...]
    how: InputFormat
    format: str

    def reading_to_count(self) -> Reading:
        """As `count_pretokens` reads."""
        everything = frozenset(range(len(self.special_tokens)))
        return Reading(
            self.pattern, self.special_tokens, everything, "replace", 0, (), "quarantine", self.how, "encode"
        )

    def reading_to_encode(self, tokenizer: Tokenizer, patience: int) -> Reading:
        """As `encode_corpus` reads."""
        vocabulary = tokenizer.vocabulary
        specials = tuple(vocabulary.special_tokens)
        separator = specials.index("<|endoftext|>") if "<|endoftext|>" in specials else 0
        separators = frozenset({separator} if specials else ())
        rules = tuple(vocabulary.added_rules.items())
        return Reading(vocabulary.cut_pattern, specials, separators, "replace", patience, rules, "quarantine", self.how)


def warm_up(piece: Piece, wanted: Wanted) -> None:
    """Count, add up and merge a little, so that nothing is compiled or loaded while a clock runs."""
    reading = wanted.reading_to_count()
    with beginning(piece, wanted.how) as ready:
        contents = (item for item in read_piece(ready, reading) if isinstance(item, Content))
        text = next((content.text[:_WARM_BYTES] for content in contents), np.zeros(1, np.uint8))
    counts = _frozen(_counted(text, np.array([[0], [len(text)]]), wanted), wanted)
    fit(combine([counts, counts]), 256 + len(wanted.special_tokens) + 1)


def _counted(text: npt.NDArray[np.uint8], segments: npt.NDArray[np.int64], wanted: Wanted) -> CountTable:
    table = CountTable()
    table.add_segments(text, segments, Scanner(get_pattern(wanted.pattern)), 0)
    return table


def _frozen(table: CountTable, wanted: Wanted) -> PretokenCounts:
    return PretokenCounts.from_table(
        table, pattern=get_pattern(wanted.pattern).spec, special_tokens=wanted.special_tokens
    )


def _ignore(*_: object, **__: object) -> None:
    """Nobody is told."""


class Counting:
    """Counts parts of the sample, each in a table of its own, and adds them up.

    Attributes
    ----------
    sums : the counts of one part, of two together, and so on, up to all.
    formats : by name: bytes of files, bytes of text, seconds to take them apart.
    text_bytes, n_bad : read, and not read.
    read_bytes, read_seconds, count_seconds, n_frozen, freeze_seconds, n_combined, combine_seconds : work and time.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted, self._reading = wanted, wanted.reading_to_count()
        self._parts: list[tuple[int, PretokenCounts]] = []
        # Of texts of so many pieces: bytes, and how many distinct pre-tokens or bytes of these; one, or the mean.
        self._numbers: dict[int, list[tuple[int, int]]] = {}
        self._spelled: list[tuple[int, int]] = []
        self.sums: list[PretokenCounts] = []
        self.formats: dict[str, tuple[int, int, float]] = {}
        self.text_bytes = self.n_bad = self.read_bytes = self.n_frozen = self.n_combined = 0
        self.read_seconds = self.count_seconds = self.freeze_seconds = self.combine_seconds = 0.0

    def count(self, pieces: Sequence[Piece], progress: Progress) -> None:
        """Count pieces as a block of the corpus."""
        table, scanner = CountTable(), Scanner(get_pattern(self._wanted.pattern))
        n_bytes, due = 0, 1
        for number, piece in enumerate(pieces, 1):
            for content in self._read(piece):
                began = clock.seconds()
                table.add_segments(content.text, content.segments, scanner, 0)
                self.count_seconds += clock.seconds() - began
                n_bytes += len(content.text)
            if number == due or number == len(pieces):
                self._numbers.setdefault(number, []).append((n_bytes, len(table)))
                due = 2 * number
            progress.advance("sampling", piece.n_bytes)
        self.text_bytes += n_bytes
        began = clock.seconds()
        counts = _frozen(table, self._wanted)
        self.freeze_seconds += clock.seconds() - began
        self.n_frozen += len(counts)
        self._parts.append((n_bytes, counts))

    def _read(self, piece: Piece) -> list[Content]:
        began = clock.seconds()
        for block in piece.blocks:
            stop = min(block.stop, block.start + piece.head) if piece.head else block.stop
            read_range(block.path, block.start, stop)
        raw = clock.seconds() - began
        self.read_seconds += raw
        self.read_bytes += piece.n_bytes
        with beginning(piece, self._wanted.how) as ready:
            began = clock.seconds()
            items = list(read_piece(ready, self._reading))
            seconds = clock.seconds() - began
        contents = [item for item in items if isinstance(item, Content)]
        self.n_bad += 0 if piece.head else len(items) - len(contents)
        # From a disk it comes out of the page cache the second time, from elsewhere over the network again.
        first = piece.blocks[0].path
        seconds = max(0.0, seconds - raw) if is_remote(first) else seconds
        name = format_name(first, self._wanted.how)
        before = self.formats.get(name, (0, 0, 0.0))
        n_bytes = sum(len(content.text) for content in contents)
        self.formats[name] = (before[0] + piece.n_bytes, before[1] + n_bytes, before[2] + seconds)
        return contents

    def add_up(self) -> None:
        """Add up the counts of the parts, in pairs of neighbours as the jobs do."""
        parts, n_pieces = self._parts, max(self._numbers)
        self._keep(parts, 0)
        while len(parts) > 1:
            n_pieces *= 2
            pairs = [self._add(one, other) for one, other in zip(parts[::2], parts[1::2], strict=False)]
            self._keep(pairs, n_pieces)
            parts = pairs + parts[2 * len(pairs) :]

    def _add(self, one: tuple[int, PretokenCounts], other: tuple[int, PretokenCounts]) -> tuple[int, PretokenCounts]:
        began = clock.seconds()
        both = combine([one[1], other[1]])
        self.combine_seconds += clock.seconds() - began
        self.n_combined += len(one[1]) + len(other[1])
        return one[0] + other[0], both

    def _keep(self, parts: Sequence[tuple[int, PretokenCounts]], n_pieces: int) -> None:
        self.sums.append(parts[0][1])
        self._spelled.append(_mean([(n_bytes, len(counts.strings.values)) for n_bytes, counts in parts]))
        if n_pieces:
            self._numbers[n_pieces] = [(n_bytes, len(counts)) for n_bytes, counts in parts]

    def growth(self) -> tuple[Growth, Growth]:
        """Of the number of distinct pre-tokens, and of their bytes together."""
        return Growth.fit([_mean(points) for points in self._numbers.values()]), Growth.fit(self._spelled)

    def combining(self) -> float:
        """Distinct pre-tokens that go through an addition in a second; of one part alone, as fast as out of a table."""
        if self.n_combined:
            return self.n_combined / max(self.combine_seconds, MOMENT)
        return max(self.n_frozen, 1) / max(self.freeze_seconds, MOMENT)


def _mean(points: Sequence[tuple[int, int]]) -> tuple[int, int]:
    x, y = np.array(points, np.float64).mean(axis=0)
    return round(float(x)), round(float(y))


@dataclass(frozen=True)
class Merges:
    """A tokenizer trained on the sample, or the one that was given, and what merging takes.

    base, each : seconds whatever the counts, and for each distinct pre-token.
    """

    tokenizer: Tokenizer
    n_merges: int
    base: float
    each: float

    @classmethod
    def of(cls, sums: Sequence[PretokenCounts], wanted: Wanted) -> Merges:
        """Train on some of the counts of a growing sample; the seconds as a straight line through them."""
        points: list[tuple[float, float]] = []
        for counts in {len(counts): counts for counts in (sums[0], sums[len(sums) // 2], sums[-1])}.values():
            began = clock.seconds()
            result = fit(counts, wanted.vocab_size)
            points.append((float(len(counts)), clock.seconds() - began))
        x, y = np.array(points).T
        each = float(np.polyfit(x, y, 1)[0]) if len(points) > 1 else 0.0
        # A line that falls, or meets no seconds at no counts, is noise: then all of it goes with the counts.
        each = each if 0.0 < each * x[-1] < y[-1] else float(y[-1] / max(x[-1], 1.0))
        tokenizer = wanted.tokenizer or Tokenizer(result.vocabulary)
        return cls(tokenizer, len(result.log), max(0.0, float(y[-1] - each * x[-1])), each)


class Encodings:
    """Encodes parts of the sample and writes them as one shard to a temporary folder.

    Attributes
    ----------
    dtype : of the ids.
    text_bytes, n_tokens, written : bytes of text, tokens, bytes of the shard and what lies beside it.
    write_seconds : to write them.
    """

    def __init__(self, tokenizer: Tokenizer, wanted: Wanted) -> None:
        self._tokenizer, self._wanted = tokenizer, wanted
        self.dtype = tokenizer.vocabulary.checked_dtype(None).name
        self.text_bytes = self.n_tokens = self.written = 0
        self.write_seconds = 0.0
        self._speeds: list[tuple[int, float]] = []

    def encode(self, parts: Sequence[Sequence[Piece]], progress: Progress) -> None:
        """Encode parts of the sample; to be called once."""
        vocabulary = self._tokenizer.vocabulary
        specials = vocabulary.special_tokens
        patience = sum(piece.n_bytes for piece in parts[0])
        reading = self._wanted.reading_to_encode(self._tokenizer, patience)
        end = next((specials[list(specials)[which]] for which in reading.separators), None)
        with TemporaryDirectory(prefix="dask-bpe-plan-") as folder:
            encoding = Encoding(
                JobFolder(folder, ""), reading, vocabulary.fingerprint(), self._wanted.format, self.dtype, end, None,
                _NO_LIMIT, "",
            )  # fmt: skip
            series = _TimedSeries(encoding)
            for pieces in parts:
                self._encode(pieces, series, encoding, progress)
            for shard in series.close():
                self.n_tokens += shard.tokens
                self.written += sum(file.bytes for file in shard.files)
            self.write_seconds = series.seconds

    def _encode(self, pieces: Sequence[Piece], series: _TimedSeries, encoding: Encoding, progress: Progress) -> None:
        n_bytes, seconds = 0, 0.0
        for piece in pieces:
            with beginning(piece, self._wanted.how) as ready:
                contents = [item for item in read_piece(ready, encoding.reading) if isinstance(item, Content)]
            writing = series.seconds
            began = clock.seconds()
            for content in contents:
                write_content(series, content, self._tokenizer.vocabulary, encoding, _ignore, _ignore)
            seconds += clock.seconds() - began - (series.seconds - writing)
            n_bytes += sum(len(content.text) for content in contents)
            progress.advance("sampling", piece.n_bytes)
        self.text_bytes += n_bytes
        self._speeds.append((n_bytes, seconds))

    def speed(self) -> float:
        """Bytes of text a second. The first part warms the caches up, where there are others it does not count."""
        n_bytes, seconds = np.array(self._speeds[1:] or self._speeds).sum(axis=0)
        return float(n_bytes) / max(float(seconds), MOMENT)


class _TimedSeries(ShardSeries):
    """Shards without a limit, which know the seconds that it took to write them."""

    def __init__(self, encoding: Encoding) -> None:
        def open_next(number: int, origins: Origins, continues: bool) -> ShardWriter:
            return open_writer(
                encoding.format, encoding.folder.path, f"part-{number:05d}", encoding.dtype, origins=origins,
                continues=continues, fingerprint=encoding.fingerprint, durable=False,
            )  # fmt: skip

        super().__init__(open_next, encoding.shard_tokens, continues=False)
        self.seconds = 0.0

    def write(self, ids: TokenIds, document_ends: npt.NDArray[np.int64]) -> None:
        began = clock.seconds()
        super().write(ids, document_ends)
        self.seconds += clock.seconds() - began

    def close(self) -> tuple[Shard, ...]:
        began = clock.seconds()
        shards = super().close()
        self.seconds += clock.seconds() - began
        return shards
