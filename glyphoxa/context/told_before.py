"""What who asks has said itself of just what it asks, in the words of an answer.

A small model that has the line in front of it may still answer with something else, or that it knows nothing. What the
asker told is the surest thing an NPC can say, so the answer is made without a model, for where the model's will not do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from glyphoxa.context.own_words import asks_what_it_said
from glyphoxa.context.topic_words import TopicWords
from glyphoxa.context.wording import wording
from glyphoxa.domain.recalled import RecalledTalk, RecalledUtterance
from glyphoxa.judgement.languages import language_of
from glyphoxa.speech.language.asking import asks_for_memory, speaks_of_the_asker
from glyphoxa.speech.language.phonetics import primary_language

_SHARED: Final = 2
_NAMING: Final = "name named names called call heißt heissen heißen namens genannt nennt"
"""Who tells of a brother Joren need not say that he is called so."""
_WISH: Final = re.compile(
    r"\b(?:i|we) (?:want|need|would like|wish|hope|am looking|are looking)\b|\b(?:i|we)'d like\b|\bplease\b|\bcan i\b"
    r"|\b(?:ich|wir) (?:will|wollen|brauche\w*|möchte\w*|hätte\w* gern|suche\w*|hoffe\w*)\b|\bbitte\b"
)
_WISHED: Final = re.compile(r"\b(?:want|need|wish|hope|looking for|will|brauche\w*|möchte\w*|suche\w*|hoffe\w*)\b")
_TO_THE_NPC: Final = re.compile(r"\b(?:you|your|yours|du|dich|dir|dein\w*|ihr|euch|euer|eure\w*)\b")
_SAYS_WHO: Final = re.compile(r"(?:I|My|We|Our|The|A|An|There|It|He|She|They)\b")
_CHANGED: Final = (
    "i'm you're|i am you are|i was you were|i've you've|i'll you'll|i'd you'd|am i are you|was i were you|i you|my your"
    "|mine yours|me you|myself yourself|we're you're|we've you've|we'll you'll|we'd you'd|we you|our your"
    "|ours yours|us you"
)
_YOURS: Final = {
    " ".join(said[: len(said) // 2]): " ".join(said[len(said) // 2 :])
    for said in (change.split() for change in _CHANGED.split("|"))
}
_OURS: Final = re.compile(r"\b(?:" + "|".join(sorted(_YOURS, key=len, reverse=True)) + r")\b", re.IGNORECASE)


def told_before(question: str, said: Sequence[RecalledTalk], asker: str, *, language: str) -> tuple[str, ...]:
    """Sentences with which the NPC answers from what the asker told it, the best first. None where the question is not
    for what the asker said of itself.

    Args:
        said: What is recalled for the question.
        asker: The name of who asks; empty if that is not known.
        language: The campaign's.
    """
    spoken = language_of(question) or primary_language(language)
    if not asker or spoken != primary_language(language) or asks_what_it_said(question, language=spoken):
        return ()
    if not (asks_for_memory(question, language=spoken) and speaks_of_the_asker(question, language=spoken)):
        return ()
    about = TopicWords(question, spoken) - TopicWords(_NAMING, spoken)
    asks_for_a_wish = _WISHED.search(question.casefold()) is not None
    found = [
        one.text
        for one in said
        if isinstance(one, RecalledUtterance)
        and one.speaker_name == asker
        and _tells_of(one.text, about)
        and (asks_for_a_wish or not _WISH.search(one.text.casefold()))
    ]
    return tuple(_as_answer(text, spoken) for text in found)


def _tells_of(text: str, about: TopicWords) -> bool:
    """Whether it states something of what is asked, and more than the question itself says."""
    if text.rstrip().endswith("?"):
        return False
    has = TopicWords(text, about.language)
    shared = about.n_in(has)
    return bool(shared) and shared >= min(_SHARED, len(about)) and len(has) > shared


def _as_answer(text: str, language: str) -> str:
    told = text.strip()
    if language != "en" or _TO_THE_NPC.search(told.casefold()):
        return wording(language).you_said.format(what=told)
    if _SAYS_WHO.match(told) and not told.startswith("I"):
        told = told[:1].lower() + told[1:]
    return wording(language).you_told.format(what=_OURS.sub(_yours, told))


def _yours(found: re.Match[str]) -> str:
    yours = _YOURS[found[0].casefold()]
    opens = found.string[: found.start()].rstrip().endswith((".", "!", "?"))
    return yours.capitalize() if opens else yours
