"""Small values for tests: only what a test is about has to be said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glyphoxa.domain.campaign import Campaign, Entity, Exchange, Findings, Npc, Player, Relationship, Scene, Secret
from glyphoxa.domain.heard import Draft, Heard, PartialHeard, Utterance
from glyphoxa.domain.ids import (
    CampaignId,
    EntityId,
    NpcId,
    PlayerId,
    SceneId,
    SessionId,
    SpeakerId,
    TurnId,
    UtteranceId,
)
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Visibility
from glyphoxa.domain.turn_record import Outcome, TurnRecord
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry

SMITH, INNKEEPER = NpcId("grimjaw"), NpcId("mirelle")
TAMSIN, BRAN = PlayerId("tamsin"), PlayerId("bran")
MARKET, FORGE = SceneId("market"), SceneId("forge")
CAMPAIGN, SESSION, EVENING = CampaignId("town"), SessionId("s1"), SessionId("evening")


def a_campaign() -> Campaign:
    return Campaign(
        id=CAMPAIGN,
        name="The town",
        language="en",
        entities=(
            Entity(EntityId("e-grimjaw"), "npc", "Grimjaw", ("the smith",), {"description": "Grimjaw is a smith."}),
            Entity(EntityId("e-mirelle"), "npc", "Mirelle", (), {"description": "Mirelle keeps the inn."}),
            Entity(EntityId("e-square"), "location", "Market Square", (), {}),
            Entity(EntityId("e-forge"), "location", "the forge", (), {}),
            Entity(EntityId("e-eldrinax"), "npc", "Eldrinax", (), {"description": "Eldrinax is an old wizard."}),
        ),
        relationships=(Relationship(EntityId("e-mirelle"), EntityId("e-grimjaw"), "KNOWS"),),
        npcs=(
            Npc(
                SMITH,
                EntityId("e-grimjaw"),
                "Grimjaw",
                "You are Grimjaw, a smith.",
                examples=(Exchange(said="Tamsin says: Hello.", reply="Mind the sparks."),),
                fillers=("Hm.",),
            ),
            Npc(INNKEEPER, EntityId("e-mirelle"), "Mirelle", "You are Mirelle, an innkeeper."),
        ),
        players=(Player(TAMSIN, "Tamsin"), Player(BRAN, "Bran")),
        scenes=(
            Scene(MARKET, EntityId("e-square"), (SMITH, INNKEEPER), "evening"),
            Scene(FORGE, EntityId("e-forge"), (SMITH,), "night"),
        ),
        secrets=(Secret("Grimjaw forged the king's false crown.", frozenset({SMITH})),),
    )


def a_known_party(findings: Findings = "review") -> Campaign:
    """The same with the players' characters as entities, as a campaign file has them."""
    campaign = a_campaign()
    characters = (Entity(EntityId(f"e-{player.id}"), "player", player.name) for player in campaign.players)
    return replace(campaign, entities=(*campaign.entities, *characters), findings=findings)


def a_draft(player: PlayerId, text: str, *, end_ms: int = 1_000) -> Draft:
    heard = Heard(text, text, (), transcript_ms=end_ms + 300, corrected_ms=end_ms + 301)
    return Draft(player, heard, began_ms=end_ms - 900, speech_end_ms=end_ms)


def a_partial(player: PlayerId, text: str, at_ms: int = 1) -> PartialHeard:
    return PartialHeard(player, Heard(text, text, (), at_ms, at_ms), at_ms)


def an_utterance(
    text: str, *, id: str = "u1", speaker: str = "Tamsin", npc: NpcId | None = None, **changes: Any
) -> Utterance:
    said = Utterance(
        id=UtteranceId(id),
        campaign_id=CAMPAIGN,
        session_id=SESSION,
        speaker_id=SpeakerId(speaker.lower()),
        speaker_name=speaker,
        text=text,
        raw_text=text,
        at_ms=1_000,
        npc_id=npc,
        witnesses=frozenset({SMITH}),
    )
    return replace(said, **changes)


def said(n: int, text: str, *, by: str = "Tamsin", **changes: Any) -> Utterance:
    """The nth line of an evening."""
    return an_utterance(text, id=f"u{n}", speaker=by, **{"session_id": EVENING, "at_ms": 1_000_000 + n, **changes})


def known(claim: Claim, visibility: Visibility = PUBLIC, **more: Any) -> Fact:
    """The accepted fact of a claim."""
    return Fact(claim.fact_id, claim, visibility=visibility, **{"seq": 9, **more})


def changed_names(names: Gazetteer, *, put: Entry | None = None, remove: EntityId | None = None) -> Gazetteer:
    """Names with one entry in its place, or behind all others when it is new, and without those of an entity."""
    entries = [entry for entry in names.entries if entry.entity_id != remove]
    if put is not None:
        known = [entry.entity_id for entry in entries]
        at = known.index(put.entity_id) if put.entity_id in known else len(known)
        entries = [entry for entry in entries if entry.entity_id != put.entity_id]
        entries.insert(at, put)
    return names.having(entries)


def a_turn_record(outcome: Outcome = Outcome.ANSWERED, **more: Any) -> TurnRecord:
    """A turn in which Tamsin spoke to the smith, or to nobody if nobody was addressed.

    Args:
        more: Other values of its fields.
    """
    usual = {
        "id": TurnId("t1"),
        "session_id": SESSION,
        "speaker_id": SpeakerId(TAMSIN),
        "speaker_name": "Tamsin",
        "raw_text": more.get("text", ""),
        "text": "",
        "npc_id": None if outcome is Outcome.NOT_ADDRESSED else SMITH,
        "address_reason": "",
    }
    return TurnRecord(**{**usual, **more, "outcome": outcome})
