"""Asks at a table of the product's own: every question in a session of its own, behind the same evenings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from benchmarks.grounding_data import Asked, Question, Said
from benchmarks.turn_play import Listener
from benchmarks.turn_world import keep_all
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import PostgresTranscriptLog
from glyphoxa.bootstrap import local_models
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.closing import ClosingStack
from glyphoxa.bootstrap.engines import MouthSpec, OpenMouth
from glyphoxa.bootstrap.local_models import LocalModels
from glyphoxa.bootstrap.memory import open_store_for
from glyphoxa.bootstrap.structured_llm import local_slots
from glyphoxa.bootstrap.table import open_with
from glyphoxa.bootstrap.table_parts import Opening
from glyphoxa.config.provider_sections import LlmSettings, ProvidersSettings
from glyphoxa.config.sections import ContextSettings, TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.commands import Puppet
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.turn import Stage, TurnRecord
from glyphoxa.domain.utterance import Utterance
from glyphoxa.npc.live_table import LiveTable
from glyphoxa.npc.mouth import Mouth
from glyphoxa.npc.table import OUTPUT_RATE_HZ
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool

if TYPE_CHECKING:
    from glyphoxa_pipelines.parts import MouthParts

PATIENCE_MS: Final = 120_000
"""For an answer: what is measured here is what is said, not how soon."""
_PART_MS: Final = 5_000
_FLUSH_MS: Final = 600_000
_DAY_MS: Final = 86_400_000
_LINE_MS: Final = 15_000
_TONE: Final = (6_000 * np.sin(2 * np.pi * 220 / OUTPUT_RATE_HZ * np.arange(OUTPUT_RATE_HZ // 5))).astype(np.int16)
"""Of each piece, a fifth of a second. Silence would be left out, and nothing of an answer would be heard."""


@dataclass(frozen=True, slots=True)
class Answer:
    question: Question
    record: TurnRecord | None

    @property
    def text(self) -> str:
        return "" if self.record is None else self.record.reply

    @property
    def prompt(self) -> str:
        return "" if self.record is None else self.record.prompt_text

    @property
    def first_word_ms(self) -> int | None:
        stages = {} if self.record is None else self.record.stages
        if Stage.FIRST_TOKEN not in stages or Stage.ADDRESSED not in stages:
            return None
        return stages[Stage.FIRST_TOKEN] - stages[Stage.ADDRESSED]


def tone_parts(order: MouthSpec) -> MouthParts:
    """The product's, but for a voice that takes no time."""
    from glyphoxa_pipelines.engines import mouth_parts
    from glyphoxa_processors import local_services
    from glyphoxa_processors.llm import SpokenLLM, StreamDeadlines

    tone = local_services.make_tts(lambda _: iter([_TONE]), voice="tone")
    parts = replace(mouth_parts(order), tts=tone)
    if isinstance(parts.llm, SpokenLLM):
        parts.llm.deadlines = StreamDeadlines(PATIENCE_MS, PATIENCE_MS)
    return parts


async def open_tone_mouth(order: MouthSpec) -> Mouth:
    from glyphoxa_pipelines import cascaded

    return await cascaded.build(tone_parts(order))


@dataclass(frozen=True, slots=True)
class Tables:
    """What every session of a run shares."""

    settings: Settings
    campaign: Campaign
    local: LocalModels
    store: Store

    async def ask(self, question: Question, number: str) -> Answer:
        """In a session of its own, of which nothing is kept."""
        async with self.sitting(question.scene, question.speaker, number) as table:
            return Answer(question, await _answered(table, question))

    @asynccontextmanager
    async def sitting(
        self, scene: Scene, player: Player, number: str, *, mouth: OpenMouth = open_tone_mouth
    ) -> AsyncIterator[LiveTable]:
        """A table in that scene with the player at it, for a session of which nothing is kept."""
        async with ClosingStack() as stack:
            table = await open_with(self._opening(scene, number, mouth), stack, tell=lambda _: None)
            table.adopt(stack.pop_all())
        try:
            table.parts.state.sits_down(player)
            yield table
        finally:
            await table.close()

    def _opening(self, scene: Scene, number: str, mouth: OpenMouth) -> Opening:
        scenes = sorted(self.campaign.scenes, key=lambda each: each.id != scene.id)
        settings = self.settings.model_copy(update={"data_dir": self.settings.data_directory / f"asked-{number}"})
        return Opening(
            settings=settings,
            campaign=replace(self.campaign, scenes=tuple(scenes)),
            session=SessionId(f"asked-{number}"),
            local=self.local,
            store=replace(self.store, log=cast(PostgresTranscriptLog, _NothingIsKept())),
            mouths={npc.engine: mouth for npc in self.campaign.npcs},
            outside={},
        )


class _NothingIsKept:
    """A transcript log for sessions of which the next question must not know."""

    async def append(self, utterances: Sequence[Utterance]) -> None: ...

    async def revise(self, utterance: Utterance, *, was: Utterance) -> bool:
        return False

    async def record_turn(self, campaign: CampaignId, turn: TurnRecord) -> None: ...

    async def recent(
        self, campaign: CampaignId, session: SessionId, *, since_ms: int, limit: int = 50
    ) -> list[Utterance]:
        return []

    async def count(self, campaign: CampaignId, session: SessionId | None = None) -> int:
        return 0


def settings_of(directory: Path, llm: LlmSettings) -> Settings:
    """As they are shipped, with all the time there is."""
    return Settings(
        data_dir=directory,
        providers=ProvidersSettings(llm=llm),
        turns=TurnsSettings(reply_deadline_ms=PATIENCE_MS),
        context=ContextSettings(part_deadline_ms=_PART_MS, recall_deadline_ms=_PART_MS),
    )


@asynccontextmanager
async def tables(settings: Settings, asked: Asked, *, tell: Callable[[str], None]) -> AsyncIterator[Tables]:
    """Models and memory, with the evenings in it, for the time of the block."""
    async with ClosingStack() as stack:
        local = await local_models.load(settings, stack, slots=local_slots(settings, asked.campaign), tell=tell)
        store = await open_store_for(settings, local, stack)
        if store is None:
            raise Unavailable("there is no long-term memory to ask")
        await store.database.open()
        await store.campaigns.load(asked.campaign)
        await _remember(settings, asked, store)
        yield Tables(settings, asked.campaign, local, store)


async def _remember(settings: Settings, asked: Asked, store: Store) -> None:
    """What was said goes the product's own way: spool, log, embeddings."""

    async def embed_new() -> None:
        await store.chunks.fill_missing(asked.campaign.id)

    journal = Journal(Spool(settings.data_directory / "spool"), store.log, after_append=embed_new)
    try:
        await keep_all(journal.keep, _utterances(asked))
        if not await journal.flush(_FLUSH_MS):
            raise Unavailable("the evenings could not be written to the database")
        await embed_new()
    finally:
        await journal.close()


def _utterances(asked: Asked) -> list[Utterance]:
    """A day between two evenings; the last one was yesterday."""
    sessions = list(dict.fromkeys(said.session for said in asked.evenings))
    began_ms = {session: now_ms() - (len(sessions) - n) * _DAY_MS for n, session in enumerate(sessions)}
    return [_utterance(asked, n, said, began_ms[said.session] + n * _LINE_MS) for n, said in enumerate(asked.evenings)]


def _utterance(asked: Asked, number: int, said: Said, at_ms: int) -> Utterance:
    npc = said.speaker if isinstance(said.speaker, Npc) else None
    return Utterance(
        id=UtteranceId(f"evening-{number:05d}"),
        campaign_id=asked.campaign.id,
        session_id=SessionId(said.session),
        speaker_id=SpeakerId(said.speaker.id),
        speaker_name=said.speaker.name,
        text=said.text,
        raw_text=said.text,
        at_ms=at_ms,
        duration_ms=2_500,
        npc_id=None if npc is None else npc.id,
        witnesses=frozenset(said.scene.npcs),
    )


async def _answered(table: LiveTable, question: Question) -> TurnRecord | None:
    return await answered(table, question.speaker, _called(question), npc=question.npc)


async def answered(table: LiveTable, player: Player, line: str, *, npc: Npc) -> TurnRecord | None:
    """What became of a typed line; None: nothing in all the time there is.

    Args:
        npc: Who is to answer: what is measured here is the answer, not who is meant.
    """
    await table.obey(Puppet(player.id, npc.id))
    await table.wait_until_quiet()
    listener = Listener()
    forget = table.subscribe(listener.on_event)
    try:
        table.say(player.id, line)
        async with asyncio.timeout(PATIENCE_MS / 1_000):
            await listener.over.wait()
    except TimeoutError:
        pass  # counted as an empty answer
    finally:
        forget()
    return listener.record


def _called(question: Question) -> str:
    """Where others are as well, the NPC is called by its name."""
    npc = question.npc
    is_alone = len(question.scene.npcs) == 1
    names = (npc.name, *npc.aliases)
    is_named = any(name.casefold() in question.text.casefold() for name in names)
    return question.text if is_alone or is_named else f"{npc.name}, {question.text}"
