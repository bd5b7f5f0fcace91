"""Trades as tables know them: what they are called, and what one asks them for (English and German).

A row is one trade: its names, then the beginnings of words that are its business. "smith" is also the name of every
trade that ends in it, and German names also stand for their feminine forms.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

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
