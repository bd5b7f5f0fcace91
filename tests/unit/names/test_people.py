"""Who is called and who is only talked about."""

from __future__ import annotations

import time

import pytest

from glyphoxa.domain.ids import EntityId
from glyphoxa.names.gazetteer import Entry, Gazetteer
from glyphoxa.names.people import mentions_of_people


def people(*names: str, language: str = "en") -> Gazetteer:
    entries = [Entry(name, EntityId(name.lower()), "npc") for name in names]
    return Gazetteer.build([*entries, Entry("Bart", EntityId("bart"), "npc", ("the innkeeper",))], language=language)


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("Bart, what's the special tonight?", "Bart"),
        ("bard, what's the special?", "Bart"),
        ("Good evening, Grimjaw. How is my blade?", "Grimjaw"),
        ("good evening grimjaw how is my blade", "Grimjaw"),
        ("Hey Grimjaw, come here.", "Grimjaw"),
        ("What do you think, Bart?", "Bart"),
        ("So, Glyphoxa, was hat Bart dir erzählt?", "Glyphoxa"),
        ("Bart, ist Glyphoxa hier?", "Bart"),
        ("Marek, was liegt gerade auf dem Tisch?", "Marek"),
        ("Wait. Grimjaw, that is mine.", "Grimjaw"),
    ],
)
def test_a_name_is_called(said: str, called: str) -> None:
    calls = mentions_of_people(said, people("Grimjaw", "Glyphoxa", "Marek", "Greta"))
    assert next(call.name for call in calls if call.is_vocative) == called


@pytest.mark.parametrize(
    "said",
    [
        "Tell me about Grimjaw.",
        "Grimjaw is a liar.",
        "Grimjaw's forge is cold.",
        "I attack grim jaw with my axe",
        "Did you see Grimjaw?",
        "Have you been to the forge of Grimjaw?",
    ],
)
def test_a_name_is_talked_about(said: str) -> None:
    (call,) = mentions_of_people(said, people("Grimjaw"))
    assert (call.name, call.is_vocative) == ("Grimjaw", False)


def test_the_work_for_a_text_grows_with_it_and_not_with_its_square() -> None:
    names = people("Grimjaw", "Mirelle")

    def cpu_ns(n: int) -> int:
        text = "and Grimjaw told captain Mirelle so " * n
        started = time.process_time_ns()
        assert len(mentions_of_people(text, names)) == 2 * n
        return time.process_time_ns() - started

    small = min(cpu_ns(300) for _ in range(4))
    assert min(cpu_ns(4_800) for _ in range(3)) < 64 * small  # 16 times the text; its square is 256 times


@pytest.mark.parametrize(
    "said", ["let us roll initiative please", "the elder of the village", "", "…", "smash the door", "he ate bread."]
)
def test_no_name_is_heard_where_there_is_none(said: str) -> None:
    assert mentions_of_people(said, people("Grimjaw", "Ilva", "Ash")) == ()
