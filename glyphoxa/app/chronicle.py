"""Who reads talk in the background: beside an open table, or in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog, PostgresEpisodes
from glyphoxa.adapters.postgres.server.listen import SAID
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.models import load_llama
from glyphoxa.chronicle.chronicler import EXTRACT_MS, Chronicler, ChronicleWorker
from glyphoxa.chronicle.episodes import TOKENS, EpisodeWriter, for_players, heard_by, said_in, summary_of
from glyphoxa.chronicle.llm_extractor import LlmExtractor, LlmReading
from glyphoxa.chronicle.llm_question import Pace, QuestionLimits
from glyphoxa.chronicle.ports import Extractor
from glyphoxa.chronicle.rules_extractor import RulesExtractor, names_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId
from glyphoxa.domain.structured import StructuredLlm
from glyphoxa.providers.building import CHRONICLE, RECALL, SECOND_LOOK, Choice, build, find, maker_of, runs_here

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer


# The language models that work behind the talk, as the settings name them: who looks again at names, who recalls.


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the prompt cache of the model that runs here."""

    llama: LlamaServer
    number: int


class _Closing(StructuredLlm, Protocol):
    async def close(self) -> None: ...


def local_slots(settings: Settings, campaign: Campaign) -> int:
    """Places in the local model's prompt cache: one for each NPC, and one for each who works behind the talk, so that
    they push no NPC's prompt out.
    """
    return max(1, len(campaign.npcs)) + len(_local_kinds(settings))


def slot_of(kind: str, settings: Settings, *, slots: int) -> int:
    """The place of one who works behind the talk: they have the last ones.

    Args:
        slots: All there are; if there are too few, the first is shared.
    """
    kinds = _local_kinds(settings)
    return max(0, slots - len(kinds) + kinds.index(kind)) if kind in kinds else 0


def open_structured_llm(
    chosen: Choice,
    stack: AsyncExitStack,
    *,
    kind: str,
    here: Slot | None = None,
    environ: Mapping[str, str] = os.environ,
    **options: int,
) -> StructuredLlm:
    """Closed by `stack`.

    Args:
        kind: Where it is set, `SECOND_LOOK`, `RECALL` or `CHRONICLE`.
        here: What "local" means; None if no model runs here.
        options: For the maker of what asks.

    Raises:
        InvalidInput: Its key is not set, its package is not installed, or no model runs here.
    """
    row = find(kind, chosen.name)
    llm: _Closing
    if not row.runs_here:
        llm = build(chosen, section=kind, environ=environ, **options)
    elif here is None:
        raise InvalidInput(f"{kind} {row.name} needs a providers.llm that runs here, such as qwen-1.5b")
    else:
        llm = maker_of(row, section=kind)(here.llama, slot=here.number, **options)
    stack.push_async_callback(llm.close)
    return llm


def _local_kinds(settings: Settings) -> list[str]:
    """Who works behind the talk with the local model."""
    recalls = settings.has_memory and settings.recall.asks_a_model and runs_here(RECALL, settings.recall.llm.name)
    looks = runs_here(SECOND_LOOK, settings.correction.llm.name)
    return [kind for kind, is_local in ((RECALL, recalls), (SECOND_LOOK, looks)) if is_local]


# Who finds what talk tells: the rules, and a language model where the settings want one.


_REST_MS: Final = 5_000
"""Of a stretch's time, what all but the model takes, and more."""
_CLOUD_DEADLINE_MS: Final = 30_000
_CLOUD: Final = QuestionLimits(most_chars=40_000)
_CLOUD_TOKENS: Final = 4_000
_LOCAL_DEADLINE_MS: Final = 150_000
_LOCAL: Final = QuestionLimits(most_chars=6_000, most_found=5, longest_text=80)
_LOCAL_TOKENS: Final = 600
_LOCAL_CONTEXT: Final = 4_096
"""Two cores read some 50 tokens a second and write 20: a full stretch takes a minute."""
_GATHER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class TalkReaders:
    """
    Attributes:
        asking: The language model that reads, too; None: rules alone.
    """

    asking: LlmReading | None = None

    def extractor(self, campaign: Campaign) -> Extractor:
        narrators = [player.name for player in campaign.players if player.dm]
        rules = RulesExtractor(campaign.language, narrators=narrators)
        if self.asking is None:
            return rules
        return LlmExtractor(rules, self.asking, campaign.language, narrators=narrators)

    @property
    def extract_ms(self) -> int:
        """What one stretch may take."""
        return EXTRACT_MS if self.asking is None else EXTRACT_MS + self.asking.longest_ms

    @property
    def lease_ms(self) -> int:
        """A reader that is silent for so long is dead."""
        return self.extract_ms + _REST_MS

    @property
    def gather_ms(self) -> int:
        """How long a stretch is waited for: a model is asked once for all of it."""
        return 0 if self.asking is None else _GATHER_MS


RULES: Final = TalkReaders()


async def open_talk_readers(
    settings: Settings, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> TalkReaders:
    """For a process in which nobody plays. Closed by `stack`; nothing is fetched.

    Raises:
        InvalidInput: The model's key is not set, or its package is not installed.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    if settings.memory.chronicle != "llm" or not runs_here(CHRONICLE, settings.chronicle.llm.name):
        return talk_readers_at_table(settings, stack, environ=environ)
    llama = await load_llama(settings, stack, context_tokens=_LOCAL_CONTEXT)
    llm = open_structured_llm(
        settings.chronicle.llm, stack, kind=CHRONICLE, here=Slot(llama, 0), max_tokens=_LOCAL_TOKENS
    )
    pace = Pace(settings.chronicle.calls_per_minute)
    return TalkReaders(LlmReading(llm, pace, CircuitBreaker(now_ms), _LOCAL_DEADLINE_MS, _LOCAL))


def talk_readers_at_table(
    settings: Settings, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> TalkReaders:
    """For a process in which a table plays: a model that runs here is the NPCs' alone.

    Raises:
        InvalidInput: See `open_talk_readers`.
    """
    if settings.memory.chronicle != "llm" or runs_here(CHRONICLE, settings.chronicle.llm.name):
        return RULES
    llm = open_structured_llm(settings.chronicle.llm, stack, kind=CHRONICLE, environ=environ, max_tokens=_CLOUD_TOKENS)
    pace = Pace(settings.chronicle.calls_per_minute)
    return TalkReaders(LlmReading(llm, pace, CircuitBreaker(now_ms), _CLOUD_DEADLINE_MS, _CLOUD))


def chronicle_log(store: Store, readers: TalkReaders = RULES) -> PostgresChronicleLog:
    """Of one worker alone, that reads with these."""
    return PostgresChronicleLog(store.database, store.world, lease_ms=readers.lease_ms)


async def chronicler_of(
    store: Store, campaign: CampaignId, log: PostgresChronicleLog, readers: TalkReaders = RULES
) -> Chronicler:
    """
    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is away.
    """
    stored = await store.campaigns.get(campaign)
    return Chronicler(campaign, stored.language, log, readers.extractor(stored), extract_ms=readers.extract_ms)


async def episode_writer(store: Store, campaign: CampaignId) -> EpisodeWriter:
    """
    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is away.
    """
    stored = await store.campaigns.get(campaign)
    return EpisodeWriter(
        campaign,
        stored.language,
        {npc.id: npc.entity_id for npc in stored.npcs},
        PostgresChronicleLog(store.database, store.world),
        PostgresEpisodes(store.database, store.world),
    )


def chronicle_worker(
    store: Store,
    campaign: CampaignId | None = None,
    *,
    readers: TalkReaders = RULES,
    log: PostgresChronicleLog | None = None,
) -> ChronicleWorker:
    """
    Args:
        campaign: Only this one is read; None: all of the database.
        log: Of this worker alone; None makes one.
    """
    log = log or chronicle_log(store, readers)
    kept: dict[CampaignId, Chronicler] = {}

    async def campaigns() -> Sequence[CampaignId]:
        return await store.campaigns.ids() if campaign is None else [campaign]

    async def chronicler(of: CampaignId) -> Chronicler:
        # It holds the names of its campaign in memory.
        if of not in kept:
            kept[of] = await chronicler_of(store, of, log, readers)
        return kept[of]

    return ChronicleWorker(
        log,
        campaigns=campaigns,
        chronicler=chronicler,
        said=lambda: store.listener.follow(SAID, campaign),
        now_ms=now_ms,
        gather_ms=readers.gather_ms,
    )


# What happened in a session, in its own most salient lines.


_ROWS_A_LINE = 40
"""A line takes as long to judge as so many rows take to read."""
Audience = Literal["players", "dm"] | NpcId


async def recap_of(
    store: Store, campaign: CampaignId, session: SessionId, audience: Audience, *, tokens: int = TOKENS
) -> Sequence[str]:
    """
    Args:
        audience: `players`: what they may be read aloud. `dm`: all that was said, with the names as they are. An NPC:
            what it heard.
        tokens: How much there is room for.

    Raises:
        Unavailable: The database is away.
    """
    log = PostgresChronicleLog(store.database, store.world)
    stored = await store.campaigns.get(campaign)
    known = await log.known(campaign)
    said = await said_in(log, campaign, session)

    def told() -> list[str]:
        heard = said
        if audience == "players":
            heard = for_players(said, known, stored.language)
        elif audience != "dm":
            heard = heard_by(NpcId(audience), said)
        lines = summary_of(heard, language=stored.language, names=names_of(known, stored.language), tokens=tokens)
        return [line.in_words(stored.language) for line in lines]

    # An evening takes a second to read, in which a table that is open would hear nothing.
    return await offload(told, amount=len(said) * _ROWS_A_LINE)
