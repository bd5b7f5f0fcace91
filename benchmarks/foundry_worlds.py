"""Invent Foundry worlds of any size, and say what a reader should find in them.

    python -m benchmarks.foundry_worlds FOLDER TRUTH [--documents 10000] [--store leveldb|nedb|json] [--seed 0]

A world has actors with embedded items, items, scenes and journals; some documents were changed or deleted after they
were first stored, some come from the compendium beside the world, some have the same name as another one. Words that
only the GM may read contain `gmonly`, those that players can read `forall`.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.invented import invented_name
from benchmarks.leveldb import write_leveldb

Document = dict[str, Any]
FOR_GM: Final = "gmonly"
FOR_ALL: Final = "forall"
STORES: Final = ("leveldb", "nedb", "json")
_ACTORS: Final = {"npc": "npc", "character": "player", "vehicle": "item", "group": "faction"}
_FOLDERS: Final = {
    "NPCs": "npc", "Locations": "location", "Factions": "faction", "Quests": "quest", "Lore": "concept", "": "concept",
}  # fmt: skip
"""Folders of journals, and the type of the pages in them."""
_CLASSES: Final = {"actors": "Actor", "items": "Item", "scenes": "Scene", "journal": "JournalEntry"}
_USERS: Final = (
    {"_id": "gm0000000000user", "name": "Gamemaster", "role": 4},
    {"_id": "player0000000usr", "name": "Player", "role": 1},
)
_COMMON: Final = ("Potion of Healing", "Rope", "Torch", "Longsword", "Dagger")
_STATISTICS: Final = 40


@dataclass(slots=True)
class FoundryWorld:
    """
    Attributes:
        collections: Documents of the world.
        before: Documents as they were before they were changed or deleted.
        pack: Items of the compendium.
        truth: The documents that should be found: name, type, and whether only the GM may see it.
    """

    collections: dict[str, list[Document]] = field(default_factory=lambda: {name: [] for name in _CLASSES})
    folders: list[Document] = field(default_factory=list)
    before: dict[str, list[Document]] = field(default_factory=lambda: {name: [] for name in _CLASSES})
    pack: list[Document] = field(default_factory=list)
    truth: list[dict[str, Any]] = field(default_factory=list)

    def truth_in(self, store: str) -> list[dict[str, Any]]:
        """Return the truth; exported documents have neither folders nor, except for pages, ownership."""
        if store != "json":
            return self.truth
        return [{**each, "type": each["exported_as"], "hidden": not each["exported_visible"]} for each in self.truth]


class _Inventor:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = FoundryWorld()
        self._names: set[str] = set()
        self._n = 0
        self._folders = {name: self._folder(name, "JournalEntry") for name in _FOLDERS if name}

    def name(self, kind: str) -> str:
        while (name := invented_name(self.dice, kind)) in self._names:
            pass
        self._names.add(name)
        return name

    def id(self) -> str:
        return "".join(self.dice.choices(string.ascii_letters + string.digits, k=16))

    def _folder(self, name: str, of: str, parent: str | None = None) -> str:
        folder = {"_id": self.id(), "name": name, "type": of, "folder": parent, "sorting": "a"}
        self.world.folders.append(folder)
        return str(folder["_id"])

    def prose(self, about: str, *, for_gm: bool) -> str:
        self._n += 1
        word = f"{FOR_GM if for_gm else FOR_ALL}{self._n}"
        other = self.dice.choice(self.world.truth)["name"] if self.world.truth else "nobody"
        return f"<p>{about} knows <strong>{other}</strong> &amp; keeps the word {word}.</p><ul><li>It is old.</li></ul>"

    def html(self, about: str, *, seen: bool) -> str:
        """Return a text, of which players read all but a secret section, or nothing."""
        secret = f'<section class="secret" id="secret-{self.id()}">{self.prose(about, for_gm=True)}</section>'
        return self.prose(about, for_gm=not seen) + (secret if self.dice.random() < 0.5 else "")

    def document(self, name: str, *, level: int, **more: object) -> Document:
        default = self.dice.random() < 0.5
        ownership = {"default": level} if default else {"default": 0, "gm0000000000user": 3, "player0000000usr": level}
        return {
            "_id": self.id(),
            "name": name,
            "ownership": ownership,
            "flags": {},
            "sort": 0,
            "_stats": {"coreVersion": "12.331", "systemId": "dnd5e"},
            **more,
        }

    def level(self) -> int:
        return self.dice.choice((0, 0, 0, 1, 2, 3))

    def expect(self, name: str, type_: str, level: int, *, of_page: int | None = None) -> None:
        """
        Args:
            of_page: The level of its own that a page has, -1 for that of its entry.
        """
        exported = {"exported_as": type_ if of_page is None else "concept", "exported_visible": (of_page or 0) > 0}
        self.world.truth.append({"name": name, "type": type_, "hidden": level == 0, **exported})

    def actor(self) -> Document:
        kind = self.dice.choice(("npc",) * 12 + ("character", "vehicle", "group"))
        name, level = self.name("faction" if kind == "group" else "npc"), self.level()
        self.expect(name, _ACTORS[kind], level)
        biography = {"value": self.html(name, seen=level > 1), "public": ""}
        carried = [
            {
                "_id": self.id(),
                "name": f"Claw {self.dice.randrange(1000)}",
                "type": "weapon",
                "system": self.statistics(),
            }
            for _ in range(self.dice.randrange(4))
        ]
        system = {**self.statistics(), "details": {"biography": biography, "alignment": "neutral", "race": "elf"}}
        return self.document(
            name, level=level, type=kind, img="icons/svg/mystery-man.svg", system=system, items=carried
        )

    def item(self) -> Document:
        level, is_common = self.level(), self.dice.random() < 0.2
        name = self.dice.choice(_COMMON) if is_common else self.name("item")
        seen = [each for each in self.world.truth if each["name"] == name]
        if not seen:
            self.expect(name, "item", level)
        elif level:
            seen[0]["hidden"] = False
        system = {**self.statistics(), "description": {"value": self.html(name, seen=level > 1), "chat": ""}}
        return self.document(name, level=level, type="loot", system=system)

    def scene(self) -> Document:
        name, level = self.name("location"), self.level()
        self.expect(name, "location", level)
        tokens = [
            {"_id": self.id(), "name": actor["name"], "actorId": actor["_id"], "x": 100, "y": 100}
            for actor in self.dice.sample(
                self.world.collections["actors"], min(2, len(self.world.collections["actors"]))
            )
        ]
        walls = [{"_id": self.id(), "c": [n, n, n + 1, n + 1]} for n in range(20)]
        return self.document(name, level=level, tokens=tokens, walls=walls, notes=[], drawings=[])

    def journal(self, n_pages: int) -> Document:
        folder = self.dice.choice(list(_FOLDERS))
        type_ = _FOLDERS[folder]
        name, level = self.name(type_ if type_ != "quest" else "concept"), self.level()
        titles = [name] if n_pages == 1 else ["Introduction", *(self.name(type_) for _ in range(n_pages - 1))]
        pages = []
        for title in titles:
            own = self.dice.choice((-1, -1, -1, 0, min(level, 2)))
            of_page = level if own == -1 else own
            content = self.html(title, seen=of_page > 1)
            pages.append(self.document(title, level=own, type="text", text={"format": 1, "content": content}))
            pages[-1]["ownership"] = {"default": own} if own != -1 else {"default": -1}
            shown = f"{title} ({name})" if title == "Introduction" else title
            self.expect(shown, type_, of_page, of_page=own)
        return self.document(name, level=level, folder=self._folders.get(folder), pages=pages)

    def statistics(self) -> Document:
        return {f"statistic{n}": {"value": self.dice.randrange(20), "max": 20, "bonus": ""} for n in range(_STATISTICS)}


def invented_world(n_documents: int, *, seed: int = 0) -> FoundryWorld:
    """Return a world with about that many actors, items, scenes and journal pages."""
    inventor = _Inventor(seed)
    world, dice = inventor.world, inventor.dice
    n_pages = 0
    while len(world.truth) < n_documents:
        match dice.choices(("actors", "items", "scenes", "journal"), (35, 25, 10, 12))[0]:
            case "actors":
                document, collection = inventor.actor(), "actors"
            case "items":
                document, collection = inventor.item(), "items"
                if dice.random() < 0.1:
                    original = {**document, "_id": inventor.id()}
                    document["_stats"]["compendiumSource"] = f"Compendium.world.treasure.Item.{original['_id']}"
                    world.pack.append(original)
            case "scenes":
                document, collection = inventor.scene(), "scenes"
            case _:
                n_pages = dice.choice((1, 2, 3, 4))
                document, collection = inventor.journal(n_pages), "journal"
        world.collections[collection].append(document)
        if dice.random() < 0.1:
            world.before[collection].append({**document, "name": f"Old {FOR_GM} {document['name']}"})
        if dice.random() < 0.05:
            world.before[collection].append(
                {**inventor.document(inventor.name("npc"), level=3), "pages": [], "gone": True}
            )
    return world


# -- how Foundry stores it


def write_world(world: FoundryWorld, folder: Path, store: str) -> None:
    """Write a world as Foundry does.

    Args:
        folder: It is created.
        store: `leveldb`: v11 and later. `nedb`: up to v10. `json`: documents one by one, as "Export Data" writes them.
    """
    folder.mkdir(parents=True)
    if store == "json":
        for collection, exported in world.collections.items():
            for each in exported:
                kept = {key: value for key, value in each.items() if key not in ("ownership", "_id", "folder")}
                path = (
                    folder / f"fvtt-{_CLASSES[collection]}-{each['name'].replace(' ', '-').lower()}-{each['_id']}.json"
                )
                path.write_text(json.dumps(kept, indent=2), "utf-8")
        return
    about = {"id": "invented", "title": "Invented World", "system": "dnd5e", "coreVersion": "12.331"}
    packs = [{"name": "treasure", "label": "Treasure", "type": "Item", "path": "packs/treasure"}]
    (folder / "world.json").write_text(json.dumps({**about, "packs": packs}), "utf-8")
    stored: dict[str, Sequence[Document]] = {**world.collections, "folders": world.folders, "users": _USERS}
    for name, documents in stored.items():
        before = world.before.get(name, [])
        if store == "leveldb":
            _write_leveldb(folder / "data" / name, name, documents, before)
        else:
            _write_nedb(folder / "data" / f"{name}.db", documents, before)
    if store == "leveldb":
        _write_leveldb(folder / "packs" / "treasure", "items", world.pack, [])
    else:
        _write_nedb(folder / "packs" / "treasure.db", world.pack, [])


def _write_nedb(path: Path, documents: Sequence[Document], before: Sequence[Document]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    gone = [{"$$deleted": True, "_id": each["_id"]} for each in before if each.get("gone")]
    with path.open("w", encoding="utf-8") as file:
        for each in (*before, *documents, *gone):
            file.write(json.dumps(each) + "\n")


def _write_leveldb(folder: Path, name: str, documents: Sequence[Document], before: Sequence[Document]) -> None:
    now = [record for each in documents for record in _records(name, each)]
    older = dict(record for each in before for record in _records(name, each))
    gone = [(key, None) for each in before if each.get("gone") for key, _ in _records(name, each)]
    changed = [(key, value) for key, value in now if key in older]
    write_leveldb(folder, {**dict(now), **older}, [*changed, *gone])


def _records(name: str, document: Document) -> Iterator[tuple[bytes, bytes]]:
    """Yield a document and those inside it, each as a record of its own."""
    whole: Mapping[str, object] = document
    for inside in {"actors": ("items",), "journal": ("pages",), "scenes": ("tokens", "walls")}.get(name, ()):
        parts = document.get(inside, [])
        whole = {**whole, inside: [each["_id"] for each in parts]}
        for each in parts:
            yield f"!{name}.{inside}!{document['_id']}.{each['_id']}".encode(), json.dumps(each).encode()
    yield f"!{name}!{document['_id']}".encode(), json.dumps(whole).encode()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.foundry_worlds", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--store", choices=STORES, default="leveldb")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    world = invented_world(options.documents, seed=options.seed)
    write_world(world, options.folder, options.store)
    options.truth.write_text(json.dumps(world.truth_in(options.store), indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
