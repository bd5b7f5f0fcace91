"""Which names a recogniser is asked to expect, when it takes only so many.

Deepgram takes about 100 key terms and 500 tokens in all; one more and it refuses the request, so the list is
packed here, best first. What helps most stands in front: names of the present scene, names the recogniser
got wrong before, names said lately, and names that are not made of ordinary words.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

MAX_TERMS = 100
MAX_TOKENS = 500

_RECENT_HALF_LIFE_MS = 600_000
_GARBLES_THAT_COUNT = 4


@dataclass(frozen=True, slots=True)
class Keyterm:
    """A name that may be said.

    Attributes:
        in_scene: It belongs to something or someone that is here now.
        garbled: How often the corrector had to repair it.
        said_ms_ago: Since it was last said at this table; None when it never was.
    """

    name: str
    in_scene: bool = False
    garbled: int = 0
    said_ms_ago: int | None = None


def estimated_tokens(term: str) -> int:
    """An upper guess of a term's tokens.

    Invented names fall into pieces of two or three letters; the recogniser's own count is not published, so
    this errs towards too many.
    """
    return sum(max(1, -(-len(word) * 2 // 5)) for word in term.split())


def pack_keyterms(
    candidates: Iterable[Keyterm],
    *,
    ordinary_words: Container[str] = frozenset(),
    max_terms: int = MAX_TERMS,
    max_tokens: int = MAX_TOKENS,
    count_tokens: Callable[[str], int] = estimated_tokens,
) -> list[str]:
    """The names to send, best first, within both limits. A name that does not fit is skipped, not cut.

    Two spellings that differ only in case are one term. Ties keep the order in which candidates were given, so
    the same table yields the same list and a recogniser is not told of a change that is none.
    """
    ranked = sorted(candidates, key=lambda term: -_worth(term, ordinary_words))
    packed: list[str] = []
    seen: set[str] = set()
    tokens_left = max_tokens
    for candidate in ranked:
        name = " ".join(candidate.name.split())
        cost = count_tokens(name)
        if not name or name.casefold() in seen or cost > tokens_left:
            continue
        if len(packed) == max_terms:
            break
        packed.append(name)
        seen.add(name.casefold())
        tokens_left -= cost
    return packed


def _worth(term: Keyterm, ordinary_words: Container[str]) -> float:
    words = term.name.split()
    odd = sum(word.casefold() not in ordinary_words for word in words) / len(words) if words else 0.0
    recent = 0.5 ** (term.said_ms_ago / _RECENT_HALF_LIFE_MS) if term.said_ms_ago is not None else 0.0
    garbled = min(term.garbled, _GARBLES_THAT_COUNT) / _GARBLES_THAT_COUNT
    return 3 * term.in_scene + 2 * garbled + 2 * recent + odd
