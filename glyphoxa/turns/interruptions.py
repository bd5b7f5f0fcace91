"""Players' voices and words over an NPC that is heard: what `glyphoxa.turns.barge_in` decides, done to its turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from glyphoxa.domain.ids import PlayerId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.barge_in import BargeIn, OverVoice
from glyphoxa.turns.effects import Effect, GoOn, Hold
from glyphoxa.turns.following import FollowUps
from glyphoxa.turns.open_turns import OpenTurns
from glyphoxa.turns.turn import Turn


@dataclass(slots=True)
class Interruptions:
    turns: OpenTurns
    follow_ups: FollowUps
    barge_in: BargeIn = field(default_factory=BargeIn)

    @property
    def due_ms(self) -> int | None:
        """When `by_voice` is worth asking again because time has passed; None for not before something happens."""
        return self.barge_in.due_ms if self.turns.heard is not None else None

    def by_words(self, player: PlayerId, text: str, *, at_ms: int, is_typed: bool = False) -> list[Effect]:
        """They say this, as far as it is known."""
        heard = self.turns.heard
        cuts = self.barge_in.cuts_off(player, text)
        if heard is None or not cuts or (is_typed and heard.player != player):
            return []
        return self._cut(heard, at_ms)

    def by_voice(self, *, at_ms: int) -> list[Effect]:
        """Whatever is said, if anything."""
        heard = self.turns.heard
        if heard is None:
            self.barge_in.npc_is_silent()
            return []
        match self.barge_in.step(at_ms=at_ms):
            case OverVoice.HOLD:
                return [Hold(heard.id, heard.npc, self.barge_in.voice_ms)]
            case OverVoice.GO_ON:
                return [GoOn(heard.id, heard.npc)]
            case OverVoice.CUT:
                return self._cut(heard, at_ms)
            case None:
                return []

    def _cut(self, heard: Turn, at_ms: int) -> list[Effect]:
        self.turns.moved_ms = at_ms
        self.barge_in.npc_is_silent()
        return [self.turns.cancel(heard, Outcome.INTERRUPTED), *self.follow_ups.call_off()]
