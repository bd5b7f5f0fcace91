"""Sentences that tell how two are related, in English and German."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from glyphoxa.chronicle.rules.patterns import FEW, IS, OBJECT, SUBJECT, A, either, key_of, pattern
from glyphoxa.chronicle.rules.sentences import NAMED, MarkedSentence


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
