"""What an NPC said itself, in its own prompt.

An NPC's words are what a language model made up: told to it as something it knows, they would be true the next
evening. So they are no facts. They come back as what it said, and only to who asks what it said, told or promised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import RecalledTalk, is_own_utterance
from glyphoxa.speech.language.phonetics import primary_language

_Talk = TypeVar("_Talk", bound=RecalledTalk)


def of_others(said: Iterable[_Talk], npc: NpcId) -> list[_Talk]:
    """Without what the NPC said itself."""
    return [one for one in said if not is_own_utterance(one, npc)]


def asks_what_it_said(question: str, *, language: str) -> bool:
    """Whether an NPC is asked about its own words ("What did you promise me?", "You said six crowns!").

    Not what others told it, not what it has to say now. False in a language that is not known here: its own words
    then stay out of its prompt.
    """
    asks = _ASKS.get(primary_language(language))
    return asks is not None and asks(_plain(question))


def looks_for_own_words(query: str, *, name: str, language: str) -> bool:
    """The same of what an NPC's model looks for by itself: "what I promised Hanna", "Korvald promised".

    Args:
        name: The NPC's; empty when it is not known.
    """
    own = _AS_YOU.get(primary_language(language))
    if own is None:
        return False
    text = _plain(query)
    if name:
        text = re.sub(rf"\b{re.escape(_plain(name))}\b", own.you, text)
    for said, instead in own.instead:
        text = said.sub(instead, text)
    return own.promise.search(text) is not None or asks_what_it_said(text, language=language)


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


_SAID: Final = (
    "said|told|promised|swore|vowed|agreed|mentioned|claimed|answered|replied|offered|warned|explained|admitted|denied"
    "|suggested|advised|asked|spoke|talked|assured|described|recommended|lied|confessed|insisted|quoted|taught"
)
_SAY: Final = (
    "say|tell|promise|swear|vow|agree|mention|claim|answer|reply|offer|warn|explain|admit|deny|suggest|advise|ask"
    "|speak|talk|assure|describe|recommend|lie|confess|insist|quote|mean"
)
_ADVERB: Final = r"(?:\w+ly|ever|never|not|just|once|already|also|always|even|first|last|yourself|two|both|all|then)"
_YOU_SAID: Final = re.compile(
    rf"(?:(\S+) )?\byou(?: have| had|'ve|'d)?(?: {_ADVERB}){{0,2}} (?:{_SAID}|(?<=ve )sworn|(?<=had )sworn)\b"
)
_DONE_TO_YOU: Final = frozenset({"are", "was", "were", "aren't", "weren't", "be", "got", "get", "being"})
_EN: Final = re.compile(
    rf"\b(?:did|didn't) you(?: {_ADVERB}){{0,2}} (?:{_SAY})\b"
    r"|\bhave you(?: \w+)? sworn\b|\bwere you going to\b"
    r"|\byour (?:\w+ )?(?:promises?|words?|oaths?|vows?|offer|claim|warning|advice)\b"
    r"|\bwe(?: have| had|'ve|'d)?(?: \w+ly| once| already| last)?"
    r" (?:talked|spoke|spoken|said|agreed|discussed|settled)\b"
    r"|\bdid(?:n't)? we(?: \w+ly| once| not| ever)? (?:talk|speak|say|agree|discuss|settle)\b"
    r"|\bour (?:\w+ )?(?:talk|conversation|deal|bargain|agreement)\b"
    r"|\b(?:was|were|been) (?:said|promised|agreed|offered|discussed)\b"
)


def _asks_in_english(text: str) -> bool:
    is_said = any(match[1] not in _DONE_TO_YOU for match in _YOU_SAID.finditer(text))
    return is_said or _EN.search(text) is not None


_GESAGT: Final = (
    "gesagt|erzählt|versprochen|geschworen|erwähnt|behauptet|geantwortet|angeboten|gewarnt|erklärt|zugegeben|geraten"
    "|vorgeschlagen|zugesagt|berichtet|verraten|gemeint|genannt|gesprochen|geredet|vereinbart|ausgemacht|gefragt"
    "|beschrieben|gelogen"
)
_BESPROCHEN: Final = "gesprochen|geredet|vereinbart|ausgemacht|abgemacht|besprochen|verabredet|gesagt"
_CLAUSE: Final = r"[^,.;:?!]*"
_DE: Final = re.compile(
    rf"\b(?:hast|hattest) du\b{_CLAUSE}\b(?:{_GESAGT})\b|\bdu (?:hast|hattest)\b{_CLAUSE}\b(?:{_GESAGT})\b"
    rf"|\bdu\b{_CLAUSE}\b(?:{_GESAGT}) (?:hast|hattest)\b"
    rf"|\b(?:habt|hattet) ihr\b{_CLAUSE}\b(?:{_GESAGT})\b|\bihr (?:habt|hattet)\b{_CLAUSE}\b(?:{_GESAGT})\b"
    rf"|\bihr\b{_CLAUSE}\b(?:{_GESAGT}) (?:habt|hattet)\b"
    r"|\b(?:wolltest du|wolltet ihr|du \w+ wolltest)\b"
    r"|\b(?:sagtest|erzähltest|versprachst|meintest|erwähntest|behauptetest|schworst|nanntest)\b"
    r"|\b(?:sagtet|erzähltet|verspracht|meintet|erwähntet|behauptetet|schwort|nanntet)\b"
    r"|\b(?:dein|euer|deine|eure)[mnrs]{0,2} (?:versprechen|worte?|schwur|eid|angebot|zusage|behauptung|rat|warnung)\b"
    rf"|\b(?:haben|hatten) wir\b{_CLAUSE}\b(?:{_BESPROCHEN})\b|\bwir (?:haben|hatten)\b{_CLAUSE}\b(?:{_BESPROCHEN})\b"
    rf"|\bwir\b{_CLAUSE}\b(?:{_BESPROCHEN}) (?:haben|hatten)\b"
    r"|\bunsere?[mnrs]? (?:\w+ )?(?:abmachung|vereinbarung|gespräch|handel)\b"
    rf"|\bwurden?\b(?!{_CLAUSE}\b(?:dir|euch)\b){_CLAUSE}\b(?:gesagt|versprochen|{_BESPROCHEN})\b"
)


def _asks_in_german(text: str) -> bool:
    return _DE.search(text) is not None


_ASKS: Final[Mapping[str, Callable[[str], bool]]] = {"en": _asks_in_english, "de": _asks_in_german}


@dataclass(frozen=True, slots=True)
class _AsYou:
    """How who speaks of itself would be asked by another.

    Attributes:
        you: In place of its name.
        instead: What it says of itself, and what another would say; in this order.
        promise: What asks for it by itself.
    """

    you: str
    instead: tuple[tuple[re.Pattern[str], str], ...]
    promise: re.Pattern[str]


def _as_you(you: str, instead: Mapping[str, str], promise: str) -> _AsYou:
    patterns = tuple((re.compile(rf"\b(?:{said})\b"), other) for said, other in instead.items())
    return _AsYou(you, patterns, re.compile(rf"\b(?:{promise})\b"))


_AS_YOU: Final[Mapping[str, _AsYou]] = {
    "en": _as_you(
        "you", {"i": "you", "my": "your", "you has": "you have"}, "promised?|promises|agreed|agreement|oath|vow"
    ),
    "de": _as_you(
        "du",
        {
            "ich": "du",
            "habe": "hast",
            "hatte": "hattest",
            "mein(e[mnrs]?)?": "dein",
            "du hat": "du hast",
            "hat du": "hast du",
        },
        "versprechen|versprochen|vereinbart|vereinbarung|abmachung|schwur|eid",
    ),
}
