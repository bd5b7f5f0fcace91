"""Who is called and who is only talked about."""

from __future__ import annotations

import pytest

from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.names.gazetteer import Gazetteer, entries_of
from glyphoxa.names.naming import Entry
from glyphoxa.names.people import AddresseeMention, CallForms, understand


def people(*names: str, language: str = "en") -> Gazetteer:
    entries = [Entry(name, EntityId(name.lower()), "npc") for name in names]
    return Gazetteer.build([*entries, Entry("Bart", EntityId("bart"), "npc", ("the innkeeper",))], language=language)


def mentions(text: str, names: Gazetteer) -> tuple[AddresseeMention, ...]:
    people = [entry for entry in names.entries if entry.entity_type in ("npc", "player")]
    return understand(text, CallForms(names, people, {})).mentions


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("Bart, what's the special tonight?", "Bart"),
        ("Good evening, Grimjaw. How is my blade?", "Grimjaw"),
        ("good evening grimjaw how is my blade", "Grimjaw"),
        ("Hey Grimjaw, come here.", "Grimjaw"),
        ("What do you think, Bart?", "Bart"),
        ("So, Glyphoxa, was hat Bart dir erzählt?", "Glyphoxa"),
        ("Marek, was liegt gerade auf dem Tisch?", "Marek"),
        ("Wait. Grimjaw, that is mine.", "Grimjaw"),
    ],
)
def test_a_name_is_called(said: str, called: str) -> None:
    calls = mentions(said, people("Grimjaw", "Glyphoxa", "Marek", "Greta"))
    assert next(call.name for call in calls if call.is_called) == called


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
    (call,) = mentions(said, people("Grimjaw"))
    assert (call.name, call.is_called) == ("Grimjaw", False)


@pytest.mark.parametrize(
    "said", ["let us roll initiative please", "the elder of the village", "", "…", "smash the door", "he ate bread."]
)
def test_no_name_is_heard_where_there_is_none(said: str) -> None:
    assert mentions(said, people("Grimjaw", "Ilva", "Ash")) == ()


def test_own_forms_leave_out_what_calls_somebody_else() -> None:
    roles = {"Dr. Ida van den Berg": "old captain of the watch", "Nora Vance": "guard", "Piet Vance": "guard"}
    npcs = tuple(Npc(NpcId(name), EntityId(name), name, "", role=role) for name, role in roles.items())
    campaign = Campaign(CampaignId("inn"), "Inn", "en", (), (), npcs, (), ())
    forms = CallForms.at_table(campaign, Gazetteer.build(entries_of(campaign)))
    assert {entry.name: set(own) for entry, own in forms.own()} == {
        "Dr. Ida van den Berg": {
            *("Dr. Ida van den Berg", "Ida", "Ida van den Berg", "van den Berg", "den Berg", "Berg"),
            *("Dr", "old captain of the watch", "captain", "watch"),
        },
        "Nora Vance": {"Nora Vance", "Nora"},
        "Piet Vance": {"Piet Vance", "Piet"},
    }


@pytest.mark.parametrize(
    "text", ["", "?", "(to  ) hi", "[whisper to  ] x", "\ud83c\udfb2\ud83c\udfb2", "Bart " * 3_000]
)
def test_odd_text_is_read(text: str) -> None:
    assert all(mention.name == "Bart" for mention in mentions(text, people()))
