from __future__ import annotations

import json

import pytest

from benchmarks import chronicle


def test_it_measures_a_session_that_is_caught_up_and_how_soon_a_worker_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["chronicle", "--utterances", "40", "--wakes", "2"])
    assert chronicle.main() == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["utterances"] == 40
    assert figures["events"] > 20
    assert figures["order_violations"] == 0
    assert figures["start_p50_ms"] > 0
