from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks import extraction
from benchmarks.extraction import measured, read_gold
from glyphoxa.domain.errors import InvalidInput

DATA = Path(extraction.__file__).parent / "data" / "extraction"


@pytest.mark.parametrize("half", ["tune", "test"])
def test_the_rules_keep_what_they_reach_on_our_own_scenes(half: str) -> None:
    _, report = asyncio.run(measured(DATA / half))
    assert report["scenes"] == 6
    assert report["without_evidence"] == 0
    for key, least in {
        "entity_f1_known": 95,
        "entity_f1_new": 75,
        "relationship_precision": 85,
        "fact_precision": 90,
    }.items():
        assert float(str(report[key])) >= least, key


def test_what_is_found_is_compared_with_what_a_scene_tells(tmp_path: Path) -> None:
    (tmp_path / "mill.yaml").write_text((DATA / "tune" / "mill.yaml").read_text("utf-8"), "utf-8")
    lines = ["Odo Thistlewick lives in Harrowford.", "Grimjaw is dead."]
    turns = [
        {"campaign": "mill", "session": "s", "turn": n, "id": f"T{n}", "speaker": "Bran", "text": text, "at": None}
        for n, text in enumerate(lines)
    ]
    scene = {
        "campaign": "mill",
        "session": "s",
        "from": "T0",
        "to": "T1",
        "entities": [
            {"name": "Odo Thistlewick", "known": False},
            {"name": "Harrowford", "known": True},
            {"name": "Elowen Marsh", "aliases": ["Elowen"], "known": True},
        ],
        "relationships": [
            {"source": "Harrowford", "type": "HOME_OF", "target": "Odo Thistlewick", "evidence": ["T0"]},
            {"source": "Elowen", "type": "KNOWS", "target": "Harrowford", "evidence": ["T1"]},
        ],
        "facts": [{"subject": "Grimjaw", "about": "state", "value": "he is dead", "evidence": ["T0"]}],
    }
    for name, rows in (("turns", turns), ("gold", [scene])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    figures, report = asyncio.run(measured(tmp_path))
    assert report["relationship_precision"] == 100.0
    assert report["relationship_recall"] == 50.0
    assert report["fact_recall"] == 0.0, "another line is its evidence"
    assert report["entity_f1_new"] == 100.0
    assert report["entity_precision"] == round(200 / 3, 1), "Grimjaw is none of the scene's"
    assert {each["what"] for each in figures.failures} == {
        "false entity",
        "missed entity",
        "missed relationships",
        "false facts",
        "missed facts",
    }


def test_both_halves_are_printed_with_counts(tmp_path: Path) -> None:
    spoken = tmp_path / "spoken.jsonl"
    turn = {"campaign": "mill", "session": "s2", "turn": 0, "id": "T0", "speaker": "Ann", "text": "I am a smith."}
    spoken.write_text(json.dumps({**turn, "at": None}) + "\n", "utf-8")
    plain = (DATA / "tune" / "mill.yaml").read_text("utf-8")
    smith = {"subject": "Wenna", "about": "occupation", "value": "smith", "evidence": ["T0"]}
    scene = {"campaign": "mill", "session": "s2", "from": "T0", "to": "T0", "entities": [{"name": "Wenna"}]}
    for half, sessions in (("tune", "s1"), ("test", "s1 and s2")):
        (tmp_path / half).mkdir()
        played = f"entities:\n- {{name: Wenna, type: player, attributes: {{played_by: Ann, played_in: {sessions}}}}}"
        (tmp_path / half / "mill.yaml").write_text(plain.replace("entities:", played), "utf-8")
        (tmp_path / half / "gold.jsonl").write_text(json.dumps({**scene, "facts": [smith]}) + "\n", "utf-8")
    options = extraction._options().parse_args([str(tmp_path), "--turns", str(spoken)])
    report = asyncio.run(extraction.measure(options, tmp_path))
    counts = {half: report[half]["counts"]["facts"] for half in ("tune", "test")}  # type: ignore[index]
    assert counts["tune"] == {"labels": 1, "met": 0, "found": 0, "right": 0}, "Ann plays Wenna in another session"
    assert counts["test"] == {"labels": 1, "met": 1, "found": 1, "right": 1}


@pytest.mark.parametrize(
    "scene",
    [
        {"campaign": "mill"},
        {"campaign": "mill", "from": "t0:1", "to": "t0:2", "entities": [{"type": "npc"}]},
        {"campaign": "mill", "from": "t0:1", "to": "t0:2", "entities": [], "facts": [{"subject": "Odo"}]},
        {"campaign": "mill", "from": "t0:1", "to": "t0:2", "entities": [], "relationships": [7]},
        [],
    ],
)
def test_it_says_which_line_is_no_scene(tmp_path: Path, scene: object) -> None:
    (tmp_path / "gold.jsonl").write_text(json.dumps(scene) + "\n", "utf-8")
    with pytest.raises(InvalidInput, match=r"gold\.jsonl:1"):
        read_gold(tmp_path / "gold.jsonl")


def test_a_scene_that_ends_before_it_begins_is_told(tmp_path: Path) -> None:
    for name in ("mill.yaml", "turns.jsonl"):
        (tmp_path / name).write_text((DATA / "tune" / name).read_text("utf-8"), "utf-8")
    scene = {"campaign": "mill", "from": "t0:2", "to": "t0:1", "entities": []}
    (tmp_path / "gold.jsonl").write_text(json.dumps(scene) + "\n", "utf-8")
    with pytest.raises(InvalidInput, match="stands before"):
        asyncio.run(measured(tmp_path))
