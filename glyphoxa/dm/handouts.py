"""The content of a campaign for its readers: the part that players may know, and the notes of an Obsidian vault.

What players get is chosen, nothing is removed: a column or table that is not named stays out.

A vault has one note for the campaign, one for each session and one for each entity. Names of notes are unique in the
whole vault, whatever their case, because a wikilink names no folder. Nothing here reads or writes files.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count
from typing import Final, TypeVar

import yaml

from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.dm.campaign_bundle import Row, renamed, statements
from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.wording import escaped
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, SessionId, plain_name, slug
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Fact, Visibility
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.facts import fact_text, known_to_in_words, value_in_words, visibility_in_words
from glyphoxa.language.relations import in_words
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


# The notes of a vault

_FORBIDDEN: Final = frozenset('<>:"/\\|?*#^[]')
"""Characters that file systems or wikilinks do not allow."""
_PORTS: Final = (f"{port}{n}" for port in ("com", "lpt") for n in range(10))
_RESERVED: Final = frozenset(("con", "prn", "aux", "nul", *_PORTS))
_LONGEST_NAME: Final = 120
"""Bytes. File systems allow 255, of which others need some for their suffixes."""


@dataclass(frozen=True, slots=True)
class PlayedSession:
    """A session as its readers may know it.

    Attributes:
        number: From 1, in the order in which sessions began.
        ended: When its last utterance began.
        days: Days of the story in words.
        dm_recap: Lines for the game master only.
        said: Utterances that the readers may read, in order.
    """

    id: SessionId
    number: int
    began: datetime
    ended: datetime
    days: str = ""
    recap: Sequence[str] = ()
    dm_recap: Sequence[str] = ()
    said: Sequence[Utterance] = ()


@dataclass(frozen=True, slots=True)
class VaultContent:
    """The content of a vault: entities with their scopes, and facts, of which accepted ones are written.

    Attributes:
        with_transcript: Whether the notes of sessions contain everything in `said`.
    """

    name: str
    language: str
    names: NameResolver
    entities: Sequence[tuple[Entity, Visibility]] = ()
    facts: Sequence[Fact] = ()
    sessions: Sequence[PlayedSession] = ()
    with_transcript: bool = False

    def for_players(self, view: PlayersView) -> VaultContent:
        """Return the part that players may know."""
        known, facts = view.world(self.entities, self.facts)
        return replace(self, entities=[(each, PUBLIC) for each in known.values()], facts=facts)


def notes_of(content: VaultContent) -> dict[str, str]:
    """Return the text of each note by its path in the vault, such as `location/The Anvil.md`."""
    return dict(_Notes(content).all())


def file_name(name: str) -> str:
    """Return a name that every file system takes, without a suffix, and that may stand in a wikilink.

    >>> file_name("CON"), file_name("Who/What?"), file_name("...")
    ('_CON', 'Who What', 'Unnamed')
    """
    kept = "".join(each if each.isprintable() and each not in _FORBIDDEN else " " for each in plain_name(name))
    kept = " ".join(kept.split()).strip(". ")
    while len(kept.encode()) > _LONGEST_NAME:
        kept = kept[:-1]
    kept = kept.rstrip(". ")
    is_reserved = kept.partition(".")[0].rstrip().casefold() in _RESERVED
    return f"_{kept}" if is_reserved else kept or "Unnamed"


def session_note(session: PlayedSession) -> str:
    """Return the recap of a session as Markdown."""
    began, ended = session.began, session.ended
    until = f"{ended:%H:%M}" if began.date() == ended.date() else f"{ended:%Y-%m-%d, %H:%M}"
    days = f" Days of the story: {escaped(session.days)}." if session.days else ""
    return _joined(
        f"# Session {session.number}",
        f"{began:%Y-%m-%d, %H:%M} to {until}.{days}",
        _bullets(map(escaped, session.recap)) or "No line is worth recalling.",
        _bullets(map(escaped, session.dm_recap), "> [!secret] For the game master\n", mark="> - "),
    )


def _joined(*paragraphs: str) -> str:
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _bullets(lines: Iterable[str], title: str = "", *, mark: str = "- ") -> str:
    told = "\n".join(f"{mark}{line}" for line in lines)
    return told and f"{title}{told}"


class _Notes:
    def __init__(self, content: VaultContent) -> None:
        self._content = content
        self._taken: set[str] = set()
        self._home = self._stem(content.name, "campaign")
        self._session_stems = {
            each.id: self._stem(f"Session {each.number} {each.began:%Y-%m-%d}", "session") for each in content.sessions
        }
        self._scopes = {entity.id: scope for entity, scope in content.entities}
        self._entities = {entity.id: entity for entity, _ in sorted(content.entities, key=lambda each: each[0].id)}
        self._stems = {each.id: self._stem(each.name, each.type) for each in self._entities.values()}
        self._facts: dict[EntityId, list[Fact]] = defaultdict(list)
        for fact in sorted(content.facts, key=lambda each: (each.claim.predicate, each.id)):
            for end in {*fact.claim.ends} if fact.status == "accepted" else ():
                self._facts[end].append(fact)
        known = [KnownEntity(each.id, each.type, each.name, each.aliases) for each in self._entities.values()]
        names = names_of(known, content.language)
        self._named = {
            session.id: list(dict.fromkeys(id_ for said in session.said for id_ in names.entities_in(said.text)))
            for session in content.sessions
        }

    def _stem(self, name: str, kind: str) -> str:
        """Return a name for a note that no other one has, in any case."""
        first, kind = file_name(name), file_name(kind)
        others = (f"{first} ({kind} {number})" for number in count(2))
        stem = next(each for each in chain((first, f"{first} ({kind})"), others) if _folded(each) not in self._taken)
        self._taken.add(_folded(stem))
        return stem

    def all(self) -> Iterator[tuple[str, str]]:
        stems, sessions = self._session_stems, self._content.sessions
        listed = (f"{_link(stems[each.id])} {escaped(each.days)}".rstrip() for each in sessions)
        yield f"{self._home}.md", _joined(f"# {escaped(self._content.name)}", _bullets(listed, "## Sessions\n\n"))
        for session in sessions:
            yield f"Sessions/{stems[session.id]}.md", self._session(session)
        for entity in self._entities.values():
            yield f"{file_name(entity.type)}/{self._stems[entity.id]}.md", self._entity(entity)

    def _session(self, session: PlayedSession) -> str:
        front: dict[str, object] = {"date": session.began.date(), "session": session.number, "tags": ["session"]}
        if session.days:
            front["story_days"] = session.days
        speakers = {said.speaker_name: said.npc_id for said in session.said if said.aside is None}
        played = {each.id: each.entity_id for each in self._content.names.npcs}
        spoke = [self._called(played[npc], name) if npc in played else escaped(name) for name, npc in speakers.items()]
        named = [*map(self._called, self._named[session.id])]
        transcript = "\n".join(map(_line, session.said)) if self._content.with_transcript else ""
        return _front_matter(front) + _joined(
            session_note(session).rstrip(),
            f"Spoke: {', '.join(spoke)}" if spoke else "",
            f"Named: {', '.join(named)}" if named else "",
            transcript and f"## Transcript\n\n{transcript}",
        )

    def _entity(self, entity: Entity) -> str:
        scope, names = self._scopes[entity.id], self._content.names
        front: dict[str, object] = {"type": entity.type, "aliases": [*entity.aliases], "tags": [slug(entity.type)]}
        links: dict[str, list[str]] = defaultdict(list)
        descriptions, told, secret = list[str](), list[str](), list[str]()
        if scope.scope != "public":
            front["hidden"] = True
            secret.append(f"known to: {escaped(visibility_in_words(scope, names))}")
        for fact in self._facts[entity.id]:
            claim, line = fact.claim, self._fact(fact, entity)
            scopes = (fact.visibility, *(self._scopes.get(end, HIDDEN) for end in fact.claim.ends))
            if any(each.scope != "public" for each in scopes):
                secret.append(f"{line} ({escaped(known_to_in_words(fact, names))})")
            elif claim.predicate == "description":
                descriptions += map(escaped, value_in_words(claim.content).split("\n\n"))
            else:
                told.append(line)
                if claim.subject == entity.id and claim.object is not None:
                    links[claim.predicate].append(f"[[{self._stems[claim.object]}]]")
        appears = (_link(stem) for id_, stem in self._session_stems.items() if entity.id in self._named[id_])
        return _front_matter({**front, **links, **front}) + _joined(
            f"# {escaped(entity.name)}",
            *descriptions,
            _bullets(told),
            _bullets(secret, "> [!secret] Not public\n", mark="> - "),
            _bullets(appears, "## Sessions\n\n"),
        )

    def _fact(self, fact: Fact, about: Entity) -> str:
        """Return a fact as one line: occupation: blacksmith; Grimjaw is at [[The Anvil]]."""
        claim = fact.claim
        if claim.object is None:
            return f"{escaped(in_words(claim.predicate))}: {escaped(value_in_words(claim.content))}"
        ends = (escaped(about.name) if end == about.id else self._called(end) for end in (claim.subject, claim.object))
        sentence = " ".join(self._content.names.relations.sentence(claim.predicate, *ends).split())
        also = value_in_words(dict(fact.attributes))
        return f"{sentence} ({escaped(also)})" if also else sentence

    def _called(self, entity: EntityId, name: str = "") -> str:
        """Return the link to an entity's note; its name if there is no such note."""
        stem = self._stems.get(entity)
        called = name or self._content.names.called(entity)
        return escaped(called) if stem is None else _link(stem, called)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _link(stem: str, label: str = "") -> str:
    """Return a wikilink.

    >>> _link("Who What", "Who/What?"), _link("Grimjaw", "Grimjaw")
    ('[[Who What|Who/What?]]', '[[Grimjaw]]')
    """
    shown = " ".join("".join(" " if each in "[]|" else each for each in label).split())
    return f"[[{stem}]]" if shown in ("", stem) else f"[[{stem}|{shown}]]"


def _line(said: Utterance) -> str:
    aside = f" ({said.aside.replace('_', ' ')})" if said.aside is not None else ""
    return f"**{escaped(said.speaker_name)}:** {escaped(said.text)}{aside}  "


def _front_matter(front: Mapping[str, object]) -> str:
    return f"---\n{yaml.safe_dump({**front}, allow_unicode=True, sort_keys=False, width=10_000)}---\n"
