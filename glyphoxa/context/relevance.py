"""Which recalled talk is worth its place in a prompt.

Recall always finds something; a small model is better off with nothing than with what does not bear on the
question, and every sentence costs time before the first word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.domain.ids import NpcId, SpeakerId
from glyphoxa.domain.turn import Recalled

VAGUE = frozenset(
    {"about", "anything", "away", "come", "dear", "else", "evening", "everything", "friend", "give", "good", "hello"}
    | {"know", "known", "like", "look", "make", "morning", "much", "need", "night", "nothing", "people", "please"}
    | {"remember", "said", "sorry", "some", "something", "take", "tell", "thank", "thanks", "that", "them", "there"}
    | {"they", "thing", "things", "think", "this", "told", "want", "well", "what", "when", "where", "will", "with"}
    | {"would", "your", "have", "been", "were", "does", "from", "here", "just", "more", "then", "than", "very"}
)
"""Words that are in every talk and are about nothing."""
TELLING_WORDS = 2
"""A line with fewer ("Good evening, Korvald.") tells nothing."""
NEAR = 0.45
"""Cosine from which MiniLM's sentences are about the same thing without sharing a word."""
RELATED = 0.25
"""Cosine below which a shared word is chance. True hits are often as low (0.25 to 0.45)."""
TIGHT_TOKENS = 120
"""A budget that is meant for a small model. Up to it, leaving out whatever is not near by itself finds more evidence,
as the few places are left to what is (48.5 against 46.2 % of LoCoMo's questions in 90 tokens). Above it, it costs: 61
against 62 % in 150 tokens, 72 against 78 in 300, 81 against 94 in 1,500.
"""
_ANSWERS_WITHIN_MS = 15_000


def worth_telling(
    question: str, said: Sequence[Recalled], *, npc: NpcId, tokens: int, asks_of_the_past: bool = False
) -> list[Recalled]:
    """What of past talk may stand in a prompt, in the order of `said`.

    In a tight budget only what bears on the question by itself, and an answer together with the question that it
    answers: "To the fen" shares no word with anything. In a larger one the ranking is right more often than such a
    test, which then only decides whether there is anything to be told at all: who asks for the salt is not told of old
    times (R-006).

    Args:
        said: Best first.
        tokens: Of the budget.
    """
    near = [one for one in said if bears_on(question, one, npc=npc, asks_of_the_past=asks_of_the_past)]
    if tokens > TIGHT_TOKENS:
        return list(said) if near else []
    if asks_of_the_past:  # questions stand for themselves then
        return near
    told = (one if one in near else _with_its_question(one, said, question, npc) for one in said)
    return [one for one in told if one is not None]


def _with_its_question(answer: Recalled, said: Sequence[Recalled], question: str, npc: NpcId) -> Recalled | None:
    """The line and the one it answers as one, if that bears on the question."""
    if answer.text.rstrip().endswith("?") or not telling_words(answer.text.partition(": ")[2]):
        return None
    asked = [
        one
        for one in said
        if one.text.rstrip().endswith("?")
        and one.session_id == answer.session_id
        and one.speaker_id != answer.speaker_id
        and 0 < (answer.at_ms or 0) - (one.at_ms or 0) <= _ANSWERS_WITHIN_MS
        and bears_on(question, one, npc=npc, asks_of_the_past=True)
    ]
    if not asked:
        return None
    last = max(asked, key=lambda one: one.at_ms or 0)
    return replace(answer, text=f"{last.text} {answer.text}", score=max(last.score, answer.score))


def bears_on(question: str, recalled: Recalled, *, npc: NpcId, asks_of_the_past: bool = False) -> bool:
    """Whether past talk is near enough in meaning or words.

    What the NPC said itself must share two words: its own "I do not know" is near to every question. A question
    somebody asked before tells nothing, unless it is the past that is asked about.
    """
    if recalled.text.rstrip().endswith("?") and not asks_of_the_past:
        return False
    telling = telling_words(recalled.text.partition(": ")[2])
    if len(telling) < TELLING_WORDS:
        return False
    n_shared = len(telling & telling_words(question))
    if recalled.speaker_id == SpeakerId(npc):
        return n_shared >= 2
    similarity = recalled.similarity
    if similarity is None:
        # The embedding was late, or this is too new to have one: words alone decide.
        return n_shared >= 1
    return similarity >= NEAR or (similarity >= RELATED and n_shared >= 1)


def telling_words(text: str) -> set[str]:
    """The words of a line that are about something: four letters or more, and not `VAGUE`; by their beginnings, so
    that "smiths" is "smith".
    """
    return {word[:5] for word in re.findall(r"[^\W\d_]{4,}", text.casefold()) if word not in VAGUE}


def without_call(question: str, name: str) -> str:
    """The question without the name it is called by: a name everybody says with every question tells nothing.

    >>> without_call("Grimjaw, how much is a dagger?", "Grimjaw")
    'how much is a dagger?'
    """
    kept = [word for word in question.split() if word.strip(",.!?;:").casefold() != name.casefold()]
    return " ".join(kept)
