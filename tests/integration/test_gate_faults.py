"""The growth part of the latency gate fails when a turn scans all names or a recall scans all talk.

Each test puts that fault into the real class, measures as `python -m benchmarks.gate` does, with fewer rounds, and
compares with the limits of `benchmarks/baseline.json`. Only ratios of CPU time are judged.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rapidfuzz.distance import Levenshtein

from benchmarks import gate, gate_growth
from benchmarks.table import write_campaign
from glyphoxa.config.campaign_file import read_campaign
from tests.support.proof import proof_only

pytestmark = proof_only

ROUNDS = 2
LIMITS = gate.read_limits(gate.BASELINE)


def test_gate_reports_a_name_corrector_that_scans_all_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = read_campaign(write_campaign(tmp_path, gate.SIZE)).campaign
    names = gate_growth.TableNames
    correct = names.correct

    def scan_first(self, text, /, **options):
        for entry in self.current.entries:
            Levenshtein.distance(text, entry.name)
        return correct(self, text, **options)

    monkeypatch.setattr(names, "correct", scan_first)
    growth = gate_growth.names_growth(campaign, rounds=ROUNDS)

    assert gate.Verdict(gate.NAMES, growth.ratio, LIMITS[gate.NAMES]).is_regression


def test_gate_reports_a_recall_that_scans_all_talk(monkeypatch: pytest.MonkeyPatch) -> None:
    recall_in, recall = gate_growth._recall, gate_growth.Recall.recall_nowait
    turns: dict[object, int] = {}

    async def counted(n_turns):
        made = await recall_in(n_turns)
        turns[made] = n_turns
        return made

    def scan_first(self, campaign, viewer, query):
        for n in range(turns[self]):
            Levenshtein.distance(query.text, str(n))
        return recall(self, campaign, viewer, query)

    monkeypatch.setattr(gate_growth, "_recall", counted)
    monkeypatch.setattr(gate_growth.Recall, "recall_nowait", scan_first)
    growth = gate_growth.talk_growth(rounds=ROUNDS)

    assert gate.Verdict(gate.TALK, growth.ratio, LIMITS[gate.TALK]).is_regression
