"""Creates the background workers of a table or a separate process: chronicle, second look and deep recall."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from loguru import logger

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.limits import LONGEST_WAIT_MS, RateLimit
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.listen import NAMES, SAID
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.app.models import load_llama
from glyphoxa.chat.asker import ModelAsker, QuestionLimits
from glyphoxa.chat.questions import StructuredLlm
from glyphoxa.chronicle.chronicler import EXTRACT_MS, LOOK_AGAIN_MS, Chronicler, ChronicleWorker
from glyphoxa.chronicle.coined_terms import CoinedTerms
from glyphoxa.chronicle.curator import Curating, Curator, LookUp
from glyphoxa.chronicle.judge import STRETCH_MS, LlmJudge, RulesJudge
from glyphoxa.chronicle.llm_extractor import LlmExtractor
from glyphoxa.chronicle.ports import Extractor, TurnJudge
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.salience import VECTORS_OF
from glyphoxa.chronicle.summaries import LlmSummariser
from glyphoxa.chronicle.timeline_writer import TimelineWriter
from glyphoxa.chronicle.utterance_nodes import Grafter
from glyphoxa.config.provider_sections import CompletionSettings, CorrectionSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.budgets import CHECK_EVERY
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Recalled
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.relations import RelationWords
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.table_names import NamesOfGraph, TableNames
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.second_look import TEMPERATURE
from glyphoxa.npc.tool_spec import Found, nothing
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.npc.transcript_revision import Asking
from glyphoxa.plugin import parts
from glyphoxa.prompt.wording import days_in
from glyphoxa.providers.registry import (
    CHRONICLE,
    CURATOR,
    LLM,
    NONE,
    RECALL,
    SECOND_LOOK,
    build,
    find,
    maker_of,
    runs_here,
)
from glyphoxa.recall.recall import RecallResult
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.ports import MemorySearch, TalkQuery

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer


# The language models of the background tasks (second look, recall, chronicle), as configured.


NOTES: Final = "notes"
"""The check of what an NPC knows: see `NotesToken`. It has no section in the settings."""


def local_slots(settings: Settings, campaign: Campaign) -> int:
    """Return the number of slots in the local model's prompt cache.

    Each NPC and each background task has its own, so that no task evicts an NPC's prompt.
    """
    return max(1, len(campaign.npcs)) + len(_local_kinds(settings))


def slot_of(kind: str, settings: Settings, *, slots: int) -> int:
    """Return the slot of a background task. They use the last slots.

    Args:
        slots: Total number. If there are too few, the first one is shared.
    """
    kinds = _local_kinds(settings)
    return max(0, slots - len(kinds) + kinds.index(kind)) if kind in kinds else 0


def open_asker(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    kind: str,
    llama: LlamaServer | None = None,
    **options: Any,
) -> ModelAsker:
    """Open the language model of a background task. `stack` closes it.

    Args:
        kind: Its section in the settings: `SECOND_LOOK`, `RECALL`, `CHRONICLE` or `CURATOR`.
        llama: The model that "local" means; None if none runs here.
        options: Passed to the provider's factory.

    Raises:
        InvalidInput: Its key or package is missing, or no model runs here.
    """
    chosen = settings.chosen(kind)
    row = find(kind, chosen.name)
    temperature = chosen.temperature if isinstance(chosen, CompletionSettings) else 0.0
    if isinstance(chosen, CompletionSettings) and chosen.max_tokens is not None:
        options["max_tokens"] = chosen.max_tokens
    llm: StructuredLlm
    if not row.runs_here:
        llm = build(chosen, section=kind, **options)
    elif llama is None:
        raise InvalidInput(f"{kind} {row.name} needs a local providers.llm, such as qwen-1.5b")
    else:
        slot = slot_of(kind, settings, slots=llama.slots)
        options |= {"slot": slot, "as_words": llama.control_tokens.in_messages}
        llm = maker_of(row, section=kind)(llama.connection, **options)
    stack.push_async_callback(llm.close)
    return ModelAsker(llm, temperature=temperature)


def _local_kinds(settings: Settings) -> list[str]:
    """Return the background tasks that use the local model."""
    recalls = settings.has_memory and settings.recall.asks_a_model and runs_here(RECALL, settings.recall.llm.name)
    looks = runs_here(SECOND_LOOK, settings.correction.llm.name)
    checks = settings.profile.needs_repairs and runs_here(LLM, settings.providers.llm.name)
    return [kind for kind, is_local in ((NOTES, checks), (RECALL, recalls), (SECOND_LOOK, looks)) if is_local]


# The chronicle's extractor and judge: the rules, and a language model if configured.


_REST_MS: Final = 5_000
"""Time for everything except the model, with a margin."""
_CLOUD_TOKENS: Final = 4_000
_CLOUD_AT_ONCE: Final = 4
"""Calls at a time. A local model answers one after the other."""
_LOCAL_DEADLINE_MS: Final = 150_000
_LOCAL: Final = QuestionLimits(max_chars=6_000, max_found=5, max_text_chars=80)
_LOCAL_TOKENS: Final = 600
_LOCAL_CONTEXT: Final = 4_096
"""Two cores read about 50 tokens a second and write 20, so a full stretch takes a minute."""
_GATHER_MS: Final = 60_000
_ROUNDS: Final = 3
"""Rounds of the curator that may take the longest time for one answer."""


@dataclass(frozen=True, slots=True)
class TalkReaders:
    """Creates the chronicle's extractors.

    Attributes:
        asking: The language model that assists; None: rules only.
        judging: The language model that judges; None: rules only.
        summing: The language model that sums up; None: lines are selected.
        curating: The curator; None: there is none.
        check_every: Utterances after which the backstop runs.
        every: Replies of NPCs after which talk is read; None: see `gather_ms`.
        give_way: Waited for before each stretch; None: nothing has precedence.
    """

    asking: ModelAsker | None = None
    judging: ModelAsker | None = None
    summing: ModelAsker | None = None
    curating: Curating | None = None
    check_every: int = CHECK_EVERY
    every: int | None = None
    give_way: Callable[[], Awaitable[None]] | None = None

    def readers(self, campaign: Campaign, embedder: Embedder | None = None) -> tuple[Extractor, TurnJudge]:
        """Return the extractor and the judge of a campaign, which share the index of its names.

        Args:
            embedder: Helps the judge, if it is the model that the judge's weights were fitted with.
        """
        nobody = _nobody(campaign)
        rules = RulesExtractor(campaign.language, nobody=nobody)
        extractor: Extractor = rules
        topics = topics_of(campaign)
        if self.asking is not None:
            extractor = LlmExtractor(rules, _safe(self.asking, campaign), nobody, campaign.schema)
        embed = embedder.embed if embedder is not None and embedder.name == VECTORS_OF else None
        judge = RulesJudge(campaign.language, rules.index, flags=topics.flags, embed=embed)
        return extractor, judge if self.judging is None else LlmJudge(judge, self.judging, topics.labels)

    def summariser(self, campaign: Campaign) -> LlmSummariser | None:
        """Return the model that sums up what is past; None: lines are selected."""
        return None if self.summing is None else LlmSummariser(_safe(self.summing, campaign), campaign.language)

    def curator(self, campaign: Campaign) -> Curating | None:
        """Return the curator of a campaign; None: there is none."""
        asked = self.curating
        return None if asked is None else replace(asked, asking=_safe(asked.asking, campaign))

    @property
    def extract_ms(self) -> int:
        """Time limit for one stretch."""
        models_ms = 0 if self.asking is None else self.asking.longest_ms
        return EXTRACT_MS + models_ms + (0 if self.curating is None else self.curating.deadline_ms)

    @property
    def lease_ms(self) -> int:
        """Lease of a session. A reader that does not renew it counts as dead."""
        waits_ms = 0 if self.give_way is None else 2 * LONGEST_WAIT_MS
        return self.extract_ms + _REST_MS + waits_ms + (0 if self.judging is None else STRETCH_MS)

    @property
    def gather_ms(self) -> int:
        """How long an incomplete stretch waits for more, because each model call covers a whole stretch."""
        gathers = (self.asking, self.judging, self.curating, self.every) != (None, None, None, None)
        return _GATHER_MS if gathers else 0


def _safe(asking: ModelAsker, campaign: Campaign) -> ModelAsker:
    """Return a model that reads no line that touches what must not come up in a campaign."""
    return replace(asking, forbids=topics_of(campaign).forbids)


def _nobody(campaign: Campaign) -> tuple[str, ...]:
    """Return names that are nobody's in the story."""
    return (*(player.name for player in campaign.players if player.dm), campaign.name, *campaign.glossary)


RULES: Final = TalkReaders()


async def open_talk_readers(settings: Settings, stack: AsyncExitStack) -> TalkReaders:
    """Open readers in a process without a table. `stack` closes them; nothing is downloaded.

    Raises:
        InvalidInput: The model's key or package is missing.
        NotFound: Its weights are missing.
        Corrupt: Its weights are damaged.
    """
    kinds = ((CHRONICLE, settings.memory.asks_a_model), (CURATOR, settings.memory.curator))
    if not any(is_on and runs_here(kind, settings.chosen(kind).name) for kind, is_on in kinds):
        return talk_readers_at_table(settings, stack)
    llama = await load_llama(settings, stack, context_tokens=_LOCAL_CONTEXT)
    return talk_readers_at_table(settings, stack, llama=llama)


def talk_readers_at_table(
    settings: Settings, stack: AsyncExitStack, *, llama: LlamaServer | None = None
) -> TalkReaders:
    """Create readers in a process with a table, where the local model is reserved for NPCs.

    Args:
        llama: A local model that is reserved for reading.

    Raises:
        InvalidInput: See `open_talk_readers`.
    """
    memory = settings.memory
    reading = _reading(settings, stack, CHRONICLE, llama) if memory.asks_a_model else None
    curating: Curating | None = None
    if memory.curator and (curator := _reading(settings, stack, CURATOR, llama)) is not None:
        whole_ms, is_alone = _ROUNDS * curator.deadline_ms, memory.chronicle == "none"
        curating = Curating(curator, whole_ms, settings.chronicle.max_rounds, is_alone)
    return TalkReaders(
        reading if memory.chronicle == "llm" else None,
        reading if memory.judge == "llm" else None,
        reading if memory.summaries == "llm" else None,
        curating,
        memory.backstop,
        settings.chronicle.every,
    )


def _reading(
    settings: Settings, stack: AsyncExitStack, kind: str, llama: LlamaServer | None = None
) -> ModelAsker | None:
    """Open a model that reads the transcript; None if it would run here and no `llama` is reserved for it.

    Args:
        kind: `CHRONICLE` or `CURATOR`.
    """
    chosen, is_local = settings.chronicle, runs_here(kind, settings.chosen(kind).name)
    if is_local and llama is None:
        return None
    tokens = _LOCAL_TOKENS if is_local else _CLOUD_TOKENS
    asker = open_asker(settings, stack, kind=kind, llama=llama, max_tokens=tokens)
    asker = replace(asker, pace=_pace(chosen.calls_per_minute), retries=chosen.retries)
    if is_local:
        return replace(asker, deadline_ms=_LOCAL_DEADLINE_MS, limits=_LOCAL)
    return replace(asker, at_once=_CLOUD_AT_ONCE)


@cache
def _pace(calls_per_minute: int) -> RateLimit:
    """Return the rate limit that all readers of this process share; 0 is none."""
    return RateLimit(1, -(-60_000 // calls_per_minute) if calls_per_minute else 0)


def summariser_at_table(settings: Settings, campaign: Campaign, stack: AsyncExitStack) -> LlmSummariser | None:
    """Create the model that summarises a running session; None: lines are selected. A local model is the NPCs'.

    Raises:
        InvalidInput: See `open_talk_readers`.
    """
    reading = _reading(settings, stack, CHRONICLE) if settings.memory.summaries == "llm" else None
    return None if reading is None else LlmSummariser(_safe(reading, campaign), campaign.language)


def chronicle_log(store: Store, readers: TalkReaders = RULES) -> PostgresChronicleLog:
    """Create the log of one worker with these readers."""
    return PostgresChronicleLog(store.database, store.world, lease_ms=readers.lease_ms)


async def chronicler_of(
    store: Store, campaign: CampaignId, log: PostgresChronicleLog, readers: TalkReaders = RULES
) -> Chronicler:
    """Create the chronicler of a campaign.

    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is unreachable.
    """
    stored = await store.campaigns.get(campaign)
    extractor, judge = readers.readers(stored, store.embedder)
    if (curating := readers.curator(stored)) is not None:
        inner = None if curating.is_alone else extractor
        extractor = Curator(inner, curating, *_read_tools(store, stored), _nobody(stored), stored.schema)
    return Chronicler(
        campaign,
        stored.language,
        log,
        extractor,
        judge,
        Grafter(stored.language, {npc.id: npc.entity_id for npc in stored.npcs}, stored.scenes),
        extract_ms=readers.extract_ms,
        check_every=readers.check_every,
        give_way=readers.give_way,
        findings=stored.findings,
        terms=CoinedTerms(stored, log, asking=readers.asking),
    )


def _read_tools(store: Store, campaign: Campaign) -> tuple[Mapping[str, str], LookUp]:
    """Return the memory tools of the NPCs for the curator."""
    boxes = {npc.id: Toolbox(memory_of(store, campaign, npc.id), tier="DEEP") for npc in campaign.npcs}
    specs = {spec.wire_name: spec for box in boxes.values() for spec in box.declared}

    async def look_up(npc: NpcId, tool: str, query: str) -> Found:
        argument = next(iter((*specs[tool].required, *specs[tool].parameters)))
        # An NPC that has left the campaign knows nothing any more.
        return await boxes[npc].call(tool, {argument: query}) if npc in boxes else nothing("")

    return {name: spec.description for name, spec in specs.items()}, look_up


def memory_of(store: Store, campaign: Campaign, npc: NpcId) -> NpcMemory:
    """Return the memory of an NPC, for its tools."""
    return NpcMemory(
        campaign.id,
        npc,
        store.world_memory(campaign.id),
        store.past_talk,
        campaign.npc(npc).name,
        RelationWords.of(campaign),
        around=store.around,
        people=campaign.people,
        speaker_of=partial(store.past_talk.transcript(campaign.id).speaker_of, npc),
        safety=topics_of(campaign),
    )


async def timeline_writer(store: Store, campaign: CampaignId, readers: TalkReaders = RULES) -> TimelineWriter:
    """Create the writer of a campaign's timeline.

    Raises:
        NotFound: There is no such campaign.
        Unavailable: The database is unreachable.
    """
    stored, times = await store.campaigns.get(campaign), await store.times.times(campaign)
    log = PostgresChronicleLog(store.database, store.world)

    def day(session: SessionId, at_ms: int) -> str:
        return times.in_words(times.day_at(session, at_ms))

    dated = partial(days_in, times=times, language=stored.language)
    curating = readers.curator(stored)
    curator = None if curating is None else curating.compact
    rules = stored.schema.of_entity("event").compression
    if curator is None and rules is not None and rules.by == "curator":
        logger.warning("events of campaign {} are not summed up: `by: curator`, but memory.curator is off", campaign)
    return TimelineWriter(stored, log, store.episodes, day, dated, readers.summariser(stored), curator)


def chronicle_worker(
    store: Store, *, readers: TalkReaders = RULES, only: Collection[CampaignId] | None = None
) -> ChronicleWorker:
    """Create a chronicle worker.

    Args:
        only: The campaigns to read, which may change while it works; None: all.
    """
    log = chronicle_log(store, readers)
    kept: dict[CampaignId, tuple[object, Chronicler]] = {}

    async def campaigns() -> Sequence[CampaignId]:
        return await store.campaigns.ids() if only is None else tuple(only)

    async def chronicler(of: CampaignId) -> Chronicler:
        # It holds the campaign's names in memory, until the DM changes the campaign.
        loaded_at, (made_for, made) = await store.campaigns.loaded_at(of), kept.get(of, (None, None))
        if made is None or made_for != loaded_at:
            made = await chronicler_of(store, of, log, readers)
            kept[of] = loaded_at, made
        return made

    async def tell(of: CampaignId, session: SessionId) -> None:
        await (await timeline_writer(store, of, readers)).write(session)

    return ChronicleWorker(
        log,
        campaigns=campaigns,
        chronicler=chronicler,
        said=lambda: store.listener.follow(SAID, None, every_ms=LOOK_AGAIN_MS),
        now_ms=now_ms,
        gather_ms=readers.gather_ms,
        every=readers.every,
        tell=tell,
    )


# Name correction by sound, and the second look in the background, as configured.


LOCAL_NAMES = 16
LOCAL_LOOK_MS = 60_000
CLOUD_LOOK_MS = 10_000
"""The local model reads about 50 tokens a second and writes 20. A cloud model this slow has failed."""


def make_names(
    campaign: Campaign,
    settings: CorrectionSettings,
    store: Store | None,
    *,
    now_ms: Callable[[], int],
    wait_until_logged: Callable[[UtteranceId], Awaitable[bool]] | None = None,
) -> TableNames:
    """Create name correction for a campaign.

    Args:
        now_ms: Unix epoch.
        wait_until_logged: See `glyphoxa.names.learning.Learner`; None where nothing is learned.
    """
    graph = None
    if store is not None:
        changes = partial(store.listener.follow, NAMES, campaign.id)
        graph = NamesOfGraph(PostgresLearnedNames(store.database), changes)
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
    # Imported only if needed.
    from glyphoxa.names.first_design import Rule, first_corrector

    rule = Rule(**{each.name: getattr(settings, each.name) for each in fields(Rule)})
    return first_corrector(names, rule)


async def open_asking(
    settings: Settings, campaign: Campaign, stack: AsyncExitStack, *, llama: LlamaServer | None = None
) -> Asking | None:
    """Open the language model of the second look; None without one. `stack` closes it.

    Raises:
        InvalidInput: Its key or package is missing.
    """
    correction = settings.correction
    if correction.llm.name == NONE:
        return None
    asker = _safe(open_asker(settings, stack, kind=SECOND_LOOK, llama=llama), campaign)
    is_local = runs_here(SECOND_LOOK, correction.llm.name)
    deadline_ms = LOCAL_LOOK_MS if is_local else CLOUD_LOOK_MS
    asker = replace(asker, deadline_ms=deadline_ms, temperature=TEMPERATURE)
    asking = Asking(asker, low_confidence=correction.low_confidence)
    return replace(asking, most_names=LOCAL_NAMES, gives_way=True) if is_local else asking


# Deep recall: how NPCs of tier DEEP search their memory, as configured.


class DeepSearch(MemorySearch, Protocol):
    """Searches talk, facts and summaries."""

    async def search(self, campaign: CampaignId, npc: NpcId, query: TalkQuery) -> RecallResult[Recalled]:
        """Return what is found with its reasons, and what was left out."""


OpenDeepRecall = Callable[..., Awaitable[DeepSearch]]
"""Opens deep recall: takes settings, store, campaign and a stack that closes it; `llama`, the model that runs here,
None: it is loaded if the method needs it; `deadline_ms`; and what an NPC heard last (`recent`) and has in every prompt
(`world`). Nothing is downloaded. Raises InvalidInput, NotFound and Corrupt for what the method needs.
"""


def deep_recall() -> OpenDeepRecall:
    """Return the opener of the first plug-in that has one. Raises: InvalidInput: None has."""
    opening: list[OpenDeepRecall] = parts("recall")
    if not opening:
        raise InvalidInput("recall.method and recall.stages need a plug-in, and none is installed: reinstall glyphoxa")
    return opening[0]
