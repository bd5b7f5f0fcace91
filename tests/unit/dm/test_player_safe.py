"""Names in a text that are hidden from players."""

from __future__ import annotations

import pytest

from glyphoxa.chronicle.talk import KnownEntity
from glyphoxa.dm.handouts import PlayersView
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, Visibility
from tests.support.builders import a_campaign


def person(name: str, visibility: Visibility = PUBLIC, *aliases: str) -> KnownEntity:
    return KnownEntity(EntityId(name.casefold()), "npc", name, aliases, visibility)


@pytest.mark.parametrize(
    ("known", "text", "is_readable"),
    [
        ((person("Odo Fennimore", HIDDEN), person("Anna Fennimore")), "Anna Fennimore keeps the inn.", True),
        ((person("Odo Fennimore", HIDDEN), person("Anna Fennimore")), "The Fennimores keep the inn.", True),
        ((person("Odo Fennimore", HIDDEN), person("Anna Fennimore")), "Odo Fennimore keeps the inn.", False),
        ((person("Odo Fennimore", HIDDEN), person("Anna Brandt")), "A Fennimore keeps the inn.", False),
        ((person("Odo Fennimore", HIDDEN), person("Anna", PUBLIC, "Fennimore")), "A Fennimore keeps it.", False),
        ((person("Odo Fennimore", HIDDEN), person("Ida Fennimore", HIDDEN)), "A Fennimore keeps the inn.", False),
        ((person("Lord Fennimore", HIDDEN), person("Anna Fennimore")), "It belongs to Fennimore.", False),
        ((person("Odo Fennimore", HIDDEN, "Fennimore"), person("Anna Fennimore")), "A Fennimore keeps it.", False),
        ((person("Will", HIDDEN),), "We will meet again.", True),
        ((person("Will", HIDDEN),), "I met Will again.", False),
    ],
)
def test_family_name_of_a_public_person_hides_no_text(
    known: tuple[KnownEntity, ...], text: str, is_readable: bool
) -> None:
    view = PlayersView(known, a_campaign())
    assert (view.readable("Tamsin", text, text) is not None) == is_readable
