"""Read a CSV table, or a folder or zip with `entities.csv` and `relationships.csv`, as documents to review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from glyphoxa.config.campaign_csv import FILES, read_tables
from glyphoxa.dm.campaign_diff import Tables
from glyphoxa.dm.imported import SourceDocument, SourceLink, SourceText, SourceWorld
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.domain.ids import EntityId
from glyphoxa.imports.files import SourceFiles
from glyphoxa.imports.markdown_text import MARKUP, page_text
from glyphoxa.imports.secrecy import Hides, asks_who_sees, is_marked, name_mark, property_mark


def read_csv_tables(files: SourceFiles) -> SourceWorld:
    """Raises: InvalidInput: There are no such tables; or with every mistake in them, each at its line."""
    is_table = files.names == (files.path.name,)
    folders = [str(PurePosixPath(name).parent) for name in files.names if PurePosixPath(name).name in FILES]
    if not is_table and not folders:
        raise InvalidInput(
            f"{files.path}: no table in it; name a .csv file (Excel: save as CSV) or what contains {' or '.join(FILES)}"
        )
    folder = "" if is_table else min(folders, key=len).removeprefix(".")
    with files.folder(folder) as copy:
        path = copy / files.path.name if is_table else copy
        # Messages name the file that the user has, not its copy.
        own_path = str(files.path / folder)
        try:
            found = read_tables(path, into=None)
        except InvalidInput as error:
            raise InvalidInput(
                str(error).replace(str(path), own_path).replace(" (your own: --entity-type)", "")
            ) from None
        warnings = [warning.replace(str(path), own_path) for warning in found.warnings]
    if found.unknown:
        names = shown(", ".join(found.unknown))
        warnings.append(f"{names}: no row says what they are; relations to them are left out, `known_by` means hidden")
    name = files.path.resolve().stem
    file = files.path.name if is_table else FILES[0]
    return SourceWorld("csv", name, name, tuple(_documents(found.tables, file)), tuple(warnings))


def _documents(tables: Tables, file: str) -> Iterator[SourceDocument]:
    marks = {each.id: _marks(each.attributes) for each in tables.entities}
    why = {each.id: _why(each, marks[each.id]) for each in tables.entities}
    links: dict[EntityId, list[SourceLink]] = {}
    for edge in tables.relationships:
        is_hidden = edge.hidden or any((_marks(edge.attributes), why[edge.source], why[edge.target]))
        links.setdefault(edge.source, []).append(SourceLink(edge.target, edge.type, is_hidden))
    for each in tables.entities:
        for_dm = [
            SourceText(str(each.attributes[name]), hidden=True, page=name, why=f"column {name!r}")
            for name, hides in marks[each.id].items()
            if hides == "value" or is_marked(name, "key")
        ]
        left_out = {text.page for text in for_dm}
        left_out |= {name for name in each.attributes if asks_who_sees(name) or is_marked(name, "key")}
        attributes = {name: str(value) for name, value in each.attributes.items() if name not in left_out}
        for name, value in attributes.items():
            if any(mark in value for mark in MARKUP) and (read := page_text(value)).hidden:
                attributes[name] = read.visible
                for_dm.append(SourceText(read.hidden, hidden=True, page=name, why="; ".join(read.why)))
        yield SourceDocument(
            each.id,
            each.name,
            each.type,
            "row",
            file,
            aliases=each.aliases,
            attributes=attributes,
            hidden=bool(why[each.id]),
            texts=tuple(for_dm),
            links=tuple(links.get(each.id, ())),
            why=why[each.id],
        )


def _marks(cells: Mapping[str, object]) -> dict[str, Hides]:
    """Return what the cells of a row hide, by their columns."""
    found = {name: property_mark(name, [value]) for name, value in cells.items()}
    return {name: hides for name, hides in found.items() if hides}


def _why(entity: Entity, marks: Mapping[str, Hides]) -> str:
    """Return the mark that hides a row; "" for none."""
    if entity.hidden:
        return "column 'hidden' or 'known_by'"
    of_row = (f"column '{name}: {entity.attributes[name]}'" for name, hides in marks.items() if hides == "note")
    return next(of_row, name_mark((entity.name,), ()))
