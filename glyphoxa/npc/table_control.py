"""Performs the DM's commands at an open table. An impossible command raises and has no effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, assert_never

from glyphoxa.domain.commands import (
    MAX_DIRECTED,
    MAX_IN_A_ROW,
    MAX_ROUNDS,
    MAX_SAID,
    MAX_TURNS,
    Direct,
    EndSession,
    LetNpcsTalk,
    Mute,
    Pause,
    Puppet,
    SayAs,
    ShowControls,
    StopAll,
    SummariseEvery,
    TableCommand,
    Unmute,
    Unpause,
    WhisperTo,
)
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.events import PauseChanged, SessionEnds, Whispered
from glyphoxa.domain.heard import Draft, Heard
from glyphoxa.domain.ids import NpcId, PlayerId, SpeakerId
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.npc.actor import NpcActor
from glyphoxa.npc.table import TableState
from glyphoxa.turns.address import Addressed
from glyphoxa.turns.dm_controls import DmControls
from glyphoxa.turns.effects import Effect
from glyphoxa.turns.turn_taking import TurnTaking

THE_DM: Final = PlayerId("the DM")
"""The speaker of words that the DM gives an NPC. Player ids contain no space."""
_TOLD: Final[Mapping[type, str]] = {
    StopAll: "everybody was stopped",
    Pause: "the table is paused: nothing is heard, answered or stored",
    Unpause: "the table continues",
    EndSession: "the session ends, and the table closes",
}


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
        """Return a report for the DM, and the effects to perform.

        Raises:
            InvalidInput: The command is impossible.
        """
        self._check(command)
        if self.controls.take(command):
            self._changed(self.controls)
        effects: list[Effect] = []
        match command:
            case Mute(npc):
                effects = self._turn_taking.silence(self._npcs if npc is None else (npc,), at_ms=at_ms)
            case StopAll():
                effects = self._turn_taking.hush_all()
            case SayAs(npc, text):
                draft = Draft(THE_DM, Heard(text, text, (), at_ms, at_ms), at_ms, at_ms, typed=True)
                effects = self._turn_taking.say(npc, draft, Addressed(npc, "words of the DM"), at_ms=at_ms)
            case WhisperTo(player, text):
                self._tell(Whispered(player, text, at_ms))
            case LetNpcsTalk(most_in_a_row=most):
                self._turn_taking.follow_ups.max_in_a_row = most
            case SummariseEvery(rounds):
                self._summarise_every(rounds)
            case Pause() | Unpause():
                effects = self._turn_taking.hush_all() if self.controls.is_paused else []
                self._tell(PauseChanged(self.controls.is_paused, at_ms))
            case EndSession():
                self._tell(SessionEnds(at_ms))
            case _:
                pass
        return self._told(command), effects

    def on_change(self, changed: Callable[[DmControls], None]) -> None:
        """Call this whenever the controls change."""
        self._changed = changed

    def finished(self, record: TurnRecord, *, was_heard: bool) -> None:
        """Take a finished turn, which may end a direction."""
        npc = record.npc_id
        if npc is None or not was_heard or record.speaker_id == SpeakerId(THE_DM):
            return
        if self.controls.answered(npc):
            self._changed(self.controls)

    def restore(self, controls: DmControls) -> None:
        """Restore the controls of this session. Call before anybody speaks."""
        self._turn_taking.questions.controls = replace(controls, dms=self.controls.dms)
        if controls.npc_to_npc is not None:
            self._turn_taking.follow_ups.max_in_a_row = controls.npc_to_npc
        if controls.memory_interval is not None:
            self._summarise_every(controls.memory_interval)

    def _summarise_every(self, rounds: int) -> None:
        for summary in self._state.summaries.values():
            summary.interval = rounds

    def _check(self, command: TableCommand) -> None:
        match command:
            case SayAs() if self.controls.is_paused:
                raise InvalidInput("the table is paused, so nobody would be heard: resume it first")
            case SayAs(npc, text):
                self._must_be_here(npc)
                _must_fit(text, MAX_SAID, "words for an NPC")
                if not self._npcs[npc].says_given_words:
                    raise InvalidInput(
                        f"{self._name(npc)} speaks with the engine {self._npcs[npc].npc.engine!r}, which chooses its "
                        "own words; direct it instead"
                    )
            case Direct(npc, text, turns) if text:
                _must_fit(text, MAX_DIRECTED, "a direction")
                if not 1 <= turns <= MAX_TURNS:
                    raise InvalidInput(f"a direction applies to 1 to {MAX_TURNS} turns, not {turns}")
            case LetNpcsTalk(most_in_a_row=most) if not 0 <= most <= MAX_IN_A_ROW:
                raise InvalidInput(f"NPCs may give each other 0 to {MAX_IN_A_ROW} answers in a row, not {most}")
            case SummariseEvery(rounds) if not 1 <= rounds <= MAX_ROUNDS:
                raise InvalidInput(f"summaries are made every 1 to {MAX_ROUNDS} rounds, not {rounds}")
            case WhisperTo(player, text):
                _must_fit(text, MAX_SAID, "a whisper")
                if not self._state.is_seated(player):
                    raise InvalidInput(f"{self._state.name_of(player)} does not sit at the table and would not see it")
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
                return f"{self._name(npc)} will say it as soon as the floor is free"
            case Direct(npc, text, turns) if text:
                return f"{self._name(npc)} is directed for {_answers(turns)}"
            case Direct(npc):
                return f"{self._name(npc)} has no direction any more"
            case Puppet(player, npc):
                who = self._state.name_of(player)
                if npc is None:
                    return f"what {who} says is addressed as usual again"
                return f"what {who} says goes to {self._name(npc)}"
            case StopAll() | Pause() | Unpause() | EndSession():
                return _TOLD[type(command)]
            case WhisperTo(player):
                return f"{self._state.name_of(player)} reads it"
            case LetNpcsTalk(most_in_a_row=0):
                return "NPCs answer players only"
            case LetNpcsTalk(most_in_a_row=most):
                return f"NPCs may give each other {counted(most, 'answer')} in a row"
            case SummariseEvery(rounds):
                return f"summaries are made every {counted(rounds, 'round')}"
            case ShowControls():
                return self._in_force()
            case _:
                assert_never(command)

    def _in_force(self) -> str:
        controls = self.controls
        state = self._state
        lines = [
            f"scene: {state.location_name}, session {state.session}",
            f"NPCs: {self._names(self._turn_taking.present) or 'nobody'}",
            f"players: {', '.join(state.seated_names) or 'nobody'}",
        ]
        if controls.is_paused:
            lines.append("the table is paused")
        if controls.muted:
            lines.append(f"muted: {self._names(controls.muted)}")
        lines += [
            f"directed for {_answers(direction.turns_left)}: {self._name(npc)}: {direction.text}"
            for npc, direction in controls.directions.items()
        ]
        lines += [self._told(Puppet(player, npc)) for player, npc in controls.puppets.items()]
        if most := self._turn_taking.follow_ups.max_in_a_row:
            lines.append(self._told(LetNpcsTalk(most)))
        if rounds := controls.memory_interval:
            lines.append(self._told(SummariseEvery(rounds)))
        return "\n".join(lines)

    def _name(self, npc: NpcId) -> str:
        return self._npcs[npc].npc.name

    def _names(self, npcs: Collection[NpcId]) -> str:
        return ", ".join(npc.npc.name for npc_id, npc in self._npcs.items() if npc_id in npcs)


def _must_fit(text: str, most: int, what: str) -> None:
    if not text.strip():
        raise InvalidInput(f"{what} must not be empty")
    if len(text) > most:
        raise InvalidInput(f"{what} may have at most {most} characters, not {len(text)}")


def _answers(n: int) -> str:
    return "its next answer" if n == 1 else f"its next {n} answers"
