"""The DM's controls in force at a table: muted NPCs, directions, and players bound to an NPC.

`glyphoxa.npc.commands` sets them. `glyphoxa.turns.questions.Questions` addresses words by these rules:

1. A muted NPC can be called but does not answer, and no other NPC answers in its place. If a player calls another NPC
   too, that one answers.
2. A direction stays in the NPC's prompt for a number of heard answers, then ends.
3. The words of a player bound to an NPC go to that NPC as if in conversation, unless the player calls somebody by name
   or clearly speaks out of character.
4. A command that the DM speaks opens no turn.
5. While the table is paused, nobody is addressed.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.text import Text
from glyphoxa.names.people import AddresseeMention

# Spoken commands of the DM: mute or unmute NPCs. In all languages, at any table.
#
# The whole utterance must be the command and name its target: "Grimjaw, be quiet." Anything else is ordinary speech.


_WORDS: Final = lexicon("commands")
_VERBS: Final = (("unmute", "{unmute_verb}"), ("mute", "{mute_verb}"))
_TO_ALL: Final = (
    ("mute", _WORDS.compile("{all} {mute}|{mute} {all}")),
    ("unmute", _WORDS.compile("{all} (?:{unmute}|{go_on})|(?:{unmute}|{go_on}) {all}")),
    ("stop", _WORDS.compile("{all} {stop}|{stop} {all}")),
    *((do, _WORDS.compile(f"{verb} {{all}}")) for do, verb in _VERBS),
)
_TO_ONE: Final = (
    ("mute", _WORDS.compile("(?P<who>.+?) {mute}|{mute} (?P<after>.+)")),
    ("unmute", _WORDS.compile("(?P<who>.+?) {unmute}|{unmute} (?P<after>.+)")),
)
_WITH_VERB: Final = tuple((do, _WORDS.compile(f"{verb} (?P<who>.+)")) for do, verb in _VERBS)
_MAX_NAME_WORDS: Final = 5


def spoken_command(text: str, mentions: Sequence[AddresseeMention]) -> dict[str, object] | None:
    """Return the command in these words in its written form; None for ordinary speech.

    Args:
        mentions: The names in the words.
    """
    said = _plain(text)
    for do, pattern in _TO_ALL:
        if pattern.fullmatch(said):
            return {"do": do}
    npc = mentions[0].npc if len({mention.npc for mention in mentions}) == 1 else None
    if npc is None:
        return None
    for do, pattern in _TO_ONE:
        if (found := pattern.fullmatch(said)) and _is_called(found["who"] or found["after"], mentions):
            return {"do": do, "npc": npc}
    for do, pattern in _WITH_VERB:
        if (found := pattern.fullmatch(said)) and _is_name(found["who"]):
            return {"do": do, "npc": npc}
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
        dms: Players who may give spoken commands.
        npc_to_npc: Maximum answers in a row among NPCs; None: as in the settings.
        memory_interval: Rounds between two summaries; None: as in the campaign's file or the settings.
    """

    dms: Set[PlayerId] = frozenset()
    muted: set[NpcId] = field(default_factory=set)
    directions: dict[NpcId, Direction] = field(default_factory=dict)
    puppets: dict[PlayerId, NpcId] = field(default_factory=dict)
    npc_to_npc: int | None = None
    memory_interval: int | None = None
    is_paused: bool = False

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
