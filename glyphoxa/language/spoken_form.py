"""Write a sentence as a voice says it: "40 gp" becomes "forty gold pieces".

Text-to-speech services read digits, signs and abbreviations each in their own way, or not at all. Here numbers,
measures, dates, times, ranges, rulers ("Aldric III"), abbreviations and signs become words of the campaign's language.
Only the voice receives this form: the transcript, the page and the prompt keep what was written, and
`glyphoxa.turns.playback` finds the written words that were heard.

The words per language are data: see `glyphoxa/language/data/en/spoken.toml`. A text in a language without data is
returned unchanged. The number words are those of num2words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from num2words import num2words

from glyphoxa.language.language_data import any_of, capitalises_nouns, lexicon, vocabulary_of
from glyphoxa.language.words import fold

Units = Mapping[str, tuple[str, str]]
"""Measures by their sign, each with the words for one ("one crown") and for any other number ("crowns")."""

_MOST_DIGITS: Final = 15
"""Nobody says a longer number as one."""
_YEARS: Final = range(1_000, 2_100)
_ONES: Final = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
_MOST_DAYS: Final = 31
_MOST_HOURS: Final = 24
_NAME: Final = r"[^\W\d_a-zß-öø-ÿ][\w'’]*"
_BEGINS: Final = r"(?<![\w.,:/-])"
_IN_NO_WORD: Final = r"(?<![\w.,:/])(?<!\d['’])"
_ENDS: Final = r"(?![\w/]|[.,:'’-]\d)"
_SPACES: Final = re.compile(r"[^\S\n]+")

_Rule = tuple[str, Callable[[re.Match[str]], str]]


class SpokenForm:
    """Turns written sentences of one campaign into what a voice says.

    Args:
        language: The campaign's (BCP 47).
        units: The campaign's own measures. They outrank those of the language.
    """

    def __init__(self, language: str, units: Units | None = None) -> None:
        self._language = language
        self._data = lexicon("spoken", language)
        self._units: Units = {**self._table("units"), **(units or {})}
        self._nouns_have_capitals = capitalises_nouns(language)
        rules = self._rules() if self._data else ()
        self._patterns = [(re.compile(pattern), said) for pattern, said in rules]

    def __call__(self, written: str) -> str:
        """Return what is said. If it differs from what is written, its white space is single spaces."""
        text = plain = _SPACES.sub(" ", written)
        for pattern, said in self._patterns:
            text = pattern.sub(said, text)
        return written if text == plain else _SPACES.sub(" ", text).strip()

    def _table(self, name: str) -> dict[str, Any]:
        return self._data.value(name) or {}

    def _listed(self, table: str, key: str) -> list[str]:
        words: str = self._table(table).get(key, "")
        return words.split(", ") if words else []

    def _rules(self) -> list[_Rule]:
        """Return a pattern and what it becomes for each form, in the order in which they apply."""
        point, group = re.escape(self._data.value("decimal")), re.escape(self._data.value("thousands"))
        number = rf"(?:\d{{1,3}}(?:[{group}'’]\d{{3}})+(?!\d)|\d+)(?:{point}\d+)?"
        sign = any_of(each for each in self._units if not each[-1].isalnum() and each[0] not in "%°")
        suffix = any_of(each for each in self._units if not each[-1].isalnum())
        months = any_of(self._data.words("months"))
        # In German, a full stop makes an ordinal of a number: "am 3. Mai", "Aldric III.".
        self._stop = r"\." if self._data.words("ordinal_n") else "(?!)"
        nth = rf"(?:{any_of(self._data.words('ordinal_suffixes'))}|{self._stop})"
        halves, after = any_of(self._listed("time", "halves")), any_of(self._listed("time", "after"))
        titles = lexicon("titles", self._language).words("abbreviations") & self._table("abbreviations").keys()
        no_year = _ENDS if self._data.words("ordinal_n") else "(?!)"
        day, year = r"(?P<day>[0-3]?\d)", rf"(?P<year>\d{{4}}){_ENDS}"
        return [
            (rf"(?<![\w.])(?P<short>(?i:{_dotted(self._table('abbreviations'))}))\.(?!\w)", self._abbreviation),
            (rf"(?<!\w)(?P<short>(?i:{any_of(titles)}))(?= {_NAME})", self._abbreviation),
            (rf"(?<!\w)(?P<short>(?i:{any_of(self._table('before_numbers'))}))\. ?(?=\d)", self._before_number),
            (r"(?<=\d) ?(?P<part>[¼½¾])", self._part),
            (rf"{_BEGINS}(?P<year>\d{{4}})-(?P<number>[01]?\d)-{day}{_ENDS}", self._date),
            (rf"{_BEGINS}{day}[.](?P<number>[01]?\d)[.](?:{year}|{no_year})", self._date),
            (rf"{_BEGINS}(?:the )?{day}{nth}?(?: of)? (?P<month>{months})(?!\w)(?:,? {year})?", self._date),
            (rf"\b(?P<month>{months}) {day}(?!\d){nth}?{_ENDS}(?:,? {year})?", self._month_first),
            (rf"\b(?P<month>{months}) {year}", lambda found: f"{found['month']}{self._year_of(found)}"),
            (
                rf"{_BEGINS}(?P<hour>[012]?\d):(?P<minute>[0-5]\d)(?: ?(?P<half>{halves})|(?i: {after}))?{_ENDS}",
                self._time,
            ),
            (rf"{_BEGINS}(?P<nth>\d+){nth}(?!\w)(?P<more> ?)", self._ordinal),
            (
                rf"(?P<minus>(?<!\S)[-−](?=\d))?{_IN_NO_WORD}(?:(?P<sign>{sign}) ?)?(?P<number>{number})"
                rf"(?:(?: ?(?:{suffix}))? ?[–-] ?(?:{sign})?(?P<to>{number}))?"
                rf"(?:[ -]?(?P<unit>(?i:{any_of(self._units)}))(?![\w]|\.\w)(?:\.(?= [a-z\d]))?)?{_ENDS}",
                self._quantity,
            ),
            (rf"\b(?P<name>{_NAME}) (?P<roman>[IVX]+)(?:{self._stop})?(?!\w)", self._ruler),
            (any_of(self._table("symbols")), lambda found: f" {self._table('symbols')[found[0]]} "),
        ]

    def _abbreviation(self, found: re.Match[str]) -> str:
        known: dict[str, str | list[str]] = self._table("abbreviations")
        meant = known.get(_key(found["short"]), str(found["short"]))
        following = found.string[found.end() :].lstrip()
        if isinstance(meant, list):
            meant = meant[0] if following[:1].isupper() else meant[1]
        ends = found[0].endswith(".") and not any(each.isalnum() for each in following)
        return _as_begun(found["short"], meant) + ("." if ends else "")

    def _before_number(self, found: re.Match[str]) -> str:
        return _as_begun(found["short"], self._table("before_numbers")[_key(found["short"])]) + " "

    # Dates and times.

    def _date(self, found: re.Match[str], *, form: str = "day_month") -> str:
        months = self._data.value("months").split(", ")
        parts = found.groupdict()
        n_month, n_day = int(parts.get("number") or 1), int(parts["day"])
        if not (1 <= n_month <= len(months) and 1 <= n_day <= _MOST_DAYS):
            return found[0]
        month = parts.get("month") or months[n_month - 1]
        template: str = self._data.value(form) or found[0]
        return template.format(day=self._nth(n_day, found), month=month) + self._year_of(found)

    def _month_first(self, found: re.Match[str]) -> str:
        return self._date(found, form="month_day")

    def _year_of(self, found: re.Match[str]) -> str:
        return f" {self._words(found['year'], to='year')}" if found["year"] else ""

    def _time(self, found: re.Match[str]) -> str:
        hour, minute = int(found["hour"]), int(found["minute"])
        if hour > _MOST_HOURS:
            return found[0]
        form = ("full" if not found["half"] else "sharp") if not minute else "early" if minute < 10 else "other"
        forms = self._table("time")
        said: str = forms.get(form, forms["full"]).format(
            hour=forms.get("one", self._words("1")) if hour == 1 else self._words(str(hour)),
            minute=self._words(str(minute)),
        )
        return f"{said} {found['half']}" if found["half"] else said

    # Numbers.

    def _part(self, found: re.Match[str]) -> str:
        return f"{self._data.value('decimal')}{str(unicodedata.numeric(found['part'])).partition('.')[2]}"

    def _words(self, digits: str, *, to: str = "cardinal") -> str:
        """Return a number in words, without the commas that would make a voice pause."""
        number = float(digits) if "." in digits else int(digits)
        said: str = num2words(digits if "." in digits else number, lang=self._data.value("numbers"), to=to)
        return said.replace(",", "")

    def _nth(self, number: int, found: re.Match[str]) -> str:
        """Return an ordinal with the ending that the word before it demands."""
        said, before = self._words(str(number), to="ordinal"), _word_before(found)
        if before in self._data.words("ordinal_n"):
            return f"{said}n"
        return said if not self._data.words("ordinal_n") or before in self._data.words("ordinal_e") else f"{said}r"

    def _ordinal(self, found: re.Match[str]) -> str:
        if not found[0].endswith((".", ". ")):
            return self._nth(int(found["nth"]), found) + found["more"]
        # "am 3. Tag", and not the end of a sentence: "Es kostet 40. Dann ..."
        is_ordinal = _word_before(found) in self._data.words("ordinal_n") | self._data.words("ordinal_e")
        return self._nth(int(found["nth"]), found) + found["more"] if is_ordinal and found["more"] else found[0]

    def _quantity(self, found: re.Match[str]) -> str:
        unit = self._unit(found["unit"] or found["sign"] or "")
        numbers = [each for each in (found["number"], found["to"]) if each]
        if any(len(each) > _MOST_DIGITS or (each[0] == "0" and each[1:2].isdigit()) for each in numbers):
            return found[0]
        if unit and numbers == ["1"] and not found["minus"]:
            return unit[0]
        to = "year" if self._is_year(found, numbers) else "cardinal"
        said = f" {self._data.value('range')} ".join(self._words(self._plain(each), to=to) for each in numbers)
        minus = f"{self._data.value('minus')} " if found["minus"] else ""
        return f"{minus}{said} {unit[1]}" if unit else f"{minus}{said}"

    def _unit(self, written: str) -> tuple[str, str] | None:
        """Return the words of a measure. Capitals matter only where two measures differ by nothing else."""
        folded = {unit.casefold(): words for unit, words in self._units.items()}
        return self._units.get(written) or folded.get(written.casefold())

    def _plain(self, number: str) -> str:
        """Return the digits with a decimal point and without separators."""
        whole, _, part = number.partition(self._data.value("decimal"))
        whole = "".join(each for each in whole if each.isdigit())
        return f"{whole}.{part}" if part else whole

    def _is_year(self, found: re.Match[str], numbers: list[str]) -> bool:
        if found["unit"] or found["sign"] or not all(each.isdigit() and int(each) in _YEARS for each in numbers):
            return False
        if len(numbers) > 1:
            return True
        before = _word_before(found)
        if before in self._data.words("year"):
            return True
        following = re.match(r" ([^\W\d_]+)", found.string[found.end() :])
        # "In 1500 steps" counts; what counts is a noun, which has a capital in German.
        is_noun = following is not None and following[1].islower() != self._nouns_have_capitals
        is_counted = following is not None and is_noun and not self._is_small(following[1])
        return before in self._data.words("before_years") and not is_counted

    def _is_small(self, word: str) -> bool:
        """Return whether it is a word such as "the" or "was", and so nothing that is counted."""
        return fold(word) in vocabulary_of(self._language).stop

    # Rulers, and other things with a Roman number.

    def _ruler(self, found: re.Match[str]) -> str:
        name, roman = found["name"], found["roman"]
        number = _roman(roman)
        following = found.string[found.end() :]
        if self._is_small(name) or not number or (roman == "I" and re.match(r"\s*\w|['’]", following)):
            return found[0]  # "so I went"
        vocabulary = vocabulary_of(self._language)
        has_stop = found[0].endswith(".")
        ends = "." if has_stop and not following.strip() else ""
        is_name = not vocabulary.is_ordinary(fold(name)) or (has_stop and not ends)
        if not is_name:
            # "Chapter III", but "Tunnel V" may be a letter.
            return f"{name} {self._words(str(number))}{ends}" if len(roman) > 1 else found[0]
        forms = self._table("rulers")
        before = _words_before(found)
        form = "feminine" if {*before, name.lower()} & {*self._listed("rulers", "feminine_titles")} else "masculine"
        if {*before} & {*self._listed("rulers", "dative")} and f"{form}_dative" in forms:
            form += "_dative"
        ordinal = self._words(str(number), to="ordinal").capitalize()
        return f"{name} {forms.get(form, forms['masculine']).format(ordinal=ordinal)}{ends}"


def _dotted(keys: Iterable[str]) -> str:
    """Return a pattern for abbreviations such as "z. B", with or without a space inside."""
    return "|".join(re.escape(key).replace(r"\.", r"\. ?") for key in sorted(keys, key=len, reverse=True))


def _key(short: str) -> str:
    return short.lower().replace(" ", "")


def _as_begun(short: str, meant: str) -> str:
    """Return the meaning with a capital letter if the abbreviation has one."""
    return meant[:1].upper() + meant[1:] if short[:1].isupper() else meant


def _words_before(found: re.Match[str]) -> list[str]:
    """Return the last two words before a match, in lower case, if nothing but spaces separates them from it."""
    before = found.string[: found.start()].rstrip()
    return [word.lower() for word in before.split()[-2:]] if before[-1:].isalnum() else []


def _word_before(found: re.Match[str]) -> str:
    return next(iter(reversed(_words_before(found))), "")


def _roman(numeral: str) -> int:
    """Return the value of a Roman number up to 39, or 0 if it is none.

    >>> _roman("XIV"), _roman("IIII"), _roman("VX")
    (14, 0, 0)
    """
    tens, ones = len(numeral) - len(numeral.lstrip("X")), numeral.lstrip("X")
    return 10 * tens + _ONES.index(ones) if ones in _ONES and tens <= 3 else 0
