"""Decides which NPC, if any, a player's words are meant for.

Words marked as out of character, whispered to another player, or clearly of the players' own world are for no NPC. All
others are scored by fitted models, for each NPC that is present (`glyphoxa.turns.addressee`): the likeliest one answers
if its probability reaches the table's threshold. By default a false answer costs as much as three misses, because an
NPC that interrupts players is worse than one that must be asked again. An NPC that answers only when called must be
named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.roles import Cast
from glyphoxa.language.table_talk import is_filler
from glyphoxa.names.people import AddresseeMention, Understood
from glyphoxa.turns.addressee import LINES, SaidLine, Scores, Situation, scores_of

THRESHOLDS: Final = {"quiet": 0.8, "balanced": 0.55, "eager": 0.35}
"""Least probability that an NPC is meant, by the table's setting. On worlds that the models were not fitted to, these
cost least if a false answer counts as ten misses, as three, and as one."""
_SECOND: Final = 0.3
"""Least probability of a second NPC that is called together with the first."""
_PERHAPS: Final = -1.0
"""Log odds from which a name may be a call."""
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
        threshold: See `THRESHOLDS`.
        dms: The players who tell the story.

    Attributes:
        lines: The dialogue so far, oldest first.
    """

    cast: Cast = field(default_factory=Cast)
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
