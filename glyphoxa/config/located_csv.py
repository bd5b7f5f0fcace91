"""CSV tables that remember where everything stands, so that a mistake is reported as `file:line`.

Strict: UTF-8 (with or without a byte order mark), separated by `,` or `;`, quoted with `"`, as many cells in each row
as there are columns. Lines of empty cells are passed over.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from glyphoxa.config.located_yaml import InvalidFile, Problem
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean

_MAX_BYTES = 16 * 1024 * 1024
_SEPARATORS = (",", ";")
_ALMOST = 0.8
"""So alike, a column is a known one misspelt."""


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
    """A kind of table. What is in neither is a column of the author's own.

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
    """

    path: Path
    columns: Columns
    own: tuple[str, ...]
    rows: tuple[CsvRow, ...]


def read_csv(path: Path, kinds: Collection[Columns]) -> LocatedCsv:
    """
    Args:
        kinds: What the table may be; its header says which. The first whose required columns are there is taken.

    Raises:
        NotFound: There is no such file.
        InvalidFile: With every mistake in its form.
        InvalidInput: It cannot be read.
    """
    text = _text(path)
    headers = {separator: _header(text, separator) for separator in _SEPARATORS}
    for separator, header in headers.items():
        for columns in kinds:
            names = _names(header, columns)
            if set(columns.required) <= set(names):
                return _table(path, text, separator, columns, names)
    raise InvalidFile(path, [Problem(1, _no_kind(max(headers.values(), key=len), kinds))])


def _header(text: str, separator: str) -> list[str]:
    """Empty when the text is not of cells that are separated so."""
    try:
        return next(_records(text, separator), (1, []))[1]
    except csv.Error:
        return []


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{path}: larger than {_MAX_BYTES // 1024 // 1024} MiB; split it into several tables")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidFile(
            path, [Problem(line, 'not UTF-8 text; save the table as UTF-8 ("CSV UTF-8" in a spreadsheet program)')]
        ) from None
    if "\0" in text:
        raise InvalidFile(
            path, [Problem(text.count("\n", 0, text.index("\0")) + 1, "a NUL character: not a CSV table")]
        )
    if not text.strip():
        raise InvalidInput(f"{path}: is empty; the first line of a table names its columns")
    return text


def _records(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    for cells in reader:
        yield line, [cell.strip() for cell in cells]
        line = reader.line_num + 1


def _names(header: list[str], columns: Columns) -> list[str]:
    """Known columns may be written in capitals."""
    return [name.casefold() if name.casefold() in columns.known else name for name in header]


def _no_kind(header: list[str], kinds: Collection[Columns]) -> str:
    wanted = " or ".join(",".join(columns.required) for columns in kinds)
    have = [name.casefold() for name in header]
    missing = min(([name for name in kind.required if name not in have] for kind in kinds), key=len)
    hints = [
        f"{near[0]!r}, {did_you_mean(near[0], missing)}" for m in missing if (near := get_close_matches(m, have, 1))
    ]
    hint = f" (there is {'; '.join(hints)})" if hints else ""
    return f"the columns are not those of a table: {', '.join(map(repr, missing))} missing{hint}; needed: {wanted}"


def _table(path: Path, text: str, separator: str, columns: Columns, names: list[str]) -> LocatedCsv:
    problems = list(_wrong_columns(columns, names))
    rows: list[CsvRow] = []
    try:
        for line, cells in _records(text, separator):
            if line == 1 or not any(cells):
                continue
            if len(cells) != len(names):
                problems.append(
                    Problem(line, f"a row of {len(cells)} cells, where the header names {len(names)} columns")
                )
                continue
            found = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
            if "" in found:
                problems.append(Problem(line, f"{found['']!r} stands in a column without a name"))
            problems += [Problem(line, f"{name!r} is empty") for name in columns.required if name not in found]
            rows.append(CsvRow(line, found))
    except csv.Error as error:
        problems.append(Problem(rows[-1].line + 1 if rows else 2, f"not CSV from here on: {error}"))
    if problems:
        raise InvalidFile(path, problems)
    return LocatedCsv(path, columns, tuple(n for n in names if n and n not in columns.known), tuple(rows))


def _wrong_columns(columns: Columns, names: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for name in filter(None, names):
        if name.casefold() in seen:
            yield Problem(1, f"column {name!r} stands here twice")
        seen.add(name.casefold())
        if name not in columns.known and (near := get_close_matches(name.casefold(), columns.known, 1, _ALMOST)):
            yield Problem(1, f"unknown column {name!r}, did you mean {near[0]!r}? (valid: {', '.join(columns.known)})")
