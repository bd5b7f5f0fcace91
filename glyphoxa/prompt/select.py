"""Select what enters the prompt of what an NPC knows and recalls for a question, and report why the rest does not.

Only this module decides that: for an open table, and for `glyphoxa recall --explain`. Pure: the recalled items, and the
present content of the prompt, are arguments.

    talk   ── not in the transcript ── own words only if asked for ── near enough ──┐
                                                                                    ├── fits the budget
    facts  ── not in the prompt's identity ─────────────────────────────────────────┘

In a tight budget, long lines are cut to the sentences that bear on the question before they have to fit. Facts are
sentences, chains of relations, answers, and the NPC's own secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeVar

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import (
    NEAR,
    RELATED,
    TOOK_PART,
    Claim,
    Fact,
    Recalled,
    RecalledFact,
    RecalledSummary,
    RecalledTalk,
    RecalledUtterance,
    Signal,
)
from glyphoxa.domain.turn_record import Rejected
from glyphoxa.language.facts import SPOKEN_FIRST, as_sentence, fact_sentence, spoken, why_known
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.relations import RelationWords, in_words
from glyphoxa.language.sentence_form import AskKind, only_asks, question_of
from glyphoxa.language.sentences import RoomLeft, tokens_of
from glyphoxa.language.text import FUNCTION_WORDS, Text
from glyphoxa.recall.facts import LINKED_TO, FactsAsked, facts_asked, is_secret
from glyphoxa.recall.ranking import BY_WORDS
from glyphoxa.recall.world import KnownByName
from glyphoxa.transcript.sessions import EPISODE, is_episode
from glyphoxa.world.graph import Known

_Item = TypeVar("_Item", bound=Recalled)

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
    loose: Set[str] = frozenset(),
) -> list[RecalledFact]:
    """Return the secrets touched by a question or by the line before it, those with most common words first.

    Args:
        question: Without the words that call the NPC. An empty one touches nothing.
        just_heard: The line before; it counts if the question continues it.
        loose: Words that touch no secret, unless it has no others: those of the NPC's names, and of public facts about
            it and its place. Function words are added: "You know that ..." is not touched by "What do you know?".
    """
    if not question or not secrets:
        return []
    asked = Text.of(question).telling(language)
    if _goes_on(question, len(asked)):
        asked |= Text.of(just_heard).telling(language)
    loose |= _function_words(language)
    found = [(len(asked & ((one.words - loose) or one.words)), one.told) for one in secrets]
    found.sort(key=lambda each: -each[0])
    return [told for n_shared, told in found if n_shared][:MOST_KEPT]


@lru_cache
def _function_words(language: str) -> frozenset[str]:
    """Return their stems in a language."""
    return Text.of(" ".join(FUNCTION_WORDS)).telling(language)


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


# Which recalled utterances are worth their place. Recall always finds something. A small model does better with nothing
# than with what does not bear on the question, and every sentence delays the first word.

_SHORTEST: Final = 3
TELLING_WORDS = 2
"""A line with fewer ("Good evening, Korvald.") carries no information."""
TIGHT_TOKENS = 120
"""A budget for a small model, which uses whatever it is given."""
_LEAST_TIGHT, _LEAST = 0.75, 0.5
"""The least score of other lines, relative to the best for the question. With only lines that are near by themselves, a
sixth of LoCoMo's questions lose their evidence, because answers seldom repeat the words of their question."""
_LEAST_ASKED = 3
"""Telling words of a question that asks for more than it contains; or a name. "Pass me the salt, please" has two."""
_FITS_THE_TIME = BY_WORDS[Signal.TIME] / 2
"""Half of what the ranking adds if the time of the question fits."""


def worth_telling(
    question: str, said: Sequence[RecalledTalk], *, tokens: int, asks_of_the_past: bool = False
) -> list[RecalledTalk]:
    """Return the utterances that may enter a prompt, in the order of `said`.

    These are the ones that bear on the question by themselves, at any rank. If one of those is among the best, the
    other best follow, because neighbours in the ranking belong together, such as an answer. If nothing bears on the
    question, the result is empty, because something is always the best. A text that hardly asks returns only what is
    near.

    Args:
        said: Best first.
        tokens: The budget. In a tight one, questions and the NPC's own words must bear on the question by themselves.
    """
    is_tight = tokens <= TIGHT_TOKENS
    least = _LEAST_TIGHT if is_tight else _LEAST
    near = [
        one
        for one in said
        if not why_unrelated(question, one, asks_of_the_past=asks_of_the_past)
        or _is_of_the_time(one, asks_of_the_past=asks_of_the_past)
    ]
    if not any(one.score >= least for one in near) or _is_small_talk(question):
        return near
    is_near = {id(one) for one in near}
    beside = {id(one) for one in said if one.score >= least and not (is_tight and (one.is_own or only_asks(one.text)))}
    return [one for one in said if id(one) in is_near | beside]


def _is_small_talk(question: str) -> bool:
    return len(Text.of(question).topic) < _LEAST_ASKED and not Text.of(question).named


def _is_of_the_time(one: RecalledTalk, *, asks_of_the_past: bool) -> bool:
    """Last week's events are in last week's utterances, which do not contain "last week"."""
    if isinstance(one, RecalledSummary) or Signal.RECAP in one.signals:
        return True
    fits = Signal.THEN in one.signals or (asks_of_the_past and one.signals.get(Signal.TIME, 0.0) >= _FITS_THE_TIME)
    return fits and len(Text.of(one.text).topic) >= TELLING_WORDS


_MEANS, _SHARE = 0.31, 0.4
"""A line that is less near in meaning must share this much of the question's topic. By `is_needed`, questions of the
grounding sets find their evidence as often among 600 lines of other campaigns, in about three quarters of the tokens;
those of LoCoMo in 92 %, and with a greater nearness less often."""


def is_needed(one: RecalledTalk, question: str, among: Sequence[Recalled], answers: Sequence[RecalledFact]) -> bool:
    """Return whether a line tells more of what is asked than `answers` do, and is near to the question in meaning, or
    shares much of its topic and more than any other line. What was said at the time in question is always needed.
    """
    if _is_of_the_time(one, asks_of_the_past=False) or isinstance(one, RecalledSummary):
        return True
    asked, near = Text.of(question).topic, one.similarity
    shared = Text.of(one.text).topic & asked
    if (near or 0.0) < NEAR and any(shared <= Text.of(fact.text).topic for fact in answers):
        return False
    is_best = not any(shared < Text.of(other.text).topic & asked for other in among)
    return near is None or near >= _MEANS or (is_best and len(shared) >= _SHARE * len(asked))


def why_unrelated(question: str, recalled: RecalledTalk, *, asks_of_the_past: bool = False) -> str:
    """Return why an utterance does not bear on the question; "" if it is near enough in meaning or words.

    The NPC's own words must share a word: its "I do not know" is near to every question. An earlier question carries no
    information, unless the past is asked about, and it is not the same question. A summary is not compared, because it
    is recalled only on request.
    """
    if isinstance(recalled, RecalledSummary):
        return "no summary was asked for"
    telling = Text.of(recalled.text).topic
    if recalled.text.rstrip().endswith("?") and (not asks_of_the_past or telling <= Text.of(question).topic):
        return "it is a question"
    if len(telling) < TELLING_WORDS:
        return f"it has fewer than {TELLING_WORDS} content words"
    n_shared = len(telling & Text.of(question).topic)
    # Without a similarity, the embedding was late, or this is too new to have one: words alone decide.
    similarity = None if recalled.is_own else recalled.similarity
    if similarity is None:
        return "" if n_shared >= 1 else "it shares no word with the question"
    if recalled.is_near(n_shared):
        return ""
    if n_shared:
        return f"similarity to the question {similarity:.2f} ({RELATED:.2f} needed with a shared word)"
    return f"similarity to the question {similarity:.2f} ({NEAR:.2f} needed without a shared word)"


_CALL: Final = "\0"
"""Marks where somebody was called."""


@lru_cache(64)  # parts of a hot context ask for the same question
def without_call(question: str, name: str, aliases: tuple[str, ...] = ()) -> str:
    """Remove the NPC's name from a question, because a name in every question carries no information.

    Of a name of several words each counts as a call, too, if it stands apart. So does an alias.

    >>> without_call("Grimjaw, how much is a dagger?", "Grimjaw")
    'how much is a dagger?'
    >>> without_call("Where did my father fall, Ulric?", "Father Ulric")
    'Where did my father fall?'
    """
    left = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _CALL, question, flags=re.IGNORECASE)
    for part in map(re.escape, (*name.split(), *aliases)):
        left = re.sub(rf"^\s*{part}(?=\s*[,.:;!])|(?<=,)\s*{part}(?=[.?!]*\s*$)", _CALL, left, flags=re.IGNORECASE)
    left = re.sub(rf"^\s*{_CALL}[\s,.:;!?]*|,?\s*{_CALL}(?=[.?!])", "", left)
    left = re.sub(rf"[\s,]*{_CALL}[\s,]*", " ", left)
    return " ".join(left.split())


# Which recalled items get a place in the prompt, and in which order.


_STEEP = 12
"""How fast the worth of a line falls with its score. At 1, short lines without information win, and 24 % of LoCoMo's
questions find evidence in 90 tokens and 81 in 1,500; at 12 it is 59 and 96."""
_LEAST_TOKENS = 12
"""The least cost of a line: its speaker, and the reader's attention. A shorter one is worth no more."""


def chosen(candidates: Sequence[Recalled], *, tokens: int, most: int) -> list[Recalled]:
    """Return what fits the budget.

    Greedily what is worth most for its length (the usual approximation of a knapsack: Dantzig, 1957). The result is in
    chronological order. An item without a time (a fact) keeps the place of its kind among the candidates.

    Args:
        candidates: Unique by their line; kinds in reading order.
        tokens: Budget of all together.
        most: Lines.
    """
    by_line: dict[str, Recalled] = {}
    for one in candidates:
        by_line.setdefault(recalled_line(one), one)
    costs = {line: tokens_of(line) for line in by_line}
    room = RoomLeft(tokens)

    def worth_per_token(line: str) -> float:
        return float(by_line[line].score ** _STEEP) / max(_LEAST_TOKENS, costs[line])

    found: set[str] = set()
    for line in sorted(by_line, key=worth_per_token, reverse=True):
        if len(found) < most and room.takes(costs[line]):
            found.add(line)
    kinds = list(dict.fromkeys(one.source for one in candidates))
    return sorted(
        (one for line, one in by_line.items() if line in found),
        key=lambda one: (kinds.index(one.source), 0 if isinstance(one, RecalledFact) else one.at_ms or 0),
    )


# The sentences of a long line that bear on the question, for prompts with room for few words.
#
# Whole lines fill a small model's budget with greetings and asides: two of them, of 45 tokens each. Cut to what bears
# on the question, four fit in the same room. Measured in `docs/measurements.md`.


LONGEST_TOKENS: Final = 30
"""Limit of an excerpt. At 20 tokens 3 % more questions find evidence, but the cut lines keep the sentence nearest to
the question in meaning in 72 of 100 cases, instead of 78."""
_SHARED, _TELLING, _MOST_TELLING = 2.0, 0.25, 8
"""The worth of a word of the question, and of another word that carries a topic, up to a maximum number."""


def excerpted(one: RecalledTalk, question: str) -> RecalledTalk:
    """Return the item with only the consecutive sentences that bear on the question.

    A short item, a single sentence, and an item that is not an utterance stay unchanged.
    """
    if not isinstance(one, RecalledUtterance) or tokens_of(one.text) <= LONGEST_TOKENS:
        return one
    return replace(one, text=_excerpt(one.text, question))


def _excerpt(text: str, question: str) -> str:
    said, asked = Text.of(text).sentences, Text.of(question).topic
    worth = [_worth(sentence, asked) for sentence in said]
    first = last = max(range(len(said)), key=worth.__getitem__)
    while True:
        beside = [at for at in (first - 1, last + 1) if 0 <= at < len(said)]
        fitting = [
            at for at in beside if tokens_of(" ".join(said[min(at, first) : max(at, last) + 1])) <= LONGEST_TOKENS
        ]
        if not fitting:
            return " ".join(said[first : last + 1])
        best = max(fitting, key=worth.__getitem__)
        first, last = min(first, best), max(last, best)


def _worth(sentence: str, asked: Set[str]) -> float:
    telling = Text.of(sentence).topic
    return _SHARED * len(telling & asked) + _TELLING * min(len(telling), _MOST_TELLING)


_WE: Final = lexicon("told").compile(r"\b{we}\b", flags=re.IGNORECASE)
_OF_TALK: Final = (AskKind.MEMORY, AskKind.ACTS, AskKind.ASKER, AskKind.OWN_WORDS, AskKind.PAST)
"""Questions that what was said answers, and a fact about their words does not."""
IN_EVERY_PROMPT: Final = "it is in every prompt"
NOT_PLAYED: Final = "it touches a topic that the group does not play"
NOT_NEEDED: Final = "another one contains it, or is nearer to the question"
IN_THE_TALK: Final = "it is already in the prompt's transcript"
_DISTANT, _DISTANT_TOKENS = 0.2, 40
"""Least cosine, and most tokens, of a distant line."""
_NEAR_THE_BEST: Final = 0.15
"""Largest distance from the best: among facts near to a question, only those almost as near as the best enter."""
ANOTHERS: Final = "somebody else said it of themselves, and the question is about the asker"
OWN_WORDS: Final = "its own words, and the question does not ask for them"
"""A language model made them up. As something the NPC knows, they would be true the next evening."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """
    Attributes:
        question: The question in the asker's words.
        asker: The asker's name; empty if it is unknown.
        facts: About the entities in the question, in its order.
        talk: Best first.
        forbids: Returns whether a text must not come up.
        is_told: Returns whether a fact is in all prompts of the NPC.
        in_talk: Returns whether an utterance is in the transcript of the prompt.
    """

    question: str
    language: str
    asker: str = ""
    facts: Sequence[RecalledFact] = ()
    talk: Sequence[RecalledTalk] = ()
    forbids: Callable[[str], bool] = lambda _: False
    is_told: Callable[[RecalledFact], bool] = lambda _: False
    in_talk: Callable[[RecalledUtterance], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class Selection:
    """
    Attributes:
        chosen: Items that enter the prompt, in its order.
        rejected: The rest, each with the reason, except what is chosen in the same words.
        distant: If nothing is chosen in a tight budget, the best utterance that is not near to the question. A model
            may find that it answers the question.
    """

    chosen: tuple[Recalled, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    distant: RecalledTalk | None = None

    @property
    def facts(self) -> tuple[RecalledFact, ...]:
        return tuple(one for one in self.chosen if isinstance(one, RecalledFact))

    @property
    def talk(self) -> tuple[RecalledTalk, ...]:
        return tuple(one for one in self.chosen if not isinstance(one, RecalledFact))


def select(candidates: Candidates, budgets: Budgets) -> Selection:
    """Select items for a prompt.

    Facts precede utterances, unless the past is asked about.
    """
    question, tokens, most = candidates.question, budgets.facts_tokens, budgets.most_facts
    asked = question_of(question, candidates.language)
    of_the_past, wants_own = asked.has(AskKind.PAST), asked.has(AskKind.OWN_WORDS)
    # A small model takes another's "I" for the asker.
    is_of_asker = tokens <= TIGHT_TOKENS and candidates.asker and asked.has(AskKind.ASKER) and not _WE.search(question)

    def why_not_heard(one: RecalledTalk, _: Sequence[RecalledTalk]) -> str:
        if candidates.forbids(one.text):
            return NOT_PLAYED
        if isinstance(one, RecalledUtterance) and candidates.in_talk(one):
            return IN_THE_TALK
        if is_of_asker and _is_anothers(one, candidates.asker, candidates.language):
            return ANOTHERS
        return OWN_WORDS if one.is_own and not wants_own else ""

    def why_not_stated(one: RecalledFact, kept: Sequence[RecalledFact]) -> str:
        if candidates.forbids(one.text):
            return NOT_PLAYED
        # A small model overlooks its identity, so what it says about somebody in the question is repeated beside that.
        if not (one.is_asked or one.is_named) and candidates.is_told(one):
            return IN_EVERY_PROMPT
        is_far = one.similarity is not None and one.similarity < least
        return NOT_NEEDED if is_far or any(one.text in other.text for other in kept) else ""

    heard, unheard = _sorted_out(candidates.talk, why_not_heard)
    near = worth_telling(question, heard, tokens=tokens, asks_of_the_past=of_the_past)
    far = list(_without(near, heard))
    unrelated = [Rejected(one, why_unrelated(question, one, asks_of_the_past=of_the_past)) for one in far]
    distant = next((one for one in far if _is_worth_a_look(one, candidates.asker if is_of_asker else "")), None)
    played = (one for one in candidates.facts if not candidates.forbids(one.text))
    least = max((one.similarity or 0.0 for one in (*near, *played)), default=0.0) - _NEAR_THE_BEST
    facts, unstated = _sorted_out(candidates.facts, why_not_stated)
    if tokens <= TIGHT_TOKENS:
        near = [excerpted(one, question) for one in near]
        answers = [] if any(map(asked.has, _OF_TALK)) else [fact for fact in facts if fact.similarity is None]
        beside = [*facts, *near]
        near, needless = _sorted_out(
            near, lambda one, _: "" if is_needed(one, question, beside, answers) else NOT_NEEDED
        )
        unrelated += needless
    ranked: Sequence[Recalled] = [*near, *facts] if of_the_past else [*facts, *near]
    found = chosen(ranked, tokens=tokens, most=most)
    no_room = (Rejected(one, f"no room among {most} in {tokens} tokens") for one in _without(found, ranked))
    lines = {recalled_line(one) for one in found}
    rejected = (*no_room, *unrelated, *unheard, *unstated)
    rejected = tuple(one for one in rejected if recalled_line(one.recalled) not in lines)
    return Selection(tuple(found), rejected, None if found or tokens > TIGHT_TOKENS else distant)


def _is_worth_a_look(one: RecalledTalk, asker: str) -> bool:
    """Return whether a model should look for the answer in a line that is not near to the question.

    Args:
        asker: Who must have said it; empty: anybody but the NPC.
    """
    if not isinstance(one, RecalledUtterance) or one.is_own or one.text.rstrip().endswith("?"):
        return False
    is_short = tokens_of(one.text) <= _DISTANT_TOKENS
    return is_short and one.speaker_name == (asker or one.speaker_name) and (one.similarity or 0.0) >= _DISTANT


def _is_anothers(one: RecalledTalk, asker: str, language: str) -> bool:
    """Return whether somebody else said it of themselves, without naming the asker."""
    if not isinstance(one, RecalledUtterance) or one.is_own or one.speaker_name in ("", asker):
        return False
    return question_of(one.text, language).has(AskKind.ASKER) and not any(part in one.text for part in asker.split())


def _sorted_out(
    items: Iterable[_Item], why: Callable[[_Item, Sequence[_Item]], str]
) -> tuple[list[_Item], list[Rejected]]:
    """Return the items to keep, and the others, each with the reason against it.

    Args:
        why: Takes an item and those kept before it; returns "" for one to keep.
    """
    kept, rejected = list[_Item](), list[Rejected]()
    for one in items:
        if reason := why(one, kept):
            rejected.append(Rejected(one, reason))
        else:
            kept.append(one)
    return kept, rejected


def _without(kept: Sequence[Recalled], of: Sequence[_Item]) -> Iterator[_Item]:
    """Yield items of `of` that are not in `kept`, which has the same objects."""
    ids = {id(one) for one in kept}
    return (one for one in of if id(one) not in ids)
