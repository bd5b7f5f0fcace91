"""The judgement of an utterance: what follows from its words, and what a model may change about it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.chronicle.judge import RulesJudge, judgement_question, stricter
from glyphoxa.chronicle.ports import Checked, JudgedUtterance
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.talk import (
    ExtractedEntity,
    ExtractedFact,
    ExtractedRelation,
    Extraction,
    SceneTalk,
)
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.judgement.safety import Judged, Mode, Risk, TurnJudgement
from tests.support.talk import a_stretch

PROMISE = "I promise to bring you the silver ring and six crowns by Friday."
LABELS = {"spiders": "line:spiders", "torture": "veil:torture", "minors": "legal_floor:minors"}


def flags(text: str) -> tuple[str, ...]:
    return tuple(label for word, label in LABELS.items() if word in text.casefold())


RULES = RulesJudge("en", RulesExtractor("en").index, flags=flags)


def judged(text: str) -> TurnJudgement:
    [one] = asyncio.run(RULES.judge(a_stretch(text), ()))
    return one.judged.judgement


def test_a_judgement_has_exactly_five_fields_in_code_and_schema() -> None:
    names = ["mode", "risk", "flags", "note", "extract_memory"]
    schema = judgement_question("", "", ("line:spiders",)).schema
    assert [each.name for each in fields(TurnJudgement)] == names
    assert list(schema["properties"]) == schema["required"] == names
    assert schema["additionalProperties"] is False
    assert schema["properties"]["flags"]["items"]["enum"] == ["line:spiders"]


@pytest.mark.parametrize(
    ("text", "mode", "risk", "kept", "is_blocked", "review"),
    [
        (PROMISE, Mode.IN_WORLD_ANSWER, Risk.LOW, True, False, False),
        (f"{PROMISE} Or I face torture.", Mode.IN_WORLD_ANSWER, Risk.MEDIUM, True, False, True),
        (f"{PROMISE} No spiders.", Mode.SAFE_REDIRECT, Risk.MEDIUM, False, True, True),
        (f"{PROMISE} Think of the minors.", Mode.SAFE_REDIRECT, Risk.HIGH, False, True, True),
        (f"{PROMISE} Don't write that down.", Mode.MEMORY_CONSENT, Risk.LOW, False, False, False),
        (f"OOC: {PROMISE}", Mode.IN_WORLD_ANSWER, Risk.LOW, False, False, False),
        ("Hello there!", Mode.IN_WORLD_ANSWER, Risk.LOW, False, False, False),
        ("Okay, yes.", Mode.IN_WORLD_ANSWER, Risk.LOW, False, False, False),
        ("", Mode.IN_WORLD_ANSWER, Risk.LOW, False, False, False),
    ],
)
def test_mode_risk_and_gate_follow_from_the_words(
    text: str, mode: Mode, risk: Risk, kept: bool, is_blocked: bool, review: bool
) -> None:
    found = judged(text)
    assert (found.mode, found.risk, found.may_extract) == (mode, risk, kept)
    assert (found.is_blocked, found.needs_review) == (is_blocked, review)
    assert found.note


def test_nothing_is_extracted_by_default() -> None:
    assert TurnJudgement().extract_memory is False


@given(st.text(max_size=30), st.sampled_from(["spiders", "minors"]), st.text(max_size=30))
def test_redirected_line_is_never_kept(before: str, topic: str, after: str) -> None:
    found = judged(f"{before} {PROMISE} {topic} {after}")
    assert (found.mode, found.extract_memory) == (Mode.SAFE_REDIRECT, False)


judgements = st.builds(
    TurnJudgement,
    st.sampled_from(Mode),
    st.sampled_from(Risk),
    st.lists(st.sampled_from(list(LABELS.values())), unique=True).map(tuple),
    st.text(max_size=9),
    st.booleans(),
)


@given(judgements, judgements)
def test_the_stricter_judgement_wins(one: TurnJudgement, other: TurnJudgement) -> None:
    both = stricter(one, other)
    modes, risks = list(Mode), list(Risk)
    assert set(both.flags) == {*one.flags, *other.flags}
    assert modes.index(both.mode) >= max(modes.index(one.mode), modes.index(other.mode))
    assert risks.index(both.risk) >= max(risks.index(one.risk), risks.index(other.risk))
    assert both.may_extract == (other.extract_memory and both.mode is Mode.IN_WORLD_ANSWER)


ids = st.lists(st.sampled_from([UtteranceId(f"u{n}") for n in range(1, 6)]), min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["a", "b", "c"])


@given(
    st.builds(
        Extraction,
        st.lists(st.builds(ExtractedEntity, keys, st.just("A"), st.just("npc"), ids, st.just(0.5))).map(tuple),
        st.lists(st.builds(ExtractedRelation, keys, st.just("OWNS"), keys, ids, st.just(0.5))).map(tuple),
        st.lists(st.builds(ExtractedFact, keys, st.just("past"), st.just("x"), ids, st.just(0.5))).map(tuple),
    ),
    st.frozensets(st.sampled_from([UtteranceId(f"u{n}") for n in range(1, 5)])),
)
def test_no_finding_rests_only_on_context(found: Extraction, context: frozenset[UtteranceId]) -> None:
    kept = found.learned_from(replace(a_stretch(*"abcde"), context=context))
    for claim in (*kept.relations, *kept.facts):
        assert not context.issuperset(claim.evidence)
    named = {each.subject for each in kept.facts} | {key for r in kept.relations for key in (r.source, r.target)}
    assert all(each.key in named or not context.issuperset(each.evidence) for each in kept.entities)


def checked(*said: tuple[str, TurnJudgement]) -> tuple[Checked, SceneTalk]:
    talk = a_stretch(*(text for text, _ in said))
    first = [JudgedUtterance(each, Judged(one)) for each, (_, one) in zip(talk.said, said, strict=True)]
    return Checked(tuple(first), (), a_stretch("Yes.", first=len(said) + 1).said, len(said)), talk


async def test_backstop_keeps_a_missed_line_and_no_line_that_may_not_be() -> None:
    part, talk = checked(
        (PROMISE, TurnJudgement(note="missed")),
        (PROMISE, TurnJudgement(extract_memory=True)),
        (PROMISE, TurnJudgement(Mode.SAFE_REDIRECT)),
        (PROMISE, TurnJudgement(Mode.MEMORY_CONSENT)),
        (f"OOC: {PROMISE}", TurnJudgement()),
        ("Okay.", TurnJudgement()),
    )
    missed: Sequence[JudgedUtterance] = await RULES.judge_again(part, talk, ())
    assert [(each.said.ordinal, each.judged.by, each.judged.judgement.may_extract) for each in missed] == [
        (1, "backstop", True)
    ]
