"""Jobs in processes of their own that are broken, gone on with, and compared; `scripts/chaos` breaks more of them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from faults import __main__ as chaos
from faults import killing, storage
from faults.corpus import Corpus
from faults.job import Failure
from faults.trial import Encoding, Trial, encode


@pytest.fixture(scope="module")
def round_(tmp_path_factory: pytest.TempPathFactory) -> chaos.Round:
    """A corpus of seven partitions."""
    return chaos.Round(tmp_path_factory.mktemp("faults"), 250_000, seed=0)


@pytest.fixture
def encoding(round_: chaos.Round, tmp_path: Path) -> Encoding:
    """An encoding to be broken."""
    return Encoding(round_.corpus, round_.reference(Encoding), tmp_path / "trial", random.Random(0), round_.form)


def assert_all_is_well(trial: Trial) -> None:
    assert trial.injected > 0
    assert trial.check() == len(trial.corpus.documents)


def test_the_only_process_is_killed(encoding: Encoding) -> None:
    killing.process(encoding, kills=1)
    assert_all_is_well(encoding)


def test_a_worker_is_killed(encoding: Encoding) -> None:
    killing.one_worker(encoding, kills=1)
    assert_all_is_well(encoding)


@pytest.mark.slow
@pytest.mark.parametrize("fault", chaos.ALL, ids=lambda fault: fault.name)
def test_fault(fault: chaos.Fault, round_: chaos.Round, tmp_path: Path) -> None:
    common = (round_.corpus, round_.reference(fault.job), tmp_path / "trial", random.Random(fault.name))
    trial = Encoding(*common, round_.form) if fault.job is Encoding else fault.job(*common)
    with trial.at_the_end:
        try:
            (fault.short or fault.inject)(trial)
        except storage.SkippedError as reason:
            pytest.skip(str(reason))
        assert_all_is_well(trial)


class TestWhatIsWrongIsFound:
    """A check that finds nothing would make all of the above worthless."""

    @pytest.fixture
    def broken(self, encoding: Encoding) -> Encoding:
        """A trial of which the job is done, to be tampered with."""
        shutil.copytree(encoding.reference, encoding.out)
        assert encoding.check() == len(encoding.corpus.documents)
        return encoding

    def test_a_byte(self, broken: Encoding) -> None:
        path = broken.out / "part-00002.bin"
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
        with pytest.raises(Failure, match=r"part-00002\.bin has other bytes than"):
            broken.check()

    @pytest.mark.parametrize("name", ["job.lock", "part-00001.idx.tmp-0123456789ab"])
    def test_a_file_that_is_left(self, broken: Encoding, name: str) -> None:
        (broken.out / name).touch()
        with pytest.raises(Failure, match=f"left over \\['{name}'\\]"):
            broken.check()

    def test_a_record_that_is_missing(self, broken: Encoding) -> None:
        (broken.out / "part-00001.json").unlink()
        with pytest.raises(Failure, match=r"missing \['part-00001\.json'\]"):
            broken.check()

    def test_documents(self, broken: Encoding) -> None:
        documents = [*broken.corpus.documents[1:], "another"]
        broken.corpus = Corpus(broken.corpus.folder, broken.corpus.vocabulary, documents)
        with pytest.raises(Failure, match=r"1 documents are lost, 1 are doubled or other ones; one is 'another'"):
            broken.check()

    def test_it_is_the_end_of_the_program(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        def write_too_much(trial: Encoding) -> None:
            encode(trial.source, trial.corpus, trial.out, trial.form)
            (trial.out / "more").touch()

        def write(trial: Encoding) -> None:
            encode(trial.source, trial.corpus, trial.out, trial.form)

        def skip(trial: Encoding) -> None:
            raise storage.SkippedError("no such disk")

        faults = [("too much", write_too_much), ("none", write), ("other", skip)]
        monkeypatch.setattr(chaos, "ALL", [chaos.Fault(name, Encoding, inject, inject) for name, inject in faults])
        monkeypatch.setattr(chaos, "_SHORT_BYTES", 50_000)
        with pytest.raises(SystemExit, match="Not all is well"):
            chaos.main(["--short", "--folder", str(tmp_path)])
        said = capsys.readouterr()
        assert "left over ['more']" in said.err
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.out.splitlines()[2:]]
        n = rows[1][3]
        assert rows == [
            ["too much", "1", "0", n, "0", "no, 1 times"],
            ["none", "1", "0", n, n, "yes"],
            ["other", "0", "0", "0", "0", "not run: no such disk"],
        ]
        assert list(tmp_path.iterdir()), "what went wrong stays"
        chaos.main(["--short", "--folder", str(tmp_path / ".."), "--only", "none"])
        assert "| none | 1 |" in capsys.readouterr().out
