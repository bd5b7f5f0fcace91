"""A turn that is under way. See `glyphoxa.turns.turn_taking` for its life."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from glyphoxa.domain.campaign import DEFAULT_PRIORITY
from glyphoxa.domain.heard import Draft
from glyphoxa.domain.ids import NpcId, PlayerId, TurnId
from glyphoxa.domain.turn import Outcome, Unaddressed
from glyphoxa.turns.address import Addressed, AddresseeMention, Addressing, Said
from glyphoxa.turns.dm_controls import DmControls
from glyphoxa.turns.effects import Begin, Cancel, Floor, Say

# What somebody asks, in the parts in which they said it.


MOST_PARTS = 6
"""Of a question that its speaker goes on with."""
_MOST_CHARACTERS = 1_200
"""Of all parts of a question together, where there are several: some five sentences of speech each."""


@dataclass(frozen=True, slots=True)
class SpokenQuestion:
    """What somebody asks, in the parts in which they said it."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.parts)

    def going_on(self, text: str) -> SpokenQuestion:
        """With another part. The newest stay: the NPC heard the others as it hears everything."""
        parts, n_characters = [text], len(text)
        for part in reversed(self.parts[1 - MOST_PARTS :]):
            n_characters += 1 + len(part)
            if n_characters > _MOST_CHARACTERS:
                break
            parts.append(part)
        return SpokenQuestion(tuple(reversed(parts)))


def same_words(a: str, b: str) -> bool:
    return re.findall(r"\w+", a.lower()) == re.findall(r"\w+", b.lower())


class Phase(Enum):
    PREPARING = auto()
    COMMITTED = auto()
    RELEASED = auto()
    HEARD = auto()


@dataclass(slots=True)
class Turn:
    """
    Attributes:
        player: Who asks; of a turn that answers an NPC, that NPC.
        second: The NPC that reacts to the answer.
        answers: The NPC whose words it answers: no player waits for it.
        behind: It is a reaction to this turn's answer.
        n_in_a_row: Answers of NPCs to NPCs up to it, since a player spoke.
    """

    id: TurnId
    npc: NpcId
    player: PlayerId
    question: SpokenQuestion
    draft: Draft
    phase: Phase
    begun: bool = False
    filled: bool = False
    looks_up_long: bool = False
    first_word_ms: int | None = None
    has_failed: bool = False
    """Before it may be heard: nothing but an excuse would be."""
    committed_ms: int = 0
    released_ms: int = 0
    cancelled_as: Outcome | None = None
    words: str = ""
    """What the DM gave it to say, instead of an answer."""
    second: NpcId | None = None
    answers: NpcId | None = None
    behind: TurnId | None = None
    n_in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class Carried:
    """A question whose answer was called off because its speaker seemed to go on."""

    question: SpokenQuestion
    draft: Draft


# The turns that are under way at one table.


_HUSHED_AS = {Phase.PREPARING: None, Phase.HEARD: Outcome.INTERRUPTED}
"""Otherwise SUPERSEDED."""
_OF_THE_DM, _NEXT, _LAST = 1_001, 1_000, -1
"""Priorities beside those of NPCs: of words that the DM gave, of a reaction, of other talk among NPCs."""


@dataclass(slots=True)
class OpenTurns:
    """Iterates over them in the order in which they were opened.

    Args:
        priorities: Of NPCs, as the floor has them; `DEFAULT_PRIORITY` for who is not in it.
    """

    floor: Floor = field(default_factory=Floor)
    priorities: Mapping[NpcId, int] = field(default_factory=dict)
    moved_ms: int = 0
    """When the floor was last given or given back, or an NPC cut off."""
    _turns: dict[TurnId, Turn] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[Turn]:
        return iter(tuple(self._turns.values()))

    def get(self, turn: TurnId) -> Turn | None:
        return self._turns.get(turn)

    def of(self, player: PlayerId) -> list[Turn]:
        """What this player asks and is still to be answered."""
        return [t for t in self if t.player == player and t.cancelled_as is None]

    def to(self, npc: NpcId) -> list[Turn]:
        """What this NPC is being asked. An engine answers one thing at a time: a speculation must not cut
        another off, and a committed turn waits for the one before it.
        """
        return [turn for turn in self if turn.npc == npc]

    @property
    def heard(self) -> Turn | None:
        """The one whose answer is being heard, unless it was called off."""
        holder = self._turns.get(self.floor.holder) if self.floor.holder is not None else None
        return holder if holder is not None and holder.phase is Phase.HEARD and holder.cancelled_as is None else None

    def open(self, npc: NpcId, draft: Draft, question: SpokenQuestion, *, words: str = "") -> Turn:
        """
        Args:
            words: What the NPC is to say instead of an answer.
        """
        turn = Turn(TurnId(f"t{next(self._numbers):04d}"), npc, draft.player, question, draft, Phase.PREPARING)
        turn.words = words
        self._turns[turn.id] = turn
        return turn

    def begin(self, turn: Turn) -> Begin | Say:
        turn.begun = True
        if turn.words:
            return Say(turn.id, turn.npc, turn.words)
        # What is only prepared for was not kept yet.
        n_kept = len(turn.question.parts) - (turn.phase is Phase.PREPARING)
        return Begin(turn.id, turn.npc, turn.player, turn.question.text, n_kept, is_brief=turn.behind is not None)

    def queue_up(self, turn: Turn) -> None:
        """For the floor. The DM's words come first, a reaction right behind what it is a reaction to, and other talk
        among NPCs last.
        """
        priority = self.priorities.get(turn.npc, DEFAULT_PRIORITY)
        if turn.words:
            priority = _OF_THE_DM
        elif turn.answers is not None:
            priority = _NEXT if turn.behind is not None else _LAST
        self.floor.request(turn.id, priority=priority)

    def cancel(self, turn: Turn, outcome: Outcome | None) -> Cancel:
        turn.cancelled_as = outcome
        self.floor.withdraw(turn.id)
        if turn.phase is Phase.PREPARING or not turn.begun:
            del self._turns[turn.id]
        return Cancel(turn.id, turn.npc, outcome, turn.begun)

    def hush(self, turns: Iterable[Turn]) -> list[Cancel]:
        """Call these off."""
        return [
            self.cancel(turn, _HUSHED_AS.get(turn.phase, Outcome.SUPERSEDED))
            for turn in turns
            if turn.cancelled_as is None
        ]

    def close(self, turn_id: TurnId) -> Turn | None:
        """Its engine is done with it."""
        return self._turns.pop(turn_id, None)


# What players ask whom, over the parts in which they say it.


FIND_MENTIONS = Callable[[str], Sequence[AddresseeMention]]


@dataclass(slots=True)
class Questions:
    """
    Args:
        mentions: Finds the names of NPCs and players in words.
        names: What each NPC of the campaign is called.
        controls: What the DM has in force.

    Attributes:
        present: The NPCs of the scene.
    """

    mentions: FIND_MENTIONS
    names: Mapping[NpcId, str]
    addressing: Addressing = field(default_factory=Addressing)
    controls: DmControls = field(default_factory=DmControls)
    present: tuple[NpcId, ...] = ()
    _carried: dict[PlayerId, Carried] = field(default_factory=dict)

    def move(self, present: Sequence[NpcId]) -> None:
        """The scene changed: what was going on is over."""
        self.present = tuple(present)
        self.addressing.forget_all()
        self._carried.clear()

    def forget_all(self) -> None:
        """Nobody goes on with what they asked."""
        self._carried.clear()

    def carry(self, turn: Turn) -> None:
        """Its answer was called off because its speaker seems to go on."""
        self._carried[turn.player] = Carried(turn.question, turn.draft)

    def is_carried(self, player: PlayerId) -> bool:
        return player in self._carried

    def take_carried(self, player: PlayerId) -> Carried | None:
        """What they seemed to go on with, which is not asked again behind this."""
        return self._carried.pop(player, None)

    def remember(self, player: PlayerId, npc: NpcId, *, at_ms: int) -> None:
        """An exchange between them took place."""
        self.addressing.remember(player, npc, at_ms=at_ms)

    def passed(self, player: PlayerId, addressed: Addressed, *, at_ms: int) -> None:
        """Their words went to another player."""
        if addressed.unaddressed is Unaddressed.PLAYER:
            others = (addressed.player,) if addressed.player is not None else ()
            self.addressing.remember_players(player, *others, at_ms=at_ms)

    def decide(self, player: PlayerId, text: str, *, at_ms: int) -> Addressed:
        """Whom these words alone are meant for."""

        def by_address(said: Said) -> Addressed:
            return self.addressing.decide(said, present=self.present, names=self.names, at_ms=at_ms)

        return self.controls.meant(self.said(player, text), by_address, present=self.present)

    def said(self, player: PlayerId, text: str) -> Said:
        """These words with who is named in them."""
        return Said(player, text, self.mentions(text))

    def called_by(self, npc: NpcId, text: str) -> NpcId | None:
        """Whom of those who are here an NPC calls with these words."""
        called = (m for m in self.mentions(text) if m.is_vocative and m.npc != npc and self.may_speak(m.npc))
        first = min(called, key=lambda m: m.position, default=None)
        return first.npc if first is not None else None

    def may_speak(self, npc: NpcId | None) -> bool:
        """It is here and not muted."""
        return npc in self.present and npc not in self.controls.muted

    def meant(self, player: PlayerId, text: str, *, at_ms: int) -> tuple[Addressed, SpokenQuestion]:
        """Whom these words are meant for, and what is asked with them."""
        carried = self._carried.get(player)
        alone = self.decide(player, text, at_ms=at_ms)
        if carried is None or alone.is_aside:
            return alone, SpokenQuestion((text,))
        question = carried.question.going_on(text)
        return self.decide(player, question.text, at_ms=at_ms), question


# How long an answer is waited for, and what is done when that time is over.


_CLAUSE_MS = 1_000
"""Behind its first word an answer is heard within this time: a filler would only hold it back."""


class Overdue(Enum):
    """What is to be done about a turn because time has passed."""

    DROP = auto()
    """Its answer waited too long for players to fall silent."""
    GIVE_UP = auto()
    """Its answer did not come."""
    FILL = auto()
    """Its answer takes long: a sound in character."""


@dataclass(frozen=True, slots=True)
class Patience:
    """
    Args:
        reply_deadline_ms: From when the answer may be heard (usually the end of the player's turn) to the first audio.
        filler_after_ms: From the end of the player's turn to a filler, which is never heard before the answer may be
            nor while its first clause is about to come; 0 for none.
        hold_ms: How long an answer waits for players to fall silent.
    """

    reply_deadline_ms: int = 15_000
    filler_after_ms: int = 0
    hold_ms: int = 20_000

    def due_ms(self, turn: Turn, *, waits_since_ms: int | None) -> int | None:
        """When something is to be done about a turn because time has passed; None for not before something happens.

        Args:
            waits_since_ms: Since when players alone keep answers from being heard; None while an NPC is heard.
        """
        if turn.cancelled_as is not None:
            return None
        if turn.phase is Phase.RELEASED:
            return min(self._filler_ms(turn), turn.released_ms + self.reply_deadline_ms)
        if turn.phase is Phase.COMMITTED and waits_since_ms is not None:
            return max(turn.committed_ms, waits_since_ms) + self.hold_ms
        return None

    def overdue(self, turn: Turn, *, at_ms: int) -> Overdue:
        """What is to be done about a turn of which `due_ms` has come."""
        if turn.phase is Phase.COMMITTED:
            return Overdue.DROP
        return Overdue.GIVE_UP if at_ms >= turn.released_ms + self.reply_deadline_ms else Overdue.FILL

    def _filler_ms(self, turn: Turn) -> int:
        """Not before the deadline if it has had one, or is to have none."""
        if not turn.filled and turn.looks_up_long:
            return turn.released_ms
        if turn.filled or not self.filler_after_ms:
            return turn.released_ms + self.reply_deadline_ms
        # Who waited for another NPC to finish is not silent for as long again.
        due_ms = max(turn.released_ms, turn.committed_ms + self.filler_after_ms)
        return due_ms if turn.first_word_ms is None else max(due_ms, turn.first_word_ms + _CLAUSE_MS)
