"""The time zone of a table: an IANA name, or that of the machine where none is set."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, tzinfo
from functools import lru_cache

from loguru import logger

from glyphoxa.domain.errors import InvalidInput, did_you_mean

Zone = tzinfo | None
"""As `datetime` takes it. None: the machine's, as its C library has it, with its daylight saving."""


def read_zone(name: str) -> Zone:
    """
    Args:
        name: Such as "Europe/Berlin"; "" for the machine's.

    Raises:
        InvalidInput: This machine knows no zone of that name.
    """
    if not name:
        return None
    if name == "UTC":
        return UTC  # also where there is no time zone data
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = zoneinfo.available_timezones()
    if not known:
        raise InvalidInput(f"time zone {name!r}: this machine has no time zone data; pip install tzdata brings it")
    raise InvalidInput(f"unknown time zone {name!r}, {did_you_mean(name, known)} (IANA names, such as Europe/Berlin)")


@lru_cache(maxsize=64)
def zone_of_campaign(name: str) -> Zone:
    """Of one that was stored, maybe by a machine that knows more zones than this one: what it does not know is UTC."""
    try:
        return read_zone(name)
    except InvalidInput as error:
        logger.warning("days begin at midnight UTC: {}", error)
        return UTC
