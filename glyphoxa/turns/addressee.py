"""Scores for each NPC of a scene how probably a player's words are meant for it.

Three fitted models follow one another. The first reads each name in the words (`glyphoxa.language.calls`). The second
reads what is said, and whom the player was talking with: is it meant for an NPC at all, or a remark to the players, a
plan, a thought? A forest of decision trees then weighs both with the dialogue so far, for one NPC at a time: who spoke
last to whom and when, who is here, and whose trade is concerned. History counts most: "cheaper" alone means nobody.

The weights are data, fitted to labelled talk in English and German by `python -m benchmarks.address_fit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.language.calls import PUNCTUATION, SECOND_PERSON
from glyphoxa.language.fitted import letters_of, shipped_forest, shipped_regressions
from glyphoxa.language.roles import Cast
from glyphoxa.language.table_talk import is_filler
from glyphoxa.language.text import Text
from glyphoxa.names.people import AddresseeMention, Understood

ASIDES: Final = ("player", "about", "out_of_character", "narration", "thinking", "plan")
"""The kinds of words for nobody, in the order of the second model, after "for an NPC"."""
LINES: Final = 12
"""Lines of history that count."""
_IN_CONVERSATION_S: Final = 60.0
_RECENT: Final = 3
_NOT_NAMED: Final = -9.0
_LONG_AGO_S: Final = 300.0
_LETTERS: Final = 4
"""Letters of a word that two lines must share to count as one subject."""


class SaidLine(NamedTuple):
    """A line of the dialogue.

    Attributes:
        to: The NPC or player that it was meant for; None for nobody.
    """

    speaker: str
    to: str | None
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Situation:
    """A player's words and what came before.

    Attributes:
        npcs: All NPCs of the campaign.
        lines: The dialogue so far, oldest first.
        is_dm: The player is the DM, who mostly tells the story.
    """

    player: PlayerId
    said: Understood
    present: Sequence[NpcId]
    npcs: Mapping[NpcId, str]
    cast: Cast
    lines: Sequence[SaidLine]
    at_ms: int
    is_dm: bool = False

    def seconds_since(self, line: SaidLine) -> float:
        return (self.at_ms - line.at_ms) / 1000

    def npc_of(self, line: SaidLine, *, player: str | None = None) -> str | None:
        """Return the NPC that speaks or is spoken to in a line; with `player`, only if that player is the other."""
        if line.speaker in self.npcs:
            return line.speaker if player in (None, line.to) else None
        return line.to if line.to in self.npcs and player in (None, line.speaker) else None

    def last_exchange(self, *, player: str | None = None) -> tuple[int, SaidLine, str] | None:
        """Return the last line between an NPC and a player (None: anybody), how many lines ago, and the NPC."""
        back = enumerate(reversed(self.lines))
        return next(((ago, line, npc) for ago, line in back if (npc := self.npc_of(line, player=player))), None)

    def conversation(self) -> str:
        """Return in a word whether the player, or anybody, is talking with an NPC, and how many lines ago."""
        for player, name in ((self.player, "own"), (None, "any")):
            found = self.last_exchange(player=player)
            if found is not None and self.seconds_since(found[1]) <= _IN_CONVERSATION_S:
                return f"{name}{0 if not found[0] else 1 if found[0] < _RECENT else 2}"
        return "none"


def act_signs(at: Situation) -> Iterator[str]:
    """Yield the signs of what is said, whoever of the NPCs may be meant."""
    tokens = [token.text for token in at.said.tokens]
    words, talk = [token for token in tokens if token not in PUNCTUATION], at.conversation()
    ends = ("<", *words, ">")
    yield from (f"w:{word}" for word in words)
    yield from (f"~{part}" for word in words if not word.startswith("@") for part in letters_of(word))
    yield from (f"w:{one} {two}" for one, two in pairwise(ends))
    yield from (f"w:{' '.join(ends[at : at + 3])}" for at in range(len(ends) - 2))
    yield from (f"{talk}:{word}" for word in words)
    yield from (f"{talk}:{one} {two}" for one, two in pairwise(ends[:4]))
    n, n_here, asks = min(len(words), 12) // 2, min(len(at.present), 4), "?" in tokens
    for sign in (f"length:{n}", f"asks:{asks}", f"here:{n_here}", f"dm:{at.is_dm}", "talk"):
        yield from (sign, f"{sign}:{talk}")
    if not at.lines:
        yield "before:nothing"
        return
    last = at.lines[-1]
    who = "npc" if last.speaker in at.npcs else "self" if last.speaker == at.player else "player"
    to = "me" if last.to == at.player else "other" if last.to else "nobody"
    asked = last.text.rstrip().endswith("?")
    yield f"before:{who}:{to}:{_time(at.seconds_since(last))}"
    yield from (f"before asks:{who}:{asked}", f"before asks:{who}:{asked}:{min(len(words), 8) // 2}")
    yield f"same:{who}:{min(_shared(last.text, words), 2)}"


def _time(seconds: float) -> int:
    return sum(seconds >= limit for limit in (4, 10, 25, 60))


def _shared(text: str, words: Sequence[str]) -> int:
    return len({word for word in Text.of(text).spoken if len(word) >= _LETTERS} & set(words))


def rows_of(at: Situation, acts: NDArray[float32]) -> NDArray[float32]:
    """Return the features of each NPC that is present; shape (NPCs, features).

    Args:
        acts: Log odds of the second model.
    """
    named = [m for m in at.said.mentions if m.player != at.player]
    return np.array([[*_row(at, npc, named), *acts] for npc in at.present], float32)


def _row(at: Situation, npc: NpcId, named: Sequence[AddresseeMention]) -> Iterator[float]:
    here = set(at.present)
    own, others = [m for m in named if m.npc == npc], [m for m in named if m.npc in here and m.npc != npc]
    places = {m.position for m in own}
    others_apart = [m for m in others if m.position not in places]
    yield from (_most(own), _most(others), _most(others_apart), _most([m for m in named if m.player is not None]))
    yield _most([m for m in named if m.player is None and m.npc not in here])
    order = sorted({m.position for m in named})
    yield from ((order.index(min(places)), order.index(max(places))) if own else (9, -1))
    other_places = {m.position for m in others_apart}
    yield float(min(places) < min(other_places)) if own and other_places else -1
    yield float(max(places) > max(other_places)) if own and other_places else -1
    yield from (len(places), len(other_places), sum(m.is_role for m in own), sum(m.is_guess for m in own))
    yield len({m.npc for m in others if m.position in places})
    yield from _dialogue(at, npc)
    members = {one: at.cast.characters.get(one) for one in at.present}
    words = [token.text for token in at.said.tokens if token.text not in PUNCTUATION]
    business = {one: member.knows_about(words) if member is not None else 0 for one, member in members.items()}
    yield from (business[npc], max((n for one, n in business.items() if one != npc), default=0))
    yield from (len(at.present), not at.cast.answers_uncalled(npc), len(words))
    yield from ("?" in (token.text for token in at.said.tokens), any(word in SECOND_PERSON for word in words))
    yield from (is_filler(at.said.text, is_answer=True), at.is_dm)
    own_last = next((line.text for line in reversed(at.lines) if line.speaker == npc), "")
    yield _shared(own_last, words)


def _most(mentions: Sequence[AddresseeMention]) -> float:
    return max((m.called for m in mentions), default=_NOT_NAMED)


def _dialogue(at: Situation, npc: NpcId) -> Iterator[float]:
    def who(name: str | None) -> int:
        if name is None:
            return 0
        return 1 if name == npc else 2 if name in at.npcs else 3 if name == at.player else 4

    for ago in (1, 2):
        line = at.lines[-ago] if len(at.lines) >= ago else None
        yield 10 * who(line.speaker) + who(line.to) if line is not None else 0
    last = at.lines[-1] if at.lines else None
    yield at.seconds_since(last) if last is not None else _LONG_AGO_S
    yield last.text.rstrip().endswith("?") if last is not None else -1
    for player in (at.player, None):
        found = at.last_exchange(player=player)
        yield from (
            (found[0], at.seconds_since(found[1]), 1 if found[2] == npc else -1) if found else (LINES, _LONG_AGO_S, 0)
        )
    ago = next((n for n, line in enumerate(reversed(at.lines)) if npc in (line.speaker, line.to)), LINES)
    yield from (ago, sum(line.speaker == npc for line in at.lines))
    yield sum(line.speaker in at.npcs for line in at.lines)


def load_models() -> None:
    """Read the weights of these models and of what is asked. Takes some 50 ms: call it before a table opens."""
    for package, name in ((__package__, "acts"), ("glyphoxa.language", "calls"), ("glyphoxa.language", "asks")):
        shipped_regressions(package, name)
    shipped_forest(__package__, "addressee")


class Scores(NamedTuple):
    """
    Attributes:
        npcs: The probability that the words are meant for each NPC that is present.
        aside: The likeliest kind of words for nobody, of `ASIDES`; empty if none is likely.
    """

    npcs: Mapping[NpcId, float]
    aside: str


def scores_of(at: Situation) -> Scores:
    """Return who is probably meant. The same words in the same situation always give the same result."""
    acts = shipped_regressions(__package__, "acts").log_odds(act_signs(at))
    kind = int(acts[1:].argmax())
    odds = shipped_forest(__package__, "addressee").log_odds(rows_of(at, acts)) if at.present else np.zeros(0)
    sure = 1 / (1 + np.exp(-odds))
    npcs = {npc: float(p) for npc, p in zip(at.present, sure, strict=True)}
    return Scores(npcs, ASIDES[kind] if acts[1 + kind] > 0 else "")
