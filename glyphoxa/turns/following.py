"""What NPCs say to the words of other NPCs.

Rules:

1. Where a player calls two NPCs, the first answers and the second *reacts*: to what was heard of the answer, right
   behind it, once. The reaction is thought of while the answer is being heard.
2. Where the DM lets them (`most_in_a_row`), an NPC whose answer calls another one is answered by it, and so on for so
   many answers without a player. Whoever a player waits for goes first.
3. Nobody asked for these but NPCs. A player's words call off what was not heard of them, as does a change of scene.
   They are never in the way of a player's question.
4. What was not heard was not said: an answer that was cut off has no reaction and calls nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.domain.heard import Draft, Heard
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Outcome
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.effects import Effect
from glyphoxa.turns.open_turns import OpenTurns
from glyphoxa.turns.question import SpokenQuestion, same_words
from glyphoxa.turns.questions import Questions
from glyphoxa.turns.turn import Phase, Turn


@dataclass(slots=True)
class FollowUps:
    """See the module's rules.

    Args:
        most_in_a_row: Answers of NPCs to NPCs without a player between them; 0: they talk to players alone. It may be
            changed at any time.
    """

    questions: Questions
    turns: OpenTurns
    most_in_a_row: int = 0

    def prepare(self, lead: Turn, reply: str, *, at_ms: int) -> list[Effect]:
        """All of an answer is known, and little of it was heard: whoever reacts to it may think."""
        second = lead.second
        if second is None or not self.questions.may_speak(second) or lead.cancelled_as or self.turns.to(second):
            return []
        return [self.turns.begin(self._open(lead, second, reply, at_ms))]

    def after(self, turn: Turn, heard: str, *, at_ms: int) -> tuple[list[Effect], tuple[Turn, Addressed] | None]:
        """A turn is over. What must be done, and the turn that follows it, to be committed."""
        prepared = next((other for other in self.turns if other.behind == turn.id), None)
        is_whole = turn.cancelled_as is None and turn.phase is Phase.HEARD
        effects: list[Effect] = []
        if prepared is not None and not (is_whole and same_words(prepared.question.text, heard)):
            effects.append(self.turns.cancel(prepared, None))
            prepared = None
        addressed = self._next(turn, heard) if is_whole else None
        if addressed is None or addressed.npc is None:
            return effects, None
        if prepared is None:
            if self.turns.to(addressed.npc):
                return effects, None
            prepared = self._open(turn, addressed.npc, heard, at_ms)
        prepared.draft = _draft(turn.npc, heard, at_ms)
        return effects, (prepared, addressed)

    def call_off(self) -> list[Effect]:
        """A player said something: what NPCs would say to each other and nobody heard is not said."""
        return [
            self.turns.cancel(turn, None if turn.phase is Phase.PREPARING else Outcome.SUPERSEDED)
            for turn in self.turns
            if turn.answers is not None and turn.phase is not Phase.HEARD and turn.cancelled_as is None
        ]

    def _next(self, turn: Turn, heard: str) -> Addressed | None:
        """Who answers these words, and why."""
        name = self.questions.names[turn.npc]
        if turn.second is not None and self.questions.may_speak(turn.second):
            return Addressed(turn.second, f"called together with {name}")
        if turn.n_in_a_row >= self.most_in_a_row or self.turns.floor.hears_players:
            return None
        npc = self.questions.called_by(turn.npc, heard)
        return Addressed(npc, f"{name} called {self.questions.names[npc]}") if npc is not None else None

    def _open(self, turn: Turn, npc: NpcId, words: str, at_ms: int) -> Turn:
        opened = self.turns.open(npc, _draft(turn.npc, words, at_ms), SpokenQuestion((words,)))
        opened.answers = turn.npc
        opened.behind = turn.id if turn.second is not None else None
        opened.n_in_a_row = turn.n_in_a_row + 1
        return opened


def _draft(npc: NpcId, words: str, at_ms: int) -> Draft:
    """An NPC that is answered stands where a player does."""
    return Draft(PlayerId(npc), Heard(words, words, (), at_ms, at_ms), at_ms, at_ms)
