"""The benchmark of what is named, over the path of a turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import precision
from benchmarks.precision_cases import BELIEFS, CASES, SESSIONS
from tests.support.precision import belief, case, only


def test_the_path_of_a_turn_gives_what_is_named_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beliefs = [
        belief("sloop", "sloop_vesper", "Vesper"),
        belief("ketch", "old_ketch", "Vesper", scope=["domain:attic"]),
        belief("rig", "gaff_rig", epistemic_status="superseded", superseded_by="bermuda"),
        belief("bermuda", "bermuda_rig", pinned=True, type="decision"),
        belief("berth", "which_berth", "berthing", type="open_question", pinned=True),
        belief("moored", "vesper_moored", "moorings", type="relation", participants=["sloop", "berth"]),
        belief("theirs", "bowsprit", user_id="other-user"),
    ]
    cases = [
        case("alias", "How is Vesper?", only("sloop")),
        case("both", "How is Vesper?", only("sloop", "ketch"), scope=["domain:boats", "domain:attic"]),
        case("other-scope", "How is Vesper?", only("ketch"), scope=["domain:attic"]),
        case("typo", "paint the Vespre", only("sloop")),
        case("superseded", "the gaff rig", only() | {"pinnedFacts": {"mustInclude": ["bermuda"]}}),
        case("relation", "check the moorings", only("moored", "sloop")),
        case("question", "berthing", only() | {"openQuestions": {"mustInclude": ["berth"]}}),
        case("full", "Vesper", only(), budget={"maxBeliefs": 1}),
        case("theirs", "a bowsprit", only()),
        case("wrong", "How is Vesper?", only("ketch")),
    ]
    turn = {"scope": ["domain:boats"], "userMessage": "the dinghy", "expect": only()}
    session = {
        "caseId": "learning",
        "turns": [
            turn | {"turnIndex": 0, "createBeliefAtTurn": belief("dinghy", "dinghy")},
            turn
            | {
                "turnIndex": 1,
                "expect": only("dinghy"),
                "updateBeliefAtTurn": {"beliefId": "dinghy", "addAliases": ["tender"]},
            },
            turn | {"turnIndex": 2, "userMessage": "the tender", "expect": only("dinghy")},
        ],
    }
    for name, records in ((BELIEFS, beliefs), (CASES, cases), (SESSIONS, [session])):
        (tmp_path / name).write_text(json.dumps(records))
    assert precision.main([str(tmp_path), "--arm", "live"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["failures"] == ["wrong"]
    assert (figures["passed"], figures["cases"]) == (9, 10)
    assert (figures["session_passed"], figures["session_cases"]) == (3, 3)
