"""Keys of providers: settings name the environment variable, and nothing else holds or prints one."""

from __future__ import annotations

from collections.abc import Mapping

from glyphoxa.config.check import PROVIDERS, Choice
from glyphoxa.domain.errors import InvalidInput

NO_KEY = "none"
"""Client libraries refuse an empty key; servers that ask for none ignore this one."""


def key_of(chosen: Choice, *, kind: str, environ: Mapping[str, str]) -> str:
    """The key of what was chosen; `NO_KEY` for a provider that needs none and for which none is named.

    Args:
        kind: "embeddings", "correction.llm": as in `PROVIDERS`.

    Raises:
        InvalidInput: The variable is not set. The message names it and never a key.
    """
    variable = chosen.api_key_env or PROVIDERS[(kind, chosen.name)].key_env
    if not variable:
        return NO_KEY
    key = environ.get(variable, "").strip()
    if not key:
        section = kind if "." in kind else f"providers.{kind}"
        raise InvalidInput(
            f"{section} {chosen.name!r} needs a key: environment variable {variable} is not set"
            f" (another variable can be named as {section}.api_key_env)"
        )
    return key
