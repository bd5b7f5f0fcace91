"""The benchmark of address detection: its cases, what went before them, and how it counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.address import Case, decided, figures, main, read_cases, verdict
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId
from glyphoxa.turns.address import Addressed

DATA = Path(__file__).parents[3] / "benchmarks" / "data" / "address"
NPCS = [
    {"id": "oskar", "name": "Oskar", "role": "blacksmith", "present": True},
    {"id": "mirelle", "name": "Mirelle", "aliases": ["Miri"], "role": "innkeeper", "present": True},
    {"id": "tib", "name": "Tib", "role": "page", "present": False},
]
ANSWERED = [
    {"speaker": "kara", "text": "Miri, what is that?", "to": "mirelle", "seconds_ago": 9},
    {"speaker": "mirelle", "text": "A lantern.", "to": "kara", "seconds_ago": 5},
]


def a_case(text: str, expected: list[str], **changes: Any) -> Case:
    players = [{"id": "kara", "name": "Kara"}, {"id": "tom", "name": "Tom"}]
    case = {"id": "c1", "npcs": NPCS, "players": players, "speaker": "kara", "text": text, "expected": expected}
    return Case.model_validate({**case, **changes})


@pytest.mark.parametrize(
    ("case", "npc"),
    [
        (a_case("Oskar, is it done?", ["oskar"]), "oskar"),
        (a_case("Tib, is it done?", []), None),
        (a_case("And how much is it?", ["mirelle"], before=ANSWERED), "mirelle"),
        (a_case("And how much is it?", [], before=[{**ANSWERED[0], "seconds_ago": 300}]), None),
    ],
)
def test_the_products_parts_decide_after_what_went_before(case: Case, npc: str | None) -> None:
    assert decided(case)[0].npc == npc


def test_an_answer_of_the_wrong_kind_is_counted_as_what_it_is() -> None:
    for_oskar, for_nobody = a_case("", ["oskar", "mirelle"]), a_case("", [])
    oskar = Addressed(NpcId("oskar"), "", second=NpcId("mirelle"))
    mirelle, nobody = replace(oskar, npc=NpcId("mirelle"), second=None), Addressed(None, "")
    judged = [(for_oskar, oskar), (for_oskar, mirelle), (for_oskar, nobody), (for_nobody, oskar), (for_nobody, nobody)]
    assert [verdict(*pair) for pair in judged] == ["right", "wrong_npc", "missed", "false_answer", "right"]
    told = figures(judged)
    assert (told["cases"], told["accuracy"], told["false_answers"]) == (5, 40.0, 50.0)
    assert (told["missed"], told["wrong_npc"], told["second_right"]) == (33.3, 33.3, 33.3)


def test_the_last_line_is_the_figures_and_failures_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [a_case("Oskar, is it done?", ["oskar"], kind="name"), a_case("Oskar, is it done?", [], language="de")]
    (tmp_path / "cases.jsonl").write_text("".join(f"{case.model_dump_json()}\n" for case in rows), "utf-8")
    assert main([str(tmp_path / "cases.jsonl"), "--failures", str(tmp_path / "wrong.jsonl")]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["by_language"]["de"]["false_answers"] == 100.0
    assert {"cases", "accuracy", "false_answers", "missed", "wrong_npc", "second_right"} <= told.keys()
    wrong = (tmp_path / "wrong.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(row)["npc"] for row in wrong] == ["oskar"]


def test_a_line_that_is_no_case_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('\n{"id": "a"}\n', "utf-8")
    with pytest.raises(InvalidInput, match=r"cases\.jsonl:2: npcs: Field required"):
        read_cases(path)
    with pytest.raises(InvalidInput, match=r"none\.jsonl cannot be read"):
        read_cases(tmp_path / "none.jsonl")


def test_the_set_is_large_in_two_languages_and_its_halves_have_different_casts() -> None:
    tune, test = read_cases(DATA / "tune.jsonl"), read_cases(DATA / "test.jsonl")
    assert len(tune) >= 200
    assert len(test) >= 200
    for half in (tune, test):
        assert min(sum(case.language == language for case in half) for language in ("en", "de")) >= 100
        assert len({case.id for case in half}) == len(half)
        assert all({*case.expected} <= {npc.id for npc in case.npcs if npc.present} for case in half)
    casts = [{npc.name for case in half for npc in case.npcs} for half in (tune, test)]
    assert casts[0].isdisjoint(casts[1])
