"""Which NPC, if any, a player's words are meant for.

In this order:

1. What is marked as out of character, or whispered to another player, is meant for no NPC.
2. Who is called, by name, alias or role ("Smith, ..."; `glyphoxa.language.calls`): the first one of those who are here
   leads, and a second one reacts. Calling another player means: no NPC. So does telling the only one named that
   they are not meant.
3. Somebody called who is not here is answered by nobody: no other speaks in their place.
4. What is plainly of the players' own world, or nothing but a filler, is meant for nobody (`out_of_character`).
5. Plans, thoughts, narration and talk about those who are here are meant for nobody
   (`glyphoxa.language.sentence_form`). Who is just talking with an NPC may speak to it of others.
6. A question to everybody: the one whose trade it is.
7. The NPC that this player was just talking to.
8. Of what asks something of somebody, the one whose trade it is, else the only NPC in the scene.

In doubt it is nobody: an NPC that speaks up among players is worse than one that has to be asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.language.calls import CallKind, Calls, calls_in
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.sentence_form import Form, all_of, form_of
from glyphoxa.turns.barge_in import BACKCHANNEL


@dataclass(frozen=True, slots=True)
class AddresseeMention:
    """Somebody's name in what was said.

    Attributes:
        npc: Whose name, None for a player's and for somebody whom nobody plays.
        position: Index of its first word.
        is_vocative: The name is called rather than talked about.
        is_sure: It is called beyond doubt: enough to say that who is not here was meant.
        is_whispered: It says to whom all that was said is directed: "(to Mira) ...".
        is_played: An NPC or a player has this name, and not only somebody in the story.
        is_owner: It says whose something is: "Mira's hat".
        is_role: Not by a name but by a word for what they are: "smith".
        entity_id: Whose name; None for somebody whom the campaign does not know.
        player: Whose name, if it is a player's.
        start: Place of its first character in the text; `end` is one past the last, 0 where the place is not known.
    """

    npc: NpcId | None
    name: str
    position: int
    is_vocative: bool
    is_sure: bool = False
    is_whispered: bool = False
    is_played: bool = True
    player: PlayerId | None = None
    start: int = 0
    end: int = 0
    is_owner: bool = False
    is_role: bool = False
    entity_id: EntityId | None = None


# Words that are plainly meant for no NPC, whoever is here: of the players' own world, or no words at all.
#
# Only the clear cases, in all languages: tables mix them. Who plays an innkeeper's guest may well ask for a break or a
# game of dice, so single words decide little; what decides is a form that only players use ("brb", "roll for", "W20").
# A name that is called outranks all but what is marked as out of character.


_WORDS: Final = lexicon("table_talk")
_MARKED_WHOLE: Final = _WORDS.compile(r"\W*{marks}\b|\W*(?:{marks}|{short_marks})\s*[:)\]]|\s*//", flags=re.IGNORECASE)
_MARKED_BRACKET: Final = _WORDS.compile(
    r"\(\(.*?(?:\)\)|$)|[(\[{]\s*(?:{marks}|{bracket_marks})\b[^)\]}]*(?:[)\]}]+|$)",
    flags=re.IGNORECASE | re.DOTALL,
)
_REASONS: Final = {
    "absence": "somebody leaves the table for a moment",
    "delivery": "food or a caller at the players' own door",
    "dice": "dice",
    "rules": "rules of the game",
    "snacks": "snacks on the players' own table",
    "turns": "the order of play",
    "evening": "the evening, not the story",
}
_TOPICS: Final = tuple(
    (why, _WORDS.words(f"{key}_signs"), _WORDS.pattern(key, flags=re.IGNORECASE)) for key, why in _REASONS.items()
)
"""What it is, what one of must be in the words, and what decides: most that is said needs no closer look."""

_SOUNDS: Final = lexicon("fillers").words("sounds")
"""Of listening, thinking and laughing: no answer to anything."""
_THINKING: Final = _SOUNDS | lexicon("fillers").words("thinking")
"""Likewise, but as a question ("Well?") they ask somebody to speak."""
_FILLERS: Final = _THINKING | BACKCHANNEL
_WORDS_REMEMBERED = 8192
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")


def marked_out_of_character(text: str) -> bool:
    """The players' own mark stands before all of it: "ooc: ...", "(ooc ...)", "((...))"."""
    if _MARKED_WHOLE.match(text) and not text.lstrip().startswith(("(", "[", "{")):
        return True
    unmarked = _MARKED_BRACKET.sub(" ", text)
    return unmarked != text and re.search(r"\w", unmarked) is None


def out_of_character(text: str) -> str | None:
    """What of the players' own world it speaks of, in words; None if it may well be part of the story."""
    suspected = {at for word in text.lower().split() for at in _signs_in(word)}
    for at in sorted(suspected):
        why, _, pattern = _TOPICS[at]
        if pattern.search(text):
            return why
    return None


@lru_cache(_WORDS_REMEMBERED)  # a partial transcript repeats the words of the one before it
def _signs_in(word: str) -> tuple[int, ...]:
    """What of `_TOPICS` has a sign in a word."""
    return tuple(at for at, (_, signs, _) in enumerate(_TOPICS) if any(sign in word for sign in signs))


def is_filler(text: str, *, is_answer: bool) -> bool:
    """Whether it holds nothing but fillers.

    Args:
        is_answer: An NPC was just talked with: "yes" and "all right" are then words.
    """
    fillers = _SOUNDS if "?" in text else _THINKING if is_answer else _FILLERS
    said = _WORD.finditer(text.lower())
    return all(word[0] in fillers for word in said) and _DIGIT.search(text) is None


# Trades: what they are called, and what one asks them for.


_TRADE_WORDS: Final = lexicon("trades")
_TRADE_NAMES: Final = tuple(_TRADE_WORDS.tables("names"))
_BUSINESS: Final = tuple(_TRADE_WORDS.tables("business"))
_FEMININE: Final = _TRADE_WORDS.words("feminine")
_SHORTEST_PART: Final = 4
"""Of a word that is part of a longer one: "smith" of "blacksmith"."""
_SHORTEST_BEGINNING: Final = 4


@lru_cache(1024)
def trades_of(noun: str) -> frozenset[str]:
    """Which trades a noun may name; in lower case."""
    forms = {noun, _masculine(noun)}
    named = frozenset(trade for trade, names in _TRADE_NAMES if forms & names)
    if named:
        return named
    parts = [(name, trade) for trade, names in _TRADE_NAMES for name in names if len(name) > _SHORTEST_PART]
    return frozenset(trade for name, trade in parts if any(form.endswith(name) for form in forms))


@lru_cache(4096)
def is_business(word: str, trades: frozenset[str]) -> bool:
    """Whether a word, in lower case, is the business of one of the trades."""
    return any(
        word == stem or (len(stem) >= _SHORTEST_BEGINNING and word.startswith(stem)) or word == f"{stem}s"
        for trade, stems in _BUSINESS
        if trade in trades
        for stem in stems
    )


@lru_cache(1024)
def is_called_by(noun: str, role: str) -> bool:
    """Whether somebody of that role may be called by a noun; both in lower case, the role one word."""
    noun, role = _masculine(noun), _masculine(role)
    shorter, longer = sorted((noun, role), key=len)
    return (
        noun == role
        or (len(shorter) >= _SHORTEST_PART and longer.endswith(shorter))
        or not trades_of(noun).isdisjoint(trades_of(role))
    )


def _masculine(noun: str) -> str:
    """German: "wirtin" is "wirt"."""
    ending = next((each for each in _FEMININE if noun.endswith(each)), "")
    return noun.removesuffix(ending) if len(noun) > _SHORTEST_PART + 1 else noun


# The NPCs of a campaign as players may mean them: their roles, their trades, and who answers only when called.


_CAST_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class CastMember:
    """
    Attributes:
        role: The last word of it, in lower case: "smith"; "" for none.
        trades: What that is, by their keys in `data/LANGUAGE/trades.toml`.
    """

    npc: NpcId
    name: str
    role: str = ""
    trades: frozenset[str] = frozenset()
    address_only: bool = False

    def knows_about(self, words: Iterable[str]) -> int:
        """How many of these words, in lower case, are its business."""
        return sum(is_business(word, self.trades) for word in words)


@dataclass(frozen=True, slots=True)
class Cast:
    characters: Mapping[NpcId, CastMember] = field(default_factory=dict)

    def answers_uncalled(self, npc: NpcId) -> bool:
        character = self.characters.get(npc)
        return character is None or not character.address_only

    def roles_in(self, text: str, present: Iterable[NpcId]) -> list[AddresseeMention]:
        """Words by which somebody may be called that is known by a trade; of several, who is here. Also those of trades
        that no NPC has: who calls a guard means no innkeeper.
        """
        here = set(present)
        found: list[AddresseeMention] = []
        for position, match in enumerate(_CAST_WORD.finditer(text)):
            noun = match[0].lower()
            fitting = [c for c in self.characters.values() if c.role and is_called_by(noun, c.role)]
            if not fitting and not trades_of(noun):
                continue
            best = min(fitting, key=lambda c: (c.npc not in here, c.role != noun), default=None)
            npc, name = (best.npc, best.name) if best is not None else (None, match[0])
            found.append(
                AddresseeMention(
                    npc, name, position, False, is_played=False, start=match.start(), end=match.end(), is_role=True
                )
            )
        return found

    def expert(self, text: str, present: Iterable[NpcId]) -> NpcId | None:
        """Of those who are here, the one whose business it is most; None for nobody, or for two alike."""
        words = [word.lower() for word in _CAST_WORD.findall(text)]
        counted = [
            (character.knows_about(words), npc)
            for npc in present
            if (character := self.characters.get(npc)) is not None and not character.address_only
        ]
        most = max((count for count, _ in counted), default=0)
        best = [npc for count, npc in counted if count == most]
        return best[0] if most and len(best) == 1 else None


def cast_of(campaign: Campaign) -> Cast:
    return Cast({npc.id: _character(npc) for npc in campaign.npcs})


def _character(npc: Npc) -> CastMember:
    role = npc.role.lower().split()[-1:]
    trades = trades_of(role[0]) if role else frozenset[str]()
    return CastMember(npc.id, npc.name, "".join(role), trades, npc.address_only)


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

    def those(self, *calls: CallKind) -> list[AddresseeMention]:
        """Who is named so, in order."""
        return [mention for mention, call in zip(self.mentions, self.calls.of, strict=True) if call in calls]

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
        calls = calls_in(said.text, mentions)
        calls.of = [CallKind.CALLED if m.is_whispered else call for m, call in zip(mentions, calls.of, strict=True)]
        unplaced = [m for m in said.mentions if not m.end]
        calls.of += [CallKind.CALLED if m.is_vocative else CallKind.ABOUT for m in unplaced]
        among_ms = self._among_players.get(said.player)
        return _Heard(
            said,
            [*mentions, *unplaced],
            calls,
            [form_of(sentence) for sentence in calls.sentences],
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
    called = sorted(heard.those(CallKind.MEANT, CallKind.CALLED), key=lambda m: m.position)
    told_off = heard.those(CallKind.DENIED)
    denied = {m.npc for m in told_off}
    here = [m for m in called if m.npc in heard.present and m.npc not in denied]
    player = next((m for m in called if m.npc is None and m.is_played), None)
    if here and (player is None or here[0].position < player.position or heard.turns_to(here[0], behind=player)):
        others = [m.npc for m in here if m.npc != here[0].npc]
        return Addressed(here[0].npc, f"{here[0].name} was called", second=others[0] if others else None)
    if player is not None:
        return Addressed(None, f"{player.name} was called, a player", Unaddressed.PLAYER, player=player.player)
    if told_off:
        return Addressed(None, f"{told_off[0].name} is told not to be meant", Unaddressed.NOT_MEANT)
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
    here = [m for m in heard.those(CallKind.ABOUT) if m.npc is not None and m.npc in heard.present]
    if not here:
        return None
    of_last = any(m.npc == heard.last for m in here)
    if heard.last is not None and (heard.whole.second or (heard.whole.question and not of_last)):
        return None
    return Addressed(None, f"{here[0].name} is only talked about", Unaddressed.ABOUT)


# Who was talking with whom when a session was left, by what was said in it.


def exchanges(said: Sequence[Utterance]) -> Iterator[tuple[PlayerId, NpcId, int]]:
    """Each player whom an NPC answered, the NPC, and when its answer was over; oldest first.

    Where several players spoke before an answer, the log does not tell whose it was: then it counts for none of them.
    """
    spoke: set[str] = set()
    for utterance in said:
        if utterance.npc_id is None:
            spoke.add(utterance.speaker_id)
            continue
        if len(spoke) == 1:
            yield PlayerId(spoke.pop()), utterance.npc_id, utterance.at_ms + utterance.duration_ms
        spoke.clear()
