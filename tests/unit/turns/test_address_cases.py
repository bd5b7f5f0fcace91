"""Who is meant, by what is said at a table, in English and German: the cases of `addressed.tsv`.

The names are a table's own: the words go through the same index of names, and the same rules, as in a session.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.roles import cast_of
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed, Addressing

LIORA, OSKAR, TIB, MIRELLE = NpcId("liora"), NpcId("oskar"), NpcId("tib"), NpcId("mirelle")
JON = PlayerId("jon")
KNOWN_WRONG = {"Jon has Mira told you the plan?"}


def _campaign(language: str, entities: tuple[Entity, ...], npcs: tuple[Npc, ...], player: str) -> Campaign:
    place = EntityId("keep")
    return Campaign(
        id=CampaignId("harbour"),
        name="The harbour",
        language=language,
        entities=(*entities, Entity(place, "location", "Burg Grondheim" if language == "de" else "Grondheim Keep")),
        relationships=(),
        npcs=npcs,
        players=(Player(PlayerId(player.lower()), player), Player(JON, "Jon")),
        scenes=(Scene(SceneId("quay"), place, (LIORA, OSKAR)),),
    )


def quay(language: str, *more: Entity) -> Campaign:
    """NPCs that are known by an alias with an article, and persons whom nobody plays."""
    known = {
        "en": ("the captain", "the miller", "the stable boy"),
        "de": ("der Hauptmann", "der Müller", "der Stallbursche"),
    }
    called = {LIORA: "Liora Vance", OSKAR: "Oskar Fenn", TIB: "Tib"}
    entities = [
        Entity(EntityId(npc), "npc", name, (alias,))
        for (npc, name), alias in zip(called.items(), known[language], strict=True)
    ]
    if language == "en":
        entities += [Entity(EntityId(name.lower()), "npc", name) for name in ("Zharothrix", "Hope")]
    npcs = tuple(Npc(npc, EntityId(npc), name, "") for npc, name in called.items())
    return _campaign(language, (*more, *entities), npcs, "Mira")


def inn(language: str) -> Campaign:
    """NPCs that are known by their trade."""
    roles = {"en": ("blacksmith", "innkeeper", "guard"), "de": ("Hufschmied", "Wirtin", "Torwächter")}
    called = {OSKAR: "Oskar Fenn", MIRELLE: "Mirelle", TIB: "Tib"}
    entities = tuple(Entity(EntityId(npc), "npc", name) for npc, name in called.items())
    npcs = tuple(
        Npc(npc, EntityId(npc), name, "", role=role)
        for (npc, name), role in zip(called.items(), roles[language], strict=True)
    )
    return _campaign(language, entities, npcs, "Kara")


@cache
def table(name: str, language: str) -> tuple[Campaign, TableNames]:
    campaign = {"quay": quay, "inn": inn}[name](language)
    return campaign, TableNames(campaign, now_ms=lambda: 0)


class Case(NamedTuple):
    table: str
    language: str
    here: str
    last: str
    meant: str
    text: str

    def decided(self) -> Addressed:
        campaign, names = table(self.table, self.language)
        addressing = Addressing(cast_of(campaign))
        if self.last:
            addressing.remember(JON, NpcId(self.last), at_ms=0)
        here = [NpcId(npc) for npc in self.here.split()]
        called = {npc.id: npc.name for npc in campaign.npcs}
        return addressing.decide(JON, names.understand(self.text), present=here, names=called, at_ms=1_000)

    def is_right(self) -> bool:
        decided = self.decided()
        is_nobody = decided.npc is None and decided.unaddressed is not None
        return bool(decided.reason) and (
            is_nobody if self.meant == "nobody" else self.meant == (decided.npc or decided.unaddressed)
        )


CASES = [
    Case(*line.split("\t"))
    for line in (Path(__file__).parent / "addressed.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("name", ["quay", "inn"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_words_reach_whom_they_are_meant_for(name: str, language: str) -> None:
    cases = [case for case in CASES if (case.table, case.language) == (name, language)]
    wrong = [(case, case.decided()) for case in cases if not case.is_right() and case.text not in KNOWN_WRONG]
    assert not wrong


def test_reason_names_who_was_called_and_is_not_here() -> None:
    absent = Case("quay", "en", "liora", "", "", "Tib, are you hungry?").decided()
    assert (absent.unaddressed, absent.reason) == (Unaddressed.ABSENT, "Tib was called but is not here")
    aside = Case("quay", "en", "liora", "", "", "brb, pizza").decided()
    assert aside.reason == "out of character: somebody leaves the table for a moment"


def test_present_captain_of_two_is_addressed() -> None:
    campaign = quay("en", Entity(EntityId("old"), "npc", "Old Brand", ("the captain",)))
    names = TableNames(campaign, now_ms=lambda: 0)
    for text in ("Captain, where do we go?", "Is the captain here?"):
        said = names.understand(text)
        present, called = (LIORA, OSKAR), {LIORA: "Liora", OSKAR: "Oskar"}
        assert Addressing().decide(JON, said, present=present, names=called, at_ms=0).npc == LIORA


@pytest.mark.parametrize(
    ("language", "text", "both"),
    [
        ("en", "Liora, Oskar, what do you say?", (LIORA, OSKAR)),
        ("de", "Liora, Oskar, was meint ihr?", (LIORA, OSKAR)),
        ("en", "Liora, where is Oskar?", (LIORA, None)),
        ("en", "Liora, Liora, listen!", (LIORA, None)),
    ],
)
def test_second_of_two_called_npcs_reacts(language: str, text: str, both: tuple[NpcId, NpcId | None]) -> None:
    addressed = Case("quay", language, "liora oskar", "", "", text).decided()
    assert (addressed.npc, addressed.second) == both
