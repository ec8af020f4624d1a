"""The command line of `scripts/bench`."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from benchmarks import jobs
from benchmarks.contest import PEERS

ABOUT = """Measures dask_bpe beside its peers: prints tables in Markdown, and which of its bars are reached.

    scripts/bench --texts english.txt multilingual.txt code.txt \\
        --vocabs gpt2/ cl100k_base.tiktoken o200k_base.tiktoken --json figures.json --plot figures.svg
    scripts/bench --texts english.txt --vocabs gpt2/ --quick
    scripts/bench --texts english.txt --vocabs gpt2/ --jobs encode train --peers gigatoken
    scripts/bench --report figures.json --plot figures.svg
    scripts/bench --patterns english.txt multilingual.txt code.txt --vocabs gpt2/ --megabytes 20

The first text should be English: some bars are for English. Documents are separated by <|endoftext|>; a file without
it is one document. A vocabulary is a folder with GPT-2's vocab.json, merges.txt and tokenizer.json, or a file of ranks
under the name that OpenAI gave it. Every contestant works in a fresh process. After a warm-up of each, their results
are compared; those that made the same take turns, run by run. Slow peers (tiktoken and HF tokenizers, in training
rustbpe and HF tokenizers) are timed once.
"""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; `--quick` has made them small."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--texts", nargs="+", type=Path, default=[], metavar="TEXT", help="text files")
    add("--vocabs", nargs="+", type=Path, default=[], metavar="VOCABULARY", help="folders, or files of ranks")
    add("--jobs", nargs="+", choices=jobs.NAMES, default=list(jobs.NAMES), metavar="JOB", help=", ".join(jobs.NAMES))
    add("--patterns", nargs="+", type=Path, metavar="TEXT", help="measure every split pattern on these texts instead")
    add("--report", type=Path, metavar="JSON", help="measure nothing, report what such a file holds")
    add("--json", type=Path, metavar="FILE", help="write the figures here, after every job")
    add("--plot", type=Path, metavar="FILE", help="draw encoding and training here, as SVG or what the name says")
    add("--quick", action="store_true", help="small sizes, one text, one vocabulary: some three minutes")
    add("--peers", nargs="*", choices=PEERS, metavar="PEER", help=f"only these beside dask_bpe, of {', '.join(PEERS)}")
    add("--memory-peers", nargs="*", choices=PEERS, default=[], metavar="PEER", help="more of them in the job memory")
    add("--runs", type=int, default=5, help="timed runs after the warm-up; the median counts (5)")
    add("--large-runs", type=int, default=3, help="the same for scaling and pathological texts (3)")
    add("--megabytes", type=float, default=150, help="of every text, from its start (150)")
    add(
        "--slow-megabytes", type=float, default=20, help="of that for tiktoken and HF tokenizers where they encode (20)"
    )
    add("--large-megabytes", type=float, default=1000, help="of all texts, for memory and scaling (1000)")
    add("--growth-megabytes", nargs="+", type=float, default=[100, 300, 1000, 3000], metavar="MB")
    add("--whole-megabytes", type=float, default=20, help="for training without pre-tokenization (20)")
    add("--whole-slow-megabytes", type=float, default=2, help="of that for HF tokenizers (2)")
    add("--pathological-megabytes", type=float, default=10, help="of each pathological text (10)")
    add("--vocab-size", type=int, default=32_000, help="ids to train (32000)")
    add("--whole-vocab-size", type=int, default=4000, help="the same without pre-tokenization (4000)")
    add("--distinct", type=int, default=1_000_000, help="pre-tokens to train from counts of (1000000)")
    add("--limit", type=float, default=1800, help="seconds that a call may take (1800)")
    add("--work", type=Path, metavar="FOLDER", help="where temporary files go, some 10 GB")
    options = parser.parse_args(arguments)
    if options.quick:
        _make_quick(options)
    _check(parser, options)
    return options


def _make_quick(options: argparse.Namespace) -> None:
    options.texts, options.vocabs = options.texts[:1], options.vocabs[:1]
    options.runs = options.large_runs = 1
    options.megabytes = min(options.megabytes, 5)
    options.slow_megabytes = options.whole_megabytes = options.whole_slow_megabytes = options.pathological_megabytes = 1
    options.large_megabytes = 40
    options.growth_megabytes = [10, 30]
    options.vocab_size = min(options.vocab_size, 8000)
    options.whole_vocab_size = 1000
    options.distinct = 50_000


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    for path in (*options.texts, *options.vocabs, *(options.patterns or ()), *filter(None, [options.report])):
        if not path.exists():
            parser.error(f"{path} does not exist")
    for path in (options.json, options.plot):
        if path and not path.absolute().parent.is_dir():
            parser.error(f"{path.parent} is no folder")
    if options.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib, which is not installed")
    for paths in (options.texts, options.vocabs):
        if len({path.stem for path in paths}) < len(paths):
            parser.error(f"two of {', '.join(map(str, paths))} have the same name")
    if options.report:
        return
    if not options.vocabs:
        parser.error("--vocabs is needed")
    if options.patterns:
        if not options.vocabs[0].is_dir():
            parser.error("--patterns needs a folder with GPT-2's vocabulary")
    elif not options.texts:
        parser.error("--texts, --patterns or --report is needed")
