"""The interface of voice engines, which give an NPC its words and its voice, and an engine with a fallback.

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

With a fallback (`RescuedMouth`), no turn is silent because the first engine failed:

    begin ──▶ first ── fails before a word is heard ──▶ second answers the same turn
                    ── fails in mid-reply ────────────▶ second says so in character, if it has such a line
                    ── fails n times in a row, or is too late ──▶ second answers from now on

Both get the same prompts, so either knows the conversation and what the NPC may know. Both are opened with the NPC:
nothing is loaded during a turn. If the fallback has another voice, it stays for the rest of the session, because a
voice that changes back and forth is worse than one change. A provider of a chain is tried again after a cooldown. The
second engine may itself have a fallback.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from loguru import logger

from glyphoxa.actors.limits import CircuitBreaker
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import NpcId, TurnId
from glyphoxa.domain.turn_record import NO_PROMPT, AssembledPrompt, Stage, TierChoice, Unsaid
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


# A mouth with a fallback.

MAX_FAILURES: Final = 5
COOLDOWN_MS: Final = 30_000
_TRIES: Final = 3
"""Successful tries after a cooldown until the first engine is used again."""
_FOR_EVER_MS: Final = sys.maxsize


@dataclass(slots=True)
class _Turn:
    """The current turn of a mouth with a fallback.

    Attributes:
        why: Why the first engine failed.
        heard: The part of the first engine's answer that was heard before it failed.
    """

    id: TurnId
    prompt: Prompt
    mouth: Mouth
    is_released: bool = False
    is_held: bool = False
    is_cancelled: bool = False
    is_late: bool = False
    why: str = ""
    heard: Finished | None = None


class RescuedMouth:
    """A `Mouth` with a fallback.

    Protocol of use: build both mouths with the listeners `from_first` and `from_second`, then `join` them.

    Args:
        returns: Whether the first engine is tried again after a cooldown. Otherwise the second stays.
    """

    def __init__(
        self,
        name: str,
        listener: Listener,
        now_ms: Callable[[], int],
        *,
        returns: bool = False,
    ) -> None:
        self._name = name
        self._listener = listener
        self._returns = returns
        cooldown_ms = COOLDOWN_MS if returns else _FOR_EVER_MS
        self._breaker = CircuitBreaker(
            now_ms, max_failures=MAX_FAILURES, cooldown_ms=cooldown_ms, successes_to_close=_TRIES
        )
        self._turn: _Turn | None = None
        self._first: Mouth
        self._second: Mouth | None = None

    def join(self, first: Mouth, second: Mouth) -> None:
        self._first, self._second = first, second

    @property
    def says_given_words(self) -> bool:
        return (self._second or self._first).says_given_words

    async def start(self) -> None:
        await self._first.start()
        if self._second is not None:
            try:
                await self._second.start()
            except GlyphoxaError as error:
                # The first engine may work without it.
                logger.warning("{} has no fallback engine: {}", self._name, error)
                await self._second.close()
                self._second = None

    def prime(self, prompt: Prompt) -> None:
        self._first.prime(prompt)
        # If the first engine is used again, the fallback is rarely needed, so it only reads the persona.
        if self._second is not None and (prompt.is_bare or not self._returns or self._breaker.is_open):
            self._second.prime(prompt)

    async def wait_until_primed(self) -> None:
        await asyncio.gather(*(mouth.wait_until_primed() for mouth in self._both()))

    def relax(self) -> None:
        for mouth in self._both():
            mouth.relax()

    def begin(self, turn: TurnId, prompt: Prompt) -> None:
        if self._turn is not None:
            self.cancel(self._turn.id)
        words_alone = bool(prompt.words) and not self._first.says_given_words
        # The first engine is skipped while it rests.
        is_second = words_alone or (self._second is not None and not self._breaker.allows_call())
        second = self._second if is_second else None
        mouth = second or self._first
        self._turn = _Turn(turn, prompt, mouth)
        mouth.begin(turn, prompt)

    def release(self, turn: TurnId) -> None:
        if (now := self._of(turn)) is not None:
            now.is_released = True
            now.mouth.release(turn)

    def hold(self, turn: TurnId) -> None:
        if (now := self._of(turn)) is not None:
            now.is_held = True
            now.mouth.hold(turn)

    def resume(self, turn: TurnId) -> None:
        if (now := self._of(turn)) is not None:
            now.is_held = False
            now.mouth.resume(turn)

    def cancel(self, turn: TurnId) -> None:
        if (now := self._of(turn)) is not None:
            now.is_cancelled = True
            if now.mouth is self._first:
                self._breaker.cancelled()
            now.mouth.cancel(turn)

    def give_up(self, turn: TurnId) -> None:
        if (now := self._of(turn)) is not None:
            now.is_late = True
            now.mouth.give_up(turn)

    def fill(self, turn: TurnId, text: str) -> None:
        if (now := self._of(turn)) is not None:
            now.mouth.fill(turn, text)

    async def close(self) -> None:
        for mouth in self._both():
            await mouth.close()

    def from_first(self, event: MouthEvent) -> None:
        now = self._of(event.turn)
        if now is None or now.mouth is not self._first:
            return  # a late event of a cancelled turn
        match event:
            case FailedEarly(error=error) if self._second is not None:
                self._rescue(now, self._second, error)
            case Finished(error=error) if error and not now.is_cancelled and self._second is not None:
                if event.heard:
                    now.heard = event
                self._rescue(now, self._second, error)
            case Finished(error=error):
                if not error and not now.is_cancelled:
                    self._breaker.succeeded()
                self._over(event)
            case _:
                self._listener(event)

    def from_second(self, event: MouthEvent) -> None:
        now = self._of(event.turn)
        if now is None or now.mouth is not self._second:
            return
        match event:
            case Injected() if now.why:
                omitted = (*event.prompt.omitted, f"the first engine's answer: {now.why}")
                self._listener(replace(event, prompt=replace(event.prompt, omitted=omitted)))
            case Finished() if now.heard is not None:
                begun = now.heard
                self._over(replace(begun, at_ms=event.at_ms))
            case Finished():
                self._over(event)
            case _:
                self._listener(event)

    def _rescue(self, now: _Turn, second: Mouth, why: str) -> None:
        first, now.mouth, now.why = now.mouth, second, why
        first.cancel(now.id)
        if now.is_late:
            self._breaker.trip()
        else:
            self._breaker.failed()
        logger.warning("{}: the fallback engine answers turn {}: {}", self._name, now.id, why)
        second.begin(now.id, now.prompt)
        if now.is_released:
            second.release(now.id)
        if now.is_held:
            second.hold(now.id)
        if now.is_late or now.heard is not None:
            # It is too late for another answer, so the fallback only says a line in character.
            second.give_up(now.id)

    def _over(self, event: Finished) -> None:
        self._turn = None
        self._listener(event)

    def _both(self) -> list[Mouth]:
        return [self._first, *([self._second] if self._second is not None else [])]

    def _of(self, turn: TurnId) -> _Turn | None:
        return self._turn if self._turn is not None and self._turn.id == turn else None
