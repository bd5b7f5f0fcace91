"""Decide which of the named people are addressed and which are only talked about, from the context of each name.

1. Recognisers set commas unreliably, so a comma is only one signal. A name that opens a sentence is addressed if a
   comma follows, or words that cannot follow a subject ("Oskar what do you know").
2. A name between punctuation is addressed, also at the end.
3. A person is not addressed if a description follows the name ("Oskar, the miller, is a liar"), in a quotation ("he
   said, Oskar, run"), or if explicitly excluded ("not you, Oskar").
4. A role ("smith", "captain") may be any word: it is addressed only without an article and at the edge of a clause.

Only the nearest few hundred characters count, so that the work is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from glyphoxa.language.language_data import lexicon
from glyphoxa.language.sentence_form import Form, SaidSentence, form_of, sentences_of

_WORDS: Final = lexicon("calls")
_LEAD_IN: Final = _WORDS.compile("(?:{lead_in}(?: ?[,:;!-])? )*")
_TITLED: Final = "(?:{titles} )*"
_FOLLOWS_A_CALL: Final = _WORDS.compile(r"{follows_call}\b")
_ABOUT_VERB: Final = _WORDS.compile(r"{about_verb}\b")
_TOLD_OF: Final = _WORDS.compile(r"{told_of}\b")
_THIRD_PERSON: Final = _WORDS.compile(r"{third_person}\b")
_SECOND_PERSON: Final = _WORDS.compile(r"\b{second_person}\b")
_PRONOUN: Final = _WORDS.compile(r"\b{pronouns}\b")
_ASKS_ABOUT: Final = _WORDS.pattern("asks_about")
_ASKS_ACQUAINTANCE: Final = _WORDS.pattern("asks_acquaintance")
_APPOSITION: Final = _WORDS.compile("{apposition} [^,]+, (.*)")
_LISTED: Final = _WORDS.compile(r"(?:[^,]+ , )*?[^,]*?\b{both} (?!{not_listed})(?:@\d+|\w+) (?![,?!])(\w+)")
_A_LIST: Final = _WORDS.compile(r"@\d+|\w+ {both} @")
_PAIR: Final = _WORDS.compile(rf"@(\d+) ?,? {{both}} {_TITLED}@(\d+)")
_NOT_MEANT: Final = _WORDS.pattern("not_meant")
_MEANT: Final = _WORDS.pattern("meant")
_TURNS_TO: Final = _WORDS.pattern("turned_to")
_PLAYER_TELLS: Final = _WORDS.compile(r"@(\d+)(?: \w+)? {tells}(?: {articles})? @(\d+)")
_BEHIND_HEARSAY: Final = _WORDS.compile(r"\b(?:{hearsay} ?[,:]?|{is_name})$")
_ARTICLE: Final = _WORDS.compile("{articles}")
_BEHIND_ARTICLE: Final = _WORDS.compile(r"\b{articles}$")
_BEHIND_OWN_ARTICLE: Final = _WORDS.compile("(?:^|[,:] ?){own_article}$")
_BEHIND_PAUSE: Final = re.compile(r"[,:;–—-] ?$")
_ROLE_BEHIND_PAUSE: Final = _WORDS.compile(rf"[,:;] ?{_TITLED}$")
_NAME: Final = re.compile(r"@(\d+)")
_CLOSERS: Final = ",:;-–—"
_BEFORE, _AFTER = 160, 400
"""Characters of context before and after a name."""


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """An occurrence of a name.

    Attributes:
        start: Position of its first character in the text; `end` is one past the last.
        is_player: Only players have the name.
        is_role: It is a word for what they are, not a name.
        is_owner: It is a possessive: "Mira's hat".
    """

    name: str
    start: int
    end: int
    is_player: bool = False
    is_role: bool = False
    is_owner: bool = False


class CallKind(Enum):
    CALLED = auto()
    MEANT = auto()
    """Addressed by naming, without being called: "I turn to the smith and ask ..."."""
    DENIED = auto()
    """Explicitly excluded."""
    ABOUT = auto()
    """Only talked about."""


CALLED: Final = frozenset({CallKind.CALLED, CallKind.MEANT})
"""The kinds of a name that is addressed."""


@dataclass(slots=True)
class Calls:
    """
    Attributes:
        sentences: Its spoken sentences, with the names marked.
        of: The kind of each name, in order; None inside a quotation or a stage direction.
        sure: Those who are certainly addressed: enough to exclude everybody else.
        is_denial: Somebody is explicitly excluded, named or not.
    """

    sentences: Sequence[SaidSentence]
    of: list[CallKind | None]
    sure: set[int]
    is_denial: bool = False


def calls_in(text: str, named: Sequence[NamedPlace]) -> Calls:
    """
    Args:
        named: In order and without overlap.
    """
    others = [number for number, each in enumerate(named) if not each.is_player]
    sentences, told = sentences_of(text, [(each.start, each.end) for each in named], others=others)
    calls = Calls(sentences, [None] * len(named), set())
    for sentence in sentences:
        denies = _NOT_MEANT.search(sentence.text) is not None
        calls.is_denial = calls.is_denial or denies
        places = list(_NAME.finditer(sentence.text))
        if not places:
            continue
        meant = {int(n) for match in _MEANT.finditer(sentence.text) for n in match.groups() if n}
        if (report := _PLAYER_TELLS.match(sentence.text)) is not None and named[int(report[1])].is_player:
            meant.add(int(report[2]))
        together = _together(sentence)
        for place in places:
            number = int(place[1])
            around = _Around.of(sentence, place, named)
            if number in meant:
                calls.of[number] = CallKind.MEANT
            elif denies:
                calls.of[number] = CallKind.DENIED
            elif number in together or around.is_called():
                calls.of[number] = CallKind.CALLED
                if around.is_sure():
                    calls.sure.add(number)
            else:
                calls.of[number] = CallKind.ABOUT
    is_about_a_third = any(_PRONOUN.search(s.text) and not _SECOND_PERSON.search(s.text) for s in sentences)
    if not is_about_a_third and CALLED.isdisjoint(calls.of):
        for number in [number for sentence in told for number in _told_to(sentence)][-1:]:
            calls.of[number] = CallKind.MEANT
    return calls


def _told_to(sentence: SaidSentence) -> list[int]:
    """Names of those to whom a stage direction or narration says that the words are spoken."""
    found = (*_MEANT.finditer(sentence.text), *_TURNS_TO.finditer(sentence.text))
    return [int(number) for match in found for number in match.groups() if number]


def _together(sentence: SaidSentence) -> set[int]:
    """Names addressed jointly: "Oskar and Mirelle, what do you think?"."""
    text = sentence.text
    for match in _PAIR.finditer(text):
        after = text[match.end() : match.end() + _AFTER].strip()
        opens = _opens(text, match.start())
        closes = not after and _BEHIND_PAUSE.search(text[: match.start()].rstrip()) is not None
        asks = after.startswith(",") or _FOLLOWS_A_CALL.match(after) is not None
        if closes or (opens and (not after or (asks and form_of(sentence).asks_somebody))):
            return {int(match[1]), int(match[2])}
    return set()


def _opens(text: str, at: int) -> bool:
    """Whether only words that may precede an addressed name stand before this position."""
    return at <= _BEFORE and _LEAD_IN.fullmatch(text, 0, at) is not None


@dataclass(frozen=True, slots=True)
class _Around:
    """The context of a name in its sentence."""

    sentence: SaidSentence
    named: Sequence[NamedPlace]
    who: NamedPlace
    before: str
    after: str
    opens: bool

    @classmethod
    def of(cls, sentence: SaidSentence, place: re.Match[str], named: Sequence[NamedPlace]) -> _Around:
        text, start, end = sentence.text, place.start(), place.end()
        before, after = text[max(0, start - _BEFORE) : start].rstrip(), text[end : end + _AFTER].lstrip()
        return cls(sentence, named, named[int(place[1])], before, after, _opens(text, start))

    @property
    def form(self) -> Form:
        return form_of(self.sentence)

    @property
    def _rest(self) -> Form:
        """Form of the words after the name."""
        return form_of(SaidSentence(self.after, ""))

    @property
    def is_closed(self) -> bool:
        return not self.after or self.after[0] in _CLOSERS

    def is_called(self) -> bool:
        if self.who.is_owner or _BEHIND_HEARSAY.search(self.before):
            return False
        if self._asks_about_another():
            return True
        if self.who.is_role:
            return self._is_role_called()
        if not self.is_closed:
            return self.opens and _FOLLOWS_A_CALL.match(self.after) is not None
        if not self.opens and not _BEHIND_PAUSE.search(self.before):
            return False
        return not self.after or not self._is_told_of()

    def is_sure(self) -> bool:
        """Whether an addressed name has no other reading."""
        form, end, after = self.form, self.sentence.end, self.after[1:].strip()
        if not self.is_closed:
            return self._rest.asks_somebody
        if after.startswith("@") and end not in ("?", "!"):  # "Tib, Marek and I went"
            return False
        if self.opens and not after:  # "Tib." may answer "Who was it?"
            return form.greeting or end in ("?", "!")
        if self.opens:
            if _PRONOUN.search(after) and not _SECOND_PERSON.search(after):  # "Tib, who is he?"
                return False
            return end == "?" or _TOLD_OF.match(after) is None
        if _ASKS_ACQUAINTANCE.search(self.before):
            return False
        return end == "?" or form.order or form.second

    def _asks_about_another(self) -> bool:
        """Whether the words after a sentence's first name are a question: "Oskar has the miller told you of it?".

        A recogniser may leave out the comma and the question mark. The verb then looks like the name's ("Oskar has told
        you everything"), but its own subject follows it.
        """
        if not self.opens or self._subject() in (None, self.who.name):
            return False
        return self._rest.question and (self.sentence.end == "?" or self.form.second)

    def _subject(self) -> str | None:
        """Number of the name between a verb and the rest, with or without an article; None for no name."""
        verb, *words = self.after.split(maxsplit=4)[:4] or [""]
        if words and _ARTICLE.fullmatch(words[0]):
            words = words[1:]
        if len(words) < 2 or not verb.isalpha() or not words[0].startswith("@") or not words[1].isalpha():
            return None
        other = self.named[int(words[0][1:])]
        return None if other.is_owner else other.name

    def _is_role_called(self) -> bool:
        if _BEHIND_ARTICLE.search(self.before) and not _BEHIND_OWN_ARTICLE.search(self.before):
            return False
        if self.is_closed and (self.opens or _ROLE_BEHIND_PAUSE.search(f"{self.before} ")):
            is_all = self.opens and not self.before and not self.after
            return not is_all or self.sentence.end in ("!", "?")
        return self.opens and _FOLLOWS_A_CALL.match(self.after) is not None and self._rest.asks_somebody

    def _is_told_of(self) -> bool:
        """A description follows the name and its comma: "Oskar, the miller, is a liar"; "Oskar, he knows"."""
        after, form = self.after[1:].strip(), self.form
        if form.second:
            return False
        if _THIRD_PERSON.match(after) and self.sentence.end != "?" and not form.order:
            return not self.before
        if _ASKS_ABOUT.match(after):
            return True
        if (apposition := _APPOSITION.match(after)) is not None:
            return _ABOUT_VERB.match(apposition[1]) is not None
        return not form.question and _A_LIST.match(after) is not None and _LISTED.match(after) is not None
