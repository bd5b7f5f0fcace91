"""The cases of `benchmarks.address`, and the campaign that each of them is."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId


class CaseNpc(BaseModel):
    """`address_only`: it answers only who calls it."""

    id: str
    name: str
    aliases: list[str] = []
    role: str = ""
    present: bool = True
    address_only: bool = False


class CasePlayer(BaseModel):
    id: str
    name: str


class SaidBefore(BaseModel):
    """`to`: who answered or was meant; None for nobody."""

    speaker: str
    text: str
    to: str | None = None
    seconds_ago: float = Field(ge=0)


class Case(BaseModel):
    """
    Attributes:
        expected: Ids of the NPCs that are to answer, the lead first; empty for nobody.
        kind: For figures by kind; "" for none.
    """

    id: str
    language: str = "en"
    npcs: list[CaseNpc]
    players: list[CasePlayer]
    before: list[SaidBefore] = []
    speaker: str
    text: str
    expected: list[str]
    kind: str = ""


def read_cases(path: Path) -> list[Case]:
    """
    Raises:
        NotFound: There is no such file.
        InvalidInput: A line is no case.
    """
    if not path.is_file():
        raise NotFound(
            f"{path}: no such file; valid: a file with one case a line, as benchmarks/data/address/tune.jsonl"
        )
    cases = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            try:
                cases.append(Case.model_validate_json(line))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"])) or "the line"
                raise InvalidInput(f"{path}:{number}: {place}: {first['msg']}") from error
    return cases


def campaign_of(case: Case) -> Campaign:
    """With everybody of the case in it, and a scene with the NPCs that are present."""
    npcs = tuple(
        Npc(
            NpcId(npc.id),
            EntityId(npc.id),
            npc.name,
            f"You are {npc.name}.",
            aliases=tuple(npc.aliases),
            role=npc.role,
            address_only=npc.address_only,
        )
        for npc in case.npcs
    )
    place = EntityId("the-place")
    return Campaign(
        CampaignId("case"),
        "Case",
        case.language,
        entities=(Entity(place, "location", "the place"), *(Entity(n.entity_id, "npc", n.name) for n in npcs)),
        relationships=(),
        npcs=npcs,
        players=tuple(Player(PlayerId(player.id), player.name) for player in case.players),
        scenes=(Scene(SceneId("here"), place, tuple(NpcId(npc.id) for npc in case.npcs if npc.present)),),
    )
