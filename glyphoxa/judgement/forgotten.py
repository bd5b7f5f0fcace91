"""An NPC that does not say what it was told of just what it is asked: a small model overlooks the line in its prompt.

Where the asker has told it, an answer has a word of that beyond the question's. Who asks back answers nothing.
"""

from __future__ import annotations

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import content_words


def forgets(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if not asked.told or sentence.rstrip().endswith("?"):
        return None
    new = content_words(" ".join(asked.told)) - content_words(asked.question)
    said = content_words(f"{asked.so_far} {sentence}")
    return Fault.FORGOTTEN if new and said.isdisjoint(new) else None
