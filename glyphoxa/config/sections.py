"""What the sections of the settings have in common."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput


class Section(BaseModel):
    # What a user wrote is shown by whoever knows whether it may be: it can be a password.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def empty_section(value: object) -> object:
    """`server:` with nothing below it means its defaults."""
    return {} if value is None else value


def _variable(value: object) -> object:
    """Raises without the value: people paste their key here."""
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value)):
        return value
    raise ValueError("must be the name of an environment variable, such as OPENAI_API_KEY, and not the key itself")


KeyVariable = Annotated[str | None, BeforeValidator(_variable)]


def _unset(value: object) -> object:
    """`postgres_dsn: ""` and `postgres_dsn:` mean the same."""
    return None if value == "" else value


def _readable(dsn: str | None) -> str | None:
    if dsn is not None and dsn != "none":
        try:
            Dsn.read(dsn)
        except InvalidInput as error:
            raise ValueError(str(error)) from None
    return dsn


DsnText = Annotated[str | None, BeforeValidator(_unset), AfterValidator(_readable), Field(repr=False)]
