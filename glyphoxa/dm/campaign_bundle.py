"""A whole campaign as one JSON document that another database can import. See docs/writing-a-campaign.md.

This module defines the format; `glyphoxa.adapters.postgres.world.bundle` exports and imports it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NoReturn, TypeAlias

from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import CampaignId, slug

FORMAT: Final = "glyphoxa-campaign"
VERSION: Final = 1
MAX_BYTES: Final = 512 * 1024 * 1024
"""Maximum file size. A campaign of 100,000 utterances takes about a fifth of it."""

Row: TypeAlias = dict[str, object]
"""The columns of a row of one table, without the campaign id."""

_SECRET_SCOPES: Final = ("secret", "hidden")
_TALK: Final = ("session_entries", "corrections", "turns", "chronicle_rereads", "state_atoms", "atom_edges")
_ALL_READ: Final[Row] = {
    "attempts": 0,
    "error": None,
    "retry_at": None,
    "is_dead": False,
    "n_refused": 0,
    "refused": None,
}
_IN_ALL: Final = ("format", "version", "campaign", "tables")
_OF_CAMPAIGN: Final = ("id", "language", "name")


@dataclass(frozen=True, slots=True)
class CampaignBundle:
    """A campaign with all its rows.

    Attributes:
        language: As in a campaign file: "en".
        tables: The rows of each table, in the order of its key.
    """

    id: CampaignId
    name: str
    language: str
    tables: Mapping[str, list[Row]]

    def text(self) -> str:
        """Return the bundle as JSON with sorted keys and one row per line, so that bundles can be compared by line."""
        about = {"id": self.id, "language": self.language, "name": self.name}
        tables = ",\n".join(f"  {_json(name)}: {_rows(self.tables[name])}" for name in sorted(self.tables))
        return (
            f'{{\n "campaign": {_json(about)},\n "format": {_json(FORMAT)},\n "tables": {{\n{tables}\n }},\n'
            f' "version": {VERSION}\n}}\n'
        )

    def without_talk(self) -> CampaignBundle:
        """Return the bundle without transcripts: sessions keep their length, and everything counts as read."""
        talk: dict[str, list[Row]] = {table: [] for table in _TALK}
        were = {row["session_id"]: row for row in self.tables["chronicle_progress"]}
        read = [
            {**were.get(row["id"], {}), **_ALL_READ, "session_id": row["id"], "read_ordinal": row["last_ordinal"]}
            for row in self.tables["sessions"]
            if row["last_ordinal"]
        ]
        return replace(self, tables={**self.tables, **talk, "chronicle_progress": read})

    @property
    def has_secrets(self) -> bool:
        """Whether any row contains, or once contained, a secret."""
        return any(_tells_secret(row) for rows in self.tables.values() for row in rows)


def read_bundle(text: str) -> CampaignBundle:
    """
    Raises:
        InvalidInput: The text is not a bundle, or of another version; the message says where and what is valid.
    """
    try:
        found = json.loads(text, object_pairs_hook=_with_keys_once, parse_constant=_no_number, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"line {error.lineno}, column {error.colno}: {error.msg}: a bundle is one whole JSON object, as "
            "`glyphoxa campaign export` writes it; a campaign file (YAML) is loaded with `glyphoxa campaign load`"
        ) from None
    except RecursionError:
        raise InvalidInput("the nesting is too deep: a bundle is a file written by `campaign export`") from None
    except ValueError as error:  # a number of thousands of digits
        raise InvalidInput(f"it contains an unreadable number: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InvalidInput(f'this is not a bundle: a bundle is a JSON object with "format": "{FORMAT}"')
    version = found.get("version")
    if type(version) is not int or version != VERSION:
        raise InvalidInput(f"version is {_shown(version)}: this release reads version {VERSION}")
    _check_keys(found, _IN_ALL, "the bundle")
    about, tables = found["campaign"], found["tables"]
    if not isinstance(about, dict):
        raise InvalidInput(f"campaign is {_shown(about)}: it must be an object with {', '.join(_OF_CAMPAIGN)}")
    _check_keys(about, _OF_CAMPAIGN, "campaign")
    for key, value in about.items():
        if not isinstance(value, str) or not value or not value.isprintable():
            raise InvalidInput(f"campaign.{key} is {_shown(value)}: it must be one line of text, not empty")
    check_new_id(CampaignId(about["id"]))
    if not isinstance(tables, dict):
        raise InvalidInput(f"tables is {_shown(tables)}: it must be an object with the rows of each table")
    for name, rows in tables.items():
        _check_rows(f"tables.{name}", rows)
    return CampaignBundle(CampaignId(about["id"]), about["name"], about["language"], tables)


def check_new_id(wanted: CampaignId) -> None:
    """
    Raises:
        InvalidInput: The text is not a valid campaign id.
    """
    if not wanted or slug(wanted) != wanted:
        hint = f"; {slug(wanted)!r} would be" if slug(wanted) else ""
        raise InvalidInput(f"{wanted!r} is not a valid campaign id: use lower-case words joined by `-`{hint}")


def _check_rows(where: str, rows: object) -> None:
    if not isinstance(rows, list):
        raise InvalidInput(f"{where} is {_shown(rows)}: it must be a list of rows")
    for at, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidInput(f"{where}[{at}] is {_shown(row)}: a row must be an object")
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())[0]
            raise InvalidInput(f"{where}[{at}]: rows of a table must have the same columns, and some lack {odd!r}")


def _check_keys(found: Mapping[str, object], wanted: tuple[str, ...], where: str) -> None:
    for key in wanted:
        if key not in found:
            raise InvalidInput(f"{where} has no {key!r}: it must have {', '.join(wanted)}")
    for key in found:
        if key not in wanted:
            raise InvalidInput(f"{where} has {key[:40]!r}, which is unknown: {did_you_mean(key, wanted)}")


def _tells_secret(value: object) -> bool:
    """Return whether a value contains something with a secret scope, or the secrets of a campaign file."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if each.get("scope") in _SECRET_SCOPES or each.get("how") == "secret" or each.get("secrets"):
                return True
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return False


def _with_keys_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidInput(f"an object has the key {key[:40]!r} twice")
        found[key] = value
    return found


def _no_number(name: str) -> NoReturn:
    raise InvalidInput(f"it contains {name}: numbers must be finite")


def _finite(digits: str) -> float:
    """Read a decimal number; refuse 1e999, which Python reads as infinity."""
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits[:40])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(", ", ": "))


def _rows(rows: list[Row]) -> str:
    return "[" + ",".join(f"\n   {_json(row)}" for row in rows) + "]"


def _shown(value: object) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if len(told) <= 60 else f"{told[:60]}..."
