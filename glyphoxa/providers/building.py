"""From what the settings name to the object that asks a provider.

What a maker takes by keyword besides the `Connection`, by kind:

    stt         keyterms, sample_rate, language
    llm         temperature, max_tokens
    tts         voice, sample_rate
    s2s         voice
    embeddings  dimensions
    structured, reranker   nothing
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.extras import NotInstalled
from glyphoxa.providers.registry import Choice, find, missing_settings
from glyphoxa.providers.rows import Provider

NO_KEY = "none"
"""Client libraries refuse an empty key; servers that ask for none ignore this one."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Whom to ask, and for what.

    Attributes:
        model: As the provider names it; empty if it is chosen otherwise.
        base_url: None is the provider's own address.
    """

    model: str
    base_url: str | None
    key: str = field(repr=False)


def build(choice: Choice, *, section: str, environ: Mapping[str, str] = os.environ, **options: Any) -> Any:
    """What the maker of the chosen provider gives, which its kind says.

    Raises:
        InvalidInput: There is no such provider, it runs here, its package is not installed, its key is not set, or a
            setting that it needs has no value.
    """
    row = find(section, choice.name)
    if row.runs_here:
        raise InvalidInput(f"{section} {row.name!r} runs on this machine: it is loaded, and no server is asked for it")
    missing = missing_settings(section, choice)
    if missing:
        raise InvalidInput(f"{section} {row.name!r} needs {' and '.join(missing)}")
    key = key_of(choice, section=section, environ=environ)
    connection = Connection(choice.model or row.model, choice.base_url, key)
    maker = maker_of(row, section=section)
    try:
        return maker(connection, **options)
    except ImportError as error:
        raise not_installed(row, section, error) from error


def maker_of(row: Provider, *, section: str) -> Callable[..., Any]:
    """Imported now, which may take a second: not in the event loop of a live session.

    Raises:
        InvalidInput: Its package is not installed.
    """
    try:
        return named(row.maker)
    except ImportError as error:
        raise not_installed(row, section, error) from error


def key_of(choice: Choice, *, section: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key of what was chosen; `NO_KEY` for a provider that needs none and for which none is named.

    Raises:
        InvalidInput: The variable is not set. The message names it and never a key.
    """
    variable = choice.api_key_env or find(section, choice.name).key_env
    if not variable:
        return NO_KEY
    key = environ.get(variable, "").strip()
    if not key:
        raise InvalidInput(
            f"{section} {choice.name!r} needs a key: environment variable {variable} is not set"
            f" (another variable can be named as {section}.api_key_env)"
        )
    return key


def unknown_language(section: str, name: str, language: str) -> str:
    """Why that provider does not know a language; "" if it does, or cannot be asked, as its package is not there."""
    check = find(section, name).language_check
    try:
        why = named(check)(language) if check else ""
    except ImportError:
        return ""
    return f"{section} {name!r} {why}" if why else ""


def named(reference: str) -> Callable[..., Any]:
    """The function that `module:function` names."""
    module, _, function = reference.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def not_installed(row: Provider, section: str, error: ImportError) -> NotInstalled:
    """The error for a provider whose packages cannot be imported."""
    return NotInstalled(f"{section} {row.name!r}", [error.name or str(error)], extra=row.extra)
