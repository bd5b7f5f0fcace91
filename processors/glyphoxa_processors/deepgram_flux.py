"""Deepgram Flux for an ear, with turns that end at the ear's pauses."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from pipecat.frames.frames import Frame, VADUserStartedSpeakingFrame, VADUserStoppedSpeakingFrame
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.deepgram.flux.stt import DeepgramFluxSTTService

from glyphoxa_processors.deepgram_nova import (
    DeepgramEar,
    DeepgramOutbox,
    bytes_per_s,
    is_bad_request,
)


class FluxStt(DeepgramEar, DeepgramFluxSTTService):
    """Flux with the ear's turn detection (Deepgram: "bring your own turn detection").

    `eot_threshold=1.0` disables its own detection, which would end a turn seconds late or in the middle.

    After a lost connection, the next one gets the current names and first hears the sound without a transcript.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._was_refused = False
        # pipecat's own waiting, used after a change of names.
        self._ws_send_timeout = DeepgramOutbox.within_s

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case VADUserStartedSpeakingFrame():
                self._segments.began()
                self._pause_unanswered = False
            case VADUserStoppedSpeakingFrame():
                self._segments.paused()
                self._pause_unanswered = True
                self._end_turn_at_pause()
            case _:
                pass

    async def cleanup(self) -> None:
        sending = self._outbox.close()
        if sending is not None:
            await self.cancel_task(sending)
        await super().cleanup()

    async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame | None, None]:
        self._hear(audio)
        yield None

    async def _send_silence(self, duration_secs: float = 0.5) -> None:
        # Called by pipecat without sound. The service counts silence as sound.
        self._hear(bytes(2 * int(duration_secs * bytes_per_s(self) / 2)))

    def _hear(self, audio: bytes) -> None:
        self._catch_up()
        self._note_sound(audio)
        if self._transport_is_active():
            self._put_sound(self._websocket, audio)

    def _catch_up(self) -> None:
        if self._transport_is_active() and self._websocket is not self._listener:
            self._repeat_missed(self._websocket)

    async def _send(self, _socket: Any, message: bytes | dict[str, Any]) -> None:
        if isinstance(message, bytes):
            async for error in super().run_stt(message):
                if error is not None:
                    await self.push_frame(error, FrameDirection.UPSTREAM)
        else:
            await self._transport_send_json(message)

    def _is_open(self, socket: Any) -> bool:
        return socket is self._websocket and self._transport_is_active()

    def _cut(self, socket: Any) -> None:
        # pipecat notices while waiting for messages, and reconnects.
        socket.transport.abort()

    async def _handle_connection_established(self, data: dict[str, Any]) -> None:
        await super()._handle_connection_established(data)
        # Nobody may be speaking any more, so no sound may follow.
        self._catch_up()

    async def push_error(self, error_msg: str, exception: Exception | None = None, *args: Any, **kwargs: Any) -> None:
        if is_bad_request(exception) and self._limit.refused(self._keyterms()):
            self._was_refused = True
            return
        await super().push_error(error_msg, exception, *args, **kwargs)

    async def _connect_websocket(self) -> None:
        self._was_refused = True
        while self._was_refused:
            self._was_refused = False
            self._settings.keyterm = self._limit.fit(self._keyterms())  # type: ignore[attr-defined]
            # pipecat builds it once; a new connection would get outdated names.
            self._websocket_url = f"{self._url}?{self._build_query_string()}"  # type: ignore[assignment]
            await super()._connect_websocket()

    async def _update_settings(self, delta: Any) -> dict[str, Any]:
        if "keyterm" in delta.given_fields():
            delta.keyterm = self._limit.fit(delta.keyterm)
        return await super()._update_settings(delta)

    async def _handle_message(self, data: dict[str, Any]) -> None:
        why = f"{data.get('error_code')} {data.get('description')}".lower()
        is_refusal = data.get("type") == "ConfigureFailure" and "keyterm" in why
        if not is_refusal or not self._limit.refused(self._keyterms()):
            await super()._handle_message(data)
            return
        self._settings.keyterm = self._limit.fit(self._keyterms())  # type: ignore[attr-defined]
        self._reset_configure_state()
        await self._send_configure({"keyterm"})

    async def _handle_turn_info(self, data: dict[str, Any]) -> None:
        until = int(data.get("audio_window_end", 0) * bytes_per_s(self))
        self._unconfirmed.confirmed(until)
        await super()._handle_turn_info(data)
        if data.get("event") == "EndOfTurn":
            self._segments.confirmed(until)
        # The words of a short "Aye." may arrive after the pause that follows them.
        self._end_turn_at_pause()

    def _end_turn_at_pause(self) -> None:
        if self._pause_unanswered and self._user_is_speaking and self._transport_is_active():
            self._pause_unanswered = False
            self._outbox.put(self._websocket, {"type": "ForceEndTurn"})
