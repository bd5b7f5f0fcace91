"""Provide the fixed words of prompts in the campaign's language, and the form of lines, facts and recalled items.

Short sentences, the same for all: a small model copies the form of what it reads, and forgets what is long.

A recalled item says when it was said, and has the day that was meant instead of words such as "yesterday". Both need no
database, and a text is read once for the story day on which it was said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from itertools import accumulate
from typing import Final, Literal, TypeVar, cast

from pydantic import TypeAdapter

from glyphoxa.domain.calendar import CampaignTimes, StoryCalendar
from glyphoxa.domain.campaign import Campaign, Exchange
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledSummary, RecalledUtterance
from glyphoxa.domain.turn_record import Fault
from glyphoxa.language.language_data import lexicon, texts
from glyphoxa.language.prompt_quotes import as_label, as_said
from glyphoxa.language.sentence_form import only_states
from glyphoxa.language.text import language_of
from glyphoxa.language.words import Put, applied, words
from glyphoxa.recall.time_reader import UNIT_DAYS, TimeWords, names_of_calendar, names_pattern, read_words
from glyphoxa.recall.transcript_memory import TranscriptMemory

FACTS: Final = "Facts: "
REMEMBERED: Final = "Remembered: "
SCENE: Final = "Scene: "
PAST: Final = "Earlier: "
DIRECTION: Final = "For this answer: "
Cue = Literal["language", "brief", "fact"]
"""For a question after an answer in another language, or one that needs a single sentence."""


def said_line(speaker_name: str, text: str, *, to: str = "") -> str:
    """Return a line of the transcript."""
    who = as_label(speaker_name)
    return f"{who} says to {as_label(to)}: {as_said(text)}" if to else f"{who} says: {as_said(text)}"


OCCUPATIONS: Final = lexicon("prompt").words("occupations")
"""Attributes for somebody's occupation."""
QUEST_OVER: Final = lexicon("prompt").words("quest_over")
"""A quest with such a `status` is not active."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The wording of one language.

    Attributes:
        persona: For an NPC whose author wrote none.
        persona_of_trade: The same for an NPC with a known occupation, with `{name}` and `{occupation}`.
        known_of_you: Before the facts in a drafted persona, `{facts}`.
        frame: After every persona.
        keeps: Before an NPC's own secrets.
        so_far: Before the summary of this session.
        is_here: After the names of those present, one and several.
        to_do: Before active quests.
        speaks: For an NPC that does not speak every language, with `{languages}`.
        coined: Before terms without a meaning, with `{terms}`.
        somebody: The speaker of the examples.
        unknown_then: An example for a story of old times; as all, with the places `{name}`, `{occupation}`, `{place}`.
        works: An example for an NPC with a known occupation, `is_at` for one with a known place.
        examples: The others, for an NPC that has none. They fit any time and place, and invent no name. A small model
            copies the last ones most, so an example that answers from facts comes last.
        at_a_loss: Said when nothing of a reply may be said.
        noted: The same in reply to a statement.
        too_late: Said when the answer does not come.
        fillers: Sounds of an NPC without its own, while its answer is on its way.
        deflects: Said instead of a secret of its own.
        knows_nothing: Said instead of an answer that it does not know.
        of_us: A sentence of the bible as it is embedded, so that it is about those who speak.
        changes_subject: Said instead of a sentence about a topic that the group does not play.
        redirect: Directions for an answer when a player brings up such a topic, without its name.
        veil: The direction for a topic that may happen, but is not described.
        sessions_ago: When something was said: in this session, the last one, ... The last form is for more, `{n}`.
    """

    persona: str
    persona_of_trade: str
    known_of_you: str
    frame: str
    keeps: str
    so_far: str
    is_here: tuple[str, str]
    joins: str
    to_do: str
    speaks: str
    coined: str
    somebody: str
    unknown_then: Exchange
    works: Exchange
    is_at: Exchange
    examples: tuple[Exchange, ...]
    at_a_loss: tuple[str, ...]
    noted: tuple[str, ...]
    too_late: tuple[str, ...]
    fillers: tuple[str, ...]
    deflects: tuple[str, ...]
    knows_nothing: tuple[str, ...]
    changes_subject: tuple[str, ...]
    redirect: tuple[str, ...]
    veil: str
    of_us: str
    sessions_ago: tuple[str, ...]

    def here(self, names: Sequence[str]) -> str:
        """Return a sentence with those present; empty for nobody.

        >>> wording("en").here(["Mirelle", "Tamsin", "Bran"])
        'Mirelle, Tamsin and Bran are here.'
        """
        return f"{self._listed(names)} {self.is_here[len(names) > 1]}." if names else ""

    def speaks_only(self, languages: Sequence[str]) -> str:
        """Return a sentence that an NPC speaks these languages and no other.

        >>> wording("en").speaks_only(["English", "Dwarvish"])
        'You speak only English and Dwarvish. To any other language you say that you do not understand it.'
        """
        return self.speaks.format(languages=self._listed(languages))

    def said_here(self, terms: Sequence[str]) -> str:
        """Return a sentence with terms of the campaign; empty for none.

        >>> wording("en").said_here(["ORACLE", "Geometers"])
        'Words of this world: ORACLE, Geometers.'
        """
        return self.coined.format(terms=", ".join(terms)) if terms else ""

    def _listed(self, names: Sequence[str]) -> str:
        *first, last = names
        return f"{', '.join(first)} {self.joins} {last}" if first else last


_WORDING: Final = TypeAdapter(Wording)


@cache
def wording(language: str) -> Wording:
    """Return the wording of a campaign's language (BCP 47); English if the language has none."""
    listed = texts("prompt", language)
    return _WORDING.validate_python({each.name: listed.value(each.name) for each in fields(Wording)})


def cue_for(question: str, cue: Cue, **values: str) -> str:
    """Return the cue that follows a question, in its language; empty if the question shows none."""
    language = language_of(question)
    return str(lexicon("prompt", language).value(f"{cue}_cue")).format(**values) if language else ""


# A line in character for when nothing of a reply may be said, chosen without a model.


class StandIns:
    """The lines of one NPC, in turn: no line is repeated at once.

    Args:
        language: The campaign's, for a question that shows none.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._used: Counter[tuple[str, Fault | None]] = Counter()

    def line(self, question: str, fault: Fault | None, told: Sequence[str] = ()) -> str:
        """Return a line in the language of the question.

        Args:
            fault: Why there is no reply, if that is known.
            told: Answers from what the asker told; see `HotContext.told`.
        """
        if told and fault not in (Fault.SECRET, Fault.SAFETY):
            return told[0]
        language = language_of(question) or self._language
        lines = wording(language)
        if only_states(question) and fault is not Fault.SAFETY:
            return self._next_of(lines.noted, language, None)
        of_fault: dict[Fault | None, tuple[str, ...]] = {
            Fault.SECRET: lines.deflects,
            Fault.UNFOUNDED: lines.knows_nothing,
            Fault.SAFETY: lines.changes_subject,
        }
        why = fault if fault in of_fault else None
        return self._next_of(of_fault.get(why, lines.at_a_loss), language, why)

    def shrug(self, lines: Sequence[str]) -> str:
        """Return one of the lines for a question that the NPC knows nothing about."""
        return self._next_of(lines, self._language, Fault.UNFOUNDED)

    def _next_of(self, lines: Sequence[str], language: str, why: Fault | None) -> str:
        n_used = self._used[language, why]
        self._used[language, why] += 1
        return lines[n_used % len(lines)]


# When a recalled item was said, and the days that it means.

Item = TypeVar("Item", bound=Recalled)
_MOST_EXACT_DAYS: Final = 14
"""A longer unit, such as a month, is seldom meant to the day."""


@dataclass(frozen=True, slots=True)
class SaidWhen:
    """
    Args:
        session: The present one.
        transcript: None without long-term memory.
    """

    campaign: Campaign
    session: SessionId
    transcript: TranscriptMemory | None

    def today(self) -> str:
        """Return the story day in words; empty if it is unknown."""
        return self.campaign.story_day if self.transcript is None else self.transcript.story_day

    def dated(self, one: Item) -> Item:
        """Return it with its story day or its session, and with days instead of "yesterday".

        A fact holds at any time, so of facts only a summary has a day.
        """
        if self.transcript is None:
            return one
        times, numbers = self.transcript.times, self.transcript.session_numbers
        is_fact = isinstance(one, RecalledFact)
        is_summary = one.is_summary if isinstance(one, RecalledFact) else isinstance(one, RecalledSummary)
        # A fact was learned at the end of its session, and a summary is shown with its first day.
        day, text = times.day_at(one.session_id, None if is_fact and is_summary else one.at_ms), one.text
        if times.calendar is None or day is None or (one.session_id, day) == (self.session, times.today):
            when = self._sessions_ago(one.session_id, numbers)
        else:
            days = story_days(times.calendar, self.campaign.language)
            when = days.in_words(day)
            # The sentences of a summary are of several days; `Teller` has replaced their words for days.
            is_of_one = not is_summary or len(times.told.get(one.session_id or "", ())) == 1
            text = with_days(text, day, days) if is_of_one else text
        if isinstance(one, RecalledUtterance):
            return replace(one, text=text, when=when, verbatim=one.text if text != one.text else "")
        return replace(one, text=f"({when}) {text}" if when and is_summary else text)

    def _sessions_ago(self, session: SessionId | None, numbers: Callable[[], Mapping[SessionId, int]]) -> str:
        ago, known = wording(self.campaign.language).sessions_ago, numbers()
        present = known.get(self.session, len(known) + 1)
        n = 0 if session == self.session else present - known.get(session or SessionId(""), present + 1)
        return "" if n < 0 else ago[min(n, len(ago) - 1)].format(n=n)


def days_in(text: str, session: SessionId, at_ms: int, *, times: CampaignTimes, language: str) -> str:
    """Return a text that was said at a time in a session with story days instead of words for them."""
    day = times.day_at(session, at_ms)
    if times.calendar is None or day is None:
        return text
    return with_days(text, day, story_days(times.calendar, language))


@dataclass(frozen=True, slots=True, eq=False)
class _StoryDays:
    """The words for days of one story in one language."""

    calendar: StoryCalendar
    known: TimeWords
    patterns: Sequence[tuple[re.Pattern[str], int, str]]
    lengths: Mapping[str, float]

    def in_words(self, day: int) -> str:
        text = self.calendar.in_words(day)
        return text if self.calendar.months else self.known.said["counted"].format(day=text)

    def apart(self, said: Mapping[str, str | None], step: int, day: int, *, is_over: bool) -> tuple[int, bool] | None:
        """Return how many days after `day` a match means, and whether exactly; None if it means none."""
        if (weekday := said.get("month")) is not None:
            n = (step or (-1 if is_over else 1)) * len(self.calendar.weekdays)
            nth = names_of_calendar(self.calendar, self.known).weekdays[weekday]
            return (nth - self.calendar.weekday_of(day)) % n or n, True
        if "u" not in said:
            return step, True
        length, n = self.lengths.get(self.known.values["u"][said["u"] or ""]), self.known.number(said.get("n"))
        if length is None or (is_over and step > 0 and "n" in said):
            return None  # a session, and "we crossed the fen in three days"
        is_exact = length <= _MOST_EXACT_DAYS and said.get("n") not in self.known.lists["vague"]
        return step * round(length * n), is_exact


@lru_cache(maxsize=16)
def story_days(calendar: StoryCalendar, language: str) -> _StoryDays:
    """Return the words for days of a story; the English ones for a language without any."""
    known = read_words(language) or cast(TimeWords, read_words("en"))
    weekdays = names_of_calendar(calendar, known).weekdays
    patterns = [(names_pattern(text, weekdays), step, form) for text, step, form in known.said["days"]]
    own = {"year": calendar.days_a_year, "month": calendar.days_a_year / max(len(calendar.months), 1)}
    lengths = UNIT_DAYS | (own if calendar.months else {}) | ({"week": len(weekdays)} if weekdays else {})
    return _StoryDays(calendar, known, patterns, lengths)


@lru_cache(maxsize=4_096)
def with_days(text: str, day: int, days: _StoryDays) -> str:
    """Return a text with story days instead of words for them.

    Args:
        day: The story day on which it was said.
    """
    spoken = words(text)
    joined = " ".join(word.full for word in spoken)
    starts = [0, *accumulate(len(word.full) + 1 for word in spoken)]
    is_over = re.search(days.known.said["over"], joined) is not None
    left, found = set(range(len(spoken))), list[Put]()
    for pattern, step, form in days.patterns:
        for match in pattern.finditer(joined):
            at, end = starts.index(match.start()), starts.index(match.end() + 1)
            first, apart = spoken[at], days.apart(match.groupdict(), step, day, is_over=is_over)
            is_name = first.is_capital and not first.opens
            is_one = left.issuperset(range(at, end)) and all(word.joins for word in spoken[at + 1 : end])
            if apart is None or is_name or not is_one:
                continue
            left.difference_update(range(at, end))
            is_bare = at > 0 and spoken[at - 1].folded in days.known.lists["bare_after"]
            pattern_of = "{day}" if is_bare else form if apart[1] else days.known.said["about"]
            then = pattern_of.format(day=days.in_words(day + apart[0]), **match.groupdict())
            then = then[:1].upper() + then[1:] if first.is_capital else then
            found.append(Put(first.start, spoken[end - 1].end, then))
    return applied(text, sorted(found))
