"""Who is named in a question: whole words, and one typo where a name is long enough to bear it.

What a thing may be called is the gazetteer's word on it (`glyphoxa.speech.names.naming`): names, aliases, usual short
forms, none of them case, accents or spaces. Two things are otherwise than for the ear. A spelling may belong to
several, and whoever asks decides which of them count, before anything else is looked at: a name that he may not know
hides no other and corrects no typo. And no sound is compared: the ear has put names right before.

One typo is forgiven in one word of a name (`glyphoxa.recall.entities.typos`), not in a word that is right as it
is: an ordinary word is no typo, unless it is written as a name.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from glyphoxa.domain.ids import EntityId
from glyphoxa.recall.entities.typos import Typos, may_bear_a_typo
from glyphoxa.speech.language.vocabulary import Vocabulary, vocabulary_of
from glyphoxa.speech.language.words import Word, words
from glyphoxa.speech.names.gazetteer import is_written_as_a_name
from glyphoxa.speech.names.naming import Entry, Name, Speech, names_of

_SHORTEST_PLURAL: Final = 4
_REACH: Final = 8
"""Words between the beginning of a name and a typo in it."""
_ARTICLES: Final = ("the ", "a ", "an ", "der ", "die ", "das ")

IsWanted = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a text, and one who bears it.

    Attributes:
        name: As whoever bears it writes it.
        heard: As it stands in the text.
        first: Index of its first word.
        last: Index of its last word, inclusive.
        is_typo: It is spelled otherwise.
    """

    bearer: str
    name: str
    heard: str
    first: int
    last: int
    is_typo: bool = False

    def is_inside(self, other: NameMention) -> bool:
        return other.first <= self.first and self.last <= other.last and not self.is_as_long_as(other)

    def is_as_long_as(self, other: NameMention) -> bool:
        return (self.first, self.last) == (other.first, other.last)


class NamesInText:
    """The names to look for. Changes and look-ups come from one thread; a change costs as much as its names.

    Args:
        language: Of the campaign; what is an ordinary word, and what may be left out of a name, depends on it.
    """

    def __init__(self, language: str = "en") -> None:
        self._speech = Speech(vocabulary_of(language), None, _unheard)
        self._names: dict[str, tuple[Name, ...]] = {}
        self._bearers: dict[str, dict[str, Name]] = {}
        self._spellings: list[str] = []
        self._typos = Typos()

    def put(self, bearer: str, names: Sequence[str], kind: str = "") -> None:
        """Know somebody by these names, the own one first, and by no others.

        Args:
            kind: Of an entity: persons and places have short forms.
        """
        self.remove(bearer)
        if not names:
            return
        bare = (_without_article(name) for name in names)
        entry = Entry(names[0], EntityId(bearer), kind, (*names[1:], *(name for name in bare if name)))
        self._names[bearer] = names_of(entry, 0, self._speech)
        for name in self._names[bearer]:
            if name.joined not in self._bearers:
                insort(self._spellings, name.joined)
            self._bearers.setdefault(name.joined, {})[bearer] = name
            self._typos.add(_parts(name))

    def remove(self, bearer: str) -> None:
        for name in self._names.pop(bearer, ()):
            self._typos.remove(_parts(name))
            bearers = self._bearers[name.joined]
            del bearers[bearer]
            if not bearers:
                del self._bearers[name.joined]
                del self._spellings[bisect_left(self._spellings, name.joined)]

    def calls(self, text: str, is_wanted: IsWanted) -> list[NameMention]:
        """The names in a text, by where they stand, longer ones first, then by who bears them; also names within names.

        Args:
            is_wanted: Of whom names count. Others' change nothing.
        """
        spoken = _with_tight_joins(words(text), text)
        found: dict[tuple[str, int, int], NameMention] = {}
        named: set[int] = set()
        for first in range(len(spoken)):
            for last, names in self._spelled_from(spoken, first, is_wanted):
                named.update(range(first, last + 1))
                for call in _calls_of(names, _heard(spoken, text, first, last), first, last, is_typo=False):
                    found[call.bearer, first, last] = call
        is_shouted = text.isupper()
        for at, word in enumerate(spoken):
            if at not in named and self._may_be_a_typo(word, is_shouted=is_shouted):
                for meant in self._meant_by(word):
                    for call in self._calls_over(spoken, text, at, meant, is_wanted):
                        found.setdefault((call.bearer, call.first, call.last), call)
        return sorted(found.values(), key=lambda call: (call.first, -call.last, call.bearer))

    def _calls_over(
        self, spoken: Sequence[Word], text: str, at: int, meant: str, is_wanted: IsWanted
    ) -> Iterator[NameMention]:
        """The names over one place if another word stood there."""
        begin = max(0, at - _REACH)
        put_right = spoken[at]._replace(folded=meant, full=meant, tail="")
        window = [*spoken[begin:at], put_right, *spoken[at + 1 : at + 1 + _REACH]]
        for first in range(at - begin + 1):
            for last, names in self._spelled_from(window, first, is_wanted):
                if begin + last >= at:
                    heard = _heard(spoken, text, begin + first, begin + last)
                    yield from _calls_of(names, heard, begin + first, begin + last, is_typo=True)

    def _spelled_from(
        self, spoken: Sequence[Word], first: int, is_wanted: IsWanted
    ) -> Iterator[tuple[int, list[Name]]]:
        """Whose names begin with this word, each with the index of their last word; shorter ones first."""
        stem = ""
        for last in range(first, len(spoken)):
            word = spoken[last]
            if last > first and not word.joins:
                return
            for spelling in _spellings(stem, word, self._speech.vocabulary):
                names = self._wanted(spelling, spoken, first, last, is_wanted)
                if names:
                    yield last, names
                    break
            stem += word.full
            following = bisect_left(self._spellings, stem)
            if following == len(self._spellings) or not self._spellings[following].startswith(stem):
                return

    def _wanted(self, spelling: str, spoken: Sequence[Word], first: int, last: int, is_wanted: IsWanted) -> list[Name]:
        bearers = self._bearers.get(spelling)
        if bearers is None:
            return []
        names = [name for bearer, name in bearers.items() if is_wanted(bearer)]
        if any(name.is_faint for name in names) and not is_written_as_a_name(spoken, first, last):
            return []
        # "Marek" is who has that name, not everybody of whom it is a part.
        return [name for name in names if name.kind != "short"] or names

    def _may_be_a_typo(self, word: Word, *, is_shouted: bool) -> bool:
        if not may_bear_a_typo(word.folded):
            return False
        is_written_as_name = word.is_capital and not word.opens and not is_shouted
        return is_written_as_name or not self._speech.vocabulary.is_ordinary(word.full)

    def _meant_by(self, word: Word) -> list[str]:
        """Also as a part of a name that has the possessive in it ("Marek's wife")."""
        return sorted({*self._typos.meant_by(word.folded), *(self._typos.meant_by(word.full) if word.tail else ())})


def _parts(name: Name) -> set[str]:
    """Its words, also all of them written as one."""
    return {*name.words, name.joined}


def _spellings(stem: str, last: Word, vocabulary: Vocabulary) -> Iterator[str]:
    """How a name may be spelled that ends with this word, also in the possessive, the plural or the singular."""
    if last.tail:
        yield stem + last.full
    bare = stem + last.folded
    yield bare
    if bare.endswith("s") and len(bare) > _SHORTEST_PLURAL:
        yield bare[:-1]
    # One of the "failed messages" is a failed message; Mara is none of the "Maras".
    elif len(bare) >= _SHORTEST_PLURAL and vocabulary.is_ordinary(last.folded):
        yield bare + "s"


def _heard(spoken: Sequence[Word], text: str, first: int, last: int) -> str:
    return text[spoken[first].start : spoken[last].end]


def _calls_of(names: Sequence[Name], heard: str, first: int, last: int, *, is_typo: bool) -> Iterator[NameMention]:
    for name in names:
        yield NameMention(name.entity_id, name.text, heard, first, last, is_typo)


def _with_tight_joins(spoken: Sequence[Word], text: str) -> list[Word]:
    """What is written without a space is one name as well as two words: "try/catch", "Fly.io"."""
    joined = list(spoken)
    for at, (before, word) in enumerate(pairwise(spoken), start=1):
        if not word.joins and word.start - before.end == 1 and not text[before.end].isspace():
            joined[at] = word._replace(joins=True)
    return joined


def _without_article(name: str) -> str:
    """From "The Rusty Tankard" to "Rusty Tankard"; nothing when a single word is left: "the Tower" is any tower."""
    article = next((article for article in _ARTICLES if name.casefold().startswith(article)), "")
    rest = name[len(article) :].strip()
    return rest if article and len(words(rest)) > 1 else ""


def _unheard(_: str) -> str:
    return ""
