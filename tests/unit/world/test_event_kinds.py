"""No kind of event is incomplete: it can be kept, says when it cannot be said, and what it does."""

from __future__ import annotations

import re
from dataclasses import is_dataclass, replace
from inspect import getmembers
from typing import get_args

import pytest

from glyphoxa.dm.entities import NameResolver
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Visibility
from glyphoxa.language.facts import claim_in_words
from glyphoxa.language.relations import IN_ENGLISH, RelationWords
from glyphoxa.names.wrong_forms import FormHeard
from glyphoxa.world import event_kinds, event_log
from glyphoxa.world.encoding import decode, encode
from glyphoxa.world.event_kinds import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
    SlotDeclared,
)
from glyphoxa.world.event_log import (
    Cause,
    Event,
    RolledBack,
    TalkErased,
    Undoing,
    Undone,
    UtteranceCorrected,
    UtteranceRetracted,
    UtteranceWithheld,
    WorldEvent,
    apply,
    replay,
)
from glyphoxa.world.state import WorldState

SMITH, GREY, FORGE = EntityId("smith"), EntityId("grey"), EntityId("forge")
THERE = Claim.relation(SMITH, "LOCATED_AT", FORGE)
TRADE = Claim.attribute(SMITH, "occupation", "smith")
BEFORE = (
    EntityAdded(SMITH, "npc", "Grimjaw", ("the smith",)),
    EntityAdded(GREY, "npc", "the grey man"),
    EntityAdded(FORGE, "location", "the forge"),
    FactStated(THERE),
)
SESSION, HELD = SessionId("s1"), THERE.fact_id

SAMPLES: tuple[Event, ...] = (
    EntityAdded(EntityId("inn"), "location", "the inn"),
    EntityChanged(SMITH, name="Old Grimjaw"),
    AliasAdded(SMITH, "Grim"),
    AliasRemoved(SMITH, "the smith"),
    EntityScoped(SMITH, Visibility("hidden")),
    EntityRemoved(SMITH),
    EntitiesMerged(SMITH, GREY),
    FactStated(TRADE),
    FactConfirmed(HELD),
    FactRejected(HELD),
    FactReplaced(HELD, Claim.relation(GREY, "LOCATED_AT", FORGE)),
    FactClosed(HELD),
    FactScoped(HELD, Visibility("hidden")),
    FactRevealed(HELD),
    FactTold(HELD, (NpcId("mira"),), SpeakerId("bran")),
    FormHeard("grimshow", "Grim show", SMITH, "confirmed", "dm"),
    SlotDeclared("occupation", "many"),
    Undone(1),
    RolledBack(SESSION, 3, (4,)),
    UtteranceRetracted(UtteranceId("u1"), SESSION, 3, (4,)),
    UtteranceWithheld(UtteranceId("u1"), SESSION, 3, (4,)),
    UtteranceCorrected(UtteranceId("u1"), SESSION, 3, "an inn", "a tin", (4,)),
    TalkErased((4,)),
)
CHANGING = tuple(event for event in SAMPLES if not isinstance(event, Undoing))
UNDOING = tuple(event for event in SAMPLES if isinstance(event, Undoing))
NEEDS_NOTHING = (EntityAdded, FormHeard, SlotDeclared)
CHANGES_NOTHING = (FactRevealed, FactTold, FormHeard)
"""Events that change nothing about a fact that everybody knows already, or about any fact."""


def named(event: Event) -> str:
    return type(event).__name__


def test_every_event_class_has_a_sample_and_is_in_the_union() -> None:
    found = {each for family in (event_kinds, event_log) for _, each in getmembers(family, is_dataclass)}
    kinds = {each for each in found if hasattr(each, "effect")}
    assert kinds == set(get_args(Event)) == {type(event) for event in SAMPLES}


@pytest.mark.parametrize("event", SAMPLES, ids=named)
def test_it_is_kept_and_read_again(event: Event) -> None:
    kept = encode(event)
    cause = Cause("dm", 1)
    assert decode(CampaignId("town"), 7, cause, kept.event_type, kept.payload) == WorldEvent(7, cause, event)


def test_the_dm_is_told_of_each_in_words_of_its_own() -> None:
    told = [event.in_words(NoNames()) for event in SAMPLES]
    assert all(told) and len({*told}) == len(SAMPLES)


def test_no_event_is_worded_with_a_relation_type_or_an_id() -> None:
    campaign = Campaign(CampaignId("town"), "Town", "en", (), (), (), (), ())
    entities = [Entity(SMITH, "npc", "Grimjaw"), Entity(GREY, "npc", "Mirelle"), Entity(FORGE, "location", "The Forge")]
    names = NameResolver.of(campaign, entities, [SESSION])
    texts = [event.in_words(replace(names, facts={HELD: claim_in_words(THERE, names)})) for event in SAMPLES]
    outside_brackets = [re.sub(r"\([^()]*\)", "", text) for text in texts]
    ids = rf"\b({GREY}|{SESSION}|{HELD})\b"
    assert [text for text in outside_brackets if re.search(rf"[A-Z]{{2}}|{ids}", text)] == []
    assert "confirmed: Grimjaw is at The Forge" in texts
    assert "rolled back to line 3 of session 1: dropped 1 event" in texts


@pytest.mark.parametrize("event", SAMPLES, ids=named)
def test_its_precondition_fails_where_nothing_is_there(event: Event) -> None:
    assert (event.failed_precondition(WorldState()) is None) == isinstance(event, NEEDS_NOTHING)


@pytest.mark.parametrize("event", CHANGING, ids=named)
def test_it_can_be_said_of_a_world_and_changes_it(event: Event) -> None:
    state = before()
    assert event.failed_precondition(state) is None
    apply(state, WorldEvent(9, Cause("dm", 9), event))
    assert state.changes().is_empty == isinstance(event, CHANGES_NOTHING)


@pytest.mark.parametrize("event", UNDOING, ids=named)
def test_it_changes_nothing_by_itself_and_leaves_out_what_it_names(event: Undone) -> None:
    state = before()
    assert event.failed_precondition(state) == "an undoing cannot be appended: call the method for it"
    with pytest.raises(ValueError, match="event 9 refers to other events"):
        apply(state, WorldEvent(9, Cause("dm", 9), event))
    assert state.changes().is_empty
    left = replay([*log(), WorldEvent(5, Cause("dm", 9), event)])
    assert (SMITH in left.entities) == (event != Undone(1))
    assert HELD not in left.facts


class NoNames:
    """Everything is called by its id."""

    @property
    def relations(self) -> RelationWords:
        return IN_ENGLISH

    def session(self, session: SessionId) -> str:
        return f"session {session}"

    def called(self, entity: EntityId) -> str:
        return entity

    def person(self, who: NpcId | SpeakerId) -> str:
        return who

    def fact(self, fact: FactId) -> str:
        return fact

    def visibility_of(self, entity: EntityId) -> Visibility:
        return PUBLIC


def log() -> list[WorldEvent]:
    return [WorldEvent(seq, Cause("dm", seq), event) for seq, event in enumerate(BEFORE, start=1)]


def before() -> WorldState:
    return replay(log())
