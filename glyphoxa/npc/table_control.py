"""Performs what the DM commands at an open table. A command that cannot be obeyed raises, and nothing of it is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, assert_never

from glyphoxa.domain.commands import (
    MOST_DIRECTED,
    MOST_IN_A_ROW,
    MOST_SAID,
    MOST_TURNS,
    Direct,
    EndSession,
    LetNpcsTalk,
    Mute,
    Pause,
    Puppet,
    SayAs,
    ShowControls,
    StopAll,
    TableCommand,
    Unmute,
    Unpause,
    WhisperTo,
)
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.events import PauseChanged, SessionEnds, Whispered
from glyphoxa.domain.heard import Draft, Heard
from glyphoxa.domain.ids import NpcId, PlayerId, SpeakerId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.npc.actor import Directed, NpcActor
from glyphoxa.npc.table import TableState
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.dm_controls import DmControls
from glyphoxa.turns.effects import Effect
from glyphoxa.turns.turn_taking import TurnTaking

THE_DM: Final = PlayerId("the DM")
"""Who speaks as an NPC. Nobody's seat: an id of a player has no space."""
_TOLD: Final[Mapping[type, str]] = {
    StopAll: "everybody was stopped",
    Pause: "the table is paused: nothing that is said is heard, answered or kept",
    Unpause: "the table is played on",
    EndSession: "the session ends, and the table closes",
}
_AS_THE_DM_HAS_IT: Final = "words that the DM gave it"


class TableControl:
    def __init__(self, state: TableState, turn_taking: TurnTaking, npcs: Mapping[NpcId, NpcActor]) -> None:
        self._state = state
        self._turn_taking = turn_taking
        self._npcs = npcs
        self._tell = state.events.tell
        self._changed: Callable[[DmControls], None] = lambda _: None

    @property
    def controls(self) -> DmControls:
        return self._turn_taking.questions.controls

    def obey(self, command: TableCommand, *, at_ms: int) -> tuple[str, list[Effect]]:
        """What was done, in words for the DM, and what is to be performed.

        Raises:
            InvalidInput: It cannot be obeyed.
        """
        self._check(command)
        self.controls.take(command)
        effects = self._effects(command, at_ms)
        match command:
            case Direct(npc):
                self._npcs[npc].mailbox.post(Directed(self.controls.direction(npc)))
            case WhisperTo(player, text):
                self._tell(Whispered(player, text, at_ms))
            case LetNpcsTalk(most):
                self._turn_taking.follow_ups.most_in_a_row = most
            case Pause() | Unpause():
                self._tell(PauseChanged(self.controls.is_paused, at_ms))
            case EndSession():
                self._tell(SessionEnds(at_ms))
            case _:
                pass
        if isinstance(command, Mute | Unmute | Direct | Puppet | LetNpcsTalk | Pause | Unpause):
            self._changed(self.controls)
        return self._told(command), effects

    def on_change(self, changed: Callable[[DmControls], None]) -> None:
        """Have this told when something else is in force than before."""
        self._changed = changed

    def spoken(self, draft: Draft) -> TableCommand | None:
        """What the DM commands with these words, if it is the DM who says them."""
        if draft.player not in self.controls.dms:
            return None
        return self.controls.commanded(self._turn_taking.questions.said(draft.player, draft.text))

    def finished(self, record: TurnRecord, *, was_heard: bool) -> None:
        """A turn is over: what stands for so many answers may stand no more."""
        npc = record.npc_id
        if npc is None or not was_heard or record.speaker_id == SpeakerId(THE_DM) or not self.controls.answered(npc):
            return
        self._npcs[npc].mailbox.post(Directed(self.controls.direction(npc)))
        self._changed(self.controls)

    def restore(self, controls: DmControls) -> None:
        """What was in force when this session was left. Before anybody speaks."""
        own = self.controls
        own.muted, own.directions, own.puppets = controls.muted, controls.directions, controls.puppets
        own.is_paused = controls.is_paused
        if controls.npc_to_npc is not None:
            own.npc_to_npc = self._turn_taking.follow_ups.most_in_a_row = controls.npc_to_npc
        for npc, direction in own.directions.items():
            self._npcs[npc].mailbox.post(Directed(direction.text))

    def _effects(self, command: TableCommand, at_ms: int) -> list[Effect]:
        match command:
            case Mute(npc):
                return self._turn_taking.silence(self._npcs if npc is None else (npc,), at_ms=at_ms)
            case StopAll() | Pause():
                return self._turn_taking.hush_all()
            case SayAs(npc, text):
                heard = Heard(text, text, (), at_ms, at_ms)
                draft = Draft(THE_DM, heard, at_ms, at_ms, typed=True)
                return self._turn_taking.say(npc, draft, Addressed(npc, _AS_THE_DM_HAS_IT), at_ms=at_ms)
            case _:
                return []

    def _check(self, command: TableCommand) -> None:
        match command:
            case SayAs() if self.controls.is_paused:
                raise InvalidInput("the table is paused, and nobody would be heard: resume it first")
            case SayAs(npc, text):
                self._must_be_here(npc)
                _must_fit(text, MOST_SAID, "an NPC is given to say")
                if not self._npcs[npc].says_given_words:
                    raise InvalidInput(
                        f"{self._name(npc)} speaks with the engine {self._npcs[npc].npc.engine!r}, which chooses its "
                        "own words; direct it instead"
                    )
            case Direct(npc, text, turns) if text:
                _must_fit(text, MOST_DIRECTED, "an NPC is directed with")
                if not 1 <= turns <= MOST_TURNS:
                    raise InvalidInput(f"a direction stands for 1 to {MOST_TURNS} turns, not for {turns}")
            case LetNpcsTalk(most) if not 0 <= most <= MOST_IN_A_ROW:
                raise InvalidInput(f"NPCs give each other 0 to {MOST_IN_A_ROW} answers in a row, not {most}")
            case WhisperTo(player, text):
                _must_fit(text, MOST_SAID, "a player is whispered")
                if not self._state.is_seated(player):
                    raise InvalidInput(
                        f"{self._state.name_of(player)} does not sit at the table, and would not read it"
                    )
            case _:
                pass

    def _must_be_here(self, npc: NpcId) -> None:
        present = self._turn_taking.present
        if npc not in present:
            raise InvalidInput(f"{self._name(npc)} is not in this scene; here: {self._names(present) or 'nobody'}")

    def _told(self, command: TableCommand) -> str:
        match command:
            case Mute(npc):
                return "everybody is muted" if npc is None else f"{self._name(npc)} is muted"
            case Unmute(npc):
                return "everybody may speak again" if npc is None else f"{self._name(npc)} may speak again"
            case SayAs(npc):
                return f"{self._name(npc)} says it as soon as the floor is free"
            case Direct(npc, text, turns) if text:
                return f"{self._name(npc)} is directed for {_answers(turns)}"
            case Direct(npc):
                return f"{self._name(npc)} is not directed any more"
            case Puppet(player, npc):
                who = self._state.name_of(player)
                if npc is None:
                    return f"what {who} says goes to whom it is meant for"
                return f"what {who} says goes to {self._name(npc)}"
            case StopAll() | Pause() | Unpause() | EndSession():
                return _TOLD[type(command)]
            case WhisperTo(player):
                return f"{self._state.name_of(player)} reads it"
            case LetNpcsTalk(most):
                return f"NPCs give each other {_n_answers(most)} in a row" if most else "NPCs answer players alone"
            case ShowControls():
                return self._in_force()
            case _:
                assert_never(command)

    def _in_force(self) -> str:
        controls = self.controls
        lines = [f"here: {self._names(self._turn_taking.present) or 'nobody'}"]
        if controls.is_paused:
            lines.append("the table is paused")
        if controls.muted:
            lines.append(f"muted: {self._names(controls.muted)}")
        lines += [
            f"directed for {_answers(direction.turns_left)}: {self._name(npc)}: {direction.text}"
            for npc, direction in controls.directions.items()
        ]
        lines += [
            f"what {self._state.name_of(player)} says goes to {self._name(npc)}"
            for player, npc in controls.puppets.items()
        ]
        if most := self._turn_taking.follow_ups.most_in_a_row:
            lines.append(f"NPCs give each other {_n_answers(most)} in a row")
        return "\n".join(lines)

    def _name(self, npc: NpcId) -> str:
        return self._npcs[npc].npc.name

    def _names(self, npcs: Collection[NpcId]) -> str:
        return ", ".join(npc.npc.name for npc_id, npc in self._npcs.items() if npc_id in npcs)


def _must_fit(text: str, most: int, what: str) -> None:
    if not text.strip():
        raise InvalidInput(f"there are no words that {what}")
    if len(text) > most:
        raise InvalidInput(f"{what} {most} characters at most, not {len(text)}")


def _answers(n: int) -> str:
    return "its next answer" if n == 1 else f"its next {n} answers"


def _n_answers(n: int) -> str:
    return "1 answer" if n == 1 else f"{n} answers"
