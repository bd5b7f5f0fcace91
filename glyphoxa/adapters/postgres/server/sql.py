"""Queries from `.sql` files, domain values as their parameters, and their columns as domain values."""

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
        Unstorable: No calendar has such a time.
    """
    return [None if at_ms is None else timestamp(at_ms) for at_ms in (between.after_ms, between.before_ms)]


def timestamp(at_ms: int) -> datetime:
    """
    Args:
        at_ms: Milliseconds since the Unix epoch.

    Raises:
        Unstorable: No calendar has that time.
    """
    try:
        return EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        raise Unstorable(f"{at_ms} ms since 1970 is not a time") from None


def at_ms(timestamp: datetime) -> int:
    """Milliseconds since the Unix epoch."""
    return (timestamp - EPOCH) // _MS


def storable(text: str) -> str:
    """PostgreSQL stores neither NUL characters nor halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def storable_json(value: object) -> object:
    """The same of all texts in a JSON value."""
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
    """What a model or a user gave to look for. What no row can hold is left out: it is no reason to fail."""
    return given.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


# Who asks: the DM, who sees everything, or an NPC, from whom secrets are kept in every query.


def viewer_parameter(viewer: Viewer) -> str | None:
    """The `$viewer` of queries: NULL for the DM, who sees everything, the NPC's id otherwise.

    Raises:
        ValueError: The id is empty: nobody, rather than the DM.
    """
    if isinstance(viewer, Dm):
        return None
    if not viewer:
        raise ValueError("memory is queried for DM or for an NPC, not for ''")
    return viewer
