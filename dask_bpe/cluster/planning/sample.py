"""What a sample of a corpus says of it: how fast its text is read, counted, merged, encoded and written here.

All of it with the code of the real jobs, on one thread, after everything was compiled and done once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from dask_bpe.cluster.planning import clock
from dask_bpe.cluster.planning.growth import Growth
from dask_bpe.cluster.planning.sample_pieces import choose
from dask_bpe.cluster.planning.sample_work import MOMENT, Counting, Encodings, Merges, Wanted, warm_up
from dask_bpe.errors import InputError
from dask_bpe.io.source import SourceFile
from dask_bpe.progress import Progress

# Tables that the sample is counted in, and partitions that it is encoded in: enough to add up.
_PARTS = 4


@dataclass(frozen=True)
class FormatSample:
    """How files of one format did.

    Attributes
    ----------
    name : such as "text" or "jsonl in gzip".
    n_bytes, text_bytes : bytes of the files, and of the text in them.
    seconds : to take them apart: to decompress, parse, cut, check UTF-8, beside the reading itself.
    """

    name: str
    n_bytes: int
    text_bytes: int
    seconds: float

    @property
    def expansion(self) -> float:
        """Bytes of text for a byte of the file."""
        return self.text_bytes / self.n_bytes


@dataclass(frozen=True)
class Sample:
    """What was measured. Speeds are those of one thread.

    Attributes
    ----------
    n_pieces, n_bytes, text_bytes, n_bad : pieces; bytes of files, bytes of text in them; what could not be read.
    seconds, busy : that all of it took, and the share of them in which no CPU was free: that does not count below.
    read : bytes of files a second.
    formats : the formats of the files.
    count, freeze, combine : bytes of text a second into a table of counts; distinct pre-tokens a second out of it, in
        order; and through an addition of two such counts.
    distinct, distinct_bytes : growth of the number of distinct pre-tokens, and of their bytes together.
    vocab_size, n_merges : of the vocabulary that is planned for, and merges that were made on the sample.
    merge_base, merge_each : seconds for these merges, whatever the counts, and for each distinct pre-token.
    encode : bytes of text a second into ids.
    bytes_per_token : of text.
    write, shard_bytes : bytes of shards a second, and bytes of shards for a byte of text.
    dtype : of the ids.
    """

    n_pieces: int
    n_bytes: int
    text_bytes: int
    n_bad: int
    seconds: float
    busy: float
    read: float
    formats: tuple[FormatSample, ...]
    count: float
    freeze: float
    combine: float
    distinct: Growth
    distinct_bytes: Growth
    vocab_size: int
    n_merges: int
    merge_base: float
    merge_each: float
    encode: float
    bytes_per_token: float
    write: float
    shard_bytes: float
    dtype: str

    def merge_seconds(self, distinct: float) -> float:
        """Seconds that the merges take on so many distinct pre-tokens."""
        return self.merge_base + self.merge_each * distinct


def measure(files: Sequence[SourceFile], n_bytes: int, wanted: Wanted, progress: Progress) -> Sample:
    """Read about `n_bytes` of the files, and do with it all that the jobs would do.

    Raises
    ------
    InputError
        When the pieces that were chosen hold no text.
    """
    began, waited = time.perf_counter(), clock.waited()
    pieces = choose(files, n_bytes, wanted.how)
    parts = [pieces[k * len(pieces) // _PARTS : (k + 1) * len(pieces) // _PARTS] for k in range(_PARTS)]
    parts = [part for part in parts if part]
    total = sum(piece.n_bytes for piece in pieces)
    warm_up(pieces[0], wanted)
    # Every byte is read twice: to be counted, and to be encoded.
    progress.start("sampling", 2 * total, "B")
    counting = Counting(wanted)
    for part in parts:
        counting.count(part, progress)
    counting.add_up()
    if not counting.text_bytes:
        raise InputError(f"the {len(pieces)} pieces of the sample hold no text in {total:,} bytes: take a larger one")
    merges = Merges.of(counting.sums, wanted)
    encodings = Encodings(merges.tokenizer, wanted)
    encodings.encode(parts, progress)
    progress.finish("sampling")
    distinct, distinct_bytes = counting.growth()
    passed = time.perf_counter() - began
    return Sample(
        n_pieces=len(pieces),
        n_bytes=total,
        text_bytes=counting.text_bytes,
        n_bad=counting.n_bad,
        seconds=passed,
        busy=(clock.waited() - waited) / passed,
        read=counting.read_bytes / max(counting.read_seconds, MOMENT),
        formats=tuple(FormatSample(name, *totals) for name, totals in sorted(counting.formats.items())),
        count=counting.text_bytes / max(counting.count_seconds, MOMENT),
        freeze=max(counting.n_frozen, 1) / max(counting.freeze_seconds, MOMENT),
        combine=counting.combining(),
        distinct=distinct,
        distinct_bytes=distinct_bytes,
        vocab_size=wanted.vocab_size,
        n_merges=merges.n_merges,
        merge_base=merges.base,
        merge_each=merges.each,
        encode=encodings.speed(),
        bytes_per_token=encodings.text_bytes / max(encodings.n_tokens, 1),
        write=encodings.written / max(encodings.write_seconds, MOMENT),
        shard_bytes=encodings.written / encodings.text_bytes,
        dtype=encodings.dtype,
    )
