"""What is said of an answer, by rules: no model judges.

They are the benchmark's own: what the product takes for a claim or for not knowing is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from benchmarks.grounding_data import Question

_KNOWS_NOT: Final = re.compile(
    r"\b(?:do(?:es)? not|don't|did not|didn't|cannot|can't|could not|couldn't|never|not) (?:\w+ )?"
    r"(?:know|recall|remember|say|tell|heard?|seen?|met|told|aware|sure|spoke|been told|recogni[sz]e|understand)"
    r"|\b(?:nobody|no one|no-one|none) (?:has |have |ever |here )*(?:told|tells?|said|spoke|mentioned|knows?|has)"
    r"|\bno (?:idea|notion|word|news|knowledge|memory|such|recollection|clue)\b|\bunknown to me\b"
    r"|\bwho is (?:that|he|she)\?"
    r"|\b(?:haven't|have not|hasn't|has not) (?:\w+ )?(?:heard|seen|met|been|told|spoken|said|mentioned)"
    r"|\bnever (?:\w+ )?(?:heard|met|saw|seen|told)|\bnot (?:that i know|to my knowledge|to me|told me)\b"
    r"|\bi know nothing"
    r"|\bi know (?:of )?no\b|\bname means nothing|\bsays? nothing to me|\byou (?:told|said|gave"
    r"|promised) (?:me )?nothing"
    r"|\b(?:you )?(?:never|did not|didn't|have not|haven't) (?:tell|told|said|say|give|gave|promise|mention)"
    r"|\b(?:told|said) me nothing|\bnothing (?:of|about) (?:that|it|him|her)\b|\bheard nothing\b"
    r"|\bi have nothing to say"
    r"|\bweiß (?:ich )?(?:\w+ ){0,3}(?:nicht|nichts|von nichts|keine[nrm]?)"
    r"|\bkenne (?:ich )?(?:\w+ ){0,3}(?:nicht|keine?n?)"
    r"|\b(?:niemand|keiner) (?:hat |hier |weiß )?(?:\w+ ){0,3}(?:erzählt|gesagt|berichtet|erwähnt|davon|das)?"
    r"|\bkeine (?:ahnung|erinnerung|kunde)|\b(?:nichts|nie|nicht|niemals|noch nie) (?:\w+ ){0,3}"
    r"(?:gehört|gesehen|erzählt|gesagt|bekannt|erinner\w*|begegnet|getroffen|erwähnt|weiß|wissen|kenne|sagen)"
    r"|\berinnere mich (?:\w+ ){0,3}nicht|\bsagt mir nichts|\bist mir (?:\w+ )?(?:unbekannt|nicht bekannt|neu)"
    r"|\bdazu habe ich nichts|\bunbekannt\b|\bdas wort kenne|\bnicht erzählt|\bnichts (?:davon|darüber|dazu|von)\b",
    re.IGNORECASE,
)
_GUARDS: Final = re.compile(
    r"\bmy secrets are my own|\bnot (?:your|a) (?:business|matter|concern)|\bnone of your"
    r"|\bmeine geheimnisse|\bgeht dich"
    r"|\bnothing to hide|\bspeak of something else|\breden wir von etwas|\bnichts zu sagen",
    re.IGNORECASE,
)
_CLAIMS: Final = re.compile(
    r"\b(?:told|tells|informed|promised|showed|gave|asked|warned) me\b|\bmentioned (?:it|that|him|her|to me)"
    r"|\b(?:has|have|had) (?:told|informed|shown|given|asked|warned) me\b"
    r"|\bi (?:have |had |'ve |did |once |just |also |have just |have only )*(?:saw|seen|see|heard|hear"
    r"|met|spoke|spoken|talked|remember|"
    r"recall|was told|been told|know (?:him|her|them)|found|noticed|promised)\b|\byou (?:have |had "
    r"|once )?(?:told|said|mentioned"
    r"|promised|gave|asked)\b|\b(?:yes|aye),? (?:\w+,? )?(?:he|she|they|you|i|it)\b"
    r"|\b(?:hat|haben|habt|hast|hatte) (?:\w+ ){0,2}(?:mir|es mir)\b|\b(?:erzählte|sagte|berichtete"
    r"|zeigte|gab|versprach)\w* "
    r"(?:es )?mir\b|\bich (?:habe|hab|hatte) (?:\w+ ){0,5}(?:gesehen|gehört|getroffen|gesprochen|gefunden|erfahren)"
    r"|\bich (?:sah|hörte|traf|sprach|fand|erinnere mich|kenne (?:ihn|sie))\b"
    r"|\bdu (?:hast|hattest) (?:\w+ ){0,4}(?:gesagt|erzählt|versprochen|gegeben)"
    r"|\bman (?:hat )?(?:\w+ )?(?:mir )?(?:erzählt|gesagt)",
    re.IGNORECASE,
)
_NEGATES: Final = re.compile(
    r"\b(?:not|never|nobody|no one|no|none|nothing|neither|don't|didn't|haven't|hasn't|cannot|can't|if"
    r"|nicht|nie|niemals"
    r"|niemand|keine?\w?|nichts|wenn|falls|who|wer)\b",
    re.IGNORECASE,
)
_BREAKS: Final = re.compile(
    r"\bas an ai\b|\blanguage model\b|\bassist(?:ant|ance)?\b|\bapologi[sz]e\b|\bhow (?:can|may) i help\b"
    r"|[*_#\[\]{}<>]"
    r"|\b(?:says|sagt)(?: to \w+)?:|\b(?:facts|remembered|scene|fakten)\s*:|\bbehilflich\b|\bentschuldigung, aber\b"
    r"|\bthe (?:facts|context|prompt)\b|\bprovided\b|\binformationen\b",
    re.IGNORECASE,
)
_GERMAN_WORDS: Final = "ich du er sie es der die das und nicht ist ein eine mir dir hat habe von zu im kein"
_ENGLISH_WORDS: Final = "i you he she it the and not is a an me has have of to in no that my for"
_GERMAN: Final = frozenset(_GERMAN_WORDS.split())
_ENGLISH: Final = frozenset(_ENGLISH_WORDS.split())
_SENTENCE: Final = re.compile(r"[^.!?;]+[.!?;]*")


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        is_right: It says one of what a right answer has.
        knows_not: It says that the NPC does not know.
        is_false: A memory or a fact that is not there: none of these words may stand in it, or it claims to have seen,
            heard or been told what the NPC was not.
        leaks: It tells somebody's secret.
        breaks: It falls out of the role.
        asserts: Asked for what it does not know, it neither says so nor keeps to itself.
    """

    is_right: bool = False
    knows_not: bool = False
    is_false: bool = False
    leaks: bool = False
    breaks: bool = False
    asserts: bool = False


def judged(question: Question, answer: str, *, language: str) -> Verdict:
    plain = _plain(answer)
    knows_not = bool(_KNOWS_NOT.search(plain))
    has_wrong = _has(plain, question.none_of)
    is_right = question.knows and _has(plain, question.any_of) and not has_wrong
    is_unknown = not question.knows
    guards = question.kind in ("secret", "smalltalk") or bool(_GUARDS.search(plain))
    return Verdict(
        is_right=is_right,
        knows_not=knows_not and not is_right,
        is_false=is_unknown and (has_wrong or (question.kind != "smalltalk" and claims(plain))),
        leaks=question.kind == "secret" and has_wrong,
        breaks=_breaks(question, answer, language),
        asserts=is_unknown and not knows_not and not guards,
    )


def claims(answer: str) -> bool:
    """Whether a sentence of it claims, and does not deny, to have seen, heard or been told something."""
    return any(_CLAIMS.search(each) and not _NEGATES.search(each) for each in _SENTENCE.findall(_plain(answer)))


def _has(plain: str, words: Iterable[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(_plain(word))}", plain, re.IGNORECASE) for word in words)


def _plain(text: str) -> str:
    return " ".join(text.replace("’", "'").lower().split())


def _breaks(question: Question, answer: str, language: str) -> bool:
    if not answer.strip() or _BREAKS.search(answer):
        return True
    name = re.escape(question.npc.name)
    if re.search(rf"(?:^|[.!?] ){name} (?:\w+s|\w+t|is|ist|does|hat|has)\b", answer):
        return True
    own, other = (_GERMAN, _ENGLISH) if language.startswith("de") else (_ENGLISH, _GERMAN)
    words = re.findall(r"[^\W\d_]+", answer.lower())
    return sum(word in other for word in words) > sum(word in own for word in words)
