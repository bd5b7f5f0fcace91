"""Decide who players' words are meant for, across the parts of a question and under the DM's controls.

`glyphoxa.npc.commands` sets the controls: muted NPCs, directions, and players bound to an NPC. They follow these rules:

1. A muted NPC can be called but does not answer, and no other NPC answers in its place. If a player calls another NPC
   too, that one answers.
2. A direction stays in the NPC's prompt for a number of heard answers, then ends.
3. The words of a player bound to an NPC go to that NPC as if in conversation, unless the player calls somebody by name
   or clearly speaks out of character.
4. A command that the DM speaks opens no turn.
5. While the table is paused, nobody is addressed.
6. The DM may say afterwards who a line was meant for (`readdress`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from glyphoxa.domain.ids import NpcId, PlayerId, UtteranceId
from glyphoxa.domain.turn_record import READDRESSED, Unaddressed
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.text import Text
from glyphoxa.names.people import AddresseeMention, Understood
from glyphoxa.turns.address import Addressed, Addressing
from glyphoxa.turns.turn import QuestionPart, SpokenQuestion, Turn

_PAST_ALL: Final = (Unaddressed.OUT_OF_CHARACTER, Unaddressed.FILLER, Unaddressed.WHISPER)
"""Words for which a player is not bound to an NPC."""


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


@dataclass(slots=True)
class Questions:
    """Assigns players' words to NPCs.

    Args:
        understand: Returns who is named and called in a text; asked again for the same text, at once.
        names: Names of all NPCs of the campaign.
        controls: The DM's controls in force.

    Attributes:
        present: The NPCs of the scene.
    """

    understand: Callable[[str], Understood]
    names: Mapping[NpcId, str]
    addressing: Addressing = field(default_factory=Addressing)
    controls: DmControls = field(default_factory=DmControls)
    present: tuple[NpcId, ...] = ()
    _carried: dict[PlayerId, Turn] = field(default_factory=dict)

    def move(self, present: Sequence[NpcId]) -> None:
        """Change the scene and end all conversations."""
        self.present = tuple(present)
        self.addressing.forget_all()
        self._carried.clear()

    def forget_all(self) -> None:
        """Forget all carried questions and conversations."""
        self._carried.clear()

    def carry(self, turn: Turn) -> None:
        """Keep the question of a turn that is cancelled because its speaker seems to continue."""
        self._carried[turn.player] = turn

    def take_carried(self, player: PlayerId) -> Turn | None:
        """Remove and return the cancelled turn whose question the player seemed to continue."""
        return self._carried.pop(player, None)

    def readdress(self, player: PlayerId, utterance: UtteranceId | None, npc: NpcId | None) -> None:
        """Note who a stored line was meant for by the DM's decision. If it is nobody, the conversation ends."""
        carried = self._carried.get(player)
        if carried is not None and utterance in carried.question.utterances:
            del self._carried[player]
        if npc is None:
            self.addressing.forget(player)

    def decide(self, player: PlayerId, text: str, *, at_ms: int) -> Addressed:
        """Decide who these words alone are meant for, by the rules of this module."""
        said, controls = self.understand(text), self.controls
        command = spoken_command(said.text, said.mentions) if player in controls.dms else None
        if command is not None:
            return Addressed(None, "a command of the DM", Unaddressed.COMMAND, is_apart=True, command=command)
        if controls.is_paused:
            return Addressed(None, "the table is paused", Unaddressed.PAUSED)
        addressed = self._bound(player, said, self._by_address(player, said, at_ms))
        if addressed.npc is None or addressed.npc not in controls.muted:
            return addressed
        others = tuple(mention for mention in said.mentions if mention.npc not in controls.muted)
        if any(mention.is_called and mention.npc is not None for mention in others):
            instead = self._by_address(player, replace(said, mentions=others), at_ms)
            if instead.npc is not None and instead.npc not in controls.muted:
                return instead
        return Addressed(None, f"{addressed.reason}; muted by the DM", Unaddressed.MUTED)

    def _by_address(self, player: PlayerId, said: Understood, at_ms: int) -> Addressed:
        return self.addressing.decide(player, said, present=self.present, names=self.names, at_ms=at_ms)

    def _bound(self, player: PlayerId, said: Understood, addressed: Addressed) -> Addressed:
        npc = self.controls.puppets.get(player)
        is_free = said.calls_somebody or addressed.unaddressed in _PAST_ALL
        if npc is None or npc not in self.present or is_free:
            return addressed
        return Addressed(npc, f"the DM directs their words to {self.names[npc]}")

    def called_by(self, npc: NpcId, text: str) -> NpcId | None:
        """Return which NPC of the scene another NPC calls with these words."""
        mentions = self.understand(text).mentions
        called = (m for m in mentions if m.is_called and m.npc != npc and self.may_speak(m.npc))
        first = min(called, key=lambda m: m.position, default=None)
        return first.npc if first is not None else None

    def may_speak(self, npc: NpcId | None) -> bool:
        """Return whether an NPC is present and not muted."""
        return npc in self.present and npc not in self.controls.muted

    def meant(self, player: PlayerId, said: QuestionPart, *, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Return who these words are meant for, and the whole question."""
        carried = self._carried.get(player)
        alone = self.decide(player, said.text, at_ms=at_ms)
        if carried is None or alone.is_aside:
            return alone, SpokenQuestion((said,))
        question = carried.question.going_on(said)
        return self.decide_again(carried, question, at_ms=at_ms), question

    def decide_again(self, carried: Turn, question: SpokenQuestion, *, at_ms: int) -> Addressed:
        """Decide who a carried question is meant for, with what was added to it, unless the DM has decided that."""
        if carried.addressed is not None and carried.addressed.reason.startswith(READDRESSED):
            return replace(carried.addressed, reason=f"continued; {carried.addressed.reason}")
        return self.decide(carried.player, question.text, at_ms=at_ms)


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
