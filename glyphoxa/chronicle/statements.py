"""Sentences that tell something of one person or thing, in English and German."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from glyphoxa.chronicle.new_names import occupation_in
from glyphoxa.chronicle.sentences import (
    FEW,
    IS,
    NAMED,
    OBJECT,
    SPEAKER,
    SUBJECT,
    A,
    MarkedSentence,
    either,
    key_of,
    pattern,
)


@dataclass(frozen=True, slots=True)
class FactClaim:
    """`subject` is the key of a name, or `SPEAKER`; `value` is in the words that were said."""

    subject: str
    about: str
    value: str
    confidence: float


_SHORTEST: Final = 4
"""Words of a sentence that says enough to be kept."""
_WORD: Final = r"[\w'-]+"
_OCCUPATIONS: Final = (
    pattern(rf"{SUBJECT}(?:{IS}|,) {A}(?P<v>{_WORD}(?: {_WORD}){{0,2}})"),  # Odo is the old miller
    pattern(rf"{either('the der die our unser')},? (?P<v>{_WORD}),? (?P<s>{NAMED})"),  # the miller, Odo
)
_STATE: Final = either(
    "dead missing wounded injured hurt sick ill cursed possessed imprisoned captured kidnapped pregnant poisoned blind"
    " unconscious alive gone asleep exiled banished trapped insane undead petrified killed murdered married engaged"
    " tot verschwunden verwundet verletzt krank verflucht besessen gefangen entführt schwanger vergiftet bewusstlos"
    " verheiratet verbannt wahnsinnig"
)
_HOW: Final = either("now still already really badly very jetzt schon noch")
_STATES: Final = (
    pattern(rf"{SUBJECT}(?:{IS}| has been| wurde)(?: {_HOW})* (?P<v>{_STATE})\b"),
    pattern(rf"{SUBJECT} (?P<v>{either('died vanished disappeared escaped passed_away starb verschwand entkam')})\b"),
)

_WE: Final = r"\b(?P<s>I|we|ich|wir)\b"
_HAVE: Final = r"(?:'ve| have| haben| habe)?"
_DO: Final = either(
    "pay bring give help return come_back go_back meet find take deliver protect keep save free rescue tell send wait"
    " look_after get_you repay avenge kill stop destroy build fix repair forge make_you guard escort join speak_to"
    " talk_to visit search investigate head travel leave stay rest camp buy sell steal"
)
_DO_DE: Final = either(
    "zahle* bringe* gebe* helfe* treffe* finde* liefer* beschütz* rette* befreie* sage* schicke* warte* räche* töte*"
    " repariere* schmiede* begleite* komme* besuche* suche* verlasse* reise*"
)
_WILL_DE: Final = either(
    "zahlen bezahlen bringen geben helfen treffen finden liefern beschützen retten befreien kommen zurückkommen holen"
)
_TO_YOU_DE: Final = either("dir euch ihnen ihm ihr sie es den die das bis morgen dich")
_GOING: Final = (
    either("going_to gonna planning_to about_to heading headed leaving on_our_way off_to")
    + rf"\b(?! {either('shoot cast attack fire hit fall roll use try keep_you stop_here')}\b)"
)
_OF_A_FIGHT: Final = pattern(
    r"\b(?:advantage|disadvantage|damage|initiative|d\d+|\d+ (?:feet|foot|points)|spell slot|concentration|saving throw"
    r"|schaden|rettungswurf)\b"
)
"""What is said of a blow is past with it."""


@dataclass(frozen=True, slots=True)
class _Saying:
    """A form of sentence that is kept as it was said. `is_of_denial`: also where it holds a "not" or "never"."""

    about: str
    pattern: re.Pattern[str]
    confidence: float = 0.75
    is_of_denial: bool = False


_SAYINGS: Final = (
    _Saying(
        "promise",
        pattern(rf"{_WE} {either('promise swear vow give_you_my_word verspreche* schwöre* gelobe*')}\b"),
        0.85,
        is_of_denial=True,
    ),
    _Saying("promise", pattern(rf"{_WE}(?:'ll| will| shall) (?:\w+ )?{_DO}\b"), 0.7),
    _Saying("promise", pattern(rf"{_WE} {_DO_DE} {_TO_YOU_DE}\b"), 0.7),
    _Saying("promise", pattern(rf"{_WE} (?:werden?)\b.*\b{_WILL_DE}\b")),
    _Saying(
        "decision",
        pattern(rf"{_WE}{_HAVE} {either('decided agreed beschlossen entschieden uns_entschieden')}\b"),
        0.85,
        is_of_denial=True,
    ),
    _Saying(
        "decision",
        pattern(either("it's_settled it_is_settled that's_settled we_have_a_deal it's_a_deal abgemacht")),
        0.8,
    ),
    _Saying("plan", pattern(rf"{_WE}(?:'re| are|'m| am) {_GOING}(?:.*\b{_DO}\b|.*{NAMED})"), 0.72),
    _Saying("plan", pattern(rf"\b{either('let_us lasst_uns lass_uns')}|\blet's (?:\w+ )*?(?:{_DO}|go)\b"), 0.7),
    _Saying(
        "plan",
        pattern(rf"{_WE} {either('gehen gehe reisen reise ziehen brechen wollen will')} .*\b(?:morgen|nach|zum|zur)\b"),
        0.7,
    ),
    _Saying("discovery", pattern(rf"{_WE}{_HAVE} {either('found_out discovered learned entdeckt erfahren')}\b"), 0.8),
    _Saying("discovery", pattern(rf"{_WE} (?:habe|haben) .*\b(?:herausgefunden|entdeckt|erfahren)\b"), 0.8),
    _Saying(
        "gave",
        pattern(rf"{_WE} {either('give gave hand handed gebe gab geben gaben überreiche')}\b(?! (?:up|in|auf)\b)"),
    ),
    _Saying(
        "gave",
        pattern(
            rf"{SUBJECT} {either('gives gave hands handed gibt gab')}"
            rf" (?:{either('you him her them us me it the dir ihm ihr ihnen uns mir')}|{NAMED})"
        ),
    ),
    _Saying("bought", pattern(rf"{_WE} {either('buy bought purchase purchased kaufe kaufte kaufen kauften')}\b")),
    _Saying("sold", pattern(rf"{_WE} {either('sell sold verkaufe verkaufte verkaufen')}\b")),
    _Saying(
        "took",
        pattern(
            rf"{_WE} {either('take took pick_up picked_up grab grabbed steal stole looted nehme nahm stehle stahl')}"
            rf" {either('the his her its their all one_of a an two three den die das ein eine einen')}"
            rf"\b(?! {either('shot step swing look breath moment second seat nap rest run drink sip bite')}\b)"
        ),
        0.7,
    ),
    _Saying("lost", pattern(rf"{_WE}{_HAVE} (?:.*\b)?{either('lost verloren verlor')}\b")),
    _Saying(
        "wish",
        pattern(
            rf"{_WE}{_HAVE} {either('hate fear always_wanted am_afraid_of love hasse fürchte liebe wollte_immer')}\b"
        ),
        0.7,
    ),
    _Saying("past", pattern(rf"{_WE} {either('used_to once grew_up was_born were_born wuchs wurde_geboren')}\b"), 0.72),
    _Saying("past", pattern(r"\bwhen (?P<s>I|we) (?:was|were)\b|\bals (?P<s2>ich) .*\bwar\b"), 0.72),
)
"""The more telling first: a sentence is kept once."""
_COINS: Final = either("gold silver copper platinum crowns crown coins coin goldstücke silberlinge kronen münzen taler")
_NUMBER: Final = either(
    "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty"
    " hundred thousand ein eine einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf fünfzehn zwanzig"
    " dreißig vierzig fünfzig hundert tausend"
)
_AMOUNT: Final = pattern(rf"(?:\b\d[\d,.]*|\b{_NUMBER}) {_COINS}\b")
_COSTS: Final = pattern(rf"\b{either('costs cost price for asks owe owes pay paid kostet preis für schuldet zahle')}\b")
_LONGEST_VALUE: Final = 300


def facts_in(sentence: MarkedSentence) -> list[FactClaim]:
    """What is said of somebody who is named, or of the speaker; nothing of a question, or of what may be."""
    if not sentence.may_tell:
        return []
    found: dict[tuple[str, str], FactClaim] = {}
    for claim in (*_described(sentence), *_said(sentence)):
        found.setdefault((claim.subject, claim.about), claim)
    return list(found.values())


def _described(sentence: MarkedSentence) -> Iterator[FactClaim]:
    for each in _OCCUPATIONS:
        for match in each.finditer(sentence.marked):
            occupation = occupation_in(match["v"])
            if occupation is not None and not sentence.denies(*match.span()):
                yield FactClaim(key_of(sentence, match["s"]), "occupation", occupation, 0.8)
    for each in _STATES:
        for match in each.finditer(sentence.marked):
            if not sentence.denies(*match.span()):
                yield FactClaim(key_of(sentence, match["s"]), "status", match["v"].lower(), 0.8)


def _said(sentence: MarkedSentence) -> Iterator[FactClaim]:
    if len(sentence.text.split()) < _SHORTEST or _OF_A_FIGHT.search(sentence.marked):
        return
    value = sentence.text.strip().rstrip(".;,!… ")[:_LONGEST_VALUE]
    for saying in _SAYINGS:
        match = None if sentence.is_denied and not saying.is_of_denial else saying.pattern.search(sentence.marked)
        if match is not None:
            groups = match.groupdict()
            subject = groups.get("s") or groups.get("s2") or SPEAKER
            yield FactClaim(key_of(sentence, subject), saying.about, value, saying.confidence)
            return
    if not sentence.is_denied and _AMOUNT.search(sentence.marked) and _COSTS.search(sentence.marked):
        yield FactClaim(sentence.keys[0] if sentence.keys else SPEAKER, "price", value, 0.7)


# Sentences that tell how two are related, in English and German.


@dataclass(frozen=True, slots=True)
class RelationClaim:
    """`source` and `target` are keys of names, or `SPEAKER`."""

    source: str
    type: str
    target: str
    confidence: float


KIN_BY_TYPE: Final = {
    "PARENT_OF": "father mother parent dad mom vater mutter",
    "CHILD_OF": "son daughter child sohn tochter kind",
    "SIBLING_OF": "brother sister twin sibling bruder schwester zwilling",
    "MARRIED_TO": "wife husband frau mann",
    "RELATED_TO": "uncle aunt cousin nephew niece grandfather grandmother onkel tante vetter cousine neffe nichte"
    " großvater großmutter",
    "ALLIED_WITH": "friend ally partner freund freundin verbündeter verbündete",
    "HOSTILE_TO": "enemy rival nemesis feind feindin rivale rivalin",
    "MENTOR_OF": "master teacher mentor lehrer lehrerin meister meisterin",
    "APPRENTICE_OF": "apprentice student pupil lehrling schüler schülerin",
    "SERVES": "servant bodyguard squire diener dienerin leibwächter knappe",
    "EMPLOYER_OF": "boss employer chef dienstherr",
    "COMPANION_OF": "bear wolf dog cat horse companion bär hund pferd gefährte gefährtin",
    "LOVES": "lover fiancé fiancée geliebter geliebte verlobter verlobte",
}
_KIN: Final = {word: type_ for type_, listed in KIN_BY_TYPE.items() for word in listed.split()}
_OLDER: Final = either(
    "older younger elder little big twin dear old best good late long-lost half- alter alte bester beste kleiner kleine"
    " großer große"
)
_KIND: Final = rf"(?:{_OLDER} ?)*(?P<kin>{either(*KIN_BY_TYPE.values())})\b"
_WHOSE: Final = rf"(?P<o>{NAMED}|\bmy\b|\bmeine?\b)(?:'s)?"

_KIN_PATTERNS: Final = (
    pattern(rf"{_WHOSE} {_KIND},? (?P<s>{NAMED})"),  # my brother Odo; Odo's sister Wenna
    pattern(rf"{SUBJECT}(?:,|{IS}) {_WHOSE} {_KIND}"),  # Odo is my brother; Wenna, Odo's sister
    pattern(rf"{SUBJECT}(?:,|{IS}) {A}{_KIND} (?:of|to|von|der|des) {A}(?P<o>{NAMED})"),  # Odo, the son of Wenna
)

_IN: Final = either("in at near inside outside under beneath below within bei im am unter nahe")
_MEMBER: Final = either(
    "member part agent servant priest priestess cleric follower worshipper knight guard captain leader head king queen"
    " ruler lord lady mayor keeper champion emissary sheriff steward mitglied teil anführer* priester* herrscher*"
    " könig* bürgermeister* hauptmann diener* ritter herr herrin verwalter*"
)
_MOVED: Final = either(
    "went goes gone travels traveled travelled fled flees returned returns moved sailed rode walked ging reiste floh"
    " zog kehrte ritt"
)
_HARMS: Final = either(
    "killed murdered slew slays attacked attacks betrayed hates despises hunts hunted captured kidnapped imprisoned"
    " cursed robbed tortured fought destroyed threatened threatens cheated poisoned ermordete tötete hasst jagt verriet"
    " entführte bedroht bedrohte betrog"
)
_HARMED: Final = either("getötet ermordet verraten entführt bestohlen angegriffen verflucht bedroht betrogen vergiftet")
_LOVES: Final = either(
    "loves loved love married trusts trust helped saved rescued protects befriended liebt liebe heiratete vertraut"
    " rettete half beschützt"
)
_KNOWS: Final = either("knows knew know met visited remembers kennt kannte kenne traf besuchte")
_HIRED: Final = either("sent hired paid trained taught raised schickte bezahlte lehrte")
_OWNS: Final = either(
    "has have owns owned own holds carries carried carry wields bought stole found besitzt besitze hat habe trägt trage"
    " fand stahl kaufte"
)
_WORKS: Final = either("works worked work working arbeite*")
_SERVES: Final = either("serves served serve serving dient diene diente")
_LEADS: Final = either("leads led rules ruled commands heads founded runs führt regiert leitet gründete")
_LIVES: Final = either("lives lived live living dwells resides grew_up was_born wohn* leb* stays staying")
_COMES: Final = either("comes come came hails kommt stammt komme stamme")
_AWAY: Final = either("back off away over north south east west zurück")
_WHERE: Final = either("now still currently hiding imprisoned trapped waiting back held up down jetzt noch gerade")


@dataclass(frozen=True, slots=True)
class _Form:
    pattern: re.Pattern[str]
    type: str
    confidence: float = 0.8


def _form(between: str, type_: str, confidence: float = 0.8) -> _Form:
    """Of two names with something between them."""
    return _Form(pattern(f"{SUBJECT}{between}{OBJECT}"), type_, confidence)


_FORMS: Final = (
    _form(rf" {_WORKS} {either('for für bei')} {A}", "EMPLOYED_BY"),
    _form(rf" {_SERVES} {A}", "SERVES"),
    _form(rf" {_LEADS} {A}", "LEADS"),
    _form(rf" {_LIVES} (?:\w+ )?{_IN} {A}{FEW}", "LOCATED_AT"),
    _form(rf"{IS}?(?: {_WHERE})* {_IN} {A}{FEW}", "LOCATED_AT", 0.7),
    _form(rf" {_MOVED}(?: {_AWAY})* {either('to into nach in zu')} {A}{FEW}", "LOCATED_AT", 0.75),
    _form(rf"(?:{IS}| {_COMES}|,)? (?:originally )?{either('from aus')} {A}{FEW}", "COMES_FROM"),
    _form(rf" {_HARMS} {A}", "HOSTILE_TO"),
    _Form(pattern(rf"{SUBJECT} hat {A}{OBJECT} (?:\w+ )?{_HARMED}"), "HOSTILE_TO"),
    _form(rf" {_LOVES} {A}", "ALLIED_WITH"),
    _form(rf" {_KNOWS} {A}", "KNOWS"),
    _form(rf" {_HIRED} {A}", "EMPLOYER_OF", 0.7),
    _form(rf"(?:{IS}|,) {A}(?:\w+ )?{_MEMBER}(?: \w+)? {either('of von der des vom')} {A}", "MEMBER_OF"),
    _form(rf" {either('joined left trat verließ')} {A}", "MEMBER_OF", 0.75),
    _form(rf" {_OWNS} {A}(?:\w+ )?", "OWNS", 0.7),
    _form(rf" {either('gave gives handed gab gibt')} ", "KNOWS", 0.7),
    _form(rf" gehört {A}", "MEMBER_OF", 0.75),
    _form(rf" {either('of from von aus')} ", "COMES_FROM", 0.75),
)
"""The more telling first: of two that fit the same two names the first counts."""


def relations_in(sentence: MarkedSentence) -> list[RelationClaim]:
    """How those who are named, or the speaker, are related; nothing of a question, of what may be or is not."""
    if not sentence.may_tell:
        return []
    seen: dict[frozenset[str], RelationClaim] = {}
    for claim in (*_kin_in(sentence), *_formed_in(sentence)):
        if claim.source != claim.target:
            seen.setdefault(frozenset((claim.source, claim.target)), claim)
    return list(seen.values())


def _kin_in(sentence: MarkedSentence) -> Iterator[RelationClaim]:
    for each in _KIN_PATTERNS:
        for match in each.finditer(sentence.marked):
            if not sentence.denies(*match.span()):
                yield _claim(sentence, match, _KIN[match["kin"].lower()], 0.85)


def _formed_in(sentence: MarkedSentence) -> Iterator[RelationClaim]:
    if not sentence.keys:
        return
    for form in _FORMS:
        for match in form.pattern.finditer(sentence.marked):
            if not sentence.denies(*match.span()):
                yield _claim(sentence, match, form.type, form.confidence)


def _claim(sentence: MarkedSentence, match: re.Match[str], type_: str, confidence: float) -> RelationClaim:
    return RelationClaim(key_of(sentence, match["s"]), type_, key_of(sentence, match["o"]), confidence)
