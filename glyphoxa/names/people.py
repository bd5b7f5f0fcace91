"""Names that are called ("Grimjaw, how is my blade?") told from names that are talked about.

Recognisers set commas unreliably, so a comma is one sign among others: a name that opens a sentence is called
unless a verb in the third person follows; a name set off by punctuation on both sides, or right after a greeting,
is called; one after a preposition is not.

Somebody who is known by an article and a word ("the captain") is called without the article ("Captain, ..."). Such a
word is a name only where it is plainly called: mid-sentence it is any captain. Of several who are known so, all are
called, and whoever is there may answer.

All of it is linear in the text: what a player sends is as long as they like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from glyphoxa.domain.ids import EntityId
from glyphoxa.language.words import Word, words
from glyphoxa.names.gazetteer import Gazetteer, Name
from glyphoxa.names.naming import ARTICLES

# Whether somebody who is named is called, by what stands around the name (English and German).


_GREETINGS = frozenset(
    {"hey", "hi", "hello", "good", "morning", "evening", "listen", "excuse", "thank", "thanks", "wait", "stop"}
    | {"greetings", "goodbye", "farewell", "sorry", "please"}
    | {"hallo", "guten", "morgen", "abend", "tag", "danke", "bitte", "servus", "warte", "halt", "entschuldigung"}
)
_OPENERS = _GREETINGS | frozenset(
    {"oh", "so", "well", "and", "but", "now", "day", "night", "me", "dear", "my", "friend", "you", "no", "yes"}
    | {"okay", "ok", "ah", "right", "he", "nein", "ja", "und", "aber", "also", "ach"}
)
"""Words that may stand before a called name (English and German)."""
_TITLES = frozenset({"herr", "frau", "master", "mister", "mr", "mistress", "madam", "sir", "old"})
"""What is said before somebody's trade when they are called by it."""
_MOST_TITLES = 2
_ABOUT = frozenset(
    {"about", "of", "to", "from", "with", "at", "for", "by", "on", "in", "like", "than", "see", "seen", "know", "trust"}
    | {"is", "does", "did", "has", "was", "ask", "tell"}
    | {"über", "von", "zu", "mit", "bei", "für", "gegen", "nach", "hat", "ist"}
)
_THIRD_PERSON = frozenset(
    {"is", "was", "has", "had", "says", "said", "told", "knows", "knew", "owes", "does", "did", "went", "will", "would"}
    | {"ist", "war", "hat", "hatte", "sagt", "sagte", "weiss", "wird", "and", "or", "und", "oder"}
)
_SECOND_PERSON = frozenset(
    {"you", "your", "yours", "yourself", "du", "dich", "dir", "dein", "deine", "deinen", "ihr", "euch", "euer", "eure"}
)
_ASKS = _SECOND_PERSON | frozenset(
    {"are", "do", "where", "what", "why", "how", "when", "please", "come", "tell", "give"}
    | {"bist", "hast", "kannst", "willst", "wo", "warum", "wie", "wann", "komm", "sag", "bitte"}
)
"""What follows a called name and never a person's name that is a sentence's subject."""
_ORDERS = frozenset(
    {"come", "give", "tell", "go", "wait", "stop", "look", "listen", "help", "get", "take", "let", "follow", "show"}
    | {"bring", "hold", "run", "be", "dont", "please"}
    | {"komm", "gib", "sag", "geh", "warte", "halt", "schau", "hör", "hor", "hilf", "nimm", "lass", "zeig", "lauf"}
)
_TOLD_OF = frozenset(
    {"my", "our", "his", "her", "their", "the", "a", "an", "of", "who", "whom", "whose", "which", "and", "or", "i"}
    | {"mein", "meine", "unser", "unsere", "sein", "seine", "der", "die", "das", "dem", "den", "dessen", "deren"}
    | {"und", "oder", "ich"}
)
"""What follows a name and its comma when somebody is told of: "Tib, my cousin, was here"."""
_GOES_ON_ABOUT = frozenset({"of", "who", "whom", "whose", "which", "and", "or", "dessen", "deren", "und", "oder"})
"""The same of what stands first without its article: "Captain, my sister is lost" calls, as a name's apposition would
have "the captain".
"""
_THIRD_PERSONS = frozenset({"he", "him", "his", "she", "er", "ihn", "ihm"})  # "her" is German, too: "Komm her!"
_OF_ACQUAINTANCE = frozenset(
    {"know", "knew", "known", "see", "saw", "seen", "meet", "met", "remember", "heard"}
    | {"kennst", "kennt", "kanntest", "kanntet", "erkennst", "erkennt"}
)
_WHOSE = frozenset(
    {"my", "our", "his", "her", "their", "the", "a", "an"}
    | {"meine", "meinen", "unsere", "unseren", "seine", "seinen", "ihre", "ihren", "der", "die", "das", "den"}
)
_NEAR = 3
"""Words from whose somebody is to their name: "my old friend, Oskar"."""
_PUNCTUATION = re.compile(r"[,.!?;:…—–]")
_END = "."
_SENTENCE_ENDS = re.compile(r"[.!?…]")


class VocativeDetector:
    """The words of a text, asked whether they call somebody. Made in one pass over it."""

    def __init__(self, text: str, spoken: Sequence[Word]) -> None:
        self.spoken = spoken
        self._text = text
        self._closed: list[bool] = []
        """Of each word, whether punctuation or nothing follows."""
        self._first: list[int] = []
        """Of each word, the first word of its sentence."""
        self._is_led_in: list[bool] = []
        """Of each word, whether only openers stand before it in its sentence."""
        first, is_led_in = 0, True
        starts = [word.start for word in spoken[1:]]
        for at, word in enumerate(spoken):
            self._first.append(first)
            self._is_led_in.append(is_led_in)
            gap = text[word.end : starts[at]] if at < len(starts) else _END
            is_closed = gap != " " and _PUNCTUATION.search(gap) is not None
            self._closed.append(is_closed)
            if is_closed and _SENTENCE_ENDS.search(gap):
                first, is_led_in = at + 1, True
            else:
                is_led_in = is_led_in and word.folded in _OPENERS

    @cached_property
    def _last(self) -> list[int]:
        """Of each word, the last word of its sentence."""
        last = list(range(len(self.spoken)))
        for at in range(len(last) - 2, -1, -1):
            if self._first[at + 1] == self._first[at]:
                last[at] = last[at + 1]
        return last

    @cached_property
    def _addressed(self) -> list[int]:
        return _counted(self.spoken, _SECOND_PERSON)

    @cached_property
    def _told_of(self) -> list[int]:
        return _counted(self.spoken, _THIRD_PERSONS)

    @cached_property
    def _acquainted(self) -> list[int]:
        return _counted(self.spoken, _OF_ACQUAINTANCE)

    def is_called(self, first: int, last: int, start: int, end: int) -> bool:
        """Whether the name of these words is called.

        Args:
            start: Its first character; `end` is one past the last, a possessive ending included.
        """
        if self.spoken[last].tail:  # "Grimjaw's forge"
            return False
        if self._is_led_in[first]:
            return self._closed[last] or self._after(last) not in _THIRD_PERSON
        return self._closed[last] and self._is_set_off(first) and self.spoken[first - 1].folded not in _ABOUT

    def where_may_call(self) -> Iterator[int]:
        """The words from which on somebody may be called, in order."""
        n_titles = 0
        for at, word in enumerate(self.spoken):
            if self._first[at] == at:
                n_titles = 0
            begins = at - min(n_titles, _MOST_TITLES)
            if self._is_led_in[begins] or self._is_set_off(begins):
                yield at
            n_titles = n_titles + 1 if word.folded in _TITLES else 0

    def is_role_called(self, first: int, last: int) -> bool:
        """Whether what may be any word ("captain") is plainly called."""
        if self.spoken[last].tail:
            return False
        if self._closed[last]:
            told_of = _GOES_ON_ABOUT if self._is_led_in[first] else _TOLD_OF
            return self._after(last) not in told_of or self._asks(last)
        return self._is_led_in[first] and self._after(last) in _ASKS

    def is_surely_called(self, first: int, last: int, *, followed_by_name: bool) -> bool:
        """Whether a name that is called can be nothing else: enough to say that somebody else is not meant."""
        after = self._after(last)
        if not self._closed[last]:
            return after in _ASKS
        if followed_by_name and not self._end_of(first):  # "Tib, Marek and I went"
            return False
        is_whole = self._is_led_in[first] and last == self._last[first]
        if is_whole:  # "Tib." may be the answer to who it was
            greets = any(word.folded in _GREETINGS for word in self.spoken[self._first[first] : first])
            return greets or self._is_question(first) or self._end_of(first) == "!"
        if self._is_asked_about(first):
            return False
        if self._is_led_in[first]:
            return after not in _TOLD_OF or self._is_question(first)
        opening = self.spoken[self._first[first]].folded
        return self._is_question(first) or opening in _ORDERS or self._in_sentence(self._addressed, first)

    def stands_apart(self, at: int) -> bool:
        """Between punctuation, and not all there is."""
        return self._closed[at] and (at == 0 or self._closed[at - 1]) and len(self.spoken) > 1

    def _is_set_off(self, first: int) -> bool:
        return first > 0 and self._closed[first - 1]

    def _asks(self, last: int) -> bool:
        return self._is_question(last) and self._after(last) not in ("and", "or", "und", "oder")

    def _after(self, last: int) -> str:
        return self.spoken[last + 1].folded if last + 1 < len(self.spoken) else ""

    def _is_asked_about(self, first: int) -> bool:
        """Somebody else is asked about them: "Tib, who is he?", "Have you seen my brother, Tib?"."""
        if self._is_led_in[first]:
            return self._in_sentence(self._told_of, first) and not self._in_sentence(self._addressed, first)
        begin = self._first[first]
        near = range(max(begin, first - _NEAR), first)
        is_known = self._acquainted[first] > self._acquainted[begin]
        return is_known and any(self.spoken[at].folded in _WHOSE for at in near)

    def _in_sentence(self, counted: Sequence[int], at: int) -> bool:
        return counted[self._last[at] + 1] > counted[self._first[at]]

    def _end_of(self, at: int) -> str:
        """The sign that ends the sentence of this word; "" for none."""
        last = self._last[at]
        until = self.spoken[last + 1].start if last + 1 < len(self.spoken) else len(self._text)
        gap = self._text[self.spoken[last].end : until]
        return "?" if "?" in gap else "!" if "!" in gap else ""

    def _is_question(self, at: int) -> bool:
        return self._end_of(at) == "?"


def _counted(spoken: Sequence[Word], wanted: Container[str]) -> list[int]:
    """How many of the wanted words stand before each word, and before the end."""
    return [0, *accumulate(word.folded in wanted for word in spoken)]


_TO = r"(?:to|an|zu)"
_BEFORE_A_PLACE = ARTICLES | {"dem", "den"}
_WHISPER = r"(?:whisper(?:s|ing)?|quietly|aside|private(?:ly)?|psst?|flüster(?:t|e|nd)?|leise)"
_WHISPERED = re.compile(
    rf"^\s*(?:[(\[{{*<]+\s*(?:{_WHISPER}\W{{0,3}})?{_TO}\s+([^()\[\]{{}}*<>:]{{1,60}}?)\s*[)\]}}*>:]"
    rf"|{_WHISPER}\s+{_TO}\s+(\S.{{0,58}}?)\s*:"
    r"|(?:/(?:w|whisper|msg|tell)\s+|@)(\S{1,60}))",
    re.IGNORECASE,
)
"""(to Mira) ..., [whispers to Mira] ..., whisper to Mira: ..., /w Mira ..., @Mira ..."""

_THOSE_AT_THE_TABLE = frozenset(
    {
        "dm",
        "gm",
        "sl",
        "all",
        "everyone",
        "everybody",
        "group",
        "party",
        "others",
        "table",
        "myself",
        "himself",
        "herself",
    }
    | {"alle", "allen", "gruppe", "runde", "anderen", "mich", "mir", "sich", "spielleiter", "spielleiterin"}
)


@dataclass(frozen=True, slots=True)
class PersonMention:
    """A person's name in a text.

    Attributes:
        entity_id: None for somebody who is whispered to, and whom the campaign does not know.
        position: Index of its first word.
        is_vocative: It is called, not talked about.
        is_sure: It is called beyond doubt.
        is_whispered: It says to whom all that was said is directed.
        is_owner: It says whose something is: "Mira's hat".
        start: Place of its first character; `end` is one past the last.
    """

    entity_id: EntityId | None
    name: str
    position: int
    is_vocative: bool
    is_sure: bool = False
    is_whispered: bool = False
    start: int = 0
    end: int = 0
    is_owner: bool = False


def is_person(name: Name) -> bool:
    return name.entity_type in ("npc", "player")


def mentions_of_people(
    text: str, names: Gazetteer, *, can_be_called: Callable[[Name], bool] = is_person
) -> tuple[PersonMention, ...]:
    """The people named in a text, in order.

    A word that only sounds like a name ("bard" for Bart) counts where a name would be called: at the start or the
    end of a sentence, set off by punctuation. The transcript itself is never changed by it.

    Args:
        names: All names of the campaign: what belongs to the name of a place calls nobody.
        can_be_called: Who is listened for. Of other persons only those are found who are called beyond doubt.
    """
    spoken = words(text)
    calling = VocativeDetector(text, spoken)
    mentions = names.mentions_in(spoken)
    taken = {at for m in mentions for at in range(m.first, m.last + 1)}
    calls: list[PersonMention] = []
    others: list[PersonMention] = []
    for m in mentions:
        is_vocative = calling.is_called(m.first, m.last, m.start, m.end)
        is_sure = is_vocative and calling.is_surely_called(m.first, m.last, followed_by_name=m.last + 1 in taken)
        for name in names.wanting(m.name):
            call = PersonMention(
                name.entity_id,
                name.canonical,
                m.first,
                is_vocative,
                is_sure,
                start=m.start,
                end=m.end,
                is_owner=bool(spoken[m.last].tail),
            )
            if can_be_called(name):
                calls.append(call)
            elif is_sure and is_person(name):
                others.append(call)
    calls += _roles(calling, taken, names, can_be_called)
    whispered = _whispered(text, calling, [*calls, *others])
    if whispered is not None:
        return (whispered, *(call for call in calls if call.position > whispered.position))
    if not calls:
        calls = list(_sound_alikes(calling, taken, names, can_be_called))
    return tuple(sorted((*calls, *others), key=lambda call: call.position))


def _roles(
    calling: VocativeDetector, taken: set[int], names: Gazetteer, can_be_called: Callable[[Name], bool]
) -> Iterator[PersonMention]:
    """Those who are known with an article and called without it."""
    spoken = calling.spoken
    beyond = 0
    for at in calling.where_may_call():
        if at < beyond:
            continue  # part of the one before
        found: tuple[int, Sequence[Name]] | None = None
        stem = ""
        for last in range(at, min(at + names.widest, len(spoken))):
            if last in taken or (last > at and not spoken[last].joins):
                break
            if calling.is_role_called(at, last) and (wanted := _with_article(stem + spoken[last].folded, names)):
                found = last, wanted
            stem += spoken[last].full
        if found is None:
            continue
        last, wanted = found
        is_sure = calling.is_surely_called(at, last, followed_by_name=last + 1 in taken)
        yield from (
            PersonMention(
                name.entity_id, name.canonical, at, True, is_sure, start=spoken[at].start, end=spoken[last].end
            )
            for name in wanted
            if can_be_called(name)
        )
        beyond = last + 1


def _with_article(joined: str, names: Gazetteer) -> Sequence[Name]:
    held = (names.by_joined.get(article + joined) for article in ARTICLES)
    return [
        name
        for first in held
        if first is not None
        for name in names.wanting(first)
        if name.words[0] in ARTICLES and name.kind in ("name", "alias")
    ]


def _whispered(text: str, calling: VocativeDetector, calls: Sequence[PersonMention]) -> PersonMention | None:
    found = _WHISPERED.match(text)
    if found is None:
        return None
    group = next(number for number in (1, 2, 3) if found[number] is not None)
    start, end = found.span(group)
    for call in calls:
        if start <= calling.spoken[call.position].start < end:
            return replace(call, is_vocative=True, is_sure=True, is_whispered=True)
    who = found[group].strip()
    last = who.split()[-1]
    if last.casefold() not in _THOSE_AT_THE_TABLE and _may_be_a_place(who, text[:start]):
        return None
    return PersonMention(None, who, 0, True, True, True)


def _may_be_a_place(who: str, before: str) -> bool:
    """Whether it says where, not whom: "(to the left) ...", "(an der Theke) ...", "(an Bord) ..."."""
    first, *others = who.split()
    is_name = (others or [first])[-1][0].isupper() and first.casefold() not in _BEFORE_A_PLACE
    return not is_name or re.search(r"^\W*an\s*$", before, re.IGNORECASE) is not None


def _sound_alikes(
    calling: VocativeDetector, taken: set[int], names: Gazetteer, can_be_called: Callable[[Name], bool]
) -> Iterator[PersonMention]:
    for at, word in enumerate(calling.spoken):
        if at in taken or len(word.folded) < 4 or not calling.stands_apart(at):
            continue
        name = _sounding_like(word.folded, names, can_be_called)
        if name is not None:
            yield PersonMention(name.entity_id, name.canonical, at, True, start=word.start, end=word.end)


def _sounding_like(folded: str, names: Gazetteer, can_be_called: Callable[[Name], bool]) -> Name | None:
    for code in names.coder(folded) if names.coder is not None else ():
        for name in names.by_code.get(code, ()):
            if name.is_shared or not can_be_called(name):
                continue
            if name.joined[0] == folded[0] and abs(len(name.joined) - len(folded)) <= 1:
                return name
    return None
