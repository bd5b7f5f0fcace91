"""Dates in a sentence: days, months, years and seasons of our calendar.

Ordinary words are no months: "may" and "march" need a day, a year, or a word such as "in" before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glyphoxa.recall.temporal.days import Days, TimeWindow
from glyphoxa.recall.temporal.words import TimeWords, day_before
from glyphoxa.speech.language.words import Word

_FIRST_YEAR, _LAST_YEAR = 1900, 2199
_LINKS = frozenset(("of", "the", "in", "im", "des"))


@dataclass(frozen=True, slots=True)
class Date:
    """
    Attributes:
        first: Its first word.
        last: Its last, in it.
        season: Number of its first month; 0 if it is no season.
    """

    first: int
    last: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    season: int = 0

    def window(self, days: Days) -> TimeWindow | None:
        """None if there is no such day."""
        return days.season(self.season, self.year) if self.season else days.in_calendar(self.year, self.month, self.day)


def dates_in(spoken: Sequence[Word], words: TimeWords) -> list[Date]:
    """In order, without overlap."""
    tokens = [word.full for word in spoken]
    found: list[Date] = []
    for at, token in enumerate(tokens):
        if found and at <= found[-1].last:
            continue
        if token in words.months:
            date = _month(at, tokens, words, is_capital=spoken[at].is_capital and not spoken[at].opens)
        elif token in words.seasons:
            date = _season(at, tokens, words)
        elif token.isdecimal():
            date = _of_numbers(at, tokens, words)
        else:
            continue
        if date is not None:
            found.append(date)
    return found


def _month(at: int, tokens: Sequence[str], words: TimeWords, *, is_capital: bool) -> Date | None:
    day, first, last = _day_beside(at, tokens, words)
    year, end = _year_after(last, tokens)
    if tokens[at] in words.doubtful and year is None:
        before = tokens[first - 1] if first else ""
        following = tokens[last + 1] if last + 1 < len(tokens) else ""
        is_alone = not following or following in words.clause_begins or following in words.stops
        is_placed = before in words.month_after and (day is not None or is_capital or is_alone)
        is_linked = day is not None and tokens[at - 1] == "of"
        is_counted = day is not None and tokens[first].isdecimal() and at + 1 == len(tokens)
        if not (is_linked or is_counted or is_placed or (is_capital and day is not None)):
            return None
    return Date(first, end, year, words.months[tokens[at]], day)


def _day_beside(at: int, tokens: Sequence[str], words: TimeWords) -> tuple[int | None, int, int]:
    """Day of a month, first and last word of both: "the 3rd of June", "8 May", "June 3"."""
    before = at - 1
    if before > 0 and tokens[before] in _LINKS:
        before -= 1
    day, first = day_before(before, tokens, words)
    if day is None and before >= 0:
        day = _day(tokens[before])
    if day is not None and (before == at - 1 or tokens[at - 1] == "of"):
        return day, first, at
    following = tokens[at + 1] if at + 1 < len(tokens) else ""
    day = _day(following)
    return (day, at, at + 1) if day is not None else (None, at, at)


def _day(token: str) -> int | None:
    digits = token[:-2] if token[-2:] in ("st", "nd", "rd", "th") else token
    if not (digits.isdecimal() and len(digits) <= 2):
        return None
    return int(digits) if 1 <= int(digits) <= 31 else None


def _season(at: int, tokens: Sequence[str], words: TimeWords) -> Date | None:
    year, last = _year_after(at, tokens)
    before = tokens[at - 1] if at else ""
    if before in ("the", "der", "den", "dem", "des"):
        before = tokens[at - 2] if at > 1 else ""
    if year is None and (tokens[at] in words.doubtful or before not in words.in_year):
        return None
    return Date(at, last, year, season=words.seasons[tokens[at]])


def _of_numbers(at: int, tokens: Sequence[str], words: TimeWords) -> Date | None:
    """Such as "2023-05-08", "8.5.2023" where days are written before months, or "in 2023"."""
    run = [number for nth in range(3) if (number := _digits(tokens, at + nth)) is not None]
    if len(run) == 3:
        year, month, day = run if _is_year(run[0]) else run[::-1]
        is_clear = _is_year(run[0]) or words.day_first or day > 12
        if _is_year(year) and 1 <= month <= 12 and 1 <= day <= 31 and is_clear:
            return Date(at, at + 2, year, month, day)
    if at and _is_year(run[0] if run else 0) and tokens[at - 1] in words.in_year:
        return Date(at, at, run[0])
    return None


def _year_after(at: int, tokens: Sequence[str]) -> tuple[int | None, int]:
    following = at + 1
    if following < len(tokens) and tokens[following] in _LINKS:
        following += 1
    year = _digits(tokens, following)
    return (year, following) if year is not None and _is_year(year) else (None, at)


def _digits(tokens: Sequence[str], at: int) -> int | None:
    token = tokens[at] if 0 <= at < len(tokens) else ""
    return int(token) if token.isdecimal() and len(token) <= 6 else None


def _is_year(number: int) -> bool:
    return _FIRST_YEAR <= number <= _LAST_YEAR
