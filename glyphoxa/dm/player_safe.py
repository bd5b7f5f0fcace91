"""The content that players may know of a campaign: its entities and facts, and the bundle that the DM can give to them.

Everything here is chosen, nothing is removed: a column or table that is not named stays out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final, TypeVar

from glyphoxa.chronicle.episodes import PlayersView
from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.dm.campaign_bundle import Row, renamed, statements
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import EntityId, slug
from glyphoxa.domain.knowledge import PUBLIC, Fact, Visibility
from glyphoxa.world.entity_events import SlotDeclared
from glyphoxa.world.events import Cause, Event
from glyphoxa.world.state import WorldEntity, WorldState

_GUARDED: Final = ("secret", "hidden")
_OF_SESSION: Final = ("id", "started_at", "last_ordinal")
_OF_UTTERANCE: Final = ("session_id", "ordinal", "utterance_id", "timestamp", "duration_ns", "fts_config")

E = TypeVar("E", Entity, WorldEntity)


def players_part(
    view: PlayersView, entities: Iterable[tuple[E, Visibility]], facts: Iterable[Fact] = ()
) -> tuple[dict[EntityId, E], list[Fact]]:
    """Return the entities that players may know, without the aliases that they may not, and the facts about them."""
    known = {
        entity.id: replace(entity, aliases=view.public_aliases(entity.aliases))
        for entity, visibility in entities
        if view.may_name(entity.name, visibility)
    }
    return known, [fact for fact in facts if view.may_know(fact, known)]


class PublicPart:
    """The public entities and facts of a world, and the utterances that all players heard.

    Args:
        merged: Entities that were merged into others, under the names that players may not read.

    Attributes:
        campaign: A campaign file with the players and the calendar only.
    """

    def __init__(self, state: WorldState, campaign: Campaign, merged: Sequence[KnownEntity] = ()) -> None:
        facts = sorted(state.facts.values(), key=lambda fact: (fact.seq, fact.id))
        # A page of an import that nobody knows cannot have been told, and has common words.
        secrets = [
            fact.claim.content
            for fact in facts
            if fact.visibility.scope in _GUARDED and (fact.visibility.knowers or fact.provenance.origin != "import")
        ]
        self._view = PlayersView(
            [*map(_known, state.entities.values()), *merged],
            campaign,
            (text for text in secrets if isinstance(text, str)),
        )
        scoped = ((each, each.visibility) for each in state.entities.values())
        self._entities, known = players_part(self._view, scoped, facts)
        self._facts = [fact.with_(visibility=PUBLIC, supports=()) for fact in known]
        self._rules = state.own_rules()
        self._speakers = {"", *(player.id for player in campaign.players)}
        self.campaign = replace(
            Campaign(campaign.id, campaign.name, campaign.language, (), (), (), campaign.players, ()),
            time_zone=campaign.time_zone,
            calendar=campaign.calendar,
            story_day=campaign.story_day,
        )

    def events(self, cause: Cause) -> list[Event]:
        """The events that state the public world, without its history."""
        predicates = {fact.claim.predicate for fact in self._facts}
        rules = [SlotDeclared(name, rule) for name, rule in self._rules.items() if name in predicates]
        ids = _public_ids(self._entities.values())
        entities = [replace(each, id=ids[each.id], visibility=PUBLIC) for each in self._entities.values()]
        claims = ((fact, renamed(fact.claim, ids)) for fact in self._facts)
        facts = [fact.with_(claim=claim) for fact, claim in claims if claim is not None]
        return [*rules, *statements(entities, facts, cause)]

    def rows(self, table: str, rows: Sequence[Row], n_before: int) -> list[Row]:
        """Return what players may read of rows of a table; the utterances count on from `n_before`."""
        match table:
            case "sessions":
                return [{name: row[name] for name in _OF_SESSION} for row in rows]
            case "session_entries":
                kept = [said for row in rows if (said := self._said(row)) is not None]
                return [{"id": number, **said} for number, said in enumerate(kept, start=n_before + 1)]
            case _:
                return list(rows)

    def _said(self, row: Row) -> Row | None:
        speaker = str(row["speaker_name"])
        text = self._view.readable(speaker, str(row["text"]), str(row["raw_text"]))
        if text is None or row["retracted"] or row["withheld"] or row["aside"]:
            return None
        # An id may say more than a name.
        own = {name: row[name] for name in ("speaker_id", "npc_id")}
        ids = {name: each if each in self._speakers else slug(speaker) for name, each in own.items()}
        said = {"speaker_name": speaker, "text": text, "raw_text": text}
        return {**{name: row[name] for name in _OF_UTTERANCE}, **said, **ids}


def _public_ids(entities: Iterable[WorldEntity]) -> dict[EntityId, EntityId]:
    """Return new ids that are made of names: an old one may say more, such as an earlier name."""
    ids: dict[EntityId, EntityId] = {}
    taken: set[str] = set()
    for entity in sorted(entities, key=lambda each: each.id):
        wanted = slug(entity.name) or slug(entity.type)
        numbered = (f"{wanted}-{n}" for n in count(2))
        ids[entity.id] = EntityId(next(each for each in chain((wanted,), numbered) if each not in taken))
        taken.add(ids[entity.id])
    return ids


def _known(entity: WorldEntity) -> KnownEntity:
    scope, is_of_talk = entity.visibility, entity.origin == "talk"
    return KnownEntity(entity.id, entity.type, entity.name, entity.aliases, scope, is_of_talk)
