"""The DM's controls in force at a table: muted NPCs, directions, and players bound to an NPC.

`glyphoxa.turns.turn.Questions` addresses words by these rules:

1. A muted NPC can be called but does not answer, and no other NPC answers in its place. If a player calls another NPC
   too, that one answers.
2. A direction stays in the NPC's prompt for a number of heard answers, then ends.
3. The words of a player bound to an NPC go to that NPC as if in conversation, unless the player calls somebody by name
   or clearly speaks out of character.
4. A command that the DM speaks opens no turn.
5. While the table is paused, nobody is addressed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from glyphoxa.domain.commands import (
    Direct,
    LetNpcsTalk,
    Mute,
    Pause,
    Puppet,
    StopAll,
    SummariseEvery,
    TableCommand,
    Unmute,
    Unpause,
)
from glyphoxa.domain.heard import EagerTurn, EarEvent, NothingSaid, PartialHeard, SpeechPaused, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.text import Text
from glyphoxa.names.people import AddresseeMention

# Spoken commands of the DM: mute or unmute NPCs. In all languages, at any table.
#
# The whole utterance must be the command and name its target: "Grimjaw, be quiet." Anything else is ordinary speech.


_OneOrAll = type[Mute | Unmute]
_WORDS: Final = lexicon("commands")
_VERBS: Final[Sequence[tuple[_OneOrAll, str]]] = ((Unmute, "{unmute_verb}"), (Mute, "{mute_verb}"))
_TO_ALL: Final[Sequence[tuple[type[Mute | Unmute | StopAll], re.Pattern[str]]]] = (
    (Mute, _WORDS.compile("{all} {mute}|{mute} {all}")),
    (Unmute, _WORDS.compile("{all} (?:{unmute}|{go_on})|(?:{unmute}|{go_on}) {all}")),
    (StopAll, _WORDS.compile("{all} {stop}|{stop} {all}")),
    *((command, _WORDS.compile(f"{verb} {{all}}")) for command, verb in _VERBS),
)
_TO_ONE: Final[Sequence[tuple[_OneOrAll, re.Pattern[str]]]] = (
    (Mute, _WORDS.compile("(?P<who>.+?) {mute}|{mute} (?P<after>.+)")),
    (Unmute, _WORDS.compile("(?P<who>.+?) {unmute}|{unmute} (?P<after>.+)")),
)
_WITH_VERB: Final = tuple((command, _WORDS.compile(f"{verb} (?P<who>.+)")) for command, verb in _VERBS)
_MAX_NAME_WORDS: Final = 5


def spoken_command(text: str, mentions: Sequence[AddresseeMention]) -> TableCommand | None:
    """Return the command in these words; None for ordinary speech.

    Args:
        mentions: The names in the words.
    """
    said = _plain(text)
    for to_all, pattern in _TO_ALL:
        if pattern.fullmatch(said):
            return to_all()
    npc = mentions[0].npc if len({mention.npc for mention in mentions}) == 1 else None
    if npc is None:
        return None
    for command, pattern in _TO_ONE:
        if (found := pattern.fullmatch(said)) and _is_called(found["who"] or found["after"], mentions):
            return command(npc)
    for command, pattern in _WITH_VERB:
        if (found := pattern.fullmatch(said)) and _is_name(found["who"]):
            return command(npc)
    return None


def _is_called(who: str, mentions: Sequence[AddresseeMention]) -> bool:
    """Return whether the name is called: "Grimjaw told them: be quiet" is no command."""
    return any((mention.is_called and _is_name(who)) or who == _plain(mention.name) for mention in mentions)


def _is_name(who: str) -> bool:
    return who.count(" ") < _MAX_NAME_WORDS


def _plain(text: str) -> str:
    return " ".join(Text.of(text).spoken)


class Direction(NamedTuple):
    """A direction of the DM to an NPC.

    Attributes:
        turns_left: Answers for which it still applies.
    """

    text: str
    turns_left: int


@dataclass(slots=True)
class DmControls:
    """The controls in force.

    Args:
        npcs: All NPCs of the campaign with their names.
        dms: Players who may give spoken commands.
        npc_to_npc: Maximum answers in a row among NPCs; None: as in the settings.
        memory_interval: Rounds between two summaries; None: as in the campaign's file or the settings.
    """

    npcs: Mapping[NpcId, str] = field(default_factory=dict)
    dms: Set[PlayerId] = frozenset()
    muted: set[NpcId] = field(default_factory=set)
    directions: dict[NpcId, Direction] = field(default_factory=dict)
    puppets: dict[PlayerId, NpcId] = field(default_factory=dict)
    npc_to_npc: int | None = None
    memory_interval: int | None = None
    is_paused: bool = False

    def take(self, command: TableCommand) -> bool:
        """Store a command's lasting effect, and return whether it has one. Immediate effects are not handled here."""
        match command:
            case Mute(npc):
                self.muted |= set(self.npcs) if npc is None else {npc}
            case Unmute(npc):
                self.muted -= set(self.npcs) if npc is None else {npc}
            case Direct(npc, text, turns) if text:
                self.directions[npc] = Direction(text, turns)
            case Direct(npc):
                self.directions.pop(npc, None)
            case Puppet(player, npc) if npc is not None:
                self.puppets[player] = npc
            case Puppet(player):
                self.puppets.pop(player, None)
            case LetNpcsTalk(most):
                self.npc_to_npc = most
            case SummariseEvery(rounds):
                self.memory_interval = rounds
            case Pause() | Unpause():
                self.is_paused = isinstance(command, Pause)
            case _:
                return False
        return True

    def answered(self, npc: NpcId) -> bool:
        """Count a heard answer of this NPC. Returns whether that changed the controls."""
        standing = self.directions.get(npc)
        if standing is None:
            return False
        if standing.turns_left > 1:
            self.directions[npc] = Direction(standing.text, standing.turns_left - 1)
        else:
            del self.directions[npc]
        return True

    def direction(self, npc: NpcId) -> str:
        """Return the direction for its next answer; empty for none."""
        return self.directions[npc].text if npc in self.directions else ""


# What a paused table hears.
#
# 1. A player who was speaking when the pause began is heard to the end, so that nothing said before it is lost.
# 2. Speech that begins during the pause is not heard, shown or stored, and no NPC learns of it.
# 3. A typed line that was already sent is accepted. Later ones are refused, because the table is paused.


@dataclass(slots=True)
class PausedHearing:
    """Filters the events of all ears. Must receive every event, also while the table is not paused."""

    _speaking: set[PlayerId] = field(default_factory=set)

    def hears(self, event: EarEvent, *, is_paused: bool) -> bool:
        """Return whether the table takes this event."""
        match event:
            case SpeechStarted(player):
                if not is_paused:
                    self._speaking.add(player)
                return not is_paused
            case TurnEnded(draft):
                return self._ends(draft.player) or draft.typed or not is_paused
            case NothingSaid(player):
                return self._ends(player) or not is_paused
            case EagerTurn(draft):
                return draft.player in self._speaking or not is_paused
            case PartialHeard() | SpeechPaused():
                return event.player in self._speaking or not is_paused

    def left(self, player: PlayerId) -> None:
        self._speaking.discard(player)

    def _ends(self, player: PlayerId) -> bool:
        """Forget a player. Returns whether they were heard until now."""
        was_heard = player in self._speaking
        self._speaking.discard(player)
        return was_heard
