"""Which recalled talk is worth its place in a prompt.

Recall always finds something; a small model is better off with nothing than with what does not bear on the
question, and every sentence costs time before the first word.
"""

from __future__ import annotations

from glyphoxa.domain.ids import NpcId, SpeakerId
from glyphoxa.domain.turn import Recalled

NEAR = 0.45
"""Cosine from which MiniLM's sentences are about the same thing without sharing a word."""
RELATED = 0.25
"""Cosine below which a shared word is chance. True hits are often as low (0.25 to 0.45)."""


def bears_on_question(recalled: Recalled, *, npc: NpcId, asks_of_the_past: bool = False) -> bool:
    """Whether past talk is near enough in meaning or words.

    What the NPC said itself must share two words: its own "I do not know" is near to every question. A question
    somebody asked before tells nothing, unless it is the past that is asked about.
    """
    if recalled.text.rstrip().endswith("?") and not asks_of_the_past:
        return False
    if recalled.speaker_id == SpeakerId(npc):
        return recalled.shared_words >= 2
    similarity = recalled.similarity
    if similarity is None:
        # The embedding was late, or this is too new to have one: words alone decide.
        return recalled.shared_words >= 1
    return similarity >= NEAR or (similarity >= RELATED and recalled.shared_words >= 1)


def without_call(question: str, name: str) -> str:
    """The question without the name it is called by: a name everybody says with every question tells nothing.

    >>> without_call("Grimjaw, how much is a dagger?", "Grimjaw")
    'how much is a dagger?'
    """
    kept = [word for word in question.split() if word.strip(",.!?;:").casefold() != name.casefold()]
    return " ".join(kept)
