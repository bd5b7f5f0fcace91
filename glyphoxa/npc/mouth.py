"""The interface of voice engines: anything that gives an NPC its words and its voice.

Protocol of use, for one NPC:

1. Call `start()` once. Call `prime(prompt)` whenever there is time: it makes a later `begin` with the same beginning
   cheap (prompt cache), is never audible and yields to a `begin`.
2. `begin(turn, prompt)` starts generation and synthesis, but no playback. If the prompt has `words`, these are said.
3. `release(turn)` starts playback; `hold(turn)` silences it until `resume(turn)`; `cancel(turn)` stops the turn at any
   point. These names are those of turn taking's effects (`glyphoxa.turns.turn`).
4. The mouth reports to the `listener` it was built with, in order: `Marked`, `Injected`, `SentenceStarted` and
   `SentenceRejected` events, then exactly one `Finished` for each begun turn, also after `cancel`. `FailedEarly` comes
   at most once, before the release.

`begin` during a turn first cancels that turn. Calls return at once; the mouth works in its own tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn import NO_PROMPT, AssembledPrompt, Stage, TierChoice, Unsaid
from glyphoxa.prompt.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Marked:
    """A stage of this turn was reached at `at_ms` (Unix epoch)."""

    npc: NpcId
    turn: TurnId
    stage: Stage
    at_ms: int


@dataclass(frozen=True, slots=True)
class Injected:
    """The prompt as it is sent."""

    npc: NpcId
    turn: TurnId
    prompt: AssembledPrompt = NO_PROMPT
    tier: TierChoice | None = None


@dataclass(frozen=True, slots=True)
class SentenceStarted:
    """This piece of the reply is heard from now on (for captions)."""

    npc: NpcId
    turn: TurnId
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class SentenceRejected:
    """A sentence of the reply was rejected. Nobody hears it; only the turn's record contains it."""

    npc: NpcId
    turn: TurnId
    unsaid: Unsaid


@dataclass(frozen=True, slots=True)
class ReplyKnown:
    """The whole reply is generated but not yet played. The engine is free meanwhile."""

    npc: NpcId
    turn: TurnId
    text: str


@dataclass(frozen=True, slots=True)
class FailedEarly:
    """The answer failed before its release, for the reason `error`. The release plays an excuse."""

    npc: NpcId
    turn: TurnId
    at_ms: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a begun turn.

    Attributes:
        reply: Everything generated and allowed.
        heard: The part of it that was played, to the word.
        audio_ms: Duration of what was played.
        interrupted: It was cancelled while being heard.
        withheld: The safety filter left nothing to say.
        error: Why there is no (complete) reply; empty on success.
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
"""Called in the event loop; must return at once (put the event into a mailbox)."""


class Mouth(Protocol):
    """An NPC's engine. See the module's protocol of use."""

    @property
    def says_given_words(self) -> bool:
        """Whether it can say `Prompt.words` verbatim."""
        ...

    async def start(self) -> None: ...

    def prime(self, prompt: Prompt) -> None: ...

    async def wait_until_primed(self) -> None:
        """Wait until the last `prime` has taken effect. Returns at once if there is nothing to prime."""
        ...

    def relax(self) -> None:
        """Stop priming, because another NPC needs the machine."""
        ...

    def begin(self, turn: TurnId, prompt: Prompt) -> None: ...

    def release(self, turn: TurnId) -> None: ...

    def hold(self, turn: TurnId) -> None:
        """Fall silent at once and report `Stage.SILENCED`. Nothing of the reply is lost."""
        ...

    def resume(self, turn: TurnId) -> None: ...

    def cancel(self, turn: TurnId) -> None: ...

    def give_up(self, turn: TurnId) -> None:
        """Fail a turn whose answer is too late, with an excuse in character if there is one."""
        ...

    def fill(self, turn: TurnId, text: str) -> None:
        """Play a short filler now, if nothing of this turn has been heard yet."""
        ...

    async def close(self) -> None: ...
