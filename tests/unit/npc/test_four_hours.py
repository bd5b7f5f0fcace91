"""A session of four hours: what a table holds in memory does not grow with its length."""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.domain.events import TableEvent
from glyphoxa.domain.ids import LineId, id_of_line
from glyphoxa.npc.session_state_keeper import SessionStateKeeper
from glyphoxa.npc.table_state import TypedLines
from glyphoxa.prompt.conversation import RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, View
from tests.support.builders import MARKET, SESSION, SMITH, TAMSIN, an_utterance
from tests.support.memory import LogTwin
from tests.support.room_table import TableOfTwins

ROUNDS_AN_HOUR = 190
HISTORY_TOKENS = 800
_NOT_LOOKED_INTO = (ModuleType, type, FunctionType, BuiltinFunctionType, CodeType, asyncio.AbstractEventLoop)


def objects_of(roots: Iterable[object], *, without: Iterable[object]) -> int:
    """Number of objects that are reachable from these, without caches of limited size."""
    waiting, seen = list(roots), {id(each) for each in without}
    n = 0
    while waiting:
        each = waiting.pop()
        is_cache = isinstance(each, functools._lru_cache_wrapper) and each.cache_parameters()["maxsize"] is not None
        if id(each) in seen or is_cache or isinstance(each, _NOT_LOOKED_INTO):
            continue
        seen.add(id(each))
        n += 1 + (len(each) if isinstance(each, dict) else 0)  # whose keys may not be listed as objects
        waiting += gc.get_referents(each)
    return n


class LongEvening:
    def __init__(self) -> None:
        self.table = TableOfTwins(log=LogTwin())
        state = self.table.state
        views = {view: RollingSummary(HISTORY_TOKENS) for view in (DM_VIEW, *map(View, state.conversations))}
        for conversation in state.conversations.values():
            conversation.history_tokens = HISTORY_TOKENS
        self.keeper = SessionStateKeeper(
            views, LineSelection("en"), tell=lambda npc, *summary: self.table.npcs[npc].cover(*summary)
        )
        self.typed = TypedLines()
        self.table.journal._tell = self.tell
        self.n_rounds = 0

    def tell(self, event: TableEvent) -> None:
        self.keeper.on(event)
        self.typed.on(event)

    async def play(self, n_rounds: int) -> None:
        for _ in range(n_rounds):
            self.n_rounds += 1
            await self.table.says(TAMSIN, f"Grimjaw, I took sword {self.n_rounds}. What does it cost?")
            self.table.mouth(SMITH).reply = f"Sword {self.n_rounds} costs eight crowns."
            self.table.mouth(SMITH).end()
            await self.table.pass_time(15_000)
            for n in range(3 * self.n_rounds, 3 * self.n_rounds + 3):
                self.typed.take(id_of_line(SESSION, TAMSIN, LineId(f"{n:032x}")))
                self.typed.kept([an_utterance("It rains.", id=id_of_line(SESSION, TAMSIN, LineId(f"{n:032x}")))])
            await self.keeper.finish()
        await self.table.settle()
        self.table.events.clear()

    def n_objects(self) -> int:
        gc.collect()
        table = self.table
        # What the twins record for a test is no part of a table.
        without = (table, table.events, table.spool, table.mouths, *table.mouths.values(), table.journal.delivery._log)
        roots = (table.room, table.npcs, table.state, table.journal, self.keeper, self.typed)
        return objects_of(roots, without=(*without, *(mouth for each in table.mouths.values() for mouth in each)))

    def prompt_chars(self) -> int:
        return sum(len(message.content) for message in self.table.mouth(SMITH).asked[-1].messages)


async def test_table_of_four_hours_holds_no_more_than_after_two() -> None:
    evening = LongEvening()
    evening.table.start()
    await evening.table.move(MARKET)
    running = asyncio.create_task(evening.table.journal.delivery.run())
    await evening.play(2 * ROUNDS_AN_HOUR)
    n_objects, n_tasks, prompt = evening.n_objects(), len(asyncio.all_tasks()), evening.prompt_chars()
    await evening.play(2 * ROUNDS_AN_HOUR)
    assert len(evening.table.spool.utterances) == 2 * 4 * ROUNDS_AN_HOUR, "nobody was left without an answer"
    assert len(asyncio.all_tasks()) == n_tasks
    assert evening.prompt_chars() < 1.1 * prompt
    assert evening.n_objects() < n_objects + ROUNDS_AN_HOUR // 4
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await evening.table.supervisor.close()
