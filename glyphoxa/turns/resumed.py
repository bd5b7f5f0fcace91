"""Who was talking with whom when a session was left, by what was said in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.utterance import Utterance


def exchanges(said: Sequence[Utterance]) -> Iterator[tuple[PlayerId, NpcId, int]]:
    """Each player whom an NPC answered, the NPC, and when its answer was over; oldest first.

    Where several players spoke before an answer, the log does not tell whose it was: then it counts for none of them.
    """
    spoke: set[str] = set()
    for utterance in said:
        if utterance.npc_id is None:
            spoke.add(utterance.speaker_id)
            continue
        if len(spoke) == 1:
            yield PlayerId(spoke.pop()), utterance.npc_id, utterance.at_ms + utterance.duration_ms
        spoke.clear()
