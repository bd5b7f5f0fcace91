"""The facts of an NPC's prompt: in words, selected for a question, with its own secrets apart.

1. a fact as a short sentence, and why the NPC may know it
2. how two that a question names are related
3. which facts about somebody a question asks for
4. which of its own secrets an NPC has in mind
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.context.prompt import characters_in
from glyphoxa.domain.campaign import Campaign, Entity
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import Fact, RecalledFact
from glyphoxa.language.asking import asks_how_related, speaks_to_the_npc
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.relations import RelationWords, in_words
from glyphoxa.language.sentences import shortened
from glyphoxa.recall.facts import TOOK_PART, FactsAsked, facts_asked
from glyphoxa.recall.terms import NAME, Terms
from glyphoxa.recall.world_memory import KnownByName
from glyphoxa.transcript.sessions import is_episode
from glyphoxa.world.graph import KnowledgeGraph, Known

# A fact as a short sentence.

_SPOKEN_FIRST = ("description", "summary", "lore_text", "common_knowledge")
_WHOLE_SENTENCES = (*_SPOKEN_FIRST, "secret", "note", "rumour")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A fact in words.

    Attributes:
        is_whole: False where only its beginning had room.
    """

    text: str
    fact: Fact
    is_whole: bool = True


def fact_sentence(fact: Fact, subject: Entity, other: Entity | None = None, *, words: RelationWords) -> str:
    """Return a fact as one sentence.

    Args:
        subject: The entity the claim speaks of.
        other: The entity it is related to; None for an attribute.
        words: Of the campaign.

    Returns:
        Empty when the value cannot be said (an empty text, a JSON object), or the fact is bookkeeping: who took part in
        a session, and that a session is one.
    """
    if other is not None:
        if is_episode(subject) or is_episode(other):
            return ""
        note = fact.attributes.get("description") or fact.attributes.get("note")
        sentence = words.sentence(fact.claim.predicate, subject.name, other.name)
        return _sentence(f"{sentence}: {note}" if note else sentence)
    value = _spoken(fact.claim.content)
    if not value:
        return ""
    if is_episode(subject):
        return _sentence(value) if fact.claim.predicate == "summary" else ""
    if fact.claim.predicate in _WHOLE_SENTENCES:
        return _about(subject, value)
    return _sentence(f"{subject.name}, {in_words(fact.claim.predicate)}: {value}")


def sentences_of(known: Known, words: RelationWords) -> list[Sentence]:
    """What is known of an entity, the most telling first; last what it took part in, which comes along when that is
    named. Without secrets: they stand in the identity of who keeps them.
    """
    sentences = [Sentence(_sentence_of(fact, other, known, words), fact) for fact, other in _told_first(known)]
    by_text = {sentence.text: sentence for sentence in reversed(sentences) if sentence.text}
    return list(reversed(by_text.values()))


def most_telling(known: Known, npc: NpcId, words: RelationWords) -> list[RecalledFact]:
    """The first of what is known of an entity, and of what not everybody knows of it the first: without the words for
    all the others, of which there may be a thousand.
    """
    found: list[RecalledFact] = []
    for fact, other in _told_first(known):
        if found and why_known(fact, npc) == "public":
            continue
        text = _sentence_of(fact, other, known, words)
        if text and all(text != one.text for one in found):
            found.append(recalled(text, fact, npc))
            if len(found) == 2:
                break
    return found


def _told_first(known: Known) -> Iterator[tuple[Fact, Entity | None]]:
    first = {predicate: n for n, predicate in enumerate(_SPOKEN_FIRST)}
    for fact in sorted(known.attributes, key=lambda fact: first.get(fact.claim.predicate, len(first))):
        if not is_secret(fact):
            yield fact, None
    for fact, other in sorted(known.relations, key=lambda each: each[0].claim.predicate == TOOK_PART):
        if not is_secret(fact):
            yield fact, other


def _sentence_of(fact: Fact, other: Entity | None, known: Known, words: RelationWords) -> str:
    if other is None:
        return fact_sentence(fact, known.entity, words=words)
    subject, end = (known.entity, other) if fact.claim.subject == known.entity.id else (other, known.entity)
    return fact_sentence(fact, subject, end, words=words)


def why_known(fact: Fact, npc: NpcId) -> str:
    """Why an NPC may know a fact: "public", "secret", "witnessed in session s1", "told by tamsin"."""
    knower = next((one for one in fact.visibility.knowers if one.npc == npc), None)
    if fact.visibility.scope == "public" or knower is None:
        return "public"
    match knower.how:
        case "secret":
            return "secret"
        case "told":
            return f"told by {knower.by or 'somebody'}"
        case "witnessed":
            session = fact.provenance.session_id
            return f"witnessed in session {session}" if session else "witnessed"


def names_of(entity: Entity) -> tuple[str, ...]:
    return (entity.name, *entity.aliases)


def is_secret(fact: Fact) -> bool:
    """Whether those who know it are to keep it."""
    return fact.visibility.scope in ("secret", "hidden")


def recalled_of(known: Known, npc: NpcId, words: RelationWords) -> tuple[RecalledFact, ...]:
    """The sentences about an entity for an NPC, each with where it is from and why it may know it."""
    return tuple(recalled(sentence.text, sentence.fact, npc) for sentence in sentences_of(known, words))


def recalled(text: str, fact: Fact, npc: NpcId) -> RecalledFact:
    """A fact in words, with where it is from and why the NPC may know it."""
    provenance = fact.provenance
    return RecalledFact(
        fact.id,
        text,
        session_id=provenance.session_id,
        utterance_id=provenance.utterance_id,
        at_ms=provenance.at_ms,
        reason=why_known(fact, npc),
    )


def fitting(sentences: Sequence[Sentence], *, tokens: int) -> list[Sentence]:
    """The sentences that fit the budget, in order.

    What is too long for what is left is passed over. The first sentence is the most telling: one that is too long by
    itself is shortened, so that something is always told.
    """
    found: list[Sentence] = []
    left = characters_in(tokens)
    for sentence in sentences:
        if len(sentence.text) <= left:
            found.append(sentence)
        elif not found:
            found.append(replace(sentence, text=shortened(sentence.text, left), is_whole=False))
        else:
            continue
        left -= len(found[-1].text) + 1
    return found


def _spoken(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case str() | int() | float():
            return str(value).strip()
        case list():
            return ", ".join(spoken for one in value if (spoken := _spoken(one)))
        case _:
            return ""


def _about(entity: Entity, text: str) -> str:
    if any(re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) for name in names_of(entity)):
        return _sentence(text)
    return _sentence(f"{entity.name}: {text}")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."


# How two that a question names are related. What is known of each stands in the prompt by its name. A chain over others
# ("Is Orla anything to Bram?": she is Tamsin's sister, and Tamsin works for him) does not, and a small model cannot ask
# for it. So where a question asks for it, it is looked up before the answer.

_FARTHEST: Final = 4
"""Relations. A longer chain tells nothing, and fills the prompt."""
_BESIDE: Final = 0.5
"""Of what else is known of both, against the chain that was asked for."""


class HowRelated:
    """Finds how two that a question names are related.

    Args:
        graph: None without long-term memory: nothing is found.
    """

    def __init__(self, campaign: Campaign, graph: KnowledgeGraph | None) -> None:
        self._campaign = campaign
        self._graph = graph
        self._words = RelationWords.of(campaign)

    def ends(self, npc: NpcId, question: str, named: Sequence[KnownByName]) -> tuple[Entity, ...]:
        """The two that are asked about; empty where the question asks for no relation or names nobody.

        Args:
            named: Whom the question names, of whom the NPC knows.
        """
        if self._graph is None or not asks_how_related(question, language=self._campaign.language):
            return ()
        two = [one.known.entity for one in named if one.is_named][:2]
        if len(two) == 1 and speaks_to_the_npc(question, language=self._campaign.language):
            own = self._campaign.npc(npc)
            two.append(Entity(own.entity_id, "npc", own.name))
        return tuple(two) if len(two) == 2 else ()

    async def chain(self, npc: NpcId, ends: Sequence[Entity]) -> tuple[RecalledFact, ...]:
        """The shortest chain of relations from one end to the other, as this NPC may know it and may tell it; empty
        where there is none.

        Raises:
            GlyphoxaError: Memory cannot answer.
        """
        if self._graph is None or not ends:
            return ()
        at, other = ends
        steps = await self._graph.path(self._campaign.id, npc, at.id, other.id, max_depth=_FARTHEST)
        found: list[RecalledFact] = []
        for fact, entity in steps or ():
            if is_secret(fact):
                return ()
            subject, end = (at, entity) if fact.claim.subject == at.id else (entity, at)
            text = fact_sentence(fact, subject, end, words=self._words)
            if not text:
                return ()
            why = f"asks how {ends[0].name!r} and {ends[1].name!r} are related"
            found.append(replace(recalled(text, fact, npc), path=why))
            at = entity
        return tuple(found)


def with_chain(chain: Sequence[RecalledFact], facts: Sequence[RecalledFact]) -> tuple[RecalledFact, ...]:
    """The facts for a prompt: the chain first, where there is one."""
    if not chain:
        return tuple(facts)
    known = {one.fact_id for one in chain}
    return (*chain, *(replace(one, score=min(one.score, _BESIDE)) for one in facts if one.fact_id not in known))


# The facts about somebody or something that a prompt has room for: those that the question asks for by name, where it
# asks for some; else what describes it best.

_DESCRIBES = 0.5
"""What describes an entity, against what is asked of it."""


def select_facts(
    found: Sequence[KnownByName], question: str, npc: NpcId, *, words: RelationWords
) -> list[tuple[KnownByName, list[RecalledFact]]]:
    """Return the facts about each of those found that a prompt has room for, with their `path`.

    Args:
        found: Whom the question names, in the order in which they are named, then who comes along. Facts about who
            comes along stand beside the others, and not at all where the question is answered without.
        words: Of the campaign, in whose language the question is.
    """
    named = [one.known.entity.id for one in found if one.is_named]
    selected: list[tuple[KnownByName, list[RecalledFact]]] = []
    is_answered = False
    for one in found:
        asked = facts_asked(one.known, question, named=named, language=words.language)
        is_answered = is_answered or (asked.answer is not None and asked.is_short)
        if one.is_named:
            selected.append((one, _with_path(_facts_of(one.known, asked, npc, words), one.why, asked)))
        elif not is_answered:
            beside = [replace(each, score=_DESCRIBES) for each in most_telling(one.known, npc, words)]
            selected.append((one, _with_path(beside, one.why, asked)))
    return selected


def _facts_of(known: Known, asked: FactsAsked, npc: NpcId, words: RelationWords) -> list[RecalledFact]:
    if asked.answer is None:
        return most_telling(known, npc, words)
    answer = list(recalled_of(asked.answer, npc, words))
    if asked.is_short:
        return answer
    beside = (one for one in most_telling(known, npc, words) if one not in answer)
    return [*answer, *(replace(one, score=_DESCRIBES) for one in beside)]


def _with_path(facts: Sequence[RecalledFact], why: str, asked: FactsAsked) -> list[RecalledFact]:
    answer = asked.answer
    answering = () if answer is None else (*answer.attributes, *(fact for fact, _ in answer.relations))
    asks = {fact.id: f"{why}, asks for {in_words(fact.claim.predicate)!r}" for fact in answering}
    return [replace(one, path=asks.get(one.fact_id, why)) for one in facts]


# An NPC's own secrets. A model that reads a secret tells it sooner or later. So one is in a prompt only where the talk
# comes to it: by a word it is told with, or by who or what it is about. There it is needed: an NPC that does not know
# what it hides invents something. A word that the NPC's place or trade has anyway touches no secret: a guard with a
# secret at the gate is asked when the gate closes.

MOST_KEPT: Final = 2
_FOLLOWS: Final = 2
"""Words of a question that may say too little by itself."""
_FEW: Final = 3
"""Of all its words, with at least one that says something: "Are you sure?"."""
_REFERS: Final = lexicon("content").words("refers")
"""Words that point at something that was said before."""


@dataclass(frozen=True, slots=True)
class OwnSecret:
    """
    Attributes:
        told: The secret, as it is told to nobody but the NPC.
        words: What it is told with, and the names of whom and what it speaks of; see `words_of`.
    """

    told: RecalledFact
    words: Set[str]


def touched(
    secrets: Sequence[OwnSecret],
    question: str,
    *,
    just_heard: str,
    terms: Terms,
    own_names: Set[str],
) -> list[RecalledFact]:
    """The secrets that a question comes to, or the talk just before it; those with most of their words in it first.

    Args:
        question: Nothing is touched by an empty one.
        just_heard: Counts where the question goes on with it.
        own_names: The words that the NPC is called by: they are in every question, and in most of its secrets.
    """
    if not question or not secrets:
        return []
    asked = words_of(question, terms) - own_names
    if _goes_on(question, len(asked)):
        asked |= words_of(just_heard, terms) - own_names
    found = [(len(asked & one.words), one.told) for one in secrets]
    found.sort(key=lambda each: -each[0])
    return [told for n_shared, told in found if n_shared][:MOST_KEPT]


def _goes_on(question: str, n_told: int) -> bool:
    """Whether it goes on with what was said before: "And who paid for it?" does, "Has my brother been here?" does not.

    Args:
        n_told: Words of it that say something.
    """
    spoken = re.findall(r"\w+", question.casefold())
    if n_told > _FOLLOWS:
        return False
    return len(spoken) < _FEW or (len(spoken) == _FEW and n_told > 0) or not _REFERS.isdisjoint(spoken)


def without(secrets: Sequence[OwnSecret], loose: Set[str]) -> list[OwnSecret]:
    """The secrets, each without these words, unless it has no others.

    Args:
        loose: Of what the NPC may tell everybody of itself and of where it is.
    """
    return [replace(one, words=(one.words - loose) or one.words) for one in secrets]


def words_of(text: str, terms: Terms) -> frozenset[str]:
    """With no name told from a word: a recogniser writes both as it likes."""
    return frozenset(stem.removeprefix(NAME) for stem in terms.stems(text))
