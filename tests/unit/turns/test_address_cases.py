"""Who is meant, by the shipped models, on labelled talk: `benchmarks/data/address`.

Single cases may be decided wrongly, so the tests hold shares. Names, corrections and decisions are those of a table.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.address import Case, decided, figures, read_cases
from benchmarks.labelled import DATA
from glyphoxa.turns.address import Addressed


@cache
def judged(name: str) -> list[tuple[Case, Addressed]]:
    return [(case, decided(case)[0]) for case in read_cases(DATA / "address" / name)]


@pytest.mark.parametrize(
    ("name", "least_right", "most_false", "most_missed"),
    [("short.jsonl", 90, 6, 12), ("test.jsonl", 88, 11, 12)],
)
def test_shares_of_right_false_and_missed_answers(
    name: str, least_right: float, most_false: float, most_missed: float
) -> None:
    found = figures(judged(name))
    assert found["accuracy"] is not None
    assert found["false_answers"] is not None
    assert found["missed"] is not None
    assert found["accuracy"] >= least_right
    assert found["false_answers"] <= most_false
    assert found["missed"] <= most_missed


def test_every_decision_has_a_reason_and_only_those_present_answer() -> None:
    for case, addressed in judged("test.jsonl"):
        present = {npc.id for npc in case.npcs if npc.present}
        assert addressed.reason
        assert (addressed.npc is None) == (addressed.unaddressed is not None)
        assert addressed.npc is None or addressed.npc in present
        assert addressed.second != addressed.npc or addressed.npc is None


def test_words_of_the_players_own_world_reach_no_ear() -> None:
    for case, addressed in judged("short.jsonl"):
        if case.kind == "out_of_character" and not case.expected:
            assert addressed.npc is None, case.text


def test_a_world_of_talk_gives_a_case_for_each_labelled_line(tmp_path: Path) -> None:
    world = tmp_path / "harbour.txt"
    world.write_text(
        "world: harbour\nlanguage: en\nnpc: wim | Old Wim | the ferryman | ferryman\nnpc: tilda | Tilda |  | cook\n"
        "player: kest | Kest\nscene: wim\n3 kest > wim : wim how much to get across {name}\n"
        "2 wim > kest : Two coppers.\n"
        "4 kest > - : that's robbery guys {player}\n",
        "utf-8",
    )
    first, second = read_cases(world)
    assert (first.expected, first.kind, first.before, first.world) == (["wim"], "name", [], "harbour")
    assert [npc.present for npc in first.npcs] == [True, False]
    assert [(said.speaker, said.to) for said in second.before] == [("kest", "wim"), ("wim", "kest")]
    assert second.before[1].seconds_ago == pytest.approx(4.0)
