"""Which NPC, if any, a player's words are meant for.

In this order:

1. What is marked as out of character, or whispered to another player, is meant for no NPC.
2. Who is called, by name, alias or role ("Smith, ..."; `glyphoxa.turns.calls`): the first one of those who are here
   leads, and a second one reacts. Calling another player means: no NPC. So does telling the only one named that
   they are not meant.
3. Somebody called who is not here is answered by nobody: no other speaks in their place.
4. What is plainly of the players' own world, or nothing but a filler, is meant for nobody (`glyphoxa.turns.aside`).
5. Plans, thoughts, narration and talk about those who are here are meant for nobody (`glyphoxa.turns.sentence_form`).
   Who is just talking with an NPC may speak to it of others.
6. A question to everybody: the one whose trade it is.
7. The NPC that this player was just talking to.
8. Of what asks something of somebody, the one whose trade it is, else the only NPC in the scene.

In doubt it is nobody: an NPC that speaks up among players is worse than one that has to be asked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.turns.aside import is_filler, marked_out_of_character, out_of_character
from glyphoxa.turns.calls import Calls, calls_in
from glyphoxa.turns.cast import Cast
from glyphoxa.turns.mention import AddresseeMention
from glyphoxa.turns.sentence_form import Form, all_of, form_of
from glyphoxa.turns.sentences import sentences_of

_AMONG_PLAYERS_MS = 20_000
"""How long after a word to another player what calls nobody is still taken to be for players."""
_MAY_GO_ON = frozenset(
    {
        None,
        Unaddressed.NO_NAME,
        Unaddressed.NO_NPC,
        Unaddressed.ABOUT,
        Unaddressed.NARRATION,
        Unaddressed.NOT_MEANT,
    }
)
"""What may be a part of a question that its speaker goes on with: they tell of somebody, or what they do meanwhile."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a player said, and who is named in it."""

    player: PlayerId
    text: str
    mentions: Sequence[AddresseeMention] = ()


@dataclass(frozen=True, slots=True)
class Addressed:
    """Whom a player's words are meant for, and why.

    Attributes:
        reason: In words.
        unaddressed: The same in one word when `npc` is None.
        second: Who is called beside `npc`, and may react to what it answers.
        player: The other player whom they are meant for.
    """

    npc: NpcId | None
    reason: str
    unaddressed: Unaddressed | None = None
    second: NpcId | None = None
    player: PlayerId | None = None

    @property
    def is_aside(self) -> bool:
        """The words are plainly meant for somebody else or nobody: no part of a question to an NPC."""
        return self.unaddressed not in _MAY_GO_ON


@dataclass(slots=True)
class _Heard:
    """What was said, looked at closely, and what came before it."""

    said: Said
    mentions: Sequence[AddresseeMention]
    calls: Calls
    forms: Sequence[Form]
    present: Sequence[NpcId]
    names: Mapping[NpcId, str]
    last: NpcId | None
    is_among_players: bool

    @property
    def whole(self) -> Form:
        return all_of(self.forms)

    def turns_to(self, mention: AddresseeMention, *, behind: AddresseeMention) -> bool:
        """A new sentence calls somebody else: "Kara, wait. Oskar, what does it cost?"."""
        return re.search(r"[.!?…]", self.said.text[behind.end : mention.start]) is not None


@dataclass(slots=True)
class Addressing:
    """Remembers who talks to whom.

    Args:
        cast: The NPCs' roles.
        going_on_ms: How long after the last exchange with an NPC a player's words without a name still go to it.
    """

    cast: Cast = field(default_factory=Cast)
    going_on_ms: int = 30_000
    _last: dict[PlayerId, tuple[NpcId, int]] = field(default_factory=dict)
    _among_players: dict[PlayerId, int] = field(default_factory=dict)

    def decide(self, said: Said, *, present: Sequence[NpcId], names: Mapping[NpcId, str], at_ms: int) -> Addressed:
        """Decide without remembering; the same words at the same time always give the same answer."""
        if marked_out_of_character(said.text):
            return Addressed(None, "marked as out of character", Unaddressed.OUT_OF_CHARACTER)
        heard = self._heard(said, present, names, at_ms)
        return (
            _whispered(said.mentions)
            or _called(heard)
            or _aside(said.text, is_going_on=heard.last is not None)
            or _among_themselves(heard)
            or self._unnamed(heard)
        )

    def remember(self, player: PlayerId, npc: NpcId, *, at_ms: int) -> None:
        """An exchange between them took place (the player's turn ended, or the NPC finished its answer)."""
        self._last[player] = (npc, at_ms)
        self._among_players.pop(player, None)

    def remember_players(self, *players: PlayerId, at_ms: int) -> None:
        """One of them spoke to the others."""
        for player in players:
            self._among_players[player] = at_ms

    def forget_all(self) -> None:
        """The scene changed: what was going on is over."""
        self._last.clear()
        self._among_players.clear()

    def _heard(self, said: Said, present: Sequence[NpcId], names: Mapping[NpcId, str], at_ms: int) -> _Heard:
        placed = [m for m in said.mentions if m.end]
        roles = self.cast.roles_in(said.text, present)
        free = [r for r in roles if not any(m.start < r.end and r.start < m.end for m in placed)]
        mentions = _apart(sorted((*placed, *free), key=lambda m: (m.start, m.npc not in present)))
        sentences = sentences_of(said.text, [(m.start, m.end) for m in mentions])
        calls = calls_in(sentences, mentions)
        unplaced = [m for m in said.mentions if not m.end]
        first = len(mentions)
        calls.called += [first + n for n, m in enumerate(unplaced) if m.is_vocative]
        calls.about += [first + n for n, m in enumerate(unplaced) if not m.is_vocative]
        among_ms = self._among_players.get(said.player)
        return _Heard(
            said,
            [*mentions, *unplaced],
            calls,
            [form_of(sentence) for sentence in sentences],
            present,
            names,
            self._going_on_with(said.player, present, at_ms),
            among_ms is not None and at_ms - among_ms <= _AMONG_PLAYERS_MS,
        )

    def _going_on_with(self, player: PlayerId, present: Sequence[NpcId], at_ms: int) -> NpcId | None:
        last, last_ms = self._last.get(player, (None, 0))
        if last is None or last not in present or not self.cast.answers_uncalled(last):
            return None
        return last if at_ms - last_ms <= self.going_on_ms else None

    def _unnamed(self, heard: _Heard) -> Addressed:
        if not heard.present:
            return Addressed(None, "no NPC is here", Unaddressed.NO_NPC)
        if (
            heard.whole.to_all
            and (to_all := self._expert(heard, "asked everybody, and it is the trade of")) is not None
        ):
            return to_all
        if heard.last is not None and not heard.is_among_players:
            return Addressed(heard.last, f"going on with {heard.names[heard.last]}")
        if heard.is_among_players:
            return Addressed(None, "the players are talking with each other", Unaddressed.PLAYER)
        if not heard.whole.asks_somebody:
            return Addressed(None, "no name, and nothing that asks for an answer", Unaddressed.NO_NAME)
        if (expert := self._expert(heard, "it is the trade of")) is not None:
            return expert
        listening = [npc for npc in heard.present if self.cast.answers_uncalled(npc)]
        if len(heard.present) == 1 and listening:
            return Addressed(listening[0], f"{heard.names[listening[0]]} is the only one here")
        if len(heard.present) == 1:
            return Addressed(None, f"{heard.names[heard.present[0]]} answers only who calls", Unaddressed.NO_NAME)
        return Addressed(None, "no name, and more than one could be meant", Unaddressed.NO_NAME)

    def _expert(self, heard: _Heard, why: str) -> Addressed | None:
        npc = self.cast.expert(heard.said.text, heard.present)
        return Addressed(npc, f"{why} {heard.names[npc]}") if npc is not None else None


def _apart(mentions: Sequence[AddresseeMention]) -> list[AddresseeMention]:
    """One mention for one place: the first of several."""
    kept: list[AddresseeMention] = []
    for mention in mentions:
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def _whispered(mentions: Sequence[AddresseeMention]) -> Addressed | None:
    whispered = next((m for m in mentions if m.is_whispered), None)
    if whispered is None or whispered.npc is not None:
        return None
    return Addressed(None, f"whispered to {whispered.name}", Unaddressed.PLAYER, player=whispered.player)


def _called(heard: _Heard) -> Addressed | None:
    wanted = [*heard.calls.meant, *heard.calls.called]
    called = sorted((heard.mentions[n] for n in wanted), key=lambda m: m.position)
    denied = {heard.mentions[n].npc for n in heard.calls.denied}
    here = [m for m in called if m.npc in heard.present and m.npc not in denied]
    player = next((m for m in called if m.npc is None and m.is_played), None)
    if here and (player is None or here[0].position < player.position or heard.turns_to(here[0], behind=player)):
        others = [m.npc for m in here if m.npc != here[0].npc]
        return Addressed(here[0].npc, f"{here[0].name} was called", second=others[0] if others else None)
    if player is not None:
        return Addressed(None, f"{player.name} was called, a player", Unaddressed.PLAYER, player=player.player)
    if heard.calls.denied:
        name = heard.mentions[heard.calls.denied[0]].name
        return Addressed(None, f"{name} is told not to be meant", Unaddressed.NOT_MEANT)
    if heard.calls.is_denial:
        return Addressed(None, "somebody is told not to be meant", Unaddressed.NOT_MEANT)
    absent = next((m for m in called if m.npc not in heard.present and (m.is_sure or not m.is_played)), None)
    if absent is not None:
        return Addressed(None, f"{absent.name} was called, who is not here", Unaddressed.ABSENT)
    return None


def _aside(text: str, *, is_going_on: bool) -> Addressed | None:
    if (why := out_of_character(text)) is not None:
        return Addressed(None, f"out of character: {why}", Unaddressed.OUT_OF_CHARACTER)
    if is_filler(text, is_answer=is_going_on):
        return Addressed(None, "only fillers", Unaddressed.FILLER)
    return None


def _among_themselves(heard: _Heard) -> Addressed | None:
    """Plans, talk about somebody who is here, narration, thoughts: nothing that an NPC is to answer."""
    if heard.whole.others or (heard.whole.greeted_all and not heard.whole.question and len(heard.present) > 1):
        return Addressed(None, "said to all the players", Unaddressed.PLAYER)
    asks = any(f.asks_somebody and not (f.plan or f.aloud) for f in heard.forms)
    if heard.whole.plan and not asks and not (heard.last is not None and heard.whole.talked):
        return Addressed(None, "the players make plans", Unaddressed.PLANNING)
    if heard.whole.doubt and not (heard.last is not None and heard.whole.second):
        return Addressed(None, "talk about somebody", Unaddressed.ABOUT)
    if (about := _about(heard)) is not None:
        return about
    directed = any(f.second or (f.order and not f.narration) or f.greeting for f in heard.forms)
    narrated = [f for f in heard.forms if f.narration and not (f.weak_act and heard.last is not None)]
    if narrated and not directed:
        return Addressed(None, "tells what somebody does", Unaddressed.NARRATION)
    if heard.whole.aloud and not heard.whole.second:
        return Addressed(None, "thinks aloud", Unaddressed.THINKING)
    return None


def _about(heard: _Heard) -> Addressed | None:
    about = [heard.mentions[n] for n in heard.calls.about]
    here = [m for m in about if m.npc is not None and m.npc in heard.present]
    if not here:
        return None
    of_last = any(m.npc == heard.last for m in here)
    if heard.last is not None and (heard.whole.second or (heard.whole.question and not of_last)):
        return None
    return Addressed(None, f"{here[0].name} is only talked about", Unaddressed.ABOUT)
