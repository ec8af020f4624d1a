"""Measures dask_bpe beside its peers and prints the tables of the README.

    scripts/bench --text english.txt --vocab gpt2/ --megabytes 150 --json figures.json
    scripts/bench --text english.txt --vocab gpt2/ --quick
    scripts/bench --patterns english.txt multilingual.txt code.txt --vocab gpt2/ --megabytes 20

Every contestant works in a fresh process (`bench_peers.py`), on the same prefix of the text, cut where a
document ends. After a warm-up of each they take turns, run by run. `--vocab` is a folder with GPT-2's
vocab.json, merges.txt and tokenizer.json. Memory is
measured on a text chained from the files of `--chain` (default: the text); where they do not suffice they
come once more with the case of every letter swapped, which makes other pre-tokens: no text is seen twice.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import bench_patterns
import bench_report
from bench_peers import CONTESTANTS, DONE, READ_BYTES, SEPARATOR, Task

JOBS = ("train", "encode", "start", "memory")
OURS = "dask_bpe"
PROCESSES_AT_ONCE = 4


class Bench:
    """Runs jobs in fresh processes and keeps what they report."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder

    def task(self, text: Path) -> Task:
        """A task with an empty folder of its own."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        options = self.options
        return Task(
            text=str(text),
            vocabulary=str(options.vocab or ""),
            folder=str(scratch),
            vocab_size=options.vocab_size,
            threads=os.cpu_count() or 1,
        )

    def launch(self, job: str, peer: str, task: Task, cache: Path | None = None) -> subprocess.Popen[bytes]:
        """Start the process of one job; `cache` is where the kernels' machine code is kept."""
        folder = Path(task.folder)
        task_file = folder / "task.json"
        task_file.write_text(json.dumps(asdict(task)))
        command = [sys.executable, str(Path(__file__).with_name("bench_peers.py"))]
        environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
        with (folder / "log").open("wb") as log:
            return subprocess.Popen(
                [*command, job, peer, str(task_file), str(folder / "result.json")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )

    def collect(self, process: subprocess.Popen[bytes], task: Task) -> dict[str, Any]:
        """End the process and take its result; its files are deleted."""
        folder = Path(task.folder)
        process.communicate()
        if process.returncode != 0:
            sys.exit(f"A benchmark process failed:\n{(folder / 'log').read_text(errors='replace')}")
        result: dict[str, Any] = json.loads((folder / "result.json").read_text())
        shutil.rmtree(folder)
        return result

    def measure(self, job: str, text: Path) -> dict[str, dict[str, Any]]:
        """One job for each of its contestants. All warm up, then they take turns: the machine's speed drifts."""
        options = self.options
        running: dict[str, tuple[subprocess.Popen[bytes], Task]] = {}
        runs = {}
        for peer in CONTESTANTS[job]:
            if options.peers is not None and not peer.startswith(OURS) and peer not in options.peers:
                continue
            say(f"{job}: {peer}")
            task = self.task(text)
            began = time.perf_counter()
            running[peer] = self.launch(job, peer, task), task
            wait_until_done(running[peer][0])
            slow = time.perf_counter() - began > options.patience
            runs[peer] = min(options.runs, options.slow_runs) if slow else options.runs
        for turn in range(options.runs):
            say(f"{job}: run {turn + 1} of {options.runs}")
            for peer, (process, _) in running.items():
                if turn < runs[peer] and process.poll() is None and process.stdin is not None:
                    process.stdin.write(b"go\n")
                    process.stdin.flush()
                    wait_until_done(process)
        return {peer: self.collect(process, task) for peer, (process, task) in running.items()}

    def seconds_to_first(self, job: str, peer: str, cache: Path | None, processes: int = 1) -> float:
        """Seconds from launching Python to the end of the job's first call, in the slowest process."""
        tasks = [self.task(Path()) for _ in range(processes)]
        began = time.time()
        running = [self.launch(job, peer, task, cache) for task in tasks]
        results = [self.collect(process, task) for process, task in zip(running, tasks, strict=True)]
        if len({result["digest"] for result in results}) != 1:
            sys.exit(f"Processes that started at once got different ids: {job}, {peer}")
        return max(float(result["finished_at"]) for result in results) - began

    def starts(self, runs: int) -> dict[str, float]:
        """Seconds to the first id: with nothing compiled yet, and in later processes."""
        found: dict[str, float] = {}
        say("start: empty cache")
        cache = Path(tempfile.mkdtemp(dir=self.folder))
        found["dask_bpe, first ever: first id"] = self.seconds_to_first("start", OURS, cache)
        say(f"start: empty cache, {PROCESSES_AT_ONCE} processes at once")
        together = Path(tempfile.mkdtemp(dir=self.folder))
        label = f"dask_bpe, first ever, {PROCESSES_AT_ONCE} processes at once: first id of the last"
        found[label] = self.seconds_to_first("start", OURS, together, PROCESSES_AT_ONCE)
        say("start: empty cache, everything")
        ready = Path(tempfile.mkdtemp(dir=self.folder))
        found["dask_bpe, first ever: trained and encoded"] = self.seconds_to_first("ready", OURS, ready)
        for peer in CONTESTANTS["start"]:
            say(f"start: {peer}")
            times = [self.seconds_to_first("start", peer, cache) for _ in range(max(runs, 1))]
            found[f"{peer}: first id"] = median(times)
        return found

    def memory(self, sizes: list[int], sources: list[Path]) -> list[dict[str, Any]]:
        """Peak memory of encoding texts of these sizes (megabytes), once each."""
        rows = []
        for megabytes in sizes:
            text = self.folder / f"chained-{megabytes}.txt"
            say(f"memory: chaining {megabytes} MB")
            n_bytes = write_documents(text, chained(sources), megabytes * 10**6)
            for peer in [OURS, *(self.options.memory_peers or [])]:
                say(f"memory: {peer}, {megabytes} MB")
                task = self.task(text)
                result = self.collect(self.launch("encode", peer, task), task)
                rows.append({"peer": peer, "bytes": n_bytes, **pick(result, "first_seconds", "peak_memory")})
            text.unlink()
        return rows


def wait_until_done(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process's warm-up or timed run, or for its own end."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.decode(errors="replace").strip() == DONE:
            return


def pick(result: dict[str, Any], *names: str) -> dict[str, Any]:
    """Those entries of the result."""
    return {name: result[name] for name in names}


def chained(sources: list[Path]) -> Iterator[bytes]:
    """Blocks of all files in turn, then the same with the case of every letter swapped."""
    for swapped in (False, True):
        for source in sources:
            with source.open(encoding="utf-8", errors="replace", newline="") as file:
                while block := file.read(READ_BYTES):
                    if swapped:
                        # The separator keeps its case: it is what cuts the text into documents.
                        block = block.swapcase().replace(SEPARATOR.swapcase(), SEPARATOR)
                    yield block.encode()


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file."""
    with path.open("rb") as file:
        while block := file.read(READ_BYTES):
            yield block


def write_documents(path: Path, text: Iterator[bytes], limit: int) -> int:
    """Write whole documents of at most `limit` bytes, each ended by the separator; the bytes written.

    Reads and writes blocks: a child process inherits the parent's peak memory, so the parent stays small.
    """
    separator = SEPARATOR.encode()
    written, end = 0, 0
    with path.open("w+b") as file:
        tail = b""
        for block in text:
            block = block[: limit - written]
            file.write(block)
            # The separator may straddle two blocks.
            found = (tail + block).rfind(separator)
            if found >= 0:
                end = written - len(tail) + found + len(separator)
            written += len(block)
            tail = (tail + block)[-len(separator) + 1 :]
            if written == limit:
                break
        if written < limit * 0.99:
            sys.exit(f"The files given hold {written / 1e6:.0f} MB of text; {limit / 1e6:.0f} MB were asked for.")
        if end == 0:
            sys.exit(f"No document ends in the first {written:,} bytes: there is no {SEPARATOR} in them.")
        file.truncate(end)
    return end


def say(line: str) -> None:
    """Progress, on standard error."""
    print(f"  {line}", file=sys.stderr, flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a text file of documents ended by <|endoftext|>")
    parser.add_argument(
        "--patterns", nargs="+", type=Path, metavar="TEXT", help="measure every split pattern on these texts instead"
    )
    parser.add_argument("--vocab", type=Path, help="folder with GPT-2's vocabulary (all jobs but train need it)")
    parser.add_argument("--megabytes", type=int, default=150, help="use a prefix of this size (150)")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="ids to train (32000)")
    parser.add_argument("--runs", type=int, default=5, help="timed runs after the warm-up; the median counts (5)")
    parser.add_argument("--patience", type=float, default=30, help="a slow contestant's warm-up takes longer (30 s)")
    parser.add_argument(
        "--slow-runs", type=int, default=1, help="timed runs of slow contestants (1); 0: their warm-up is the figure"
    )
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="what to measure (all)")
    parser.add_argument("--peers", nargs="*", metavar="PEER", help="only these beside dask_bpe")
    parser.add_argument("--chain", nargs="+", type=Path, metavar="FILE", help="texts for the memory job")
    parser.add_argument("--memory-megabytes", nargs="+", type=int, default=[1000, 2000], metavar="MB")
    parser.add_argument("--memory-peers", nargs="*", metavar="PEER", help="who else takes the memory job (none)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where temporary files go")
    parser.add_argument("--quick", action="store_true", help="small sizes, three minutes in all")
    options = parser.parse_args(arguments)
    if options.quick:
        options.megabytes = min(options.megabytes, 5)
        options.vocab_size = min(options.vocab_size, 8000)
        options.runs = min(options.runs, 2)
        options.memory_megabytes = [50]
    if (options.text is None) == (options.patterns is None):
        parser.error("either --text or --patterns is needed")
    if options.vocab is None and options.jobs != ["train"]:
        parser.error("--vocab is needed for every job but train")
    return options


def main() -> None:
    """Measure and report."""
    options = parse()
    if options.patterns:
        bench_patterns.run(options)
        return
    with tempfile.TemporaryDirectory(dir=options.work, prefix="bench-") as name:
        folder = Path(name)
        bench = Bench(options, folder)
        text = folder / options.text.name
        n_bytes = write_documents(text, blocks(options.text), options.megabytes * 10**6)
        figures: dict[str, Any] = {"machine": bench_report.machine(), "versions": bench_report.versions()}
        figures["command"] = " ".join(["scripts/bench", *sys.argv[1:]])
        figures["corpus"] = {"name": text.name, "bytes": n_bytes, "sha256": bench_report.sha256(text)}
        figures["options"] = {"vocab_size": options.vocab_size, "runs": options.runs}
        for job in ("train", "encode"):
            if job in options.jobs:
                figures[job] = bench.measure(job, text)
        text.unlink()
        if "start" in options.jobs:
            figures["start"] = bench.starts(options.runs)
        if "memory" in options.jobs:
            figures["memory"] = bench.memory(options.memory_megabytes, options.chain or [options.text])
    bench_report.compare(figures)
    print(bench_report.markdown(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if different := [peer for peer, result in figures.get("encode", {}).items() if not result["identical"]]:
        sys.exit(f"Other ids than ours from: {', '.join(different)}")


if __name__ == "__main__":
    main()
