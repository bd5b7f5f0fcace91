"""Decides which NPC, if any, a player's words are meant for.

Rules, in this order:

1. Words marked as out of character, or whispered to another player, are meant for no NPC.
2. An NPC of the scene called by name, alias or role ("Smith, ..."; `glyphoxa.language.calls`) answers; a second one
   called reacts. If another player is called, or the only named NPC is told that they are not meant, nobody answers.
3. If somebody absent is called, nobody answers in their place.
4. Words clearly of the players' own world, or only fillers, are meant for nobody (`glyphoxa.language.table_talk`).
5. Plans, thoughts, narration and remarks about somebody present are meant for nobody
   (`glyphoxa.language.sentence_form`). In conversation with an NPC, a player may speak to it about others.
6. A question to everybody goes to the NPC whose trade it concerns, or that it clearly fits by meaning (`Expertise`).
7. Other words go to the NPC that this player was just talking to.
8. A question or request goes to the NPC whose trade it concerns, else to the only NPC in the scene.

If in doubt, nobody answers: an NPC that interrupts players is worse than one that must be asked again.

By meaning, the question's content words are compared, as vectors, with each NPC's role, description and other
attributes, and with the words of its trade. An NPC is meant only if it fits clearly: better than the others present,
and no worse than the best of all trades, whether or not somebody here has it. "Did anyone see a red coat?" concerns a
tailor, so it is not for the medic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final, Self

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.calls import CallKind
from glyphoxa.language.roles import TRADE_WORDS, Cast, cast_of
from glyphoxa.language.sentence_form import Form, without_call_to_all
from glyphoxa.language.table_talk import is_filler
from glyphoxa.language.text import FUNCTION_WORDS, Text
from glyphoxa.names.people import AddresseeMention, Understood

_AMONG_PLAYERS_MS = 20_000
"""Time after a remark to another player in which words without a name are still meant for players."""
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
"""Words of these kinds may continue a question: they mention somebody, or describe an action meanwhile."""


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


@dataclass(frozen=True, slots=True)
class _Heard:
    """Understood words and their context.

    Attributes:
        mentions: Those of others than the speaker, one for each place.
    """

    said: Understood
    mentions: Sequence[AddresseeMention]
    present: Sequence[NpcId]
    names: Mapping[NpcId, str]
    last: NpcId | None
    is_among_players: bool

    @property
    def whole(self) -> Form:
        return self.said.whole

    def turns_to(self, mention: AddresseeMention, *, after: AddresseeMention) -> bool:
        """Return whether a new sentence calls somebody else: "Kara, wait. Oskar, what does it cost?"."""
        return re.search(r"[.!?…]", self.said.text[after.end : mention.start]) is not None


@dataclass(slots=True)
class Addressing:
    """Remembers conversations and decides addressees.

    Args:
        cast: The NPCs' roles.
        by_meaning: Returns which of those present a question to everybody clearly concerns, or None; it may take some
            milliseconds. None: words of the trades alone decide.
        going_on_ms: Time after the last exchange with an NPC in which a player's words without a name go to it.
    """

    cast: Cast = field(default_factory=Cast)
    by_meaning: Callable[[str, Sequence[NpcId]], NpcId | None] | None = None
    going_on_ms: int = 30_000
    _last: dict[PlayerId, tuple[NpcId, int]] = field(default_factory=dict)
    _among_players: dict[PlayerId, int] = field(default_factory=dict)

    def decide(
        self, player: PlayerId, said: Understood, *, present: Sequence[NpcId], names: Mapping[NpcId, str], at_ms: int
    ) -> Addressed:
        """Decide without remembering. The same words at the same time always give the same result."""
        if said.is_marked:
            return Addressed(None, "marked as out of character", Unaddressed.OUT_OF_CHARACTER, is_apart=True)
        last = self._going_on_with(player, present, at_ms)
        others = (m for m in said.mentions if m.is_whispered or m.player != player)
        places = groupby(others, key=attrgetter("position"))
        mentions = [self._one_of([*same], said, present, last) for _, same in places]
        among_ms = self._among_players.get(player)
        is_among_players = among_ms is not None and at_ms - among_ms <= _AMONG_PLAYERS_MS
        heard = _Heard(said, mentions, present, names, last, is_among_players)
        return (
            _whispered(said.mentions)
            or _called(heard)
            or _aside(said, is_going_on=last is not None)
            or _among_themselves(heard)
            or self._unnamed(heard)
        )

    def remember(self, player: PlayerId, npc: NpcId, *, at_ms: int) -> None:
        """Note an exchange: the player's turn ended, or the NPC finished its answer."""
        self._last[player] = (npc, at_ms)
        self._among_players.pop(player, None)

    def remember_players(self, *players: PlayerId, at_ms: int) -> None:
        """Note that one of these players spoke to the others."""
        for player in players:
            self._among_players[player] = at_ms

    def forget(self, player: PlayerId) -> None:
        """End this player's conversation."""
        self._last.pop(player, None)

    def forget_all(self) -> None:
        """End all conversations, because the scene changed."""
        self._last.clear()
        self._among_players.clear()

    def _one_of(
        self, same: Sequence[AddresseeMention], said: Understood, present: Sequence[NpcId], last: NpcId | None
    ) -> AddresseeMention:
        """Return which of several that share a name or a role is meant: one that is present, and no other has it."""
        here = [m for m in same if m.npc in present] or list(same)
        text = said.text[here[0].start : here[0].end]
        if here[0].is_role and len(here) > 1:
            noun = text.lower()
            members = [self.cast.characters.get(m.npc) for m in here if m.npc is not None]
            exact = [m for m, of in zip(here, members, strict=False) if of is not None and noun in of.role.split()]
            here = exact or here
        if len(here) == 1 or here[0].npc not in present:
            return here[0]
        is_last = next((m for m in here if m.npc == last), None)
        return is_last or replace(here[0], npc=None, name=text, is_of_several=True)

    def _going_on_with(self, player: PlayerId, present: Sequence[NpcId], at_ms: int) -> NpcId | None:
        last, last_ms = self._last.get(player, (None, 0))
        if last is None or last not in present or not self.cast.answers_uncalled(last):
            return None
        return last if at_ms - last_ms <= self.going_on_ms else None

    def _unnamed(self, heard: _Heard) -> Addressed:
        if not heard.present:
            return Addressed(None, "no NPC is here", Unaddressed.NO_NPC)
        if heard.whole.to_all and (to_all := self._expert(heard, "asked everybody; about the trade of")) is not None:
            return to_all
        if heard.whole.to_all and self.by_meaning is not None:
            fitting = self.by_meaning(heard.said.text, heard.present)
            if fitting is not None:
                return Addressed(fitting, f"asked everybody; it concerns {heard.names[fitting]}")
        if heard.last is not None and not heard.is_among_players:
            return Addressed(heard.last, f"continuing with {heard.names[heard.last]}")
        if heard.is_among_players:
            return Addressed(None, "the players are talking with each other", Unaddressed.PLAYER)
        if not heard.whole.asks_somebody:
            return Addressed(None, "no name, and no question or request", Unaddressed.NO_NAME)
        if (expert := self._expert(heard, "about the trade of")) is not None:
            return expert
        listening = [npc for npc in heard.present if self.cast.answers_uncalled(npc)]
        if len(heard.present) == 1 and listening:
            return Addressed(listening[0], f"{heard.names[listening[0]]} is the only NPC here")
        if len(heard.present) == 1:
            return Addressed(None, f"{heard.names[heard.present[0]]} answers only when called", Unaddressed.NO_NAME)
        return Addressed(None, "no name, and several NPCs are here", Unaddressed.NO_NAME)

    def _expert(self, heard: _Heard, why: str) -> Addressed | None:
        npc = self.cast.expert(heard.said.text, heard.present)
        return Addressed(npc, f"{why} {heard.names[npc]}") if npc is not None else None


def _whispered(mentions: Sequence[AddresseeMention]) -> Addressed | None:
    whispered = next((m for m in mentions if m.is_whispered), None)
    if whispered is None or whispered.npc is not None:
        return None
    name, player = whispered.name, whispered.player
    return Addressed(None, f"whispered to {name}", Unaddressed.WHISPER, player=player, is_apart=True)


def _called(heard: _Heard) -> Addressed | None:
    called = sorted((m for m in heard.mentions if m.is_called), key=attrgetter("position"))
    told_off = [m for m in heard.mentions if m.call is CallKind.DENIED]
    denied = {m.npc for m in told_off}
    here = [m for m in called if m.npc in heard.present and m.npc not in denied]
    player = next((m for m in called if m.npc is None and m.is_played and not m.is_of_several), None)
    if here and (player is None or here[0].position < player.position or heard.turns_to(here[0], after=player)):
        others = [m.npc for m in here if m.npc != here[0].npc]
        return Addressed(here[0].npc, f"{here[0].name} was called", second=others[0] if others else None)
    if player is not None:
        return Addressed(None, f"{player.name}, a player, was called", Unaddressed.PLAYER, player=player.player)
    if told_off:
        return Addressed(None, f"{told_off[0].name} was told that they are not meant", Unaddressed.NOT_MEANT)
    if heard.said.is_denial:
        return Addressed(None, "somebody was told that they are not meant", Unaddressed.NOT_MEANT)
    several = next((m for m in called if m.is_of_several), None)
    if several is not None:
        return Addressed(None, f"several NPCs here are called {several.name}", Unaddressed.NO_NAME)
    absent = next((m for m in called if m.npc not in heard.present and (m.is_sure or not m.is_played)), None)
    if absent is not None:
        return Addressed(None, f"{absent.name} was called but is not here", Unaddressed.ABSENT)
    return None


def _aside(said: Understood, *, is_going_on: bool) -> Addressed | None:
    if said.topic is not None:
        return Addressed(None, f"out of character: {said.topic}", Unaddressed.OUT_OF_CHARACTER, is_apart=True)
    if is_filler(said.text, is_answer=is_going_on):
        return Addressed(None, "only fillers", Unaddressed.FILLER)
    return None


def _among_themselves(heard: _Heard) -> Addressed | None:
    """Return a result for plans, remarks about somebody present, narration and thoughts."""
    if heard.whole.others or (heard.whole.greeted_all and not heard.whole.question and len(heard.present) > 1):
        return Addressed(None, "said to all the players", Unaddressed.PLAYER)
    asks = any(f.asks_somebody and not (f.plan or f.aloud) for f in heard.said.forms)
    if heard.whole.plan and not asks and not (heard.last is not None and heard.whole.talked):
        # A question, or words to the NPC that just spoke, may be meant for it after all. Decisions are for everybody.
        is_apart = heard.last is None and not heard.whole.question and not heard.whole.decided
        return Addressed(None, "the players make plans", Unaddressed.PLANNING, is_apart=is_apart)
    if heard.whole.doubt and not (heard.last is not None and heard.whole.second):
        return Addressed(None, "a remark about somebody", Unaddressed.ABOUT)
    if (about := _about(heard)) is not None:
        return about
    directed = any(f.second or (f.order and not f.narration) or f.greeting for f in heard.said.forms)
    narrated = [f for f in heard.said.forms if f.narration and not (f.weak_act and heard.last is not None)]
    if narrated and not directed:
        return Addressed(None, "describes an action", Unaddressed.NARRATION)
    if heard.whole.aloud and not heard.whole.second:
        return Addressed(None, "thinks aloud", Unaddressed.THINKING)
    return None


def _about(heard: _Heard) -> Addressed | None:
    here = [m for m in heard.mentions if m.call is CallKind.ABOUT and m.npc in heard.present]
    if not here:
        return None
    of_last = any(m.npc == heard.last for m in here)
    if heard.last is not None and (heard.whole.second or (heard.whole.question and not of_last)):
        return None
    return Addressed(None, f"{here[0].name} is only mentioned", Unaddressed.ABOUT)


# Who was talking with whom when a session was left, derived from its transcript.


def exchanges(said: Sequence[Utterance]) -> Iterator[tuple[PlayerId, NpcId, int]]:
    """Yield each answered player, the NPC, and when its answer ended, oldest first.

    If several players spoke before an answer, it counts for none of them, because the log does not tell whose it was.
    """
    spoke: set[str] = set()
    for utterance in said:
        if utterance.npc_id is None:
            spoke.add(utterance.speaker_id)
            continue
        if len(spoke) == 1:
            yield PlayerId(spoke.pop()), utterance.npc_id, utterance.at_ms + utterance.duration_ms
        spoke.clear()


Embed = Callable[[Sequence[str]], NDArray[float32]]
"""Returns rows of unit length. It may take some milliseconds, because only questions to everybody are embedded."""
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
        asked = [word for word in Text.of(without_call_to_all(question)).spoken if word not in FUNCTION_WORDS]
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
