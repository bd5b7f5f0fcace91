"""Twins for graphs: a model behind a real port, a voice that hums, memory that answers from a dict."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from aiohttp import web
from numpy.typing import NDArray
from pipecat.frames.frames import Frame, VADUserStartedSpeakingFrame, VADUserStoppedSpeakingFrame

from glyphoxa.actors.clock import now_ms
from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.app.models import LocalModels
from glyphoxa.chat.client import ChatClient
from glyphoxa.chat.dialect import Connection
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Npc, Player
from glyphoxa.domain.heard import Correction, EarEvent, HeardWord, NothingSaid, TurnEnded
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, TurnId
from glyphoxa.domain.turn_record import Verdict
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.keyterms import Hints
from glyphoxa.npc.mouth import Finished, MouthEvent
from glyphoxa.prompt.prompt import Doubt, HotContext, Message, Prompt
from glyphoxa_pipelines.cascaded import GraphMouth, stages
from glyphoxa_pipelines.ear import PipelineEar
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.llm import SpokenLLM
from glyphoxa_processors.streamed_voice import HibariTTS
from glyphoxa_processors.whisper_stt import Recogniser, Transcribe, WhisperSTT
from tests.support.chat_server import DONE, Answer, Body, ChatServer, Refused, chunk, completion, error, whole
from tests.support.patience import DEADLINE_MS, DEADLINE_S

GRIMJAW = Npc(NpcId("grimjaw"), EntityId("grimjaw"), "Grimjaw", "You are Grimjaw, a smith.")
MIRA = Npc(NpcId("mira"), EntityId("mira"), "Mira", "You are Mira, an innkeeper.")
VALE = Campaign(CampaignId("vale"), "Vale", "en", (), (), (), (), ())
ALICE = Player(PlayerId("alice"), "Alice")
BOB = Player(PlayerId("bob"), "Bob")


class ModelServer(ChatServer):
    """A model whose reply a test changes at any time. `gate` holds a reply back before its first token."""

    cancels_on_hang_up = True

    def __init__(self) -> None:
        super().__init__(rules=[self._fails], answering=self._replies)
        self.reply: Sequence[str] = ("Well met. ", "The blade ", "is ready.")
        self.later: Sequence[str] = ()
        """The reply to all requests after the first; empty: `reply`."""
        self.arrived = asyncio.Event()
        self.gave_up = asyncio.Event()
        self.gate.set()
        self.status = 200
        self.timings: dict[str, int] = {}

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.bodies

    def noted(self) -> None:
        self.arrived.set()
        super().noted()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            return await super()._complete(request)
        except (asyncio.CancelledError, ConnectionError):
            self.gave_up.set()
            raise

    def _fails(self, _body: Body) -> Refused | None:
        return error(self.status, "out of order") if self.status != 200 else None

    def _replies(self, body: Body) -> Answer:
        if not body.get("stream"):
            return replace(whole(completion("W")), gate_after=0)
        tokens = (self.later if len(self.bodies) > 1 else ()) or self.reply
        more = {"timings": self.timings} if self.timings else {}
        return Answer([*(chunk({"content": token}, **more) for token in tokens), DONE], gate_after=0)


def hum(ms_per_character: int = 10) -> Callable[[str], Iterator[NDArray[np.int16]]]:
    """A voice: a loud constant for as long as the text is, in one part, so that a sentence never waits for sound."""

    def synthesise(text: str) -> Iterator[NDArray[np.int16]]:
        yield np.full(24 * ms_per_character * len(text), 8_000, dtype=np.int16)

    return synthesise


@dataclass
class Memory:
    facts: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    shrugs: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    direction: str = ""
    doubt: Doubt | None = None
    asked: list[str] = field(default_factory=list)
    read_ahead: list[str] = field(default_factory=list)

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        self.asked.append(question)
        return HotContext(
            self.facts,
            shrugs=self.shrugs,
            told=self.told,
            omitted=self.omitted,
            direction=self.direction,
            doubt=self.doubt,
        )

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        self.read_ahead.append(question)
        return HotContext(self.facts, omitted=self.omitted)


class SentenceSplitter:
    def __init__(self) -> None:
        self._text = ""

    def push(self, text: str) -> Iterator[str]:
        self._text += text
        while found := re.search(r"[.!?] ", self._text):
            yield self._text[: found.end()]
            self._text = self._text[found.end() :]

    def flush(self) -> Iterator[str]:
        if self._text.strip():
            yield self._text
        self._text = ""


@dataclass(frozen=True)
class Corrected:
    text: str
    corrections: tuple[Correction, ...] = ()


class OneMachine:
    """A prompt cache in memory: what was done with it, in order."""

    def __init__(self, one_at_a_time: asyncio.Lock) -> None:
        self.one_at_a_time = one_at_a_time
        self.done: list[str] = []

    async def restore(self) -> None:
        assert self.one_at_a_time.locked()
        self.done.append("restore")

    async def save(self) -> None:
        assert self.one_at_a_time.locked()
        self.done.append("save")


@dataclass
class Rules:
    """A twin of `ReplyRules`: everything may be said."""

    npc_name: str = "Grimjaw"
    new_splitter: Any = SentenceSplitter
    new_check: Any = lambda asked: Verdict
    stand_in: Any = lambda *_: ""
    shrug: Any = lambda lines: lines[0]
    spoken_form: Any = str


class MouthOnAGraph:
    """One NPC's mouth, its sink and its reports."""

    def __init__(self) -> None:
        self.sound = bytearray()
        self.events: list[MouthEvent] = []
        self._news = asyncio.Event()
        self.mouth: Any = None

    def take_sound(self, _npc: NpcId, pcm: bytes) -> None:
        self.sound += pcm
        self._news.set()

    def take_event(self, event: MouthEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something that this mouth does makes it true."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def of(self, kind: type[MouthEvent], turn: str = "t1") -> list[Any]:
        return [event for event in self.events if isinstance(event, kind) and event.turn == turn]

    async def finished(self, turn: str = "t1") -> Finished:
        await self.until(lambda: bool(self.of(Finished, turn)))
        (finished,) = self.of(Finished, turn)
        assert isinstance(finished, Finished)
        return finished

    def release(self, turn: str = "t1") -> None:
        self.mouth.release(TurnId(turn))


class Stage(MouthOnAGraph):
    """A cascaded mouth, of a small model unless it has tools."""

    def __init__(self, server: ModelServer, **changes: Any) -> None:
        super().__init__()
        self.host = PipelineHost()
        self.chunks: list[tuple[float, int]] = []
        self.heard_something = asyncio.Event()
        tools = changes.pop("tools", None)
        llm = {"name": "qwen-1.5b" if tools is None else "openai"}  # the small model takes no tools
        spec = MouthSpec(
            campaign=VALE,
            npc=changes.pop("npc", GRIMJAW),
            slot=0,
            settings=Settings.model_validate({"providers": {"llm": llm}}),
            local=LocalModels(),
            host=changes.pop("host", self.host),
            context=changes.pop("context", Memory()),
            tools=tools,
            listener=self.take_event,
            sink=self.take_sound,
            now_ms=now_ms,
        )
        self.llm: Any = changes.pop("llm", None) or SpokenLLM(
            ChatClient(
                Connection("local", server.base_url, "none"),
                extras={"cache_prompt": True, "id_slot": 0},
            ),
            temperature=0.6,
            max_tokens=90,
            cache=OneMachine(asyncio.Lock()),
        )
        tts = changes.pop("tts", None) or HibariTTS(hum(), voice=f"hum-{spec.npc.id}")
        twins = Rules(**{each.name: changes.pop(each.name) for each in fields(Rules) if each.name in changes})
        rules = None if changes.pop("has_shipped_rules", False) else twins
        excuses = changes.pop("excuses", ())
        assert not changes
        self.mouth = GraphMouth(spec, partial(stages, llm=self.llm, tts=tts, rules=rules), excuses=excuses)

    def take_sound(self, npc: NpcId, pcm: bytes) -> None:
        self.chunks.append((asyncio.get_running_loop().time(), len(pcm)))
        self.heard_something.set()
        super().take_sound(npc, pcm)

    async def answered(self, turn: str = "t1", asked: Prompt | None = None) -> Finished:
        """Ask, let the answer be heard, and wait for its end."""
        self.mouth.begin(TurnId(turn), asked or prompt("How is my blade?"))
        self.release(turn)
        return await self.finished(turn)

    def begin(self, turn: str = "t1", words: str = "How is my blade?") -> None:
        self.mouth.begin(TurnId(turn), prompt(words))

    def cancel(self, turn: str = "t1") -> None:
        self.mouth.cancel(TurnId(turn))


@asynccontextmanager
async def stage(server: ModelServer, **changes: Any) -> AsyncIterator[Stage]:
    play = Stage(server, **changes)
    await play.mouth.start()
    try:
        yield play
    finally:
        await play.mouth.close()
        await play.host.close()


def prompt(words: str, npc: Npc = GRIMJAW) -> Prompt:
    messages = (Message("system", npc.persona), Message("user", f"Alice: {words}"))
    return Prompt(npc.id, messages, question=words, speaker_name="Alice")


def put_right(text: str, *, heard: Sequence[HeardWord] = ()) -> Corrected:
    correction = (
        (Correction(at, at + 8, "glif oxa", "Glyphoxa", 1.0, "phonetic", "test"),)
        if (at := text.find("glif oxa")) >= 0
        else ()
    )
    return Corrected(text.replace("glif oxa", "Glyphoxa"), correction)


@dataclass(frozen=True)
class Transcript:
    text: str

    @property
    def words(self) -> tuple[HeardWord, ...]:
        """Each 100 ms long; the model is less sure of each."""
        spans = list(re.finditer(r"\S+", self.text))
        return tuple(
            HeardWord(*span.span(), round(1 - 0.1 * n, 1), 100 * n, 100 * n + 100) for n, span in enumerate(spans)
        )


class Scripted:
    """A recogniser that knows each voice by its loudness: samples of value 100 are spoken by line 100."""

    def __init__(self, lines: dict[int, str]) -> None:
        self.lines = lines
        self.failing = False
        self.calls: list[tuple[int, str, bool]] = []
        self.let_go = threading.Event()
        self.let_go.set()
        self.entered = threading.Event()

    def __call__(self, pcm: NDArray[np.int16], glossary: str, *, retry: bool) -> Transcript:
        voice = int(pcm.max(initial=0))
        self.calls.append((voice, glossary, retry))
        self.entered.set()
        self.let_go.wait(DEADLINE_S)
        if self.failing:
            raise RuntimeError("the model broke")
        return Transcript(self.lines.get(voice, ""))


class AudioClock:
    """An ear's clock that goes on with the sound it hears: however long the machine takes, no time has passed.

    Behind the sound it `flows`, as silence would.
    """

    def __init__(self) -> None:
        self._ms = now_ms()
        self._flows_from_ns: int | None = None

    def __call__(self) -> int:
        if self._flows_from_ns is None:
            return self._ms
        return self._ms + (time.monotonic_ns() - self._flows_from_ns) // 1_000_000

    def advance(self, ms: int) -> None:
        self._ms += ms

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._flows_from_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self._ms, self._flows_from_ns = self(), None


class Listening:
    """One ear on a real graph. The detector's verdicts are given, the sound is counted.

    Time goes on with the sound, and while the end of a turn is waited for.
    """

    def __init__(self, recogniser: Recogniser, *, player: Player = ALICE, **changes: Any) -> None:
        self.host: PipelineHost = changes.pop("host", None) or PipelineHost()
        self.events: list[EarEvent] = []
        self.partials: list[str] = []
        self.clock = AudioClock()
        self._recogniser = recogniser
        self._news = asyncio.Event()
        whisper = WhisperSTT(player.id, recogniser, glossary=lambda: "Eldrinax", clock=self.clock)
        stt = changes.pop("stt", whisper)
        # The detector's pause is 250 ms: an eager turn comes before the end of the turn.
        turns = changes.pop("turns", TurnsSettings(complete_ms=300, end_of_turn_ms=300, unfinished_ms=340))
        spec = EarSpec(
            player=player,
            language="en",
            settings=Settings(turns=turns),
            local=LocalModels(),
            host=self.host,
            correct=changes.pop("correct", put_right),
            hints=changes.pop("hints", Hints(VALE, Gazetteer.build(()), now_ms=now_ms)),
            on_partial=lambda _, text: self.partials.append(text),
            listener=self._listen,
            now_ms=self.clock,
        )
        self.ear = PipelineEar(spec, stt, **{"final_within_ms": DEADLINE_MS, **changes})

    def _listen(self, event: EarEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, kind: type[EarEvent], n: int = 1) -> Any:
        ends_a_turn = kind in (TurnEnded, NothingSaid)
        async with asyncio.timeout(DEADLINE_S):
            with self.clock.flowing() if ends_a_turn else nullcontext():
                return await self._until(kind, n)

    async def _until(self, kind: type[EarEvent], n: int) -> EarEvent:
        while len(found := [event for event in self.events if isinstance(event, kind)]) < n:
            self._news.clear()
            await self._news.wait()
        return found[n - 1]

    def detect(self, *, speech: bool) -> None:
        at_s = self.clock() / 1_000
        if speech:
            self.send(VADUserStartedSpeakingFrame(start_secs=0.2, timestamp=at_s))
        else:
            self.send(VADUserStoppedSpeakingFrame(stop_secs=0.25, timestamp=at_s))

    def send(self, frame: Frame) -> None:
        line = self.ear._line
        assert line is not None
        line.send(frame)

    async def drained(self) -> None:
        """Wait until the graph is idle. A turn that waits for its end does not count."""
        assert self.ear._line is not None
        await self.ear._line.wait_until_drained()

    def hear(self, voice: int, *, ms: int) -> None:
        self.ear.hear(np.full(16 * ms, voice, dtype=np.int16).tobytes())
        self.clock.advance(ms)

    async def until_at_rest(self) -> None:
        """Until the graph is, and the recogniser has nothing left to do."""
        await self.drained()
        while self._recogniser.is_busy:
            # It has one thread: whatever was asked before is done then.
            await asyncio.get_running_loop().run_in_executor(self._recogniser._executor, int)
            await self.drained()

    def say(self, voice: int, *, ms: int = 600) -> None:
        self.hear(voice, ms=300)
        self.detect(speech=True)
        self.hear(voice, ms=ms)
        self.detect(speech=False)


@asynccontextmanager
async def listening(transcribe: Transcribe, **changes: Any) -> AsyncIterator[Listening]:
    recogniser = Recogniser(transcribe)
    play = Listening(recogniser, **changes)
    await play.ear.start()
    try:
        yield play
    finally:
        if isinstance(transcribe, Scripted):
            transcribe.let_go.set()
        await play.ear.close()
        await play.host.close()
        recogniser.close()
