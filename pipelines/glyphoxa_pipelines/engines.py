"""Builds ears and mouths from specifications: the configured services, and their graphs.

The functions are the entry points of the group `glyphoxa.pipelines`. Your own pipeline takes the same `MouthSpec`: see
`docs/building.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loguru import logger
from pipecat.services.llm_service import LLMService
from pipecat.services.tts_service import TTSService

from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.chat.client import ChatClient
from glyphoxa.chat.dialect import Dialects
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.prompt_budgets import Budgets
from glyphoxa.domain.turn import Asked, Character
from glyphoxa.judgement.guard import invented_rolls
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.sentences import SentenceSplitter
from glyphoxa.language.spoken_form import SpokenForm
from glyphoxa.npc.mouth import Mouth, RescuedMouth
from glyphoxa.npc.table import Ear
from glyphoxa.prompt.prompt import PromptLimits
from glyphoxa.prompt.wording import StandIns, wording
from glyphoxa.providers.building import LLM, S2S, STT, TTS, build, names, runs_here
from glyphoxa_pipelines import cascaded, ear, s2s
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_pipelines.parts import EarParts, MouthParts, host_of
from glyphoxa_pipelines.s2s import S2sMouth, S2sParts
from glyphoxa_processors.hibari_tts import HibariTTS
from glyphoxa_processors.llm import STALLED_AFTER_MS, SpokenLLM, StreamDeadlines
from glyphoxa_processors.recogniser import Recogniser
from glyphoxa_processors.spoken_text import Decide
from glyphoxa_processors.whisper_stt import WhisperSTT

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer


def open_host() -> PipelineHost:
    """Create the host. Entry point `host`."""
    return PipelineHost()


async def open_ear(order: EarSpec) -> Ear:
    """Build an ear. Entry point `ear`."""
    return await ear.build(ear_parts(order))


async def open_cascaded(order: MouthSpec) -> Mouth:
    """Build a cascaded mouth with the configured fallbacks. Entry point `cascaded`."""
    return await _in_turn(order, order.settings.in_turn)


async def open_s2s(order: MouthSpec) -> Mouth:
    """Build a speech-to-speech mouth, with a cascaded fallback if configured. Entry point `s2s`."""
    if not order.settings.providers.s2s.rescue:
        return _s2s_mouth(order)
    mouth = RescuedMouth(order.npc.name, order.listener, order.now_ms)
    first = _s2s_mouth(replace(order, listener=mouth.from_first))
    try:
        behind = replace(_without_provider_voice(order), listener=mouth.from_second)
        second = await _in_turn(behind, order.settings.in_turn, line="rescue")
    except InvalidInput as error:
        logger.warning("{} has no fallback engine: {}", order.npc.name, error)
        return _s2s_mouth(order)
    mouth.join(first, second)
    return mouth


async def _in_turn(
    order: MouthSpec,
    chain: Sequence[Settings],
    *,
    line: str = "mouth",
    number: int = 1,
    smaller: Budgets | None = None,
) -> Mouth:
    """Build a mouth with its fallbacks.

    Args:
        chain: `Settings.in_turn`, from this mouth on.
        number: Position of this mouth in the chain, from 1.
        smaller: See `PromptLimits`.
    """
    settings, *others = chain
    name = line if number == 1 else f"{line}-{number}"
    if not others:
        return await cascaded.build(mouth_parts(replace(order, settings=settings), smaller=smaller), line=name)
    mouth = RescuedMouth(order.npc.name, order.listener, order.now_ms, returns=True)
    first = replace(order, listener=mouth.from_first, settings=settings)
    stalled_after_ms = settings.providers.llm.fallback_after_ms
    behind = replace(order, listener=mouth.from_second)
    if settings.providers.tts != others[0].providers.tts:
        behind = _without_provider_voice(behind)
    # Only the last mouth says excuses.
    parts = replace(mouth_parts(first, stalled_after_ms=stalled_after_ms, smaller=smaller), excuses=())
    if others[0].budgets.history_tokens < settings.budgets.history_tokens:
        smaller = others[0].budgets
    mouth.join(
        await cascaded.build(parts, line=name, patience_ms=stalled_after_ms),
        await _in_turn(behind, others, line=line, number=number + 1, smaller=smaller),
    )
    return mouth


def _without_provider_voice(order: MouthSpec) -> MouthSpec:
    """Return the order of a fallback: the campaign's provider voice belongs to the first provider."""
    return replace(order, npc=replace(order.npc, voice=replace(order.npc.voice, provider_voice=None)))


def ear_parts(order: EarSpec) -> EarParts:
    """Create the parts of an ear from the settings."""
    whisper = order.local.whisper
    if whisper is None:
        keyterms = order.hints.keyterms()
        stt = build(order.settings.providers.stt, section=STT, keyterms=keyterms, language=order.language)
        return EarParts(order, stt, keyterms)
    # All ears share one recogniser, because two at once on two cores are both late.
    recogniser = host_of(order).shared(Recogniser, lambda: Recogniser(whisper.transcribe))
    glossary = order.hints.glossary
    return EarParts(order, WhisperSTT(order.player.id, recogniser, glossary=glossary, clock=order.now_ms))


def mouth_parts(order: MouthSpec, *, stalled_after_ms: int | None = None, smaller: Budgets | None = None) -> MouthParts:
    """Create the parts of a cascaded mouth from the settings.

    Args:
        stalled_after_ms: Silence after which a remote model has failed; None: when the turn has timed out.
        smaller: See `PromptLimits`.
    """
    language, profile = order.campaign.language, order.settings.profile
    stand_ins = StandIns(language)
    return MouthParts(
        spec=order if profile.takes_tools else replace(order, tools=None),
        llm=_llm(order, stalled_after_ms),
        tts=_tts(order),
        # Its grammar comes from `spoken_extras`.
        new_splitter=partial(SentenceSplitter, marks_end=_llama(order) is not None),
        new_check=partial(_check, order, repairs=profile.needs_repairs),
        limits=PromptLimits(order.settings.budgets.window_tokens, smaller),
        stand_in=stand_ins.line,
        spoken_form=SpokenForm(language, order.campaign.units),
        shrug=stand_ins.shrug if profile.needs_repairs else None,
        excuses=wording(language).too_late,
    )


def _s2s_mouth(order: MouthSpec) -> S2sMouth:
    """Create a speech-to-speech mouth from the settings.

    Raises:
        InvalidInput: No service is configured, or its key is missing.
    """
    provider = order.settings.providers.s2s
    if provider.name == "none":
        valid = " or ".join(names("s2s"))
        raise InvalidInput(f"NPC {order.npc.id!r} has engine s2s, but providers.s2s.name is none; set it to {valid}")
    endpoint = build(provider, section=S2S, voice=order.npc.voice.provider_voice)
    return S2sMouth(S2sParts(order, endpoint, SentenceSplitter, partial(_check, order, repairs=False)), s2s.graph)


def _check(order: MouthSpec, asked: Asked, *, repairs: bool) -> Decide:
    npc, tools = order.npc, order.tools
    n_before = tools.n_answered if tools is not None else 0
    made_up = invented_rolls(lambda: tools is not None and tools.n_answered > n_before)
    guards = order.settings.context.guard_secrets
    character = Character(npc.name, npc.aliases, order.others, order.campaign.language, guards_secrets=guards)
    return ReplyCheck(character, asked, repairs=repairs, more_rules=(topics_of(order.campaign).rejects, made_up)).decide


def _llama(order: MouthSpec) -> LlamaServer | None:
    """Return the local language model, if these settings use it. A fallback may be the one that does."""
    return order.local.llama if runs_here(LLM, order.settings.providers.llm.name) else None


def _llm(order: MouthSpec, stalled_after_ms: int | None) -> LLMService[Any]:
    llama, llm = _llama(order), order.settings.providers.llm
    if llama is None:
        remote: LLMService[Any] = build(
            llm,
            section=LLM,
            temperature=llm.temperature,
            max_tokens=llm.max_tokens,
            stalled_after_ms=stalled_after_ms or STALLED_AFTER_MS,
            dialects=host_of(order).shared(Dialects, Dialects),
        )
        return remote
    from glyphoxa.adapters.local.llama import SPOKEN_MAX_TOKENS, SPOKEN_TEMPERATURE, PromptFile, spoken_extras

    return SpokenLLM(
        ChatClient(llama.connection, extras=spoken_extras(order.slot), as_words=llama.as_read),
        max_tokens=min(llm.max_tokens, SPOKEN_MAX_TOKENS),
        temperature=SPOKEN_TEMPERATURE if llm.temperature is None else llm.temperature,
        cache=PromptFile(llama, order.slot, order.campaign.id, order.npc.id),
        # A longer reply deadline means a slow machine.
        deadlines=StreamDeadlines(
            first_token_ms=max(StreamDeadlines().first_token_ms, order.settings.turns.reply_deadline_ms)
        ),
    )


def _tts(order: MouthSpec) -> TTSService:
    voice, tts = order.npc.voice, order.settings.providers.tts
    hibari = order.local.hibari if runs_here(TTS, tts.name) else None
    if hibari is None:
        remote: TTSService = build(tts, section=TTS, voice=voice.provider_voice or tts.voice)
        return remote
    from glyphoxa.adapters.local.hibari_voice import HibariVoice

    return HibariTTS(HibariVoice(hibari, voice.preset).synthesise, voice=voice.preset)
