"""Read what Foundry VTT stored or exported: databases of a world and its compendiums, and JSON.

Until version 10 a database is a file of JSON lines (NeDB), since 11 it is a folder (LevelDB), in which documents inside
others (pages, tokens) have their own records. Documents of every source are returned in the second form.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Generic, TypeVar

from glyphoxa.domain.errors import InvalidInput, counted, shown
from glyphoxa.language.words import fold
from glyphoxa.plugins.imports.files import SourceFiles, json_of, listed, objects_in

Kept = TypeVar("Kept")
Content = dict[str, Any]
CLASSES: Final = {
    "Actor": "actors", "Item": "items", "Scene": "scenes", "JournalEntry": "journal", "Folder": "folders",
    "User": "users", "Adventure": "adventures",
}  # fmt: skip
"""Class of a document -> its collection, by which databases and their records are named."""
_COLLECTIONS: Final = frozenset(CLASSES.values())
_INSIDE: Final = {"actors": ("items",), "scenes": ("tokens", "notes"), "journal": ("pages",)}
_RECORDS: Final = _COLLECTIONS | {f"{of}.{each}" for of, inside in _INSIDE.items() for each in inside}
_OTHER_CLASSES: Final = ("RollTable", "Playlist", "Macro", "Cards", "Compendium")
_OF_OTHERS: Final = frozenset(("command", "results", "sounds", "cards"))
"""Fields that only documents of these classes have."""
_ID_LENGTH: Final = 16
_MANIFEST: Final = "world.json"
_DAMAGED: Final = (ValueError, struct.error, IndexError, EOFError, OSError, OverflowError, MemoryError)
"""Errors that chromium_reader raises for a damaged LevelDB."""
_LOOKED_FOR: Final = (
    "a world (world.json with data), JSON of Export Data, of an Adventure or of an unpacked compendium,"
    " a .db file, or a LevelDB folder"
)


@dataclass(frozen=True, slots=True)
class Stored(Generic[Kept]):
    """A document.

    Attributes:
        collection: "actors", "journal.pages".
        parent: Id of the document that it is inside of; "" for none.
        pack: Name of its compendium or adventure; "" for the world itself.
        file: Its file or folder inside the source, or inside the world if the source is one.
    """

    collection: str
    id: str
    parent: str
    pack: str
    file: str
    content: Kept


class Contents(Generic[Kept]):
    """The documents of a source.

    Args:
        keep: Returns the part of a document that is needed; None to drop it. It is called as documents are read, so
            that a world need not fit into memory. "pages", "tokens", "notes" and "items" are lists of ids.

    Raises:
        InvalidInput: These are no files of Foundry, or they are damaged.
    """

    def __init__(self, files: SourceFiles, keep: Callable[[str, Content], Kept | None]) -> None:
        self._files = files
        self._keep = keep
        self._documents: dict[tuple[str, str, str, str], Stored[Kept]] = {}
        self._damaged: Counter[str] = Counter()
        self._left_out: list[str] = []
        manifest = _manifest_of(files)
        self._root = manifest.removesuffix(_MANIFEST)
        self.manifest = self._json(manifest)[0] if manifest else {}
        is_combined = any(listed(self.manifest.get(each)) for each in _COLLECTIONS)
        n_read = self._read_databases(is_world=bool(manifest))
        if is_combined or not manifest or not n_read:
            n_read += sum(map(self._read_json, files.names))
        if not n_read:
            raise InvalidInput(f"{files.path} has no documents of Foundry VTT; looked for {_LOOKED_FOR}")
        self.documents = tuple(self._documents.values())

    @property
    def remarks(self) -> tuple[str, ...]:
        damaged = (f"{counted(n, 'damaged record')} of {file} could not be read." for file, n in self._damaged.items())
        return (*damaged, *self._left_out)

    def _json(self, name: str) -> list[Content]:
        """Return the object in a file, or all of an array."""
        content = json_of(self._files.read(name), name)
        objects = objects_in(content if isinstance(content, list) else [content])
        if not objects:
            raise InvalidInput(f"{name!r} in {self._files.path} is no JSON object")
        return objects

    def _read_databases(self, *, is_world: bool) -> int:
        """Return how many databases were read. Those of a world are in `data` and `packs`."""
        databases = {name.removesuffix(".db"): name for name in self._files.names if name.endswith(".db")}
        # After a migration both forms lie side by side, and the folder is the newer one.
        databases |= {folder: folder for name in self._files.names if (folder := _leveldb_of(name))}
        found = set()
        for place, name in sorted(databases.items()):
            top, _, rest = place.removeprefix(self._root).partition("/")
            pack = rest if is_world and top == "packs" else ""
            collection = PurePosixPath(place).name if not pack else ""
            if is_world and not pack and (top != "data" or rest not in _COLLECTIONS):
                continue
            found.add(rest)
            try:
                if name == place:
                    self._read_leveldb(name, pack)
                else:
                    self._read_nedb(name, collection if collection in _COLLECTIONS else "", pack)
            except InvalidInput as error:
                # A world can be imported without a compendium, not without its own documents.
                if not pack:
                    raise
                self._left_out.append(f"The compendium {pack!r} was left out: {error}")
        if is_world and found and (missing := sorted(_COLLECTIONS - {"adventures"} - found)):
            self._left_out.append(f"The world has no database for {', '.join(missing)}.")
        return len(found)

    def _read_json(self, name: str) -> bool:
        """Read the documents in a file. Return whether it has any."""
        if not name.endswith(".json"):
            return False
        try:
            contents = self._json(name)
        except InvalidInput as error:
            if len(self._files.names) == 1:
                raise
            self._left_out.append(f"{error}.")
            return False
        n_before = len(self._documents)
        for content in contents:
            if collection := _collection_of(content):
                content.setdefault("_id", _id_in(name if len(contents) == 1 else "", content))
                self._add(collection, content, (name, ""))
            else:
                for each in _COLLECTIONS:
                    self._add_all(each, listed(content.get(each)), (name, ""))
        return len(self._documents) > n_before

    def _add_all(self, collection: str, contents: Iterable[object], at: tuple[str, str], parent: str = "") -> list[str]:
        """Add documents that are inside another one; return their ids. Since version 11 only ids are listed there."""
        ids: list[str] = []
        for each in contents:
            if isinstance(each, dict):
                each.setdefault("_id", fold(str(each.get("name"))) or str(len(ids)))
                self._add(collection, each, at, parent)
            ids.append(str(each["_id"] if isinstance(each, dict) else each))
        return ids

    def _add(self, collection: str, content: Content, at: tuple[str, str], parent: str = "") -> None:
        """Add a document or replace its older version. `at` is its file and its compendium."""
        (file, pack), id_ = at, str(content["_id"])
        if collection == "adventures":
            at = (file, pack or str(content.get("name") or "adventure"))
            for each in _COLLECTIONS - {"adventures", "users"}:
                self._add_all(each, listed(content.get(each)), at)
            return
        for kind in _INSIDE.get(collection, ()):
            if kind in content:
                content[kind] = self._add_all(f"{collection}.{kind}", listed(content.get(kind)), at, id_)
        if (kept := self._keep(collection, content)) is not None:
            place = file.removeprefix(self._root) if file != "." else self._files.path.name
            self._documents[pack, collection, parent, id_] = Stored(collection, id_, parent, pack, place, kept)

    def _read_nedb(self, file: str, collection: str, pack: str) -> None:
        collections: dict[str, str] = {}
        n_good = 0
        for line in filter(bytes.strip, self._files.lines(file)):
            if (content := _json_or_none(line, file)) is None:
                self._damaged[file] += 1
                continue
            n_good += 1
            id_ = str(content.get("_id", ""))
            if content.get("$$deleted"):
                self._documents.pop((pack, collections.get(id_, collection), "", id_), None)
            elif id_ and (of := collection or _collection_of(content)):
                collections[id_] = of
                self._add(of, content, (file, pack))
        if self._damaged[file] and not n_good:
            raise InvalidInput(f"{file!r} in {self._files.path} is no database of Foundry (NeDB), or damaged")

    def _read_leveldb(self, folder: str, pack: str) -> None:
        from chromium_reader.leveldb import KeyState, RawLevelDb

        newest: dict[bytes, int] = {}
        with self._files.folder("" if folder == "." else folder) as copy:
            try:
                _remove_obsolete(copy)
                with RawLevelDb(copy) as database:
                    for record in database.iterate_records_raw():
                        key = record.user_key
                        collection, _, ids = key.decode("utf-8", "replace").removeprefix("!").partition("!")
                        parent, _, id_ = ids.rpartition(".")
                        if collection not in _RECORDS or record.seq < newest.get(key, 0):
                            continue
                        if record.state is KeyState.DELETED:
                            self._documents.pop((pack, collection, parent, id_), None)
                        elif content := _json_or_none(record.value, folder):
                            self._add(collection, {**content, "_id": id_}, (folder, pack), parent)
                        else:
                            self._damaged[folder] += 1
                            continue
                        newest[key] = record.seq
            except _DAMAGED as error:
                raise InvalidInput(
                    f"The database {folder!r} in {self._files.path} is damaged or incomplete "
                    f"({shown(str(error).replace(f'{copy}/', ''))}): close Foundry and copy the folder again"
                ) from None


def _manifest_of(files: SourceFiles) -> str:
    found = sorted((name.count("/"), name) for name in files.names if PurePosixPath(name).name == _MANIFEST)
    nearest = [name for depth, name in found if depth == found[0][0]]
    if len(nearest) > 1:
        worlds = ", ".join(str(PurePosixPath(name).parent) for name in nearest)
        raise InvalidInput(f"{files.path} has several worlds; import one of them: {worlds}")
    return nearest[0] if nearest else ""


def _leveldb_of(name: str) -> str:
    """Return the folder of a LevelDB, given one of its files; "" for other files."""
    path = PurePosixPath(name)
    # LevelDB's repair moves files that it cannot use to a folder "lost".
    is_one = (path.name == "CURRENT" or path.suffix == ".ldb") and path.parent.name != "lost"
    return str(path.parent) if is_one else ""


def _remove_obsolete(copy: Path) -> None:
    """Delete the files of a LevelDB that its manifest does not name: they contain records deleted since, if any."""
    from chromium_reader.leveldb import ManifestFile

    current = copy / "CURRENT"
    if not current.is_file():
        raise ValueError("CURRENT is missing")
    live: set[int] = set()
    oldest_log = 0
    with closing(ManifestFile(copy / PurePosixPath(current.read_text().strip()).name)) as manifest:
        for edit in manifest:
            oldest_log = edit.log_number or oldest_log
            live -= {number for _, number in edit.deleted_files}
            live |= {each.file_no for each in edit.new_files}
    tables = {path for path in copy.iterdir() if path.suffix in (".ldb", ".sst")}
    named = {path for path in tables if path.stem.isdecimal() and int(path.stem) in live}
    if missing := live - {int(path.stem) for path in named}:
        raise ValueError(f"{min(missing):06}.ldb is missing")
    # Tables that no manifest names are left from an interrupted compaction; the log still has their records.
    if tables and not live and not (copy / f"{oldest_log:06}.log").exists():
        raise ValueError(f"{oldest_log:06}.log is missing")
    old_logs = {path for path in copy.glob("*.log") if not path.stem.isdecimal() or int(path.stem) < oldest_log}
    for path in (tables - named) | old_logs:
        path.unlink()


def _json_or_none(content: bytes, name: str) -> Content | None:
    try:
        found = json_of(content, name)
    except InvalidInput:
        return None
    return found if isinstance(found, dict) else None


def _collection_of(content: Mapping[str, Any]) -> str:
    """Return the collection of a document, judged by its fields; "" for macros, roll tables and other files."""
    if isinstance(key := content.get("_key"), str) and key.count("!") > 1:
        collection = key.split("!")[1]
        return collection if collection in _COLLECTIONS else ""
    if "name" not in content:
        return ""
    fields, type_ = content.keys(), str(content.get("type"))
    has_rules = bool(fields & {"system", "data"})
    n_lists = sum(isinstance(content.get(each), list) for each in _COLLECTIONS)
    shapes: tuple[tuple[str, bool], ...] = (
        ("folders", type_ in CLASSES or type_ in _OTHER_CLASSES),
        ("adventures", n_lists > 1 and bool(fields & {"_id", "caption"})),
        ("scenes", bool(fields & {"tokens", "walls", "navigation"})),
        ("", bool(fields & _OF_OTHERS)),
        ("users", "role" in fields and not has_rules),
        ("actors", has_rules and bool(fields & {"prototypeToken", "token", "items"})),
        ("journal", "pages" in fields or ("content" in fields and not has_rules)),
        ("items", has_rules and "type" in fields),
    )
    return next((collection for collection, fits in shapes if fits), "")


def _id_in(file: str, content: Mapping[str, Any]) -> str:
    """Return the id of an export. Only its file name has it: `fvtt-Actor-mira-a1b2c3d4e5f6g7h8.json`."""
    last = PurePosixPath(file).stem.rpartition("-")[2]
    return last if len(last) == _ID_LENGTH and last.isalnum() else fold(str(content.get("name"))) or file
