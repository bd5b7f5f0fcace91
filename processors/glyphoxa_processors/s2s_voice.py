"""A speech-to-speech session as a mouth's model and voice in one, whoever provides it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pipecat.frames.frames import Frame, InterruptionFrame, LLMContextFrame, SystemFrame, TTSAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor, FrameProcessorSetup

from glyphoxa.context.prompt import Message
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn import Stage, Unsaid
from glyphoxa.npc.memory_tools import Found, nothing
from glyphoxa.npc.mouth import SentenceRejected
from glyphoxa.npc.toolbox import CallableTools
from glyphoxa_processors.frames import (
    FillerFrame,
    MouthReports,
    PieceEndFrame,
    PieceFrame,
    PrimeFrame,
    ReplyBeginsFrame,
    ReplyEndFrame,
)
from glyphoxa_processors.speech_session import (
    Call,
    Endpoint,
    Given,
    SessionFailed,
    SessionLost,
    SpokenSound,
    SpokenWords,
    instructions_of,
    reason,
)
from glyphoxa_processors.spoken_text import Decide, NewCheck, Splitter

# The words and the sound of a speech-to-speech reply, cut into clauses.


SESSION_RATE_HZ = 24_000


class Pieces:
    """Cuts words and sound that arrive side by side into clauses that a speaker can account for.

    The protocol does not say which word a sound belongs to; they arrive in step, the words a little early. So a
    clause begins with the sound that comes when its words are whole, which is also what a safety filter needs to
    judge it. The latest sound is kept back, so that the last words always have one.
    """

    def __init__(
        self, turn: TurnId, *, splitter: Splitter, decide: Decide, listen: Callable[[TurnId, Unsaid], None]
    ) -> None:
        self._turn = turn
        self._splitter = splitter
        self._decide = decide
        self._listen = listen
        self._clauses: list[str] = []
        self._sound = b""
        self._is_open = False
        self._withheld = False
        self.has_words = False
        self.n_begun = 0
        self.text = ""

    def take_words(self, words: str) -> None:
        self.has_words = self.has_words or bool(words.strip())
        self._clauses += self._splitter.push(words)

    def take_sound(self, sound: bytes) -> list[Frame]:
        if not self._clauses and not (self.n_begun or self._withheld):
            self._sound += sound  # nothing may be said before it is known what it is
            return []
        ready, self._sound = self._sound, sound
        return self._piece(ready)

    def end(self) -> list[Frame]:
        self._clauses += self._splitter.flush()
        frames = self._piece(self._sound)
        self._sound = b""
        if self._is_open:
            frames.append(PieceEndFrame(self._turn))
        return [*frames, ReplyEndFrame(self._turn, withheld=self._withheld and not self.n_begun)]

    def _piece(self, sound: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self._clauses:
            if self._is_open:
                frames.append(PieceEndFrame(self._turn))
            allowed = " ".join(kept for clause in self._clauses if (kept := self._allowed(clause)))
            self._clauses = []
            self._is_open = bool(allowed)
            self._withheld = self._withheld or not allowed
            if allowed:
                self.n_begun += 1
                self.text = f"{self.text} {allowed}".strip()
                frames.append(PieceFrame(self._turn, allowed))
        if self._is_open and sound:
            frames.append(TTSAudioRawFrame(sound, SESSION_RATE_HZ, 1))
        return frames

    def _allowed(self, clause: str) -> str:
        verdict = self._decide(clause)
        if verdict.fault is not None:
            self._listen(self._turn, Unsaid(clause, verdict.fault))
        return verdict.text.strip()


STALLED_AFTER_MS = 10_000
"""A session that gives nothing for so long has died without saying so."""

_MAX_TOOL_ROUNDS = 2

_ENDS_SELDOM_S = 60.0
"""A connection that ends again so soon is opened by the next question: a server that always hangs up is let be."""


@dataclass
class HeardFrame(SystemFrame):
    """How much of the latest reply was heard, once that is known: before the next question is asked."""

    text: str
    audio_ms: int


class SpeechToSpeechVoice(FrameProcessor):
    """Takes a context, gives words and sound in pieces, as a language model and a voice behind it would.

    The session is opened at the start, renewed between turns, and opened again by the first turn that finds its
    connection gone. All frames of a turn come from one task, which an interruption ends.

    Args:
        tools: Declared to the session and performed here, by the tier of the NPC and of each turn.
        new_check: The sentence check of one reply. A clause that it withholds is neither said nor in the reply.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        endpoint: Endpoint,
        reports: MouthReports,
        *,
        tools: CallableTools | None,
        new_splitter: Callable[[], Splitter],
        new_check: NewCheck,
        stalled_after_ms: int = STALLED_AFTER_MS,
    ) -> None:
        super().__init__(name=f"speech-to-speech-{reports.npc}")
        self._reports = reports
        self._session = endpoint.session(tools.declared if tools is not None else (), self._session_ends)
        self._tools = tools
        self._new_splitter = new_splitter
        self._new_check = new_check
        self._stalled_after_ms = stalled_after_ms
        self._begun: ReplyBeginsFrame | None = None
        self._answering: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._renewed_s: float | None = None

    async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]  # pipecat's own narrowing
        await super().setup(setup)
        try:
            await self._session.open()
        except SessionFailed as error:
            # The next turn tries again; the DM should know before that.
            await self.push_error(f"no speech-to-speech session: {reason(error)}", exception=error)

    async def cleanup(self) -> None:
        await self._stop_answering()
        if self._renewing is not None:
            await self.cancel_task(self._renewing)
        await self._session.close()
        await super().cleanup()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case ReplyBeginsFrame():
                self._begun = frame
            case LLMContextFrame(context=context) if self._begun is not None:
                await self._stop_answering()
                answer = self._answer(self._begun, _messages(context.get_messages()))
                self._answering = self.create_task(answer, "answer")
            case HeardFrame(text=text, audio_ms=audio_ms):
                await self._heard(text, audio_ms)
            case PrimeFrame(prompt=prompt):
                if self._answering is None or self._answering.done():
                    self._in_background(self._session.expect(instructions_of(prompt.messages)))
            case FillerFrame():
                pass  # no second voice for a filler
            case InterruptionFrame():
                self._begun = None
                await self._stop_answering()
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    async def _heard(self, text: str, audio_ms: int) -> None:
        # What is still being made cannot be cut to length.
        await self._stop_answering()
        try:
            await self._session.heard(text, audio_ms=audio_ms)
        except SessionFailed:
            await self._session.close()
        self._in_background(self._session.renew())

    def _session_ends(self) -> None:
        """Its connection ends by itself. While an answer is made, whoever hears of its end renews it."""
        now_s = self.get_event_loop().time()
        is_often = self._renewed_s is not None and now_s - self._renewed_s < _ENDS_SELDOM_S
        if not is_often and (self._answering is None or self._answering.done()):
            self._renewed_s = now_s
            self._in_background(self._session.renew())

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        before = self._renewing

        async def perform() -> None:
            if before is not None:
                await asyncio.wait({before})
            try:
                await work
            except SessionFailed:
                # The next question opens one, and says why if it cannot.
                await self._session.close()

        self._renewing = self.create_task(perform(), "renew")

    async def _answer(self, begun: ReplyBeginsFrame, messages: list[Message]) -> None:
        turn = begun.turn
        pieces = Pieces(
            turn,
            splitter=self._new_splitter(),
            decide=self._new_check(begun.asked),
            listen=self._reject,
        )
        try:
            if self._renewing is not None:
                await asyncio.wait({self._renewing})
            try:
                await self._reply(begun, messages, pieces)
            except SessionLost:
                # Servers close a session that was idle for long; who finds it closed has lost nothing yet.
                if pieces.has_words:
                    raise
                await self._session.close()
                await self._reply(begun, messages, pieces)
        except SessionFailed as error:
            self._reports.on_failure(turn, f"speech-to-speech: {reason(error)}")
            await self._session.close()
        last = pieces.end()
        if pieces.text:
            self._session.replied(pieces.text)
        await self._push(turn, last, pieces)

    def _reject(self, turn: TurnId, unsaid: Unsaid) -> None:
        self._reports.listener(SentenceRejected(self._reports.npc, turn, unsaid))

    async def _reply(self, begun: ReplyBeginsFrame, messages: list[Message], pieces: Pieces) -> None:
        tools = self._tools if self._tools is None or begun.tier is None else self._tools.at(begun.tier.tier)
        offered = tools.declared if tools is not None else ()
        allowed = {spec.wire_name for spec in offered}
        await self._session.ask(messages)
        for n_round in range(_MAX_TOOL_ROUNDS + 2):
            may_call = n_round < _MAX_TOOL_ROUNDS
            calls: list[Call] = []
            async for given in self._in_time(self._session.respond(offered if may_call else ())):
                await self._take(begun.turn, given, pieces, calls)
            if not calls:
                return
            may_be = tools if may_call else None
            found = await asyncio.gather(*(_look_up(may_be, call, allowed) for call in calls))
            await self._session.answer(list(zip(calls, found, strict=True)))
        raise SessionFailed("the model looks things up and never answers")

    async def _in_time(self, response: AsyncIterator[Given]) -> AsyncIterator[Given]:
        while True:
            try:
                async with asyncio.timeout(self._stalled_after_ms / 1_000):
                    given = await anext(response)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise SessionFailed(f"nothing came for {self._stalled_after_ms} ms") from error
            yield given

    async def _take(self, turn: TurnId, given: Given, pieces: Pieces, calls: list[Call]) -> None:
        match given:
            case SpokenWords(text=text):
                had_words = pieces.has_words
                pieces.take_words(text)
                if pieces.has_words and not had_words:
                    self._reports.mark(turn, Stage.FIRST_TOKEN)
            case SpokenSound(pcm=pcm):
                await self._push(turn, pieces.take_sound(pcm), pieces)
            case Call():
                calls.append(given)

    async def _push(self, turn: TurnId, frames: list[Frame], pieces: Pieces) -> None:
        for frame in frames:
            if isinstance(frame, PieceFrame) and pieces.n_begun == 1:
                self._reports.mark(turn, Stage.FIRST_SENTENCE)
            await self.push_frame(frame)

    async def _stop_answering(self) -> None:
        if self._answering is None:
            return
        answering, self._answering = self._answering, None
        if not answering.done():
            await self.cancel_task(answering)
            try:
                await self._session.stop()
            except SessionFailed:
                await self._session.close()


async def _look_up(tools: CallableTools | None, call: Call, allowed: set[str]) -> Found:
    if tools is None or call.name not in allowed:
        return nothing("this cannot be looked up now: answer with what you know")
    if call.arguments is None:
        return nothing("the arguments are not a JSON object")
    return await tools.call(call.name, call.arguments)


def _messages(messages: list[Any]) -> list[Message]:
    return [Message(message["role"], message["content"]) for message in messages]
