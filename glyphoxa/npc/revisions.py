"""Other words for what was said, or none any more: in recent talk, in the NPCs' prompts, on the page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from glyphoxa.domain.events import TableEvent, UtteranceRetracted, UtteranceRevised
from glyphoxa.domain.ids import NpcId
from glyphoxa.npc.actor import GetReady, NpcActor, Retract, Revise
from glyphoxa.transcript.api import News, RecentTalk


class Revisions:
    """An actor, for what need not be in the NPCs' prompts at once: a prompt that changes is read anew, and that must
    not be in a turn. Everything but `run` returns at once.

    Args:
        somebody: Who will probably speak next.
        wait_until_quiet: Until nobody speaks and no NPC is answering.
        tell: Takes events of the table.
    """

    def __init__(
        self,
        recent: RecentTalk,
        npcs: Mapping[NpcId, NpcActor],
        *,
        somebody: Callable[[], str],
        wait_until_quiet: Callable[[], Awaitable[None]],
        tell: Callable[[TableEvent], None],
    ) -> None:
        self._recent = recent
        self._npcs = npcs
        self._somebody = somebody
        self._wait_until_quiet = wait_until_quiet
        self._tell = tell
        self._waiting: list[News] = []
        self._work = asyncio.Event()

    def at_once(self, news: Sequence[News]) -> None:
        """The DM decided so. An answer that is on its way was asked before."""
        self._remember(news)
        self._spread(news)
        for one in news:
            self._tell(one)

    def when_quiet(self, event: UtteranceRevised) -> None:
        """It was understood better. Recent talk and the page have it at once, NPCs when nobody speaks."""
        self._remember([event])
        self._waiting.append(event)
        self._work.set()
        self._tell(event)

    async def run(self) -> None:
        """The actor's body."""
        while True:
            if not self._waiting:
                self._work.clear()
                await self._work.wait()
            await self._wait_until_quiet()
            waiting, self._waiting = self._waiting, []
            self._spread(waiting)

    def _remember(self, news: Sequence[News]) -> None:
        for one in news:
            match one:
                case UtteranceRetracted(utterance, is_retracted=True):
                    self._recent.retracted(utterance.id)
                case UtteranceRevised(utterance):
                    self._recent.revised(utterance)
                case _:
                    pass  # what is given back is recalled; to those who talk it is over

    def _spread(self, news: Sequence[News]) -> None:
        concerned: dict[NpcId, None] = {}
        for one in news:
            heard_it = sorted(one.utterance.witnesses & self._npcs.keys())
            concerned |= dict.fromkeys(heard_it)
            for npc in heard_it:
                match one:
                    case UtteranceRetracted(utterance, is_retracted=True):
                        self._npcs[npc].mailbox.post(Retract(utterance.id))
                    case UtteranceRevised(utterance, was):
                        self._npcs[npc].mailbox.post(Revise(utterance, was.text))
                    case _:
                        pass
        for npc in concerned:
            self._npcs[npc].mailbox.post(GetReady("", self._somebody()))
