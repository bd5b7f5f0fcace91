"""Whether a speaker sounds as if more were to come."""

from __future__ import annotations

import re

_NEVER_LAST = {
    "en": frozenset({"a", "an", "and", "because", "but", "if", "my", "or", "our", "the", "their", "your"}),
    "de": frozenset({"aber", "das", "dem", "den", "der", "die", "ein", "eine", "oder", "und", "weil", "wenn"}),
}
"""Words that end no sentence, so a full stop behind one is the recogniser's and not the speaker's."""

_SELDOM_LAST = {
    "en": frozenset({"about", "for", "from", "i", "in", "of", "so", "that", "then", "to", "we", "with"}),
    "de": frozenset({"also", "auf", "dann", "für", "ich", "mit", "nach", "von", "wir", "zu"}),
}
"""Words behind which a turn ends seldom, unless the recogniser heard the end of a sentence."""

_OPENERS = {
    "en": frozenset(
        {"ah", "evening", "excuse", "good", "greetings", "hello", "hey", "hi", "listen", "oh", "wait", "well"}
    ),
    "de": frozenset({"ach", "guten", "hallo", "halt", "he", "hey", "hör", "servus", "verzeihung", "warte"}),
}
_HESITATIONS = {
    "en": frozenset({"er", "erm", "hm", "hmm", "uh", "uhm", "um"}),
    "de": frozenset({"äh", "ähm", "hm", "hmm", "öh", "tja"}),
}
"""Sounds of who looks for a word."""

_SUBORDINATES = {
    "en": frozenset({"after", "although", "because", "before", "if", "since", "unless", "until", "whenever", "while"}),
    "de": frozenset({"als", "bevor", "bis", "falls", "nachdem", "obwohl", "sobald", "weil", "wenn", "während"}),
}
"""A sentence that begins so has another clause behind a comma."""

_HALF_WORDS = 7
"""A longer one has its other clause without a comma."""

_SPELLED = re.compile(r"(?:\b[A-ZÄÖÜ][\s,.-]+)+[A-ZÄÖÜ]$")
"""Letters by themselves, as recognisers write them: "K-O-R", "K, O, R"."""

_OPENING_WORDS = 4
"""A greeting with a name of two words."""


def sounds_unfinished(text: str, *, language: str = "en", punctuated: bool = True) -> bool:
    """Whether more is to come, going by how the words end.

    >>> sounds_unfinished("How is my blade?")
    False
    >>> sounds_unfinished("Good evening, Grimjaw.")
    True
    >>> sounds_unfinished("I would like the")
    True
    >>> sounds_unfinished("I have a question, and.")
    True
    >>> sounds_unfinished("If you help us.")
    True
    >>> sounds_unfinished("His name is spelled K-O-R.")
    True
    """
    ending = text.rstrip(" \"'”’»")
    if ending.endswith(("?", "!")):
        return False
    if ending.endswith(("...", "…", ",", ";", ":", "-", "–", "—")):
        return True
    words = ending.rstrip(".")
    last = words.rpartition(" ")[2].lower()
    code = language.split("-")[0].lower()
    if _only_opens(ending, code) or _SPELLED.search(words):
        return True
    if last in _NEVER_LAST.get(code, ()) or last in _HESITATIONS.get(code, ()):
        return True
    if _is_half(words, code):
        return True
    if ending.endswith("."):
        return False
    return punctuated or last in _SELDOM_LAST.get(code, ())


def _only_opens(text: str, code: str) -> bool:
    """Whether this is a greeting or a call and no more: what it is about comes after a breath."""
    spoken = [word.strip(".,") for word in text.lower().split()]
    return len(spoken) <= _OPENING_WORDS and spoken[:1] != [] and spoken[0] in _OPENERS.get(code, ())


def _is_half(text: str, code: str) -> bool:
    """Whether its last sentence is a clause that needs another."""
    sentence = re.split(r"[.?!]\s+", text)[-1]
    first = sentence.partition(" ")[0].lower()
    is_short = sentence.count(" ") < _HALF_WORDS
    return first in _SUBORDINATES.get(code, ()) and "," not in sentence and is_short
