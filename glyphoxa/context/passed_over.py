"""Why something that an NPC was reminded of gets no place in its prompt, in words for the DM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from glyphoxa.domain.turn import PassedOver, Recalled

IN_EVERY_PROMPT: Final = "it stands in every prompt"
IN_THE_TALK: Final = "it stands in the talk of the prompt"
OWN_WORDS: Final = "its own words, and it is not asked what it said"
NOT_NEAR: Final = "not near enough to the question"


def no_room(*, tokens: int, most: int) -> str:
    return f"no room among {most} in {tokens} tokens"


def missing(kept: Sequence[Recalled], *, of: Sequence[Recalled], why: str) -> tuple[PassedOver, ...]:
    """What of a choice was not kept, in its order; not what was kept in the same words."""
    texts = {one.text for one in kept}
    return tuple(PassedOver(one, why) for one in of if one.text not in texts)
