"""Runs a speech-to-speech session as a mouth's model and voice, for every provider."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pipecat.frames.frames import Frame, InterruptionFrame, LLMContextFrame, TTSAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor, FrameProcessorSetup

from glyphoxa.chat.marks import COMMON
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import ENDS_REPLY, Stage, Unsaid
from glyphoxa.language.sentences import SentenceSplitter
from glyphoxa.npc.mouth import SentenceRejected
from glyphoxa.npc.tool_spec import Found, ToolSpec, nothing
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.frames import (
    FillerFrame,
    PieceEndFrame,
    PieceFrame,
    PrimeFrame,
    ReplyBeginsFrame,
    ReplyEndFrame,
)
from glyphoxa_processors.s2s.providers import (
    SESSION_RATE_HZ,
    Call,
    Endpoint,
    SessionFailed,
    SessionLost,
    SpeechWire,
    SpokenSound,
    SpokenWords,
    instructions_of,
    responses,
    translated,
)
from glyphoxa_processors.sockets import Connections, ProviderSocket
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.spoken_text import Decide, ReplyRules

# Cuts the words and sound of a speech-to-speech reply into clauses.


class Pieces:
    """Cuts parallel words and sound into clauses with their sound.

    The protocol does not assign sound to words; they arrive in step, words a little earlier. A clause therefore begins
    with the sound that arrives when its words are complete, which is also when the safety filter can judge it. The
    latest sound is held back, so that the last words always have some.
    """

    def __init__(
        self, turn: TurnId, splitter: SentenceSplitter, decide: Decide, *, listen: Callable[[TurnId, Unsaid], None]
    ) -> None:
        self._turn = turn
        self._splitter = splitter
        self._decide = decide
        self._listen = listen
        self._clauses: list[str] = []
        self._sound = b""
        self._half = b""  # the first byte of a sample whose second one has not arrived
        self._is_open = False
        self._withheld = False
        self._is_cut = False
        self.has_words = False
        self.n_begun = 0

    def take_words(self, words: str) -> None:
        self.has_words = self.has_words or bool(words.strip())
        self._clauses += self._splitter.push(words)

    def take_sound(self, sound: bytes) -> list[Frame]:
        sound = self._half + sound
        whole = len(sound) // 2 * 2
        sound, self._half = sound[:whole], sound[whole:]
        if not self._clauses and not (self.n_begun or self._withheld):
            self._sound += sound  # wait until its words are known
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
                frames.append(PieceFrame(self._turn, allowed))
        if self._is_open and sound:
            frames.append(TTSAudioRawFrame(sound, SESSION_RATE_HZ, 1))
        return frames

    def _allowed(self, clause: str) -> str:
        if self._is_cut:
            return ""
        verdict = self._decide(clause)
        if verdict.fault is not None:
            self._listen(self._turn, Unsaid(clause, verdict.fault))
            self._is_cut = verdict.fault in ENDS_REPLY
        return verdict.text.strip()


STALLED_AFTER_MS = 10_000
"""A session without data for this long has failed."""

_MAX_TOOL_ROUNDS = 2


class SpeechToSpeechVoice(FrameProcessor):
    """Takes a context and returns words and sound in pieces, like a language model with a voice.

    One task sends all frames of a turn; an interruption ends it. A connection that is lost before a word came is opened
    again in the same turn.

    Args:
        speaker: The last processor of the same mouth.
        tools: Declared to the session and run here, by the tier of the NPC and of each turn.
        rules: A clause that its check rejects is neither said nor part of the reply.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        speaker: Speaker,
        *,
        tools: Toolbox | None,
        rules: ReplyRules,
        stalled_after_ms: int = STALLED_AFTER_MS,
    ) -> None:
        super().__init__(name=f"speech-to-speech-{speaker.npc}")
        self._endpoint = endpoint
        self._speaker = speaker
        self._tools = tools
        self._rules = rules
        self._stalled_after_ms = stalled_after_ms
        self._sockets = Connections[SpeechWire]()
        self._instructions = ""
        self._offered: Sequence[ToolSpec] = tools.declared if tools is not None else ()
        """Tools of the last question."""
        self._begun: ReplyBeginsFrame | None = None
        self._answering: asyncio.Task[None] | None = None

    async def setup(self, setup: FrameProcessorSetup) -> None:  # type: ignore[override]  # pipecat's own narrowing
        await super().setup(setup)
        try:
            with translated():
                self._sockets.give_back(await self._sockets.take(self._wire()))
        except SessionFailed as error:
            # The next turn retries. Report the problem to the DM before that.
            await self.push_error(f"no speech-to-speech session: {error}", exception=error)

    async def cleanup(self) -> None:
        await self._stop_answering()
        await self._sockets.close()
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
            case PrimeFrame(prompt=prompt):
                self._instructions = instructions_of(prompt.messages)
                self._sockets.prepare(self._wire())
            case FillerFrame():
                pass  # there is no other voice for a filler
            case InterruptionFrame():
                self._begun = None
                await self._stop_answering()
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    def _wire(self) -> SpeechWire:
        return self._endpoint.wire(self._instructions, self._offered)

    async def _answer(self, begun: ReplyBeginsFrame, messages: list[Message]) -> None:
        turn = begun.turn
        pieces = self._new_pieces(begun)
        try:
            try:
                await self._reply(begun, messages, pieces)
            except SessionLost:
                # Servers close idle connections. Nothing is lost, so ask again, without sound whose words are unknown.
                if pieces.has_words:
                    raise
                pieces = self._new_pieces(begun)
                await self._reply(begun, messages, pieces)
        except SessionFailed as error:
            self._speaker.fail(turn, f"speech-to-speech: {error}")
        else:
            if not pieces.has_words:
                self._speaker.fail(turn, "speech-to-speech: the model returned no words")
        await self._push(turn, pieces.end(), pieces)

    def _new_pieces(self, begun: ReplyBeginsFrame) -> Pieces:
        check = self._rules.new_check(begun.asked)
        return Pieces(begun.turn, self._rules.new_splitter(), check, listen=self._reject)

    def _reject(self, turn: TurnId, unsaid: Unsaid) -> None:
        self._speaker.listener(SentenceRejected(self._speaker.npc, turn, unsaid))

    async def _reply(self, begun: ReplyBeginsFrame, messages: list[Message], pieces: Pieces) -> None:
        tools = self._tools if self._tools is None or begun.tier is None else self._tools.at(begun.tier.tier)
        offered = self._offered = tools.declared if tools is not None else ()
        self._instructions = instructions_of(messages)
        with translated():
            line = await self._sockets.take(self._wire())
            try:
                await line.send(*line.wire.ask(messages, offered))
                for n_round in range(_MAX_TOOL_ROUNDS + 2):
                    calls = await self._take(begun.turn, line, pieces)
                    if not calls:
                        return
                    may_be = tools if n_round < _MAX_TOOL_ROUNDS else None
                    found = await asyncio.gather(*(_look_up(may_be, call, offered) for call in calls))
                    answers = list(zip(calls, found, strict=True))
                    await line.send(*line.wire.answer(answers, may_call=n_round + 1 < _MAX_TOOL_ROUNDS))
            finally:
                line.cut()
                self._sockets.prepare(self._wire())
        raise SessionFailed("the model calls tools repeatedly and never answers")

    async def _take(self, turn: TurnId, line: ProviderSocket[SpeechWire], pieces: Pieces) -> list[Call]:
        """Pass on one response, and return its tool calls."""
        calls: list[Call] = []
        async for given in responses(line, stalled_after_ms=self._stalled_after_ms):
            match given:
                case SpokenWords(text=text):
                    had_words = pieces.has_words
                    pieces.take_words(text)
                    if pieces.has_words and not had_words:
                        self._speaker.mark(turn, Stage.FIRST_TOKEN)
                case SpokenSound(pcm=pcm):
                    await self._push(turn, pieces.take_sound(pcm), pieces)
                case Call():
                    calls.append(given)
        return calls

    async def _push(self, turn: TurnId, frames: list[Frame], pieces: Pieces) -> None:
        for frame in frames:
            if isinstance(frame, PieceFrame) and pieces.n_begun == 1:
                self._speaker.mark(turn, Stage.FIRST_SENTENCE)
            await self.push_frame(frame)

    async def _stop_answering(self) -> None:
        answering, self._answering = self._answering, None
        if answering is not None and not answering.done():
            await self.cancel_task(answering)


async def _look_up(tools: Toolbox | None, call: Call, offered: Sequence[ToolSpec]) -> Found:
    if tools is None or call.name not in (spec.wire_name for spec in offered):
        return nothing("this tool is unavailable now: answer with what you know")
    if call.arguments is None:
        return nothing("the arguments are not a JSON object")
    return COMMON.in_message(await tools.call(call.name, call.arguments))


def _messages(messages: list[Any]) -> list[Message]:
    return [Message(message["role"], COMMON.broken(message["content"])) for message in messages]
