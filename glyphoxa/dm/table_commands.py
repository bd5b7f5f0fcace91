"""The DM's commands to an open table from another process: a JSON object with names as the DM wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from glyphoxa.dm.entities import NameResolver, find_called
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.commands import (
    Direct,
    EndSession,
    LetNpcsTalk,
    MoveTo,
    Mute,
    Pause,
    Puppet,
    SayAs,
    SessionCommand,
    ShowControls,
    StopAll,
    SummariseEvery,
    Unmute,
    Unpause,
    WhisperTo,
)
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId, SceneId

ToldCommand = Mapping[str, object]
"""`do` and its arguments: `npc`, `player`, `scene`, `text`, `turns`. Without `npc`: all NPCs, or none any more."""


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Parses commands and resolves the NPCs and players they name."""

    campaign: Campaign

    def read(self, told: ToldCommand) -> SessionCommand:
        """
        Raises:
            NotFound: Nobody has that name.
            InvalidInput: It is not a command, or a name is ambiguous.
        """
        do = told.get("do")
        make = _COMMANDS.get(str(do))
        if make is None:
            raise InvalidInput(f"unknown table command {do!r}: {did_you_mean(str(do), _COMMANDS)}")
        return make(self, told)

    def _npc_or_all(self, told: ToldCommand) -> NpcId | None:
        return None if told.get("npc") is None else self._npc(told)

    def _npc(self, told: ToldCommand) -> NpcId:
        return self._resolver.npc(str(told.get("npc") or ""))

    def _player(self, told: ToldCommand) -> PlayerId:
        return self._resolver.player(str(told.get("player") or ""))

    def scene(self, name: str) -> SceneId:
        places = {each.id: each.name for each in self.campaign.entities}
        by_id = [(str(each.id), each) for each in self.campaign.scenes]
        return find_called(
            name,
            [by_id, [(places.get(each.location, ""), each) for _, each in by_id]],
            what=("scene", "scenes"),
            campaign=self.campaign.id,
            describe=lambda each: each.id,
        ).id

    @property
    def _resolver(self) -> NameResolver:
        return NameResolver.of(self.campaign, self.campaign.entities)


_COMMANDS: Final[Mapping[str, Callable[[CommandReader, ToldCommand], SessionCommand]]] = {
    "mute": lambda read, told: Mute(read._npc_or_all(told)),
    "unmute": lambda read, told: Unmute(read._npc_or_all(told)),
    "say": lambda read, told: SayAs(read._npc(told), _text(told)),
    "direct": lambda read, told: Direct(read._npc(told), _text(told), _turns(told)),
    "puppet": lambda read, told: Puppet(read._player(told), read._npc_or_all(told)),
    "whisper": lambda read, told: WhisperTo(read._player(told), _text(told)),
    "talk": lambda _, told: LetNpcsTalk(_turns(told)),
    "summarise": lambda _, told: SummariseEvery(_turns(told)),
    "scene": lambda read, told: MoveTo(read.scene(str(told.get("scene") or ""))),
    "stop": lambda *_: StopAll(),
    "pause": lambda *_: Pause(),
    "resume": lambda *_: Unpause(),
    "end": lambda *_: EndSession(),
    "show": lambda *_: ShowControls(),
}


def _turns(told: ToldCommand) -> int:
    turns = told.get("turns")
    return turns if isinstance(turns, int) else -1


def _text(told: ToldCommand) -> str:
    """Return the text on one line."""
    return " ".join(str(told.get("text") or "").split())
