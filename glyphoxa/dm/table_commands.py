"""The DM's commands to an open table from another process: a JSON object with names as the DM wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    TableCommand,
    Unmute,
    Unpause,
    WhisperTo,
)
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId, SceneId

ToldCommand = Mapping[str, object]
"""`do` and its arguments: `npc`, `player`, `scene`, `text`, `turns`. Without `npc`: all NPCs, or none any more."""

_OF_ALL: Mapping[object, TableCommand] = {
    "stop": StopAll(),
    "pause": Pause(),
    "resume": Unpause(),
    "end": EndSession(),
    "show": ShowControls(),
}
_KNOWN = ("mute", "unmute", "say", "direct", "puppet", "whisper", "talk", "summarise", "scene", *map(str, _OF_ALL))


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
        match told.get("do"):
            case "mute":
                return Mute(self._npc_or_all(told))
            case "unmute":
                return Unmute(self._npc_or_all(told))
            case "say":
                return SayAs(self._npc(told), _text(told))
            case "direct":
                return Direct(self._npc(told), _text(told), _turns(told))
            case "puppet":
                return Puppet(self._player(told), self._npc_or_all(told))
            case "whisper":
                return WhisperTo(self._player(told), _text(told))
            case "talk":
                return LetNpcsTalk(_turns(told))
            case "summarise":
                return SummariseEvery(_turns(told))
            case "scene":
                return MoveTo(self._scene(str(told.get("scene") or "")))
            case whole if whole in _OF_ALL:
                return _OF_ALL[whole]
            case unknown:
                raise InvalidInput(f"unknown table command {unknown!r}: {did_you_mean(str(unknown), _KNOWN)}")

    def _npc_or_all(self, told: ToldCommand) -> NpcId | None:
        return None if told.get("npc") is None else self._npc(told)

    def _npc(self, told: ToldCommand) -> NpcId:
        return self._resolver.npc(str(told.get("npc") or ""))

    def _player(self, told: ToldCommand) -> PlayerId:
        return self._resolver.player(str(told.get("player") or ""))

    def _scene(self, name: str) -> SceneId:
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


def _turns(told: ToldCommand) -> int:
    turns = told.get("turns")
    return turns if isinstance(turns, int) else -1


def _text(told: ToldCommand) -> str:
    """Return the text on one line."""
    return " ".join(str(told.get("text") or "").split())
