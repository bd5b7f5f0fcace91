"""Decides when a player's voice interrupts an NPC that speaks.

A recogniser needs half a second to return words. An NPC that speaks on meanwhile talks over people, so it stops in two
steps:

1. A voice that lasts `after_ms` without a pause holds the NPC: it is silent at once and keeps the rest of its answer.
2. The words decide. "Wait" interrupts the NPC. A listener's words ("mhm", "I see", "oh no"), a laugh or a cough do
   not, and it continues. A fitted model tells them apart: see `benchmarks/listeners.py`.

- Words so far that may still become a listener's ("I" of "I see") decide nothing.
- A pause ends a voice, so three short sounds are not one long voice.
- If no words are known `unknown_ms` after a player fell silent, the NPC continues. Later words may still interrupt it.
- A voice without known words interrupts the NPC after `longest_ms`, because the recogniser is late or dead. A long
  laugh has known words that do not interrupt.
- Only a voice that began while an NPC had the floor counts. Typed text has no voice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from glyphoxa.domain.budgets import BARGE_IN_MS
from glyphoxa.domain.ids import PlayerId
from glyphoxa.language.table_talk import BACKCHANNEL, without_described
from glyphoxa.language.text import Text, Weights, log_odds, phrases, shipped

_REPEATED = re.compile(r"(\w)\1{2,}|(\w{2})\2+")
"""A drawn-out letter ("mmmm") or a repeated syllable ("hahaha")."""
_LONGEST = 6


def signs_of(text: str, *, is_whole: bool = True) -> frozenset[str]:
    """Return what the model judges in the words of a speech: its phrases, its length, and whether it asks.

    Args:
        is_whole: The speech is over. Otherwise its end is unknown.
    """
    once = _REPEATED.sub(lambda found: found[1] or found[2], without_described(text).lower())
    found = phrases(once)
    length = f"{min(_LONGEST, len(once.split()))} words"
    if not is_whole:
        return frozenset((*(phrase for phrase in found if not phrase.endswith(">")), length, "..."))
    return found | {length, *("?" for _ in range(once.rstrip().endswith("?")))}


def encourages(text: str) -> bool:
    """Return whether words only encourage or agree, in any language. They answer a question ("Yes")."""
    return BACKCHANNEL.issuperset(Text.of(without_described(text)).spoken)


def cuts_off(text: str, *, is_whole: bool = True, weights: Weights | None = None) -> bool:
    """Return whether these words take the floor from a speaking NPC. Words that the model does not know do."""
    if encourages(text):
        return False
    known = weights or shipped(__package__, "listeners")
    signs = signs_of(text, is_whole=is_whole)
    is_known = any(sign in known for sign in signs if sign[0].isalpha())
    return not is_known or log_odds(signs, known) > 0


class BargeInAction(Enum):
    """An NPC's action when a voice overlaps its own."""

    HOLD = auto()
    RESUME = auto()
    CUT = auto()


@dataclass(slots=True)
class BargeIn:
    """Tracks voices while NPCs speak, by the rules of this module.

    Args:
        after_ms: 0: only words interrupt, no voice holds.
    """

    after_ms: int = BARGE_IN_MS
    longest_ms: int = 2_000
    unknown_ms: int = 1_000
    _may_cut: set[PlayerId] = field(default_factory=set)
    """Players who began to speak while an NPC had the floor and have not finished."""
    _known: set[PlayerId] = field(default_factory=set)
    """Players with known words that do not interrupt."""
    _since: dict[PlayerId, int] = field(default_factory=dict)
    """Since when each of these speaks without a pause."""
    _held_for: dict[PlayerId, int | None] = field(default_factory=dict)
    """Players whose words are awaited, and since when each is silent."""
    _is_held: bool = False
    _held_ms: int = 0

    def started(self, player: PlayerId, *, at_ms: int) -> None:
        """Note that a player speaks since `at_ms` while an NPC has the floor."""
        self._may_cut.add(player)
        self._known.discard(player)
        self._since[player] = at_ms
        if player in self._held_for:
            self._held_for[player] = None

    def paused(self, player: PlayerId, *, at_ms: int) -> None:
        self._since.pop(player, None)
        if player in self._held_for:
            self._held_for[player] = at_ms

    def over(self, player: PlayerId) -> None:
        """Note that a player's turn is over or was only noise."""
        self._may_cut.discard(player)
        self._since.pop(player, None)
        self._held_for.pop(player, None)

    def cuts_off(self, player: PlayerId, text: str, *, is_whole: bool = True, is_called: bool = False) -> bool:
        """Return whether a player's words so far interrupt the NPC.

        Args:
            is_called: Somebody is addressed by name.
        """
        if player not in self._may_cut:
            return False
        if is_called or cuts_off(text, is_whole=is_whole):
            return True
        if not is_whole and cuts_off(text):
            return False  # undecided
        self._known.add(player)
        if player not in self._since:
            self._held_for.pop(player, None)
        return False

    def npc_is_silent(self) -> None:
        """Note that no NPC is heard any more."""
        self._held_for.clear()
        self._is_held = False

    def step(self, *, at_ms: int) -> BargeInAction | None:
        """Decide what to do about the NPC that is heard."""
        if self._lasts_too_long(at_ms):
            return BargeInAction.CUT
        for player, since in self._since.items():
            if self.after_ms and at_ms - since >= self.after_ms:
                self._held_for.setdefault(player, None)
        for player, silent_ms in tuple(self._held_for.items()):
            if silent_ms is not None and at_ms - silent_ms >= self.unknown_ms:
                del self._held_for[player]
        was_held, self._is_held = self._is_held, bool(self._held_for)
        if was_held == self._is_held:
            return None
        self._held_ms = at_ms
        return BargeInAction.HOLD if self._is_held else BargeInAction.RESUME

    @property
    def voice_ms(self) -> int:
        """When the voice for which the NPC is held reached `after_ms`."""
        return min((since + self.after_ms for p, since in self._since.items() if p in self._held_for), default=0)

    @property
    def due_ms(self) -> int | None:
        """When `step` must be called again; None if only an event can change anything."""
        if not self.after_ms:
            return None
        voices = (
            self._too_long_ms(player, since) if player in self._held_for else since + self.after_ms
            for player, since in self._since.items()
        )
        silences = (silent_ms + self.unknown_ms for silent_ms in self._held_for.values() if silent_ms is not None)
        return min((due for due in (*voices, *silences) if due is not None), default=None)

    def _lasts_too_long(self, at_ms: int) -> bool:
        held_for = [(player, since) for player, since in self._since.items() if player in self._held_for]
        dues = (self._too_long_ms(player, since) for player, since in held_for if self._is_held)
        return any(due is not None and at_ms >= due for due in dues)

    def _too_long_ms(self, player: PlayerId, since: int) -> int | None:
        """When a held-for voice interrupts. A voice older than the NPC's counts from the hold."""
        if player in self._known:
            return None
        return max(since + self.longest_ms, self._held_ms + self.longest_ms - self.after_ms)
