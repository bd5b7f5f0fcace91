"""A speech-to-speech mouth: memory, then a speech-to-speech session.

Such a model takes no list of names. Its input is text from the players' ears, whose recognisers do take names; see
`glyphoxa.names.keyterms`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from loguru import logger
from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa.app.engines import MouthSpec
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.npc.mouth import Mouth, RescuedMouth
from glyphoxa.providers.registry import S2S, build, names
from glyphoxa_pipelines.cascaded import CharacterRules, GraphMouth, in_turn, without_provider_voice
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.s2s.providers import Endpoint
from glyphoxa_processors.s2s.voice import STALLED_AFTER_MS, SpeechToSpeechVoice
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.spoken_text import ReplyRules


async def open_s2s(spec: MouthSpec) -> Mouth:
    """Build a speech-to-speech mouth, with a cascaded fallback if configured. Entry point `s2s`."""
    if not spec.settings.providers.s2s.rescue:
        return _s2s_mouth(spec)
    mouth = RescuedMouth(spec.npc.name, spec.listener, spec.now_ms)
    first = _s2s_mouth(replace(spec, listener=mouth.from_first))
    try:
        behind = replace(without_provider_voice(spec), listener=mouth.from_second)
        second = in_turn(behind, spec.settings.in_turn, line="rescue")
    except InvalidInput as error:
        logger.warning("{} has no fallback engine: {}", spec.npc.name, error)
        return _s2s_mouth(spec)
    mouth.join(first, second)
    return mouth


def _s2s_mouth(spec: MouthSpec) -> Mouth:
    """Build a speech-to-speech mouth.

    Raises:
        InvalidInput: No service is configured, or its key is missing.
    """
    provider = spec.settings.providers.s2s
    if provider.name == "none":
        valid = " or ".join(names("s2s"))
        raise InvalidInput(f"NPC {spec.npc.id!r} has engine s2s, but providers.s2s.name is none; set it to {valid}")
    endpoint = build(provider, section=S2S, voice=spec.npc.voice.provider_voice)
    rules = CharacterRules(spec, is_session=True)
    return S2sMouth(spec, partial(stages, endpoint=endpoint, rules=rules), excuses=())


def stages(
    spec: MouthSpec,
    speaker: Speaker,
    *,
    endpoint: Endpoint,
    rules: ReplyRules,
    stalled_after_ms: int = STALLED_AFTER_MS,
) -> list[FrameProcessor]:
    voice = SpeechToSpeechVoice(endpoint, speaker, tools=spec.tools, rules=rules, stalled_after_ms=stalled_after_ms)
    return [HotContextInjector(spec.context, speaker), voice, speaker]


class S2sMouth(GraphMouth):
    """A mouth whose session has the only voice and chooses its own words, so it supports no fillers or given words."""

    renders_fillers = False
    says_given_words = False
