"""Decides which NPC, if any, a player's words are meant for.

Words marked as out of character, whispered to another player, or clearly of the players' own world are for no NPC. All
others are scored by fitted models, for each NPC that is present (`glyphoxa.turns.addressee`): the likeliest one answers
if its probability reaches the table's threshold. By default a false answer costs as much as three misses, because an
NPC that interrupts players is worse than one that must be asked again. An NPC that answers only when called must be
named.

A question to everybody goes to the NPC that it concerns by meaning (`Expertise`), if the words alone leave it open.
The question's content words are compared, as vectors, with each NPC's role, description and other attributes, and with
the words of its trade. It must fit clearly: better than the others present, and no worse than the best of all trades.
"Did anyone see a red coat?" concerns a tailor, so it is not for the medic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.roles import TRADE_WORDS, Cast, cast_of
from glyphoxa.language.table_talk import is_filler
from glyphoxa.language.text import FUNCTION_WORDS, Text
from glyphoxa.names.people import AddresseeMention, Understood
from glyphoxa.turns.addressee import LINES, SaidLine, Scores, Situation, scores_of

THRESHOLDS: Final = {"quiet": 0.8, "balanced": 0.55, "eager": 0.35}
"""Least probability that an NPC is meant, by the table's setting. On worlds that the models were not fitted to, these
cost least if a false answer counts as ten misses, as three, and as one."""
_SECOND: Final = 0.3
"""Least probability of a second NPC that is called together with the first."""
_PERHAPS: Final = -1.0
"""Log odds from which a name may be a call."""
_CONCERNS: Final = 0.55
"""Least share of the threshold that all NPCs together must reach, for a comparison by meaning."""
_MAY_GO_ON = frozenset(
    {None, Unaddressed.NO_NAME, Unaddressed.NO_NPC, Unaddressed.ABOUT, Unaddressed.NARRATION, Unaddressed.NOT_MEANT}
)
"""Words of these kinds may continue a question: they mention somebody, or describe an action meanwhile."""
_ASIDES: Final = {
    "player": ("the players are talking with each other", Unaddressed.PLAYER),
    "about": ("a remark about somebody", Unaddressed.ABOUT),
    "out_of_character": ("out of character", Unaddressed.OUT_OF_CHARACTER),
    "narration": ("describes an action", Unaddressed.NARRATION),
    "thinking": ("thinks aloud", Unaddressed.THINKING),
    "plan": ("the players make plans", Unaddressed.PLANNING),
}


@dataclass(frozen=True, slots=True)
class Addressed:
    """The addressee of a player's words, and the reason.

    Attributes:
        reason: In words.
        unaddressed: The reason as a code if `npc` is None.
        second: A second NPC that was called and may react to the answer.
        player: The other player they are meant for.
        is_apart: No NPC hears them, because it is certain that they are not said in the story.
        command: The DM's command in them, as `glyphoxa.npc.commands` reads it.
    """

    npc: NpcId | None
    reason: str
    unaddressed: Unaddressed | None = None
    second: NpcId | None = None
    player: PlayerId | None = None
    is_apart: bool = False
    command: Mapping[str, object] | None = None

    @property
    def is_aside(self) -> bool:
        """Whether the words clearly have another addressee, so that they cannot continue a question to an NPC."""
        return self.unaddressed not in _MAY_GO_ON


@dataclass(slots=True)
class Addressing:
    """Remembers conversations and decides addressees.

    Args:
        cast: The NPCs' roles.
        by_meaning: Returns which of those present a question to everybody clearly concerns, or None; it may take some
            milliseconds. None: words of the trades alone decide.
        threshold: See `THRESHOLDS`.
        dms: The players who tell the story.

    Attributes:
        lines: The dialogue so far, oldest first.
    """

    cast: Cast = field(default_factory=Cast)
    by_meaning: Callable[[str, Sequence[NpcId]], NpcId | None] | None = None
    threshold: float = THRESHOLDS["balanced"]
    dms: Set[PlayerId] = frozenset()
    lines: deque[SaidLine] = field(default_factory=lambda: deque(maxlen=LINES), init=False)

    def decide(
        self, player: PlayerId, said: Understood, *, present: Sequence[NpcId], names: Mapping[NpcId, str], at_ms: int
    ) -> Addressed:
        """Decide without remembering. The same words at the same time always give the same result."""
        if said.is_marked:
            return Addressed(None, "marked as out of character", Unaddressed.OUT_OF_CHARACTER, is_apart=True)
        if (whispered := _whispered(said.mentions, present)) is not None:
            return whispered
        if said.topic is not None:
            return Addressed(None, f"out of character: {said.topic}", Unaddressed.OUT_OF_CHARACTER, is_apart=True)
        if not present:
            return Addressed(None, "no NPC is here", Unaddressed.NO_NPC)
        heard = self.situation(player, said, present, names, at_ms)
        scores = scores_of(heard)
        if _calls_only_absent(heard):
            return _for_nobody(heard, scores)
        able = {npc: p for npc, p in scores.npcs.items() if self._may_answer(npc, heard)}
        if max(able.values(), default=0.0) >= self.threshold:
            return self._to(heard, able)
        is_open = len(able) > 1 and not said.calls_somebody and sum(able.values()) >= _CONCERNS * self.threshold
        if self.by_meaning is not None and is_open:
            fitting = self.by_meaning(said.text, [*able])
            if fitting is not None:
                return Addressed(fitting, f"asked everybody; it concerns {names[fitting]}")
        return _for_nobody(heard, scores)

    def situation(
        self, player: PlayerId, said: Understood, present: Sequence[NpcId], names: Mapping[NpcId, str], at_ms: int
    ) -> Situation:
        """Return these words and what came before, as the models read them."""
        return Situation(player, said, present, names, self.cast, tuple(self.lines), at_ms, player in self.dms)

    def _may_answer(self, npc: NpcId, heard: Situation) -> bool:
        return self.cast.answers_uncalled(npc) or any(m.npc == npc and m.is_called for m in heard.said.mentions)

    def _to(self, heard: Situation, able: Mapping[NpcId, float]) -> Addressed:
        """Address the likeliest NPC; of two that are called together, the first."""
        best = max(able, key=able.__getitem__)
        named = (m for m in reversed(heard.said.mentions) if m.is_called)
        called = {m.npc: m.position for m in named if m.npc is not None and m.npc in able}
        likeliest = {called[npc]: npc for npc in sorted(called, key=able.__getitem__) if able[npc] >= _SECOND}
        together = [npc for _, npc in sorted(likeliest.items())]
        if best not in together or len(together) == 1:
            return Addressed(best, self._reason(heard, best))
        return Addressed(together[0], self._reason(heard, together[0]), second=together[1])

    def _reason(self, heard: Situation, npc: NpcId) -> str:
        name, exchange = heard.npcs[npc], heard.last_exchange(player=heard.player)
        if any(m.npc == npc and m.is_called for m in heard.said.mentions):
            return f"{name} was called"
        if exchange is not None and exchange[2] == npc:
            return f"continuing with {name}"
        if len(heard.present) == 1:
            return f"{name} is the only NPC here"
        return f"sounds meant for {name}"

    def said(self, player: PlayerId, to: NpcId | PlayerId | None, text: str, *, at_ms: int) -> None:
        """Remember a player's words and whom they were meant for. The same words again correct that."""
        line = SaidLine(player, to, text, at_ms)
        own = [at for at, each in enumerate(self.lines) if each.speaker == player]
        if own and self.lines[own[-1]].text == text:
            self.lines[own[-1]] = line
        else:
            self.lines.append(line)

    def answered(self, npc: NpcId, to: PlayerId | None, text: str, *, at_ms: int) -> None:
        """Remember what was heard of an NPC's answer."""
        self.lines.append(SaidLine(npc, to, text, at_ms))

    def restore(self, said: Sequence[Utterance]) -> None:
        """Remember what was said before a restart.

        An answer after several speakers counts for none of them, because the log does not tell whose it was.
        """
        spoke: set[str] = set()
        for utterance in said:
            at_ms = utterance.at_ms + utterance.duration_ms
            if utterance.npc_id is None:
                spoke.add(utterance.speaker_id)
                self.said(PlayerId(utterance.speaker_id), None, utterance.text, at_ms=at_ms)
            else:
                to = PlayerId(spoke.pop()) if len(spoke) == 1 else None
                self.answered(utterance.npc_id, to, utterance.text, at_ms=at_ms)
                spoke.clear()

    def forget(self, player: PlayerId) -> None:
        """End this player's conversation."""
        told = [line._replace(to=None) if player in (line.speaker, line.to) else line for line in self.lines]
        self.lines = deque(told, LINES)

    def forget_all(self) -> None:
        """End all conversations, because the scene changed."""
        self.lines.clear()


def _whispered(mentions: Sequence[AddresseeMention], present: Sequence[NpcId]) -> Addressed | None:
    whispered = next((m for m in mentions if m.is_whispered), None)
    if whispered is None:
        return None
    if whispered.npc is not None:
        if whispered.npc in present:
            return Addressed(whispered.npc, f"{whispered.name} was called")
        return Addressed(None, f"{whispered.name} was called but is not here", Unaddressed.ABSENT, is_apart=True)
    name, player = whispered.name, whispered.player
    return Addressed(None, f"whispered to {name}", Unaddressed.WHISPER, player=player, is_apart=True)


def _calls_only_absent(heard: Situation) -> bool:
    """Return whether NPCs are called, but none that is here: nobody answers in their place."""
    perhaps = [m.npc for m in heard.said.mentions if m.npc and m.called > _PERHAPS and not (m.is_guess or m.is_role)]
    return bool(perhaps) and set(perhaps).isdisjoint(heard.present)


def _for_nobody(heard: Situation, scores: Scores) -> Addressed:
    said, called = heard.said, sorted((m for m in heard.said.mentions if m.is_called), key=lambda m: m.position)
    player = next((m for m in called if m.player is not None and m.player != heard.player), None)
    if player is not None:
        return Addressed(None, f"{player.name}, a player, was called", Unaddressed.PLAYER, player=player.player)
    absent = next((m for m in called if m.player is None and m.npc not in heard.present), None)
    if absent is not None:
        return Addressed(None, f"{absent.name} was called but is not here", Unaddressed.ABSENT)
    if is_filler(said.text, is_answer=False):
        return Addressed(None, "only fillers", Unaddressed.FILLER)
    if not scores.aside or sum(scores.npcs.values()) >= THRESHOLDS["eager"]:
        reason = "no name, and several NPCs are here" if len(heard.present) > 1 else "not clearly meant for an NPC"
        return Addressed(None, reason, Unaddressed.NO_NAME)
    reason, why = _ASIDES[scores.aside]
    # Plans are kept from NPCs, unless the player is just talking with one of them.
    is_apart = why is Unaddressed.PLANNING and not heard.conversation().startswith("own")
    return Addressed(None, reason, why, is_apart=is_apart)


Embed = Callable[[Sequence[str]], NDArray[float32]]
"""Returns rows of unit length. It may take some milliseconds: it is asked only if the words leave open who is meant."""
_CLEARLY: Final = 0.06
"""Least distance in cosine to the next NPC."""
_BELOW_A_TRADE: Final = 0.05
"""How much closer the question may be to a trade that the NPC does not have."""
_LEAST: Final = 0.24
_MOST_WORDS: Final = 16
_REMEMBERED: Final = 64


class Expertise:
    """
    Args:
        profiles: For each NPC, the vectors of its role, attributes and trades; shape (n, dimensions).
        trades: The vectors of each trade's words.
    """

    def __init__(
        self, profiles: Mapping[NpcId, NDArray[float32]], trades: Sequence[NDArray[float32]], embed: Embed
    ) -> None:
        self._profiles = profiles
        self._trades = trades
        self._embed = embed
        self._asked = lru_cache(_REMEMBERED)(self._vector)

    @classmethod
    def of(cls, campaign: Campaign, embed: Embed) -> Self:
        """Embed the profiles of the NPCs that answer without being called. Takes a second: call it in a thread."""
        entities = {entity.id: entity for entity in campaign.entities}
        trades = {trade: embed(sorted(words)) for trade, words in TRADE_WORDS.items()}
        profiles: dict[NpcId, NDArray[float32]] = {}
        for npc, member in cast_of(campaign).characters.items():
            entity = entities.get(campaign.npc(npc).entity_id)
            told = entity.attributes.values() if entity is not None else ()
            texts = [text for text in (member.role, *told) if isinstance(text, str) and text.strip()]
            if texts and not member.address_only:
                profiles[npc] = np.concatenate([embed(texts), *(trades[trade] for trade in sorted(member.trades))])
        return cls(profiles, list(trades.values()), embed)

    def fitting(self, question: str, present: Sequence[NpcId]) -> NpcId | None:
        """Return the present NPC that a question to everybody clearly concerns; None for none."""
        known = [npc for npc in present if npc in self._profiles]
        asked = [word for word in Text.of(question).spoken if word not in FUNCTION_WORDS]
        if not known or not asked:
            return None
        vector = self._asked(" ".join(asked[-_MOST_WORDS:]))
        fits = sorted(((float((self._profiles[npc] @ vector).max()), npc) for npc in known), reverse=True)
        best, npc = fits[0]
        another = fits[1][0] if len(fits) > 1 else 0.0
        trade = max(float((words @ vector).max()) for words in self._trades)
        is_clear = best >= max(_LEAST, another + _CLEARLY, trade - _BELOW_A_TRADE)
        return npc if is_clear else None

    def _vector(self, text: str) -> NDArray[float32]:
        vector: NDArray[float32] = self._embed([text])[0]
        return vector
