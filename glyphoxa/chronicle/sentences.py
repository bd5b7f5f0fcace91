"""The sentences of an utterance, with who is named in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

_SENTENCE: Final = re.compile(r"[^.!?;…\n]+(?:\.(?=\S)[^.!?;…\n]*)*[.!?;…]*[\"”'’)]*")
_FIRST_SIGN: Final = 0xE100
NAMED: Final = "[\ue100-\uf8ff]"
"""A pattern of one name in `MarkedSentence.marked`."""
_SPOKEN_ASIDE: Final = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_OPEN: Final = re.compile(
    r"\b(?:if|unless|whether|maybe|perhaps|might|could|would|should|may|wonder|suppose|imagine|what if|pretend"
    r"|hopefully|probably|wish|as if|like a|not sure|don't think|doubt"
    r"|wenn|falls|ob|vielleicht|könnte\w*|würde\w*|sollte\w*|möglicherweise|angenommen|wäre\w*|hätte\w*"
    r"|glaube nicht)\b",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:not|never|no|nobody|no one|nothing|isn't|wasn't|aren't|weren't|don't|doesn't|didn't|won't|can't|cannot"
    r"|haven't|hasn't|ain't|nicht|nie|niemals|kein\w*|niemand|nichts)\b",
    re.IGNORECASE,
)

_CLAUSE_END: Final = re.compile(r"[,;:—–]| (?:but|aber|sondern|though) ")
_PRONOUN: Final = re.compile(
    r"(?:He|She|Er|Sie(?= (?:ist|war|hat|wohnt|arbeitet|lebt|kommt|stammt|kennt|hasst|besitzt)\b))(?=[ '])"
)


@dataclass(frozen=True, slots=True)
class NameSpan:
    """A name in an utterance: who is meant, and from which character to which."""

    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """
    Attributes:
        text: As it was said.
        marked: The same with one sign for each name; `key_of` says whose.
        is_question: It asks. `is_open`: it says what may be. `is_denied`: it says what is not.
    """

    text: str
    marked: str
    keys: tuple[str, ...]
    is_question: bool
    is_open: bool
    is_denied: bool

    def key_of(self, sign: str) -> str:
        return self.keys[ord(sign) - _FIRST_SIGN]

    @property
    def may_tell(self) -> bool:
        """It says how something is, or is not."""
        return not (self.is_question or self.is_open)

    def denies(self, start: int, end: int) -> bool:
        """Whether the clause around a part of `marked` says what is not."""
        begins = max((match.end() for match in _CLAUSE_END.finditer(self.marked, 0, start)), default=0)
        ends = _CLAUSE_END.search(self.marked, end)
        return _DENIED.search(self.marked, begins, len(self.marked) if ends is None else ends.start()) is not None

    def after(self, person: str) -> MarkedSentence:
        """The same with its first pronoun put for who was just spoken of."""
        pronoun = _PRONOUN.match(self.marked)
        if pronoun is None:
            return self
        sign = chr(_FIRST_SIGN + len(self.keys))
        return replace(self, marked=sign + self.marked[pronoun.end() :], keys=(*self.keys, person))


def sentences_of(text: str, names: Sequence[NameSpan]) -> Iterator[MarkedSentence]:
    """
    Args:
        names: In the order in which they stand there, apart from each other.
    """
    # What a writer puts into brackets is a sound, or an aside.
    text = _SPOKEN_ASIDE.sub(lambda match: " " * len(match.group()), text)
    for match in _SENTENCE.finditer(text):
        said = match.group().strip()
        if not said:
            continue
        start, end = match.span()
        here = [name for name in names if start <= name.start and name.end <= end]
        marked = _marked(text, start, end, here)
        yield MarkedSentence(
            said,
            marked,
            tuple(name.key for name in here),
            is_question="?" in said[-3:],
            is_open=_OPEN.search(marked) is not None,
            is_denied=_DENIED.search(marked) is not None,
        )


def _marked(text: str, start: int, end: int, names: Sequence[NameSpan]) -> str:
    pieces: list[str] = []
    at = start
    for n, name in enumerate(names):
        owned = "'s" if text[name.start : name.end].endswith(("'s", "’s")) else ""
        pieces += [text[at : name.start], chr(_FIRST_SIGN + n), owned]
        at = name.end
    return " ".join("".join((*pieces, text[at:end])).replace("’", "'").split())


# How patterns of the rules are put together from lists of words.


SPEAKER: Final = "I"
"""In place of a key: whoever says it."""


def either(*lists: str) -> str:
    """A pattern of any of the words; `_` stands for a space, `*` behind a word for any ending."""
    alternatives = sorted({each for words in lists for each in words.split()}, key=lambda each: (-len(each), each))
    return "(?:" + "|".join(each.replace("_", " ").replace("*", r"\w*") for each in alternatives) + ")"


def word_set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


SUBJECT: Final = rf"(?P<s>{NAMED}|\bI\b|\bich\b)"
OBJECT: Final = rf"(?P<o>{NAMED})"
IS: Final = r"(?: is| was| are| were|'s|'m| am|'re| ist| war| sind| waren| bin)"
A: Final = (
    either("the a an our my his her their your that this der die das dem den ein eine einem unser unsere") + "? ?"
)
FEW: Final = r"(?:[\w'-]+ ){0,3}?"
"""Up to three words that do not matter."""


def key_of(sentence: MarkedSentence, sign: str) -> str:
    """Whose a sign of `MarkedSentence.marked` is; the speaker's for a word such as "I" or "my"."""
    return sentence.key_of(sign) if re.fullmatch(NAMED, sign) else SPEAKER
