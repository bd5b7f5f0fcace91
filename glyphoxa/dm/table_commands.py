"""The DM's commands to an open table from another process: a JSON object with names as the DM wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from glyphoxa.dm.entities import NameResolver
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.commands import COMMANDS, SessionCommand
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import NpcId, PlayerId, SceneId
from glyphoxa.names.resolve import Called, Resolver

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
            InvalidInput: It is not a command, a name is ambiguous, or a number is none.
        """
        do = told.get("do")
        command = COMMANDS.get(str(do))
        if command is None:
            raise InvalidInput(f"unknown table command {do!r}: {did_you_mean(str(do), COMMANDS)}")
        return command(**{name: self._value(kind, told) for name, kind in get_type_hints(command).items()})

    def _value(self, kind: object, told: ToldCommand) -> Any:
        """Return the value of a command's field of this type. Each type has one name in what was told."""
        if kind is int:
            turns = told.get("turns", -1)
            if isinstance(turns, str) and not (turns.isascii() and turns.isdecimal() and len(turns) < 10):
                raise InvalidInput(f"the number of answers must be a number, not {turns!r}")
            return int(turns) if isinstance(turns, int | str) else -1
        if kind is str:  # on one line
            return " ".join(str(told.get("text") or "").split())
        if kind is SceneId:
            return self.scene(str(told.get("scene") or ""))
        resolver = NameResolver.of(self.campaign, self.campaign.entities)
        if kind is PlayerId:
            return resolver.player(str(told.get("player") or ""))
        if kind != NpcId and told.get("npc") is None:  # all NPCs, or none any more
            return None
        return resolver.npc(str(told.get("npc") or ""))

    def scene(self, name: str) -> SceneId:
        places = {each.id: each.name for each in self.campaign.entities}

        def called(scene: Scene) -> Called:
            return Called(scene.id, (places.get(scene.location, scene.id), scene.id))

        return Resolver(self.campaign.scenes, called, campaign=self.campaign.id, what="scene").one(name).id
