"""Score whether the people named in a text are addressed ("Grimjaw, how is my blade?") or only talked about.

A fitted model reads the words around each name, their order, and the other names. Recognisers set commas unreliably, so
punctuation is one sign among others. The weights are data, `calls.npz`, fitted to labelled talk in English and German
by `python -m benchmarks.address_fit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from glyphoxa.language.fitted import letters_of, shipped_regressions
from glyphoxa.language.language_data import lexicon

SECOND_PERSON: Final = frozenset(re.findall(r"\w+", " ".join(lexicon("calls").words("second_person"))))
PUNCTUATION: Final = frozenset(".,!?;:…")
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[.,!?;:…]")
_OWNED: Final = re.compile(r"['’]s\b")
_WITHIN: Final = 5
_NEAR: Final = 40
"""Words before and after a name that are read, so that the work is linear in the length of the text."""
_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """An occurrence of a name.

    Attributes:
        start: Position of its first character in the text; `end` is one past the last.
        is_player: Only players have the name.
        is_role: It is a word for what they are, not a name.
        is_owner: It is a possessive: "Mira's hat".
        is_nobody: Nobody at the table has it: a trade, or a place.
        is_guess: It only sounds like the name.
        is_ordinary: Its words also mean something else: "Rose".
    """

    name: str
    start: int
    end: int
    is_player: bool = False
    is_role: bool = False
    is_owner: bool = False
    is_nobody: bool = False
    is_guess: bool = False
    is_ordinary: bool = False

    @property
    def token(self) -> str:
        """The word that stands for it, by what it is."""
        kind = "x" if self.is_nobody else "p" if self.is_player else "n"
        return f"@{kind}{'r' if self.is_role else 'g' if self.is_guess else ''}"


class Token(NamedTuple):
    """A word or a punctuation mark of a text; a name has the index of its place."""

    text: str
    place: int | None = None


def tokens_of(text: str, places: Sequence[NamedPlace] = ()) -> tuple[Token, ...]:
    """Return the words and punctuation marks of a text in lower case, each name as one.

    Args:
        places: In order. Of two that overlap, the first counts.
    """
    found: list[Token] = []
    at = 0
    for number, place in enumerate(places):
        if place.start < at:
            continue
        found += (*_split(text[at : place.start]), Token(place.token, number))
        at = place.end
        if place.is_owner and not _OWNED.match(text, at):
            found.append(Token("'s"))
    return (*found, *_split(text[at:]))


def _split(text: str) -> Iterator[Token]:
    return (Token(word.lower().replace("’", "'")) for word in _TOKEN.findall(text))


def call_signs(text: str, tokens: Sequence[Token], own: int, place: NamedPlace) -> Iterator[str]:
    """Yield the signs of whether the place that the token `own` stands for is a call. Only words near it count."""
    tokens, own, number = tokens[max(0, own - _NEAR) : own + _NEAR], min(own, _NEAR), tokens[own].place
    before = tokens[own - 1].text if own else "<"
    after = tokens[own + 1].text if own + 1 < len(tokens) else ">"
    words = [token for token in tokens if token.text not in PUNCTUATION]
    at, n = words.index(tokens[own]), len(words)
    spoken = [word.text for word in words]
    edge = {0: "first", n - 1: "last", 1: "second", n - 2: "last but one"}.get(at, "within") if n > 1 else "alone"
    around = ("<<", "<", *spoken, ">", ">>")
    here, asks = at + 2, tokens[-1].text == "?"
    yield from (f"me:{place.token}", f"edge:{edge}", f"edge:{place.token}:{edge}", f"length:{min(n // 3, 5)}")
    if before in PUNCTUATION or after in PUNCTUATION:
        yield f"marks:{before if before in PUNCTUATION else ''}@{after if after in PUNCTUATION else ''}"
    yield from (f"{step}:{around[here + step]}" for step in (-2, -1, 1, 2))
    yield from (f"{place.token}{step}:{around[here + step]}" for step in (-1, 1))
    yield f"both:{around[here - 1]} {around[here + 1]}"
    yield f"next:{around[here + 1]} {around[here + 2]}"
    yield f"last:{around[here - 2]} {around[here - 1]}"
    for step in (-1, 1):
        if around[here + step].isalpha():
            yield from (f"~{step}:{part}" for part in letters_of(around[here + step]))
    yield from (f"before:{word}" for word in spoken[max(0, at - _WITHIN) : at])
    yield from (f"after:{word}" for word in spoken[at + 1 : at + 1 + _WITHIN])
    yield from (f"in:{word}" for word in spoken)
    yield from (f"in:{one} {two}" for one, two in pairwise(spoken))
    yield f"you:{any(word in SECOND_PERSON for word in spoken)}"
    yield f"you after:{any(word in SECOND_PERSON for word in spoken[at + 1 :])}:{edge}"
    yield f"you before:{any(word in SECOND_PERSON for word in spoken[:at])}:{edge}"
    yield from (f"asks:{asks}", f"asks:{asks}:{edge}", f"owner:{place.is_owner}")
    others = [word.text for word in words if word.place not in (None, number)]
    yield f"others:{len(others)}"
    yield from (f"other:{other}" for other in others)
    order = ("me" if word.place == number else word.text for word in words if word.place is not None)
    yield f"order:{','.join([*order][:_MOST_NAMES])}"
    yield f"ordinary:{place.is_ordinary}:{text[place.start : place.start + 1].isupper() and before != '<'}"
    if place.is_role:
        yield f"word:{text[place.start : place.end].lower()}"


def calls_in(text: str, places: Sequence[NamedPlace]) -> list[float]:
    """Return the log odds that each named place is a call; above 0 it rather is one.

    Args:
        places: In order. One that overlaps an earlier one is no call.
    """
    model, tokens = shipped_regressions(__package__, "calls"), tokens_of(text, places)
    found = [-10.0] * len(places)
    for own, token in enumerate(tokens):
        if token.place is not None:
            signs = call_signs(text, tokens, own, places[token.place])
            found[token.place] = float(model.log_odds(signs)[0])
    return found
