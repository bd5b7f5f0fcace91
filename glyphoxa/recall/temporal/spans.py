"""From the words of a phrase to a span of time, or to a place in the order of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from glyphoxa.recall.temporal.ask import SessionReference
from glyphoxa.recall.temporal.days import DAY_MS, Days, TimeWindow
from glyphoxa.recall.temporal.words import NIGHT, SESSION, WEEKEND, Part, Relation, TimeWords

Slots = Mapping[str, str | None]
"""What stood in the slots of a phrase."""
_LONGEST = {WEEKEND: 7.0, NIGHT: 1.0}
_EVENING, _DAWN = 17, 30


def place_of(kind: str, said: Slots, table: TimeWords) -> SessionReference | None:
    """None if the phrase means no place."""
    is_session = table.units.get(said.get("u") or "") == SESSION
    match kind:
        case "back_0" | "back_1" | "back_2":
            return SessionReference("session", back=int(kind[-1]))
        case "left_off":
            return SessionReference("session", back=1, part="end")
        case "nth":
            return SessionReference("session", number=number_of(said.get("n") or said.get("o"), table))
        case "ago" if is_session and said["n"] in table.vague:
            return SessionReference("long_ago")
        case "ago" if is_session:
            return SessionReference("session", back=number_of(said["n"], table))
        case "last" | "this" if is_session:
            return SessionReference("session", back=int(kind == "last"))
        case "within" if is_session:
            return SessionReference("recent", back=number_of(said["n"], table))
        case "first" | "latest" | "recent" | "long_ago" | "opening" | "whole":
            return SessionReference(kind)
        case _:
            return None


def window_of(kind: str, said: Slots, table: TimeWords, days: Days) -> TimeWindow | None:
    """None if the phrase means no span."""
    unit = table.units.get(said.get("u") or "")
    match kind:
        case "just_now":
            return days.about(5 / 1440, within=10 / 1440)
        case "yesterday_0" | "yesterday_1" | "yesterday_2":
            day = days.today - int(kind[-1])
            return days.window(day, day, fades=1)
        case "morning_0" | "morning_1":
            return days.part_of_day(days.today - int(kind[-1]), 4, 13)
        case "night_1":
            return days.part_of_day(days.today - 1, _EVENING, _DAWN)
        case "weekday":
            day = days.weekday(table.weekdays[said["w"] or ""])
            return days.window(day, day, fades=1)
        case "season":
            return days.season(table.seasons[said["s"] or ""], None)
        case "ago" | "within" if unit is not None:
            return _ago(kind, number_of(said["n"], table), unit, days, is_vague=said["n"] in table.vague)
        case "last" | "this" if unit is not None:
            return _of_unit(unit, int(kind == "last"), days)
        case _:
            return None


def _ago(kind: str, number: int, unit: float, days: Days, *, is_vague: bool) -> TimeWindow:
    length = _LONGEST.get(unit, unit)
    if kind == "within":
        return days.since(number * length)
    if unit == WEEKEND:
        return days.weekend(number)
    # "Two weeks ago" is seldom counted in days; "three days ago" is.
    return days.about(number * length, within=max(length / 2, number * length / (2 if is_vague else 6)))


def _of_unit(unit: float, ago: int, days: Days) -> TimeWindow | None:
    if unit == WEEKEND:
        return days.weekend(ago if days.is_weekend else 0)
    if unit == NIGHT:
        return days.part_of_day(days.today - ago, _EVENING, _DAWN)
    match round(unit):
        case 7:
            return days.week(ago)
        case 30:
            return days.month(ago)
        case 365:
            return days.in_calendar(days.year - ago, None, None)
        case _:
            return days.about(unit * (ago + 0.5), within=unit)


def beside(window: TimeWindow, relation: Relation, said: Slots, table: TimeWords) -> TimeWindow:
    """What "two weeks before 11 August" means: from then on until that day, on which it was told; "after" likewise."""
    unit = 7.0 if said.get("w") else table.units[said["u"] or ""]
    length = max(_LONGEST.get(unit, unit), 1.0)
    reach = round(1.25 * length * number_of(said.get("n"), table) * DAY_MS)
    if relation == "before" and window.from_ms is not None:
        return replace(window, from_ms=window.from_ms - reach)
    if relation == "after" and window.until_ms is not None:
        return replace(window, until_ms=window.until_ms + reach)
    return window


def related(window: TimeWindow, relation: Relation) -> TimeWindow:
    """What is before it, after it, ..."""
    match relation:
        case "before":
            return replace(window, from_ms=None, until_ms=window.from_ms)
        case "until":
            return replace(window, from_ms=None)
        case "after":
            return replace(window, from_ms=window.until_ms, until_ms=None)
        case "since":
            return replace(window, until_ms=None)
        case _:
            return window


def part_of(window: TimeWindow, part: Part) -> TimeWindow:
    """A third of it."""
    if window.from_ms is None or window.until_ms is None:
        return window
    third = (window.until_ms - window.from_ms) // 3
    from_ms = window.from_ms + third * ("beginning", "middle", "end").index(part)
    return replace(window, from_ms=from_ms, until_ms=from_ms + third)


def number_of(word: str | None, table: TimeWords) -> int:
    """Of an amount or an ordinal; 1 if there is none."""
    word = word or "1"
    digits = word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word
    if digits.isdecimal():
        return int(digits)
    return table.numbers.get(word) or table.ordinals.get(word, 1)
