"""What a sentence of a reply is judged by, and the judgement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import Stemmer

from glyphoxa.domain.turn import Fault


@dataclass(frozen=True, slots=True)
class Character:
    """Who speaks.

    Attributes:
        others: Names of everybody else who may speak.
        language: The campaign's (BCP 47).
        guards_secrets: Its own secrets are never said, whoever asks.
    """

    name: str
    aliases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    language: str = "en"
    guards_secrets: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What it answers, and what the prompt held.

    Attributes:
        question: The words of the player.
        speaker_name: Who asks.
        facts: What it knows that bears on the question, a sentence each.
        not_known: Of the facts, those which say that it knows nothing of what is asked.
        remembered: What it heard that bears on it, each line with who said it.
        identity: What it knows of itself, and the scene it is in.
        kept: Its own secrets that the question comes to.
        told: Answers from what the asker told it of just this, the best first.
        before: The talk before: what was said to it and what it answered, oldest first.
        so_far: What of this reply was passed already.
        direction: What the DM wants of the answer. It is not for players' ears.
    """

    question: str = ""
    speaker_name: str = ""
    facts: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    so_far: str = ""
    direction: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Attributes:
        text: What may be said; empty for nothing.
        fault: Why a sentence was rejected. None with an empty text: there was nothing to say, or it is kept for the
            next piece.
    """

    text: str = ""
    fault: Fault | None = None


# Words that stand in any sentence of English or German, and say nothing of what it is about.


_ENGLISH: Final = (
    "the and you your yours are is was were have has had not what where who how why when this that these those i my "
    "me mine we our us they them their he she his her its it of to for from with would could should can can't will "
    "won't do does did don't didn't about there here which but as at by if than then some any no yes nothing never "
    "know tell me let i'm i've it's that's be been an a in on or so am well very much more many out up come go"
)
ENGLISH: Final = frozenset(_ENGLISH.split())
_GERMAN: Final = (
    "der die das den dem des ein eine einen einem einer und ist sind war waren nicht nichts ich du mich dich mir "
    "dir er sie es wir ihr euch uns ihnen mein meine meinen dein deine deinen euer eure sein seine was wer wie wo "
    "warum wann wenn aber oder auch noch nur schon hier dort da mit von vom zu zum zur im in an am auf für über "
    "aus bei nach kann kannst könnt können habe hast hat habt haben hatte bin bist seid weiß weißt wisst kein keine "
    "keinen ja nein doch mal so dass ob als um will willst wollt gibt geht sag sagt man sehr viel mehr etwas "
    "wurde wurden wird werden worden würde sich unser unsere diese dieser diesen dieses jetzt schon immer gern"
)
GERMAN: Final = frozenset(_GERMAN.split())
_NEGATIONS: Final = (
    "no not never none nobody nothing nor neither cannot can't don't didn't won't isn't wasn't haven't hasn't "
    "wouldn't nein nicht nichts nie niemals niemand kein keine keinen keinem keiner weder"
)
NEGATIONS: Final = frozenset(_NEGATIONS.split())
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_STEM: Final = 6
_STEMMERS: Final = (Stemmer.Stemmer("english"), Stemmer.Stemmer("german"))
"""One behind the other: which language a word is of is not asked."""
_CACHE: Final = 20_000
_SHORTEST: Final = 3


def words(text: str) -> list[str]:
    """Casefolded, with a straight apostrophe."""
    return [found.casefold().replace("’", "'") for found in _WORD.findall(text)]


def content_words(text: str) -> frozenset[str]:
    """The stems of the words that say something: "sewed" and "sews" are one, and so are "poisonous" and "poison"."""
    return frozenset(
        _stem(word.removesuffix("'s"))
        for word in words(text)
        if len(word) >= _SHORTEST and word not in ENGLISH and word not in GERMAN and word not in NEGATIONS
    )


@lru_cache(_CACHE)
def _stem(word: str) -> str:
    for stemmer in _STEMMERS:
        word = stemmer.stemWord(word)
    return word[:_STEM]


# A sentence in another language than the one that the NPC was spoken to in.
#
# Told from the words that any sentence has, for English and German; a sentence with too few of them is in any language,
# and a question in the campaign's. Names are no words of a language.


_LANGUAGES_ENGLISH: Final = "hello good morning evening day night goodbye thanks thank please"
_LANGUAGES_GERMAN: Final = "hallo guten gute guter morgen abend tag nacht danke bitte grüß gott wiedersehen"
GREETINGS: Final = {"en": frozenset(_LANGUAGES_ENGLISH.split()), "de": frozenset(_LANGUAGES_GERMAN.split())}
"""Words of greetings and of politeness, by language."""
_ENGLISH_ALONE: Final = (ENGLISH | GREETINGS["en"]) - GERMAN - GREETINGS["de"]
_GERMAN_ALONE: Final = (GERMAN | GREETINGS["de"]) - ENGLISH - GREETINGS["en"]
"""What is a word of both ("was", "am") shows neither."""
_ONLY_GERMAN: Final = re.compile(r"[äöüß]", re.IGNORECASE)
_OF_A_NAME: Final = re.compile(r"\b(?:(?:von|van|zu|of)(?: (?:der|dem|den|the))? )?(?<!^)(?<![.!?] )[A-ZÄÖÜ]\w+")
_OTHER_SCRIPT: Final = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LEAST: Final = 2


def language_of(text: str, *, least: int = _LEAST) -> str:
    """`en`, `de`, or empty where the words do not show it.

    Args:
        least: Words of a language that the text needs more than it has of the other.

    >>> language_of("Was kostet ein Bier bei dir?")
    'de'
    >>> language_of("Bodo!")
    ''
    """
    found = words(_OF_A_NAME.sub(" ", text))
    n_english = sum(word in _ENGLISH_ALONE for word in found)
    n_german = sum(word in _GERMAN_ALONE or bool(_ONLY_GERMAN.search(word)) for word in found)
    if n_english - n_german >= least:
        return "en"
    return "de" if n_german - n_english >= least else ""


def in_another_language(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if _OTHER_SCRIPT.search(sentence) and not _OTHER_SCRIPT.search(asked.question):
        return Fault.LANGUAGE
    own = character.language.partition("-")[0].lower()
    spoken, wanted = language_of(sentence), language_of(asked.question, least=1) or (own if own in GREETINGS else "")
    return Fault.LANGUAGE if spoken and wanted and spoken != wanted else None
