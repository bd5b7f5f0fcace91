"""Who of those that are named is called, and who is only talked about, by what stands around the name.

`glyphoxa.names` finds names and hears most calls. Here the whole sentence decides: a name that opens it and is
followed by a verb of the third person calls nobody ("Oskar stole my purse"), unless the verb has another subject and
asks ("Oskar has the miller told you anything?"). Nor does one call that is told it is not meant ("Not you, Oskar"), nor
one that somebody else is quoted with ("he said, Oskar, run").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.turns.sentence_form import SaidSentence, any_of, form_of, one_of

# Somebody's name in what was said.


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


_LEAD_IN = (
    "(?:"
    + one_of(
        "oh, so, well, and, but, now, okay, ok, ah, right, no, yes, yeah, hey, hi, hello, hm, hmm, uh, um, er",
        "please, thanks, thank you, sorry, good, morning, evening, day, night, afternoon, excuse me, listen",
        "look, wait, stop, dear, my, friend, greetings, tell me, pardon, say, you there, you, there, old",
        "master, mister, mr, mistress, madam, sir, fair, kind",
        "mein, guter?, gute[nrs]?, lieber?, liebe, werter?, werte, herr, frau, meister, meisterin, alter?",
        "alte, verehrte[rs]?, hallo, guten, abend, morgen, tag, danke, bitte, servus, moin, warte, halt",
        "entschuldigung, entschuldigt, entschuldige, verzeihung, verzeiht, ja, nein, und, aber, also, ach, na",
        "he, heda, sagt, sag, hör, hört, mal",
    )
    + "(?: ?[,:;!-])? )*"
)
_TITLED = (
    "(?:"
    + one_of(
        "my, good, old, master, mister, mr, mistress, madam, dear, fair, kind",
        "mein, meine, guter?, gute, lieber?, liebe, werter?, werte, herr, frau, meister, meisterin, alter?",
        "alte, verehrte[rs]?, friend",
    )
    + " )*"
)
_FOLLOWS_A_CALL = re.compile(
    one_of(
        "what, what's, where, where's, who, who's, why, how, how's, when, which, are you, aren't you, do you",
        "don't, did you, can you, could you, would you, will you, won't you, have you, may i, might i, can i",
        "can we, could i, could we, is (?:there|it|that|this|the|my|your|anyone), are (?:there|these|the)",
        "do (?:we|i|they), i, i'm, i've, i'd, i'll, my, please, you, you're, you've, your, tell, give, come",
        "show, help, listen, look, wait, stop, get, take, bring, let, hold, run, be, go, say, speak, open",
        "make, mend, fix, pour, watch",
        "was (?!here|there), wo, wer, wie, wann, warum, wieso, wohin, woher, kannst, könnt, könnten, könntest",
        "hast, habt, haben Sie, bist, seid, sind Sie, weißt, wisst, wissen, kennst, kennt ihr, willst, wollt",
        "würdest, würdet, ich, mein, meine, bitte, du, dein, deine, gibt es, gib, gebt, komm",
        "kommt (?:her|mit), sag, sagt mir, zeig, hilf, helft, hör, warte, halt, nimm, bring, lass, mach",
        "erzähl, gibst, glaubst, meinst, magst",
    )
    + r"\b"
)
_ABOUT_VERB = re.compile(
    one_of(
        "is, was, has, had, isn't, wasn't, hasn't, says, said, told, knows, knew, owes, does, doesn't, did",
        "didn't, went, would, wouldn't, will, won't, can, can't, could, seems, looks, lives, works, sells",
        "ist, hat, hatte, sagt, sagte, weiß, weiss, wird, kann, lügt, wohnt, arbeitet, verkauft, scheint",
        "will, soll, muss, hätte, wäre",
    )
    + r"\b"
)
_NOT_MEANT = any_of(
    r"\bnot you\b",
    r"\b(?:isn't|wasn't|not|n't) (?:talking|speaking|asking|addressing|meant) (?:to |for )?(?:you\b|@)",
    r"\bi (?:don't|didn't) mean (?:you\b|@)",
    r"\bnot (?:to )?@",
    r"\bnicht "
    + one_of("du, dich, dir, Sie, Ihnen, ihr, euch, Ihr, Euch, mit dir, mit euch, mit Ihnen, zu dir")
    + r"\b",
    r"\b(?:rede|spreche|sprach|redete) nicht mit\b",
    r"\bmein(?:e|te) nicht\b",
    r"\bnicht @",
    r"\b(?:stay|keep) out of (?:it|this)\b",
    r"\bdich (?:habe|hab|hatte) ich nicht\b",
    r"\bdich nicht\b",
    r"\bwas not for you\b",
    r"\bwasn't for you\b",
)
_MEANT = re.compile(
    r"(?:\bi (?:mean|meant)|\bi'm (?:asking|talking to)|\bi (?:was|am) (?:asking|talking to)|\bich (?:mein|meine"
    r"|meinte|frage|rede mit)|\bsondern|\bbut|\bonly|\bnur)(?: the| den| die| der| das| dem| mit)? @(\d+)(?! (?:is"
    r"|was|has|ist|hat))"
)
_INDIRECTLY = any_of(
    "^(?:so |then |okay |ok |and |und |dann |also )?(?:,? ?)?"
    + "(?:i (?:(?:walk|go|step|head|come|stroll|move) (?:over |up )?(?:to [^,]*? )?and )?"
    + one_of(
        "turn to, ask, tell, greet, address, say to, speak to, talk to, call out to, call to, call over to",
        "call, beckon, wave (?:at|over), want to ask, want to talk to, would like to ask",
        "would like to talk to, would like to speak (?:to|with), 'd like",
    )
    + "|i'd like to (?:ask|speak (?:to|with)|talk (?:to|with))|i turn towards|ich "
    + one_of(
        "frage, frag, sage zu, sag zu, wende mich an, spreche, rufe, grüße, bitte, wende mich zu, möchte mit",
        "will mit, möchte, würde gern(?:e)? mit",
    )
    + r")(?: the| den| die| der| dem| das| good| mit)* @(\d+)",
    r"\b(?:question|word|message|letter|delivery) (?:for|with) (?:the |you )?@(\d+)",
    r"\b(?:frage|bitte|nachricht) (?:an|für) (?:den |die |das )?@(\d+)",
    r"^(?:an|für|to|for) (?:den |die |das |the )?@(\d+) ?[:,]",
    r"^is (?:the )?@(\d+) (?:here|there|in|around|about|home)$",
    r"^ist (?:der |die |das )?@(\d+) (?:hier|da|zu hause)$",
)
_HEARSAY = (
    r"(?:said|says|shouted|yelled|cried|screamed|whispered|called(?: out)?|goes|was like|wrote|meinte|sagte|sagt"
    r"|rief|ruft|schrie|flüsterte|schrieb)"
)
_ARTICLES = (
    r"(?:the|a|an|this|that|some|any|every|no|our|his|her|their|your|my|der|die|das|den|dem|des|ein|eine|einen|einem"
    r"|einer|jeder|jede|kein|keine|unser|unsere|unseren|sein|seinen|ihr|ihren|dieser|diesen|euer|euren|dein|deinen)"
)


@dataclass(slots=True)
class Calls:
    """
    Attributes:
        called: By number of the mention, in order.
        denied: Told that they are not meant.
        meant: Named as those who are, without being called: "I turn to the smith and ask ...".
        about: Only talked about.
    """

    called: list[int] = field(default_factory=list)
    denied: list[int] = field(default_factory=list)
    meant: list[int] = field(default_factory=list)
    about: list[int] = field(default_factory=list)
    is_denial: bool = False


def calls_in(sentences: Sequence[SaidSentence], mentions: Sequence[AddresseeMention]) -> Calls:
    found = Calls()
    for sentence in sentences:
        _of_sentence(sentence, mentions, found)
    return found


def _of_sentence(sentence: SaidSentence, mentions: Sequence[AddresseeMention], found: Calls) -> None:
    named = sentence.mentions()
    denies = _NOT_MEANT.search(sentence.text) is not None
    found.is_denial = found.is_denial or denies
    if not named:
        return
    meant = {
        int(n)
        for match in (*_MEANT.finditer(sentence.text), *_INDIRECTLY.finditer(sentence.text))
        for n in match.groups()
        if n
    }
    together = _together(sentence)
    for number in named:
        if number in meant:
            found.meant.append(number)
        elif denies:
            found.denied.append(number)
        elif number in together or _is_called(sentence, number, mentions):
            found.called.append(number)
        else:
            found.about.append(number)


def _together(sentence: SaidSentence) -> set[int]:
    """Two that are called in one breath: "Oskar and Mirelle, what do you think?"."""
    pair = r"@(\d+) ?,? (?:and|und|or|oder|&) " + _TITLED + r"@(\d+)"
    form = form_of(sentence)
    for match in re.finditer(pair, sentence.text):
        before, after = sentence.text[: match.start()], sentence.text[match.end() :].strip()
        opens = re.fullmatch(_LEAD_IN, before) is not None
        closes = not after and re.search(r", ?$", before.strip()) is not None
        if closes or (opens and (after.startswith(",") or _FOLLOWS_A_CALL.match(after)) and form.asks_somebody):
            return {int(match[1]), int(match[2])}
        if opens and not after:
            return {int(match[1]), int(match[2])}
    return set()


def _is_called(sentence: SaidSentence, number: int, mentions: Sequence[AddresseeMention]) -> bool:
    mention = mentions[number]
    if mention.is_whispered:
        return True
    text = sentence.text
    at = text.index(f"@{number}")
    before, after = text[:at].rstrip(), text[at + len(f"@{number}") :].lstrip()
    if re.search(rf"\b{_HEARSAY} ?[,:]?$", before) or re.search(r"\b(?:called|named|heißt|genannt|namens)$", before):
        return False
    subject = _subject_in(after, mentions)
    if subject not in (None, mention.name) and _asks_about_another(sentence, before, after):
        return True
    is_role = not mention.is_vocative and not mention.is_played
    if is_role:
        return _is_role_called(sentence, before, after)
    if not mention.is_vocative:
        return _is_greeted(before, after)
    if not after:
        return True
    if after[0] in ",:;-–—":
        return not _is_told_of(sentence, after[1:].strip(), opens=not before)
    return _FOLLOWS_A_CALL.match(after) is not None


def _asks_about_another(sentence: SaidSentence, before: str, after: str) -> bool:
    """Whether what follows the name that opens the sentence is a question: "Oskar has the miller told you anything?".

    A recogniser may leave out the comma and the question mark. The verb then looks like the name's ("Oskar has told you
    everything"), but its own subject follows it.
    """
    opens = re.fullmatch(_LEAD_IN, f"{before} " if before else "") is not None
    is_inverted = form_of(SaidSentence(after, "")).question
    return opens and is_inverted and (sentence.end == "?" or form_of(sentence).second)


def _subject_in(text: str, mentions: Sequence[AddresseeMention]) -> str | None:
    """Who is named between a verb that opens the text and the rest, with an article or without; None for nobody."""
    verb, *words = text.split()[:4] or [""]
    if words and re.fullmatch(_ARTICLES, words[0]):
        words = words[1:]
    if len(words) < 2 or not verb.isalpha() or not words[0].startswith("@") or not words[1].isalpha():
        return None
    named = mentions[int(words[0][1:])]
    return None if named.is_owner else named.name


def _is_greeted(before: str, after: str) -> bool:
    """Behind a greeting and a title: "Good evening, good Oskar"."""
    is_led_in = re.fullmatch(_LEAD_IN, f"{before} ") is not None and before != ""
    return is_led_in and (not after or after[0] in ",:;-–—")


def _is_role_called(sentence: SaidSentence, before: str, after: str) -> bool:
    if re.search(rf"\b{_ARTICLES}$", before) and not re.search(
        r"(?:^|[,:] ?)(?:my|mein|meine)(?: good| dear| guter?| gute| lieber?| liebe)?$", before
    ):
        return False
    is_closed = not after or after[0] in ",:;-–—"
    is_led_in = re.fullmatch(_LEAD_IN, f"{before} " if before else "") is not None
    if is_closed and (is_led_in or re.search(rf"[,:;] ?{_TITLED.rstrip()}$", f"{before} ")):
        return bool(after) or bool(before) or sentence.end in ("!", "?")
    if is_closed and re.search(rf", {_TITLED}$", f"{before} "):
        return True
    return is_led_in and _FOLLOWS_A_CALL.match(after) is not None and form_of(sentence).asks_somebody


def _is_told_of(sentence: SaidSentence, after: str, *, opens: bool) -> bool:
    """What follows a name and its comma tells of them: "Oskar, the miller, is a liar"; "Oskar, he knows"."""
    form = form_of(sentence)
    if form.second:
        return False
    if (
        re.match(r"(?:he|she|him|her|er|sie|der|die|den)\b(?! (?:\w+ ){0,6}(?:you|du))", after)
        and sentence.end != "?"
        and not form.order
    ):
        return opens
    if re.match(r"(?:who|where|what|why|wer|wo|was) (?:is|was|does|did|ist|hat) (?:he|she|him|er|sie)\b", after):
        return True
    apposition = re.match(
        r"(?:(?:the|my|our|his|her|their|a|an|der|die|das|mein|meine|unser|unsere|ein|eine) )[^,]+, (.*)", after
    )
    if apposition is not None:
        return _ABOUT_VERB.match(apposition[1]) is not None or re.match(r"\w+(?:ed|t)\b", apposition[1]) is not None
    listed = re.match(
        r"(?:[^,]+ , )*?[^,]*?\b(?:and|und) (?!i\b|we\b|ich\b|wir\b|my\b|mein)(?:@\d+|\w+) (?![,?!])(\w+)", after
    )
    return listed is not None and re.match(r"@\d+|\w+ (?:and|und) @", after) is not None and not form.question


# Trades as tables know them: what they are called, and what one asks them for (English and German).
#
# A row is one trade: its names, then the beginnings of words that are its business. "smith" is also the name of every
# trade that ends in it, and German names also stand for their feminine forms.


_TRADES: Final = (
    (
        "smith blacksmith weaponsmith armourer armorer swordsmith farrier schmied",
        "sword blade dagger knife axe iron steel forge anvil hammer nail horseshoe armour armor shield helmet"
        " sharpen mend"
        " repair weld chain schwert klinge dolch messer axt eisen stahl amboss nagel nägel hufeisen rüstung schild helm"
        " schärf schleif reparier schmied kette",
    ),
    (
        "innkeeper barkeep barkeeper bartender barmaid barman landlord landlady publican taverner wirt gastwirt"
        " schankwirt"
        " barfrau barmann",
        "room bed ale beer wine mead drink meal food soup stew supper breakfast lodging tavern inn stable zimmer"
        " bett bier"
        " wein met trinken essen suppe eintopf frühstück unterkunft übernacht schlafen schänke gasthaus",
    ),
    (
        "healer medic doctor physician surgeon nurse midwife heiler arzt ärztin doktor pfleger hebamme medicus",
        "wound heal poison fever sick ill bandage bleed bone cure potion antidote medicine burn infect wunde heil gift"
        " fieber krank verband verbind blut knochen trank gegengift medizin arznei verletz",
    ),
    (
        "herbalist apothecary kräuterfrau apotheker kräuterkundige",
        "herb root plant tea salve ointment poison antidote potion mushroom flower kraut kräuter wurzel pflanze tee"
        " salbe"
        " gift gegengift trank pilz blume",
    ),
    (
        "alchemist alchimist",
        "potion poison acid antidote flask powder brew elixir trank gift säure gegengift pulver gebräu elixier",
    ),
    (
        "guard watchman gatekeeper gate-guard constable sheriff sergeant soldier wache wächter wachmann torwächter"
        " gardist"
        " büttel hauptmann hauptfrau polizist kommissar soldat",
        "gate law crime thief thieves robber robbed stole stolen murder arrest patrol prison jail curfew tor gesetz"
        " verbrech dieb räuber geraubt gestohlen mord verhaft streife gefängnis kerker",
    ),
    (
        "priest priestess cleric monk nun friar vicar priester pfarrer pater mönch nonne",
        "god pray bless temple church curse undead ghost funeral bury grave soul holy sin gott götter bet segn"
        " tempel kirche"
        " fluch untot geist begräbnis grab seele heilig sünde",
    ),
    (
        "wizard mage sorcerer sorceress witch magician zauberer magier hexe hexer",
        "magic spell rune scroll curse enchant wand potion demon portal magie zauber rune schriftrolle fluch verzauber"
        " dämon portal",
    ),
    (
        "scholar scribe librarian sage archivist bookseller gelehrter gelehrte schreiber bibliothekar archivar"
        " buchhändler",
        "book read script history language translate letter write archive inscription ancient map buch bücher lesen"
        " lies"
        " schrift geschichte sprache übersetz brief archiv inschrift karte",
    ),
    (
        "merchant trader shopkeeper peddler pedlar vendor grocer händler kaufmann kauffrau krämer",
        "buy sell price ware goods trade bargain rope lantern torch kauf verkauf preis ware handel feilsch seil laterne"
        " fackel",
    ),
    ("banker moneylender bankier geldverleiher", "coin gold loan debt interest bank münze gold kredit schuld zins"),
    ("miller müller", "flour grain mill wheat sack mehl korn mühle weizen"),
    ("baker bäcker", "bread cake loaf bake pie oven brot kuchen back ofen"),
    ("butcher metzger fleischer", "meat sausage ham pig fleisch wurst schinken schwein"),
    ("cook chef koch köchin", "cook meal dish kitchen soup koch gericht küche suppe"),
    (
        "hunter huntress ranger tracker forester jäger waldläufer förster",
        "track trail game deer wolf wolves bear forest wood bow arrow trap fur hunt spur fährte wild hirsch wolf"
        " wölfe bär"
        " wald bogen pfeil falle fell jag",
    ),
    (
        "ferryman boatman sailor captain helmsman boatwright fisherman fisher fährmann bootsmann seemann kapitän"
        " steuermann"
        " bootsbauer fischer matrose",
        "boat ship ferry river cross sea harbour harbor sail tide net fish storm anchor boot schiff fähre fluss"
        " überset meer"
        " hafen segel flut netz fisch sturm anker",
    ),
    ("fishmonger fischhändler fischverkäufer", "fish herring eel crab fisch hering aal krabbe"),
    (
        "carpenter joiner wheelwright cartwright wainwright wagner stellmacher zimmermann tischler schreiner",
        "wheel cart wagon axle wood plank table door roof mend repair rad räder wagen karren achse holz brett tisch"
        " tür dach"
        " reparier",
    ),
    (
        "tailor seamstress dressmaker weaver schneider näherin weber",
        "cloth dress cloak coat robe sew needle silk hem kleid mantel stoff umhang näh nadel seide saum",
    ),
    ("tanner cobbler shoemaker saddler gerber schuster schuhmacher sattler", "leather boot shoe saddle belt"
     " leder stiefel"
     " schuh sattel gürtel"),
    (
        "groom stablehand stableboy stablemaster ostler stallbursche stallknecht stallmeister",
        "horse pony mule saddle stable ride hay pferd pony maultier sattel stall reiten heu",
    ),
    ("farmer shepherd bauer bäuerin hirte schäfer", "field crop harvest cow sheep goat farm feld ernte kuh"
     " kühe schaf ziege"
     " hof"),
    ("bard minstrel musician singer barde sänger spielmann", "song sing music lute tale ballad lied lieder"
     " sing musik laute"
     " ballade"),
    ("gravedigger undertaker totengräber", "grave bury coffin corpse graveyard dead grab begrab sarg leiche friedhof"),
    ("miner bergmann", "mine shaft ore tunnel dig mine schacht erz stollen grab"),
    ("mason stonemason steinmetz maurer", "stone wall statue carve stein mauer statue meißel"),
    ("engineer mechanic ingenieur mechaniker techniker", "engine machine reactor repair circuit motor maschine reaktor"
     " reparier"),
    ("jeweller jeweler goldsmith juwelier goldschmied", "ring gem jewel necklace amulet ruby ring edelstein juwel kette"
     " amulett rubin"),
    ("mayor burgomaster steward chancellor bürgermeister vogt verwalter kanzler", "tax council town law"
     " permit steuer rat"
     " stadt gesetz erlaubnis"),
    ("quartermaster quartiermeister zeugmeister", "supply supplies ration ammunition equipment vorrat vorräte ration"
     " munition ausrüstung"),
    ("thief burglar fence dieb hehler", "lock pick steal smuggle schloss stehl schmuggel"),
)  # fmt: skip
_NAMES: Final = tuple(frozenset(names.split()) for names, _ in _TRADES)
_BUSINESS: Final = tuple(tuple(words.split()) for _, words in _TRADES)
_SHORTEST_PART: Final = 4
"""Of a word that is part of a longer one: "smith" of "blacksmith"."""
_SHORTEST_BEGINNING: Final = 4


@lru_cache(1024)
def trades_of(noun: str) -> frozenset[int]:
    """Which trades a noun may name; in lower case."""
    forms = {noun, _masculine(noun)}
    named = frozenset(n for n, names in enumerate(_NAMES) if forms & names)
    if named:
        return named
    parts = [(name, n) for n, names in enumerate(_NAMES) for name in names if len(name) > _SHORTEST_PART]
    return frozenset(n for name, n in parts if any(form.endswith(name) for form in forms))


@lru_cache(4096)
def is_business(word: str, trades: frozenset[int]) -> bool:
    """Whether a word, in lower case, is the business of one of the trades."""
    return any(
        word == stem or (len(stem) >= _SHORTEST_BEGINNING and word.startswith(stem)) or word == f"{stem}s"
        for trade in trades
        for stem in _BUSINESS[trade]
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
    return noun.removesuffix("in") if len(noun) > _SHORTEST_PART + 1 else noun
