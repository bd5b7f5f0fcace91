"""What every cloud service needs before it can be built: a provider's settings, and the key they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from glyphoxa.domain.errors import InvalidInput, did_you_mean

Built = TypeVar("Built")


class Provider(Protocol):
    """A provider as the settings file names it.

    `base_url` replaces the provider's own address (a proxy, a regional endpoint, a server of one's own);
    `api_key_env` names the environment variable that holds the key.
    """

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...

    @property
    def base_url(self) -> str | None: ...

    @property
    def api_key_env(self) -> str | None: ...


def key_of(provider: Provider, *, kind: str, default_env: str, environ: Mapping[str, str]) -> str:
    """The provider's key.

    Raises:
        InvalidInput: The variable is not set. The message names the variable and never a key.
    """
    variable = provider.api_key_env or default_env
    key = environ.get(variable, "").strip()
    if not key:
        raise InvalidInput(
            f"{kind} provider {provider.name!r} needs a key: environment variable {variable} is not set"
            f" (another variable can be named as {kind}.api_key_env)"
        )
    return key


def optional_key_of(provider: Provider, *, kind: str, environ: Mapping[str, str]) -> str:
    """The key of a provider that may do without one: only a variable that the settings name must be set."""
    if provider.api_key_env is None:
        # The client library refuses an empty key; servers that ask for none ignore this one.
        return "none"
    return key_of(provider, kind=kind, default_env=provider.api_key_env, environ=environ)


def choose(provider: Provider, makers: Mapping[str, Callable[[], Built]], *, kind: str) -> Built:
    """Build the service that the provider's name stands for.

    Raises:
        InvalidInput: No service has this name, or its extra is not installed.
    """
    make = makers.get(provider.name)
    if make is None:
        raise InvalidInput(f"unknown {kind} provider {provider.name!r}: " + did_you_mean(provider.name, makers))
    try:
        return make()
    except ImportError as missing:
        raise InvalidInput(
            f"{kind} provider {provider.name!r} needs a package that is not installed ({missing});"
            f' install it with: pip install "glyphoxa[{_EXTRAS.get(provider.name, provider.name)}]"'
        ) from missing


_EXTRAS = {
    "deepgram-nova": "deepgram",
    "deepgram-flux": "deepgram",
    "openai-compatible": "openai",
    "ollama": "openai",
    "openai-realtime": "openai",
}
