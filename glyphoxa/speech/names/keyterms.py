"""Which names a recogniser is asked to expect, when it takes only so many.

Deepgram takes about 100 key terms and 500 tokens in all; one more and it refuses the request. So what a name is worth
is estimated here, and the list is packed, best first. Who keeps track of all that is `expectation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from glyphoxa.speech.language.vocabulary import Vocabulary

MAX_TERMS = 100
MAX_TOKENS = 500

_RECENT_HALF_LIFE_MS = 600_000
_GARBLES_THAT_COUNT = 4
_MISFITS_IN_A_ROW = 20
_OF_A_KNOWN_NAME = 0.4
_PARTING = re.compile(r"[^a-zA-Z0-9]")


def estimated_tokens(term: str) -> int:
    """An upper guess of a term's tokens.

    Invented names fall into pieces of two or three letters, an apostrophe or a hyphen is a piece of its own and parts
    what is around it, letters beyond ASCII may take a piece for each byte. Deepgram's own count is not published.
    """
    return sum(map(_tokens_of_word, term.split()))


def oddness(words: Sequence[str], vocabulary: Vocabulary) -> float:
    """How little of a name a recogniser knows already: 0 for dictionary words only, 1 for invented ones.

    Args:
        words: Folded (see `glyphoxa.speech.language.words.fold`).
    """
    if not words:
        return 0.0
    return sum(_oddness(word, vocabulary) for word in words) / len(words)


def worth(*, odd: float, in_scene: bool = False, garbled: int = 0, said_ms_ago: int | None = None) -> float:
    """What it is worth to have a recogniser expect a name: above all names of the present scene and such as it got
    wrong before, then those said lately, then those that are not made of ordinary words.

    Args:
        odd: See `oddness`.
        garbled: How often it was heard wrong.
        said_ms_ago: Since it was last said at this table; None when it never was.
    """
    recent = 0.5 ** (max(0, said_ms_ago) / _RECENT_HALF_LIFE_MS) if said_ms_ago is not None else 0.0
    often = min(garbled, _GARBLES_THAT_COUNT) / _GARBLES_THAT_COUNT
    # "Hope", said a moment ago, is heard right without help.
    return 3 * in_scene + 2 * often + 2 * recent * odd + odd


def pack(
    names: Iterable[str],
    *,
    max_terms: int = MAX_TERMS,
    max_tokens: int = MAX_TOKENS,
    count_tokens: Callable[[str], int] = estimated_tokens,
) -> tuple[str, ...]:
    """The first names that fit, each whole: one that does not fit is skipped, and when many in a row do not, the rest
    is not looked at. Two spellings that differ only in case or spaces are one.
    """
    packed: list[str] = []
    seen: set[str] = set()
    tokens_left, misfits = max_tokens, 0
    for given in names:
        if len(packed) == max_terms or tokens_left <= 0 or misfits == _MISFITS_IN_A_ROW:
            break
        name = " ".join(given.split())
        if not name or name.casefold() in seen:
            continue
        cost = count_tokens(name)
        if cost > tokens_left:
            misfits += 1
            continue
        misfits = 0
        packed.append(name)
        seen.add(name.casefold())
        tokens_left -= cost
    return tuple(packed)


@lru_cache(4096)
def _tokens_of_word(word: str) -> int:
    parting = sum(len(letter.encode("utf-8", "replace")) for letter in _PARTING.findall(word))
    return max(1, parting + sum(-(-len(piece) * 2 // 5) for piece in _PARTING.split(word)))


def _oddness(word: str, vocabulary: Vocabulary) -> float:
    if len(word) < 2 or vocabulary.is_ordinary(word):
        return 0.0
    return _OF_A_KNOWN_NAME if vocabulary.is_proper(word) else 1.0
