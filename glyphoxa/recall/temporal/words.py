"""How a language tells times: the words and patterns of `data/LANGUAGE/time.toml`, as regular expressions.

A pattern is one over folded words (see `glyphoxa.language.words.fold`) set apart by single spaces, and matches
whole words only. `{n}` stands in it for an amount, `{u}` for a unit, `{o}` for an ordinal, `{w}` for a weekday, `{m}`
for a month and `{s}` for a season, each a group of that name; another name stands for a list of the file. Repetitions
are bounded, so that reading stays linear.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

Relation = Literal["before", "after", "since", "until", "during"]
Part = Literal["beginning", "middle", "end"]

_DATA: Final = Path(__file__).parent / "data"
_YEAR: Final = r"(?:19|20|21)\d\d"
_NUMBERED: Final = {"n": ("numbers", 1), "o": ("ordinals", 1), "m": ("months", 1), "w": ("weekdays", 0)}


@dataclass(frozen=True, slots=True, eq=False)
class TimeWords:
    """One language.

    Attributes:
        values: What words stand for, by slot: the number of a month, of an ordinal, the name of a unit.
        lists: Words by the name of their list.
        relations: Words that stand before a moment or an event.
        phrases: Kind, words one of which must be there, and the pattern. The reader knows the kinds.
        dates: Days, months and years of our calendar: groups `day` or `after` (behind the month), `month` or
            `number`, `year`, and `of` where it ties a day to a month.
        counted: Days of a story that are only counted.
        lead: A relation at the end of a text ("before the").
        amount: An amount of time at the end of a text ("two weeks", "the Monday").
        part: What stands before a span and means only its beginning, middle or end.
        tells: That something was told with its time.
        triggers: Without one of these, and without a number, no time is told.
    """

    values: Mapping[str, Mapping[str, Any]]
    lists: Mapping[str, frozenset[str]]
    relations: Mapping[str, Relation]
    phrases: tuple[tuple[str, frozenset[str], re.Pattern[str]], ...]
    dates: tuple[re.Pattern[str], ...]
    date_of_story: str
    counted: re.Pattern[str]
    lead: re.Pattern[str]
    amount: re.Pattern[str]
    part: re.Pattern[str]
    tells: re.Pattern[str]
    triggers: frozenset[str]

    def number(self, word: str | None) -> int:
        """Of an amount or an ordinal; 1 if there is none."""
        word = word or "1"
        digits = word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word
        found: int = self.values["n"].get(word) or self.values["o"].get(word, 1)
        return int(digits) if digits.isdecimal() else found


@lru_cache(maxsize=16)
def read_words(language: str) -> TimeWords | None:
    """None if nothing is known of that language."""
    path = _DATA / language / "time.toml"
    if not (language.isalpha() and path.is_file()):
        return None
    data = tomllib.loads(path.read_text("utf-8"))
    values: dict[str, dict[str, Any]] = {slot: _numbered(data[key], at) for slot, (key, at) in _NUMBERED.items()}
    endings = data.get("ordinal_endings", "").split() or [""]
    values["o"] = {word + ending: number for word, number in values["o"].items() for ending in endings}
    values["u"] = {word: unit for unit, words in data["units"].items() for word in words.split()}
    values["s"] = data["seasons"]
    relations = {word: relation for relation, words in data["relations"].items() for word in words.split(", ")}
    lists = {name: frozenset(words.split(", ") if words else ()) for name, words in data["lists"].items()}

    day = rf"(?:{_any_of(values['o'])}|\d{{1,3}}(?:st|nd|rd|th)?)"
    slots = {name: f"(?:{_any_of(words)})" for name, words in lists.items()}
    slots |= {slot: f"(?P<{slot}>{_any_of(words)})" for slot, words in values.items()}
    slots["n"] = slots["n"][:-1] + r"|\d{1,3})"
    slots["o"] = slots["o"][:-1] + r"|\d{1,3}(?:st|nd|rd|th))"
    slots |= {"day": f"(?P<day>{day})", "after": rf"(?P<after>{day})(?!\S)", "number": r"(?P<number>0?[1-9]|1[0-2])"}

    def filled(pattern: str, **more: str) -> str:
        known = slots | more
        return re.sub(r"\{([a-z]+)\}", lambda match: known[match[1]], pattern)

    month, year = f"(?P<month>{_any_of([*values['m'], *values['s']])})", f"(?P<year>{_YEAR})"
    phrases = tuple((kind, frozenset(begins.split()), whole(filled(text))) for kind, begins, text in data["phrases"])
    before = _any_of(word for word, relation in relations.items() if relation != "during")
    lead = rf"(?:^| )(?P<relation>{before})(?: {{articles}})?$"
    triggers = [begins for _, begins, _ in phrases]
    return TimeWords(
        values,
        lists,
        relations,
        phrases,
        dates=tuple(whole(filled(text, month=month, year=year)) for text in data["dates"]),
        date_of_story=filled(data["dates"][0], month="{month}", year=r"(?P<year>\d{1,6})"),
        counted=whole(filled(data["counted"])),
        lead=re.compile(filled(lead)),
        amount=re.compile(filled(r"(?:^| )(?:(?:{n} )?{u}|{w})$")),
        part=re.compile(rf"(?:^| )(?:{data['part']})$"),
        tells=whole(rf"{filled(data['tells'])}|(?:19|20)\d\d"),
        triggers=frozenset().union(*triggers, values["m"], values["s"], *(word.split() for word in relations)),
    )


def whole(pattern: str) -> re.Pattern[str]:
    """It matches whole words only."""
    return re.compile(rf"(?<!\S)(?:{pattern})(?!\S)")


def names_pattern(pattern: str, names: Iterable[str]) -> re.Pattern[str]:
    """The pattern of a date with those names of months in it."""
    return whole(pattern.replace("{month}", f"(?P<month>{_any_of(map(re.escape, names))})"))


def _any_of(words: Iterable[str]) -> str:
    """The longest first."""
    return "|".join(sorted(words, key=len, reverse=True))


def _numbered(text: str, first: int) -> dict[str, int]:
    """From "january|jan, february": by their place."""
    return {word: nth for nth, words in enumerate(text.split(", "), first) for word in words.split("|")}
