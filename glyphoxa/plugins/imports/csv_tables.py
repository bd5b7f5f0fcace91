"""Read CSV tables, as a spreadsheet or another program writes them, as documents to review.

`entities.csv` has the columns name and type, `relationships.csv` source, type and target; all other columns are
attributes. `docs/importing.md` shows them.

Tables are read as spreadsheet programs write them: in UTF-8, UTF-16 or Windows-1252, separated by `,`, `;`, tabs or
`|`, with or without Excel's first line `sep=;`, quoted with `"`. The reader is strict about cells: each row has as many
as there are columns. Lines of empty cells are skipped. A mistake is reported as `file:line`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import TypeAdapter, ValidationError

from glyphoxa.config.campaign_schema import Name, by_case, edge_name, hint_for, wrong_attribute
from glyphoxa.config.campaign_text import as_meant, quotes_in_name
from glyphoxa.config.located_yaml import MOST_TOLD, InvalidFile, Problem
from glyphoxa.dm.source_world import SourceDocument, SourceLink, SourceText, SourceWorld
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import InvalidInput, did_you_mean, nearest, shown
from glyphoxa.domain.ids import plain_name, slug
from glyphoxa.language.relations import IN_ENGLISH
from glyphoxa.names.naming import Called, Resolver
from glyphoxa.plugins.imports.files import SourceFiles, encoding_of
from glyphoxa.plugins.imports.labels import asks_who_sees, is_marked, name_mark, property_mark
from glyphoxa.plugins.imports.markdown_text import MARKUP, page_text


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a kind of table. Any other column is the author's own.

    Attributes:
        required: In every row.
    """

    required: tuple[str, ...]
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """
    Attributes:
        line: Where it begins, from 1.
        cells: Stripped, by column; empty ones are absent.
    """

    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Table:
    """
    Attributes:
        path: Shown in messages.
        own: _Columns that are not of its kind, as they are written.
        remarks: Entries whose author may have meant something else.
    """

    path: Path
    columns: _Columns
    own: tuple[str, ...]
    rows: tuple[_Row, ...]
    remarks: tuple[Problem, ...]


_ENTITIES: Final = _Columns(("name", "type"), ("name", "type", "aliases", "known_by", "hidden"))
_RELATIONSHIPS: Final = _Columns(("source", "type", "target"), ("source", "type", "target", "known_by", "hidden"))
_KINDS: Final = (_RELATIONSHIPS, _ENTITIES)
_FILES: Final = ("entities.csv", "relationships.csv")
_YES, _NO = ("yes", "ja", "true", "1", "x"), ("no", "nein", "false", "0")
_ONLY_HIDDEN: Final = "named only by hidden relations"
_name: TypeAdapter[str] = TypeAdapter(Name)


def read_csv_tables(files: SourceFiles) -> SourceWorld:
    """Raises: InvalidInput: There are no such tables; or with every mistake in them, each at its line."""
    names = files.names if files.names == (files.path.name,) else _tables_in(files)
    failures: list[str] = []
    tables: list[_Table] = []
    for name in names:
        path = files.path if name == files.path.name else files.path / name
        try:
            tables.append(_read_csv(path, files.read(name, most=_MOST_BYTES)))
        except InvalidFile as error:
            failures.append(str(error))
    remarks = [f"{table.path}:{each.line}: {each.text}" for table in tables for each in table.remarks]
    documents: dict[str, SourceDocument] = {}
    for table in sorted(tables, key=lambda each: each.columns is not _ENTITIES):
        rows = (_entities if table.columns is _ENTITIES else _relations)(table, documents, remarks)
        wrong_columns = (Problem(1, problem) for name in table.own if (problem := wrong_attribute(name)))
        if problems := [*wrong_columns, *islice(rows, MOST_TOLD)]:
            failures.append(str(InvalidFile(table.path, problems)))
    if failures:
        raise InvalidInput("\n".join(failures))
    if any("known_by" in row.cells for table in tables for row in table.rows):
        remarks.append("`known_by` hides a row; accept it, then: glyphoxa entity secret NAME --known-by NPC")
    name = files.path.resolve().stem
    return SourceWorld("csv", name, name, tuple(documents.values()), tuple(remarks))


def _tables_in(files: SourceFiles) -> list[str]:
    """Return the tables of the outermost folder that has any."""
    found = [name for name in files.names if PurePosixPath(name).name in _FILES]
    if not found:
        named = " or ".join(_FILES)
        raise InvalidInput(
            f"{files.path}: no table in it; name a .csv file (Excel: save as CSV) or what contains {named}"
        )
    folder = min((PurePosixPath(name).parent for name in found), key=lambda each: len(str(each).removeprefix(".")))
    return [name for name in found if PurePosixPath(name).parent == folder]


def _entities(table: _Table, made: dict[str, SourceDocument], _remarks: list[str]) -> Iterator[Problem]:
    """Add the entities of a table to `made`, by key, and yield the mistakes in its rows."""
    # The DM reviews the author's own types, but one that is nearly one of ours is a mistake.
    named = {row.cells["type"] for row in table.rows}
    types = {*ENTITY_TYPES, *(each for each in named if not nearest(each.casefold(), ENTITY_TYPES))}
    cased = by_case(types)
    lines: dict[str, int] = {}
    for row in table.rows:
        name, kind = row.cells["name"], cased.get(row.cells["type"].casefold(), row.cells["type"])
        aliases = tuple(dict.fromkeys(_listed(row, "aliases")))
        wrong = [problem for each in (name, *aliases) if (problem := _wrong_name(each))]
        key = slug(name)
        if (first := lines.setdefault(name.casefold(), row.line)) != row.line:
            wrong.append(f"entity {name!r} is here twice, first on line {first}")
        elif kind not in types:
            wrong.append(f"unknown entity type {kind!r}, {did_you_mean(kind, types)}")
        if not key:
            wrong.append(f"{name!r} has no letter or digit to make an id from")
        elif key in made and first == row.line:
            wrong.append(f"{name!r} and {made[key].name!r} give the same id, {key!r}; rename one of them")
        is_hidden = _is_hidden(row, wrong)
        yield from (Problem(row.line, each) for each in wrong)
        marks, attributes, texts = _read_cells(table, row)
        why = "column 'hidden' or 'known_by'" if is_hidden else "; ".join(marks) or name_mark((name,), ())
        made[key] = SourceDocument(
            key,
            name,
            kind,
            "row",
            table.path.name,
            aliases=aliases,
            attributes=attributes,
            hidden=bool(why),
            texts=texts,
            why=why,
        )


def _read_cells(table: _Table, row: _Row) -> tuple[list[str], dict[str, str], tuple[SourceText, ...]]:
    """Return what hides a row, its attributes, and what only the DM may know of them."""
    cells = {column: row.cells[column] for column in table.own if column in row.cells}
    marks = {name: property_mark(name, [value]) for name, value in cells.items()}
    attributes: dict[str, str] = {}
    for_dm: list[SourceText] = []
    for name, value in cells.items():
        if marks[name] == "value" or (marks[name] and is_marked(name, "key")):
            for_dm.append(SourceText(value, hidden=True, page=name, why=f"column {name!r}"))
        elif asks_who_sees(name) or is_marked(name, "key"):
            continue
        elif any(mark in value for mark in MARKUP) and (read := page_text(value)).hidden:
            attributes[name] = read.visible
            for_dm.append(SourceText(read.hidden, hidden=True, page=name, why="; ".join(read.why)))
        else:
            attributes[name] = value
    of_row = [f"column '{name}: {cells[name]}'" for name, hides in marks.items() if hides == "note"]
    return of_row[:1], attributes, tuple(for_dm)


def _relations(table: _Table, made: dict[str, SourceDocument], remarks: list[str]) -> Iterator[Problem]:
    """Add the relations of a table to the documents in `made`, and yield the mistakes in its rows.

    A name that no row of entities has may be one of the campaign: its document is a concept, which may be part of any
    entity of that name. It is hidden if all its relations are. A name is read as the review reads it: an alias of a
    hidden row means that row. Hints about types become remarks.
    """
    known = Resolver(sorted(made.values(), key=lambda one: not one.hidden), _called, campaign="", what="document")
    lines: dict[str, int] = {}
    hinted: set[str] = set()
    named: list[str] = []
    links: dict[str, list[SourceLink]] = {}
    for_dm: dict[str, list[SourceText]] = {}
    for row in table.rows:
        source, kind, target = row.cells["source"], IN_ENGLISH.spelled(row.cells["type"]), row.cells["target"]
        wrong = [problem for each in (source, kind, target) if (problem := _wrong_name(each))]
        wrong += [f"{each!r} has no letter or digit to make an id from" for each in (source, target) if not slug(each)]
        if slug(source) == slug(target) != "":
            wrong.append(f"{source!r} cannot be related to itself")
        edge = edge_name(source, kind, target)
        if (first := lines.setdefault(edge.casefold(), row.line)) != row.line:
            wrong.append(f"relationship {edge!r} is here twice, first on line {first}")
        if kind not in hinted and len(hinted) < MOST_TOLD and (hint := hint_for(kind, IN_ENGLISH)):
            hinted.add(kind)
            remarks.append(f"{table.path}:{row.line}: {hint}")
        is_hidden = _is_hidden(row, wrong)
        if wrong:
            yield from (Problem(row.line, each) for each in wrong)
            continue
        marks, attributes, texts = _read_cells(table, row)
        ends: list[str] = []
        for name in (source, target):
            end = known.exact_or_bare(name) or known.by_id.get(slug(name))
            if end is None:
                why = name_mark((name,), ()) or _ONLY_HIDDEN
                end = SourceDocument(slug(name), name, "concept", "row", table.path.name, hidden=True, why=why)
                known.add(end)
                named.append(end.key)
                made[end.key] = end
            ends.append(end.key)
        is_hidden = (
            is_hidden or bool(marks or texts) or any(made[end].hidden and made[end].why != _ONLY_HIDDEN for end in ends)
        )
        if not is_hidden:
            made |= {end: replace(made[end], hidden=False, why="") for end in ends if made[end].hidden}
        links.setdefault(ends[0], []).append(SourceLink(ends[1], kind, is_hidden, attributes))
        for_dm.setdefault(ends[0], []).extend(texts)
    for key, found in links.items():
        made[key] = replace(made[key], links=tuple(found), texts=(*made[key].texts, *for_dm[key]))
    if named:
        names = shown(", ".join(made[key].name for key in named))
        remarks.append(f"{names}: no row says what they are; each becomes part of what has its name, or a concept")


def _called(document: SourceDocument) -> Called:
    return Called(document.key, (document.name,), document.aliases)


def _is_hidden(row: _Row, wrong: list[str]) -> bool:
    """Return whether not everybody may know a row. A cell that does not say so is added to `wrong`."""
    hidden = row.cells.get("hidden", "no").casefold()
    if hidden not in (*_YES, *_NO):
        wrong.append(f"hidden: {row.cells['hidden']!r} is not valid, valid: {', '.join((*_YES, *_NO))} or nothing")
    return hidden in _YES or "known_by" in row.cells


def _listed(row: _Row, column: str) -> list[str]:
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


def _read_csv(path: Path, content: bytes) -> _Table:
    """Read a table of the first kind whose required columns are in the header.

    Raises:
        InvalidFile: With every mistake in its form.
        InvalidInput: It is too large.
    """
    text, remarks = _text(path, content)
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


def _text(path: Path, content: bytes) -> tuple[str, list[Problem]]:
    """Return the text and remarks."""
    if len(content) > _MOST_BYTES:
        raise InvalidInput(f"{path}: larger than {_MOST_BYTES >> 20} MiB; split it into several tables")
    encoding = encoding_of(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidFile(path, [Problem(line, "not UTF-8 text; save the file as UTF-8")]) from None
    remarks: list[Problem] = []
    if encoding == "cp1252":
        line = next((n for n, each in enumerate(text.splitlines(), start=1) if not each.isascii()), 1)
        remarks.append(Problem(line, 'not UTF-8, read as Windows-1252; if letters are wrong, save it as "CSV UTF-8"'))
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidFile(path, [Problem(line, "a NUL character: not a CSV table")])
    if not text.strip():
        raise InvalidFile(path, [Problem(1, "is empty; write the names of the columns in its first line")])
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


def _names(header: list[str], columns: _Columns) -> list[str]:
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
    path: Path, records: Iterator[tuple[int, list[str]]], columns: _Columns, names: list[str], remarks: list[Problem]
) -> _Table:
    problems = list(_wrong_columns(columns, names))
    rows: list[_Row] = []
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
            rows.append(_Row(line, found))
    except csv.Error as error:
        problems.append(Problem(rows[-1].line + 1 if rows else 2, f"not CSV from here on: {error}"))
    if problems:
        raise InvalidFile(path, problems)
    return _Table(path, columns, tuple(n for n in names if n and n not in columns.known), tuple(rows), tuple(remarks))


def _as_meant(cells: Mapping[str, str], columns: _Columns) -> tuple[dict[str, str], list[str]]:
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


def _wrong_columns(columns: _Columns, names: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for name in filter(None, names):
        if name.casefold() in seen:
            yield Problem(1, f"column {name!r} is here twice")
        seen.add(name.casefold())
        if name not in columns.known and (near := nearest(name, columns.known, least=_ALMOST)):
            yield Problem(1, f"unknown column {name!r}, did you mean {near!r}? (valid: {', '.join(columns.known)})")
