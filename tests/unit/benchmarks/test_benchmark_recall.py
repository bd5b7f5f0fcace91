"""The recall benchmark: its input, its arms and its figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.prefetch import Injected, Spoken
from benchmarks.prefetch import figures as prefetch_figures
from benchmarks.recall import Answer, as_line, compared, figures, paired_interval, quality
from benchmarks.recall_arms import STAGES, chosen, without_a_stage
from benchmarks.recall_data import WITNESS, Question, RecallData, TurnIds, campaign_of, read_data, utterances_of
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.recall import RecallSettings

CAMPAIGN = CampaignId("the-fen")


def asked(*evidence: str, id: str = "q", category: str = "single-hop") -> Question:
    return Question(id, CAMPAIGN, "Who rang the bell?", category, evidence)


def answered(ranked: Sequence[str], *evidence: str, category: str = "single-hop", ms: float = 1.0) -> Answer:
    return Answer(asked(*evidence, category=category), tuple(ranked), ms)


def written(directory: Path, turns: Sequence[object], questions: Sequence[object]) -> Path:
    for name, lines in (("turns", turns), ("questions", questions)):
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return directory


def a_turn(id: str, *, session: str = "s01", at: str | None = None, campaign: str = CAMPAIGN) -> dict[str, object]:
    return {"campaign": campaign, "session": session, "turn": 0, "id": id, "speaker": "Merle", "text": id, "at": at}


def a_question(*evidence: str, campaign: str = CAMPAIGN) -> dict[str, object]:
    return {"id": "q1", "campaign": campaign, "question": "Who?", "category": "recap", "evidence": evidence}


# -- what is read


@pytest.mark.parametrize(
    ("named", "meant", "unknown"),
    [
        (["D8:6"], ("D8:6",), 0),
        (["D8:6; D9:17"], ("D8:6", "D9:17"), 0),
        (["D:9:17"], ("D9:17",), 0),
        (["D08:06", "D8:6"], ("D8:6",), 0),
        (["D9:17, D9:99"], ("D9:17",), 1),
        (["a turn with blanks"], ("a turn with blanks",), 0),
        (["D", ""], (), 1),
    ],
)
def test_evidence_that_is_nearly_an_id_is_that_turn(named: list[str], meant: tuple[str, ...], unknown: int) -> None:
    assert TurnIds(["D8:6", "D9:17", "a turn with blanks"]).evidence(named) == (meant, unknown)


def test_an_id_that_may_be_two_turns_is_none() -> None:
    assert TurnIds(["D1:11", "D01:11"]).evidence(["D001:11", "D1:11"]) == (("D1:11",), 1)


def test_what_names_no_turn_is_dropped_and_counted(tmp_path: Path) -> None:
    questions = [a_question("D1:1", "D7:7"), a_question("D9:9"), a_question(), a_question("D1:1", campaign="another")]
    data = read_data(written(tmp_path, [a_turn("D1:1")], questions))
    assert [question.evidence for question in data.questions] == [("D1:1",)]
    assert (data.evidence_dropped, data.without_evidence) == (3, 3)


def test_evidence_may_be_one_text_and_a_turn_may_say_nothing(tmp_path: Path) -> None:
    question = {**a_question(), "evidence": "D1:1, D1:2"}
    data = read_data(written(tmp_path, [a_turn("D1:1"), {**a_turn("D1:2"), "text": ""}], [question]))
    assert data.questions[0].evidence == ("D1:1", "D1:2")
    assert data.turns[CAMPAIGN][1].text == ""


def test_turns_without_a_time_follow_each_other_and_sessions_are_a_week_apart(tmp_path: Path) -> None:
    turns = [a_turn("1"), a_turn("2"), a_turn("3", session="s02"), a_turn("4", session="s02")]
    [said] = read_data(written(tmp_path, turns, [])).turns.values()
    first, second, third, fourth = (turn.at_ms for turn in said)
    assert first < second < third < fourth
    assert third - second == 7 * 24 * 3_600_000


def test_a_time_that_is_told_is_kept(tmp_path: Path) -> None:
    turns = [a_turn("1", at="2023-05-08T13:56:00Z"), a_turn("2"), a_turn("3", at="2023-05-08T15:56:00+02:00")]
    [said] = read_data(written(tmp_path, turns, [])).turns.values()
    assert [turn.at_ms - 1_683_554_160_000 for turn in said] == [0, 5_000, 0]


@pytest.mark.parametrize(
    ("turns", "questions", "says"),
    [
        ([a_turn("1"), a_turn("1")], [], "the same id"),
        ([{**a_turn("1"), "text": None}], [], "turns.jsonl:1: text is None"),
        ([a_turn("1", at="yesterday")], [], "1: at is 'yesterday'"),
        ([["no", "object"]], [], "turns.jsonl:1: no JSON object"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, turns: list[object], questions: list[object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        read_data(written(tmp_path, turns, questions))


def test_a_directory_without_the_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"turns\.jsonl cannot be read"):
        read_data(tmp_path)


def test_two_campaigns_may_have_turns_of_the_same_id(tmp_path: Path) -> None:
    turns = [a_turn("1"), a_turn("1", campaign="other")]
    data = read_data(written(tmp_path, turns, [a_question("1"), a_question("1", campaign="other")]))
    said = [one for turns in data.turns.values() for one in utterances_of(turns)]
    assert len({one.id for one in said}) == 2
    assert all(one.witnesses == {WITNESS} for one in said)
    assert len(data.first(1).questions) == 1 and data.first(1).n_turns == 2


def test_the_campaign_knows_who_speaks_and_the_one_who_listens(tmp_path: Path) -> None:
    data = read_data(written(tmp_path, [a_turn("1"), a_turn("2")], []))
    campaign = campaign_of(CAMPAIGN, data.turns[CAMPAIGN])
    assert [player.name for player in campaign.players] == ["Merle"]
    assert campaign.npc(WITNESS).entity_id in {entity.id for entity in campaign.entities}


# -- figures


def test_recall_is_the_share_of_the_evidence_among_the_first() -> None:
    answer = answered([*"abcdefghijkl"], "c", "f", "l", "z")
    assert [answer.recall_at(k) for k in (2, 5, 10, 20)] == [0, 0.25, 0.5, 0.75]
    assert answer.reciprocal_rank == pytest.approx(1 / 3)


def test_what_is_not_found_counts_nothing() -> None:
    answer = answered([*"abc"], "z")
    assert (answer.reciprocal_rank, answer.recall_at(20), answer.is_missed) == (0, 0, True)
    assert answered([], "z").is_missed


def test_figures_are_means_over_questions_and_by_category() -> None:
    answers = [
        answered([*"ab"], "a", ms=2.0),
        answered([*"ba"], "a", ms=4.0),
        answered([*"bc"], "a", category="recap", ms=6.0),
        answered([*"bcdefghijka"], "a", category="recap", ms=8.0),
    ]
    measured = figures(answers)
    assert (measured["questions"], measured["r5"], measured["r20"], measured["hit10"]) == (4, 50, 75, 50)
    assert measured["mrr"] == pytest.approx(100 * (1 + 1 / 2 + 1 / 11) / 4, abs=0.01)
    assert measured["by_category"]["recap"]["r10"] == 0
    assert measured["p50_ms"] == 5
    assert quality([]) == {"questions": 0}


def test_an_arm_is_compared_question_by_question() -> None:
    better = [answered([*"ab"], "a") for _ in range(40)]
    worse = [answered([*"cb"] if n % 2 else [*"ab"], "a") for n in range(40)]
    found = compared(better, worse)
    assert found["diff"] == 50
    assert 20 < found["low"] < 50 < found["high"] < 80
    assert found["hit10"]["diff"] == 50 and found["mrr"]["low"] > 20
    assert [each["diff"] for each in found["by_category"].values()] == [50]
    assert compared(worse, worse)["diff"] == compared(worse, worse)["mrr"]["high"] == 0


def test_an_interval_is_the_same_in_every_run_and_narrower_with_more() -> None:
    few = [float(n % 2) for n in range(20)]
    assert paired_interval(few) == paired_interval(few)
    _, low, high = paired_interval(few)
    _, lower, higher = paired_interval(few * 25)
    assert higher - lower < high - low
    assert paired_interval([]) == (0, 0, 0)


def test_a_line_of_the_file_holds_what_it_takes_to_look_into_it() -> None:
    line = as_line("bm25", answered([f"x{n}" for n in range(30)], "x1", "x25"))
    assert (line["arm"], line["id"], line["campaign"], len(line["ranked"])) == ("bm25", "q", CAMPAIGN, 20)
    assert (line["r10"], line["rr"], line["evidence"]) == (0.5, 0.5, ["x1", "x25"])


def test_coverage_and_tokens_are_of_all_that_was_asked() -> None:
    some, none = Injected(covers=True, tokens=10), Injected(tokens=20)
    found = prefetch_figures([Spoken(some, none, none, 1.0, ()), Spoken(none, none, none, 3.0, ())])
    assert (found["coverage"], found["coverage_before_final"]) == (50, 0)
    assert (found["tokens_mean"], found["tokens_max"]) == (15, 20)


def test_evidence_outside_the_prompt_is_found_by_a_tool_or_not() -> None:
    some, none = Injected(covers=True), Injected()
    asked = [Spoken(some, none, none, 1.0, ()), *(Spoken(none, none, none, 1.0, (), it) for it in (True, False, False))]
    found = prefetch_figures(asked)
    assert (found["beyond_prompt"], found["found_by_tool"], found["found_by_neither"]) == (75, 25, 50)


# -- arms


def test_each_stage_of_the_ranking_can_be_switched_off_alone() -> None:
    shipped = RecallSettings()
    off = without_a_stage(shipped)
    assert {f"no-{stage}" for stage in STAGES} <= set(off)
    assert off["no-speaker"].weights.by_words == {
        name: weight for name, weight in shipped.weights.by_words.items() if name != "speaker"
    }


def test_an_arm_that_is_not_there_is_named_with_those_that_are() -> None:
    there_are = {"bm25": 1, "dense": 2}
    assert chosen(["dense", "dense"], there_are) == ["dense"]
    assert chosen(["all"], there_are) == ["bm25", "dense"]
    with pytest.raises(InvalidInput, match=r"no arm 'bm52'.*bm25"):
        chosen(["bm52"], there_are)


def test_the_data_can_be_cut_to_its_first_questions() -> None:
    data = RecallData({}, [replace(asked("a"), id=f"q{n}") for n in range(5)])
    assert [question.id for question in data.first(2).questions] == ["q0", "q1"]
    assert data.first(None) is data
