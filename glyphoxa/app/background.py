"""Who reads talk in the background: beside an open table, or in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog, PostgresEpisodes
from glyphoxa.adapters.postgres.names.learned import NameChanges, PostgresLearnedNames
from glyphoxa.adapters.postgres.server.listen import SAID
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.models import LocalModels, load_llama
from glyphoxa.chronicle.chronicler import EXTRACT_MS, Chronicler, ChronicleWorker
from glyphoxa.chronicle.episodes import EpisodeWriter
from glyphoxa.chronicle.llm_extractor import LlmExtractor, LlmReading
from glyphoxa.chronicle.llm_question import Pace, QuestionLimits
from glyphoxa.chronicle.ports import Extractor
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import UtteranceRevised
from glyphoxa.domain.ids import CampaignId, NpcId, UtteranceId
from glyphoxa.domain.structured import StructuredLlm
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.table_names import NamesOfGraph, TableNames
from glyphoxa.npc.budget import DEFAULT_RULES
from glyphoxa.providers.building import (
    CHRONICLE,
    LLM,
    NONE,
    RECALL,
    RERANK,
    SECOND_LOOK,
    Choice,
    build,
    find,
    maker_of,
    runs_here,
)
from glyphoxa.recall.recall import Recall
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.ports import PastTalk, TranscriptLog
from glyphoxa.transcript.reviser import Asking, Reviser

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.openai_models import HttpReranker
    from glyphoxa.memory_graph.deep_recall import DeepRecall
    from glyphoxa.memory_graph.methods import Reranker
    from glyphoxa.memory_graph.settings import RecallMethod


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


# How the settings want names put right: the stage by sound, and who looks again behind the talk.


LOCAL_NAMES = 16
LOCAL_LOOK_MS = 60_000
CLOUD_LOOK_MS = 10_000
"""The local model reads some 50 tokens a second and writes 20; a cloud model that takes so long has a bad day."""


def make_names(
    campaign: Campaign,
    settings: CorrectionSettings,
    store: Store | None,
    *,
    now_ms: Callable[[], int],
    wait_until_logged: Callable[[UtteranceId], Awaitable[bool]],
) -> TableNames:
    """
    Args:
        now_ms: Unix epoch.
        wait_until_logged: See `glyphoxa.names.learning.Learner`.
    """
    graph = None
    if store is not None:
        graph = NamesOfGraph(PostgresLearnedNames(store.database), NameChanges(store.listener))
    return TableNames(
        campaign,
        now_ms=now_ms,
        corrector=partial(corrector_of, settings=settings) if settings.phonetic else None,
        graph=graph,
        wait_until_logged=wait_until_logged,
    )


def corrector_of(names: Gazetteer, settings: CorrectionSettings) -> Corrector:
    if settings.algorithm == "shipped":
        return Corrector(names, caution=settings.caution)
    # Loaded by who asks for it alone.
    from glyphoxa.names.documents import documents_corrector

    return documents_corrector(
        names, phonetic_threshold=settings.phonetic_threshold, fuzzy_threshold=settings.fuzzy_threshold
    )


def transcribed(campaign: Campaign) -> frozenset[NpcId]:
    """NPCs whose words are what a speech-to-speech provider wrote down of its own voice."""
    return frozenset(npc.id for npc in campaign.npcs if npc.engine == "s2s")


async def open_asking(
    settings: CorrectionSettings,
    stack: AsyncExitStack,
    *,
    local: LocalModels,
    environ: Mapping[str, str] = os.environ,
) -> Asking | None:
    """The language model that looks again; None without one. Closed by `stack`.

    Raises:
        InvalidInput: Its key is not set, or its package is not installed.
    """
    chosen = settings.llm
    if chosen.name == NONE:
        return None
    llama = local.llama
    here = None if llama is None else Slot(llama, llama.slots - 1)
    llm = open_structured_llm(chosen, stack, kind=SECOND_LOOK, here=here, environ=environ)
    if runs_here(SECOND_LOOK, chosen.name):
        return Asking(
            llm,
            deadline_ms=LOCAL_LOOK_MS,
            low_confidence=settings.low_confidence,
            most_names=LOCAL_NAMES,
            gives_way=True,
        )
    return Asking(llm, deadline_ms=CLOUD_LOOK_MS, low_confidence=settings.low_confidence)


def make_reviser(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
    campaign: Campaign,
    names: TableNames,
    *,
    asking: Asking | None,
    tell: Callable[[UtteranceRevised], None],
    log: TranscriptLog | None,
    journal: Journal,
    wait_until_quiet: Callable[[], Awaitable[None]],
    after_revise: Callable[[], Awaitable[None]],
) -> Reviser | None:
    """None when there is nothing that could be looked at."""
    heard_by_provider = transcribed(campaign)
    if asking is None and not heard_by_provider:
        return None
    return Reviser(
        lambda: names.current,
        correct=names.correct,
        tell=tell,
        log=log,
        wait_until_logged=journal.delivery.wait_until_logged,
        asking=asking,
        transcribed=heard_by_provider,
        nearby=names.nearby,
        wait_until_quiet=wait_until_quiet,
        on_proof=names.proved,
        after_revise=after_revise,
    )


# How NPCs of tier DEEP search their memory, as the settings want it.


_LOCAL_RECALL: Final = {"llm_lines": 16, "llm_rounds": 2}
"""A place in the local model holds 2,048 tokens, and it reads some 50 of them a second."""
_REST_OF_A_CALL_MS: Final = 1_000
"""Of a tool's time, what looking for facts beside talk takes, and more."""


def open_deep_recall(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
    settings: Settings,
    recall: Recall,
    stack: AsyncExitStack,
    *,
    method: RecallMethod,
    llama: LlamaServer | None = None,
    environ: Mapping[str, str] = os.environ,
) -> DeepRecall:
    """Recall with the stages that the settings name, and with whom the method asks. Closed by `stack`.

    Args:
        method: What it is opened for.
        llama: The model that runs here, if one does.

    Raises:
        InvalidInput: See `open_structured_llm`; or the method asks what cannot be had.
    """
    # Loaded by who asks for it alone.
    from glyphoxa.memory_graph.deep_recall import DeepRecall

    chosen = settings.recall.model_copy(update={"method": method})
    llm = None
    if chosen.asks_a_model:
        here = None if llama is None else Slot(llama, slot_of(RECALL, settings, slots=llama.slots))
        llm = open_structured_llm(chosen.llm, stack, kind=RECALL, here=here, environ=environ)
        if runs_here(RECALL, chosen.llm.name):
            unset = {
                name: value for name, value in _LOCAL_RECALL.items() if name not in settings.recall.model_fields_set
            }
            chosen = chosen.model_copy(update=unset)
    reranker = _open_reranker(settings, stack, environ) if method == "hybrid_rerank" else None
    deep = DeepRecall(recall, settings=chosen, llm=llm, reranker=reranker)
    stack.push_async_callback(deep.close)
    return deep


async def load_deep_recall(
    settings: Settings,
    recall: Recall,
    stack: AsyncExitStack,
    *,
    method: RecallMethod,
    environ: Mapping[str, str] = os.environ,
) -> DeepRecall:
    """As `open_deep_recall`, for verbs that need no table: a model that runs here is loaded if it is asked. Nothing is
    fetched.

    Raises:
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    llama = None
    both_here = all(runs_here(each, settings.chosen(each).name) for each in (RECALL, LLM))
    if both_here and settings.recall.model_copy(update={"method": method}).asks_a_model:
        llama = await load_llama(settings, stack)
    return open_deep_recall(settings, recall, stack, method=method, llama=llama, environ=environ)


def open_deep_talk(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
    settings: Settings,
    recall: Recall,
    stack: AsyncExitStack,
    *,
    talk: PastTalk,
    recent: Callable[[NpcId], Sequence[str]],
    world: Callable[[NpcId], str],
    llama: LlamaServer | None = None,
    environ: Mapping[str, str] = os.environ,
) -> PastTalk:
    """What the tools of an NPC of tier DEEP ask, where the settings want more than `talk`.

    Args:
        recall: Whose talk it is.
        talk: What the tools of others ask.
        recent: What an NPC heard last.
        world: What stands in every prompt of an NPC.

    Raises:
        InvalidInput: See `open_deep_recall`.
    """
    from glyphoxa.memory_graph.deep_recall import DeepTalk

    method = settings.recall.searches_by
    deep = open_deep_recall(settings, recall, stack, method=method, llama=llama, environ=environ)
    deadline_ms = DEFAULT_RULES["DEEP"].ceiling_ms - _REST_OF_A_CALL_MS
    return DeepTalk(talk, deep, deadline_ms=deadline_ms, recent=recent, world=world)


def _open_reranker(settings: Settings, stack: AsyncExitStack, environ: Mapping[str, str]) -> Reranker | None:
    chosen = settings.recall.rerank
    if chosen.name == NONE:
        return None
    reranker: HttpReranker = build(chosen, section=RERANK, environ=environ)
    stack.push_async_callback(reranker.close)
    return reranker
