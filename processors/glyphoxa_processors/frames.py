"""The frames that are ours. An interruption drops those that are still on their way, except `TurnOverFrame`."""

from __future__ import annotations

from dataclasses import dataclass

from pipecat.frames.frames import DataFrame, LLMContextFrame, SystemFrame

from glyphoxa.context.prompt import Prompt
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn import TierChoice, Unsaid
from glyphoxa.judgement.reply import Asked


@dataclass
class BeginFrame(DataFrame):
    """Answer this prompt."""

    turn: TurnId
    prompt: Prompt


@dataclass
class PrimeFrame(DataFrame):
    """A prompt that will probably be asked: a service that keeps a prompt cache may read it in."""

    prompt: Prompt


@dataclass
class FillerFrame(DataFrame):
    """Synthesise this sound and keep it for later."""

    text: str


@dataclass
class ReplyBeginsFrame(DataFrame):
    """The model's tokens that follow belong to this turn, and answer `asked`.

    Attributes:
        is_brief: With one sentence.
        tier: How deep the turn may look; None where nobody chose.
    """

    turn: TurnId
    asked: Asked
    is_brief: bool = False
    tier: TierChoice | None = None


@dataclass
class GivenWordsFrame(DataFrame):
    """Say these words as they are: the DM gave them."""

    turn: TurnId
    text: str


@dataclass
class SecondTryFrame(DataFrame):
    """Upstream, from what checks a reply: nothing of it may be said, so the model is asked once more.

    Attributes:
        rejected: The first sentence that may not be said, and why.
    """

    turn: TurnId
    rejected: Unsaid


@dataclass
class AnotherTryFrame(LLMContextFrame):
    """What was asked before, of whose answer nothing may be said."""


@dataclass
class PieceFrame(DataFrame):
    """The sound that follows says `text`, of this turn's reply; of a filler when `turn` is None."""

    turn: TurnId | None
    text: str


@dataclass
class PieceEndFrame(DataFrame):
    """All the sound of the latest piece has passed."""

    turn: TurnId | None


@dataclass
class ReplyEndFrame(DataFrame):
    """Every piece of the reply has passed. `withheld`: there were words and none of them may be said."""

    turn: TurnId
    withheld: bool = False


@dataclass
class TurnOverFrame(SystemFrame):
    """Upstream, from the ear's end: the player's turn is over, and what was said after `segment` is another.

    Attributes:
        segment: Of the detector's reports that speech began, the last one of that turn, counted from 1.
    """

    segment: int
