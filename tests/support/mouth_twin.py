"""A mouth that follows the protocol of `glyphoxa.npc.mouth`, with replies from a test and no sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Stage
from glyphoxa.npc.mouth import FailedEarly, Finished, Listener, Marked, SentenceStarted
from glyphoxa.prompt.prompt import Prompt


class MouthTwin:
    """Answers "Aye." to everything, or what it was given; is heard when released, ends when told to."""

    says_given_words = True

    def __init__(self, npc: Npc, listener: Listener, now_ms: Callable[[], int]) -> None:
        self.npc, self._listener, self._now_ms = npc, listener, now_ms
        self.asked: list[Prompt] = []
        self.primed: list[Prompt] = []
        self.fillers: list[str] = []
        self.given_up: list[TurnId] = []
        self.relaxed = 0
        self.turn: TurnId | None = None
        self.is_heard = False
        self.is_held = False
        self.is_slow = False
        """It is not heard when it is released, but when it `sounds`."""
        self.is_closed = False
        self.reply, self._given = "Aye.", ""

    @property
    def words(self) -> str:
        """Return the words that it says now."""
        return self._given or self.reply

    async def start(self) -> None: ...

    def prime(self, prompt: Prompt) -> None:
        self.primed.append(prompt)

    async def wait_until_primed(self) -> None: ...

    def relax(self) -> None:
        self.relaxed += 1

    def begin(self, turn: TurnId, prompt: Prompt) -> None:
        assert self.turn is None
        self.turn, self.is_heard, self.is_held = turn, False, False
        self.asked.append(prompt)
        self._given = prompt.words
        self._listener(Marked(self.npc.id, turn, Stage.FIRST_TOKEN, self._now_ms()))

    def release(self, turn: TurnId) -> None:
        assert turn == self.turn
        if not self.is_slow:
            self.sounds()

    def sounds(self) -> None:
        """The first sound of the reply is there."""
        turn = self.turn
        assert turn is not None
        self.is_heard = True
        self._listener(Marked(self.npc.id, turn, Stage.FIRST_AUDIO, self._now_ms()))
        self._listener(SentenceStarted(self.npc.id, turn, self.words, self._now_ms()))

    def hold(self, turn: TurnId) -> None:
        assert turn == self.turn
        self.is_held = True
        self._listener(Marked(self.npc.id, turn, Stage.SILENCED, self._now_ms()))

    def resume(self, turn: TurnId) -> None:
        assert self.is_held
        self.is_held = False

    def cancel(self, turn: TurnId) -> None:
        if turn == self.turn:
            self.end(heard=self.words.split()[0] if self.is_heard else "", interrupted=self.is_heard)

    def fail_early(self) -> None:
        """There is no reply, and it may not be heard yet."""
        assert self.turn is not None
        self._listener(FailedEarly(self.npc.id, self.turn, self._now_ms()))

    def give_up(self, turn: TurnId) -> None:
        self.given_up.append(turn)
        self.cancel(turn)

    def fill(self, turn: TurnId, text: str) -> None:
        self.fillers.append(text)

    def end(self, *, heard: str | None = None, interrupted: bool = False) -> None:
        """The reply is over."""
        assert self.turn is not None
        turn, self.turn = self.turn, None
        said = self.words if heard is None else heard
        self._listener(Finished(self.npc.id, turn, self.words, said, 500, interrupted, self._now_ms()))

    def fail(self, error: str, *, heard: str = "") -> None:
        """The reply is over, and not whole."""
        assert self.turn is not None
        turn, self.turn = self.turn, None
        ended = Finished(self.npc.id, turn, heard, heard, 300 if heard else 0, interrupted=False, at_ms=self._now_ms())
        self._listener(replace(ended, error=error))

    async def close(self) -> None:
        self.is_closed = True
