"""An NPC that says again what it said: a small model copies its own lines from the talk.

An answer may well be given twice: to the same question, or by the way. So a sentence is a repetition where the last
answer had it and was given to other words, or where the last two answers had it, or where this reply has it already.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import content_words

_LEAST_REPEATED: Final = 3
"""Words. What is shorter is said by everybody all the time ("Aye.", "Not I."): twice running is no echo."""
_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")


def repeats(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    said = _plain(sentence)
    if not said:
        return None
    if said in _sentences(asked.so_far):
        return Fault.REPEATED
    answers = [(question, _sentences(reply)) for question, reply in asked.before[-2:]]
    if len(answers) == 2 and all(said in sentences for _, sentences in answers):
        return None if all(_is_alike(question, asked.question) for question, _ in answers) else Fault.REPEATED
    if answers and said in answers[-1][1] and said.count(" ") + 1 >= _LEAST_REPEATED:
        return None if _is_alike(answers[-1][0], asked.question) else Fault.REPEATED
    return None


def _is_alike(question: str, other: str) -> bool:
    """Whether two questions may have one answer: they share a word that says something, or one of them has none."""
    words, others = content_words(question), content_words(other)
    return bool(words & others) or not (words and others)


def _sentences(text: str) -> set[str]:
    return {plain for found in _SENTENCE.findall(text) if (plain := _plain(found))}


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
