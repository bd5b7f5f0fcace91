"""Whether a speaker sounds as if more were to come."""

from __future__ import annotations

_NEVER_LAST = {
    "en": frozenset({"a", "an", "and", "because", "but", "if", "my", "or", "our", "the", "their", "your"}),
    "de": frozenset({"aber", "das", "dem", "den", "der", "die", "ein", "eine", "oder", "und", "weil", "wenn"}),
}
"""Words that end no sentence, so a full stop behind one is the recogniser's and not the speaker's."""

_SELDOM_LAST = {
    "en": frozenset({"about", "for", "from", "i", "in", "of", "so", "that", "then", "to", "um", "uh", "we", "with"}),
    "de": frozenset({"also", "auf", "dann", "für", "ich", "mit", "nach", "von", "wir", "zu", "äh"}),
}
"""Words behind which a turn ends seldom, unless the recogniser heard the end of a sentence."""

_OPENERS = {
    "en": frozenset(
        {"ah", "evening", "excuse", "good", "greetings", "hello", "hey", "hi", "listen", "oh", "wait", "well"}
    ),
    "de": frozenset({"ach", "guten", "hallo", "halt", "he", "hey", "hör", "servus", "verzeihung", "warte"}),
}
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
    """
    ending = text.rstrip(" \"'”’»")
    if ending.endswith(("?", "!")):
        return False
    if ending.endswith(("...", "…", ",", ";", ":", "-", "–", "—")):
        return True
    last = ending.rstrip(".").rpartition(" ")[2].lower()
    code = language.split("-")[0].lower()
    if _only_opens(ending, code):
        return True
    if last in _NEVER_LAST.get(code, ()):
        return True
    if ending.endswith("."):
        return False
    return punctuated or last in _SELDOM_LAST.get(code, ())


def _only_opens(text: str, code: str) -> bool:
    """Whether this is a greeting or a call and no more: what it is about comes after a breath."""
    spoken = [word.strip(".,") for word in text.lower().split()]
    return len(spoken) <= _OPENING_WORDS and spoken[:1] != [] and spoken[0] in _OPENERS.get(code, ())
