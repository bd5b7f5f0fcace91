"""Effects of an extraction: who is meant, who may know it, and what is not believed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from glyphoxa.chronicle.effects import MAX_CLAIMS, MAX_ENTITIES, Effects, effects_of
from glyphoxa.chronicle.talk import (
    BEFORE,
    LONGEST,
    STORED,
    ExtractedEntity,
    ExtractedFact,
    ExtractedRelation,
    Extraction,
    Kind,
    KnownEntity,
    NumberedUtterance,
    SceneTalk,
    stretches,
)
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, witnessed_by
from glyphoxa.world.event_kinds import EntityAdded, EntityScoped, FactStated
from glyphoxa.world.event_log import Event
from tests.support.builders import INNKEEPER, SMITH
from tests.support.talk import a_stretch, numbered

ODO_FOUND = ExtractedEntity("w", "Odo", "npc", (UtteranceId("u1"), UtteranceId("u2")), 0.9)
U1, U2 = UtteranceId("u1"), UtteranceId("u2")
ODO = KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo",))
WENNA = ExtractedEntity("w", "Wenna", "npc", (U1,), 0.9)


TEXT = " ".join(("Wenna is here.", *(f"Name{n} is here." for n in range(MAX_ENTITIES + 5))))


def a_talk(*heard: set[NpcId], npc: NpcId | None = None, text: str = TEXT) -> SceneTalk:
    return a_stretch(*((text, by) for by in heard or ({SMITH}, {SMITH})), npc=npc)


def events(effects: Effects) -> list[Event]:
    return [event for effect in effects.of for event in effect.events]


def stated(effects: Effects) -> list[FactStated]:
    return [event for event in events(effects) if isinstance(event, FactStated)]


def fact(*evidence: UtteranceId, about: str = "occupation", value: str = "miller", sure: float = 0.9) -> ExtractedFact:
    return ExtractedFact("w", about, value, evidence or (U1,), sure)


@pytest.mark.parametrize("kind", STORED)
def test_statement_that_does_not_hold_now_needs_review_whatever_its_confidence(kind: Kind) -> None:
    of_then = replace(fact(about=kind, sure=1.0), kind=kind)
    effects = effects_of(Extraction((WENNA,), (), (of_then, fact(sure=1.0))), a_talk(), [], findings="accept")
    assert [(one.claim.predicate, one.provenance.is_enough) for one in stated(effects)] == [
        (kind, False),
        ("occupation", True),
    ]


@pytest.mark.parametrize(
    ("is_inferred", "source", "reason"),
    [(False, "stated", "Tamsin said so"), (True, "inferred", "a model concluded it from what Tamsin said")],
)
def test_findings_of_a_model_are_inferred(is_inferred: bool, source: str, reason: str) -> None:
    one = replace(fact(), is_inferred=is_inferred)
    effects = effects_of(Extraction((WENNA,), (), (one,)), a_talk(), [])
    assert [(each.provenance.source, each.provenance.reason) for each in stated(effects)] == [(source, reason)]


def test_a_new_name_gets_an_id_that_is_free() -> None:
    taken = KnownEntity(EntityId("wenna"), "location", "Somewhere else")
    effects = effects_of(Extraction((WENNA,)), a_talk(), [taken])
    assert [event.entity for event in events(effects) if isinstance(event, EntityAdded)] == ["wenna-2"]


def test_claim_needs_all_its_lines_heard_and_a_name_any() -> None:
    effects = effects_of(
        Extraction((replace_evidence(WENNA, U1, U2),), (), (fact(U1, U2),)), a_talk({SMITH}, {SMITH, INNKEEPER}), []
    )
    [claim] = stated(effects)
    assert [knower.npc for knower in claim.visibility.knowers] == [SMITH]
    assert claim.attributes == {"evidence": ["u1", "u2"]}
    added = [event for event in events(effects) if isinstance(event, EntityAdded)]
    assert {knower.npc for knower in added[0].visibility.knowers} == {SMITH, INNKEEPER}
    assert [effect.cause.ordinal for effect in effects.of] == [1, 2]


def test_who_hears_of_somebody_later_knows_of_them_from_then_on_and_a_guarded_one_stays_guarded() -> None:
    of_talk = KnownEntity(EntityId("w"), "npc", "Wenna", (), witnessed_by([SMITH]), origin="talk")
    effects = effects_of(Extraction((WENNA,)), a_talk({INNKEEPER}), [of_talk])
    [scoped] = [event for event in events(effects) if isinstance(event, EntityScoped)]
    assert {knower.npc for knower in scoped.visibility.knowers} == {SMITH, INNKEEPER}
    guarded = KnownEntity(EntityId("w"), "npc", "Wenna", (), HIDDEN)
    assert events(effects_of(Extraction((WENNA,)), a_talk({INNKEEPER}), [guarded])) == []


@pytest.mark.parametrize("text", ["Who is Wenna?", "Maybe Wenna knows.", "I do not know any Wenna.", "Wenna?"])
def test_a_name_that_is_only_asked_about_creates_nothing(text: str) -> None:
    assert effects_of(Extraction((WENNA,)), a_talk({SMITH}, text=text), []).of == ()


def test_a_name_that_an_npc_brought_up_creates_nothing() -> None:
    said = a_talk({SMITH}, {SMITH})
    first = replace(said.said[0], utterance=replace(said.said[0].utterance, npc_id=SMITH))
    both = replace(WENNA, evidence=(U1, U2))
    assert effects_of(Extraction((both,)), replace(said, said=(first, said.said[1])), []).of == ()
    assert effects_of(Extraction((both,)), replace(said, before=(first,), said=said.said[1:]), []).of == ()


def test_npcs_line_adds_no_listeners_to_a_claim() -> None:
    said = a_talk({SMITH}, {SMITH, INNKEEPER})
    first = replace(said.said[0], utterance=replace(said.said[0].utterance, npc_id=SMITH))
    [claim] = stated(
        effects_of(Extraction((ODO_FOUND,), (), (fact(U1, U2),)), replace(said, said=(first, said.said[1])), [ODO])
    )
    assert [knower.npc for knower in claim.visibility.knowers] == [SMITH]
    assert claim.provenance.utterance_id == U2


def test_every_claim_waits_for_the_dm_unless_the_campaign_accepts_findings() -> None:
    extraction = Extraction((WENNA,), (), (fact(sure=1.0),))
    [claim] = stated(effects_of(extraction, a_talk(), []))
    assert not claim.provenance.is_enough
    [claim] = stated(effects_of(extraction, a_talk(), [], findings="accept"))
    assert claim.provenance.is_enough


def test_what_would_overrule_a_file_waits_for_the_dm() -> None:
    dead = fact(about="status", value="dead")
    [claim] = stated(effects_of(Extraction((ODO_FOUND,), (), (dead,)), a_talk(), [ODO], findings="accept"))
    assert not claim.provenance.is_enough
    [claim] = stated(effects_of(Extraction((WENNA,), (), (dead,)), a_talk(), [ODO], findings="accept"))
    assert claim.provenance.is_enough


@pytest.mark.parametrize(
    "extraction",
    [
        Extraction((ExtractedEntity("w", "", "npc", (U1,), 0.9),)),
        Extraction((ExtractedEntity("w", "x" * 200, "npc", (U1,), 0.9),)),
        Extraction((ExtractedEntity("w", "Wen\nna\x00", "npc", (U1,), 0.9),)),
        Extraction((ExtractedEntity("w", "Wenna", "npc", (UtteranceId("never-said"),), 0.9),)),
        Extraction((ExtractedEntity("w", "Wenna", "npc", (), 0.9),)),
        Extraction((), (ExtractedRelation("w", "KNOWS", "nobody", (U1,), 0.9),)),
        Extraction((), (), (fact(),)),
    ],
)
def test_what_a_model_makes_up_is_left_out_with_the_reason(extraction: Extraction) -> None:
    effects = effects_of(extraction, a_talk(), [])
    assert effects.of == ()
    assert effects.refused


@pytest.mark.parametrize(
    "bad",
    [
        fact(about="no snake case!"),
        fact(about=""),
        fact(value=""),
        fact(value="x" * 1_000_000),
        fact(UtteranceId("other-campaign/u1")),
    ],
)
def test_a_bad_fact_is_left_out_and_the_good_one_beside_it_stays(bad: ExtractedFact) -> None:
    effects = effects_of(Extraction((WENNA,), (), (bad, fact(value="baker"))), a_talk(), [])
    assert [one.claim.content for one in stated(effects)] == ["baker"]


def test_a_model_that_repeats_itself_is_cut_off_and_its_confidence_kept_in_bounds() -> None:
    names = tuple(replace(WENNA, key=f"k{n}", name=f"Name{n}") for n in range(MAX_ENTITIES + 5))
    many = tuple(replace(fact(value=f"value {n}", sure=7.5), subject="k1") for n in range(MAX_CLAIMS + 5))
    effects = effects_of(Extraction(names, (), many), a_talk(), [])
    assert len(stated(effects)) == MAX_CLAIMS
    assert {one.provenance.confidence for one in stated(effects)} == {1.0}
    assert effects.refused == ("10 findings above the limit for a stretch",)


def replace_evidence(entity: ExtractedEntity, *evidence: UtteranceId) -> ExtractedEntity:
    return replace(entity, evidence=evidence)


def line(n: int, *, at_ms: int | None = None, heard: Iterable[NpcId] = (SMITH,)) -> NumberedUtterance:
    return numbered(n, ("...", heard), at_ms=n * 1_000 if at_ms is None else at_ms)


def cut(*said: NumberedUtterance, before: tuple[NumberedUtterance, ...] = ()) -> list[tuple[list[int], list[int]]]:
    parts = stretches(CampaignId("town"), SessionId("s"), "en", said, before)
    return [([one.ordinal for one in part.before], [one.ordinal for one in part.said]) for part in parts]


def test_talk_is_cut_where_others_listen_where_all_were_silent_and_where_it_is_long() -> None:
    other = frozenset({INNKEEPER})
    assert cut() == []
    assert cut(line(1), line(2), line(3, heard=other)) == [([], [1, 2]), ([], [3])]
    assert cut(line(1), line(2, heard=frozenset({SMITH, INNKEEPER})), line(3, heard=other)) == [([], [1, 2, 3])]
    assert cut(line(1), line(2, at_ms=3_600_000)) == [([], [1]), ([], [2])]
    assert cut(line(2), before=(line(1),)) == [([1], [2])]
    long = [line(n) for n in range(1, LONGEST + 2)]
    assert cut(*long) == [
        ([], list(range(1, LONGEST + 1))),
        (list(range(LONGEST - BEFORE + 1, LONGEST + 1)), [LONGEST + 1]),
    ]
