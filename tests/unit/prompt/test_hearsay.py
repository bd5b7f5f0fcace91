"""Hearsay is not placed before the transcript, where a change would make the model reread the prompt."""

from __future__ import annotations

from dataclasses import replace

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, FactId, SessionId
from glyphoxa.domain.knowledge import Claim, Fact, Provenance
from glyphoxa.language.relations import IN_ENGLISH
from glyphoxa.prompt.identity import identity_of
from glyphoxa.world.graph import Known

GRIMJAW = EntityId("grimjaw")


def a_fact(value: str, provenance: Provenance) -> Fact:
    claim = Claim.attribute(GRIMJAW, "occupation", value)
    return Fact(FactId(value), claim, 1, "accepted").with_(provenance=provenance)


def test_what_was_heard_at_the_table_is_no_part_of_an_npcs_identity_until_the_dm_confirms_it() -> None:
    heard = Provenance(0.9, origin="talk", session_id=SessionId("s1"))
    known = Known(
        Entity(GRIMJAW, "npc", "Grimjaw"),
        (a_fact("smith", Provenance(1.0, origin="campaign_file")), a_fact("thief", heard)),
    )
    identity = identity_of(known, tokens=100, words=IN_ENGLISH)
    assert identity.lines == ("Grimjaw, occupation: smith.",)
    assert identity.known == known, "it is there to be recalled"
    confirmed = replace(known, attributes=(a_fact("thief", replace(heard, dm_confirmed=True)),))
    assert identity_of(confirmed, tokens=100, words=IN_ENGLISH).lines == ("Grimjaw, occupation: thief.",)


def test_mere_links_of_an_npc_come_after_its_other_relations() -> None:
    others = [Entity(EntityId(name), "npc", name) for name in ("Aron", "Zita")]
    claims = [
        Claim.relation(GRIMJAW, type_, each.id) for type_, each in zip(("LINKED_TO", "KNOWS"), others, strict=True)
    ]
    relations = tuple(
        (Fact(FactId(each.id), claim, 1, "accepted"), each) for claim, each in zip(claims, others, strict=True)
    )
    known = Known(Entity(GRIMJAW, "npc", "Grimjaw"), (), relations)
    told = identity_of(known, tokens=100, words=IN_ENGLISH).lines
    assert told == ("Grimjaw knows Zita.", "Grimjaw has to do with Aron.")
