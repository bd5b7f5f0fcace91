"""Words that are plainly meant for no NPC, whoever is here: of the players' own world, or no words at all.

Only the clear cases, in English and German, whatever the campaign's language: tables mix them. Who plays an innkeeper's
guest may well ask for a break or a game of dice, so single words decide little; what decides is a form that only
players use ("brb", "roll for", "W20", "auf dem Klo"). A name that is called outranks all but what is marked as out of
character.
"""

from __future__ import annotations

import re
from functools import lru_cache

from glyphoxa.turns.barge_in import BACKCHANNEL
from glyphoxa.turns.patterns import words

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
