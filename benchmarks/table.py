"""Provide the table for benchmarks of spoken turns: campaign, settings, past utterances, players with microphones."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.provider_process import CHUNK_BYTES, CHUNK_MS, Addresses, Recorded
from benchmarks.runner import tell
from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.deadline import ClosingStack, end_tasks
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.memory import database_of
from glyphoxa.app.models import embedder_of, load_local_models
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.provider_sections import (
    EmbeddingsSettings,
    LlmSettings,
    ProvidersSettings,
    SttSettings,
    TtsSettings,
)
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Player
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.events import TableEvent, TurnFinished
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn_record import Outcome, TurnRecord
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ, Table
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool

CAMPAIGN = Path(__file__).resolve().parents[1] / "demo" / "campaign.yaml"
KEY_VARIABLE = "GLYPHOXA_BENCHMARK_KEY"
PAUSE_MS = 200
EAGER_END_OF_TURN_MS = 480
_MORE_NPCS = ("Odrun", "Telvasha", "Brannoch", "Ysolde", "Pergrin", "Wulfgard", "Isaveth", "Corrigan")
_MORE_PLAYERS = ("Merle", "Tamsin", "Piers", "Agnes", "Rowan", "Edda")
_A_SESSION = 100
_HOUR_MS = 3_600_000
_FLUSH_MS = 600_000
_AT_ONCE = 200
_TALK = (
    "Did you hear what {who} did near {where}?",
    "I left my pack at {where} and the rain got into everything.",
    "{who} asked me about {thing} again, and I would not say.",
    "We could ask {who} for rope before we go to {where}.",
    "The road to {where} is worse than it was, my boots are full of mud.",
    "I do not trust {who}, not since {where}.",
    "Somebody should write to {who} about {thing}.",
    "There were wolves behind {where} last night.",
    "I would give ten crowns to know where {thing} is now.",
    "Two ales, please, and bread if you have any.",
    "My brother's lantern was found by the river.",
    "Let us rest until the bell rings.",
)
TURN_PATIENCE_S = 30.0
_LOOK_S = 0.1
_NOT_THE_END = frozenset({Outcome.MERGED})


# -- campaign and settings


@dataclass(frozen=True, slots=True)
class Size:
    npcs: int
    speakers: int
    history_entries: int


def write_campaign(directory: Path, size: Size, *, name: str | None = None) -> Path:
    """Write the demo's campaign with the wanted number of NPCs, all in one scene, and of players.

    Args:
        name: In place of the demo's name, for another campaign.
    """
    document: dict[str, Any] = yaml.safe_load(CAMPAIGN.read_text("utf-8"))
    if name is not None:
        document["campaign"] |= {"name": name, "id": name.lower().replace(" ", "-")}
    own = document["npcs"]
    for n in range(max(0, size.npcs - len(own))):
        name = _MORE_NPCS[n] if n < len(_MORE_NPCS) else f"Garrow{n}"
        document["entities"].append({"name": name, "type": "npc", "attributes": {"description": f"{name} is a guard."}})
        persona = own[0]["persona"].replace("Korvald", name)
        document["npcs"].append({"entity": name, "voice": own[0]["voice"], "persona": persona})
    document["npcs"] = document["npcs"][: size.npcs]
    here = [npc["entity"] for npc in document["npcs"]]
    document["players"] = document["players"][: size.speakers]
    for n in range(size.speakers - len(document["players"])):
        document["players"].append({"name": _MORE_PLAYERS[n] if n < len(_MORE_PLAYERS) else f"Player{n}"})
    document["scenes"] = [{**document["scenes"][0], "npcs": here}]
    document["secrets"] = [s for s in document["secrets"] if set(s["known_by"]) <= set(here)]
    path = directory / "campaign.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), "utf-8")
    return path


def cloud_settings(campaign: Path, data: Path, addresses: Addresses, *, end_of_turn_ms: int) -> Settings:
    """Return settings with the product's own clients, pointed at this machine."""
    os.environ[KEY_VARIABLE] = "benchmark"  # the clients refuse to start without one
    return Settings(
        campaign=campaign,
        data_dir=data,
        providers=ProvidersSettings(
            stt=SttSettings(name="deepgram-nova", base_url=addresses.deepgram, api_key_env=KEY_VARIABLE),
            llm=LlmSettings(name="openai-compatible", model="benchmark", base_url=addresses.openai),
            tts=TtsSettings(name="openai", base_url=addresses.openai, api_key_env=KEY_VARIABLE),
            embeddings=EmbeddingsSettings(name="minilm"),
        ),
        turns=TurnsSettings(pause_ms=PAUSE_MS, end_of_turn_ms=end_of_turn_ms),
    )


def local_settings(campaign: Path, data: Path, llm: str) -> Settings:
    """Return the shipped settings without the filler sound, so that the first sample is the answer's."""
    return Settings(
        campaign=campaign,
        data_dir=data,
        providers=ProvidersSettings(llm=LlmSettings(name=llm)),
        turns=TurnsSettings(filler_after_ms=0),
    )


# -- past utterances


async def load_history(settings: Settings, n_entries: int) -> None:
    """Store utterances of earlier sessions as the product does: spool, log, embeddings.

    Raises:
        Unavailable: The database did not store them.
    """
    if not n_entries or settings.campaign is None:
        return
    tell(f"loading {n_entries} utterances of the past")
    campaign = read_campaign(settings.campaign).campaign
    cloud = ProvidersSettings(
        stt=SttSettings(name="deepgram-nova"), llm=LlmSettings(name="openai"), tts=TtsSettings(name="openai")
    )
    async with AsyncExitStack() as stack:
        models = await load_local_models(settings.model_copy(update={"providers": cloud}), stack, slots=1)
        embedder = None if models.minilm is None else embedder_of(models.minilm)
        store = await stack.enter_async_context(open_store(database_of(settings, embedder), embedder=embedder))
        await store.database.open()
        await store.campaigns.load(campaign)
        await write_talk(store, past_talk(campaign, n_entries), settings.data_directory / "spool")
        await store.chunks.fill_missing(campaign.id)


async def write_talk(store: Store, talk: Iterable[Utterance], spool: Path) -> None:
    """Write utterances as a table does: to the spool, and from there to the transcript log.

    Raises:
        Unavailable: The database did not store them.
    """
    journal = Journal(Spool(spool), store.log)
    utterances = list(talk)
    try:
        for at in range(0, len(utterances), _AT_ONCE):
            await asyncio.gather(*(journal.keep(utterance) for utterance in utterances[at : at + _AT_ONCE]))
        if not await journal.delivery.flush(_FLUSH_MS):
            raise Unavailable("the utterances could not be written to the database")
    finally:
        await journal.close()


def past_talk(campaign: Campaign, n_entries: int, *, seed: int = 7) -> list[Utterance]:
    """Return utterances of earlier sessions, the same in every run; each heard by some of the NPCs."""
    dice = random.Random(seed)
    people = [entity.name for entity in campaign.entities if entity.type in ("npc", "player")]
    places = [entity.name for entity in campaign.entities if entity.type == "location"]
    things = [entity.name for entity in campaign.entities if entity.type in ("item", "quest", "faction")]
    npcs = [npc.id for npc in campaign.npcs]
    began_ms = now_ms() - (n_entries // _A_SESSION + 1) * 24 * _HOUR_MS
    said: list[Utterance] = []
    for n in range(n_entries):
        text = dice.choice(_TALK).format(who=dice.choice(people), where=dice.choice(places), thing=dice.choice(things))
        speaker = dice.choice(campaign.players)
        session, line = divmod(n, _A_SESSION)
        said.append(
            Utterance(
                id=UtteranceId(f"past-{n:06d}"),
                campaign_id=campaign.id,
                session_id=SessionId(f"past-{session:04d}"),
                speaker_id=SpeakerId(speaker.id),
                speaker_name=speaker.name,
                text=text,
                raw_text=text,
                at_ms=began_ms + session * 24 * _HOUR_MS + line * 20_000,
                duration_ms=2_500,
                witnesses=frozenset(npc for npc in npcs if dice.random() < 0.6),
            )
        )
    return said


# -- players


def clock_ms() -> float:
    """Return milliseconds since the Unix epoch, as the turns' timelines have them, but finer."""
    return time.time_ns() / 1_000_000


@dataclass(slots=True)
class Microphone:
    """A continuous stream in real time, silent between lines.

    A piece of 20 ms is sent when its last sample has been "recorded", as a sound card does.
    """

    hear: Callable[[bytes], None]
    _recorded: Recorded | None = None
    _at: int = 0
    _ended: asyncio.Future[float] | None = None

    async def speak(self, recorded: Recorded) -> float:
        """Say it. Returns when its last voiced sample was spoken (Unix epoch, ms); the silence after it continues."""
        self._recorded, self._at = recorded, 0
        self._ended = asyncio.get_running_loop().create_future()
        return await self._ended

    async def run(self) -> None:
        """Stream until cancelled. Pieces that a busy event loop delays follow at once, and are late."""
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        # The clock of the samples, so that a late event loop counts as lateness, not as later speech.
        epoch_ms = clock_ms() - due_s * 1_000
        while True:
            self._next_chunk(due_s * 1_000 + epoch_ms)
            due_s += CHUNK_MS / 1_000
            await asyncio.sleep(max(0.0, due_s - loop.time()))

    def _next_chunk(self, due_ms: float) -> None:
        recorded = self._recorded
        if recorded is None:
            self.hear(bytes(CHUNK_BYTES))
            return
        self.hear(recorded.pcm[self._at * CHUNK_BYTES : (self._at + 1) * CHUNK_BYTES].ljust(CHUNK_BYTES, b"\0"))
        began_ms = self._at * CHUNK_MS
        self._at += 1
        if self._ended is not None and began_ms < recorded.voiced_until_ms <= began_ms + CHUNK_MS:
            self._ended.set_result(due_ms - CHUNK_MS + recorded.voiced_until_ms - began_ms)
            self._ended = None
        if self._at * CHUNK_BYTES >= len(recorded.pcm):
            self._recorded = None


@dataclass(frozen=True, slots=True)
class TurnHeard:
    """A turn as it was heard at the table.

    Attributes:
        speech_end_ms: The true end of the speech.
        first_audio_ms: The first sample of the answer, None without one.
        record: The table's own; None if it gave none in time.
    """

    speech_end_ms: float
    first_audio_ms: float | None
    record: TurnRecord | None

    @property
    def waited_ms(self) -> float | None:
        return None if self.first_audio_ms is None else self.first_audio_ms - self.speech_end_ms

    @property
    def outcome(self) -> str:
        """Return the record's outcome; "none" for a turn that did not end in time."""
        return self.record.outcome.value if self.record is not None else "none"


@dataclass(slots=True)
class Listener:
    """Waits for the first sound after a question, and for the end of its turn.

    Attributes:
        sounds_until_ms: When all audio received so far will have been played.
        silent_ms: The same when the turn ended.
    """

    first_audio_ms: float | None = None
    sounds_until_ms: float | None = None
    silent_ms: float | None = None
    record: TurnRecord | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def on_sound(self, _npc: NpcId, pcm: bytes) -> None:
        at_ms = clock_ms()
        self.sounds_until_ms = at_ms + len(pcm) / 2 * 1_000 / OUTPUT_RATE_HZ
        if self.first_audio_ms is None:
            self.first_audio_ms = at_ms
            self.begun.set()

    def on_event(self, event: TableEvent) -> None:
        if isinstance(event, TurnFinished) and event.turn.outcome not in _NOT_THE_END and not self.over.is_set():
            self.record, self.silent_ms = event.turn, self.sounds_until_ms
            self.over.set()

    def forget(self) -> None:
        self.first_audio_ms = self.sounds_until_ms = self.silent_ms = self.record = None
        self.begun.clear()
        self.over.clear()


@dataclass(slots=True)
class Players:
    """Players at a table who speak on request."""

    table: Table
    microphones: Sequence[Microphone]
    listener: Listener

    async def ask(self, n_turn: int, recorded: Recorded) -> TurnHeard:
        """Let the next speaker say this; return when its answer has been heard to the end."""
        await self.table.wait_until_quiet()
        self.listener.forget()
        speech_end_ms = await self.microphones[n_turn % len(self.microphones)].speak(recorded)
        try:
            async with asyncio.timeout(TURN_PATIENCE_S):
                await self.listener.over.wait()
        except TimeoutError:
            pass  # counted as a turn without an outcome
        return TurnHeard(speech_end_ms, self.listener.first_audio_ms, self.listener.record)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[TableSession]:
    """Open a table as the product does, wait until it is ready, and keep it for the time of the block."""
    from glyphoxa.app.table import open_table

    table = (await open_table(settings, tell=tell)).table
    try:
        await table.wait_until_ready()
        yield table
    finally:
        await table.close()


@asynccontextmanager
async def opened_on_node(settings: Settings) -> AsyncIterator[TableSession]:
    """Open a stored campaign's table on a node of a cluster, in this process, as `glyphoxa cluster place` does."""
    from glyphoxa.plugins.cluster.node import TableHost
    from glyphoxa.plugins.cluster.placement import Node

    async def ask_nobody(name: str) -> bool:
        raise Unavailable(f"node {name} does not answer")

    assert settings.campaign is not None
    campaign = read_campaign(settings.campaign).campaign.id
    async with ClosingStack() as stack:
        host = TableHost(
            settings, Node("benchmark", "http://127.0.0.1/", 1), door="http://127.0.0.1/", ask_peer=ask_nobody
        )
        await host.open(stack)
        running = asyncio.create_task(host.run())
        try:
            table = None
            while table is None:
                with suppress(Unavailable):  # the node has not reported yet
                    await host.directory.place(campaign)
                await asyncio.sleep(_LOOK_S)
                table = host.tables[campaign].table if campaign in host.tables else None
            await table.wait_until_ready()
            yield table
        finally:
            await host.close()
            await end_tasks(running)


@asynccontextmanager
async def players(table: Table, who: Sequence[Player]) -> AsyncIterator[Players]:
    """Seat all players and run their microphones for the time of the block."""
    microphones = [Microphone((await table.seat(player)).hear) for player in who]
    listener = Listener()
    ends = [table.subscribe(listener.on_event), table.add_sink(listener.on_sound)]
    streams = [asyncio.create_task(microphone.run()) for microphone in microphones]
    try:
        yield Players(table, microphones, listener)
    finally:
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        for end in ends:
            end()
