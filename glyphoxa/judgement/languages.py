"""A sentence in another language than the one that the NPC was spoken to in.

Told from the words that any sentence has, for English and German; a sentence with too few of them is in any language,
and a question in the campaign's. Names are no words of a language.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import ENGLISH, GERMAN, words

_ENGLISH: Final = "hello good morning evening day night goodbye thanks thank please"
_GERMAN: Final = "hallo guten gute guter morgen abend tag nacht danke bitte grüß gott wiedersehen"
GREETINGS: Final = {"en": frozenset(_ENGLISH.split()), "de": frozenset(_GERMAN.split())}
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
