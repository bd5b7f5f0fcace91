"""Which NPC, if any, a player's words are meant for.

In this order:

1. What is marked as out of character, or whispered to another player, is meant for no NPC.
2. Who is called, by name, alias or role ("Smith, ..."; `glyphoxa.turns.calls`): the first one of those who are here
   leads, and a second one reacts. Calling another player means: no NPC. So does telling the only one named that
   they are not meant.
3. Somebody called who is not here is answered by nobody: no other speaks in their place.
4. What is plainly of the players' own world, or nothing but a filler, is meant for nobody (`glyphoxa.turns.address`).
5. Plans, thoughts, narration and talk about those who are here are meant for nobody (`glyphoxa.turns.sentence_form`).
   Who is just talking with an NPC may speak to it of others.
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

from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.domain.turn import Unaddressed
from glyphoxa.turns.barge_in import BACKCHANNEL
from glyphoxa.turns.calls import AddresseeMention, Calls, calls_in, is_business, is_called_by, trades_of
from glyphoxa.turns.sentence_form import Form, all_of, form_of, sentences_of, words

# Words that are plainly meant for no NPC, whoever is here: of the players' own world, or no words at all.
#
# Only the clear cases, in English and German, whatever the campaign's language: tables mix them. Who plays an
# innkeeper's guest may well ask for a break or a game of dice, so single words decide little; what decides is a form
# that only players use ("brb", "roll for", "W20", "auf dem Klo"). A name that is called outranks all but what is
# marked as out of character.


_MARKED_WHOLE = re.compile(
    r"\W*(?:ooc|offplay|outtime|out[ -]of[ -](?:character|game))\b|\W*(?:ot|off[ -]?topic)\s*[:)\]]|\s*//",
    re.IGNORECASE,
)
_MARKED_BRACKET = re.compile(
    r"\(\(.*?(?:\)\)|$)|[(\[{]\s*(?:ooc|ot|offplay|outtime|out[ -]of[ -](?:character|game))\b[^)\]}]*(?:[)\]}]+|$)",
    re.IGNORECASE | re.DOTALL,
)

_SKILLS = words(
    "initiative, perception, stealth, insight, investigation, persuasion, deception, intimidation, arcana, athletics",
    "acrobatics, sleight of hand, survival, nature, religion, performance, animal handling, medicine, history",
)
_ABILITIES = words(
    "str, dex, con, int, wis, cha, strength, dexterity, constitution, intelligence, wisdom, charisma",
)
_CHECKS_DE = words(
    "wahrnehmungs?, initiative, schleichen, heimlichkeits?, geschicklichkeits?, stärke, charisma, weisheits?, athletik",
    "überzeugungs?, rettungs, angriffs, schadens, fertigkeits?",
)

_PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        "somebody leaves the table for a moment",
        "brb afk bbl gtg g2g bio back break bathroom toilet restroom loo pee potty gleich sofort kurz klo wc pause",
        r"\b(?:brb|afk|bbl|gtg|g2g|bio ?break)\b"
        r"|\bbe right back\b|\bback in (?:a (?:sec|second|minute|min|bit)|(?:five|ten)(?: min(?:ute)?s?\b|(?! \w))"
        r"|\d+ ?(?:min|minutes|secs?))\b"
        r"|\b(?:bathroom|toilet|restroom|loo|pee|smoke|coffee|snack|pizza)[ -]?break\b"
        r"|\b(?:to|use|in) the (?:bathroom|toilet|restroom|loo)\b"
        r"|\b(?:need|got|have|gotta)(?: to)? (?:go )?(?:pee|potty)\b"
        r"|\b(?:quick|short|five[ -]minutes?|ten[ -]minutes?|\d+[ -]min(?:ute)?s?)[ -]breaks?\b"
        r"|\b(?:bin|ich) (?:mal |nur )?(?:gleich|sofort|kurz) (?:wieder )?(?:zurück|da|weg)\b"
        r"|\bmuss (?:mal |nur )?kurz weg\b"
        r"|\b(?:aufs|auf dem|zum|ins|auf das) (?:klo|wc)\b|\bauf (?:die|der) toilette\b"
        r"|\b(?:pinkel|klo|toiletten|raucher|kaffee|pizza)pause\b|\bkurze? pause\b",
    ),
    (
        "food or a caller at the players' own door",
        "pizza doorbell geklingelt lieferando doordash uber",
        r"\bpizza(?:s|'s|’s)?\b.{0,20}\b(?:here|arriv\w*|order\w*|deliver\w*|coming|guy|is|da|bestell\w*|kommt|ist)\b"
        r"|\b(?:order\w*|get|grab|fetch|eat\w*|hol\w*|bestell\w*|ess\w*|want|mehr|more|some) (?:\w+ )?pizza\b"
        r"|^(?:\W*\w+\W+)?(?:\w+\W+)?pizza\W*$|\bpizza(?:bote|lieferant|lieferdienst)\b|\bdoorbell\b"
        r"|\bes hat geklingelt\b|\blieferando\b|\bdoordash\b|\buber ?eats\b",
    ),
    (
        "dice",
        "d4 d6 d8 d10 d12 d20 w4 w6 w8 w10 w12 w20 nat roll würf hit trifft",
        r"\b\d{0,2}[dw](?:4|6|8|10|12|20|100)\b|\bnat(?:ural|ürliche)? ?(?:20|1|twenty|one|zwanzig|eins)\b"
        rf"|\broll(?:s|ed|ing)? (?:me )?(?:for|with advantage|with disadvantage|a \d+|an? (?:natural|{_SKILLS})"
        rf"|{_SKILLS}|damage|the damage|to hit|your dice|my dice|again with|a (?:check|save|saving throw))\b"
        r"|\bdo i (?:roll|have to roll|need to roll)\b|\b\d+ to hit\b|\bdoes (?:a |an )?\d+ hit\b"
        r"|\bwürf(?:el|le|eln|elt)\b.{0,12}\b(?:auf|mal|bitte|initiative|schaden|\d+)\b"
        r"|\b\d+ gewürfelt\b|\bgewürfelt\W*$|\bwürfelwurf\b|\btrifft (?:eine )?\d+\b",
    ),
    (
        "rules of the game",
        "check save saving modifier bonus class point slot attack proficien sheet handbook house critical ability"
        " ac dc hp xp advantage level roll written work probe wurf würfe punkte plätze platz bogen"
        " regel aufstieg kritisch",
        rf"\b(?:{_SKILLS}|{_ABILITIES}) (?:check|save|saving throw|modifier|bonus)s?\b|\bsaving throws?\b"
        r"|\b(?:armou?r class|hit points|spell slots?|bonus action|proficiency bonus|attack rolls?|death saves?"
        r"|character sheet|player'?s handbook|house rules?|critical hit|difficulty class|skill checks?"
        r"|ability scores?)\b"
        r"|\b(?:AC|DC) (?:is |of )?\d+\b|\b\d+ ?(?:hp|xp)\b|\b(?:how many|my|your) (?:hp|xp)\b"
        r"|\b(?:with|have|get|at) (?:dis)?advantage on\b"
        r"|\b(?:what|which) level (?:is|are|am) (?:you|your|i|my|he|she|they)\b"
        r"|\b(?:roll|rolls?) initiative\b|\b(?:rules|game) as written\b|\bhow does (?:that|this|the) spell work\b"
        rf"|\b(?:{_CHECKS_DE})(?:probe|wurf|würfe)\b|\b(?:probe|wurf) auf (?:{_CHECKS_DE})\b|\brettungsw(?:urf|ürfe)\b"
        r"|\b(?:rüstungsklasse|trefferpunkte|lebenspunkte|zauberpl(?:atz|ätze)|zauberslots?|bonusaktion|charakterbogen"
        r"|regelwerk|spielerhandbuch|hausregel|stufenaufstieg|kritischer treffer)\b",
    ),
    (
        "snacks on the players' own table",
        "chips crisps snack soda coke cola pretzel popcorn cookie dorito fridge kühlschrank limo gummibär salzstang"
        " keks",
        r"\b(?:chips|crisps|snacks?|sodas?|coke|cola|pretzels|popcorn|doritos|gummibär\w*|salzstangen|limo|spezi)\b"
        r"|\b(?:the|in the|from the|am|im|in den|aus dem) (?:fridge|kühlschrank)\b"
        r"|\b(?:pass|want|have|another|more|wer|will|noch|gib|nimm) (?:me |you |mir |the |die |a |some |ein(?:en)? )*"
        r"(?:cookies?|kekse?)\b",
    ),
    (
        "the order of play",
        "turn dran runde round zug token figur figure mini map battle next",
        r"\b(?:whose|my|your|his|her) turn\b(?! to)|\bwho(?:'s|’s| is) (?:next|up)(?: (?:in|on|now)\b|\W*$)"
        r"|\bwer (?:ist|war) (?:jetzt |als nächstes |gerade |nun )?(?:dran|am zug)\b|\b(?:du bist|ich bin|bin ich"
        r"|bist du) "
        r"(?:jetzt |als nächstes |schon |wieder )?(?:dran|am zug)\b|\b(?:this|next|last|diese|nächste"
        r"|letzte) (?:round|runde)\b"
        r"(?! of| is on|,? wirt| bier)|\b(?:battle ?map|grid|initiative order|miniatures?|minis?)\b"
        r"|\b(?:my|your|the|mein|dein|der) token\b",
    ),
    (
        "the evening, not the story",
        "dm gm master spielleiter mute stumm mic mikro headset webcam internet wifi wlan session sitzung abend screen"
        " discord zoom roll20 hear lag laggy campaign kampagne npc nsc player spieler character charakter hört lagg"
        " battery akku"
        " charger ladekabel phone handy telefon dog cat hund katze homework tomorrow work arbeit bus kids kinder"
        " youtube tv"
        " fernse netflix movie film dice würfel pen stift pencil bleistift notes notizen sheet",
        r"^\W*(?:hey |so |ok(?:ay)? )?(?:dm|gm|dungeon master|game master|spielleiter(?:in)?)\b\s*,"
        r"|,\s*(?:dm|gm|dungeon master|game master|spielleiter(?:in)?)\W*$"
        r"|\b(?:you(?:'re|’re| are)|du bist) (?:on mute|muted|stumm(?:geschaltet)?)\b"
        r"|\bunmute\b|\b(?:my|your|mein|dein) (?:mic|microphone|mikro|mikrofon|headset|webcam|internet|wifi|wlan)\b"
        r"|\b(?:next|last|previous|nächste[rn]?|letzte[rn]?) (?:session|sitzung|spielabend)\b(?! (?:of|des|der|vom))"
        r"|\b(?:share|sharing|see) (?:my|your) screen\b|\b(?:on|auf|im|via) (?:discord|zoom|roll20)\b"
        r"|\bcan (?:everyone|everybody|you guys) hear me\b|\bcan you (?:all )?hear me(?: now)?\W*$|\bhört ihr mich\b"
        r"|\b(?:i'm|i’m|you're|you’re|is|it's|i am) (?:lagging|laggy|breaking up|frozen)\b|\b(?:ich|du|das) laggt?\b"
        r"|\b(?:this|the|our|your|die|diese|unsere) (?:campaign|kampagne)\b|\b(?:an?|the|this|that|every|der|die|das"
        r"|ein) (?:npc|nsc)s?\b"
        r"|\b(?:my|your|his|her) character(?:'s|’s)? (?:sheet|would|wouldn't|doesn't know|knows|has|level|class)\b"
        r"|\b(?:my|your|mein|dein)e?n? (?:phone|handy|battery|akku|charger|ladekabel|laptop)\b"
        r"|\b(?:my|your|meine|deine|the|die|someone's|whose) (?:dice|würfel)\b"
        r"|\b(?:netflix|youtube|tv show|wifi|homework)\b|\b(?:at|to) work (?:today|tomorrow|yesterday)\b"
        r"|\b(?:a|your|mein|einen|dein) (?:pen|pencil|stift|bleistift)\b",
    ),
)
"""What it is, what one of must be in the words, and what decides: most that is said needs no closer look."""
_OUT_OF_CHARACTER = tuple(
    (why, tuple(signs.split()), re.compile(pattern, re.IGNORECASE)) for why, signs, pattern in _PATTERNS
)

_SOUNDS = frozenset(
    {"mm", "mmm", "mhm", "hm", "hmm", "hmmm", "uh", "uhm", "um", "umm", "er", "erm", "ah", "oh", "ooh", "aha", "ha"}
    | {"haha", "hahaha", "hehe", "lol", "wow", "huh", "äh", "ähm", "öh", "hä"}
)
"""Of listening, thinking and laughing: no answer to anything."""
_THINKING = _SOUNDS | {"well", "so", "tja", "na", "naja", "also"}
"""Likewise, but as a question ("Well?") they ask somebody to speak."""
_FILLERS = _THINKING | BACKCHANNEL
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
        why, _, pattern = _OUT_OF_CHARACTER[at]
        if pattern.search(text):
            return why
    return None


@lru_cache(_WORDS_REMEMBERED)  # a partial transcript repeats the words of the one before it
def _signs_in(word: str) -> tuple[int, ...]:
    """What of `_OUT_OF_CHARACTER` has a sign in a word."""
    return tuple(at for at, (_, signs, _) in enumerate(_OUT_OF_CHARACTER) if any(sign in word for sign in signs))


def is_filler(text: str, *, is_answer: bool) -> bool:
    """Whether it holds nothing but fillers.

    Args:
        is_answer: An NPC was just talked with: "yes" and "all right" are then words.
    """
    fillers = _SOUNDS if "?" in text else _THINKING if is_answer else _FILLERS
    said = _WORD.finditer(text.lower())
    return all(word[0] in fillers for word in said) and _DIGIT.search(text) is None


# The NPCs of a campaign as players may mean them: their roles, their trades, and who answers only when called.


_CAST_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class CastMember:
    """
    Attributes:
        role: The last word of it, in lower case: "smith"; "" for none.
        trades: What that is, as numbers of `glyphoxa.turns.calls`.
    """

    npc: NpcId
    name: str
    role: str = ""
    trades: frozenset[int] = frozenset()
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
                AddresseeMention(npc, name, position, False, is_played=False, start=match.start(), end=match.end())
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
    trades = trades_of(role[0]) if role else frozenset[int]()
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
