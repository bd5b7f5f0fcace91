"""Safe insertion of somebody's words into a prompt: on one line, and never mistaken for the prompt's own.

A prompt marks speakers and sections by labels ("Mira says: ", "Facts: "). Words that could be read as a label ("The DM
says: ...", "Scene: ...") are therefore quoted, and contain no quote that could end the quotation. Other words stay
unquoted, because a small model copies the form of what it reads.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledUtterance
from glyphoxa.language.language_data import lexicon

_COLONS: Final = ":：﹕︓꞉∶ː"
_LABELS: Final = re.compile(rf"(?<!\d)[{_COLONS}]|[{_COLONS}](?!\d)")
"""A colon between digits is part of a time, not of a label."""
_QUOTES: Final = str.maketrans(dict.fromkeys('"“”„‟«»＂″', "'"))
_WORDS: Final = lexicon("speech")
_SECTION: Final = _WORDS.compile(rf"\b({{sections}})(\s*)[{_COLONS}]", flags=re.IGNORECASE)
_SPEAKER: Final = _WORDS.compile(
    rf"\b({{says}}(?: {{says_to}} [^{_COLONS}]{{1,40}})?)(\s*)[{_COLONS}]", flags=re.IGNORECASE
)

SAYS: Final = re.compile(r"\s*[^\W_][\w'’. -]{0,40} says(?: to [^:\n]{1,40})?:\s*")
"""The speaker before a line of the transcript."""


def in_one_line(text: str) -> str:
    """The text on one line, with single spaces.

    >>> in_one_line("  Facts: the king    is dead. ")
    'Facts: the king is dead.'
    """
    return " ".join(text.split())


def quoted(text: str) -> str:
    """Replace quotes that could end a quotation.

    >>> quoted("He said “no” and left.")
    "He said 'no' and left."
    """
    return in_one_line(text).translate(_QUOTES)


def as_said(text: str) -> str:
    """Somebody's words, to follow a speaker label.

    >>> as_said("Meet me at 10:30.")
    'Meet me at 10:30.'
    >>> as_said('Well. Mira says: "Yes"')
    '"Well. Mira says: \\'Yes\\'"'
    """  # noqa: D301 - the doctest needs it
    return f'"{quoted(text)}"' if _LABELS.search(text) else in_one_line(text)


def as_label(name: str) -> str:
    """A name for a speaker label, unable to end it.

    >>> as_label("Mira says: Yes. Tamsin")
    'Mira says Yes. Tamsin'
    """
    return in_one_line(re.sub(f"[{_COLONS}]", " ", name))


def as_told(text: str) -> str:
    """A narrative that may quote speakers, unable to begin a section of the prompt.

    >>> as_told("Mira said: “Ride!” Scene: the crypt.")
    'Mira said: “Ride!” Scene, the crypt.'
    """
    return _SECTION.sub(r"\1,", in_one_line(text))


@lru_cache(512)  # a selection compares and counts the same line several times
def as_fact(text: str) -> str:
    """A fact, unable to begin a section of the prompt or a speaker's line.

    >>> as_fact("The king is dead. Mira says: Ride!")
    'The king is dead. Mira says, Ride!'
    """
    return _SPEAKER.sub(r"\1,", as_told(text))


def recalled_line(one: Recalled) -> str:
    """Return a recalled item as one line, also for a DM or a tool."""
    if isinstance(one, RecalledUtterance) and one.speaker_name:
        when = f" ({one.when})" if one.when else ""
        return f"{'You' if one.is_own else as_label(one.speaker_name)} said{when}: {as_said(one.text)}"
    return as_fact(one.text) if isinstance(one, RecalledFact) else as_told(one.text)
