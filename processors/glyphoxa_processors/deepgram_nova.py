"""Deepgram Nova for an ear: answers each local pause, and accepts new key terms while it listens."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from deepgram.core.api_error import ApiError
from deepgram.listen.v1.types import (
    ListenV1CloseStream,
    ListenV1Configure,
    ListenV1ConfigureFailure,
    ListenV1ConfigureSuccess,
    ListenV1Finalize,
    ListenV1Results,
)
from loguru import logger
from pipecat.frames.frames import (
    EagerTranscriptionFrame,
    Frame,
    InterimTranscriptionFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.services.stt_service import STTService
from pipecat.utils.time import time_now_iso8601
from websockets.exceptions import InvalidStatus

from glyphoxa.domain.heard import HeardWord
from glyphoxa.language.words import SpokenWord, placed
from glyphoxa_processors.recogniser import SegmentCounter, UnconfirmedSound, notes_of, put_notes

# Shared by Nova and Flux: keeping a conversation across connections.


MAX_REPEATED_S = 20
ONSET_S = 1.0
"""Between turns, the last second may contain speech that the detector has not reported yet."""


def bytes_per_s(stt: STTService) -> int:
    return 2 * (stt.sample_rate or 16_000)


def is_bad_request(error: Exception | None) -> bool:
    """Return whether the handshake failed with HTTP 400. The reason is not available."""
    match error:
        case ApiError(status_code=400):
            return True
        case InvalidStatus(response=response):
            return response.status_code == 400
        case _:
            return False


# Sends to a recogniser's connection, so that nothing at the table waits for the network.


Connection = TypeVar("Connection")
Message = TypeVar("Message")


class DeepgramOutbox(Generic[Connection, Message]):
    """A queue of messages to a connection. Adding a message never waits.

    A connection that does not accept a message in time, or lags too far behind, is lost: its queue is dropped and its
    socket closed. Missed sound is repeated to the next connection; a late transcript is useless.

    Args:
        send: Sends one message to the open connection. It raises if the connection is lost.
        is_open: Returns whether a connection is still the current one.
        cut: Closes a connection at once, without a closing handshake, which would wait as long as the message.
        start: Creates a task of the processor.
    """

    within_s = 1.0
    """A third of a turn's wait for its words. A message waits only if the connection's buffers are full, which takes
    seconds of sound."""

    def __init__(
        self,
        send: Callable[[Connection, Message], Awaitable[None]],
        *,
        is_open: Callable[[Connection], bool],
        cut: Callable[[Connection], None],
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._send = send
        self._is_open = is_open
        self._cut = cut
        self._start = start
        self._waiting: asyncio.Queue[tuple[Connection, Message, float]] = asyncio.Queue()
        self._waiting_s = 0.0
        self._lost: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def put(self, connection: Connection, message: Message, *, lasts_s: float = 0.0) -> None:
        """Queue a message. `lasts_s`: duration of the sound in it."""
        if connection is self._lost:
            return
        if self._waiting_s > 2 * MAX_REPEATED_S:
            self._lose(connection, "it does not keep up with the sound")
            return
        self._waiting_s += lasts_s
        self._waiting.put_nowait((connection, message, lasts_s))
        if self._task is None:
            self._task = self._start(self._run())

    def close(self) -> asyncio.Task[None] | None:
        """Stop sending. Returns the task to cancel."""
        task, self._task = self._task, None
        return task

    async def _run(self) -> None:
        while True:
            connection, message, lasts_s = await self._waiting.get()
            self._waiting_s -= lasts_s
            if connection is self._lost or not self._is_open(connection):
                continue
            try:
                async with asyncio.timeout(self.within_s):
                    await self._send(connection, message)
            except TimeoutError:
                self._lose(connection, f"it accepted nothing for {self.within_s:g} s")
            except Exception as error:  # raised by the sockets
                self._lose(connection, type(error).__name__)

    def _lose(self, connection: Connection, why: str) -> None:
        self._lost = connection
        if self._is_open(connection):
            logger.warning("the connection of a recogniser is dropped: {}", why)
            self._cut(connection)


# Deepgram's data for each word, for the notes of a transcript.


@dataclass(frozen=True, slots=True)
class _Told:
    """A word. Times are seconds since the connection was opened; None if unknown."""

    word: str
    confidence: float | None
    begins_s: float | None
    ends_s: float | None


def note_words(frame: Frame) -> None:
    """Add `words`, and `sound_ms` if known, to the notes of a transcript that came from a message."""
    if not isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
        return
    told = list(_nova(frame.result) if isinstance(frame.result, ListenV1Results) else _flux(frame.result))
    words = placed(frame.text, (SpokenWord(t.word, t.confidence, _ms(t.begins_s), _ms(t.ends_s)) for t in told))
    words, sound_ms = _from_the_first(words)
    put_notes(frame, replace(notes_of(frame), words=words, sound_ms=sound_ms))


def heard_span_s(frame: Frame) -> tuple[float, float, float] | None:
    """Return the start of a transcript's sound, its first word, and its end, in seconds since the connection opened.

    None for other frames, and for a transcript without a message.
    """
    if not isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
        return None
    match frame.result:
        case ListenV1Results(start=start, duration=duration) as results:
            first = next((t.begins_s for t in _nova(results) if t.begins_s is not None), start)
            return start, first, start + duration
        case {"audio_window_start": int() | float() as start, "audio_window_end": int() | float() as end}:
            return start, next((t.begins_s for t in _flux(frame.result) if t.begins_s is not None), start), end
        case _:
            return None


def _nova(results: ListenV1Results) -> Iterator[_Told]:
    for word in results.channel.alternatives[0].words:
        # Missing unless punctuation was requested.
        yield _Told(word.punctuated_word or word.word, word.confidence, word.start, word.end)


def _flux(turn_info: Any) -> Iterator[_Told]:
    """Yield words of Flux messages, as sent. Since 2026 they have times; older servers send none."""
    for word in turn_info.get("words") or () if isinstance(turn_info, dict) else ():
        yield _Told(word.get("word") or "", word.get("confidence"), word.get("start"), word.get("end"))


def _from_the_first(words: tuple[HeardWord, ...]) -> tuple[tuple[HeardWord, ...], int | None]:
    """Return the words timed from the first one, and the time of that one in the connection's sound."""
    first_ms = next((word.from_ms for word in words if word.from_ms is not None), None)
    if first_ms is None:
        return words, None
    return tuple(word.moved(places=0, ms=-first_ms) for word in words), first_ms


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)


# Learns how many key terms a provider accepts, if fewer than documented.


class KeytermLimit:
    """Halves the list after the first refusal and sends none after the second.

    A recogniser without names is better than none.
    """

    def __init__(self) -> None:
        self._most: int | None = None
        self._n_refusals = 0

    def fit(self, keyterms: Sequence[str]) -> list[str]:
        """Return the key terms that may be sent."""
        return list(keyterms if self._most is None else keyterms[: self._most])

    def refused(self, keyterms: Sequence[str]) -> bool:
        """Note a refusal. Returns whether fewer terms may help."""
        if not keyterms:
            return False
        self._n_refusals += 1
        self._most = len(keyterms) // 2 if self._n_refusals == 1 else 0
        logger.warning("the recogniser refused {} names; from now on it gets {} of them", len(keyterms), self._most)
        return True


class DeepgramEar(STTService):
    """Shared state of both recognisers across connections: names, unconfirmed sound, segments, outbox."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._limit = KeytermLimit()
        self._pause_unanswered = False
        self._unconfirmed = UnconfirmedSound(longest=MAX_REPEATED_S * bytes_per_s(self))
        self._segments = SegmentCounter(bytes_per_s=bytes_per_s(self))
        self._outbox: DeepgramOutbox[Any, Any] = DeepgramOutbox(
            self._send, is_open=self._is_open, cut=self._cut, start=self.create_task
        )
        self._listener: Any = None
        """The connection that has received everything before the next sound."""

    async def push_frame(self, frame: Frame, direction: FrameDirection = FrameDirection.DOWNSTREAM) -> None:
        note_words(frame)
        span_s = heard_span_s(frame)
        if span_s is not None:
            # Mark the segment, so that a late transcript is not taken for another turn's.
            begin, first, end = (int(s * bytes_per_s(self)) for s in span_s)
            put_notes(frame, replace(notes_of(frame), segment=self._segments.at(begin, first, end)))
        await super().push_frame(frame, direction)

    def _note_sound(self, audio: bytes) -> None:
        self._unconfirmed.heard(audio)
        self._segments.heard(len(audio))
        if not self._user_speaking and not self._pause_unanswered:
            self._unconfirmed.keep_last(int(ONSET_S * bytes_per_s(self)))

    def _put_sound(self, socket: Any, audio: bytes) -> None:
        self._outbox.put(socket, audio, lasts_s=len(audio) / bytes_per_s(self))

    def _repeat_missed(self, socket: Any) -> None:
        """Send a new connection the sound without a transcript."""
        self._listener = socket
        missed, step = self._unconfirmed.reopened(), bytes_per_s(self) // 10
        self._segments.reopened(len(missed))
        for at in range(0, len(missed), step):
            self._put_sound(socket, missed[at : at + step])

    def _keyterms(self) -> list[str]:
        keyterms: object = self._settings.keyterm  # type: ignore[attr-defined]
        return list(keyterms) if isinstance(keyterms, list | tuple) else []

    async def _send(self, socket: Any, message: Any) -> None:
        raise NotImplementedError

    def _is_open(self, socket: Any) -> bool:
        raise NotImplementedError

    def _cut(self, socket: Any) -> None:
        raise NotImplementedError


_AT_ONCE_EVERY_S = 5.0
"""Minimum interval of immediate reconnects, for a server that always hangs up."""


class NovaStt(DeepgramEar, DeepgramSTTService):
    """Nova with key terms that change while it listens, and reconnects that lose no words.

    pipecat reconnects for any change of settings. Nova-3 accepts new key terms on the open connection (since October
    2026, not on regional endpoints), so they are sent there, one change at a time and only the newest. After a refusal
    or no answer, this and later connections apply them by reconnecting.

    pipecat would reconnect during speech, or never once somebody has spoken, because it waits for a frame that an ear
    does not send. Here a reconnect happens after an answered pause. The new connection first hears the sound without a
    final transcript, and what is said meanwhile.

    Frames never wait for the socket: a pause report queued after blocked sound must reach the end of the ear, or no
    turn would end.
    """

    acknowledged_within_s = 2.0
    """An endpoint that does not know the message may not answer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._acknowledged: asyncio.Future[ListenV1ConfigureSuccess | ListenV1ConfigureFailure] | None = None
        self._configuring: asyncio.Task[None] | None = None
        self._reconnecting_task: asyncio.Task[None] | None = None
        self._takes_configure = True
        self._sent_keyterms: Sequence[str] = self._keyterms()
        self._reconnected_at_once_s = -math.inf

    async def cleanup(self) -> None:
        for task in (self._configuring, self._reconnecting_task, self._outbox.close()):
            if task is not None:
                await self.cancel_task(task)
        self._configuring = self._reconnecting_task = None
        await super().cleanup()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        if isinstance(frame, VADUserStartedSpeakingFrame):
            self._segments.began()
        if isinstance(frame, VADUserStoppedSpeakingFrame):
            self._segments.paused()
        # Not super(): it would request the last words before the queued sound is sent.
        await STTService.process_frame(self, frame, direction)
        if isinstance(frame, VADUserStoppedSpeakingFrame):
            self._catch_up()
            self._pause_unanswered = True
            self._request_final_words()

    async def run_stt(self, audio: bytes) -> AsyncGenerator[Frame | None, None]:
        self._catch_up()
        self._note_sound(audio)
        socket = self._open_socket()
        if socket is None:
            self._reconnect_at_once()
        else:
            self._put_sound(socket, audio)
        yield None

    async def _keepalive_handler(self) -> None:
        # Starts with each connection. Nobody may be speaking any more, so no sound may follow.
        self._catch_up()
        await super()._keepalive_handler()

    async def push_error(self, error_msg: str, exception: Exception | None = None, *args: Any, **kwargs: Any) -> None:
        if is_bad_request(exception) and self._limit.refused(self._keyterms()):
            return  # not an error yet: `_connection_handler` retries
        await super().push_error(error_msg, exception, *args, **kwargs)

    async def _connection_handler(self) -> None:
        while True:
            self._settings.keyterm = self._limit.fit(self._keyterms())  # type: ignore[attr-defined]
            await super()._connection_handler()
            if self._limit.fit(self._keyterms()) == self._keyterms():
                return

    def _build_connect_kwargs(self) -> dict[str, Any]:
        self._sent_keyterms = self._keyterms()
        return super()._build_connect_kwargs()

    async def _update_settings(self, delta: Any) -> dict[str, Any]:
        only_keyterms = set(delta.given_fields()) == {"keyterm"}
        is_nova_3 = str(self._settings.model).startswith("nova-3")  # type: ignore[attr-defined]
        if only_keyterms:
            delta.keyterm = self._limit.fit(delta.keyterm)
        if not (only_keyterms and is_nova_3 and self._takes_configure and self._open_socket()):
            return await super()._update_settings(delta)
        # Not super(): it would reconnect.
        changed = await STTService._update_settings(self, delta)
        if changed and self._configuring is None:
            self._configuring = self.create_task(self._configure())
        return changed

    async def _configure(self) -> None:
        socket = self._open_socket()
        try:
            while self._keyterms() != self._sent_keyterms:
                keyterms = self._sent_keyterms = self._keyterms()
                self._acknowledged = asyncio.get_running_loop().create_future()
                async with asyncio.timeout(self.acknowledged_within_s):
                    await socket.send_configure(ListenV1Configure(keyterms=list(keyterms)))
                    answer = await self._acknowledged
                if isinstance(answer, ListenV1ConfigureSuccess):
                    continue
                logger.warning("key terms refused: {} {}", answer.code, answer.description)
                if "LIMIT" not in str(answer.code) or not self._limit.refused(keyterms):
                    break
                self._settings.keyterm = self._limit.fit(keyterms)  # type: ignore[attr-defined]
            else:
                return
        except Exception as error:  # the socket failed, or the endpoint does not know the message
            logger.warning("key terms were not accepted on the open connection: {}", type(error).__name__)
        finally:
            self._configuring = None
        self._takes_configure = False
        logger.info("from now on this recogniser gets new names by reconnecting at a pause")
        # Meanwhile another connection was opened with outdated names.
        if self._open_socket() is socket or self._keyterms() != self._sent_keyterms:
            await self._request_reconnect()

    async def _request_reconnect(self) -> None:
        """Reconnect at the next answered pause; at once between turns."""
        self._need_reconnect = True
        self._reconnect_if_quiet()

    def _reconnect_if_quiet(self) -> None:
        if self._need_reconnect and self._can_reconnect and self._reconnecting_task is None:
            self._reconnecting_task = self.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        try:
            while self._need_reconnect and self._can_reconnect:
                self._need_reconnect = False
                await self._disconnect()
                await self._connect()
        except Exception as error:  # raised by the sockets; pipecat's loop retries
            await self.push_error(f"could not reconnect: {error}", exception=error)
        finally:
            self._reconnecting_task = None

    def _reconnect_at_once(self) -> None:
        """Reconnect to a lost server without pipecat's initial delay."""
        lost, self._listener = self._listener, None
        now_s = asyncio.get_running_loop().time()
        if (
            lost is None
            or self._reconnecting_task is not None
            or now_s < self._reconnected_at_once_s + _AT_ONCE_EVERY_S
        ):
            return
        self._reconnected_at_once_s = now_s
        self._reconnecting_task = self.create_task(self._replace_connection())

    async def _replace_connection(self) -> None:
        try:
            await self._disconnect()
            await self._connect()
        finally:
            self._reconnecting_task = None
        self._reconnect_if_quiet()

    def _catch_up(self) -> None:
        socket = self._open_socket()
        if socket is None or socket is self._listener:
            return
        self._repeat_missed(socket)
        if self._pause_unanswered and not self._user_speaking:
            self._request_final_words()

    def _request_final_words(self) -> None:
        socket = self._open_socket()
        if socket is not None:
            self.request_finalize()
            self._outbox.put(socket, ListenV1Finalize(type="Finalize"))

    async def _send(self, socket: Any, message: bytes | ListenV1Finalize) -> None:
        if isinstance(message, bytes):
            await socket.send_media(message)
        else:
            await socket.send_finalize(message)

    def _is_open(self, socket: Any) -> bool:
        return socket is self._open_socket()

    def _cut(self, socket: Any) -> None:
        self._connection = None
        socket._websocket.transport.abort()

    async def _disconnect(self) -> None:
        # pipecat's close message would wait for a blocked connection.
        socket, self._connection = self._open_socket(), None
        if socket is not None:
            try:
                async with asyncio.timeout(DeepgramOutbox.within_s):
                    await socket.send_close_stream(ListenV1CloseStream(type="CloseStream"))
            except Exception as error:  # raised by the sockets, or the deadline
                logger.debug("a connection did not accept the close message: {}", type(error).__name__)
                self._cut(socket)
        await super()._disconnect()

    def _pause_answered(self) -> None:
        self._pause_unanswered = False
        if not self._user_speaking:
            self._can_reconnect = True
            self._reconnect_if_quiet()

    async def _on_message(self, message: Any) -> None:
        await super()._on_message(message)
        if isinstance(message, ListenV1Results) and message.is_final:
            self._unconfirmed.confirmed(int((message.start + message.duration) * bytes_per_s(self)))
        match message:
            case ListenV1ConfigureSuccess() | ListenV1ConfigureFailure():
                if self._acknowledged is not None and not self._acknowledged.done():
                    self._acknowledged.set_result(message)
            case ListenV1Results(from_finalize=True) if not message.channel.alternatives[0].transcript:
                # Everything was confirmed before the pause. pipecat reports nothing then, so answer the pause here.
                await self.push_frame(
                    TranscriptionFrame("", self._user_id, time_now_iso8601(), result=message, finalized=True)
                )
            case _:
                pass
        if isinstance(message, ListenV1Results) and message.is_final:
            # After the transcripts of its own sound.
            self._segments.confirmed(int((message.start + message.duration) * bytes_per_s(self)))
        if isinstance(message, ListenV1Results) and message.from_finalize:
            self._pause_answered()

    def _open_socket(self) -> Any:
        """Return the SDK's connection, or None. pipecat types it as None."""
        return self._connection
