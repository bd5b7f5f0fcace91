"""Somebody's words as they stand in a prompt: in one line, and never taken for the prompt's own.

A prompt says who speaks and what is so by lines that begin with a label ("Mira says: ", "Facts: "). Words in which a
label could be read ("The DM says: ...", "Scene: ...") therefore stand in quotes, and hold no quote of their own that
could end them. Other words stand as they are: a small model copies the form of what it reads.
"""

from __future__ import annotations

import re
from typing import Final

from glyphoxa.language.lexicon import lexicon

_COLONS: Final = ":：﹕︓꞉∶ː"
_LABELS: Final = re.compile(rf"(?<!\d)[{_COLONS}]|[{_COLONS}](?!\d)")
"""A colon between digits tells the time, and no more."""
_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„‟«»＂″', "'"))
_WORDS: Final = lexicon("speech")
_SECTION: Final = _WORDS.compile(rf"\b({{sections}})(\s*)[{_COLONS}]", flags=re.IGNORECASE)
_SPEAKER: Final = _WORDS.compile(
    rf"\b({{says}}(?: {{says_to}} [^{_COLONS}]{{1,40}})?)(\s*)[{_COLONS}]", flags=re.IGNORECASE
)


def in_one_line(text: str) -> str:
    """The same words, with single spaces.

    >>> in_one_line("  Facts: the king    is dead. ")
    'Facts: the king is dead.'
    """
    return " ".join(text.split())


def quoted(text: str) -> str:
    """Words to stand in quotes: none of theirs ends them.

    >>> quoted("He said “no” and left.")
    "He said 'no' and left."
    """
    return in_one_line(text).translate(_QUOTES)


def as_said(text: str) -> str:
    """Words behind who said them.

    >>> as_said("Meet me at 10:30.")
    'Meet me at 10:30.'
    >>> as_said('Well. Mira says: "Yes"')
    '"Well. Mira says: \\'Yes\\'"'
    """  # noqa: D301 - the doctest needs it
    return f'"{quoted(text)}"' if _LABELS.search(text) else in_one_line(text)


def as_label(name: str) -> str:
    """A name in front of what somebody says: it ends no label.

    >>> as_label("Mira says: Yes. Tamsin")
    'Mira says Yes. Tamsin'
    """
    return in_one_line(re.sub(f"[{_COLONS}]", " ", name))


def as_told(text: str) -> str:
    """What happened, with who said what in it: it begins no section of the prompt.

    >>> as_told("Mira said: “Ride!” Scene: the crypt.")
    'Mira said: “Ride!” Scene, the crypt.'
    """
    return _SECTION.sub(r"\1,", in_one_line(text))


def as_fact(text: str) -> str:
    """What is so: it begins no section of the prompt, and nobody speaks in it.

    >>> as_fact("The king is dead. Mira says: Ride!")
    'The king is dead. Mira says, Ride!'
    """
    return _SPEAKER.sub(r"\1,", as_told(text))
