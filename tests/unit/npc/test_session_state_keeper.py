"""The actor that keeps the memory of a running session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.events import UtteranceKept
from glyphoxa.domain.ids import CampaignId, SessionId, UtteranceId
from glyphoxa.npc.session_state_keeper import SessionStateKeeper, StoredSession
from glyphoxa.prompt.conversation import RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, SessionState, SummarySentence, View
from tests.support.builders import an_utterance

AT = (CampaignId("c"), SessionId("s"))


class SlowStates:
    """Session states in memory. Each `note` waits until it may go on."""

    def __init__(self) -> None:
        self.noted: list[tuple[View, dict[str, bool]]] = []
        self.is_asked = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def state(self, view: View) -> SessionState:
        return SessionState()

    async def cover(
        self, view: View, summary: Sequence[SummarySentence], *, up_to: UtteranceId, after: int
    ) -> int | None:
        return after + 1

    async def note(self, view: View, flags: Mapping[str, bool]) -> None:
        self.is_asked.set()
        await self.may_go_on.wait()
        self.noted.append((view, dict(flags)))


async def test_session_that_ends_while_a_flag_is_stored_stores_it_once() -> None:
    states = SlowStates()

    async def logged(_: UtteranceId) -> bool:
        return True

    stored = StoredSession(states, logged)
    keeper = SessionStateKeeper({DM_VIEW: RollingSummary(10_000)}, LineSelection("en"), tell=print, stored=stored)
    keeper.on(UtteranceKept(an_utterance("I bought a lantern from Hask for seven silver.")))
    running = asyncio.create_task(keeper.run())
    await states.is_asked.wait()
    ending = asyncio.create_task(keeper.finish())
    await asyncio.wait({ending}, timeout=0.2)  # it waits for the other update
    states.may_go_on.set()
    await ending
    running.cancel()
    assert states.noted == [(DM_VIEW, {"item_acquired": True})]
