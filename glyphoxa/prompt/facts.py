"""Select and word facts for an NPC's prompt: sentences, chains of relations, answers, and the NPC's own secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import Claim, Fact, RecalledFact
from glyphoxa.language.facts import SPOKEN_FIRST, as_sentence, fact_sentence, spoken, why_known
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.relations import RelationWords, in_words
from glyphoxa.language.text import Text
from glyphoxa.recall.facts import LINKED_TO, TOOK_PART, FactsAsked, facts_asked, is_secret
from glyphoxa.recall.world import KnownByName
from glyphoxa.transcript.sessions import EPISODE, is_episode
from glyphoxa.world.graph import Known

# A fact as a short sentence.


def told_sentence(fact: Fact, subject: Entity, other: Entity | None = None, *, words: RelationWords) -> str:
    """Return a fact as `fact_sentence` does, and of what is stored about a session only its summary."""
    if is_episode(subject) or (other is not None and is_episode(other)):
        return as_sentence(spoken(fact)) if other is None and fact.claim.predicate == "summary" else ""
    return fact_sentence(fact, subject, other, words=words)


def sentences_of(known: Known, words: RelationWords, *, sex: int = 0) -> dict[str, Fact]:
    """Return what is known of an entity as sentences, each with its fact, the most important first.

    Mere links and what it took part in are last. Secrets are not included: they are in the identity of their keeper.

    Args:
        sex: 1 if the question asks for a man ("brother"), 2 for a woman, 0 for neither.
    """
    found: dict[str, Fact] = {}
    for fact, other in _most_important_first(known):
        is_asked = sex > 0 and other is not None and fact.claim.object == other.id
        text = worded(fact, other, known, words, sex_of_object=sex if is_asked else None)
        if text:
            found.setdefault(text, fact)
    return found


def most_telling(known: Known, npc: NpcId, words: RelationWords) -> list[RecalledFact]:
    """Return the first facts about an entity, and the first of those that are not public.

    The others, perhaps a thousand, are not worded.
    """
    found: list[RecalledFact] = []
    for fact, other in _most_important_first(known):
        if found and why_known(fact.visibility, npc) == "public":
            continue
        is_object = other is not None and fact.claim.object == known.entity.id
        text = worded(fact, other, known, words, sex_of_object=0 if is_object else None)
        if text and all(text != one.text for one in found):
            found.append(recalled(text, fact, npc))
            if len(found) == 2:
                break
    return found


def _most_important_first(known: Known) -> Iterator[tuple[Fact, Entity | None]]:
    first = {predicate: n for n, predicate in enumerate(SPOKEN_FIRST)}
    for fact in sorted(known.attributes, key=lambda fact: first.get(fact.claim.predicate, len(first))):
        if not is_secret(fact):
            yield fact, None
    last = {LINKED_TO: 1, TOOK_PART: 2}
    for fact, other in sorted(known.relations, key=lambda each: last.get(each[0].claim.predicate, 0)):
        if not is_secret(fact):
            yield fact, other


def worded(
    fact: Fact, other: Entity | None, known: Known, words: RelationWords, *, sex_of_object: int | None = None
) -> str:
    """Return the sentence about a fact of an entity.

    Args:
        other: The entity at the other end of a relation.
        sex_of_object: Begin with the object of a relation, if there are words for that. A small model takes the first
            name for the one that a question is about. None: begin with the subject.
    """
    if other is None:
        return told_sentence(fact, known.entity, words=words)
    subject, end = (known.entity, other) if fact.claim.subject == known.entity.id else (other, known.entity)
    if sex_of_object is not None:
        turned = words.from_other_end(fact.claim.predicate, subject.name, end.name, sex=sex_of_object)
        if turned:
            return as_sentence(turned)
    return told_sentence(fact, subject, end, words=words)


def recalled_of(known: Known, npc: NpcId, words: RelationWords, *, sex: int = 0) -> tuple[RecalledFact, ...]:
    """Return the sentences about an entity for an NPC, each with its source and the reason why it may know it.

    For `sex`, see `sentences_of`.
    """
    return tuple(recalled(text, fact, npc) for text, fact in sentences_of(known, words, sex=sex).items())


def recalled(text: str, fact: Fact, npc: NpcId) -> RecalledFact:
    """Return a fact in words, with its source and the reason why the NPC may know it."""
    provenance = fact.provenance
    return RecalledFact(
        fact.id,
        text,
        session_id=provenance.session_id,
        utterance_id=provenance.utterance_id,
        at_ms=provenance.at_ms,
        reason=why_known(fact.visibility, npc, session=provenance.session_id),
        is_summary=fact.claim.predicate == "summary" and fact.claim.subject.startswith(f"{EPISODE}-"),
    )


_BESIDE: Final = 0.5
"""Weight of other facts about two entities whose relation is asked for; the chain between them has 1."""


def with_chain(chain: Sequence[RecalledFact], facts: Sequence[RecalledFact]) -> tuple[RecalledFact, ...]:
    """Return the facts for a prompt: the chain first, if there is one."""
    if not chain:
        return tuple(facts)
    known = {one.fact_id for one in chain}
    return (*chain, *(replace(one, score=min(one.score, _BESIDE)) for one in facts if one.fact_id not in known))


# The facts about an entity that fit into a prompt: those that the question asks for by name, or else what describes the
# entity best.

_DESCRIBES = 0.5
"""Weight of a description; facts that the question asks for have 1."""


def select_facts(
    found: Sequence[KnownByName], question: str, npc: NpcId, *, words: RelationWords, itself: Known | None = None
) -> list[RecalledFact]:
    """Select the facts about each entity for a prompt, with their `path`.

    Args:
        found: The entities in the question, in its order, then participants of events, then facts near to the question
            in meaning. The latter two come last, and are left out if the question is answered without them.
        words: The campaign's sentences for relations, in the language of the question.
        itself: The NPC, if a question may ask for facts about it. Its identity is far from the question, so the answer
            to a short one comes first.
    """
    named = [one.known.entity.id for one in found if one.is_named]
    if itself is not None:
        found = (KnownByName(itself, f"named {itself.entity.name!r}"), *found)
    selected: list[RecalledFact] = []
    is_answered = False
    for one in found:
        if one.similarity is not None:
            if not is_answered:
                is_named = not _ends(one.known).isdisjoint(named)
                selected += _by_meaning(one, one.similarity, npc, words, is_named=is_named)
            continue
        asked = facts_asked(one.known, question, named=named, language=words.language)
        if one.known is itself and (asked.answer is None or not asked.is_short):
            continue
        if one.is_named:
            selected += _with_path(_facts_of(one.known, asked, npc, words), one.why, asked)
        elif not is_answered:
            beside = [replace(each, score=_DESCRIBES) for each in most_telling(one.known, npc, words)]
            selected += _with_path(beside, one.why, asked)
        is_answered = is_answered or (asked.answer is not None and asked.is_short)
    return selected


MOST_WRITTEN: Final = 2
"""Most sentences of persona and bible for one question."""


def written(text: str, source: str, npc: EntityId, similarity: float) -> RecalledFact:
    """Return a sentence of an author's text as a fact.

    Args:
        source: "persona" or "bible".
        npc: The NPC's entity.
    """
    fact = Claim.attribute(npc, source, text).fact_id
    path = f"its meaning: {similarity:.2f}"
    return RecalledFact(fact, text, score=_score(similarity), reason=source, path=path, similarity=similarity)


def _score(similarity: float) -> float:
    return min(1.0, _DESCRIBES + similarity)


def _ends(known: Known) -> Set[EntityId]:
    return {known.entity.id, *(other.id for _, other in known.relations)}


def _by_meaning(
    one: KnownByName, similarity: float, npc: NpcId, words: RelationWords, *, is_named: bool
) -> list[RecalledFact]:
    return [
        replace(each, score=_score(similarity), path=one.why, similarity=similarity, is_named=is_named)
        for each in recalled_of(one.known, npc, words)
    ]


def _facts_of(known: Known, asked: FactsAsked, npc: NpcId, words: RelationWords) -> list[RecalledFact]:
    if asked.answer is None:
        return most_telling(known, npc, words)
    answer = list(recalled_of(asked.answer, npc, words, sex=asked.sex))
    if asked.is_short:
        return answer
    beside = (one for one in most_telling(known, npc, words) if one not in answer)
    return [*answer, *(replace(one, score=_DESCRIBES) for one in beside)]


def _with_path(facts: Sequence[RecalledFact], why: str, asked: FactsAsked) -> list[RecalledFact]:
    answer = asked.answer
    answering = () if answer is None else (*answer.attributes, *(fact for fact, _ in answer.relations))
    asks = {fact.id: f"{why}, asks for {in_words(fact.claim.predicate)!r}" for fact in answering}
    return [replace(one, path=asks.get(one.fact_id, why)) for one in facts]


# An NPC's own secrets. A model that reads a secret reveals it sooner or later. So a prompt contains one only when the
# conversation touches it: by one of its words, or by an entity that it is about. Then it is needed, because an NPC that
# does not know its secret invents something. A word of the NPC's place or trade touches no secret: players ask a guard
# with a secret at the gate when the gate closes.

MOST_KEPT: Final = 2
_FOLLOWS: Final = 2
"""Most significant words of a question that may continue the line before it."""
_FEW: Final = 3
"""Words of such a question with at least one significant word: "Are you sure?"."""
_REFERS: Final = lexicon("content").words("refers")
"""Words that refer to something said before."""


@dataclass(frozen=True, slots=True)
class OwnSecret:
    """A secret of an NPC, and what touches it.

    Attributes:
        told: The secret in words, for the NPC only.
        words: Its words and the names of its entities, as stems.
    """

    told: RecalledFact
    words: Set[str]


def touched(
    secrets: Sequence[OwnSecret],
    question: str,
    *,
    just_heard: str,
    language: str,
) -> list[RecalledFact]:
    """Return the secrets touched by a question or by the line before it, those with most common words first.

    Args:
        question: Without the words that call the NPC. An empty one touches nothing.
        just_heard: The line before; it counts if the question continues it.
    """
    if not question or not secrets:
        return []
    asked = Text.of(question).telling(language)
    if _goes_on(question, len(asked)):
        asked |= Text.of(just_heard).telling(language)
    found = [(len(asked & one.words), one.told) for one in secrets]
    found.sort(key=lambda each: -each[0])
    return [told for n_shared, told in found if n_shared][:MOST_KEPT]


def _goes_on(question: str, n_significant: int) -> bool:
    """Return whether a question continues what was said before: "And who paid for it?" does, "Has my brother been
    here?" not.

    Args:
        n_significant: The number of its significant words.
    """
    spoken = Text.of(question).spoken
    if n_significant > _FOLLOWS:
        return False
    return len(spoken) < _FEW or (len(spoken) == _FEW and n_significant > 0) or not _REFERS.isdisjoint(spoken)


def without(secrets: Sequence[OwnSecret], loose: Set[str]) -> list[OwnSecret]:
    """Return the secrets without these words; a secret that has no others keeps them.

    Args:
        loose: Words of the NPC's names, and of public facts about it and its place.
    """
    return [replace(one, words=(one.words - loose) or one.words) for one in secrets]
