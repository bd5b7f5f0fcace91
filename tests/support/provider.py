from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProviderNamed:
    """A provider as the settings file would name it."""

    name: str
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = "TEST_KEY"


KEYS = {"TEST_KEY": "secret-1234"}
