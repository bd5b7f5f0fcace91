"""An NPC that tells what it keeps to itself.

Told is a secret where a sentence says most of its words, or says something of it that the question did not, or says
yes to a question that asks for it. A sentence that denies tells nothing.
"""

from __future__ import annotations

import re
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
    r"(?:yes|aye|yea|yeah|indeed|true|i did|it was me|you are right|ja|jawohl|stimmt|das stimmt|ich war es|das war ich)"
    r"\b",
    re.IGNORECASE,
)


def tells_a_secret(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not character.guards_secrets or not asked.kept:
        return None
    public = content_words(" ".join((character.name, *character.aliases, asked.speaker_name)))
    denies = not NEGATIONS.isdisjoint(words(sentence))
    said = content_words(sentence) - public
    question = content_words(asked.question) - public
    for secret in asked.kept:
        kept = content_words(secret) - public
        if not denies and (_is_told(said, kept, question) or _is_admitted(sentence, kept, question)):
            return Fault.SECRET
    return None


def _is_told(said: frozenset[str], kept: frozenset[str], question: frozenset[str]) -> bool:
    shared = said & kept
    if not shared:
        return False
    if len(shared) >= max(2, _MOST * len(kept)):
        return True
    is_about_it = len(shared) >= (_ABOUT_IT if len(shared) > 1 else _ONLY_IT) * len(said)
    return bool(shared - question) and is_about_it


def _is_admitted(sentence: str, kept: frozenset[str], question: frozenset[str]) -> bool:
    return len(question & kept) >= _ASKS_FOR_IT and _YES.match(sentence) is not None
