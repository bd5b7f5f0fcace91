"""Who is in the scene reads first; the others while nobody speaks, and give way at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from glyphoxa.actors.subscribers import Subscribers
from glyphoxa.domain.campaign import Npc, Scene
from glyphoxa.domain.events import NpcsGetReady, SceneChanged, TableEvent
from glyphoxa.domain.heard import SpeechStarted
from glyphoxa.domain.ids import EntityId, NpcId, SceneId, TurnId
from glyphoxa.npc.actor import NpcActor, Preparation
from glyphoxa.npc.mouth import Listener
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.prompt import Prompt
from glyphoxa.turns.turn import QuestionPart, SpokenQuestion, Turn
from tests.support.builders import TAMSIN, a_draft
from tests.support.mouth_twin import MouthTwin
from tests.support.patience import DEADLINE_S

NPCS = [NpcId(name) for name in ("ada", "bo", "cy", "di")]


class SlowReader(MouthTwin):
    """Reads for as long as a test wants; what was called off is not read."""

    def __init__(self, npc: Npc, listener: Listener, now_ms: Callable[[], int]) -> None:
        super().__init__(npc, listener, now_ms)
        self.may_end = asyncio.Event()

    def prime(self, prompt: Prompt) -> None:
        super().prime(prompt)
        self.may_end.clear()

    def relax(self) -> None:
        super().relax()
        self.may_end.set()

    async def wait_until_primed(self) -> None:
        if self.primed:
            await self.may_end.wait()


class Readers:
    """Four NPCs, of whom the first is in the scene."""

    def __init__(self) -> None:
        self.mouths: dict[NpcId, SlowReader] = {}
        self.npcs = {
            npc: NpcActor(
                Conversation(Npc(npc, EntityId(npc), npc.title(), f"You are {npc}.")),
                open_mouth=self._open,
                tell=lambda _: None,
                now_ms=lambda: 0,
            )
            for npc in NPCS
        }
        self.here: tuple[NpcId, ...] = (NPCS[0],)
        self.quiet = asyncio.Event()
        self.quiet.set()
        self.told: list[TableEvent] = []
        self.events = Subscribers[[TableEvent]]("the table")
        self.events.subscribe(self.told.append)
        self.preparation = Preparation(
            self.npcs,
            self,  # type: ignore[arg-type]
            wait_until_quiet=self._wait_until_quiet,
            now_ms=lambda: 0,
        )

    def present(self) -> tuple[NpcId, ...]:
        return self.here

    def likely_speaker(self) -> str:
        return "Tamsin"

    async def _open(self, npc: Npc, listener: Listener) -> SlowReader:
        self.mouths[npc.id] = SlowReader(npc, listener, lambda: 0)
        return self.mouths[npc.id]

    async def _wait_until_quiet(self) -> None:
        await self.quiet.wait()

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    def reading(self) -> list[str]:
        return [npc for npc, mouth in self.mouths.items() if mouth.primed and not mouth.may_end.is_set()]

    def ready(self) -> list[str]:
        return [npc for npc in NPCS if self.npcs[npc].is_ready]

    async def end(self, npc: NpcId) -> None:
        self.mouths[npc].may_end.set()
        await self.settle()

    def move(self, *present: NpcId) -> None:
        self.here = present
        self.preparation.on(SceneChanged(Scene(SceneId("there"), EntityId("there"), present), 0))


@asynccontextmanager
async def an_open_table() -> AsyncIterator[Readers]:
    readers = Readers()
    lines: list[str] = []
    opening = asyncio.create_task(readers.preparation.open_scene(lines.append))
    await readers.settle()
    assert readers.reading() == ["ada"]
    await readers.end(NPCS[0])
    await asyncio.wait_for(opening, DEADLINE_S)
    assert lines == ["Ada is ready (1 of 1)"]
    assert set(readers.mouths) == set(NPCS)  # every engine is open: nothing is loaded later
    actors = [asyncio.create_task(npc.run()) for npc in readers.npcs.values()]
    running = asyncio.create_task(readers.preparation.run())
    await readers.settle()
    try:
        yield readers
    finally:
        for task in (*actors, running):
            task.cancel()
        await asyncio.gather(*actors, running, return_exceptions=True)


async def test_the_others_read_one_after_the_other_once_the_table_is_open() -> None:
    async with an_open_table() as readers:
        for npc in NPCS[1:]:
            assert readers.reading() == [npc]
            await readers.end(npc)
        assert readers.ready() == list(NPCS)
        await asyncio.wait_for(readers.preparation.wait_until_done(), DEADLINE_S)


async def test_preparation_pauses_for_speech_and_resumes_in_silence() -> None:
    async with an_open_table() as readers:
        readers.quiet.clear()
        readers.preparation.on(SpeechStarted(TAMSIN, 0))
        await readers.settle()
        assert readers.mouths[NPCS[1]].relaxed == 1
        assert (readers.reading(), readers.ready()) == ([], ["ada"])
        readers.quiet.set()
        await readers.settle()
        assert readers.reading() == ["bo"]


async def test_npcs_of_the_next_scene_prepare_first_and_are_reported() -> None:
    async with an_open_table() as readers:
        readers.move(NPCS[3], NPCS[0])
        await readers.settle()
        assert readers.reading() == ["di"]
        await readers.end(NPCS[3])
        assert readers.reading() == ["bo"]
        assert [event.names for event in readers.told if isinstance(event, NpcsGetReady)] == [("Di",), ()]


async def test_addressed_npc_answers_before_its_preparation() -> None:
    async with an_open_table() as readers:
        question = SpokenQuestion((QuestionPart("Cy?"),))
        readers.npcs[NPCS[2]].ask(Turn(TurnId("t1"), NPCS[2], TAMSIN, question, a_draft(TAMSIN, "Cy?")), "Tamsin")
        await readers.settle()
        assert readers.mouths[NPCS[2]].turn == "t1"
        assert readers.ready() == ["ada", "cy"]


async def test_queued_npc_prepares_nothing_yet() -> None:
    async with an_open_table() as readers:
        readers.npcs[NPCS[3]].get_ready("", "Tamsin")
        readers.npcs[NPCS[3]].expect(readers.npcs[NPCS[0]].npc, "Aye.", "Tamsin")
        await readers.settle()
        assert readers.mouths[NPCS[3]].primed == []
        readers.npcs[NPCS[3]].get_ready("Di, are you", "Tamsin")
        await readers.settle()
        assert len(readers.mouths[NPCS[3]].primed) == 1


async def test_an_engine_that_cannot_read_keeps_nobody_else_waiting() -> None:
    async with an_open_table() as readers:

        async def fail() -> None:
            raise RuntimeError("no such engine")

        readers.mouths[NPCS[2]].wait_until_primed = fail  # type: ignore[method-assign]
        await readers.end(NPCS[1])
        assert readers.reading() == ["cy", "di"]
        await readers.end(NPCS[3])
        assert readers.ready() == list(NPCS)
