"""Benchmarks read the documented files, print the documented keys as their last line, and name a line that is wrong."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.labelled import DATA
from benchmarks.recall_data import TurnIds
from benchmarks.runner import STOPPED, run
from glyphoxa.domain.errors import InvalidInput

SAID = ("I promise you the silver ring and the map.", "Okay.", "Hm.", "Odo Thistlewick lives in Harrowford.")
TURNS = [
    {"campaign": "mill", "session": "s", "turn": n, "id": f"T{n}", "speaker": "Bran", "text": text, "at": None}
    for n, text in enumerate(SAID)
]
LABELS = [{"campaign": "mill", "id": f"T{n}", "keep": n == 0} for n in range(4)]
SCENE = {
    "campaign": "mill",
    "session": "s",
    "from": "T0",
    "to": "T3",
    "entities": [{"name": "Odo Thistlewick", "known": False}, {"name": "Harrowford", "known": True}],
    "relationships": [
        {"source": "Harrowford", "type": "HOME_OF", "target": "Odo Thistlewick", "evidence": ["T3"]},
        {"source": "Harrowford", "type": "KNOWS", "target": "Harrowford", "evidence": ["T1"]},
    ],
}
CASE = {
    "id": "c1",
    "npcs": [{"id": "oskar", "name": "Oskar", "role": "blacksmith", "present": True}],
    "players": [{"id": "kara", "name": "Kara"}, {"id": "tom", "name": "Tom"}],
    "speaker": "kara",
    "text": "Oskar, is it done?",
    "expected": ["oskar"],
}


def lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, rows in (("turns", TURNS), ("labels", LABELS), ("gold", [SCENE]), ("questions", [])):
        lines(tmp_path / f"{name}.jsonl", rows)
    lines(tmp_path / "cases.jsonl", [CASE, {**CASE, "language": "de", "expected": []}])
    (tmp_path / "mill.yaml").write_bytes((DATA / "extraction" / "tune" / "mill.yaml").read_bytes())
    (tmp_path / "N.tsv").write_text("Eldrinax\tnpc\nIronhold\tlocation\nPhandalin\tlocation\n")
    (tmp_path / "P.tsv").write_text("elder nacks\tEldrinax\niron hold\tIronhold\nFinland\tPhandalin\nfog\tEldrinax\n")
    (tmp_path / "C.txt").write_text("I asked the elder about the iron.\nEldrinax lives in Ironhold.\n\n")
    (tmp_path / "L.tsv").write_text("Finland\tPhandalin\nFog\tPhandelin\n")
    return tmp_path


def main(name: str, *arguments: object) -> int:
    code: int = import_module(f"benchmarks.{name}").main([*map(str, arguments)])
    return code


NAMES = ("--names", "N.tsv", "--pairs", "P.tsv", "--clean", "C.txt")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("names", *NAMES), {"names": 3, "recall": 50, "wrong": 0, "false_per_1000_words": 0}),
        (("names", *NAMES, "--learn", "L.tsv"), {"recall": 75}),
        (("address", "cases.jsonl"), {"cases": 2, "accuracy": 50.0, "false_answers": 100.0, "missed": 0.0}),
        (("salience", "."), {"labels": 4, "precision": 100.0, "recall": 100.0, "f1": 100.0, "written_percent": 25.0}),
        (("extraction", "."), {"scenes": 1, "entity_f1_new": 100.0, "relationship_recall": 50.0}),
    ],
)
def test_last_line_has_the_figures(
    data: Path,
    command: tuple[str, ...],
    expected: dict[str, float],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(data)
    assert main(*command) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures | expected == figures


@pytest.mark.parametrize(
    ("file", "content", "command", "complaint"),
    [
        ("P.tsv", "iron hold\tIronhold\nno tab here\n", ("names", *NAMES), "P.tsv:2: 'no tab here'"),
        ("cases.jsonl", '\n{"id": "a"}\n', ("address", "cases.jsonl"), "cases.jsonl:2: npcs: Field required"),
        ("labels.jsonl", '{"campaign": "c"}\n', ("salience", "."), "labels.jsonl:1"),
        ("gold.jsonl", '{"campaign": "mill"}\n', ("extraction", "."), "gold.jsonl:1: 'from' is missing"),
        ("turns.jsonl", "[1]\n", ("recall", "."), "turns.jsonl:1: no JSON object"),
        ("turns.jsonl", '{"id"\n', ("recall", "."), "turns.jsonl:1: no JSON"),
        ("lines.tsv", "fr\tBonjour [Odo].\n", ("new_names", "lines.tsv"), "lines.tsv:1: .*valid: de or en"),
        ("lines.tsv", "en\tx\tnow\tYsra waits.\n", ("statements", "lines.tsv"), "lines.tsv:1: .*valid: a language"),
        ("lines.tsv", "en\t2\tI promise.\n", ("sayings", "lines.tsv"), "lines.tsv:1: .*valid: a language, 1 or 0"),
    ],
)
def test_wrong_line_is_named_with_its_place(
    data: Path,
    file: str,
    content: str,
    command: tuple[str, ...],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(data)
    Path(file).write_text(content, "utf-8")
    assert main(*command) == 1
    with pytest.raises(InvalidInput, match=complaint):
        raise InvalidInput(capsys.readouterr().err)


def test_unknown_arm_of_recall_is_refused_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("recall", tmp_path / "nowhere", "--arm", "full", "bm52") == 1
    assert "no arm 'bm52'; did you mean 'bm25'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "meant", "unknown"),
    [
        (["D8:6; D9:17"], ("D8:6", "D9:17"), 0),
        (["D:9:17"], ("D9:17",), 0),
        (["D08:06", "D8:6"], ("D8:6",), 0),
        (["D9:17, D9:99"], ("D9:17",), 1),
        (["a turn with blanks"], ("a turn with blanks",), 0),
    ],
)
def test_published_evidence_ids_are_split_and_compared(named: list[str], meant: tuple[str, ...], unknown: int) -> None:
    assert TurnIds(["D8:6", "D9:17", "a turn with blanks"]).evidence(named) == (meant, unknown)


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidInput("no such arm"), 1), (FileNotFoundError("none.tsv"), 1), (asyncio.CancelledError(), STOPPED)],
)
def test_error_becomes_an_exit_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def measure(_: argparse.Namespace, __: Path) -> Mapping[str, Any]:
        raise error

    assert run(argparse.Namespace(), measure) == code
    assert capsys.readouterr().out == ""
