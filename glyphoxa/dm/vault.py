"""The notes of an Obsidian vault: the text of each, and where it lies. Reads and writes nothing.

A campaign has one note for itself, one for each session and one for each entity. Names of notes are unique in the whole
vault, whatever their case, because a wikilink names no folder.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count
from typing import Final

import yaml

from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.player_safe import PlayersView
from glyphoxa.dm.wording import escaped
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, SessionId, plain_name, slug
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Fact, Visibility
from glyphoxa.language.facts import known_to_in_words, value_in_words, visibility_in_words
from glyphoxa.language.relations import in_words

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
