"""When a turn is over, and how long an answer may take: the section `turns` of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from glyphoxa.config.sections import Section
from glyphoxa.turns.barge_in import AFTER_MS
from glyphoxa.turns.floor import GAP_MS


class TurnsSettings(Section):
    """When somebody has finished, and how long an answer may take. Milliseconds.

    Attributes:
        pause_ms: Silence after which an answer is prepared.
        end_of_turn_ms: Silence after which the speaker is taken to have finished.
        unfinished_ms: The same, when the words so far sound unfinished ("and then ...").
        reply_deadline_ms: From when a reply may be heard to its first sound; later is `timed_out`.
        filler_after_ms: A short sound in character when nothing is heard after that; 0 is never. Left out, 1500 with a
            language model on this machine, which may be slow, else never.
        gap_ms: Silence between two NPCs, a sixth more or less. Behind a player an NPC leaves none: the end of their
            turn was waited for.
        barge_in_ms: A player's voice that goes on for so long silences an NPC until what it says is known; 0: words
            alone do, for a room in which microphones hear the NPCs.
        npc_to_npc: So many answers in a row may NPCs give to each other, where one calls another by name; 0: they
            answer players alone.
    """

    pause_ms: Annotated[int, Field(ge=50, le=2000)] = 200
    end_of_turn_ms: Annotated[int, Field(ge=50, le=5000)] = 480
    unfinished_ms: Annotated[int, Field(ge=50, le=10_000)] = 900
    reply_deadline_ms: Annotated[int, Field(ge=500, le=120_000)] = 15_000
    filler_after_ms: Annotated[int, Field(ge=0, le=10_000)] | None = None
    gap_ms: Annotated[int, Field(ge=0, le=2000)] = GAP_MS
    barge_in_ms: Annotated[int, Field(ge=0, le=2000)] = AFTER_MS
    npc_to_npc: Annotated[int, Field(ge=0, le=10)] = 0


def turns_contradictions(turns: TurnsSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each with where it stands in the file."""
    for shorter, longer in pairwise(("pause_ms", "end_of_turn_ms", "unfinished_ms")):
        least, found = getattr(turns, shorter), getattr(turns, longer)
        if found < least:
            yield ("turns", longer), f"turns.{longer} ({found}) must not be less than turns.{shorter} ({least})"
