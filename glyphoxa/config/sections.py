"""What the sections of the settings have in common."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def empty_section(value: object) -> object:
    """`server:` with nothing below it means its defaults."""
    return {} if value is None else value


def unset(value: object) -> object:
    """`postgres_dsn: ""` and `postgres_dsn:` mean the same."""
    return None if value == "" else value


def _variable(value: object) -> object:
    """Raises without the value: people paste their key here."""
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value)):
        return value
    raise ValueError("must be the name of an environment variable, such as OPENAI_API_KEY, and not the key itself")


KeyVariable = Annotated[str | None, BeforeValidator(_variable)]
