"""Files of other tools from the disk to the campaign: what NPCs may know of them, and what not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.dm.imported import EVERYTHING, ImportKind
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.knowledge import DM
from glyphoxa.plugins.imports.readers import read_source
from tests.support.builders import CAMPAIGN, SMITH, a_campaign
from tests.support.known_of import entities_of, known_of

SECRET = "zzquicksilver"
NOTES = {
    "NPCs/Rusk.md": f"""---
aliases: [King Rusk]
race: Dwarf
location: "[[Ironhold]]"
gm_notes: The {SECRET} is his.
---
# Rusk

He rules the city. %% He fears the {SECRET}. %%

He serves [[Mog {SECRET}]].

> [!secret] Plan
> He sold the {SECRET}.
""",
    "Places/Ironhold.md": f"A city of dwarves.\n\n## GM notes\n\nBelow it lies the {SECRET}.\n",
    f"NPCs/Mog {SECRET}.md": "---\nhidden: true\n---\nA demon.",
    "DM/The plot.md": f"All want the {SECRET}.",
}


async def accepted(store: Store, kind: ImportKind, path: Path) -> dict[str, Entity]:
    """Accept a source as a whole, and check that its second import proposes nothing. Returns what the DM knows."""
    await store.campaigns.load(a_campaign())
    desk = store.imports(CAMPAIGN)
    await desk.take_in(read_source(kind, path))
    await desk.accept(EVERYTHING)
    again = await desk.take_in(read_source(kind, path))
    assert (again.n_new, again.n_changed, (await desk.waiting())[0]) == (0, 0, 0)
    return {each.name: each for each in await entities_of(store, CAMPAIGN, DM)}


async def what_the_smith_knows(store: Store) -> str:
    entities = await entities_of(store, CAMPAIGN, SMITH)
    facts = [await known_of(store, CAMPAIGN, SMITH, each.id) for each in entities]
    return f"{entities} {facts}"


async def test_vault_is_known_to_npcs_without_its_secrets(store: Store, tmp_path: Path) -> None:
    for name, text in NOTES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    world = await accepted(store, "markdown", tmp_path)
    assert (world["Rusk"].type, world["Ironhold"].type) == ("npc", "location")
    assert world["Rusk"].aliases == ("King Rusk",)
    assert world["Rusk"].attributes["description"] == "He rules the city."
    known = await known_of(store, CAMPAIGN, SMITH, world["Rusk"].id)
    assert known is not None
    assert [other.name for _, other in known.relations] == ["Ironhold"]
    told = await what_the_smith_knows(store)
    assert "A city of dwarves." in told
    assert not any(secret in told for secret in (SECRET, "The plot", "A demon"))
    everything = [str(await known_of(store, CAMPAIGN, DM, each.id)) for each in world.values()]
    assert sum(SECRET in each for each in everything) == 4


async def test_roll20_game_is_known_to_npcs_without_gm_notes(store: Store, tmp_path: Path) -> None:
    def entry(id_: str, name: str, seen_by: str, **fields: Any) -> dict[str, Any]:
        return {"id": id_, "name": name, "inplayerjournals": [seen_by], "controlledby": [""], **fields}

    game = {
        "R20Exporter_format": "1.0",
        "campaign_title": "The Tower",
        "characters": [
            entry("-c1", "Vorondil", "", bio=f"<p>{SECRET}</p>", attributes=[{"name": "npc", "current": "1"}])
        ],
        "handouts": [
            entry("-h1", "Ironhold", "all", notes="<p>A city of dwarves.</p>", gmnotes=f"<p>{SECRET}</p>"),
            entry("-h2", f"The {SECRET}", "", notes="<p>x</p>"),
        ],
        "pages": [{"id": "-p1", "name": "The gate", "graphics": [{"represents": "-c1"}]}],
        "journalfolder": [{"n": "Places", "i": ["-h1"]}],
    }
    (tmp_path / "tower.json").write_text(json.dumps(game))
    world = await accepted(store, "roll20", tmp_path / "tower.json")
    types = {name: world[name].type for name in ("Vorondil", "Ironhold", f"The {SECRET}", "The gate")}
    assert list(types.values()) == ["npc", "location", "concept", "location"]
    told = await what_the_smith_knows(store)
    assert "A city of dwarves." in told
    assert not any(secret in told for secret in (SECRET, "Vorondil", "The gate"))


async def test_table_is_known_to_npcs_without_hidden_rows(store: Store, tmp_path: Path) -> None:
    (tmp_path / "entities.csv").write_text(f"name,type,hidden,trade\nOrla,npc,,miller\nThe {SECRET},item,yes,\n")
    (tmp_path / "relationships.csv").write_text(
        f"source,type,target,since\nOrla,OWNS,The {SECRET},\nGrimjaw,KNOWS,Orla,childhood\n"
    )
    world = await accepted(store, "csv", tmp_path)
    assert world["Orla"].attributes["trade"] == "miller"
    assert world["Grimjaw"].type == "npc"
    told = await what_the_smith_knows(store)
    assert "miller" in told and "'since': 'childhood'" in told
    assert SECRET not in told
