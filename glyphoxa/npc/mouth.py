"""The seam over voice engines: whatever gives an NPC its words and its voice.

Protocol of use, for one NPC:

1. `start()` once; `prime(prompt)` whenever there is time: it makes a later `begin` with the same beginning
   cheap (prompt cache), is never audible and gives way to a `begin`.
2. `begin(turn, prompt)` starts to think and to synthesise; nothing is played yet. Where the prompt has `words`, they
   are what is said.
3. `release(turn)` lets it be heard; `hold(turn)` silences it until `go_on(turn)`; `cancel(turn)` stops it at any point,
   heard, held or neither.
4. The mouth reports through the `listener` given to it when it was built: in order, `Marked`,
   `Injected`, `SentenceStarted` and `SentenceRejected` events, then exactly one `Finished` per begun turn, also after
   `cancel`. `FailedEarly` comes at most once, before the release.

`begin` while a turn is running cancels that one first. Calls return at once; work happens in the mouth's own tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.context.prompt import Prompt
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.recalled import Recalled
from glyphoxa.domain.turn import PromptPart, Rejected, Stage, TierChoice, Unsaid


@dataclass(frozen=True, slots=True)
class Marked:
    """A stage was reached in this turn, at `at_ms` (Unix epoch)."""

    npc: NpcId
    turn: TurnId
    stage: Stage
    at_ms: int


@dataclass(frozen=True, slots=True)
class Injected:
    """The hot context that went into the prompt: what was recalled, what was left out, the prompt as sent."""

    npc: NpcId
    turn: TurnId
    recalled: tuple[Recalled, ...]
    omitted: tuple[str, ...]
    prompt_text: str
    rejected: tuple[Rejected, ...] = ()
    parts: tuple[PromptPart, ...] = ()
    tier: TierChoice | None = None


@dataclass(frozen=True, slots=True)
class SentenceStarted:
    """From now on this piece of the reply is heard: for captions."""

    npc: NpcId
    turn: TurnId
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SentenceRejected:
    """A sentence of the reply may not be said: nobody hears it, and it stands in the turn's record alone."""

    npc: NpcId
    turn: TurnId
    unsaid: Unsaid


@dataclass(frozen=True, slots=True)
class ReplyKnown:
    """The whole reply has been thought of; it will be heard for a while yet. The engine has time until then."""

    npc: NpcId
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True)
class FailedEarly:
    """There is no answer, and the turn was not released yet: what is heard at its release is an excuse."""

    npc: NpcId
    turn: TurnId
    at_ms: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a begun turn.

    Attributes:
        reply: All that was generated and allowed to be said.
        heard: The part of it that was played, to the word.
        audio_ms: How much was played.
        interrupted: `cancel` came while it was being heard.
        withheld: The safety filter left nothing to say.
        error: Why there is no (whole) reply; empty when all went well.
        at_ms: When it ended.
    """

    npc: NpcId
    turn: TurnId
    reply: str
    heard: str
    audio_ms: int
    interrupted: bool
    at_ms: int
    withheld: bool = False
    error: str = ""


MouthEvent = Marked | Injected | SentenceStarted | SentenceRejected | ReplyKnown | FailedEarly | Finished
Listener = Callable[[MouthEvent], None]
"""Called in the event loop; must return at once (put it into a mailbox)."""


class Mouth(Protocol):
    """An NPC's engine. See the module's protocol of use."""

    @property
    def says_given_words(self) -> bool:
        """Whether it can say `Prompt.words` as they are."""
        ...

    async def start(self) -> None: ...

    def prime(self, prompt: Prompt) -> None: ...

    async def wait_until_primed(self) -> None:
        """Until the last `prime` has taken effect. At once where there is nothing to prime."""
        ...

    def relax(self) -> None:
        """Stop priming: another NPC is needed now, and the machine with it."""
        ...

    def begin(self, turn: TurnId, prompt: Prompt) -> None: ...

    def release(self, turn: TurnId) -> None: ...

    def hold(self, turn: TurnId) -> None:
        """Be silent at once, and say so by `Stage.SILENCED`. Nothing of the reply is lost."""
        ...

    def go_on(self, turn: TurnId) -> None: ...

    def cancel(self, turn: TurnId) -> None: ...

    def give_up(self, turn: TurnId) -> None:
        """Its answer comes too late. It ends as one that failed: with a line in character, if there is one."""
        ...

    def fill(self, turn: TurnId, text: str) -> None:
        """Play a short sound in character now, if nothing of this turn has been heard yet."""
        ...

    async def close(self) -> None: ...
