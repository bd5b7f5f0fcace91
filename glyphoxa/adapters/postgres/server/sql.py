"""Load queries from `.sql` files, and convert their parameters and columns to and from domain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Final

from glyphoxa.domain.errors import Unstorable
from glyphoxa.domain.knowledge import Between, Dm, Viewer


@cache
def load_queries(file: str) -> Mapping[str, str]:
    """The queries of `<file>.sql` in this package ("world/graph") by name. A query begins with a line `-- name --`."""
    text = resources.files("glyphoxa.adapters.postgres").joinpath(f"{file}.sql").read_text("utf-8")
    parts = re.split(r"^-- (\w+) --$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (body.strip() for body in parts[2::2]), strict=True))


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def timestamps(between: Between) -> list[datetime | None]:
    """Its two ends; None is open.

    Raises:
        Unstorable: The time is out of range.
    """
    return [None if at_ms is None else timestamp(at_ms) for at_ms in (between.after_ms, between.before_ms)]


def timestamp(at_ms: int) -> datetime:
    """
    Args:
        at_ms: Milliseconds since the Unix epoch.

    Raises:
        Unstorable: The time is out of range.
    """
    try:
        return EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        raise Unstorable(f"{at_ms} ms since 1970 is not a time") from None


def at_ms(timestamp: datetime) -> int:
    """Milliseconds since the Unix epoch."""
    return (timestamp - EPOCH) // _MS


def storable(text: str) -> str:
    """Remove NUL characters and lone surrogates, which PostgreSQL cannot store."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def storable_json(value: object) -> object:
    """Apply `storable` to all texts in a JSON value."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(key): storable_json(one) for key, one in value.items()}
        case list() | tuple():
            return [storable_json(one) for one in value]
        case _:
            return value


def lookup_key(given: str) -> str:
    """Prepare a search text of a model or user: unstorable characters match nothing and are removed."""
    return given.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


# The viewer: the DM, who sees everything, or an NPC, from whom every query hides secrets.


def viewer_parameter(viewer: Viewer) -> str | None:
    """The `$viewer` of queries: NULL for the DM, the NPC's id otherwise.

    Raises:
        ValueError: The id is empty, which must not be mistaken for the DM.
    """
    if isinstance(viewer, Dm):
        return None
    if not viewer:
        raise ValueError("the viewer of a query must be DM or an NPC, not ''")
    return viewer
