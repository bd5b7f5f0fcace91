"""Adds an NPC's hot context to a copy of the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InterimTranscriptionFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMTextFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import LLMService

from glyphoxa.domain.ids import PlayerId, TurnId
from glyphoxa.domain.turn_record import Asked, Fault, Stage
from glyphoxa.npc.mouth import Injected
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.prompt.prompt import (
    USUAL_SHAPE,
    CheckNotes,
    HotContext,
    HotContextSource,
    Prompt,
    PromptShape,
    compose,
    composed,
    direction_of,
)
from glyphoxa.prompt.wording import Cue, cue_for
from glyphoxa_processors.frames import (
    AnotherTryFrame,
    BeginFrame,
    GivenWordsFrame,
    PrimeFrame,
    ReplyBeginsFrame,
    SecondTryFrame,
)
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.tools import declare

Shrug = Callable[[Sequence[str]], str]
"""Chooses one of these lines."""


class HotContextInjector(FrameProcessor):
    """Turns a `BeginFrame` into the model's context, without changing the given prompt.

    It comes first in a mouth, so all errors of services pass it on their way up. It assigns each to its turn: an error
    of the model ends the reply, any other one costs at most a piece.

    Args:
        speaker: The last processor of the same mouth.
        tools: Tools for the model; declared according to the turn's tier.
        shrug: Chooses a line if the NPC knows nothing about the question, instead of asking the model. None: always ask
            the model.

    Attributes:
        reads_ahead: Whether a stage reads the prompt of a `PrimeFrame`. Otherwise it is passed on as it is.
        check_notes: Asked if it is uncertain whether the NPC knows the answer. None: nobody is.
    """

    def __init__(
        self,
        source: HotContextSource,
        speaker: Speaker,
        *,
        tools: Toolbox | None = None,
        shrug: Shrug | None = None,
        shape: PromptShape = USUAL_SHAPE,
    ) -> None:
        super().__init__()
        self.reads_ahead = True
        self.check_notes: CheckNotes | None = None
        self._source = source
        self._speaker = speaker
        self._tools = tools
        self._shrug = shrug
        self._shape = shape
        self._turn: TurnId | None = None
        self._asked: Prompt | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case BeginFrame(turn=turn, prompt=prompt):
                self._turn = turn
                await self._answer(turn, prompt)
                return
            case PrimeFrame(prompt=prompt) if self.reads_ahead:
                hot = self._source.gather_nowait(prompt.npc, prompt.question, asker=prompt.speaker_name)
                frame = PrimeFrame(composed(prompt, hot, self._shape).prompt)
            case SecondTryFrame():
                await self._ask_once_more(frame)
                return
            case InterruptionFrame():
                self._turn = self._asked = None
            case ErrorFrame(error=error, processor=source) if self._turn is not None:
                ends_reply = isinstance(source, LLMService)
                (self._speaker.fail if ends_reply else self._speaker.note_trouble)(self._turn, error)
            case _:
                pass
        await self.push_frame(frame, direction)

    async def _answer(self, turn: TurnId, prompt: Prompt) -> None:
        if prompt.words:
            self._speaker.mark(turn, Stage.CONTEXT_READY)
            await self.push_frame(GivenWordsFrame(turn, prompt.words))
            return
        asked = await compose(self._source, prompt, self._shape)
        self._speaker.mark(turn, Stage.CONTEXT_READY)
        if asked.hot.doubt is not None and self.check_notes is not None and not prompt.direction:
            by_model = await self.check_notes(asked.hot.doubt.notes)
            asked = composed(prompt, asked.hot.resolved(by_model), self._shape)
        hot = asked.hot
        line = self._shrug(hot.shrugs) if self._shrug is not None and hot.shrugs and not prompt.direction else ""
        tier = None if line else prompt.tier  # no engine is asked
        self._speaker.listener(Injected(prompt.npc, turn, asked.assembled, tier))
        self._asked = _with_cue(asked.prompt, "brief") if prompt.is_brief else asked.prompt
        await self.push_frame(ReplyBeginsFrame(turn, as_asked(prompt, hot), prompt.is_brief, prompt.tier))
        if line:
            await self.push_frame(LLMTextFrame(line))
            await self.push_frame(LLMFullResponseEndFrame())
            return
        tools = declare(self._tools, prompt.tier)
        await self.push_frame(LLMContextFrame(context=as_context(self._asked, tools=tools)))

    async def _ask_once_more(self, again: SecondTryFrame) -> None:
        """Ask with the same prompt again, after a rejection.

        A cue is added if the answer needs another language, a fact or a real dice roll. The service varies the rest.
        """
        if self._asked is None or again.turn != self._turn:
            return
        asked = self._asked
        if again.rejected.fault is Fault.LANGUAGE:
            asked = _with_cue(asked, "language")
        elif again.fact:
            asked = _with_cue(asked, "fact", fact=again.fact)
        tools = declare(self._tools, asked.tier) if again.rejected.fault is Fault.DICE else None
        await self.push_frame(AnotherTryFrame(context=as_context(asked, tools=tools)))


def _with_cue(prompt: Prompt, which: Cue, **values: str) -> Prompt:
    """Append a cue in the language of the question."""
    if not (cue := cue_for(prompt.question, which, **values)):
        return prompt
    *before, last = prompt.messages
    return replace(prompt, messages=(*before, replace(last, content=f"{last.content}\n{cue}")))


def as_context(prompt: Prompt, *, tools: Any = None) -> LLMContext:
    messages: list[Any] = [{"role": message.role, "content": message.content} for message in prompt.messages]
    return LLMContext(messages, tools=tools) if tools is not None else LLMContext(messages)


def as_asked(prompt: Prompt, hot: HotContext) -> Asked:
    """Return the data for judging the reply's sentences."""
    return Asked(
        question=prompt.question,
        speaker_name=prompt.speaker_name,
        facts=(*hot.facts, prompt.direction) if prompt.direction else hot.facts,
        # The NPC must not doubt the DM's direction.
        not_known=() if prompt.direction else hot.not_known,
        remembered=tuple(filter(None, (*hot.remembered, *prompt.summary, hot.past))),
        identity=(*hot.identity, *hot.glossary, *hot.scenes.values()),
        kept=(*hot.kept, *hot.guarded),
        told=() if prompt.direction else hot.told,
        before=prompt.before,
        direction=direction_of(prompt, hot),
        flags=prompt.flags,
    )


# Starts recall while the player is still speaking.


OnPartial = Callable[[PlayerId, str], None]
"""Takes a corrected partial transcript and starts work. Must return at once."""


class KeywordPrefetcher(FrameProcessor):
    """Passes each partial transcript to `on_partial`. Placed after the corrector, so names are correct."""

    def __init__(self, player: PlayerId, on_partial: OnPartial) -> None:
        super().__init__()
        self._player = player
        self._on_partial = on_partial

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InterimTranscriptionFrame):
            try:
                self._on_partial(self._player, frame.text)
            except Exception as error:  # pre-fetch is optional and must not cost the player a turn
                await self.push_error(f"pre-fetch failed: {error}", exception=error)
        await self.push_frame(frame, direction)
