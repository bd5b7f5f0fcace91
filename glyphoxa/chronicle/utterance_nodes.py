"""State atoms: what talk leaves in the graph, one for each utterance worth remembering, and how they connect."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from glyphoxa.chronicle.statements import FIRST_PERSON, MarkedSentence, facts_in, sentences_of
from glyphoxa.chronicle.talk import (
    ExtractedEntity,
    ExtractedRelation,
    Extraction,
    KnownEntity,
    SceneTalk,
)
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.language.language_data import lexicon, texts
from glyphoxa.language.prompt_quotes import as_label, quoted
from glyphoxa.language.sentences import shortened
from glyphoxa.language.text import Text
from glyphoxa.language.words import fold

AtomKind = Literal["relationship_beat", "world_discovery", "thread"]

_TITLE_CHARS: Final = 60
_SUMMARY_CHARS: Final = 240
_PEOPLE: Final = ("npc", "player")
_LEFT_OPEN: Final = frozenset({"promise", "plan", "decision", "wish", "quest"})
"""Subjects of a thread. Other findings are discoveries, except relations between people."""
_WITHOUT_FINDING: Final = 0.5
_SECOND_PERSON: Final = lexicon("calls").compile(r"\b{second_person}\b", flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StateAtom:
    """The node that one utterance adds to the graph. Its witnesses, time and session are those of the utterance.

    Attributes:
        confidence: That of the surest finding in the utterance, 0 to 1.
        about: The entities it names, and its speaker's.
        speaker: None if no entity has the speaker's name.
        heard_by: The entities of the NPCs that heard it.
        place: Where it was said; None if no scene has these NPCs.
    """

    utterance: UtteranceId
    kind: AtomKind
    title: str
    summary: str
    confidence: float
    about: tuple[EntityId, ...] = ()
    speaker: EntityId | None = None
    heard_by: tuple[EntityId, ...] = ()
    place: EntityId | None = None

    @property
    def stable_key(self) -> str:
        """Return the key under which a later reading of the utterance replaces this atom."""
        return f"atom:{self.utterance}"


@dataclass(frozen=True, slots=True)
class Grafter:
    """Makes the state atoms of a campaign.

    Args:
        npcs: The NPCs with their entities.
    """

    language: str
    npcs: Mapping[NpcId, EntityId]
    scenes: Sequence[Scene] = ()

    def atoms_of(
        self,
        talk: SceneTalk,
        extraction: Extraction,
        ids: Mapping[str, EntityId],
        known: Sequence[KnownEntity],
        *,
        kept: Collection[UtteranceId],
    ) -> tuple[StateAtom, ...]:
        """Return an atom for each of these utterances that a player said, without those that are context only.

        A model may have invented an NPC's words, so they leave nothing.

        Args:
            ids: The entities of the extraction's keys.
        """
        by_name = {fold(name): entity.id for entity in reversed(known) for name in entity.names}
        atoms = list[StateAtom]()
        for utterance in (each.utterance for each in talk.said):
            if utterance.id not in kept or talk.is_context([utterance.id]):
                continue
            here = [each for each in extraction.entities if utterance.id in each.evidence]
            related = [each for each in extraction.relations if utterance.id in each.evidence]
            # An extraction contains a fact once, however often it is repeated.
            sentences = list(sentences_of(utterance.text, ()))
            facts = [(each.about, each.confidence) for each in extraction.facts if utterance.id in each.evidence]
            facts += [(each.about, each.confidence) for sentence in sentences for each in facts_in(sentence)]
            speaker = by_name.get(fold(utterance.speaker_name))
            named = {ids[each.key]: each.type for each in here if each.key in ids and ids[each.key] != speaker}
            text = " ".join(utterance.text.split())
            atom = StateAtom(
                utterance.id,
                _kind_of(sentences, {about for about, _ in facts}, related, here, named.values()),
                shortened(text, _TITLE_CHARS),
                said_in_words(utterance.speaker_name, shortened(text, _SUMMARY_CHARS), self.language),
                max((*(sure for _, sure in facts), *(each.confidence for each in related)), default=_WITHOUT_FINDING),
                (*named, *(() if speaker is None else (speaker,))),
                speaker,
                tuple(sorted(self.npcs[npc] for npc in utterance.witnesses if npc in self.npcs)),
                place_of(self.scenes, utterance.witnesses),
            )
            atoms.append(atom)
        return tuple(atoms)


def place_of(scenes: Sequence[Scene], witnesses: frozenset[NpcId]) -> EntityId | None:
    """Return the place of the scene whose NPCs are most like the witnesses; None if no scene has any of them."""
    alike = [(len(witnesses & {*each.npcs}) / len(witnesses | {*each.npcs} or {""}), each) for each in scenes]
    nearest = max(alike, key=lambda pair: pair[0], default=(0.0, None))
    return nearest[1].location if nearest[1] is not None and nearest[0] > 0 else None


def said_in_words(speaker: str, text: str, language: str) -> str:
    """Return a line with its speaker, as summaries quote it."""
    return str(texts("chronicle", language).value("said")).format(speaker=as_label(speaker), text=quoted(text))


def _kind_of(
    sentences: Sequence[MarkedSentence],
    about: Collection[str],
    related: Sequence[ExtractedRelation],
    entities: Sequence[ExtractedEntity],
    named: Collection[str],
) -> AtomKind:
    """Return the kind of an atom.

    Args:
        about: The subjects of its facts, such as a promise.
        named: The types of the entities it names, without its speaker.
    """
    people = {each.key for each in entities if each.type in _PEOPLE}
    if not _LEFT_OPEN.isdisjoint(about):
        return "thread"
    if any(each.source in people and each.target in people for each in related):
        return "relationship_beat"
    if about or related:
        return "world_discovery"
    if sentences and all(each.is_question for each in sentences):
        return "thread"
    if not all(each in _PEOPLE for each in named):
        return "world_discovery"
    # Narration speaks to "you" without an "I".
    speaker, other = (any(form.search(each.text) for each in sentences) for form in (FIRST_PERSON, _SECOND_PERSON))
    is_between = len(named) > 1 or (speaker and (other or named))
    return "relationship_beat" if is_between else "world_discovery"


# Consolidation: an atom is connected with the earlier ones that it repeats or continues.


EdgeLabel = Literal["continues_thread", "same_as"]
_SAME_COSINE: Final = 0.9
_CONTINUES_COSINE: Final = 0.7
_CONTINUES_WORDS: Final = 0.42
"""Share of common content words. With MiniLM, of 20 pairs of lines of our own, what continues a thread has a cosine of
at least 0.77, and what does not has one of at most 0.64 and a share of at most 0.40."""


@dataclass(frozen=True, slots=True)
class EarlierAtom:
    """An earlier atom that shares an entity or the speaker with a new one.

    Attributes:
        cosine: Similarity of the two vectors; None if one is missing.
        is_by_same: Both have the same speaker and the same witnesses, so that merging them shows nobody more.
    """

    key: str
    kind: AtomKind
    summary: str
    cosine: float | None
    is_by_same: bool


@dataclass(frozen=True, slots=True)
class AtomEdge:
    """A connection from an atom to an earlier one. `same_as` merges it into that one."""

    source: str
    target: str
    label: EdgeLabel
    confidence: float


def edge_of(key: str, kind: AtomKind, summary: str, earlier: Sequence[EarlierAtom], language: str) -> AtomEdge | None:
    """Return the edge of a new atom to the nearest earlier one that it repeats, or else to the thread it continues."""
    own = Text.of(summary)
    near: list[tuple[float, AtomEdge]] = []
    for each in earlier:
        theirs, cosine = Text.of(each.summary), each.cosine
        shared = own.shared(theirs, language)
        sure = min(1.0, max(cosine or 0.0, shared))
        is_same = own.folded == theirs.folded and (cosine is None or cosine >= _SAME_COSINE)
        if is_same and each.is_by_same and each.kind == kind:
            near.append((1 + sure, AtomEdge(key, each.key, "same_as", sure)))
        elif each.kind == "thread" and ((cosine or 0.0) >= _CONTINUES_COSINE or shared >= _CONTINUES_WORDS):
            near.append((sure, AtomEdge(key, each.key, "continues_thread", sure)))
    return max(near, key=lambda pair: (pair[0], pair[1].target))[1] if near else None


@dataclass(frozen=True, slots=True)
class OpenThread:
    """A promise, plan, wish or question that nothing later continues.

    Attributes:
        at_ms: When it was said, milliseconds since the Unix epoch.
        evidence: Its utterance, and those that repeat it.
    """

    key: str
    session: SessionId
    at_ms: int
    title: str
    summary: str
    evidence: Sequence[UtteranceId]
