"""One question being read for its times.

Dates first, then the phrases of the language in the order of their table, then the event by which a time is told. What
one of them has taken the later ones leave alone. Of several dates the first counts, and a date outranks what is
relative: "last year, as you said on 26 June 2023" was said on that day.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from glyphoxa.recall.temporal.ask import NO_TIME, Anchor, SessionReference, TimeAsk
from glyphoxa.recall.temporal.dates import dates_in
from glyphoxa.recall.temporal.days import Days, TimeWindow
from glyphoxa.recall.temporal.spans import beside, part_of, place_of, related, window_of
from glyphoxa.recall.temporal.story import Story, story_days_in, story_related
from glyphoxa.recall.temporal.words import Part, Phrase, Relation, TimeWords
from glyphoxa.speech.language.words import Word

_MOST_EVENT_WORDS: Final = 12
_MOST_AFTER_PREPOSITION: Final = 4
_ASKS: Final[Mapping[str, Callable[[TimeAsk], TimeAsk]]] = {
    "when": lambda ask: replace(ask, asks_for_time=True),
    "how_long": lambda ask: replace(ask, asks_how_long=True),
    "how_often": lambda ask: replace(ask, asks_how_often=True),
    "order": lambda ask: replace(ask, asks_for_order=True),
    "recap": lambda ask: replace(ask, asks_for_recap=True),
}


@dataclass(slots=True)
class Reading:
    """Made for one question, read once. Words are counted from 0; of a span both the first and the last are in it.

    Args:
        left_out: Characters at the beginning of the question that are not read.
        spoken: The words of the rest.
    """

    question: str
    left_out: int
    spoken: Sequence[Word]
    table: TimeWords
    days: Days
    story: Story | None
    _ask: TimeAsk = NO_TIME
    _tokens: list[str] = field(default_factory=list)
    _joined: str = ""
    _starts: list[int] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)
    _asking: set[int] = field(default_factory=set)
    _recaps: list[tuple[int, int]] = field(default_factory=list)

    def read(self) -> TimeAsk:
        self._tokens = [word.full for word in self.spoken]
        self._joined = " ".join(self._tokens)
        self._starts = [0, *accumulate(len(token) + 1 for token in self._tokens)][:-1]
        there = set(self._tokens)
        self._read_dates()
        self._read_story()
        for phrase in self.table.phrases:
            if phrase.begins & there:
                self._read_phrase(phrase)
        self._read_event()
        self._settle_recaps()
        spans = sorted(self._ask.said)
        told = [self.question[start:end] for start, end in spans]
        if (anchor := self._ask.anchor) is not None:
            told.append(f"{anchor.relation} {anchor.words}")
        return replace(self._ask, said=tuple(spans), words=", ".join(told))

    # -- spans and places

    def _read_dates(self) -> None:
        for date in dates_in(self.spoken, self.table):
            window = date.window(self.days)
            if window is not None and self._ask.window is None:
                self._put_window(window, date.first, date.last, is_date=True)

    def _read_story(self) -> None:
        found = None if self.story is None else story_days_in(self.spoken, self.table, self.story)
        if found is None:
            return
        days, first, last = found
        relation, begins = self._relation(first)
        self._ask = replace(self._ask, story=story_related(days, relation))
        is_ours_too = first in self._taken or self._tokens[first] in self.table.weekdays
        if not is_ours_too:
            self._take(begins, last)

    def _read_phrase(self, phrase: Phrase) -> None:
        for match in phrase.pattern.finditer(self._joined):
            first, last = self._word_at(match.start()), self._word_at(match.end() - 1)
            if phrase.kind in _ASKS:
                self._ask = _ASKS[phrase.kind](self._ask)
                self._asking.update(_asking_words(phrase.kind, first, last))
            elif phrase.kind == "recap_of":
                self._recaps.append((first, last))
            elif (self._taken | self._asking).isdisjoint(range(first, last + 1)):
                self._read_span(phrase.kind, match.groupdict(), first, last)

    def _read_span(self, kind: str, said: dict[str, str | None], first: int, last: int) -> None:
        place = place_of(kind, said, self.table)
        if place is not None:
            if self._ask.place is None:
                self._put_place(place, first, last)
            return
        window = window_of(kind, said, self.table, self.days)
        if window is None or self._ask.window is not None:
            return
        relation, _ = self._relation(first)
        window = self._put_window(window, first, last)
        if self.story is not None and self._ask.story is None:
            unit = self.table.units.get(said.get("u") or "", 0.0)
            of_unit = self.story.of_unit(unit, int(kind == "last")) if kind in ("last", "this") else None
            days = self.story.of_window(window, self.days) if of_unit is None else story_related(of_unit, relation)
            self._ask = replace(self._ask, story=days)

    def _put_window(self, window: TimeWindow, first: int, last: int, *, is_date: bool = False) -> TimeWindow:
        relation, begins = self._relation(first)
        if not is_date and self._tokens[begins] in self.table.dates_only:
            relation, begins = "during", first  # "Did he come by last night?"
        amount = None
        if relation in ("before", "after"):
            amount = self.table.amount.search(self._before(begins))
        if relation == "during":
            part, begins = self._part(begins)
            window = window if part is None else part_of(window, part)
        elif amount is not None:
            window = beside(window, relation, amount.groupdict(), self.table)
            begins -= len(amount.group().split())
        else:
            window = related(window, relation)
        self._ask = replace(self._ask, window=window)
        self._take(begins, last)
        return window

    def _put_place(self, place: SessionReference, first: int, last: int) -> None:
        relation, begins = self._relation(first)
        part = place.part
        if relation == "during" and place.kind == "session" and part is None:
            part, begins = self._part(begins)
        self._ask = replace(self._ask, place=replace(place, relation=relation, part=part))
        self._take(begins, last)

    def _relation(self, first: int) -> tuple[Relation, int]:
        """What stands before a span, and where that begins; "during" and the span's beginning if nothing does."""
        at = first - 1
        if at > 0 and self._tokens[at] in self.table.articles:
            at -= 1
        if at > 0 and (pair := self.table.pairs.get((self._tokens[at - 1], self._tokens[at]))) is not None:
            return self.table.relations[pair], at - 1
        relation = self.table.relations.get(self._tokens[at]) if at >= 0 else None
        return ("during", first) if relation is None or relation == "during" else (relation, at)

    def _part(self, begins: int) -> tuple[Part | None, int]:
        before = self._before(begins)
        for part, pattern in self.table.parts:
            if (match := pattern.search(before)) is not None:
                return part, begins - len(match.group().split())
        return None, begins

    def _before(self, at: int) -> str:
        """The last of the words before one."""
        return self._joined[: max(0, self._starts[at] - 1)][-60:]

    # -- events

    def _read_event(self) -> None:
        for at, token in enumerate(self._tokens):
            relation = self.table.relations.get(token)
            if relation is None or at in self._taken | self._asking or not self._may_begin_event(at):
                continue
            end = self._end_of_event(at + 1, is_clause=token not in self.table.needs_article)
            if all(each in self.table.hollow for each in self._tokens[at + 1 : end]):
                continue
            if at == 0 and end == len(self._tokens) and token in self.table.asks_alone and self._is_asked:
                self._ask = replace(self._ask, asks_for_time=True)  # "When Joren has lost his ship?"
            else:
                words = self.question[self.left_out :][self.spoken[at + 1].start : self.spoken[end - 1].end]
                self._ask = replace(self._ask, anchor=Anchor(words, relation))
            return

    @property
    def _is_asked(self) -> bool:
        return self.question.rstrip().endswith("?")

    def _may_begin_event(self, at: int) -> bool:
        if at + 1 >= len(self._tokens) or not self.spoken[at + 1].joins:
            return False
        token, following = self._tokens[at], self._tokens[at + 1]
        if token in self.table.dates_only:
            return False
        if token in self.table.needs_article:
            return following in self.table.articles or following in self.table.clause_begins
        if token in self.table.needs_clause:
            # "Größer als der König" compares.
            return following in self.table.clause_begins and (at == 0 or not self._tokens[at - 1].endswith("er"))
        return True

    def _end_of_event(self, at: int, *, is_clause: bool) -> int:
        """One past its last word: before a comma, another clause or a time."""
        end, most = at, _MOST_EVENT_WORDS if is_clause else _MOST_AFTER_PREPOSITION
        while end < len(self._tokens) and end - at < most:
            is_cut = end > at and not self.spoken[end].joins
            if is_cut or self._tokens[end] in self.table.stops or end in self._taken:
                break
            end += 1
        while end > at + 1 and self._tokens[end - 1] in self.table.hollow:
            end -= 1
        return end

    # -- recaps

    def _settle_recaps(self) -> None:
        """With a time beside it "what happened" asks for a recap; with somebody that it happened to it does not."""
        n = len(self._tokens)
        for first, last in self._recaps:
            after = next((at for at in range(last + 1, n) if at in self._taken or not self._is_filler(at)), n)
            is_before_time = after in self._taken or self._begins_span(after)
            is_after_time = after == n and any(at in self._taken for at in range(max(0, first - 3), first))
            if is_before_time or is_after_time:
                self._ask = replace(self._ask, asks_for_recap=True)

    def _is_filler(self, at: int) -> bool:
        return self._tokens[at] in self.table.hollow or self._tokens[at] in self.table.articles

    def _begins_span(self, at: int) -> bool:
        """An event since which, or after which."""
        anchor = self._ask.anchor
        if anchor is None or anchor.relation not in ("after", "since") or at >= len(self._tokens):
            return False
        return self.table.relations.get(self._tokens[at]) == anchor.relation

    # -- places of words

    def _word_at(self, char: int) -> int:
        return bisect_right(self._starts, char) - 1

    def _take(self, first: int, last: int) -> None:
        self._taken.update(range(first, last + 1))
        span = (self.left_out + self.spoken[first].start, self.left_out + self.spoken[last].end)
        self._ask = replace(self._ask, said=(*self._ask.said, span))


def _asking_words(kind: str, first: int, last: int) -> range:
    """What cannot be read as a time any more: in "how long ago" nothing is long ago, in "adopted more recently" nothing
    recent. A recap may hold its time: "the story so far".
    """
    match kind:
        case "recap":
            return range(0)
        case "order":
            return range(last, last + 1)
        case _:
            return range(first, last + 1)
