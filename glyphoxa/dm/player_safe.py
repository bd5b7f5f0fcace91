"""The content that players may know of a campaign: its entities, facts and lines, and the bundle that the DM can give.

Everything here is chosen, nothing is removed: a column or table that is not named stays out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Final, TypeVar

from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.talk import NumberedUtterance
from glyphoxa.dm.campaign_bundle import Row, renamed, statements
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import EntityId, slug
from glyphoxa.domain.knowledge import PUBLIC, Fact, Visibility
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.facts import fact_text
from glyphoxa.language.text import Text, content_of
from glyphoxa.language.words import fold, words
from glyphoxa.names.naming import Name, without_titles
from glyphoxa.names.reader import is_written_as_a_name
from glyphoxa.world.event_kinds import SlotDeclared
from glyphoxa.world.event_log import Cause, Event
from glyphoxa.world.state import WorldEntity, WorldState

_OF_A_SECRET: Final = 2
"""Content words of a secret, names apart, with which a line touches it."""
_OF_SESSION: Final = ("id", "started_at", "last_ordinal")
_OF_UTTERANCE: Final = ("session_id", "ordinal", "utterance_id", "timestamp", "duration_ns", "fts_config")

E = TypeVar("E", Entity, WorldEntity)


class PlayersView:
    """Selects what players may read of a world and of what was said in it, worded with public names only.

    A word of a hidden person's name is no secret if it is a word of a public entity's name, too: a family name.

    Args:
        known: The entities of the world, and those that were merged into others, under the names that are hidden.
        campaign: The topics that its group does not play are left out.
        secrets: Secrets of the campaign and its world. A line with some words of one is left out.

    Attributes:
        guarded: The names that players may not know.
    """

    def __init__(self, known: Sequence[WorldEntity], campaign: Campaign, secrets: Iterable[str] = ()) -> None:
        self._forbids = topics_of(campaign).forbids
        self.guarded: Final = names_of([each for each in known if _is_guarded(each)], campaign.language)
        self._parts = {word.folded for each in known if not _is_guarded(each) for word in words(each.name)}
        public = content_of(name for each in known for name in each.names)
        self.secrets: Final = (*(each.text for each in campaign.secrets), *secrets)
        self._kept = [kept for secret in self.secrets if (kept := Text.of(secret).content - public)]

    def world(
        self, entities: Iterable[tuple[E, Visibility]], facts: Iterable[Fact] = ()
    ) -> tuple[dict[EntityId, E], list[Fact]]:
        """Return the entities that players may know, without hidden aliases, and what they may know about them."""
        known = {
            entity.id: replace(entity, aliases=tuple(filter(self._may_read, entity.aliases)))
            for entity, visibility in entities
            if self.may_name(entity.name, visibility)
        }
        return known, [fact for fact in facts if self.may_know(fact, known)]

    def may_name(self, name: str, visibility: Visibility) -> bool:
        """Return whether players may read the name of an entity. That of a public one is never hidden."""
        return visibility.scope == "public" and not self._forbids(name)

    def may_know(self, fact: Fact, entities: Container[EntityId]) -> bool:
        """Return whether players may know a fact, given the entities that they know."""
        is_public = fact.status == "accepted" and fact.visibility.scope == "public"
        return is_public and all(end in entities for end in fact.claim.ends) and self._may_read(fact_text(fact))

    def shown(self, said: Iterable[NumberedUtterance]) -> list[NumberedUtterance]:
        """Return the utterances that players may read."""
        shown: list[NumberedUtterance] = []
        for each in said:
            utterance = each.utterance
            text = self.readable(utterance.speaker_name, utterance.text, utterance.raw_text)
            if text is not None:
                shown.append(replace(each, utterance=replace(utterance, text=text)))
        return shown

    def readable(self, speaker: str, text: str, raw_text: str) -> str | None:
        """Return the words of an utterance that players may read; None for none.

        Name correction may have turned a misheard word into a guarded name. Then the uncorrected words are used.
        """
        readable = next((each for each in (text, raw_text) if not self._names_hidden(each)), None)
        if readable is None or self._names_hidden(speaker) or self._forbids(readable):
            return None
        there = Text.of(readable).content
        is_near = any(len(there & secret) >= min(_OF_A_SECRET, len(secret)) for secret in self._kept)
        return None if is_near else readable

    def _may_read(self, text: str) -> bool:
        return not self._names_hidden(text) and not self._forbids(text)

    def _names_hidden(self, text: str) -> bool:
        spoken = words(text)
        return any(
            not self._is_shared(name) and (not name.is_faint or is_written_as_a_name(spoken, first, last))
            for first in range(len(spoken))
            for last, name in self.guarded.spelled_from(spoken, first)
        )

    def _is_shared(self, name: Name) -> bool:
        is_part = name.kind == "short" and name.joined != fold(without_titles(name.canonical))
        return is_part and name.joined in self._parts


def _is_guarded(entity: WorldEntity) -> bool:
    """Return whether players may not know an entity; what they named themselves they do, unless the DM hid it later."""
    scope = entity.visibility.scope
    return scope in ("secret", "hidden") or (scope != "public" and not entity.is_of_talk)


class PublicPart:
    """The public entities and facts of a world, and the utterances that all players heard.

    Args:
        merged: Entities that were merged into others, under the names that players may not read.
        secrets: See `PlayersView`.

    Attributes:
        campaign: A campaign file with the players and the calendar only.
    """

    def __init__(
        self, state: WorldState, campaign: Campaign, merged: Iterable[WorldEntity] = (), secrets: Iterable[str] = ()
    ) -> None:
        self._view = PlayersView([*state.entities.values(), *merged], campaign, secrets)
        facts = sorted(state.facts.values(), key=lambda fact: (fact.seq, fact.id))
        scoped = ((each, each.visibility) for each in state.entities.values())
        self._entities, known = self._view.world(scoped, facts)
        self._facts = [fact.with_(visibility=PUBLIC, supports=()) for fact in known]
        self._rules = state.rules
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
