"""What the sections of the settings have in common."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import CoreSchema, core_schema

from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.registry import NONE, names
from glyphoxa.providers.rows import Kind


class Section(BaseModel):
    # What a user wrote is shown by whoever knows whether it may be: it can be a password.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def empty_section(value: object) -> object:
    """`server:` with nothing below it means its defaults."""
    return {} if value is None else value


class NameOf:
    """A text that is the name of a provider of that kind; `none` too, where one may be missing."""

    def __init__(self, kind: Kind, *, or_none: bool = False) -> None:
        self.names = (*((NONE,) if or_none else ()), *names(kind))

    def __get_pydantic_core_schema__(self, *_: Any) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


def _variable(value: object) -> object:
    """Raises without the value: people paste their key here."""
    if value is None or (isinstance(value, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value)):
        return value
    raise ValueError("must be the name of an environment variable, such as OPENAI_API_KEY, and not the key itself")


KeyVariable = Annotated[str | None, BeforeValidator(_variable)]


class ProviderSettings(Section):
    """
    Attributes:
        name: Which provider.
        model: Left out: the provider's usual one.
        base_url: Another address than the provider's own: a proxy, a regional one, a server of your own.
        api_key_env: The environment variable with the key; left out, the provider's usual one.
    """

    name: str
    model: str | None = None
    base_url: str | None = None
    api_key_env: KeyVariable = None


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
