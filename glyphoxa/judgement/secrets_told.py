"""An NPC that tells what it keeps to itself.

Told is a secret where a sentence says most of its words, or says something of it that the question did not, or says
yes to a question that asks for it. What the NPC said just before counts: a secret can be told in pieces. What it may
tell everybody of itself and of where it is tells nothing by itself, and a sentence that denies tells nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import NEGATIONS, content_words, words

_MOST: Final = 0.6
"""Of the secret's words: then it is told, whatever else is said."""
_ABOUT_IT: Final = 0.4
"""Of the sentence's words, if it says two of the secret: then that is what it speaks of."""
_ONLY_IT: Final = 0.75
"""The same, if it says one."""
_ASKS_FOR_IT: Final = 2
"""Words of the secret in a question that guesses it."""
_YES: Final = re.compile(
    r"(?:yes|aye|yea|yeah|indeed|true|i (?:do|did|have|am|was)(?=\W*$)|i did"
    r"|it was me|you(?: are|'re) right|that(?: is|'s) (?:true|right|so)|so it is"
    r"|ja|jawohl|stimmt|das stimmt|ich war es|das war ich|(?:da )?(?:hast du|haben sie) recht"
    r"|(?:du hast|sie haben) recht|so ist es)"
    r"\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")
_JUST_BEFORE: Final = 2
"""Answers before this one in which a piece may have been told."""


def tells_a_secret(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not character.guards_secrets or not asked.kept:
        return None
    public = content_words(" ".join((character.name, *character.aliases, asked.speaker_name)))
    if not (stated := _stated(sentence)):
        return None
    said = _Said(
        content_words(stated) - public,
        before=content_words(_stated(" ".join((*(reply for _, reply in asked.before[-_JUST_BEFORE:]), asked.so_far)))),
        question=content_words(asked.question) - public,
        loose=content_words(" ".join(asked.identity)),
    )
    for secret in asked.kept:
        kept = content_words(secret) - public
        if _is_told(said, kept) or _is_admitted(stated, kept, said.question):
            return Fault.SECRET
    return None


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of a sentence, of what was said before it, of the question, and of what everybody may be told."""

    words: frozenset[str]
    before: frozenset[str]
    question: frozenset[str]
    loose: frozenset[str]


def _stated(text: str) -> str:
    """Those of its sentences that deny nothing: "No. It lies under the stairs." denies and tells."""
    return " ".join(each.strip() for each in _SENTENCE.findall(text) if NEGATIONS.isdisjoint(words(each)))


def _is_told(said: _Said, kept: frozenset[str]) -> bool:
    shared = said.words & kept
    if not shared - said.loose:
        return False
    in_pieces = shared | (said.before & kept if shared - said.before else frozenset())
    if len(in_pieces) >= max(2, _MOST * len(kept)):
        return True
    is_about_it = len(shared) >= (_ABOUT_IT if len(shared) > 1 else _ONLY_IT) * len(said.words)
    return bool(shared - said.question - said.loose) and is_about_it


def _is_admitted(sentence: str, kept: frozenset[str], question: frozenset[str]) -> bool:
    return len(question & kept) >= _ASKS_FOR_IT and _YES.match(sentence) is not None
