"""How a campaign file tells the time: the table's time zone, and the calendar of the story."""

from __future__ import annotations

from collections.abc import Iterable

from glyphoxa.config.campaign_blocks import CalendarBlock
from glyphoxa.config.located_yaml import LocatedYaml, Problem, YamlPath
from glyphoxa.domain.calendar import StoryCalendar, name_words
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.recall.temporal.days import read_zone


def check_zone(source: LocatedYaml, name: str) -> list[Problem]:
    """What is wrong with a time zone."""
    try:
        read_zone(name)
    except InvalidInput as error:
        return [source.problem(("campaign", "time_zone"), f"campaign.time_zone: {error}")]
    return []


def read_calendar(
    source: LocatedYaml, block: CalendarBlock | None
) -> tuple[StoryCalendar | None, str, tuple[Problem, ...]]:
    """The calendar, the day that the story stands at as the calendar writes it, and what is wrong with them."""
    if block is None:
        return None, "", ()
    calendar = StoryCalendar(tuple(block.months.items()), block.weekdays)
    problems = _names(source, calendar)
    if not block.today.strip() or problems:
        return calendar, "", tuple(problems)
    try:
        calendar = calendar.settled(block.today)
        return calendar, calendar.in_words(calendar.day_named(block.today)), ()
    except InvalidInput as error:
        return calendar, "", (source.problem(("calendar", "today"), f"calendar.today: {error}"),)


def _names(source: LocatedYaml, calendar: StoryCalendar) -> list[Problem]:
    """Each means one thing, and can be told from a number."""
    months: Iterable[tuple[str, YamlPath]] = ((name, ("calendar", "months", name)) for name, _ in calendar.months)
    weekdays = ((name, ("calendar", "weekdays", nth)) for nth, name in enumerate(calendar.weekdays))
    problems: list[Problem] = []
    seen: dict[tuple[str, ...], YamlPath] = {}
    for name, path in (*months, *weekdays):
        words = name_words(name)
        if not words or any(word[0].isdigit() for word in words):
            problems.append(source.problem(path, f"{path[1]}: {name!r} is no name of letters, such as Hammer"))
        elif words in seen:
            first = source.line(seen[words])
            problems.append(
                source.problem(path, f"{path[1]}: {name!r} stands in the calendar twice, first on line {first}")
            )
        else:
            seen[words] = path
    return problems
