"""Deepgram's two recognisers, made to answer each local pause and to take new key terms on the open connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deepgram.listen.v1.types import (
    ListenV1Configure,
    ListenV1ConfigureFailure,
    ListenV1ConfigureSuccess,
    ListenV1Results,
)
from loguru import logger
from pipecat.frames.frames import (
    Frame,
    STTUpdateSettingsFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.deepgram.flux.stt import DeepgramFluxSTTService
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.services.stt_service import STTService
from pipecat.transcriptions.language import Language
from pipecat.utils.time import time_now_iso8601

from glyphoxa_processors.deepgram_words import tell_words

if TYPE_CHECKING:
    from glyphoxa_processors.cloud import Provider

_ACKNOWLEDGED_WITHIN_S = 2.0


class NovaStt(DeepgramSTTService):
    """Nova with key terms that change while it listens.

    pipecat reconnects for any change of settings. Nova-3 takes new key terms on the open connection (since October
    2026, not on regional endpoints), so a change of nothing else is sent there, one at a time and only the
    newest; a refusal or no answer falls back to the reconnect.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._acknowledged: asyncio.Future[bool] | None = None
        self._configuring: asyncio.Task[None] | None = None
        self._sent_keyterms: Sequence[str] = self._keyterms()

    async def cleanup(self) -> None:
        if self._configuring is not None:
            await self.cancel_task(self._configuring)
            self._configuring = None
        await super().cleanup()

    async def push_frame(self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM) -> None:
        tell_words(frame)
        await super().push_frame(frame, direction)

    async def _update_settings(self, delta: Any) -> dict[str, Any]:
        only_keyterms = set(delta.given_fields()) == {"keyterm"}
        is_nova_3 = str(self._settings.model).startswith("nova-3")  # type: ignore[attr-defined]
        if not (only_keyterms and is_nova_3 and self._open_socket()):
            return await super()._update_settings(delta)
        # Not super(): that one reconnects.
        changed = await STTService._update_settings(self, delta)
        if changed and self._configuring is None:
            self._configuring = self.create_task(self._configure())
        return changed

    async def _configure(self) -> None:
        try:
            while self._keyterms() != self._sent_keyterms:
                keyterms = self._sent_keyterms = self._keyterms()
                self._acknowledged = asyncio.get_running_loop().create_future()
                await self._open_socket().send_configure(ListenV1Configure(keyterms=list(keyterms)))
                async with asyncio.timeout(_ACKNOWLEDGED_WITHIN_S):
                    if not await self._acknowledged:
                        break
            else:
                return
        except Exception as error:  # a socket that dies here, or an endpoint that does not know the message
            logger.warning("key terms were not taken on the open connection: {}", type(error).__name__)
        finally:
            self._configuring = None
        await self._request_reconnect()

    async def _on_message(self, message: Any) -> None:
        await super()._on_message(message)
        match message:
            case ListenV1ConfigureSuccess() | ListenV1ConfigureFailure():
                if self._acknowledged is not None and not self._acknowledged.done():
                    self._acknowledged.set_result(isinstance(message, ListenV1ConfigureSuccess))
                if isinstance(message, ListenV1ConfigureFailure):
                    logger.warning("key terms refused: {} {}", message.code, message.description)
            case ListenV1Results(from_finalize=True) if not message.channel.alternatives[0].transcript:
                # Everything was confirmed before the pause. pipecat says nothing then, and the ear would wait.
                await self.push_frame(
                    TranscriptionFrame("", self._user_id, time_now_iso8601(), result=message, finalized=True)
                )
            case _:
                pass

    def _open_socket(self) -> Any:
        """The SDK's connection, or None while there is none. pipecat types it as None for ever."""
        return self._connection

    def _keyterms(self) -> list[str]:
        keyterms: object = self._settings.keyterm  # type: ignore[attr-defined]
        return list(keyterms) if isinstance(keyterms, list | tuple) else []


class FluxStt(DeepgramFluxSTTService):
    """Flux whose turns end where the ear hears a pause, and nowhere else (Deepgram: "bring your own turn detection").

    Its own detection is switched off by `eot_threshold=1.0`; left on, it ends a turn up to seconds after the ear
    has, or in the middle of one.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pause_unanswered = False

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case VADUserStartedSpeakingFrame():
                self._pause_unanswered = False
            case VADUserStoppedSpeakingFrame():
                self._pause_unanswered = True
                await self._end_turn_at_pause()
            case _:
                pass

    async def push_frame(self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM) -> None:
        tell_words(frame)
        await super().push_frame(frame, direction)

    async def _handle_turn_info(self, data: dict[str, Any]) -> None:
        await super()._handle_turn_info(data)
        # The words of a short "Aye." may reach us after the pause behind them.
        await self._end_turn_at_pause()

    async def _end_turn_at_pause(self) -> None:
        if self._pause_unanswered and self._user_is_speaking and self._transport_is_active():
            self._pause_unanswered = False
            await self._transport_send_json({"type": "ForceEndTurn"})


def make_nova(
    provider: Provider, *, key: str, keyterms: Sequence[str], sample_rate: int, language: str
) -> DeepgramSTTService:
    return NovaStt(
        api_key=key,
        base_url=provider.base_url or "",
        encoding="linear16",
        channels=1,
        multichannel=False,
        sample_rate=sample_rate,
        mip_opt_out=True,
        settings=DeepgramSTTService.Settings(
            model=provider.model or "nova-3-general",
            language=Language(language),
            detect_entities=False,
            diarize=False,
            dictation=False,
            # The ear finds the pauses; with its own it would cut a segment twice.
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


def make_flux(provider: Provider, *, key: str, keyterms: Sequence[str], sample_rate: int) -> DeepgramFluxSTTService:
    return FluxStt(
        api_key=key,
        url=_flux_url(provider.base_url or "wss://api.deepgram.com"),
        sample_rate=sample_rate,
        mip_opt_out=True,
        # Barge-in is the room's to decide.
        should_interrupt=False,
        enable_eager_end_of_turn=False,
        settings=DeepgramFluxSTTService.Settings(
            model=provider.model or "flux-general-en",
            language=None,
            eager_eot_threshold=None,
            eot_threshold=1.0,
            # Only in case that a pause is never reported.
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
    """Tells a Deepgram recogniser which names to expect from now on."""
    match stt:
        case DeepgramSTTService():
            return STTUpdateSettingsFrame(delta=DeepgramSTTService.Settings(keyterm=list(keyterms)))
        case DeepgramFluxSTTService():
            return STTUpdateSettingsFrame(delta=DeepgramFluxSTTService.Settings(keyterm=list(keyterms)))
        case _:
            raise TypeError(f"{type(stt).__name__} takes no key terms")


def _flux_url(base_url: str) -> str:
    address = base_url.rstrip("/").replace("https://", "wss://").replace("http://", "ws://")
    return address if address.endswith("/listen") else f"{address}/v2/listen"
