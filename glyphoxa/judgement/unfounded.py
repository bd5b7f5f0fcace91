"""An NPC that tells what it does not know: a small model that is asked answers as if it did.

Two sentences are unfounded. One that claims to have seen, heard or been told something of which nothing in the prompt
speaks. And, where the prompt says that the NPC knows nothing of what it is asked, one that states something before the
NPC has said so. A sentence that denies, or asks back, claims nothing.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.reply import Asked, Character
from glyphoxa.judgement.wordlists import NEGATIONS, content_words, words

_WHOM: Final = r"(?:him|her|them|you|your|that|it|about|of|from|the (?:man|woman|boy|girl))\b"
_CLAIMS: Final = re.compile(
    r"\b(?:told|tells|informed|warned|asked|promised|showed|gave) me\b|\b(?:was|were|been) told\b"
    rf"|\bi (?:have |had |did |once |just |only |also )*(?:saw|seen|see|heard|met|meet) {_WHOM}"
    r"|\bi(?:'ve| have| had)? (?:once |just |only |also )*(?:spoke|spoken|talked) (?:to|with)\b"
    r"|\bi know (?:him|her|them)\b|\bi (?:do |still |well )*(?:remember|recall)\b"
    r"|\bi(?:'ve| have| had)? (?:once |just |only |also |already )*(?:promised|swore|sworn|agreed)\b"
    r"|\byou(?:'ve| have| had)? (?:once |also )?(?:told|said|mentioned|promised|gave|asked)\b"
    r"|\b(?:hat|haben) (?:\w+ ){0,2}mir\b|\b(?:hat|haben) es mir\b|\bmir (?:\w+ ){0,3}(?:erzählt|gesagt|berichtet)\b"
    r"|\b(?:erzählte|sagte|berichtete|zeigte|versprach)\w* (?:es )?mir\b"
    r"|\bich (?:habe|hab|hatte) (?:\w+ ){0,5}(?:gesehen|gehört|getroffen|gesprochen|erfahren)\b"
    r"|\bich (?:sah|hörte|traf|kenne) (?:ihn|sie|dein\w*)\b|\bich erinnere mich\b"
    r"|\bich (?:habe|hab|hatte) (?:\w+ ){0,5}(?:versprochen|geschworen|zugesagt)\b|\bich (?:versprach|schwor)\b"
    r"|\bdu (?:hast|hattest) (?:\w+ ){0,4}(?:gesagt|erzählt|versprochen|erwähnt)\b",
)
_SAYS_WORDS: Final = "told tell tells said say saw seen see heard hear met meet remember recall spoke talked"
_SAGT_WORDS: Final = (
    "promised swore sworn agreed gave geschworen zugesagt erzählt gesagt gesehen gehört getroffen erinnere gesprochen "
    "versprochen ja yes aye dear friend"
)
_OF_CLAIMS: Final = content_words(f"{_SAYS_WORDS} {_SAGT_WORDS}")
_IN_CASE: Final = frozenset(("if", "unless", "whether", "wenn", "falls", "ob"))
_UNKNOWN: Final = "unknown forgot forgotten forget doubt stranger mistaken wrong"
_UNBEKANNT: Final = "unbekannt vergessen fremd irrst neu unmöglich"
_NOT_KNOWN: Final = frozenset(f"{_UNKNOWN} {_UNBEKANNT}".split())
_KEEPS: Final = re.compile(
    r"\bmy (?:own )?secrets?\b|\b(?:nobody's|none of your|my own) business\b"
    r"|\bmeine? geheimnis\w*|\bgeht (?:nur |dich |niemanden )",
)
"""Who keeps to itself states nothing."""
_LEAST_STATED: Final = 3
"""Words. What is shorter states nothing, unless it is a yes."""
_YES: Final = re.compile(r"(?:yes|aye|yea|yeah|indeed|of course|ja|jawohl|gewiss|natürlich)\b")
_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")


def unfounded(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module."""
    if sentence.rstrip().endswith("?") or _denies(sentence):
        return None
    if _claims(sentence) and not _is_backed(sentence, asked):
        return Fault.UNFOUNDED
    if asked.not_known and _says_yes_to_more(sentence, asked):
        return Fault.UNFOUNDED
    return Fault.UNFOUNDED if asked.not_known and _states(sentence, asked) else None


def _denies(sentence: str) -> bool:
    return not (NEGATIONS | _NOT_KNOWN | _IN_CASE).isdisjoint(words(sentence))


def _claims(sentence: str) -> bool:
    return _CLAIMS.search(" ".join(sentence.casefold().replace("’", "'").split())) is not None


def _is_backed(sentence: str, asked: Asked) -> bool:
    """Whether what was said, here or earlier, has a word of it; or what is known has two, or one that is no name."""
    said = content_words(sentence) - _OF_CLAIMS
    stated = [each for each in _SENTENCE.findall(asked.question) if not each.endswith("?")]
    heard = content_words(" ".join((*asked.remembered, *stated, *(word for pair in asked.before for word in pair))))
    if not said:
        return bool(heard)
    known = content_words(" ".join((*set(asked.facts) - set(asked.not_known), *asked.identity)))
    common = said & known
    names = content_words(" ".join(re.findall(r"\b[A-ZÄÖÜ]\w+", sentence)))
    return bool(said & heard) or len(common) > 1 or bool(common - names)


def _says_yes_to_more(sentence: str, asked: Asked) -> bool:
    """Whether it says yes, and more than is known of whom the question names."""
    if not _YES.match(sentence.casefold().strip()):
        return False
    known = content_words(" ".join((*set(asked.facts) - set(asked.not_known), *asked.remembered, *asked.identity)))
    return bool(content_words(sentence) - known - _OF_CLAIMS)


def _states(sentence: str, asked: Asked) -> bool:
    """Whether it states something before the NPC has said that it knows nothing, and nothing else is in its mind."""
    has_more = asked.remembered or len(asked.facts) > len(asked.not_known)
    if has_more or asked.kept or _denies(asked.so_far):
        return False
    if _KEEPS.search(sentence.casefold().replace("’", "'")):
        return False
    spoken = words(sentence)
    return len(spoken) >= _LEAST_STATED or _YES.match(sentence.casefold().strip()) is not None
