"""Builds ears and mouths with the configured services.

The functions are entry points of the group `glyphoxa.pipelines`. Your own pipeline takes the same `MouthSpec`: see
`docs/building.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from glyphoxa.app.engines import EarSpec, MouthSpec
from glyphoxa.config.settings import Settings
from glyphoxa.npc.mouth import Mouth, RescuedMouth
from glyphoxa.npc.table import Ear
from glyphoxa.providers.building import STT, build
from glyphoxa_pipelines.cascaded import GraphMouth, llm_of, stages
from glyphoxa_pipelines.ear import PipelineEar
from glyphoxa_pipelines.host import host_of
from glyphoxa_processors.recogniser import Recogniser
from glyphoxa_processors.whisper_stt import WhisperSTT


async def open_ear(spec: EarSpec) -> Ear:
    """Build an ear. Entry point `ear`."""
    whisper = spec.local.whisper
    if whisper is None:
        keyterms = spec.hints.keyterms()
        stt = build(spec.settings.providers.stt, section=STT, keyterms=keyterms, language=spec.language)
        return PipelineEar(spec, stt, keyterms=keyterms)
    # All ears share one recogniser, because two at once on two cores are both late.
    recogniser = host_of(spec.host).shared(Recogniser, lambda: Recogniser(whisper.transcribe))
    stt = WhisperSTT(spec.player.id, recogniser, glossary=spec.hints.glossary, clock=spec.now_ms)
    return PipelineEar(spec, stt)


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
