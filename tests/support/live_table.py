"""A live table without models: its ears hear what a test says into them, its NPCs give one answer at once.

Everything between is the product's: the room, memory on a real database, correction, learning, the second look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from glyphoxa.app import engines
from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.app.scope import Scope
from glyphoxa.app.table import OpenedTable, open_table
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.events import TableEvent, TurnFinished, UtteranceKept
from glyphoxa.domain.heard import Draft, EagerTurn, Heard, HeardWord, PartialHeard, SpeechStarted, TurnEnded, Utterance
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, TurnId
from glyphoxa.domain.turn_record import TurnRecord
from glyphoxa.language.words import words
from glyphoxa.npc.mouth import Injected, Mouth
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import Ear
from glyphoxa.prompt.prompt import Prompt, PromptShape, compose
from tests.support.mouth_twin import MouthTwin
from tests.support.patience import DEADLINE_MS, DEADLINE_S

if TYPE_CHECKING:
    import pytest  # the processes of `stubborn` do without it

Found = TypeVar("Found")
SESSION = SessionId("evening")
ENTITIES: tuple[dict[str, Any], ...] = (
    {"name": "Grimjaw", "type": "npc"},
    {"name": "Eldrinax", "type": "npc"},
    {"name": "Ironhold", "type": "location"},
    {"name": "The Cold Forge", "type": "location"},
    {"name": "The Drowned Lantern", "type": "location"},
)


def write_campaign(
    directory: Path,
    *,
    more: Iterable[dict[str, Any]] = (),
    engine: str = "cascaded",
    language: str = "en",
    others: Sequence[str] = (),
    **parts: Any,
) -> Path:
    """Grimjaw at his forge, with these others; Tamsin and Bran play.

    Args:
        parts: Other parts of the file: relationships, secrets.
    """
    document = {
        "campaign": {"id": "town", "name": "The Town", "language": language},
        "entities": [*ENTITIES, *more],
        "npcs": [
            {"entity": npc, "persona": f"You are {npc}.", "voice": "heart", "engine": engine}
            for npc in ("Grimjaw", *others)
        ],
        "players": [{"name": "Tamsin"}, {"name": "Bran"}],
        "scenes": [
            {"id": "forge", "location": "The Cold Forge", "npcs": ["Grimjaw", *others]},
            {"id": "inn", "location": "The Drowned Lantern", "npcs": ["Grimjaw"], "description": "Near Ironhold."},
        ],
        **parts,
    }
    path = directory / "campaign.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def settings_for(campaign: Path, dsn: str, data: Path, **correction: Any) -> Settings:
    cloud = {
        "stt": {"name": "deepgram-nova"},
        "llm": {"name": "openai"},
        "tts": {"name": "openai"},
        "s2s": {"name": "openai-realtime"},
    }
    return Settings.model_validate(
        {
            "campaign": campaign,
            "data_dir": data,
            # What talk tells is found at some moment behind it: tests of that ask for it.
            "memory": {"postgres_dsn": dsn, "chronicle": "none"},
            "providers": {**cloud, "embeddings": {"name": "none"}},
            "turns": {"gap_ms": 0},
            "correction": correction,
        }
    )


def patient(settings: Settings) -> Settings:
    """Leave no part out of a prompt because this machine is slow."""
    return settings.model_copy(
        update={"context": settings.context.model_copy(update={"recall_deadline_ms": DEADLINE_MS})}
    )


def with_chronicle(settings: Settings) -> Settings:
    """The same for a table whose talk becomes knowledge while it plays."""
    return settings.model_copy(update={"memory": settings.memory.model_copy(update={"chronicle": "rules"})})


class ToldEar:
    """Hears words instead of sound, and passes them on as a recogniser's transcripts pass through a real ear."""

    def __init__(self, order: EarSpec) -> None:
        self._order = order
        self.player = order.player.id
        self.n_told_of_names = 0
        self._forget: Callable[[], None] = lambda: None

    async def start(self) -> None:
        self._forget = self._order.hints.subscribe(self._told_of_names)

    def hear(self, pcm: bytes) -> None: ...

    async def close(self) -> None:
        self._forget()

    def keyterms(self) -> Sequence[str]:
        return self._order.hints.keyterms()

    def begin(self) -> None:
        self._order.listener(SpeechStarted(self.player, self._order.now_ms()))

    def partial(self, text: str, *, unsure: str = "") -> str:
        said = self._heard(text, unsure)
        self._order.on_partial(self.player, said.text)
        self._order.listener(PartialHeard(self.player, said, said.corrected_ms))
        return said.text

    def pause(self, text: str, *, unsure: str = "") -> str:
        draft = self._draft(text, unsure)
        self._order.listener(EagerTurn(draft))
        return draft.text

    def end(self, text: str, *, unsure: str = "") -> str:
        draft = self._draft(text, unsure)
        self._order.listener(TurnEnded(draft, self._order.now_ms()))
        return draft.text

    def say(self, text: str, *, unsure: str = "") -> str:
        """A whole turn. Returns what it was corrected to."""
        self.begin()
        self.partial(text, unsure=unsure)
        self.pause(text, unsure=unsure)
        return self.end(text, unsure=unsure)

    def _draft(self, text: str, unsure: str) -> Draft:
        said = self._heard(text, unsure)
        return Draft(self.player, said, said.corrected_ms - 1_500, said.corrected_ms - 500)

    def _heard(self, text: str, unsure: str) -> Heard:
        known = heard(text, unsure)
        corrected = self._order.correct(text, heard=known)
        now = self._order.now_ms()
        return Heard(corrected.text, text, tuple(corrected.corrections), now, now, known)

    def _told_of_names(self) -> None:
        self.n_told_of_names += 1


def heard(text: str, unsure: str = "") -> tuple[HeardWord, ...]:
    """A recogniser's word data: confident of all words except those in `unsure`."""
    doubted = unsure.split()
    return tuple(HeardWord(w.start, w.end, 0.2 if w.text in doubted else 0.97) for w in words(text))


class AnsweringMouth(MouthTwin):
    """Has in mind what it should before it answers, and is done with its answer as soon as it is heard.

    Attributes:
        looks_up: A call of one of its tools that it makes before each answer.
        fails_with: The error of its next answer; "": none.
    """

    def __init__(self, order: MouthSpec) -> None:
        super().__init__(order.npc, order.listener, order.now_ms)
        self.tools = order.tools
        self.looks_up: tuple[str, dict[str, object]] | None = None
        self.fails_with = ""
        self._context, self._facts_at = order.context, order.settings.facts_at
        self._thinking: asyncio.Task[None] | None = None
        self._may_be_heard = False

    def begin(self, turn: TurnId, prompt: Prompt) -> None:
        assert self.turn is None
        self.turn, self.is_heard, self._may_be_heard = turn, False, False
        self._thinking = asyncio.get_running_loop().create_task(self._think(turn, prompt))

    def release(self, turn: TurnId) -> None:
        self._may_be_heard = True
        if self._thinking is not None and not self._thinking.done():
            return
        super().release(turn)
        asyncio.get_running_loop().call_soon(self._done_with, turn)

    async def close(self) -> None:
        if self._thinking is not None:
            self._thinking.cancel()
        await super().close()

    async def _think(self, turn: TurnId, prompt: Prompt) -> None:
        asked = await compose(self._context, prompt, PromptShape(self._facts_at))
        if self.turn != turn:
            return
        self._listener(Injected(self.npc.id, turn, asked.assembled, prompt.tier))
        if self.looks_up is not None and self.tools is not None:
            await self.tools.call(*self.looks_up)
            if self.turn != turn:
                return
        self.turn = None
        super().begin(turn, prompt)
        self._thinking = None
        if self._may_be_heard:
            self.release(turn)

    def _done_with(self, turn: TurnId) -> None:
        if self.turn != turn:
            return
        error, self.fails_with = self.fails_with, ""
        if error:
            self.fail(error)
        else:
            self.end()


class Evening:
    """A table that is open, and all that it has told.

    Attributes:
        desk: Its game master's; None without long-term memory.
    """

    def __init__(
        self,
        opened: OpenedTable,
        settings: Settings,
        ears: dict[PlayerId, ToldEar],
        mouths: dict[NpcId, AnsweringMouth],
    ) -> None:
        self.table: TableSession = opened.table
        self.desk = None if opened.store is None else Scope(opened.store, settings, self.table.campaign.id)
        self.mouths = mouths
        self._ears = ears
        self.told: list[TableEvent] = []
        self._news = asyncio.Event()
        self.table.subscribe(self._on)

    def _on(self, event: TableEvent) -> None:
        self.told.append(event)
        self._news.set()

    async def ear(self, player: Player | None = None) -> ToldEar:
        player = player or self.table.campaign.players[0]
        if player.id not in self._ears:
            await self.table.seat(player)
        return self._ears[player.id]

    @property
    def kept_texts(self) -> list[str]:
        return [event.utterance.text for event in self.told if isinstance(event, UtteranceKept)]

    def names_change(self) -> asyncio.Event:
        """Set once the table has taken other names than now."""
        changed = asyncio.Event()
        self.table.names.changed.subscribe(lambda _: changed.set())
        return changed

    async def until(self, found: Callable[[], Found]) -> Found:
        """Return the first true value of `found`, which is called again after each event of the table."""
        async with asyncio.timeout(DEADLINE_S):
            while not (value := found()):
                self._news.clear()
                await self._news.wait()
        return value

    async def asked(self, text: str, player: Player | None = None) -> TurnRecord:
        """Say it; return the turn that it became, once that has finished.

        Args:
            player: The first of the campaign, unless another is given.
        """
        (await self.ear(player)).say(text)
        return await self.finished(text)

    async def finished(self, text: str, npc: NpcId | None = None) -> TurnRecord:
        """The latest turn with these words, as they were heard or as they were corrected, once it has finished.

        Args:
            npc: Who it was for; None: anybody, or nobody.
        """

        def found() -> list[TurnRecord]:
            turns = (event.turn for event in self.told if isinstance(event, TurnFinished))
            return [turn for turn in turns if text in (turn.text, turn.raw_text) and npc in (None, turn.npc_id)]

        return (await self.until(found))[-1]

    async def kept(self, raw: str) -> Utterance:
        """The utterance that was heard as `raw`, once it is on disk."""
        found = await self.until(
            lambda: [e.utterance for e in self.told if isinstance(e, UtteranceKept) and e.utterance.raw_text == raw]
        )
        return found[0]


@asynccontextmanager
async def an_evening(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, session: str = SESSION, reply: str = "Aye."
) -> AsyncIterator[Evening]:
    ears: dict[PlayerId, ToldEar] = {}
    mouths: dict[NpcId, AnsweringMouth] = {}

    async def open_ear(order: EarSpec) -> Ear:
        ears[order.player.id] = ToldEar(order)
        return ears[order.player.id]

    async def open_mouth(order: MouthSpec) -> Mouth:
        mouth = mouths[order.npc.id] = AnsweringMouth(order)
        mouth.reply = reply
        return mouth

    monkeypatch.setattr(engines, "find_ear", lambda *, files: open_ear)
    monkeypatch.setattr(engines, "find_mouth", lambda engine, *, files: open_mouth)
    opened = await open_table(settings, session_name=session)
    try:
        yield Evening(opened, settings, ears, mouths)
    finally:
        await opened.table.close()
