"""Deepgram's two recognisers, Nova and Flux, for an ear.

The SDK defines the messages. The connection is a `ProviderSocket`, which can be cut and knows why a server refuses it.

Rules:

- Frames never wait for the network. Messages wait in the queue of the connection.
- One connection at a time, kept open for the session. A connection is lost if the server closes it, accepts nothing
  for a second, or does not answer a pause. Then another one is opened at once, and later with pauses.
- The next connection first hears the sound without a final transcript, so no word is lost. Messages of an old
  connection are dropped, and so are repeated and outdated ones, so no word is said twice.
- Each pause of the ear is answered by one closing transcript: Nova is asked to finalise, Flux to end its turn. The
  ear's end-of-turn rules therefore hold for both, and neither decides when an NPC may answer.
- New key terms are sent on the open connection, one change at a time and only the newest. An endpoint that refuses
  them, or does not answer, gets them by reconnecting after an answered pause.
- A list of key terms that is too long is halved after the first refusal. After the second, none are sent.
- One log line for each lost connection. An outage with the same reason is reported once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

from deepgram.environment import DeepgramClientEnvironment
from deepgram.listen.v1.types import ListenV1Configure, ListenV1Finalize, ListenV1KeepAlive, ListenV1Results
from deepgram.listen.v2.types import ListenV2Configure, ListenV2ForceEndTurn, ListenV2TurnInfo
from loguru import logger
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    StartFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.utils.time import time_now_iso8601
from pydantic import BaseModel, ValidationError
from websockets.exceptions import ConnectionClosed, InvalidStatus

from glyphoxa.actors.deadline import end_tasks
from glyphoxa.domain.heard import HeardWord
from glyphoxa.language.words import SpokenWord, placed
from glyphoxa.npc.table_interface import INPUT_RATE_HZ
from glyphoxa_processors.cloud.sound import SoundBuffer
from glyphoxa_processors.frames import KeytermsFrame, TranscriptNotes, put_notes
from glyphoxa_processors.sockets import FAULTS, ProviderSocket, fault_of, object_in, reason_in, socket_url

if TYPE_CHECKING:
    from glyphoxa.chat.dialect import Connection

ACCEPTED_WITHIN_S = 1.0
"""A third of a turn's wait for its words. A message waits only if the connection's buffers are full, which takes
seconds of sound."""
ACKNOWLEDGED_WITHIN_S = 2.0
"""An endpoint that does not know new key terms may not answer."""
ANSWERED_WITHIN_S = 1.5
"""Half of a turn's wait for its words: the other half is for the next connection. Answers usually take 0.3 s."""
_BYTES_PER_S = 2 * INPUT_RATE_HZ
_LONGEST_REPEATED_S = 60
_ONSET_S = 1.0
"""Between turns, the last second may contain speech that the detector has not reported yet."""
_LOOK_EVERY_S = 0.25
_KEPT_ALIVE_EVERY_S = 4.0
"""Deepgram closes a connection without data after 10 s (NET-0001)."""
_STABLE_AFTER_S = 5.0
_LONGEST_REST_S = 5.0
_NOTICEABLE_S = 0.5
"""With less sound left to transcribe, Nova may not answer a pause."""

M = TypeVar("M", ListenV1Results, ListenV2TurnInfo)


# What the services say.


@dataclass(frozen=True, slots=True)
class DeepgramTranscript:
    """A transcript. Times are seconds of the connection's sound."""

    text: str
    words: tuple[SpokenWord, ...]
    from_s: float
    to_s: float
    is_final: bool = False
    closes: bool = field(default=False, compare=False)
    """It answers a pause."""
    sequence: int | None = field(default=None, compare=False)
    """Number of the message."""

    def heard_words(self) -> tuple[tuple[HeardWord, ...], int | None]:
        """Return the words timed from the first one, and the time of that one in the connection's sound."""
        words = placed(self.text, self.words)
        first_ms = next((word.from_ms for word in words if word.from_ms is not None), None)
        return tuple(word.moved(places=0, ms=-(first_ms or 0)) for word in words), first_ms


def nova_said(message: Mapping[str, Any]) -> DeepgramTranscript:
    """Read Nova's message `Results`. Missing parts are taken as empty."""
    results = _lenient(ListenV1Results, message)
    alternatives = results.channel and results.channel.alternatives
    start_s = float(results.start or 0)
    return DeepgramTranscript(
        str(alternatives[0].transcript or "") if alternatives else "",
        _words(alternatives[0].words) if alternatives else (),
        start_s,
        start_s + float(results.duration or 0),
        bool(results.is_final),
        bool(results.from_finalize),
    )


def flux_said(message: Mapping[str, Any]) -> DeepgramTranscript:
    """Read Flux's message `TurnInfo`. Since 2026 its words have times; older servers send none."""
    turn_info = _lenient(ListenV2TurnInfo, message)
    ends = turn_info.event == "EndOfTurn"
    return DeepgramTranscript(
        str(turn_info.transcript or ""),
        _words(turn_info.words),
        float(turn_info.audio_window_start or 0),
        float(turn_info.audio_window_end or 0),
        ends,
        ends,
        None if turn_info.sequence_id is None else int(turn_info.sequence_id),
    )


def _lenient(kind: type[M], message: Mapping[str, Any]) -> M:
    """Read a message of a server that may leave out parts, which are then None."""
    try:
        return kind.model_validate(message)
    except ValidationError:
        return kind.model_construct(**message)  # several times slower


def _words(words: Iterable[Any] | None) -> tuple[SpokenWord, ...]:
    return tuple(
        # Without punctuation unless it was requested.
        SpokenWord(
            str(getattr(word, "punctuated_word", None) or word.word or ""),
            word.confidence,
            _ms(word.start),
            _ms(word.end),
        )
        for word in words or ()
    )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)


class KeytermLimit:
    """Halves the list after the first refusal and sends none after the second.

    A recogniser without names is better than none.
    """

    def __init__(self) -> None:
        self._most: int | None = None

    def fit(self, keyterms: Sequence[str]) -> list[str]:
        """Return the key terms that may be sent."""
        return list(keyterms if self._most is None else keyterms[: self._most])

    def refused(self, keyterms: Sequence[str]) -> bool:
        """Note a refusal. Returns whether fewer terms may help."""
        if not keyterms:
            return False
        self._most = len(keyterms) // 2 if self._most is None else 0
        logger.warning("the recogniser refused {} names; from now on it gets {} of them", len(keyterms), self._most)
        return True


# One connection.


_TRANSCRIPTS: Final = {"Results": nova_said, "TurnInfo": flux_said}
"""Readers of the messages with transcripts, by the type of the message."""


@dataclass(frozen=True, slots=True)
class DeepgramWire:
    """The messages of one connection: a transcript, or the message itself."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    name: str = "Deepgram"
    opening: str = ""

    def read(self, message: str | bytes, /) -> DeepgramTranscript | dict[str, Any]:
        told = object_in(message)
        said = _TRANSCRIPTS.get(told.get("type", ""))
        return told if said is None else said(told)


class DeepgramLine:
    """One connection, its queue and what is known about it. Adding a message never waits. Times are the loop's."""

    def __init__(self, socket: ProviderSocket[DeepgramWire], names: Sequence[str], *, now_s: float) -> None:
        self.socket = socket
        self._waiting: asyncio.Queue[str | bytes] = asyncio.Queue()
        self.names = names
        """Key terms that it has."""
        self.asked_names: tuple[Sequence[str], float] | None = None
        """Key terms that it has not acknowledged yet, and when they were sent."""
        self.opened_s = self.sent_s = self.received_s = now_s
        self.asked_s: float | None = None
        """When it was told of the newest pause; None once the answer came or is not expected any more."""
        self.n_asked = 0
        """Answers requested that have not come."""
        self.fault = ""
        self._seen: deque[DeepgramTranscript] = deque(maxlen=16)
        self._final_s = 0.0

    def put(self, message: BaseModel | bytes) -> None:
        """Queue a message or sound."""
        self._waiting.put_nowait(
            message.model_dump_json(exclude_none=True) if isinstance(message, BaseModel) else message
        )

    async def send_all(self) -> None:
        """Send queued messages until the connection ends."""
        try:
            while True:
                message = await self._waiting.get()
                async with asyncio.timeout(ACCEPTED_WITHIN_S):
                    await self.socket.send(message)
                self.sent_s = asyncio.get_running_loop().time()
        except TimeoutError:
            self.cut(f"it accepted nothing for {ACCEPTED_WITHIN_S:g} s")
        except ConnectionClosed:
            pass  # the reader reports it

    def cut(self, why: str) -> None:
        self.fault = self.fault or why
        self.socket.cut()

    def is_repeated(self, said: DeepgramTranscript) -> bool:
        """Return whether this transcript is a repeated final, or a partial that came after its final."""
        if not said.text:
            return False
        if said.is_final:
            is_known = said in self._seen
            self._seen.append(said)
            self._final_s = max(self._final_s, said.to_s)
            return is_known
        # Servers that do not tell positions always say 0.
        return said.from_s > 0 and said.to_s <= self._final_s


# The recognisers.


class DeepgramStt(FrameProcessor):
    """The common base of Nova and Flux: the connection, the sound without a transcript, segments and key terms.

    Args:
        version: Version in the service's address.
        query: Parameters of this service.
        keyterms: Must already fit the provider's limits (`glyphoxa.names.keyterms`). A `KeytermsFrame` updates them.
        configure: The message for new key terms on the open connection; None if the service accepts none.
    """

    def __init__(
        self,
        connection: Connection,
        version: str,
        query: Mapping[str, str],
        *,
        keyterms: Sequence[str],
        configure: type[ListenV1Configure | ListenV2Configure] | None,
    ) -> None:
        super().__init__()
        address = socket_url(connection.base_url or DeepgramClientEnvironment.PRODUCTION.production)
        self._url = address if address.endswith("/listen") else f"{address}/{version}/listen"
        self._headers = {"Authorization": f"Token {connection.key}"}
        self._query = {
            "model": connection.model,
            "encoding": "linear16",
            "sample_rate": str(INPUT_RATE_HZ),
            "mip_opt_out": "true",
            **query,
        }
        self._names = tuple(keyterms)
        self._configure = configure
        self._limit = KeytermLimit()
        self._sound = SoundBuffer(bytes_per_s=_BYTES_PER_S, longest_s=_LONGEST_REPEATED_S)
        self._line: DeepgramLine | None = None
        self._running: asyncio.Task[None] | None = None
        self._first_attempt = asyncio.Event()
        self._reported = ""
        self._is_speaking = False
        self._n_pauses = 0
        """Pauses without a closing transcript."""

    # What each service does in its own way.

    def _note_pause(self, line: DeepgramLine) -> None:
        """Ask for the closing transcript of a pause, if there is anything to close."""
        raise NotImplementedError

    def _read(self, said: DeepgramTranscript, line: DeepgramLine) -> DeepgramTranscript | None:
        """Return the transcript to be said; None if it is outdated."""
        raise NotImplementedError

    def _keep_alive(self, line: DeepgramLine, *, idle_s: float) -> None:
        """Called several times a second while nothing else is sent."""
        raise NotImplementedError

    # Frames.

    def can_generate_metrics(self) -> bool:
        return True

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case InputAudioRawFrame():  # no later processor needs the sound
                self._hear(frame.audio)
                return
            case KeytermsFrame(names=names):
                self._names = tuple(names)
                self._tell_names()
                return
            case StartFrame():
                self._running = self.create_task(self._run(), "connection")
                await self._first_attempt.wait()
            case VADUserStartedSpeakingFrame():
                self._begin()
            case VADUserStoppedSpeakingFrame():
                self._pause()
                await self.start_ttfb_metrics(start_time=frame.timestamp - frame.stop_secs)
            case _:
                pass
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        if self._running is not None:
            await self.cancel_task(self._running)
            self._running = None
        await super().cleanup()

    def _hear(self, audio: bytes) -> None:
        self._sound.heard(audio)
        if not self._is_speaking and not self._n_pauses:
            self._sound.keep_last(int(_ONSET_S * _BYTES_PER_S))
        if self._line is not None:
            self._line.put(audio)

    def _begin(self) -> None:
        self._is_speaking = True
        self._sound.began()

    def _pause(self) -> None:
        self._is_speaking = False
        self._sound.paused()
        self._n_pauses += 1
        if self._line is not None:
            self._note_pause(self._line)

    async def _take(self, came: DeepgramTranscript | dict[str, Any], line: DeepgramLine) -> None:
        line.received_s = self._now_s()
        if line is not self._line:
            return
        if isinstance(came, DeepgramTranscript):
            said = self._read(came, line)
            if said is not None and not line.is_repeated(said):
                await self._say(said, line)
            return
        match came.get("type"):
            case "ConfigureSuccess":
                self._names_taken(line)
            case "ConfigureFailure":
                self._names_refused(line, " ".join(str(came.get(k, "")) for k in ("code", "error_code", "description")))
            case "Error":
                # Deepgram closes the connection afterwards.
                line.fault = reason_in(came) or "the server reports an error"

    async def _say(self, said: DeepgramTranscript, line: DeepgramLine) -> None:
        words, sound_ms = said.heard_words()
        first_s = said.from_s if sound_ms is None else sound_ms / 1_000
        begin, first, end = (int(s * _BYTES_PER_S) for s in (said.from_s, first_s, said.to_s))
        # The segment is marked, so that a late transcript is not taken for another turn's.
        segment = self._sound.segment_at(begin, first, end)
        if said.is_final:
            self._sound.confirmed(end)
        if said.text or said.closes:
            now = time_now_iso8601()
            frame = (
                TranscriptionFrame(said.text, "", now, finalized=said.closes)
                if said.is_final
                else InterimTranscriptionFrame(said.text, "", now)
            )
            put_notes(frame, TranscriptNotes(words=words, sound_ms=sound_ms, segment=segment))
            await self.push_frame(frame)
        if said.closes:
            await self.stop_ttfb_metrics()
            line.n_asked = max(0, line.n_asked - 1)
            line.asked_s = line.asked_s if line.n_asked else None
            self._answered(max(0, self._n_pauses - 1))

    def _answered(self, n_pauses_left: int) -> None:
        self._n_pauses = n_pauses_left
        self._tell_names()

    # Key terms.

    def _tell_names(self) -> None:
        line, names = self._line, self._limit.fit(self._names)
        if line is None or line.asked_names is not None or list(line.names) == names:
            return
        if self._configure is not None:
            line.asked_names = names, self._now_s()
            line.put(self._configure(keyterms=names))
        elif not self._is_speaking and not self._n_pauses:  # otherwise once the pause is answered
            self._line = None
            line.cut("")

    def _names_taken(self, line: DeepgramLine) -> None:
        if line.asked_names is not None:
            (line.names, _), line.asked_names = line.asked_names, None
            self._tell_names()

    def _names_refused(self, line: DeepgramLine, why: str) -> None:
        if line.asked_names is None:
            return
        (names, _), line.asked_names = line.asked_names, None
        if "limit" not in why.lower() or not self._limit.refused(names):
            logger.warning("key terms were not accepted on the open connection ({}): reconnecting for them", why)
            self._configure = None
        self._tell_names()

    # Connections.

    def _now_s(self) -> float:
        return self.get_event_loop().time()

    async def _run(self) -> None:
        n_failures = 0
        while True:
            began_s = self._now_s()
            try:
                was_left = await self._connect_once()
            except FAULTS as error:
                is_bad_request = isinstance(error, InvalidStatus) and error.response.status_code == 400
                if is_bad_request and self._limit.refused(self._limit.fit(self._names)):
                    continue
                was_left, why = False, fault_of(error)
                if why != self._reported:
                    self._reported = why
                    await self.push_error(f"Deepgram {why}")
            self._first_attempt.set()
            lasted = self._now_s() - began_s > _STABLE_AFTER_S
            n_failures = 0 if was_left or lasted else n_failures + 1
            if n_failures > 1:
                await asyncio.sleep(min(_LONGEST_REST_S, 0.125 * 2**n_failures))

    async def _connect_once(self) -> bool:
        """Use one connection until it ends. Returns whether this side ended it."""
        names = self._limit.fit(self._names)
        query = urlencode([*self._query.items(), *(("keyterm", name) for name in names)])
        socket = await ProviderSocket(DeepgramWire(f"{self._url}?{query}", self._headers)).open()
        line = DeepgramLine(socket, names, now_s=self._now_s())
        sending = asyncio.create_task(line.send_all(), name="send")
        try:
            self._open(line)
            self._first_attempt.set()
            while True:
                with suppress(TimeoutError):
                    await self._take(await socket.receive(within_s=_LOOK_EVERY_S), line)
                self._look_after(line)
        except ConnectionClosed:
            pass  # reported below
        finally:
            was_left, self._line = self._line is not line, None
            await end_tasks(sending)
            socket.cut()
        if was_left:
            return True
        if line.asked_names is not None:
            self._configure = None  # an endpoint that does not know the message may hang up
        why = line.fault or socket.ending
        if why != self._reported or self._now_s() - line.opened_s > _STABLE_AFTER_S:
            self._reported = why
            logger.warning("{}: the connection is lost: {}", self.name, why)
        return False

    def _open(self, line: DeepgramLine) -> None:
        """Send a new connection the sound without a transcript."""
        missed, step = self._sound.reopened(), _BYTES_PER_S // 10
        for at in range(0, len(missed), step):
            line.put(missed[at : at + step])
        self._line = line
        self._tell_names()  # they may have changed meanwhile
        # The answer to the newest pause includes the words before earlier ones.
        self._n_pauses = min(self._n_pauses, int(not self._is_speaking))
        if self._n_pauses:
            self._note_pause(line)

    def _look_after(self, line: DeepgramLine) -> None:
        now_s = self._now_s()
        if why := self._unanswered(line, now_s):
            line.cut(why)
        elif line is self._line:
            self._keep_alive(line, idle_s=now_s - line.sent_s)

    def _unanswered(self, line: DeepgramLine, now_s: float) -> str:
        """Return why a connection that answers nothing is lost; "" if it may go on."""
        if line.asked_names is not None and now_s - line.asked_names[1] > ACKNOWLEDGED_WITHIN_S:
            self._names_refused(line, "no answer")
        if line.asked_s is None or now_s - line.asked_s <= ANSWERED_WITHIN_S:
            return ""
        is_silent = now_s - line.received_s > ANSWERED_WITHIN_S
        if line.n_asked and is_silent and len(self._sound) > _NOTICEABLE_S * _BYTES_PER_S:
            return f"it answered nothing for {ANSWERED_WITHIN_S:g} s after a pause"
        if now_s - line.asked_s > 2 * ANSWERED_WITHIN_S:
            line.asked_s = None
            self._answered(0)
        return ""


class NovaStt(DeepgramStt):
    """Nova. It answers each `Finalize` with a final transcript, which may be empty."""

    def __init__(self, connection: Connection, *, keyterms: Sequence[str] = (), language: str = "en") -> None:
        query = {
            "language": language,
            "channels": "1",
            # The ear finds the pauses. Its own detection would cut segments twice.
            "endpointing": "false",
            "interim_results": "true",
            "punctuate": "true",
        }
        # New names are taken since October 2026, not on regional endpoints.
        configure = ListenV1Configure if connection.model.startswith("nova-3") else None
        super().__init__(connection, "v1", query, keyterms=keyterms, configure=configure)

    def _note_pause(self, line: DeepgramLine) -> None:
        line.asked_s = self._now_s()
        line.n_asked += 1
        line.put(ListenV1Finalize(type="Finalize"))

    def _read(self, said: DeepgramTranscript, line: DeepgramLine) -> DeepgramTranscript | None:
        return said if line.n_asked else replace(said, closes=False)

    def _keep_alive(self, line: DeepgramLine, *, idle_s: float) -> None:
        if idle_s >= _KEPT_ALIVE_EVERY_S:
            line.put(ListenV1KeepAlive(type="KeepAlive"))


class FluxStt(DeepgramStt):
    """Flux with the ear's turn detection (Deepgram: "bring your own turn detection").

    `eot_threshold=1.0` disables its own detection, which would end a turn seconds late or in the middle. The words of a
    short "Aye." may arrive after the pause that follows them, so a pause waits for its turn to open.
    """

    def __init__(self, connection: Connection, *, keyterms: Sequence[str] = (), language: str = "en") -> None:
        # The language is the model's own. The timeout matters only if a pause is never reported.
        query = {"eot_threshold": "1.0", "eot_timeout_ms": "30000"}
        super().__init__(connection, "v2", query, keyterms=keyterms, configure=ListenV2Configure)
        self._turn_is_open = False
        self._is_forced = False
        self._sequence = -1

    def _open(self, line: DeepgramLine) -> None:
        self._turn_is_open = False
        self._sequence = -1
        super()._open(line)

    def _begin(self) -> None:
        super()._begin()
        self._n_pauses = 0
        self._is_forced = False

    def _note_pause(self, line: DeepgramLine) -> None:
        line.asked_s = self._now_s()
        if self._turn_is_open and not self._is_forced:
            self._is_forced = True
            line.n_asked = 1
            line.put(ListenV2ForceEndTurn())

    def _read(self, said: DeepgramTranscript, line: DeepgramLine) -> DeepgramTranscript | None:
        sequence = self._sequence + 1 if said.sequence is None else said.sequence
        if sequence <= self._sequence:
            return None
        self._sequence = sequence
        self._is_forced = self._is_forced and self._turn_is_open
        self._turn_is_open = not said.is_final
        if self._turn_is_open and self._n_pauses and not self._is_forced:
            self._note_pause(line)
        return said

    def _keep_alive(self, line: DeepgramLine, *, idle_s: float) -> None:
        # There is no message for this. The service counts silence as sound, and ends no turn without any.
        if idle_s >= (_NOTICEABLE_S if self._turn_is_open else _KEPT_ALIVE_EVERY_S):
            self._hear(bytes(2 * int(_NOTICEABLE_S * _BYTES_PER_S / 2)))
