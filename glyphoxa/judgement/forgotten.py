"""An NPC that does not say what it was told of just what it is asked: a small model overlooks the line in its prompt.

Where the asker has told it, an answer has a word of that beyond the question's. Who asks back answers nothing.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import NEGATIONS, content_words, words

_TELLS: Final = content_words("told tell said say mentioned gesagt erzählt sagtest")
"""Who says that it was told says nothing of what."""
_DENIES: Final = re.compile(
    r"\byou (?:never|have never|have not|haven't|did not|didn't) (?:tell|told|say|said|mention|mentioned)\b"
    r"|\b(?:nobody|no one) (?:has )?(?:ever )?told me\b|\bi (?:have )?never heard\b"
    r"|\bdu hast (?:mir )?(?:\w+ ){0,3}(?:nie|nicht|nichts)\b.*\b(?:gesagt|erzählt)\b|\bniemand hat mir\b"
)
_ASKED: Final = re.compile(r"[^.!?…]*\?")


def forgets(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not asked.told or sentence.rstrip().endswith("?"):
        return None
    if _DENIES.search(sentence.casefold().replace("’", "'")):
        return Fault.FORGOTTEN
    if not content_words(sentence) and NEGATIONS.isdisjoint(words(sentence)):
        return None  # "Ah, that." leads in an answer
    return Fault.FORGOTTEN if leaves_out(f"{asked.so_far} {sentence}", asked) else None


def leaves_out(reply: str, asked: Asked) -> bool:
    """Whether nothing of what the asker told is in a reply. What it asks back is no part of an answer."""
    new = content_words(" ".join(asked.told)) - content_words(asked.question) - _TELLS
    return bool(new) and content_words(_ASKED.sub(" ", reply)).isdisjoint(new)
