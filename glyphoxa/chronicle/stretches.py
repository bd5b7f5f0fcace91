"""Where talk is cut into stretches that are read at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from glyphoxa.chronicle.talk import NumberedUtterance, SceneTalk
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId

LONGEST: Final = 40
"""Utterances of a stretch: what a model reads at once, and what is read again when a worker dies."""
BEFORE: Final = 8
"""Utterances in front of a stretch that say what its pronouns mean."""
_BREAK_MS: Final = 10 * 60_000
"""A table that was silent for so long has had a pause, or another scene."""


def stretches(
    campaign: CampaignId,
    session: SessionId,
    language: str,
    said: Sequence[NumberedUtterance],
    before: Sequence[NumberedUtterance] = (),
) -> Iterator[SceneTalk]:
    """The talk in stretches, each with what was said in front of it in the same scene. A scene ends where others
    listen, and where nobody said anything for ten minutes.
    """
    context: list[NumberedUtterance] = list(before)
    stretch: list[NumberedUtterance] = []
    for each in said:
        last = (stretch or context)[-1] if stretch or context else None
        is_new_scene = last is not None and is_break(last, each)
        if stretch and (is_new_scene or len(stretch) == LONGEST):
            yield SceneTalk(campaign, session, language, tuple(stretch), tuple(context[-BEFORE:]))
            context, stretch = [*context, *stretch], []
        if is_new_scene:
            context = []
        stretch.append(each)
    if stretch:
        yield SceneTalk(campaign, session, language, tuple(stretch), tuple(context[-BEFORE:]))


def is_break(last: NumberedUtterance, now: NumberedUtterance) -> bool:
    """Whether another scene begins between two utterances that follow each other."""
    if now.utterance.at_ms - last.utterance.at_ms >= _BREAK_MS:
        return True
    heard, hears = _hearers(last), _hearers(now)
    # One who comes or goes does not end a scene.
    return bool(heard) and bool(hears) and heard.isdisjoint(hears)


def _hearers(said: NumberedUtterance) -> frozenset[NpcId]:
    return said.utterance.witnesses
