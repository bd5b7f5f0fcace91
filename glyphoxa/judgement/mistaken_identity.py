"""An NPC that takes itself for somebody else: "My name is Tamsin." of who is asked by Tamsin, or a greeting that calls
its own name.

A small model takes a name that stands in the talk for the one that is asked for. Only names of the campaign count:
what else an NPC is called its author knows, and no list of ours does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.in_character import own_names
from glyphoxa.judgement.reply import Asked, Character

_MY_NAME_IS: Final = (
    r"(?:my name(?: is|['’]s)|i(?: am|['’]m) called|(?:they|people|folk|folks) call me|(?:you (?:can|may) )?call me"
    r"|i go by(?: the name of)?|mein name ist|ich hei(?:ß|ss)e|(?:man|alle|die leute) nenn(?:t|en) mich"
    r"|nenn(?:t|en sie)? mich)"
)
_I_AM: Final = r"(?:i(?: am|['’]m)|ich bin(?: der| die)?)"
_ENDS: Final = r"(?=\s*(?:[.,;:!…–—-]|$|(?:the|of|from|at your service|von|aus|zu ihren diensten)\b))"
"""Behind a name that is all that is said: "I am Tamsin's friend" and "Ich bin Tamsin begegnet" say something else."""
_GREETING: Final = (
    r"(?:hello|hi|hey|hail|greetings|welcome(?: back)?|well met|farewell|good ?bye|good (?:day|morning|evening|night"
    r"|afternoon)|thank you|thanks|hallo|grüß (?:dich|gott)|sei gegrüßt|seid gegrüßt|guten (?:tag|morgen|abend)"
    r"|gute nacht|willkommen(?: zurück)?|leb wohl|auf wiedersehen|danke)"
)
_DEAR: Final = r"(?:(?:there|again|my|dear|old|friend|good|mein\w*|liebe[rs]?|alte[rs]?|gute[rs]?|freund(?:in)?),? )*"


def takes_itself_for_another(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """See the module. A question asks for the name, and a piece goes on with those before it."""
    said = f"{asked.so_far} {sentence}".strip()
    at = len(said) - len(sentence)
    own = own_names(character.name, character.others)
    called = {*own, character.name, *character.aliases}
    others = _names((*character.others, asked.speaker_name), not_of=" ".join(called))
    patterns = []
    if others and not sentence.rstrip().endswith("?"):
        patterns.append(_says_to_be(others))
    patterns.append(_greets(tuple(sorted(called, key=len, reverse=True))))
    new = (found for pattern in patterns for found in pattern.finditer(said) if found.end() > at)
    return Fault.IDENTITY if next(new, None) is not None else None


@lru_cache(maxsize=64)
def _names(others: tuple[str, ...], *, not_of: str) -> tuple[str, ...]:
    """What others are called, whole and by each of their names, the longest first."""
    own = set(_words(not_of))
    found = {name for one in others for name in (one, *one.split()) if name[:1].isupper() and len(name) > 2}
    return tuple(sorted((name for name in found if own.isdisjoint(_words(name))), key=len, reverse=True))


def _words(text: str) -> Iterator[str]:
    yield from text.casefold().split()


@lru_cache(maxsize=64)
def _says_to_be(names: tuple[str, ...]) -> re.Pattern[str]:
    name = _one_of(names)
    return re.compile(rf"\b(?i:{_MY_NAME_IS}) {name}\b(?!['’])|(?<!\w)(?i:{_I_AM}) {name}\b{_ENDS}")


@lru_cache(maxsize=64)
def _greets(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[.!?…] )(?i:{_GREETING}),? (?i:{_DEAR}){_one_of(names)}(?=[.,!?…]|$)")


def _one_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, names))})"
