"""Names are learned from the transcript in the background, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.names.learning import Learner
from tests.support.builders import SMITH, an_utterance


@dataclass
class Desk:
    """The journal and the learning, and what was done there in which order."""

    done: list[tuple[str, str]] = field(default_factory=list)
    is_away: bool = False
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_until_logged(self, utterance: UtteranceId) -> bool:
        await self.let_go.wait()
        if not self.is_away:
            self.done.append(("log", utterance))
        return not self.is_away


class Watched(Learner):
    """Tells the desk what it learns from."""

    def __init__(self, desk: Desk) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, nothing, now_ms=nothing, wait_until_logged=desk.wait_until_logged)
        self._desk = desk

    async def heard(self, said: Utterance) -> None:
        self._desk.done.append(("heard", said.id))

    async def revised(self, said: Utterance) -> None:
        if self._desk.is_away:
            raise Unavailable("the database is away")
        self._desk.done.append(("revised", said.id))


@asynccontextmanager
async def learning() -> AsyncIterator[tuple[Learner, Desk]]:
    desk = Desk()
    learner = Watched(desk)
    running = asyncio.create_task(learner.run())
    try:
        yield learner, desk
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def by_model(was: Utterance) -> UtteranceRevised:
    """Return the event of an utterance in which a model has corrected a name."""
    correction = Correction(0, 2, was.text[:2], "Eldrinax", 0.9, "llm", "")
    return UtteranceRevised(replace(was, corrections=(correction,)), was)


async def test_an_utterance_is_in_the_log_before_it_is_heard_and_heard_before_it_is_revised() -> None:
    async with learning() as (learner, desk):
        first, second = an_utterance("No, Eldrinax.", id="u1"), an_utterance("Well.", id="u2")
        learner.on(UtteranceKept(first))
        learner.on(UtteranceKept(an_utterance("Aye.", id="u3", npc=SMITH)))
        learner.on(by_model(first))
        learner.on(UtteranceRevised(replace(first, text="No, Eldrinax!"), first))  # as the DM corrects it
        learner.on(UtteranceKept(second))
        assert desk.done == []
        desk.let_go.set()
        assert await learner.finish(60_000)
    assert desk.done == [("log", "u1"), ("heard", "u1"), ("revised", "u1"), ("log", "u2"), ("heard", "u2")]


async def test_while_the_database_is_away_what_is_said_still_counts_for_what_comes_later() -> None:
    async with learning() as (learner, desk):
        desk.let_go.set()
        desk.is_away = True
        learner.on(UtteranceKept(an_utterance("Aldrinacks.", id="u1")))
        learner.on(by_model(an_utterance("Aldrinacks.", id="u1")))
        assert await learner.finish(60_000)
        desk.is_away = False
        learner.on(UtteranceKept(an_utterance("No, Eldrinax.", id="u2")))
        assert await learner.finish(60_000)
    assert desk.done == [("heard", "u1"), ("log", "u2"), ("heard", "u2")]


async def test_the_end_of_a_session_does_not_wait_for_ever() -> None:
    async with learning() as (learner, _):
        learner.on(UtteranceKept(an_utterance("Well.")))
        assert not await learner.finish(1)
