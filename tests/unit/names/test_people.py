"""Who is called and who is only talked about."""

from __future__ import annotations

import time

import pytest

from glyphoxa.domain.campaign import Npc
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.names.gazetteer import Entry, Gazetteer
from glyphoxa.names.people import mentions_of_people
from glyphoxa.turns.address import AddresseeMention


def people(*names: str, language: str = "en") -> Gazetteer:
    entries = [Entry(name, EntityId(name.lower()), "npc") for name in names]
    return Gazetteer.build([*entries, Entry("Bart", EntityId("bart"), "npc", ("the innkeeper",))], language=language)


def called(said: str, names: Gazetteer) -> list[AddresseeMention]:
    ids = [entry.entity_id for entry in names.entries]
    npcs = {each: Npc(NpcId(each), each, names.by_joined[each].canonical, "") for each in ids}
    return mentions_of_people(said, names, npcs)


@pytest.mark.parametrize(
    ("said", "name"),
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
def test_a_name_is_called(said: str, name: str) -> None:
    calls = called(said, people("Grimjaw", "Glyphoxa", "Marek", "Greta"))
    assert next(call.name for call in calls if call.is_vocative) == name


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
    (call,) = called(said, people("Grimjaw"))
    assert (call.name, call.is_vocative) == ("Grimjaw", False)


def test_the_work_for_a_text_grows_with_it_and_not_with_its_square() -> None:
    names = people("Grimjaw", "Mirelle")

    def cpu_ns(n: int) -> int:
        text = "and Grimjaw told captain Mirelle so " * n
        started = time.process_time_ns()
        assert len(called(text, names)) == 2 * n
        return time.process_time_ns() - started

    small = min(cpu_ns(300) for _ in range(4))
    assert min(cpu_ns(4_800) for _ in range(3)) < 64 * small  # 16 times the text; its square is 256 times


@pytest.mark.parametrize(
    "said", ["let us roll initiative please", "the elder of the village", "", "…", "smash the door", "he ate bread."]
)
def test_no_name_is_heard_where_there_is_none(said: str) -> None:
    assert called(said, people("Grimjaw", "Ilva", "Ash")) == []
