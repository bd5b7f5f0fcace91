"""Which recalled talk is worth its place in a prompt.

Recall always finds something; a small model is better off with nothing than with what does not bear on the
question, and every sentence costs time before the first word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import ANSWERING, RecalledSummary, RecalledTalk, Signal, is_own_utterance
from glyphoxa.recall.ranking.ranking import BY_WORDS

VAGUE = frozenset(
    {"about", "anything", "away", "come", "dear", "else", "evening", "everything", "friend", "give", "good", "hello"}
    | {"know", "known", "like", "look", "make", "morning", "much", "need", "night", "nothing", "people", "please"}
    | {"remember", "said", "sorry", "some", "something", "take", "tell", "thank", "thanks", "that", "them", "there"}
    | {"they", "thing", "things", "think", "this", "told", "want", "well", "what", "when", "where", "will", "with"}
    | {"would", "your", "have", "been", "were", "does", "from", "here", "just", "more", "then", "than", "very"}
)
"""Words that are in every talk and are about nothing."""
_LITTLE_WORDS: Final = (
    "the and you are was had has not but for his her him its our out off all any how who why can did may yes too now "
    "get got let see say new one two old way day use ask try put own far few don won isn ain der die das den dem des "
    "ein ist und ich mir mich dir dich ihr ihm ihn sie wir uns war hat man was wer wie wen wem von vom zum zur aus bei "
    "mit auf für nur nie noch mal gut tag ort ich bin hab sag gib ins ans nun tun tut ihn"
)
_LITTLE: Final = frozenset(_LITTLE_WORDS.split())
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
TELLING_WORDS = 2
"""A line with fewer ("Good evening, Korvald.") tells nothing."""
NEAR = 0.45
"""Cosine from which MiniLM's sentences are about the same thing without sharing a word."""
RELATED = 0.25
"""Cosine below which a shared word is chance. True hits are often as low (0.25 to 0.45)."""
TIGHT_TOKENS = 120
"""A budget that is meant for a small model, which takes up whatever it is given."""
_LEAST_TIGHT, _LEAST = 0.75, 0.5
"""Score of what is told besides what is near by itself, against the best of the same question. On five conversations of
LoCoMo 55 % of the questions find evidence in 90 tokens so, and 94 % in 1,500; with nothing but what is near by itself
49 and 72 %: answers seldom repeat the words of their question. Without a least score it is no more, in more lines.
"""
_LEAST_ASKED = 3
"""Telling words of what asks for more than it says itself; or a name. "Pass me the salt, please" has two."""
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w'’-]+")
_FITS_THE_TIME = BY_WORDS[Signal.TIME] / 2
"""Half of what the ranking gives where the time of the question fits."""


def worth_telling(
    question: str, said: Sequence[RecalledTalk], *, npc: NpcId, tokens: int, asks_of_the_past: bool = False
) -> list[RecalledTalk]:
    """What of past talk may stand in a prompt, in the order of `said`.

    What bears on the question by itself, wherever it ranks, and if that is among the best, the other best too: what
    ranks beside it belongs to it, such as an answer. Nothing, if nothing bears on it: something is always the best, and
    who asks for the salt is not told of old times: what hardly asks brings nothing but what is near.

    Args:
        said: Best first.
        tokens: Of the budget. In a tight one questions, what the NPC said itself, and what tells nothing and answers
            nothing have to bear on the question by themselves.
    """
    is_tight = tokens <= TIGHT_TOKENS
    least = _LEAST_TIGHT if is_tight else _LEAST
    near = [
        one
        for one in said
        if bears_on(question, one, npc=npc, asks_of_the_past=asks_of_the_past)
        or _is_of_the_time(one, asks_of_the_past=asks_of_the_past)
    ]
    if not any(one.score >= least for one in near) or _is_small_talk(question):
        return near
    is_near = {id(one) for one in near}
    return [
        one for one in said if id(one) in is_near or (one.score >= least and (not is_tight or _stands_beside(one, npc)))
    ]


def _is_small_talk(question: str) -> bool:
    return len(telling_words(question)) < _LEAST_ASKED and not _NAME.search(question)


def _is_of_the_time(one: RecalledTalk, *, asks_of_the_past: bool) -> bool:
    """What happened last week is told by what was said then: it has no word of "last week" in it."""
    if isinstance(one, RecalledSummary) or Signal.RECAP in one.signals:
        return True
    fits = Signal.THEN in one.signals or (asks_of_the_past and one.signals.get(Signal.TIME, 0.0) >= _FITS_THE_TIME)
    return fits and len(telling_words(one.text)) >= TELLING_WORDS


def _stands_beside(one: RecalledTalk, npc: NpcId) -> bool:
    """Whether it may be told for what is told with it."""
    if isinstance(one, RecalledSummary) or one.text.rstrip().endswith("?") or is_own_utterance(one, npc):
        return False
    answers = any(one.signals.get(signal, 0.0) > 0 for signal in ANSWERING)
    return answers or len(telling_words(one.text)) >= TELLING_WORDS


def bears_on(question: str, recalled: RecalledTalk, *, npc: NpcId, asks_of_the_past: bool = False) -> bool:
    """Whether past talk is near enough in meaning or words.

    What the NPC said itself must share a word: its own "I do not know" is near to every question. A question somebody
    asked before tells nothing, unless it is the past that is asked about, and not the same question. A summary is not
    compared: it is asked for, or it is not there.
    """
    if isinstance(recalled, RecalledSummary):
        return False
    telling = telling_words(recalled.text)
    if recalled.text.rstrip().endswith("?") and (not asks_of_the_past or telling <= telling_words(question)):
        return False
    if len(telling) < TELLING_WORDS:
        return False
    n_shared = len(telling & telling_words(question))
    if is_own_utterance(recalled, npc):
        return n_shared >= 1
    similarity = recalled.similarity
    if similarity is None:
        # The embedding was late, or this is too new to have one: words alone decide.
        return n_shared >= 1
    return similarity >= NEAR or (similarity >= RELATED and n_shared >= 1)


@lru_cache(maxsize=1_024)  # of the same question and the same talk with each partial transcript
def telling_words(text: str) -> frozenset[str]:
    """The words of a line that are about something: not `VAGUE`, and four letters or more, or three if they are not
    among the `_LITTLE`; by their beginnings, so that "smiths" is "smith".
    """
    return frozenset(word[:5] for word in _WORD.findall(text.casefold()) if word not in VAGUE and word not in _LITTLE)


_CALL: Final = "\0"
"""Where somebody was called."""


def without_call(question: str, name: str) -> str:
    """The question without the name it is called by: a name everybody says with every question tells nothing. Of a name
    of several words each calls, too, where it stands apart.

    >>> without_call("Grimjaw, how much is a dagger?", "Grimjaw")
    'how much is a dagger?'
    >>> without_call("Where did my father fall, Ulric?", "Father Ulric")
    'Where did my father fall?'
    """
    left = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _CALL, question, flags=re.IGNORECASE)
    for part in map(re.escape, name.split()):
        left = re.sub(rf"^\s*{part}(?=\s*[,.:;!])|(?<=,)\s*{part}(?=[.?!]*\s*$)", _CALL, left, flags=re.IGNORECASE)
    left = re.sub(rf"^\s*{_CALL}[\s,.:;!?]*|,?\s*{_CALL}(?=[.?!])", "", left)
    left = re.sub(rf"[\s,]*{_CALL}[\s,]*", " ", left)
    return " ".join(left.split())
