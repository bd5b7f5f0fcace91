"""Read entities and relationships from CSV tables: what a spreadsheet or another program can write.

`entities.csv` has the columns name and type, `relationships.csv` source, type and target; all other columns are
attributes. `docs/writing-a-campaign.md` shows them.

Tables are read as spreadsheet programs write them: in UTF-8, UTF-16 or Windows-1252, separated by `,`, `;`, tabs or
`|`, with or without Excel's first line `sep=;`, quoted with `"`. The reader is strict about cells: each row has as many
as there are columns. Lines of empty cells are skipped. A mistake is reported as `file:line`.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from glyphoxa.config.campaign_checks import Name, by_case, edge_name, hint_for, wrong_attribute
from glyphoxa.config.campaign_text import as_meant, quotes_in_name
from glyphoxa.config.located_yaml import MOST_TOLD, InvalidFile, Problem, text_of
from glyphoxa.dm.campaign_diff import Tables
from glyphoxa.domain.campaign import Campaign, Entity, Relationship
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean, nearest
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, plain_name, slug
from glyphoxa.domain.node_types import ENTITY_TYPES
from glyphoxa.language.relations import RelationWords


@dataclass(frozen=True, slots=True)
class CsvRow:
    """
    Attributes:
        line: Where it begins, from 1.
        cells: Stripped, by column; empty ones are absent.
    """

    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a kind of table. Any other column is the author's own.

    Attributes:
        required: In every row.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


@dataclass(frozen=True, slots=True)
class LocatedCsv:
    """
    Attributes:
        own: Columns that are not of its kind, as they are written.
        remarks: Entries whose author may have meant something else.
    """

    path: Path
    columns: Columns
    own: tuple[str, ...]
    rows: tuple[CsvRow, ...]
    remarks: tuple[Problem, ...] = ()


ENTITIES: Final = Columns(("name", "type"), ("aliases", "known_by", "hidden"))
RELATIONSHIPS: Final = Columns(("source", "type", "target"), ("known_by", "hidden"))
_KINDS: Final = (RELATIONSHIPS, ENTITIES)
FILES: Final = ("entities.csv", "relationships.csv")
_YES, _NO = ("yes", "ja", "true", "1", "x"), ("no", "nein", "false", "0")
_NOTHING = Campaign(CampaignId(""), "", "", (), (), (), (), ())
_name: TypeAdapter[str] = TypeAdapter(Name)


@dataclass(frozen=True, slots=True)
class TablesFile:
    """Tables, and remarks for their author (`file:line: what`).

    Attributes:
        unknown: Names in them of entities and NPCs that only a campaign could know, where none was given.
    """

    tables: Tables
    warnings: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def is_tables(path: Path) -> bool:
    """Return whether a path means tables, and not a campaign file."""
    return path.is_dir() or path.suffix.casefold() == ".csv"


def read_tables(
    path: Path, *, into: Campaign | None, also: Iterable[Entity] = (), entity_types: Collection[str] = ()
) -> TablesFile:
    """Read a table, or a folder with `entities.csv`, `relationships.csv` or both.

    Args:
        into: The campaign as its file describes it: its word stands where a table says otherwise. None if there is
            none to look at: what leads out of the tables is named, and left out of them, and what only some NPCs
            know is hidden.
        also: Other entities that the tables may speak of.
        entity_types: Types besides the usual ones and those that are in use.

    Raises:
        NotFound: There is no such file, or none of both in the folder.
        InvalidInput: With every mistake in them, each at its line.
    """
    reading = _Reading(into or _NOTHING, entity_types, is_alone=into is None)
    into = reading.into
    for entity in (*also, *into.entities):
        reading.known[entity.name.casefold()] = entity
    reading.told.update((entity.id, entity) for entity in into.entities)
    failures: list[str] = []
    tables: list[LocatedCsv] = []
    for file in _files(path):
        try:
            tables.append(_read_csv(file))
        except InvalidFile as error:
            failures.append(str(error))
    reading.warnings += [f"{table.path}:{each.line}: {each.text}" for table in tables for each in table.remarks]
    for table in sorted(tables, key=lambda table: table.columns is RELATIONSHIPS):
        try:
            reading.read(table)
        except InvalidFile as error:
            failures.append(str(error))
    if failures:
        raise InvalidInput("\n".join(failures))
    made = Tables(tuple(reading.made), tuple(reading.edges))
    return TablesFile(made, tuple(reading.warnings), tuple(dict.fromkeys(reading.unknown)))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = [path / name for name in FILES if (path / name).is_file()]
    if not found:
        other = next(iter(sorted(path.glob("*.y*ml"))), None)
        hint = "" if other is None else f" (to use a campaign file, name the file: {other})"
        raise NotFound(
            f"{path}: a folder of tables contains {' or '.join(FILES)}, or both; this one contains neither{hint}"
        )
    return found


@dataclass(slots=True)
class _Reading:
    into: Campaign
    entity_types: Collection[str]
    is_alone: bool = False
    unknown: list[str] = field(default_factory=list)
    known: dict[str, Entity] = field(default_factory=dict)
    """Entities by name, those of the tables among them."""
    told: dict[EntityId, Entity] = field(default_factory=dict)
    """Entities of the campaign file."""
    made: list[Entity] = field(default_factory=list)
    edges: list[Relationship] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def read(self, table: LocatedCsv) -> None:
        """Read the rows of a table. Raises: InvalidFile: With the first mistakes in them, each at its line."""
        rows = self._entities if table.columns is ENTITIES else self._relationships
        wrong_columns = (Problem(1, problem) for name in table.own if (problem := wrong_attribute(name)))
        if problems := [*wrong_columns, *islice(rows(table), MOST_TOLD)]:
            raise InvalidFile(table.path, problems)

    def _entities(self, table: LocatedCsv) -> Iterator[Problem]:
        types = {*self.into.schema.entity_types, *self.entity_types, *(entity.type for entity in self.known.values())}
        if self.is_alone:  # the DM reviews the author's own types, but one that is nearly one of ours is a mistake
            named = {row.cells["type"] for row in table.rows}
            types |= {each for each in named if not nearest(each.casefold(), ENTITY_TYPES)}
        cased = by_case(types)
        ids = {entity.id: entity.name for entity in self.known.values()}
        lines: dict[str, int] = {}
        for row in table.rows:
            name, kind = row.cells["name"], cased.get(row.cells["type"].casefold(), row.cells["type"])
            wrong = [problem for each in (name, *_listed(row, "aliases")) if (problem := _wrong_name(each))]
            known = self.known.get(name.casefold())
            if (first := lines.setdefault(name.casefold(), row.line)) != row.line:
                wrong.append(f"entity {name!r} is here twice, first on line {first}")
                known = None
            elif kind not in types:
                wrong.append(f"unknown entity type {kind!r}, {did_you_mean(kind, types)} (your own: --entity-type)")
            elif known is not None and known.type != kind:
                wrong.append(f"{known.name!r} is an entity of type {known.type!r} in this campaign, not {kind!r}")
            entity_id = EntityId(slug(name)) if known is None else known.id
            if not entity_id:
                wrong.append(f"{name!r} has no letter or digit to make an id from")
            elif known is None and ids.setdefault(entity_id, name) != name and first == row.line:
                wrong.append(f"{name!r} and {ids[entity_id]!r} give the same id, {entity_id!r}; rename one of them")
            known_by, hidden = self._scope(row, wrong)
            if hidden and any(npc.entity_id == entity_id for npc in self.into.npcs):
                wrong.append(f"{name!r} is an NPC of the campaign file, and an NPC cannot be hidden from itself")
            yield from (Problem(row.line, each) for each in wrong)
            attributes = {column: row.cells[column] for column in table.own if column in row.cells}
            entity = Entity(
                entity_id,
                kind,
                name if known is None else known.name,
                tuple(dict.fromkeys(_listed(row, "aliases"))),
                attributes,
                self._with_itself(entity_id, known_by),
                hidden,
            )
            self._contradictions(entity, table, row)
            self.made.append(entity)
            self.known.setdefault(entity.name.casefold(), entity)

    def _relationships(self, table: LocatedCsv) -> Iterator[Problem]:
        lines: dict[str, int] = {}
        hinted: set[str] = set()
        relations = RelationWords.of(self.into)
        for row in table.rows:
            wrong: list[str] = []
            kind = relations.spelled(row.cells["type"])
            if problem := _wrong_name(kind):
                wrong.append(problem)
            source, target = (self._entity(row.cells[end], wrong) for end in ("source", "target"))
            if source is not None and target is not None:
                if source.id == target.id:
                    wrong.append(f"{source.name!r} cannot be related to itself")
                edge = edge_name(source.name, kind, target.name)
                if (first := lines.setdefault(edge.casefold(), row.line)) != row.line:
                    wrong.append(f"relationship {edge!r} is here twice, first on line {first}")
            if kind not in hinted and len(hinted) < MOST_TOLD and (hint := hint_for(kind, relations)):
                hinted.add(kind)
                self.warnings.append(f"{table.path}:{row.line}: {hint}")
            known_by, hidden = self._scope(row, wrong)
            yield from (Problem(row.line, each) for each in wrong)
            if source is not None and target is not None:
                attributes = {column: row.cells[column] for column in table.own if column in row.cells}
                self.edges.append(
                    Relationship(source.id, target.id, kind, attributes, known_by=known_by, hidden=hidden)
                )

    def _entity(self, name: str, wrong: list[str]) -> Entity | None:
        entity = self.known.get(name.casefold())
        if entity is None and self.is_alone:
            self.unknown.append(name)
        elif entity is None:
            wrong.append(f"unknown entity {name!r}, {did_you_mean(name, (e.name for e in self.known.values()))}")
        return entity

    def _scope(self, row: CsvRow, wrong: list[str]) -> tuple[tuple[NpcId, ...], bool]:
        npcs = {npc.name.casefold(): npc for npc in self.into.npcs}
        known_by: dict[NpcId, None] = {}
        for name in _listed(row, "known_by"):
            npc = npcs.get(name.casefold())
            if npc is None and self.is_alone:
                self.unknown.append(name)
            elif npc is None:
                hint = did_you_mean(name, (each.name for each in npcs.values()))
                wrong.append(f"{name!r} is not an NPC of the campaign file, {hint}")
            else:
                known_by[npc.id] = None
        told = row.cells.get("hidden", "no").casefold()
        if told not in (*_YES, *_NO):
            wrong.append(f"hidden: {row.cells['hidden']!r} is not valid, valid: {', '.join((*_YES, *_NO))} or nothing")
        is_unknown = self.is_alone and "known_by" in row.cells
        return tuple(known_by), told in _YES or is_unknown

    def _with_itself(self, entity: EntityId, known_by: tuple[NpcId, ...]) -> tuple[NpcId, ...]:
        """Add an NPC to those who know of it."""
        own = next((npc.id for npc in self.into.npcs if npc.entity_id == entity), None)
        return known_by if own is None or not known_by or own in known_by else (own, *known_by)

    def _contradictions(self, entity: Entity, table: LocatedCsv, row: CsvRow) -> None:
        """Warn where the campaign file says otherwise."""
        told = self.told[entity.id].attributes if entity.id in self.told else {}
        for name, value in entity.attributes.items():
            if name in told and told[name] != value:
                self.warnings.append(
                    f"{table.path}:{row.line}: {entity.name}: the campaign file has its own {name!r}, which is kept"
                )


def _listed(row: CsvRow, column: str) -> list[str]:
    """Split a cell at `;`."""
    return [part for part in (part.strip() for part in row.cells.get(column, "").split(";")) if part]


def _wrong_name(name: str) -> str | None:
    try:
        _name.validate_python(name)
    except ValidationError as error:
        return f"{name[:40]!r}: {error.errors()[0]['msg'].removeprefix('Value error, ')}"
    return None


# Tables whose rows know their lines.

_MOST_BYTES: Final = 16 * 1024 * 1024
_SEPARATORS: Final = (",", ";", "\t", "|")
_SEPARATOR_LINE: Final = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.IGNORECASE)
"""Excel's first line, which names the separator."""
_ALMOST: Final = 0.93
"""A column this similar to a known one is that one, misspelt."""


def _read_csv(path: Path) -> LocatedCsv:
    """Read a table of the first kind whose required columns are in the header.

    Raises:
        NotFound: There is no such file.
        InvalidFile: With every mistake in its form.
        InvalidInput: It cannot be read.
    """
    text, remarks = _text(path)
    named = _SEPARATOR_LINE.match(text)
    n_before = 0 if named is None else 1
    separators = _SEPARATORS if named is None else (str(named[1]),)
    text = text if named is None else text[named.end() :]
    headers = {separator: _header(text, separator) for separator in separators}
    for separator, header in headers.items():
        for columns in _KINDS:
            names = _names(header, columns)
            if set(columns.required) <= set(names):
                records = ((line + n_before, cells) for line, cells in _records(text, separator))
                return _table(path, records, columns, names, remarks)
    raise InvalidFile(path, [Problem(1 + n_before, _no_kind(max(headers.values(), key=len)))])


def _header(text: str, separator: str) -> list[str]:
    """Return the cells of the first line; none if the text has another separator."""
    try:
        return next(_records(text, separator), (1, []))[1]
    except csv.Error:
        return []


def encoding_of(content: bytes) -> str:
    """Return the encoding of a table: UTF-8, UTF-16, or else Windows-1252, which old versions of Excel write."""
    begins = content[:8]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in begins:  # without a byte order mark, Latin letters show it
        return "utf-16-le" if not any(begins[1::2]) else "utf-16-be" if not any(begins[::2]) else "utf-8-sig"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8-sig" if b"\0" in content else "cp1252"
    return "utf-8-sig"


def _text(path: Path) -> tuple[str, list[Problem]]:
    """Return the text and remarks."""
    found: list[str] = []

    def noted(content: bytes) -> str:
        found.append(encoding_of(content))
        return found[0]

    text = text_of(path, most_bytes=_MOST_BYTES, if_larger="; split it into several tables", encoding_of=noted)
    remarks: list[Problem] = []
    if found == ["cp1252"]:
        line = next((n for n, each in enumerate(text.splitlines(), start=1) if not each.isascii()), 1)
        remarks.append(Problem(line, 'not UTF-8, read as Windows-1252; if letters are wrong, save it as "CSV UTF-8"'))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidFile(path, [Problem(line, "a NUL character: not a CSV table")])
    if not text.strip():
        raise InvalidInput(f"{path}: is empty; write the names of the columns in its first line")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # of an old Mac
    return text, remarks


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    for cells in reader:
        yield line, [cell.strip() for cell in cells]
        line = reader.line_num + 1


def _names(header: list[str], columns: Columns) -> list[str]:
    """Return the columns' names. Known ones may be written in capitals."""
    plain = [plain_name(name) for name in header]
    return [name.casefold() if name.casefold() in columns.known else name for name in plain]


def _no_kind(header: list[str]) -> str:
    wanted = " or ".join(",".join(columns.required) for columns in _KINDS)
    have = [name.casefold() for name in header]
    missing = min(([name for name in kind.required if name not in have] for kind in _KINDS), key=len)
    hints = [f"{near!r}, {did_you_mean(near, missing)}" for name in missing if (near := nearest(name, have))]
    hints += [remark for name in header if (remark := quotes_in_name(name))]
    hint = f" (there is {'; '.join(hints)})" if hints else ""
    return f"the columns are not those of a table: {', '.join(map(repr, missing))} missing{hint}; needed: {wanted}"


def _table(
    path: Path, records: Iterator[tuple[int, list[str]]], columns: Columns, names: list[str], remarks: list[Problem]
) -> LocatedCsv:
    problems = list(_wrong_columns(columns, names))
    rows: list[CsvRow] = []
    try:
        next(records)  # the header
        for line, cells in records:
            if not any(cells):
                continue
            if len(cells) != len(names):
                problems.append(Problem(line, f"a row of {len(cells)} cells; the header names {len(names)} columns"))
                continue
            found, told = _as_meant({name: cell for name, cell in zip(names, cells, strict=True) if cell}, columns)
            remarks += [Problem(line, each) for each in told]
            if "" in found:
                problems.append(Problem(line, f"{found['']!r} is in a column without a name"))
            problems += [Problem(line, f"{name!r} is empty") for name in columns.required if name not in found]
            rows.append(CsvRow(line, found))
    except csv.Error as error:
        problems.append(Problem(rows[-1].line + 1 if rows else 2, f"not CSV from here on: {error}"))
    if problems:
        raise InvalidFile(path, problems)
    return LocatedCsv(
        path, columns, tuple(n for n in names if n and n not in columns.known), tuple(rows), tuple(remarks)
    )


def _as_meant(cells: Mapping[str, str], columns: Columns) -> tuple[dict[str, str], list[str]]:
    """Return the cells of a row as they are meant, and remarks."""
    meant: dict[str, str] = {}
    remarks: list[str] = []
    for column, cell in cells.items():
        text, told = as_meant(cell, char=cells.get("name", ""), language="")
        # A name of several lines is a mistake, and is reported.
        meant[column] = plain_name(text) if column in columns.known and "\n" not in text else text.strip()
        quoted = quotes_in_name(text) if column in columns.required else ""
        remarks += [f"{column}: {each}" for each in (*told, quoted) if each]
    return {column: cell for column, cell in meant.items() if cell}, remarks


def _wrong_columns(columns: Columns, names: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for name in filter(None, names):
        if name.casefold() in seen:
            yield Problem(1, f"column {name!r} is here twice")
        seen.add(name.casefold())
        if name not in columns.known and (near := nearest(name, columns.known, least=_ALMOST)):
            yield Problem(1, f"unknown column {name!r}, did you mean {near!r}? (valid: {', '.join(columns.known)})")
