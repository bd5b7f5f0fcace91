"""The players' page describes correctly which NPC answers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.language.roles import cast_of
from glyphoxa.names.table_names import TableNames
from glyphoxa.turns.address import Addressed, Addressing

PAGE = (Path(__file__).parents[2] / "docs" / "playing.md").read_text("utf-8")
ELOWEN, GRIMJAW, HANNA, TAMSIN = NpcId("elowen"), NpcId("grimjaw"), NpcId("hanna"), PlayerId("tamsin")
NAMES = {GRIMJAW: "Grimjaw", HANNA: "Hanna", ELOWEN: "Elowen"}
CAMPAIGN = Campaign(
    id=CampaignId("saltmere"),
    name="Saltmere",
    language="en",
    entities=(
        Entity(EntityId("grimjaw"), "npc", "Grimjaw", ("the smith",)),
        Entity(EntityId("hanna"), "npc", "Hanna"),
        Entity(EntityId("elowen"), "npc", "Elowen"),
        Entity(EntityId("anvil"), "location", "The Anvil"),
    ),
    relationships=(),
    npcs=tuple(
        Npc(npc, EntityId(npc), name, "", role="smith" if npc == GRIMJAW else "") for npc, name in NAMES.items()
    ),
    players=(Player(PlayerId("mira"), "Mira"), Player(TAMSIN, "Tamsin")),
    scenes=(Scene(SceneId("smithy"), EntityId("anvil"), (GRIMJAW, HANNA)),),
)
CALLED: dict[str, tuple[NpcId | None, NpcId | None]] = {
    "Grimjaw, is my blade done?": (None, GRIMJAW),
    "Is it sharp, too?": (GRIMJAW, GRIMJAW),
    "Smith, what do you ask for it?": (None, GRIMJAW),
    "Master Grimjaw, what do you ask for it?": (HANNA, GRIMJAW),
    "Grimjaw's forge is cold.": (None, None),
    "Can anyone here mend a blade?": (None, GRIMJAW),
    "Grimjaw, Hanna, what do you think?": (None, GRIMJAW),
    "What did the smith ask for it?": (None, None),
    "I don't trust the smith.": (GRIMJAW, None),
    "We should ask him.": (GRIMJAW, None),
    "I walk over and look around.": (GRIMJAW, None),
    "Not you, Grimjaw.": (GRIMJAW, None),
    "How do I get to the mill?": (None, None),
    "Mira, do you trust him?": (GRIMJAW, None),
    "Elowen, are you there?": (GRIMJAW, None),
}
"""With whom the speaker was talking, and who is meant."""
PAST: dict[str, Unaddressed] = {
    "whisper to a player": Unaddressed.WHISPER,
    "out of character, marked": Unaddressed.OUT_OF_CHARACTER,
    "out of character, unmarked": Unaddressed.OUT_OF_CHARACTER,
    "only a sound": Unaddressed.FILLER,
}


@cache
def names_at_the_table() -> TableNames:
    return TableNames(CAMPAIGN, now_ms=lambda: 0)


def decide(text: str, *, last: NpcId | None = None, here: tuple[NpcId, ...] = (GRIMJAW, HANNA)) -> Addressed:
    addressing = Addressing(cast_of(CAMPAIGN))
    if last is not None:
        addressing.answered(last, TAMSIN, "Aye.", at_ms=0)
    said = names_at_the_table().understand(text)
    return addressing.decide(TAMSIN, said, present=here, names=NAMES, at_ms=9_000)


def rows(title: str) -> list[tuple[str, str]]:
    """Both cells of each row of a section's table."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)[1:]


def test_page_says_who_answers() -> None:
    shown = [re.match('"(.+?)"', said) for said, _ in rows("Talk to an NPC")]
    assert {match[1] for match in shown if match} == set(CALLED)
    for text, (last, meant) in CALLED.items():
        assert decide(text, last=last).npc == meant, text
    assert decide("How do I get to the mill?", here=(HANNA,)).npc == HANNA
    assert decide("Grimjaw, Hanna, what do you think?").second == HANNA


@pytest.mark.parametrize("form", PAST)
def test_page_says_what_no_npc_answers(form: str) -> None:
    examples = dict(rows("Talk past the NPCs"))[form]
    texts = [each.replace("...", "I don't trust him.") for each in re.findall(r'[`"]([^`"]+)[`"]', examples)]
    assert len(texts) >= 2
    for text in texts:
        assert decide(text, last=GRIMJAW).unaddressed is PAST[form], text
    assert decide("(to Grimjaw) Is it done?").npc == GRIMJAW
