"""Deepgram's two recognisers, configured for an ear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipecat.frames.frames import STTUpdateSettingsFrame
from pipecat.services.deepgram.flux.stt import DeepgramFluxSTTService
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.services.stt_service import STTService
from pipecat.transcriptions.language import Language

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.building import STT
from glyphoxa_processors.cloud_stt import unknown_to_nova
from glyphoxa_processors.deepgram_flux import FluxStt
from glyphoxa_processors.deepgram_nova import NovaStt

if TYPE_CHECKING:
    from glyphoxa.providers.building import Connection


def make_nova(
    connection: Connection, *, keyterms: Sequence[str], sample_rate: int, language: str
) -> DeepgramSTTService:
    """Create a Nova recogniser.

    Raises:
        InvalidInput: It does not support the language.
    """
    if unknown := unknown_to_nova(language):
        raise InvalidInput(f"{STT} 'deepgram-nova' {unknown}")
    return NovaStt(
        api_key=connection.key,
        base_url=connection.base_url or "",
        encoding="linear16",
        channels=1,
        multichannel=False,
        sample_rate=sample_rate,
        mip_opt_out=True,
        audio_passthrough=False,  # no later processor needs the sound
        settings=DeepgramSTTService.Settings(
            model=connection.model,
            language=Language(language),
            detect_entities=False,
            diarize=False,
            dictation=False,
            # The ear finds the pauses. Its own detection would cut segments twice.
            endpointing=False,
            interim_results=True,
            keyterm=list(keyterms),
            keywords=None,
            numerals=False,
            profanity_filter=False,
            punctuate=True,
            redact=None,
            replace=None,
            search=None,
            smart_format=False,
            utterance_end_ms=None,
            version=None,
        ),
    )


def make_flux(
    connection: Connection, *, keyterms: Sequence[str], sample_rate: int, language: str
) -> DeepgramFluxSTTService:
    """Create a Flux recogniser. `language` is the model's own tag."""
    return FluxStt(
        api_key=connection.key,
        url=_flux_url(connection.base_url or "wss://api.deepgram.com"),
        sample_rate=sample_rate,
        mip_opt_out=True,
        audio_passthrough=False,  # no later processor needs the sound
        # The room decides about interruptions.
        should_interrupt=False,
        enable_eager_end_of_turn=False,
        settings=DeepgramFluxSTTService.Settings(
            model=connection.model,
            language=None,
            eager_eot_threshold=None,
            eot_threshold=1.0,
            # Only if a pause is never reported.
            eot_timeout_ms=30_000,
            keyterm=list(keyterms),
            min_confidence=None,
            numerals=None,
            profanity_filter=None,
            redact=None,
            language_hints=None,
        ),
    )


def keyterms_frame(keyterms: Sequence[str], *, stt: STTService) -> STTUpdateSettingsFrame:
    """Return the frame that sends new names to a Deepgram recogniser."""
    match stt:
        case DeepgramSTTService():
            return STTUpdateSettingsFrame(delta=DeepgramSTTService.Settings(keyterm=list(keyterms)))
        case DeepgramFluxSTTService():
            return STTUpdateSettingsFrame(delta=DeepgramFluxSTTService.Settings(keyterm=list(keyterms)))
        case _:
            raise TypeError(f"{type(stt).__name__} does not support key terms")


def _flux_url(base_url: str) -> str:
    address = base_url.rstrip("/").replace("https://", "wss://").replace("http://", "ws://")
    return address if address.endswith("/listen") else f"{address}/v2/listen"
