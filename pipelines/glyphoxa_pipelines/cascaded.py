"""A mouth as a cascade: memory, then a language model, then a voice; and a mouth with fallbacks.

Your own pipeline takes the same `MouthSpec` as the entry point: see `docs/building.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loguru import logger
from pipecat.frames.frames import InterruptionFrame
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.services.tts_service import TTSService

from glyphoxa.app.background import NOTES, slot_of
from glyphoxa.app.engines import MouthSpec
from glyphoxa.chat.client import ChatClient
from glyphoxa.chat.dialect import Dialects
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Asked, Character, Fault
from glyphoxa.judgement.reply import ReplyCheck, invented_rolls
from glyphoxa.judgement.safety import topics_of
from glyphoxa.judgement.small_model import notes_examples
from glyphoxa.language.sentences import SentenceSplitter
from glyphoxa.language.spoken_form import SpokenForm
from glyphoxa.npc.mouth import Finished, Mouth, MouthEvent, RescuedMouth
from glyphoxa.prompt.prompt import Prompt, PromptShape
from glyphoxa.prompt.wording import StandIns, wording
from glyphoxa.providers.registry import LLM, TTS, build, runs_here
from glyphoxa_pipelines.host import RunningGraph, host_of
from glyphoxa_processors.frames import BeginFrame, FillerFrame, PrimeFrame
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.llm import STALLED_AFTER_MS, SpokenLLM, StreamDeadlines
from glyphoxa_processors.speaker import PATIENCE_MS, Speaker
from glyphoxa_processors.spoken_text import Decide, ReplyRules, SpokenText
from glyphoxa_processors.streamed_voice import HibariTTS
from glyphoxa_processors.tools import ToolRounds

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer

Graph = Callable[[MouthSpec, Speaker], Sequence[FrameProcessor]]


def stages(
    spec: MouthSpec,
    speaker: Speaker,
    *,
    llm: LLMService[Any] | None = None,
    tts: TTSService | None = None,
    rules: ReplyRules | None = None,
) -> list[FrameProcessor]:
    """Return the stages of a cascade: memory, language model, tool rounds, clauses, voice, speaker.

    Args:
        llm, tts, rules: None: those of the settings. The services may come from pipecat, this project or elsewhere.
    """
    settings = spec.settings
    profile, budgets = settings.profile, settings.budgets
    rules, model = rules or CharacterRules(spec), llm or llm_of(spec)
    is_smaller = spec.gathered_for is not None and budgets.history_tokens < spec.gathered_for.history_tokens
    memory = HotContextInjector(
        spec.context,
        speaker,
        tools=spec.tools if profile.takes_tools else None,
        shrug=rules.shrug if profile.needs_repairs else None,
        shape=PromptShape(settings.facts_at, budgets.window_tokens, budgets if is_smaller else None),
    )
    memory.reads_ahead = isinstance(model, SpokenLLM) and model.reads_ahead
    memory.check_notes = model.check_notes if isinstance(model, SpokenLLM) else None
    return [memory, model, ToolRounds(), SpokenText(speaker, rules), tts or tts_of(spec), speaker]


class CharacterRules:
    """The `ReplyRules` of an NPC.

    Args:
        is_session: The words come from a speech-to-speech session and not from the settings' language model.
    """

    def __init__(self, spec: MouthSpec, *, is_session: bool = False) -> None:
        npc, campaign, tools = spec.npc, spec.campaign, spec.tools
        self.npc_name = npc.name
        self._repairs = spec.settings.profile.needs_repairs and not is_session
        # A model that runs here marks the end of a reply: see `spoken_extras`.
        self._marks_end = _llama(spec) is not None and not is_session
        self._tools = tools
        self._rejects = topics_of(campaign).rejects
        guards = spec.settings.context.guard_secrets
        self._character = Character(npc.name, npc.aliases, spec.others, campaign.language, guards_secrets=guards)
        self._stand_ins = StandIns(campaign.language)
        self.spoken_form = SpokenForm(campaign.language, campaign.units)

    def new_splitter(self) -> SentenceSplitter:
        return SentenceSplitter(marks_end=self._marks_end)

    def new_check(self, asked: Asked) -> Decide:
        tools = self._tools
        n_before = tools.n_answered if tools is not None else 0
        made_up = invented_rolls(lambda: tools is not None and tools.n_answered > n_before)
        more_rules = (self._rejects, made_up)
        return ReplyCheck(self._character, asked, repairs=self._repairs, more_rules=more_rules).decide

    def stand_in(self, question: str, fault: Fault | None, told: Sequence[str]) -> str:
        return self._stand_ins.line(question, fault, told)

    def shrug(self, lines: Sequence[str]) -> str:
        return self._stand_ins.shrug(lines)


def llm_of(spec: MouthSpec, *, stalled_after_ms: int = STALLED_AFTER_MS) -> LLMService[Any]:
    """Return the language model of the settings.

    Args:
        stalled_after_ms: Silence after which a remote model has failed.

    Raises:
        InvalidInput: The key or the provider's package is missing.
    """
    llama, llm = _llama(spec), spec.settings.providers.llm
    if llama is None:
        remote: LLMService[Any] = build(
            llm,
            section=LLM,
            temperature=llm.temperature,
            max_tokens=llm.max_tokens,
            stalled_after_ms=stalled_after_ms,
            dialects=host_of(spec.host).shared(Dialects, Dialects),
        )
        return remote
    from glyphoxa.adapters.local.llama import (
        SPOKEN_MAX_TOKENS,
        SPOKEN_TEMPERATURE,
        NotesToken,
        PromptFile,
        spoken_extras,
    )

    model = SpokenLLM(
        ChatClient(llama.connection, extras=spoken_extras(spec.slot), as_words=llama.control_tokens.in_messages),
        max_tokens=min(llm.max_tokens, SPOKEN_MAX_TOKENS),
        temperature=SPOKEN_TEMPERATURE if llm.temperature is None else llm.temperature,
        cache=PromptFile(llama, spec.slot, spec.campaign.id, spec.npc.id),
        # A longer reply deadline means a slow machine.
        deadlines=StreamDeadlines(
            first_token_ms=max(StreamDeadlines().first_token_ms, spec.settings.turns.reply_deadline_ms)
        ),
    )
    if spec.settings.profile.needs_repairs:
        slot = slot_of(NOTES, spec.settings, slots=llama.slots)
        model.notes = NotesToken(llama, slot, notes_examples(spec.campaign.language))
    return model


def _llama(spec: MouthSpec) -> LlamaServer | None:
    """Return the local language model, if these settings use it. A fallback may be the one that does."""
    return spec.local.llama if runs_here(LLM, spec.settings.providers.llm.name) else None


def tts_of(spec: MouthSpec) -> TTSService:
    """Return the voice of the settings.

    Raises:
        InvalidInput: The key or the provider's package is missing.
    """
    voice, tts = spec.npc.voice, spec.settings.providers.tts
    hibari = spec.local.hibari if runs_here(TTS, tts.name) else None
    if hibari is None:
        remote: TTSService = build(tts, section=TTS, voice=voice.provider_voice or tts.voice)
        return remote
    from glyphoxa.adapters.local.hibari_voice import HibariVoice

    return HibariTTS(HibariVoice(hibari, voice.preset).synthesise, voice=voice.preset)


class GraphMouth:
    """A `glyphoxa.npc.mouth.Mouth` made of a graph. The speaker tracks the turns; the rest produces words and sound.

    Args:
        graph: Returns the processors in frame order, such as `stages`. The first takes a `BeginFrame`; the last is the
            speaker.
        excuses: Lines for a failed or missing answer; rendered in advance, like fillers. None: those of the language.
        line: Prefix of the graph's name, before the NPC's id, because an NPC may have two graphs.
        patience_ms: See `Speaker`.
    """

    renders_fillers = True
    says_given_words = True

    def __init__(
        self,
        spec: MouthSpec,
        graph: Graph,
        *,
        excuses: Sequence[str] | None = None,
        line: str = "mouth",
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        self._host = host_of(spec.host)
        self._listener = spec.listener
        self._name = f"{line}-{spec.npc.id}"
        self._npc = spec.npc
        self._line: RunningGraph | None = None
        self._excuses = wording(spec.campaign.language).too_late if excuses is None else excuses
        self._speaker = Speaker(self._npc.id, spec.sink, self._report, excuses=self._excuses, patience_ms=patience_ms)
        self.release = self._speaker.release
        self.hold = self._speaker.hold
        self.resume = self._speaker.resume
        self.fill = self._speaker.fill
        self.processors = graph(spec, self._speaker)

    async def start(self) -> None:
        def report(error: str) -> None:
            logger.warning("a service of a mouth failed: npc={} error={}", self._npc.id, error)

        self._line = await self._host.add(self._name, self.processors, on_error=report)
        for filler in (*self._npc.fillers, *self._excuses) if self.renders_fillers else ():
            self._line.send(FillerFrame(filler))

    def prime(self, prompt: Prompt) -> None:
        if self._line is not None:
            self._line.send(PrimeFrame(prompt))

    async def wait_until_primed(self) -> None:
        await self.wait_until_drained()
        for processor in self.processors:
            if isinstance(processor, SpokenLLM):
                await processor.wait_until_primed()

    def relax(self) -> None:
        for processor in self.processors:
            if isinstance(processor, SpokenLLM):
                processor.stop_priming()

    def begin(self, turn: TurnId, prompt: Prompt) -> None:
        if self._speaker.turn is not None:
            self.cancel(self._speaker.turn)
        self._speaker.begin(turn)
        if self._line is None:
            self._speaker.fail(turn, "the pipeline is not running")
        else:
            self._line.send(BeginFrame(turn, prompt))

    def cancel(self, turn: TurnId) -> None:
        if turn == self._speaker.turn:
            self._speaker.cancel(turn)
            self._interrupt()

    def give_up(self, turn: TurnId) -> None:
        self._speaker.fail(turn, "timed out: no answer in time")
        if turn == self._speaker.turn:
            self._interrupt()

    async def wait_until_drained(self) -> None:
        """Wait until the graph is idle. Replies that are held or playing do not count."""
        if self._line is not None:
            await self._line.wait_until_drained()

    async def close(self) -> None:
        if self._speaker.turn is not None:
            self._speaker.cancel(self._speaker.turn)
        self._line = None
        await self._host.remove(self._name)

    def _report(self, event: MouthEvent) -> None:
        """Forward an event, unless its turn is over."""
        if isinstance(event, Finished):
            if event.error:
                self._interrupt()  # stop hanging work before the next turn
            self._listener(event)
        elif event.turn == self._speaker.turn:
            self._listener(event)

    def _interrupt(self) -> None:
        if self._line is not None:
            self._line.send(InterruptionFrame())


# A mouth for each provider of the settings, in turn.


async def open_cascaded(spec: MouthSpec) -> Mouth:
    """Build a cascaded mouth with the configured fallbacks. Entry point `cascaded`."""
    return in_turn(spec, spec.settings.in_turn, line="mouth")


def in_turn(spec: MouthSpec, chain: Sequence[Settings], *, line: str, number: int = 1) -> Mouth:
    """Build a cascaded mouth with its fallbacks.

    Args:
        chain: `Settings.in_turn`, from this mouth on.
        number: Position of this mouth in the chain, from 1.
    """
    settings, *others = chain
    name = line if number == 1 else f"{line}-{number}"
    spec = replace(spec, settings=settings, gathered_for=spec.gathered_for or settings.budgets)
    if not others:
        return GraphMouth(spec, stages, line=name)
    mouth = RescuedMouth(spec.npc.name, spec.listener, spec.now_ms, returns=True)
    first, behind = replace(spec, listener=mouth.from_first), replace(spec, listener=mouth.from_second)
    if settings.providers.tts != others[0].providers.tts:
        behind = without_provider_voice(behind)
    stalled_after_ms = settings.providers.llm.fallback_after_ms
    graph = partial(stages, llm=llm_of(first, stalled_after_ms=stalled_after_ms))
    mouth.join(
        GraphMouth(first, graph, excuses=(), line=name, patience_ms=stalled_after_ms),  # the last mouth says excuses
        in_turn(behind, others, line=line, number=number + 1),
    )
    return mouth


def without_provider_voice(spec: MouthSpec) -> MouthSpec:
    """Return the specification of a fallback: the campaign's provider voice belongs to the first provider."""
    return replace(spec, npc=replace(spec.npc, voice=replace(spec.npc.voice, provider_voice=None)))
