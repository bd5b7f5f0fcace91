"""Ask NPCs at a table: a typed line goes through the whole path of a turn, and the answer comes back.

Shared by the benchmarks that judge answers (grounding, persona). The voice takes no time. Rules judge and no model
does; they differ from the rules by which the product decides.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import yaml

from benchmarks.runner import positive, tell
from benchmarks.table import Listener, write_talk
from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import PostgresTranscriptLog
from glyphoxa.app.background import local_slots
from glyphoxa.app.engines import MouthSpec, OpenMouth
from glyphoxa.app.memory import open_store_for
from glyphoxa.app.models import LocalModels, load_local_models
from glyphoxa.app.table import TableBuilder
from glyphoxa.app.transcript_reader import BackgroundReader, open_reader
from glyphoxa.config.provider_sections import LlmSettings, ProvidersSettings
from glyphoxa.config.sections import ContextSettings, TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.turn_record import Stage, TurnRecord
from glyphoxa.npc.commands import Puppet
from glyphoxa.npc.mouth import Mouth
from glyphoxa.npc.session import TableSession
from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ

if TYPE_CHECKING:
    from glyphoxa_pipelines.cascaded import Graph
    from glyphoxa_processors.spoken_text import ReplyRules

PATIENCE_MS: Final = 120_000
"""For an answer: these benchmarks measure the content, not the time."""
_PART_MS: Final = 5_000
_TONE: Final = (6_000 * np.sin(2 * np.pi * 220 / OUTPUT_RATE_HZ * np.arange(OUTPUT_RATE_HZ // 5))).astype(np.int16)
"""Each piece lasts a fifth of a second. Silence would be dropped, and no answer would be heard."""


# -- options


def add_options(parser: argparse.ArgumentParser, *, asked: str) -> None:
    """
    Args:
        asked: The name of the questions, in the plural.
    """
    parser.add_argument("--limit", type=positive, metavar="N", help=f"at most this many {asked}, the same in every run")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="append each answer with its prompt, one a line")
    parser.add_argument("--llm", metavar="NAME", help="a provider's name as in the settings; default: the shipped one")
    parser.add_argument("--llm-model", metavar="MODEL", help="of that provider")
    parser.add_argument("--llm-url", metavar="URL", help="of that provider")


def llm_of(options: argparse.Namespace) -> LlmSettings:
    """Return the model of the options, by default the shipped one."""
    named = {"name": options.llm, "model": options.llm_model, "base_url": options.llm_url}
    return LlmSettings.model_validate({key: value for key, value in named.items() if value is not None})


def settings_of(llm: LlmSettings, directory: Path) -> Settings:
    """Return the shipped settings with this model and with long deadlines."""
    return Settings(
        data_dir=directory,
        providers=ProvidersSettings(llm=llm),
        turns=TurnsSettings(reply_deadline_ms=PATIENCE_MS),
        context=ContextSettings(recall_deadline_ms=_PART_MS),
    )


# -- at the table


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Attributes:
        record: The record of the turn; None: nothing within the patience.
    """

    record: TurnRecord | None

    @property
    def text(self) -> str:
        return "" if self.record is None else self.record.reply

    @property
    def prompt(self) -> str:
        return "" if self.record is None else self.record.prompt.text

    @property
    def first_word_ms(self) -> int | None:
        stages = {} if self.record is None else self.record.stages
        if Stage.FIRST_TOKEN not in stages or Stage.ADDRESSED not in stages:
            return None
        return stages[Stage.FIRST_TOKEN] - stages[Stage.ADDRESSED]


def report(path: Path | None, asked: Mapping[str, str], answer: Answer, judgement: Mapping[str, object]) -> None:
    """Print an answer for people, and add it to the file of answers if there is one.

    Args:
        asked: The question: its id, kind and text.
        judgement: The verdict on the answer; only what is true is printed.
    """
    said = ", ".join(name for name, is_so in judgement.items() if is_so)
    tell(f"{asked['id']} {asked['kind']} {asked['text']!r} -> {answer.text!r} {said}")
    if path is not None:
        record = answer.record
        unsaid = [] if record is None else [[each.fault, each.text] for each in record.unsaid]
        error = "" if record is None else record.error
        kept = {**asked, "answer": answer.text, **judgement, "unsaid": unsaid, "error": error, "prompt": answer.prompt}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def tone_stages(spec: MouthSpec, rules: ReplyRules | None = None) -> Graph:
    """Return the product's stages, with a voice that takes no time."""
    from glyphoxa_pipelines.cascaded import llm_of, stages
    from glyphoxa_processors.llm import SpokenLLM, StreamDeadlines
    from glyphoxa_processors.streamed_voice import HibariTTS

    llm = llm_of(spec)
    if isinstance(llm, SpokenLLM):
        llm.deadlines = StreamDeadlines(PATIENCE_MS, PATIENCE_MS)
    return partial(stages, llm=llm, tts=HibariTTS(lambda _: iter([_TONE]), voice="tone"), rules=rules)


async def open_tone_mouth(spec: MouthSpec) -> Mouth:
    from glyphoxa_pipelines.cascaded import GraphMouth

    return GraphMouth(spec, tone_stages(spec))


@dataclass(frozen=True, slots=True)
class Tables:
    """The shared parts of all sessions of a run."""

    settings: Settings
    campaign: Campaign
    local: LocalModels
    store: Store

    @asynccontextmanager
    async def evening(
        self,
        scene: Scene,
        session: str,
        *players: Player,
        mouth: OpenMouth = open_tone_mouth,
        reader: BackgroundReader | None = None,
    ) -> AsyncIterator[TableSession]:
        """Open a table in that scene with these players, for the time of the block.

        Args:
            reader: None: the table opens one for itself.
        """
        scenes = sorted(self.campaign.scenes, key=lambda each: each.id != scene.id)
        async with ClosingStack() as stack:
            builder = TableBuilder(
                settings=self.settings,
                campaign=replace(self.campaign, scenes=tuple(scenes)),
                session=SessionId(session),
                local=self.local,
                store=self.store,
                mouths={npc.engine: mouth for npc in self.campaign.npcs},
                stack=stack,
            )
            reader = reader or open_reader(self.settings, self.store, stack)
            table = await builder.open(reader, tell=lambda _: None)
            table.adopt(stack.pop_all())
        try:
            for player in players:
                table.state.add_player(player)
            yield table
        finally:
            await table.close()

    @asynccontextmanager
    async def sitting(
        self, scene: Scene, player: Player, number: str, *, mouth: OpenMouth = open_tone_mouth
    ) -> AsyncIterator[TableSession]:
        """Open a table for a session that is not stored."""
        session, store = f"asked-{number}", copy(self.store)
        store.log = _NothingIsKept(self.store.database)
        settings = self.settings.model_copy(update={"data_dir": self.settings.data_directory / session})
        async with replace(self, settings=settings, store=store).evening(scene, session, player, mouth=mouth) as table:
            yield table


class _NothingIsKept(PostgresTranscriptLog):
    """A transcript log for sessions that the next question must not know."""

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


@asynccontextmanager
async def tables(settings: Settings, campaign: Campaign, past: Iterable[Utterance] = ()) -> AsyncIterator[Tables]:
    """Open models and memory with the earlier utterances, for the time of the block."""
    async with ClosingStack() as stack:
        local = await load_local_models(settings, stack, slots=local_slots(settings, campaign), tell=tell)
        store = await open_store_for(settings, local, stack)
        if store is None:
            raise Unavailable("there is no long-term memory to ask")
        await store.database.open()
        await store.campaigns.load(campaign)
        await write_talk(store, past, settings.data_directory / "spool")
        await store.chunks.fill_missing(campaign.id)
        yield Tables(settings, campaign, local, store)


async def answered(table: TableSession, player: Player, line: str, *, npc: Npc) -> TurnRecord | None:
    """Return the record of a typed line; None: nothing within the patience.

    Args:
        npc: Who must answer: these benchmarks measure the answer, not the address.
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


# -- rules


class Rules:
    """Regular expressions and common words that judge answers, from a file.

    Args:
        path: YAML: a list of alternatives for each pattern, and a text of words for each list.
    """

    def __init__(self, path: Path) -> None:
        read = yaml.safe_load(path.read_text("utf-8"))
        self._patterns = {
            name: re.compile("|".join(found), re.IGNORECASE) for name, found in read.items() if isinstance(found, list)
        }
        self._words = {name: frozenset(text.split()) for name, text in read.items() if isinstance(text, str)}

    def finds(self, name: str, text: str) -> bool:
        return self._patterns[name].search(text) is not None

    def is_foreign(self, text: str, language: str, *, least: int = 1) -> bool:
        """Return whether more of its common words are of the other language: of German and English.

        Args:
            least: The least number of such words.
        """
        own, other = (self._words["german_words"], self._words["english_words"])
        if not language.startswith("de"):
            own, other = other, own
        words = re.findall(r"[^\W\d_]+", text.lower())
        n_other = sum(word in other for word in words)
        return n_other >= least and n_other > sum(word in own for word in words)


def plain(text: str) -> str:
    """Return a text in lower case, with one kind of apostrophe, on one line."""
    return " ".join(text.replace("’", "'").lower().split())
