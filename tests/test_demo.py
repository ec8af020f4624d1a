"""The demo that the README begins with ends well."""

from __future__ import annotations

from pathlib import Path

import demo
import pytest


def test_the_round_trip_is_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "FOLDER", tmp_path / "demo")
    monkeypatch.setattr(demo, "VOCAB_SIZE", 1000)
    demo.main()
    assert capsys.readouterr().out.count("decoded again: identical") == 2
