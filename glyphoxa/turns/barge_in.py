"""When a player's voice stops an NPC that speaks.

Words take half a second to be known, and an NPC that talks on for so long talks over people. So it is stopped in two
steps:

1. Voice that goes on for `after_ms` without a pause holds the NPC: it is silent at once, and its answer is not lost.
2. What the voice says decides. Words cut the NPC off ("wait"). What only says "I am listening" does not, nor does a
   laugh or a cough: the NPC goes on where it was held.

- A pause ends a voice: three short sounds are not one long voice.
- Whose words are not known `unknown_ms` after they fell silent is not waited for any longer. Words that come later
  still cut the NPC off.
- A voice of which no words are known after `longest_ms` cuts the NPC off: somebody speaks, and the recogniser is late
  or dead. Of a long laugh, words are known: those that cut nobody off.
- Only a voice that began while an NPC had the floor counts. What is typed has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from glyphoxa.domain.ids import PlayerId
from glyphoxa.language.lexicon import lexicon

AFTER_MS = 250
BACKCHANNEL = lexicon("fillers").words("backchannel")
"""Words that keep a speaker going."""
_LAUGH = re.compile(r"(?:b?[ao]?(?:h[aeiou]){2,}h?|hi(?:hi)+|lol)", re.IGNORECASE)
_DESCRIBED = re.compile(r"\[[^\]]*\]|\([^)]*\)|\*[^*]*\*")
"""Sound that a recogniser describes: "[laughter]", "(coughs)"."""


def cuts_off(text: str) -> bool:
    """Whether these words, said while an NPC speaks, take the floor from it."""
    words = re.findall(r"[^\W\d_]+", _DESCRIBED.sub(" ", text).lower())
    return any(word not in BACKCHANNEL and _LAUGH.fullmatch(word) is None for word in words)


class OverVoice(Enum):
    """What an NPC does about a voice over its own."""

    HOLD = auto()
    GO_ON = auto()
    CUT = auto()


@dataclass(slots=True)
class BargeIn:
    """The voices at a table while NPCs speak. See the module's rules.

    Args:
        after_ms: 0: no voice holds or cuts, words alone do.
    """

    after_ms: int = AFTER_MS
    longest_ms: int = 2_000
    unknown_ms: int = 1_000
    _may_cut: set[PlayerId] = field(default_factory=set)
    """Who began to speak while an NPC had the floor, and has not finished."""
    _known: set[PlayerId] = field(default_factory=set)
    """Of whose voice words are known, and none that cuts anybody off."""
    _since: dict[PlayerId, int] = field(default_factory=dict)
    """Since when each of these speaks without a pause."""
    _held_for: dict[PlayerId, int | None] = field(default_factory=dict)
    """Whose words are waited for, and since when they are silent."""
    _is_held: bool = False
    _held_ms: int = 0

    def started(self, player: PlayerId, *, at_ms: int) -> None:
        """They speak, since `at_ms`, while an NPC has the floor."""
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
        """Their turn is over, or was only a noise."""
        self._may_cut.discard(player)
        self._since.pop(player, None)
        self._held_for.pop(player, None)

    def cuts_off(self, player: PlayerId, text: str) -> bool:
        """Whether what they say so far takes the floor from the NPC."""
        if player not in self._may_cut:
            return False
        if cuts_off(text):
            return True
        self._known.add(player)
        if player not in self._since:
            self._held_for.pop(player, None)
        return False

    def npc_is_silent(self) -> None:
        """No NPC is heard: there is nothing to hold."""
        self._held_for.clear()
        self._is_held = False

    def step(self, *, at_ms: int) -> OverVoice | None:
        """What must now be done about the NPC that is heard."""
        if self._lasts_too_long(at_ms):
            return OverVoice.CUT
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
        return OverVoice.HOLD if self._is_held else OverVoice.GO_ON

    @property
    def voice_ms(self) -> int:
        """When the voice for which the NPC is held had lasted `after_ms`."""
        return min((since + self.after_ms for p, since in self._since.items() if p in self._held_for), default=0)

    @property
    def due_ms(self) -> int | None:
        """When `step` is worth asking again because time has passed; None for not before something happens."""
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
        """When a voice cuts off who is held for it. One that was there before the NPC counts from the hold."""
        if player in self._known:
            return None
        return max(since + self.longest_ms, self._held_ms + self.longest_ms - self.after_ms)
