"""From a model's tokens to clauses that may be said aloud."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Protocol

from pipecat.frames.frames import (
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSSpeakFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn import Stage
from glyphoxa.npc.mouth import ReplyKnown
from glyphoxa_processors.frames import (
    FillerFrame,
    PieceEndFrame,
    PieceFrame,
    ReplyBeginsFrame,
    ReplyEndFrame,
)
from glyphoxa_processors.reports import MouthReports


class Splitter(Protocol):
    """Cuts a stream of text where a voice may breathe."""

    def push(self, text: str) -> Iterable[str]: ...

    def flush(self) -> Iterable[str]: ...


Clean = Callable[[str], str | None]
"""A piece as it may be said; None when it may not be."""
NewClean = Callable[[str], Clean]
"""For one reply, to the words that it answers."""


class SpokenText(FrameProcessor):
    """Each clause goes to the voice as soon as it is whole, with its turn's mark in front of it.

    Every clause is one `TTSSpeakFrame`: an utterance of its own with its own context id, which every pipecat TTS
    service speaks at once and in order.

    Args:
        new_splitter: Called once a reply, so nothing of one leaks into the next.
        new_clean: Called once a reply.
        at_a_loss: What is said in turn instead of a reply of which nothing may be said. Without any, it is withheld.
    """

    def __init__(
        self,
        reports: MouthReports,
        *,
        new_splitter: Callable[[], Splitter],
        new_clean: NewClean,
        at_a_loss: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._reports = reports
        self._new_splitter = new_splitter
        self._new_clean = new_clean
        self._at_a_loss = cycle(at_a_loss)
        self._turn: TurnId | None = None
        self._begin_reply(None)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case ReplyBeginsFrame(turn=turn, asked=asked):
                self._begin_reply(turn, asked)
            case LLMTextFrame(text=text):
                await self._take(text)
            case LLMFullResponseEndFrame():
                await self._end_reply()
            case FillerFrame(text=text):
                await self._speak(None, text)
            case LLMFullResponseStartFrame():
                pass  # nothing behind this processor needs it
            case InterruptionFrame():
                self._begin_reply(None)
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    def _begin_reply(self, turn: TurnId | None, asked: str = "") -> None:
        self._turn = turn
        self._splitter = self._new_splitter()
        self._clean = self._new_clean(asked)
        self._has_words = False
        self._said: list[str] = []

    async def _take(self, text: str) -> None:
        if self._turn is None:
            return
        if not self._has_words and text.strip():
            self._has_words = True
            self._reports.mark(self._turn, Stage.FIRST_TOKEN)
        for piece in self._splitter.push(text):
            await self._say(piece)

    async def _end_reply(self) -> None:
        if self._turn is None:
            return
        for piece in self._splitter.flush():
            await self._say(piece)
        if not self._has_words:
            # A service that failed has said so already; the first reason given counts.
            self._reports.on_failure(self._turn, "the model returned no words")
        elif not self._said and (line := next(self._at_a_loss, "")):
            await self._say_allowed(self._turn, line)
        await self.push_frame(ReplyEndFrame(self._turn, withheld=self._has_words and not self._said))
        if self._said:
            self._reports.listener(ReplyKnown(self._reports.npc, self._turn, " ".join(self._said)))
        self._turn = None

    async def _say(self, piece: str) -> None:
        allowed = self._clean(piece)
        if allowed is None or not allowed.strip() or self._turn is None:
            return
        await self._say_allowed(self._turn, allowed.strip())

    async def _say_allowed(self, turn: TurnId, text: str) -> None:
        if not self._said:
            self._reports.mark(turn, Stage.FIRST_SENTENCE)
        self._said.append(text)
        await self._speak(turn, text)

    async def _speak(self, turn: TurnId | None, text: str) -> None:
        await self.push_frame(PieceFrame(turn, text))
        await self.push_frame(TTSSpeakFrame(text, append_to_context=False))
        await self.push_frame(PieceEndFrame(turn))
