"""Find exactly what a question names, no more and no less.

Similarity always finds something, and so returns what nobody asked for. Names do not. A question calls for

    whatever it names, in whole words, with one typo forgiven   (`NamesInText`)
    and, for a relation or an event, whoever takes part in it

as far as the viewer may see it and it still holds. What was superseded or resolved, what the viewer may not know, and
what is not valid at that time is removed before names are matched, so it hides nothing and hints at nothing. A name
inside a longer one ("Tankard" in "Rusty Tankard") does not match, unless a relation connects the two ("Marek" in
"Marek's wife"). A question without a name calls for nothing, however long it is.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, TypeAlias

from rapidfuzz.distance import OSA

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import ALWAYS, Validity
from glyphoxa.language.vocabulary import Vocabulary, vocabulary_of
from glyphoxa.language.words import Word, words
from glyphoxa.names.gazetteer import is_written_as_a_name
from glyphoxa.names.naming import ARTICLES, Entry, Name, Speech, names_of

# -- typos
#
# Which word a misspelt one means, where one typo is forgiven.
#
# A typo is one letter too many, too few or different, or two letters in the wrong order (F. Damerau, "A technique for
# computer detection and correction of spelling errors", 1964), after the first two letters. In a short word one letter
# makes another name: there, only a letter that is doubled or should be is forgiven. Numbers must match exactly.
#
# A look-up compares words with one letter removed, because two words that are one typo apart have such a form in common
# (W. Garbe, symmetric deletion, SymSpell, 2012).

SHORTEST_FORGIVEN: Final = 5
"""Letters of a word, as written and as correct, in which any typo is forgiven: "Mara" is not "Marta"."""
SHORTEST_DOUBLED: Final = 4
"""The same for a letter that is doubled or should be: "eror"."""
LONGEST_FORGIVEN: Final = 32
"""Longer than any word of a name. The cost of a look-up grows with the square of the letters."""
SURE_LETTERS: Final = 2
"""The first letters of a word must be right: "mango" is not "Mongo"."""


class Typos:
    """An index of words by their misspellings. Each word counts as often as it was added."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        # Tuples: nearly all have one member, and a set takes four times as much memory.
        self._by_rest: dict[str, tuple[str, ...]] = {}

    def add(self, words: Iterable[str]) -> None:
        for word in filter(may_bear_a_typo, words):
            self._uses[word] = self._uses.get(word, 0) + 1
            if self._uses[word] == 1:
                for rest in _rests(word):
                    self._by_rest[rest] = (*self._by_rest.get(rest, ()), word)

    def remove(self, words: Iterable[str]) -> None:
        for word in filter(may_bear_a_typo, words):
            self._uses[word] -= 1
            if not self._uses[word]:
                del self._uses[word]
                for rest in _rests(word):
                    others = tuple(each for each in self._by_rest.pop(rest) if each != word)
                    if others:
                        self._by_rest[rest] = others

    def meant_by(self, written: str) -> list[str]:
        """Return the words one typo away, in alphabetical order."""
        near = {word for rest in _rests(written) for word in self._by_rest.get(rest, ())}
        return sorted(word for word in near if _is_one_typo(written, word))


def may_bear_a_typo(word: str) -> bool:
    """Return whether a word is long enough, and not a number."""
    if not SHORTEST_DOUBLED <= len(word) <= LONGEST_FORGIVEN:
        return False
    return word.isalpha() or not any(char.isdigit() for char in word)


def _is_one_typo(written: str, meant: str) -> bool:
    if OSA.distance(written, meant, score_cutoff=1) != 1:
        return False
    if min(len(written), len(meant)) >= SHORTEST_FORGIVEN:
        return True
    return len(written) != len(meant) and _undoubled(written) == _undoubled(meant)


def _undoubled(word: str) -> str:
    return "".join(char for char, _ in groupby(word))


def _rests(word: str) -> set[str]:
    """Return the word, and the word without one letter that is not among the first ones."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(SURE_LETTERS, len(word)))}


# -- names
#
# Names in a question: whole words, with one typo if the name is long enough.
#
# The gazetteer decides what a thing may be called (`glyphoxa.names.naming`): names, aliases and usual short forms,
# ignoring case, accents and spaces. Two rules differ from those of transcripts. A spelling may belong to several
# bearers, and the caller first decides which of them count: a name that the viewer may not know hides no other and
# corrects no typo. Sounds are not compared, because transcripts are corrected before.
#
# One typo is forgiven in one word of a name (`Typos`). An ordinary word is not a typo, unless it is written as a name.

_SHORTEST_PLURAL: Final = 4
_REACH: Final = 8
"""Words between the start of a name and a typo in it."""

IsWanted = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a text, and one of its bearers.

    Attributes:
        name: Spelling of its bearer.
        heard: Spelling in the text.
        first: Index of its first word.
        last: Index of its last word, inclusive.
        is_typo: The text spells it differently.
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
    """The names to look for. One thread makes changes and look-ups; a change costs as much as its names.

    Args:
        language: The campaign's language. It decides which words are ordinary and which may be omitted from a name.
    """

    def __init__(self, language: str = "en") -> None:
        self._speech = Speech(vocabulary_of(language), None, _unheard)
        self._names: dict[str, tuple[Name, ...]] = {}
        self._bearers: dict[str, dict[str, Name]] = {}
        self._spellings: list[str] = []
        self._typos = Typos()

    def put(self, bearer: str, names: Sequence[str], kind: str = "") -> None:
        """Set all names of a bearer, the own one first.

        Args:
            kind: The type of an entity: persons and places have short forms.
        """
        self.remove(bearer)
        if not names:
            return
        bare = (_without_article(name) for name in names)
        entry = Entry(names[0], EntityId(bearer), kind, (*names[1:], *(name for name in bare if name)))
        self._names[bearer] = names_of(entry, self._speech)
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
        """Return the names in a text by position, longer ones first, then by bearer; also names within names.

        Args:
            is_wanted: Selects bearers. Names of others change nothing.
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
        """Return the names over one place if another word were there."""
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
        """Return the bearers whose names start with this word, each with the index of the last word; shorter ones
        first.
        """
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
        # "Marek" is the bearer of that name, not everybody whose name contains it.
        return [name for name in names if name.kind != "short"] or names

    def _may_be_a_typo(self, word: Word, *, is_shouted: bool) -> bool:
        if not may_bear_a_typo(word.folded):
            return False
        is_written_as_name = word.is_capital and not word.opens and not is_shouted
        return is_written_as_name or not self._speech.vocabulary.is_ordinary(word.full)

    def _meant_by(self, word: Word) -> list[str]:
        """Also matches a part of a name with the possessive in it ("Marek's wife")."""
        return sorted({*self._typos.meant_by(word.folded), *(self._typos.meant_by(word.full) if word.tail else ())})


def _parts(name: Name) -> set[str]:
    """Return the words of a name, also all of them written as one."""
    return {*name.words, name.joined}


def _spellings(stem: str, last: Word, vocabulary: Vocabulary) -> Iterator[str]:
    """Return the spellings of a name that ends with this word, also in the possessive, the plural or the singular."""
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
    """Words written without a space are both one name and two words: "try/catch", "Fly.io"."""
    joined = list(spoken)
    for at, (before, word) in enumerate(pairwise(spoken), start=1):
        if not word.joins and word.start - before.end == 1 and not text[before.end].isspace():
            joined[at] = word._replace(joins=True)
    return joined


def _without_article(name: str) -> str:
    """Return "Rusty Tankard" for "The Rusty Tankard"; nothing if a single word is left: "the Tower" is any tower."""
    parts = words(name)
    return name[parts[1].start :] if len(parts) > 2 and parts[0].folded in ARTICLES else ""


def _unheard(_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Named:
    """Something that can be asked for by name: an entity, a relation, a fact, a belief.

    Attributes:
        names: Its own name first, then its aliases; none for items that only accompany others.
        kind: The type of an entity: persons and places have short forms.
        participants: Ids of both ends of a relation.
        part_of: The participant of a relation that brings the others along: for participants of a battle, the battle.
        has_ended: It was superseded or resolved, and is never returned.
    """

    id: str
    names: tuple[str, ...] = ()
    kind: str = ""
    participants: tuple[str, ...] = ()
    part_of: str = ""
    has_ended: bool = False
    validity: Validity = ALWAYS

    def holds_at(self, at_ms: int | None) -> bool:
        """Return whether it holds at a time; None means now."""
        start, end = self.validity.from_ms, self.validity.to_ms
        if self.has_ended or (at_ms is None and end is not None):
            return False
        return at_ms is None or ((start is None or start <= at_ms) and (end is None or at_ms < end))


@dataclass(frozen=True, slots=True)
class CalledFor:
    """An item that a question calls for, and why.

    Attributes:
        why: "named 'k8s'", "'Reedis' is one letter from 'Redis'", "takes part in 'auth'".
        is_named: The question itself names it.
    """

    item: Named
    why: str
    is_named: bool = True


MaySee: TypeAlias = Callable[[Named], bool]


def everything(_: Named) -> bool:
    """Accept every item: for viewers who see everything, or where scopes were applied before."""
    return True


class ExactGate:
    """The items that can be called for. One thread makes changes and look-ups; a change costs as much as its names.

    No answer depends on the order in which items were added.
    """

    def __init__(self, items: Iterable[Named] = (), *, language: str = "en") -> None:
        self._names = NamesInText(language)
        self._items: dict[str, Named] = {}
        self._relations_of: dict[str, set[str]] = {}
        self._parts_of: dict[str, set[str]] = {}
        for item in items:
            self.put(item)

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Named) -> None:
        """Add an item, in place of one with the same id."""
        self.remove(item.id)
        self._items[item.id] = item
        for participant in item.participants:
            self._relations_of.setdefault(participant, set()).add(item.id)
        if item.part_of:
            self._parts_of.setdefault(item.part_of, set()).add(item.id)
        self._names.put(item.id, item.names, item.kind)

    def remove(self, item_id: str) -> None:
        """Remove an item; does nothing if it is unknown."""
        item = self._items.pop(item_id, None)
        if item is None:
            return
        for participant in item.participants:
            _discard(self._relations_of, participant, item_id)
        if item.part_of:
            _discard(self._parts_of, item.part_of, item_id)
        self._names.remove(item_id)

    def ask(self, question: str, *, may_see: MaySee = everything, at_ms: int | None = None) -> tuple[CalledFor, ...]:
        """Return what a question calls for, each once, in the order of their names; participants of relations last.

        Args:
            may_see: Applied first: what the viewer may not see changes nothing of the answer.
            at_ms: The time that the question is about, session time; None for now.
        """

        def is_live(item_id: str) -> bool:
            item = self._items.get(item_id)
            return item is not None and item.holds_at(at_ms) and may_see(item)

        return tuple(self._called(question, is_live))

    def _called(self, question: str, is_live: Callable[[str], bool]) -> Iterator[CalledFor]:
        calls = self._outermost(self._names.calls(question, is_live), is_live)
        named: dict[str, NameMention] = {}
        for call in calls:
            named.setdefault(call.bearer, call)
        for bearer, call in named.items():
            yield CalledFor(self._items[bearer], _why(call))
        brought = dict.fromkeys(named)
        for bearer, call in named.items():
            for participant in self._brought_by(bearer, is_live):
                if participant not in brought and is_live(participant):
                    brought[participant] = None
                    yield CalledFor(self._items[participant], f"takes part in {call.name!r}", is_named=False)

    def _brought_by(self, bearer: str, is_live: Callable[[str], bool]) -> Iterator[str]:
        yield from self._items[bearer].participants
        for part in sorted(self._parts_of.get(bearer, ())):
            if is_live(part):
                yield from self._items[part].participants

    def _outermost(self, calls: Sequence[NameMention], is_live: Callable[[str], bool]) -> Iterator[NameMention]:
        """Skip names that occur only inside a longer one."""
        widest: NameMention | None = None
        around: list[NameMention] = []
        for call in calls:
            if widest is None or call.first > widest.last:
                widest, around = call, []
            elif call.last > widest.last:
                widest = call
            if all(
                self._belong_together(call.bearer, other.bearer, is_live) for other in around if call.is_inside(other)
            ):
                yield call
            around.append(call)

    def _belong_together(self, one: str, other: str, is_live: Callable[[str], bool]) -> bool:
        if one == other or one in self._items[other].participants or other in self._items[one].participants:
            return True
        common = self._relations_of.get(one, set()) & self._relations_of.get(other, set())
        return any(is_live(relation) for relation in common)


def _discard(sets: dict[str, set[str]], key: str, member: str) -> None:
    # A participant may be named twice.
    held = sets.get(key, set())
    held.discard(member)
    if not held:
        sets.pop(key, None)


def _why(call: NameMention) -> str:
    return f"{call.heard!r} is one letter from {call.name!r}" if call.is_typo else f"named {call.heard!r}"
