"""Questions as they are asked at a table, and the time that is read from them. It is Sunday 22 November 2026, 20:00."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.calendar import StoryCalendar, StoryDays
from glyphoxa.recall.temporal.ask import NO_TIME, Anchor, SessionReference, TimeAsk
from glyphoxa.recall.temporal.days import DAY_MS, Days
from glyphoxa.recall.temporal.reader import MOST_CHARACTERS, read_time, tells_time
from glyphoxa.recall.temporal.story import Story
from glyphoxa.recall.temporal.words import TimeWords
from glyphoxa.recall.temporal.words_de import GERMAN
from glyphoxa.recall.temporal.words_en import ENGLISH
from glyphoxa.speech.language.words import fold
from tests.support.proof import n_examples


def ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp() * 1000)


NOW = ms("2026-11-22 20:00")


def read(question: str, language: str = "en", *, zone: tzinfo = UTC, story: Story | None = None) -> TimeAsk:
    return read_time(question, language=language, days=Days(NOW, zone), story=story)


def window(ask: TimeAsk) -> tuple[str | None, str | None] | None:
    """Its first and its last day."""
    if ask.window is None:
        return None
    first, until = ask.window.from_ms, ask.window.until_ms
    return None if first is None else day(first), None if until is None else day(until - 1)


def day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did Mirelle find on 3 June, 2023?", "2023-06-03", "2023-06-03"),
        ("the 3rd of June", "2026-06-03", "2026-06-03"),
        ("What did we do on May 8th?", "2026-05-08", "2026-05-08"),
        ("on the twenty-second of May", "2026-05-22", "2026-05-22"),
        ("on the second of May", "2026-05-02", "2026-05-02"),
        ("on 24 December", "2025-12-24", "2025-12-24"),
        ("on 2023-05-08", "2023-05-08", "2023-05-08"),
        ("What happened in May 2023?", "2023-05-01", "2023-05-31"),
        ("Did we meet in May?", "2026-05-01", "2026-05-31"),
        ("Was it in December?", "2025-12-01", "2025-12-31"),
        ("Where were we in 2022?", "2022-01-01", "2022-12-31"),
        ("in the summer of 2022", "2022-06-01", "2022-08-29"),
        ("Was it during the summer?", "2026-06-01", "2026-08-29"),
        ("early in August 2023", "2023-08-01", "2023-08-11"),
        ("at the end of August 2023", "2023-08-21", "2023-08-31"),
        ("the last week of August 2023", "2023-08-21", "2023-08-31"),
        ("before August 11, 2023", None, "2023-08-10"),
        ("after 11 August 2023", "2023-08-12", None),
        ("since May 2023", "2023-05-01", None),
        ("as of December 2023", None, "2023-12-31"),
        ("the week before 3 August 2023", "2023-07-25", "2023-08-03"),
        ("two weeks before August 11, 2023", "2023-07-24", "2023-08-11"),
        ("last year, as you told us on June 26, 2023", "2023-06-26", "2023-06-26"),
        ("What did he say yesterday?", "2026-11-21", "2026-11-21"),
        ("the day before yesterday", "2026-11-20", "2026-11-20"),
        ("last night", "2026-11-21", "2026-11-22"),
        ("this morning", "2026-11-22", "2026-11-22"),
        ("Who came today?", "2026-11-22", "2026-11-22"),
        ("last Tuesday", "2026-11-17", "2026-11-17"),
        ("on Sunday", "2026-11-15", "2026-11-15"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("this week", "2026-11-16", "2026-11-22"),
        ("last weekend", "2026-11-13", "2026-11-15"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("last summer", "2026-06-01", "2026-08-29"),
        ("three days ago", "2026-11-19", "2026-11-20"),
        ("You promised two weeks ago", "2026-11-05", "2026-11-12"),
        ("a couple of days ago", "2026-11-19", "2026-11-21"),
        ("Did the merchant come by last night?", "2026-11-21", "2026-11-22"),
        ("by August 2023", None, "2023-08-31"),
        ("a month ago", "2026-10-08", "2026-11-07"),
        ("in the last two weeks", "2026-11-08", None),
        ("since last week", "2026-11-09", None),
        ("just now", "2026-11-22", "2026-11-22"),
    ],
)
def test_a_span_of_time_is_read(question: str, first: str | None, last: str | None) -> None:
    assert window(read(question)) == (first, last)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("Was geschah am 8. Mai 2023?", "2023-05-08", "2023-05-08"),
        ("am dritten Juni", "2026-06-03", "2026-06-03"),
        ("8.5.2023", "2023-05-08", "2023-05-08"),
        ("im März", "2026-03-01", "2026-03-31"),
        ("Anfang Mai", "2026-05-01", "2026-05-11"),
        ("im Sommer 2022", "2022-06-01", "2022-08-29"),
        ("letzten Sommer", "2026-06-01", "2026-08-29"),
        ("zwei Wochen vor dem 11. August 2023", "2023-07-24", "2023-08-11"),
        ("Was hat er gestern gesagt?", "2026-11-21", "2026-11-21"),
        ("vorgestern", "2026-11-20", "2026-11-20"),
        ("gestern Abend", "2026-11-21", "2026-11-22"),
        ("heute Morgen", "2026-11-22", "2026-11-22"),
        ("letzten Dienstag", "2026-11-17", "2026-11-17"),
        ("letzte Woche", "2026-11-09", "2026-11-15"),
        ("seit letzter Woche", "2026-11-09", None),
        ("im letzten Monat", "2026-10-01", "2026-10-31"),
        ("letztes Jahr", "2025-01-01", "2025-12-31"),
        ("vor drei Tagen", "2026-11-19", "2026-11-20"),
        ("vor zwei Wochen", "2026-11-05", "2026-11-12"),
        ("vor einem Monat", "2026-10-08", "2026-11-07"),
        ("in den letzten zwei Wochen", "2026-11-08", None),
    ],
)
def test_a_span_of_time_is_read_at_a_german_table(question: str, first: str | None, last: str | None) -> None:
    assert window(read(question, "de")) == (first, last)


@pytest.mark.parametrize(
    ("question", "language", "place"),
    [
        ("What did she say last session?", "en", SessionReference("session", back=1)),
        ("What happened to the king last time?", "en", SessionReference("session", back=1)),
        ("Who was there two sessions ago?", "en", SessionReference("session", back=2)),
        ("the session before last", "en", SessionReference("session", back=2)),
        ("earlier this session", "en", SessionReference("session", back=0)),
        ("at the end of last session", "en", SessionReference("session", back=1, part="end")),
        ("since last session", "en", SessionReference("session", back=1, relation="since")),
        ("before last session", "en", SessionReference("session", back=1, relation="before")),
        ("a few sessions ago", "en", SessionReference("long_ago")),
        ("three sessions back", "en", SessionReference("session", back=3)),
        ("at the start of the session", "en", SessionReference("session", back=0, part="beginning")),
        ("What was the first thing I asked you?", "en", SessionReference("first")),
        ("vor ein paar Sitzungen", "de", SessionReference("long_ago")),
        ("am Anfang der Sitzung", "de", SessionReference("session", back=0, part="beginning")),
        ("in session 3", "en", SessionReference("session", number=3)),
        ("in our first session", "en", SessionReference("session", number=1)),
        ("in the last three sessions", "en", SessionReference("recent", back=3)),
        ("Do you remember the first time we met?", "en", SessionReference("first")),
        ("Where did we first meet?", "en", SessionReference("first")),
        ("the last time we saw Grimjaw", "en", SessionReference("latest")),
        ("Where did you last see him?", "en", SessionReference("latest")),
        ("in the beginning", "en", SessionReference("opening")),
        ("You mentioned a key a while ago", "en", SessionReference("long_ago")),
        ("Have you slept recently?", "en", SessionReference("recent")),
        ("Where did we leave off?", "en", SessionReference("session", back=1, part="end")),
        ("Wer war letzte Sitzung da?", "de", SessionReference("session", back=1)),
        ("vor zwei Sitzungen", "de", SessionReference("session", back=2)),
        ("in der vorletzten Sitzung", "de", SessionReference("session", back=2)),
        ("am Ende der letzten Sitzung", "de", SessionReference("session", back=1, part="end")),
        ("vorhin hast du gelogen", "de", SessionReference("session", back=0)),
        ("in der dritten Sitzung", "de", SessionReference("session", number=3)),
        ("das erste Mal", "de", SessionReference("first")),
        ("Wann habt ihr ihn zuletzt gesehen?", "de", SessionReference("latest")),
        ("Wo waren wir zuletzt?", "de", SessionReference("session", back=1, part="end")),
        ("ganz am Anfang", "de", SessionReference("opening")),
        ("damals", "de", SessionReference("long_ago")),
        ("neulich", "de", SessionReference("recent")),
    ],
)
def test_a_place_in_the_order_of_sessions_is_read(question: str, language: str, place: SessionReference) -> None:
    assert read(question, language).place == place


@pytest.mark.parametrize(
    ("question", "language", "anchor"),
    [
        ("What did you say before the feast?", "en", Anchor("the feast", "before")),
        ("What did we do after we left Ironhold?", "en", Anchor("we left Ironhold", "after")),
        ("When we met the dragon, what did it want?", "en", Anchor("we met the dragon", "during")),
        ("when we met the dragon what did it want", "en", Anchor("we met the dragon", "during")),
        ("When we met the dragon", "en", Anchor("we met the dragon", "during")),
        ("Where were you when the bridge fell?", "en", Anchor("the bridge fell", "during")),
        ("Do you remember when we met the dragon?", "en", Anchor("we met the dragon", "during")),
        ("What did you hear after the siege on 9 February 2021?", "en", Anchor("the siege", "after")),
        ("Who has come since the fire", "en", Anchor("the fire", "since")),
        ("What did you see during the siege of Ironhold last week?", "en", Anchor("the siege of Ironhold", "during")),
        ("Was war, während ich schlief?", "de", Anchor("ich schlief", "during")),
        ("bevor der König starb sag mir", "de", Anchor("der König starb", "before")),
        ("Was hast du vor dem Fest gesagt?", "de", Anchor("dem Fest gesagt", "before")),
        ("Nachdem wir Ironhold verlassen haben, wer kam?", "de", Anchor("wir Ironhold verlassen", "after")),
        ("Wo warst du, als die Brücke fiel?", "de", Anchor("die Brücke fiel", "during")),
    ],
)
def test_the_event_by_which_a_time_is_told_is_given_in_its_own_words(
    question: str, language: str, anchor: Anchor
) -> None:
    assert read(question, language).anchor == anchor


@pytest.mark.parametrize(
    ("question", "language", "asks"),
    [
        ("When did we meet the dragon?", "en", {"asks_for_time"}),
        ("When Joren has lost his ship?", "en", {"asks_for_time"}),
        ("Do you know when the caravan left?", "en", {"asks_for_time"}),
        ("What day did we arrive?", "en", {"asks_for_time"}),
        ("How long ago did we meet?", "en", {"asks_for_time"}),
        ("How long have you known Mira?", "en", {"asks_how_long"}),
        ("How many times have we died?", "en", {"asks_how_often"}),
        ("What happened last session?", "en", {"asks_for_recap"}),
        ("What happened so far?", "en", {"asks_for_recap"}),
        ("Remind me what we did last time", "en", {"asks_for_recap"}),
        ("Last session, what happened?", "en", {"asks_for_recap"}),
        ("Give us a recap", "en", {"asks_for_recap"}),
        ("Tell me everything that happened since the siege", "en", {"asks_for_recap"}),
        ("Catch me up", "en", {"asks_for_recap"}),
        ("What have we done since last session?", "en", {"asks_for_recap"}),
        ("What did we do after we left Ironhold?", "en", {"asks_for_recap"}),
        ("In what order did we visit the towns?", "en", {"asks_for_order"}),
        ("Which came first, the fire or the flood?", "en", {"asks_for_order"}),
        ("Which did you forge more recently, the axe or the sword?", "en", {"asks_for_order"}),
        ("What time did we arrive?", "en", {"asks_for_time"}),
        ("Wann haben wir den Drachen getroffen?", "de", {"asks_for_time"}),
        ("Wie lange kennst du Mira?", "de", {"asks_how_long"}),
        ("Wie oft betest du?", "de", {"asks_how_often"}),
        ("Was ist letztes Mal passiert?", "de", {"asks_for_recap"}),
        ("Fass zusammen, was bisher geschah", "de", {"asks_for_recap"}),
        ("Was haben wir gestern gemacht?", "de", {"asks_for_recap"}),
        ("In welcher Reihenfolge war das?", "de", {"asks_for_order"}),
        ("Was kam zuerst, das Feuer oder die Flut?", "de", {"asks_for_order"}),
    ],
)
def test_what_the_answer_must_hold_is_read(question: str, language: str, asks: set[str]) -> None:
    ask = read(question, language)
    kinds = ("asks_for_time", "asks_how_long", "asks_how_often", "asks_for_recap", "asks_for_order")
    assert {kind for kind in kinds if getattr(ask, kind)} == asks


@pytest.mark.parametrize(
    "question",
    [
        "Summarize what we know about the cult",
        "What happened to the king?",
        "What happened to the king last time?",
        "What did Bart do with the key yesterday?",
    ],
)
def test_what_happened_to_somebody_is_no_recap(question: str) -> None:
    assert not read(question).asks_for_recap


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("You may enter.", "en"),
        ("May we enter?", "en"),
        ("the second may go", "en"),
        ("Give me a second.", "en"),
        ("March on!", "en"),
        ("We march 3 miles.", "en"),
        ("in march formation", "en"),
        ("the second march", "en"),
        ("an august company", "en"),
        ("a spring in the fall of the cliff", "en"),
        ("the last door on the left", "en"),
        ("I have 2023 gold pieces", "en"),
        ("Have we met before?", "en"),
        ("What is in the chest?", "en"),
        ("What time magic do you use?", "en"),
        ("Which bridge was taken by the flood?", "en"),
        ("the first of the guards", "en"),
        ("Good evening", "en"),
        ("Er ist größer als der König", "de"),
        ("Wir gehen nach Ironhold", "de"),
        ("Der Erste ist tot", "de"),
    ],
)
def test_ordinary_words_are_no_times(text: str, language: str) -> None:
    assert read(text, language) == NO_TIME


@pytest.mark.parametrize("language", ["fr", "ja", "", "xx-YY"])
def test_nothing_is_read_in_a_language_without_tables(language: str) -> None:
    assert read("What happened last session, on 3 June 2023?", language) == NO_TIME
    assert not tells_time("yesterday", language=language)


def test_a_region_is_no_other_language() -> None:
    assert read("letzte Sitzung", "de-AT").place == SessionReference("session", back=1)


def test_the_question_keeps_its_words_and_the_times_in_it_are_pointed_at() -> None:
    question = "What did Mira, at the end of last session, say?"
    ask = read(question)
    assert [question[start:end] for start, end in ask.said] == ["end of last session"]
    assert ask.words == "end of last session"


def test_a_day_begins_where_the_table_is() -> None:
    here, there = read("yesterday").window, read("yesterday", zone=timezone(timedelta(hours=5))).window
    assert here is not None and there is not None and here.from_ms is not None
    # At 20:00 in London it is past midnight in Karachi.
    assert there.from_ms == here.from_ms + DAY_MS - 5 * 3_600_000


def test_what_is_ahead_this_year_was_meant_of_the_last() -> None:
    assert window(read("on 23 November")) == ("2025-11-23", "2025-11-23")
    assert window(read("on 22 November")) == ("2026-11-22", "2026-11-22")


def test_there_is_no_30_february() -> None:
    assert read("on 30 February 2023").window is None


HAMMER = Story(StoryCalendar(months=(("Hammer", 30), ("Alturiak", 30))), today=45)


@pytest.mark.parametrize(
    ("question", "language", "days"),
    [
        ("on the third of Hammer", "en", StoryDays(2, 2)),
        ("What happened in Alturiak?", "en", StoryDays(30, 59)),
        ("before the 3rd of Alturiak", "en", StoryDays(None, 31)),
        ("three days ago", "en", StoryDays(42, 43)),
        ("yesterday", "en", StoryDays(44, 44)),
        ("am dritten Hammer", "de", StoryDays(2, 2)),
        ("He swung his Hammer", "en", None),
        ("on the 31st of Hammer", "en", None),
    ],
)
def test_days_of_the_story_are_read_by_its_own_calendar(question: str, language: str, days: StoryDays | None) -> None:
    assert read(question, language, story=HAMMER).story == days


def test_without_a_calendar_no_day_is_one_of_the_story() -> None:
    assert read("on day 12, the third of Hammer").story is None


@pytest.mark.parametrize(
    ("text", "language", "is_told"),
    [
        ("I went there yesterday", "en", True),
        ("It burned two weeks ago", "en", True),
        ("We start next month", "en", True),
        ("It was founded in 1987", "en", True),
        ("He may march at once", "en", False),
        ("Next door", "en", False),
        ("Das war gestern", "de", True),
        ("vor zwei Wochen", "de", True),
        ("vor dem Tor", "de", False),
    ],
)
def test_turns_that_tell_a_time_are_told_apart(text: str, language: str, is_told: bool) -> None:
    assert tells_time(text, language=language) is is_told


@pytest.mark.parametrize("table", [ENGLISH, GERMAN])
def test_the_tables_hold_words_as_they_are_looked_up(table: TimeWords) -> None:
    for words in (table.months, table.numbers, table.ordinals, table.units, table.relations, table.triggers):
        for each in words:
            assert [fold(word) for word in each.split()] == each.split()


VOCABULARY = sorted(
    set(
        ENGLISH.triggers | GERMAN.triggers | ENGLISH.hollow | {"2023", "3rd", "12", "5", "the", "dragon", ",", "?", "."}
    )
)


@settings(derandomize=True, deadline=None, max_examples=n_examples(150))
@given(
    st.one_of(st.text(max_size=300), st.lists(st.sampled_from(VOCABULARY), max_size=60).map(" ".join)),
    st.sampled_from(["en", "de"]),
    st.integers(-(10**15), 10**15),
    st.sampled_from([UTC, None, *map(ZoneInfo, ("Pacific/Apia", "America/Denver", "Europe/Berlin"))]),
    st.one_of(st.none(), st.integers(0, 30_000)),
)
def test_no_text_and_no_time_is_an_error(
    text: str, language: str, now_ms: int, zone: tzinfo | None, evening: int | None
) -> None:
    story = Story(StoryCalendar((("Hammer", 30), ("may", 1)), ("Moonday", "dragon")), today=3)
    ask = read_time(text, language=language, days=Days(now_ms, zone, evening), story=story)
    assert all(0 <= start < end <= len(text) for start, end in ask.said)
    tells_time(text, language=language)


@pytest.mark.parametrize(
    "word", ["before the ", "last ", "two ", "in may ", "what ", "a", "1 ", "what a first ", "ä ", "."]
)
def test_of_a_long_speech_only_the_end_is_read(word: str) -> None:
    speech = (word * 10_000)[:10_000]
    assert read(speech + " last session").place == SessionReference("session", back=1) or word in (
        "last ",
        "a",
        "before the ",
    )
    left_out = len(speech) - MOST_CHARACTERS
    ask = read(speech)
    assert all(left_out <= start < end <= len(speech) for start, end in ask.said)
