"""Applies changes of the transcript to the recent transcript, the NPCs' prompts and the page.

They are what the DM retracted, rolled back or reworded, the results of a second look, and spoken requests to forget.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from loguru import logger

from glyphoxa.actors.supervisor import follow
from glyphoxa.chronicle.consent import SpokenRequests
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import TableEvent, UtteranceKept, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.commands import CommandInbox
from glyphoxa.npc.table_state import TableState
from glyphoxa.transcript.journal import RecentTalk
from glyphoxa.transcript.ports import Decided, DecidedTalk, News


@dataclass(frozen=True, slots=True)
class DmChannels:
    """Carries the DM's decisions from other processes to an open table.

    Attributes:
        decisions: Yields whenever the DM may have made a decision on the transcript.
        decided: Returns all decisions of a session, in the order of its utterances, as they are now.
        refresh: Rereads the transcript that recall holds in memory. Otherwise a removed utterance could be recalled.
    """

    commands: CommandInbox
    decisions: Callable[[], AsyncGenerator[object, None]]
    decided: Callable[[CampaignId, SessionId], Awaitable[Sequence[Decided]]]
    refresh: Callable[[], Awaitable[object]]


class Revisions:
    """Applies revisions to prompts when no turn is affected. `run` and `follow` are actors; the rest returns at once.

    A changed prompt must be read again by the engine, which must not happen during a turn.

    Args:
        wait_until_quiet: Waits until nobody speaks and no NPC answers.
    """

    def __init__(
        self,
        recent: RecentTalk,
        npcs: Mapping[NpcId, NpcActor],
        state: TableState,
        *,
        wait_until_quiet: Callable[[], Awaitable[None]],
    ) -> None:
        self.recent = recent
        self._npcs = npcs
        self._state = state
        self._wait_until_quiet = wait_until_quiet
        self._tell = state.events.tell
        self._decided = DecidedTalk(self._utterance_of)
        self._requests = SpokenRequests()
        self._waiting: list[News] = []
        self._work = asyncio.Event()

    def on(self, event: TableEvent) -> None:
        """Have a line forgotten as soon as its player asks for it, also while there is no database."""
        if isinstance(event, UtteranceKept) and (withheld := self._requests.take(event.utterance)):
            # Later, because all subscribers must have taken this event before.
            asyncio.get_running_loop().call_soon(self.at_once, [UtteranceRetracted(each) for each in withheld])

    def at_once(self, news: Sequence[News]) -> None:
        """Apply decisions of the DM or of players at once. Answers in progress are unaffected."""
        self._remember(news)
        self._spread(news)
        for one in news:
            self._tell(one)

    def when_quiet(self, event: UtteranceRevised) -> None:
        """Apply a better transcript: to the recent transcript and page now, to NPCs when nobody speaks."""
        self._remember([event])
        self._waiting.append(event)
        self._work.set()
        self._tell(event)

    async def run(self) -> None:
        """Run the actor."""
        while True:
            if not self._waiting:
                self._work.clear()
                await self._work.wait()
            await self._wait_until_quiet()
            waiting, self._waiting = self._waiting, []
            self._spread(waiting)

    async def follow(self, dm: DmChannels) -> None:
        """Apply the DM's decisions on this session's transcript. Recall follows by itself."""

        async def take(_: object) -> None:
            now = await dm.decided(self._state.campaign.id, self._state.session)
            try:
                await dm.refresh()
            except GlyphoxaError as error:
                logger.debug("the transcript in memory is not refreshed yet: {}", error)
            self.at_once(self._decided.take(now))

        await follow(dm.decisions, take, what="decisions of the DM")

    def _utterance_of(self, utterance: UtteranceId) -> Utterance | None:
        recent = self.recent.of(self._state.session, limit=sys.maxsize)
        return next((said for said in recent if said.id == utterance), None)

    def _remember(self, news: Sequence[News]) -> None:
        for one in news:
            match one:
                case UtteranceRetracted(utterance, is_retracted=True):
                    self.recent.retracted(utterance.id)
                case UtteranceRevised(utterance):
                    self.recent.revised(utterance)
                case _:
                    pass  # restored utterances can be recalled, but do not return to the conversation

    def _spread(self, news: Sequence[News]) -> None:
        concerned: dict[NpcId, None] = {}
        for one in news:
            heard_it = sorted(one.utterance.witnesses & self._npcs.keys())
            concerned |= dict.fromkeys(heard_it)
            for npc in heard_it:
                self._npcs[npc].take(one)
        for npc in concerned:
            self._npcs[npc].get_ready("", self._state.likely_speaker())
