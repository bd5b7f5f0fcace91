import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import precision
from benchmarks.precision_cases import BELIEFS as BELIEFS_FILE
from benchmarks.precision_cases import CASES as CASES_FILE
from benchmarks.precision_cases import SESSIONS as SESSIONS_FILE
from tests.support.precision import belief, case, only

BELIEFS = [
    belief("sloop", "sloop_vesper", "Vesper"),
    belief("ketch", "old_ketch", "Vesper", scope=["domain:attic"]),
    belief("rig", "gaff_rig", epistemic_status="superseded", superseded_by="bermuda"),
    belief("bermuda", "bermuda_rig", pinned=True, type="decision"),
    belief("berth", "which_berth", "berthing", type="open_question", pinned=True),
    belief("fee", "harbour_fee", type="open_question", resolved_at="2026-10-02T00:00:00Z"),
    belief("moored", "vesper_moored", "moorings", type="relation", participants=["sloop", "berth", "fee"]),
    belief("manners", "manners", scope=["user:universal"], pinned=True),
    belief("theirs", "bowsprit", user_id="other-user"),
]
CASES = [
    case("alias", "How is Vesper?", only("sloop")),
    case("both", "How is Vesper?", only("sloop", "ketch"), scope=["domain:boats", "domain:attic"]),
    case("other-scope", "Vesper", only(), scope=["domain:sky", "user:universal"]),
    case("typo", "paint the Vespre", only("sloop")),
    case("superseded", "the gaff rig", only() | {"pinnedFacts": {"mustInclude": ["bermuda"]}}),
    case("resolved", "the harbour fee", {"openQuestions": {"mustInclude": ["berth"], "mustExclude": ["fee"]}}),
    case("relation", "check the moorings", only("moored", "sloop")),
    case("question", "berthing", only() | {"pinnedFacts": {"mustExclude": ["berth", "manners"]}}),
    case("full", "Vesper", only() | {"pinnedFacts": {"mustInclude": ["bermuda"]}}, budget={"maxBeliefs": 1}),
    case("theirs", "a bowsprit", only()),
    case("stranger", "Vesper", only(), userId="new-user"),
    case("persona", "", only() | {"personaPrelude": {"contains": ["manners"]}}),
]
SESSIONS = [
    {
        "caseId": "refit",
        "turns": [
            {
                "turnIndex": 0,
                "scope": ["domain:boats"],
                "userMessage": "Shall we varnish Vesper?",
                "expect": only("sloop"),
                "updateBeliefAtTurn": {"beliefId": "sloop", "addAliases": ["the old lady"]},
                "createBeliefAtTurn": belief("varnish", "varnishing", "varnish"),
            },
            {
                "turnIndex": 1,
                "scope": ["domain:boats"],
                "userMessage": "How much varnish?",
                "expect": only("varnish") | {"noiseCheck": {"mustNotSurface": ["sloop"]}},
                "updateBeliefAtTurn": {"beliefId": "varnish", "addAliases": ["shellac"]},
            },
        ],
    },
    {
        "caseId": "later",
        "turns": [
            {
                "turnIndex": 0,
                "scope": ["domain:boats"],
                "userMessage": "Is there shellac left?",
                "expect": {
                    "relevantBeliefs": {"shouldOnlyInclude": ["varnish"], "pinnedFacts": {"mustInclude": ["bermuda"]}}
                },
            }
        ],
    },
]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(beliefs: object = BELIEFS, cases: object = CASES, sessions: object = SESSIONS) -> Path:
        for name, content in zip((BELIEFS_FILE, CASES_FILE, SESSIONS_FILE), (beliefs, cases, sessions), strict=True):
            (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        return tmp_path

    return written


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert precision.main([str(argument) for argument in arguments]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return figures


def test_the_last_line_holds_the_figures(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    figures = run(capsys, write())
    assert figures["failures"] == []
    assert (figures["passed"], figures["cases"]) == (len(CASES), len(CASES))
    assert (figures["session_passed"], figures["session_cases"]) == (3, 3)
    assert figures["p95_ms"] >= figures["p50_ms"] >= 0


def test_a_crowd_beside_the_beliefs_changes_nothing(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, write(), "--beside", "200")["failures"] == []


@pytest.mark.parametrize(
    "expect",
    [
        only(),
        only("sloop", "moored"),
        {"relevantBeliefs": {"mustInclude": ["moored"]}},
        {"relevantBeliefs": {"shouldInclude": ["moored"]}},
        {"relevantBeliefs": {"mustExclude": ["sloop"]}},
        {"relevantBeliefs": {"pinnedFacts": {"mustInclude": ["ketch"]}}},
        {"pinnedFacts": {"mustInclude": ["berth"]}},
        {"pinnedFacts": {"mustExclude": ["bermuda"]}},
        {"openQuestions": {"mustInclude": ["sloop"]}},
        {"openQuestions": {"mustExclude": ["berth"]}},
        {"noiseCheck": {"mustNotSurface": ["sloop"]}},
    ],
)
def test_whatever_is_otherwise_than_expected_is_a_failure(
    write: Write, capsys: pytest.CaptureFixture[str], expect: dict[str, Any]
) -> None:
    figures = run(capsys, write(cases=[case("wrong", "How is Vesper?", expect), *CASES[1:]]))
    assert figures["failures"] == ["wrong"]
    assert figures["passed"] == len(CASES) - 1


def test_what_failed_is_said(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    precision.main([str(write(cases=[case("wrong", "How is Vesper?", only("ketch"))]))])
    assert "wrong: relevantBeliefs shouldOnlyInclude: ['ketch'], given ['sloop']" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"beliefs": [{"_id": "bare"}]}, "beliefs.seed.json: belief 'bare': has no 'canonical_name'"),
        ({"beliefs": {"_id": "bare"}}, "not a list of JSON objects"),
        ({"cases": ["one"]}, "retrieval.cases.json: not a list of JSON objects"),
        ({"cases": [{"caseId": "bare"}]}, "case 'bare': has no 'query'"),
        ({"cases": [{**CASES[0], "expect": {"pinnedFacts": None}}]}, "case 'alias': not as PrecisionMemBench has it"),
        ({"sessions": [{"caseId": "s", "turns": [{}]}]}, "session-retrieval.cases.json: case 's': has no "),
        ({"beliefs": [belief("odd", "odd", scope=None)]}, "belief 'odd': not as PrecisionMemBench has it"),
        ({"beliefs": []}, "gives aliases to 'sloop', which is no belief"),
    ],
)
def test_a_bad_file_is_one_clear_error(
    write: Write, capsys: pytest.CaptureFixture[str], files: dict[str, object], complaint: str
) -> None:
    assert precision.main([str(write(**files))]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1


def test_a_missing_file_is_named(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    directory = write()
    (directory / "retrieval.cases.json").unlink()
    assert precision.main([str(directory)]) == 2
    assert f"{directory / 'retrieval.cases.json'}: No such file" in capsys.readouterr().err


def test_a_file_that_is_no_json_is_named_with_its_line(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    directory = write()
    (directory / "beliefs.seed.json").write_text('[\n{"_id": }]', encoding="utf-8")
    assert precision.main([str(directory)]) == 2
    assert "beliefs.seed.json, line 2: no JSON" in capsys.readouterr().err
