"""Turns a model's tokens into clauses that may be said aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from glyphoxa.domain.turn_record import ENDS_REPLY, Asked, Fault, Stage, Unsaid, Verdict
from glyphoxa.judgement.reply import fact_about
from glyphoxa.judgement.small_model import leaves_out, only_calls
from glyphoxa.language.plain_text import PlainText
from glyphoxa.language.sentences import SentenceSplitter
from glyphoxa.npc.mouth import ReplyKnown, SentenceRejected
from glyphoxa_processors.frames import (
    FillerFrame,
    GivenWordsFrame,
    PieceEndFrame,
    PieceFrame,
    ReplyBeginsFrame,
    ReplyEndFrame,
    RetractFrame,
    SecondTryFrame,
)
from glyphoxa_processors.speaker import Speaker

_ENDS = (".", "!", "?", "…")


Decide = Callable[[str], Verdict]
"""Decides whether and how a piece may be said."""


class ReplyRules(Protocol):
    """Decides what of an NPC's replies is said, and in which words.

    Attributes:
        npc_name: The name that replaces a model's `{{char}}`.
    """

    npc_name: str

    def new_splitter(self) -> SentenceSplitter:
        """Return the splitter of one try at a reply, so that replies do not mix."""
        ...

    def new_check(self, asked: Asked) -> Decide:
        """Return the check of one try of a model at a reply."""
        ...

    def stand_in(self, question: str, fault: Fault | None, told: Sequence[str]) -> str:
        """Return what to say instead of a reply; "" for nothing.

        Args:
            fault: Why there is no reply, if that is known.
            told: Answers from the lines of the asker; see `HotContext.told`.
        """
        ...

    def shrug(self, lines: Sequence[str]) -> str:
        """Choose a line for a question that the NPC knows nothing about."""
        ...

    def spoken_form(self, piece: str) -> str:
        """Write a piece as the voice says it: numbers as words. See `glyphoxa.language.spoken_form`."""
        ...


class SpokenText(FrameProcessor):
    """Sends each clause to the voice as soon as it is complete, preceded by its turn's mark.

    Markup is converted before a reply is split, so that a clause is checked, shown and stored as plain text. The voice
    alone receives the spoken form.

    Every clause is one `TTSSpeakFrame` with its own context id, which every pipecat TTS service speaks at once and in
    order.

    Args:
        speaker: The last processor of the same mouth.
    """

    def __init__(self, speaker: Speaker, rules: ReplyRules) -> None:
        super().__init__()
        self._speaker = speaker
        self._rules = rules
        self._turn: TurnId | None = None
        self._begin_reply(None)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case ReplyBeginsFrame(turn=turn, asked=asked, is_brief=is_brief):
                self._begin_reply(turn, asked)
                self._is_brief = is_brief
            case LLMTextFrame(text=text):
                await self._take(text)
            case RetractFrame():
                await self._retract()
            case LLMFullResponseEndFrame():
                await self._end_reply()
            case GivenWordsFrame(turn=turn, text=text):
                await self._say_given(turn, text)
            case FillerFrame(text=text):
                await self._speak(None, text)
            case LLMFullResponseStartFrame():
                pass  # no later processor needs it
            case InterruptionFrame():
                self._begin_reply(None)
                await self.push_frame(frame, direction)
            case _:
                await self.push_frame(frame, direction)

    def _begin_reply(self, turn: TurnId | None, asked: Asked | None = None) -> None:
        self._turn = turn
        self._asked = asked or Asked()
        self._is_brief = False
        self._has_words = False
        self._is_second_try = False
        self._said: list[str] = []
        self._begin_try()

    def _begin_try(self) -> None:
        self._plain = PlainText(char=self._rules.npc_name, user=self._asked.speaker_name)
        self._splitter = self._rules.new_splitter()
        self._decide = self._rules.new_check(self._asked)
        self._unsaid: list[Unsaid] = []
        self._is_cut = False

    async def _take(self, text: str) -> None:
        if self._turn is None:
            return
        if not self._has_words and text.strip():
            self._has_words = True
            self._speaker.mark(self._turn, Stage.FIRST_TOKEN)
        for piece in self._splitter.push(self._plain.push(text)):
            await self._say(piece)

    async def _retract(self) -> None:
        """Drop what was said of this reply. An interruption stops the voice, which may be saying it."""
        if self._turn is None:
            return
        was_said, self._said = self._said, []
        self._has_words = False
        self._begin_try()
        if was_said:
            self._speaker.retract(self._turn)
            await self.push_frame(InterruptionFrame())
            await self.push_frame(RetractFrame())

    async def _end_reply(self) -> None:
        if self._turn is None:
            return
        for piece in (*self._splitter.push(self._plain.flush()), *self._splitter.flush()):
            await self._say(piece)
        if not self._has_words:
            # A failed service has reported its error already, and the first one counts.
            self._speaker.fail(self._turn, "the model returned no words")
        elif not self._said:
            if self._unsaid and not (self._is_cut or self._is_second_try):
                await self._try_again(self._turn)
                return
            await self._say_stand_in(self._turn)
        elif not self._is_cut and (
            leaves_out(said := " ".join(self._said), self._asked) or (self._unsaid and only_calls(said, self._asked))
        ):
            # For example "Juniper?" was said, but nothing that the NPC was told about her.
            await self._say_stand_in(self._turn)
        await self.push_frame(ReplyEndFrame(self._turn, withheld=self._has_words and not self._said))
        if self._said:
            self._speaker.listener(ReplyKnown(self._speaker.npc, self._turn, " ".join(self._said)))
        self._turn = None

    async def _say_given(self, turn: TurnId, text: str) -> None:
        """Say the DM's words verbatim and unchecked."""
        self._begin_reply(turn)
        self._has_words = True
        for piece in (*self._splitter.push(text), *self._splitter.flush()):
            if piece.strip():
                await self._say_allowed(turn, piece.strip())
        await self._end_reply()

    async def _try_again(self, turn: TurnId) -> None:
        rejected = self._unsaid[0]
        self._is_second_try = True
        self._begin_try()
        fact = fact_about(self._asked) if rejected.fault is Fault.ASSISTANT else ""
        await self.push_frame(SecondTryFrame(turn, rejected, fact), FrameDirection.UPSTREAM)

    async def _say_stand_in(self, turn: TurnId) -> None:
        fault = self._unsaid[0].fault if self._unsaid else None
        fault = Fault.SAFETY if self._asked.flags else fault  # it must not be asked to say it again
        line = self._rules.stand_in(self._asked.question, fault, self._asked.told)
        if fault is Fault.ASSISTANT and (fact := fact_about(self._asked)):
            line = self._rules.new_check(self._asked)(fact).text or line
        if line:
            await self._say_allowed(turn, line)

    async def _say(self, piece: str) -> None:
        if self._is_cut or self._turn is None:
            return
        verdict = self._decide(piece)
        if verdict.fault is not None:
            self._unsaid.append(unsaid := Unsaid(piece, verdict.fault))
            self._speaker.listener(SentenceRejected(self._speaker.npc, self._turn, unsaid))
            if verdict.fault in ENDS_REPLY:
                # The rest depends on this piece, and another try will reach it again.
                self._unsaid, self._is_cut = [unsaid], True
        elif text := verdict.text.strip():
            await self._say_allowed(self._turn, text)
            self._is_cut = self._is_brief and text.rstrip("\"'”’»“").endswith(_ENDS)

    async def _say_allowed(self, turn: TurnId, text: str) -> None:
        if not self._said:
            self._speaker.mark(turn, Stage.FIRST_SENTENCE)
        self._said.append(text)
        await self._speak(turn, text)

    async def _speak(self, turn: TurnId | None, text: str) -> None:
        spoken = self._rules.spoken_form(text)
        await self.push_frame(PieceFrame(turn, text, spoken))
        await self.push_frame(TTSSpeakFrame(spoken, append_to_context=False))
        await self.push_frame(PieceEndFrame(turn))
