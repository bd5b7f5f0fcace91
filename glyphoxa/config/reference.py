"""All settings as a page, made of the models that read them: `docs/settings.md`.

What a setting means stands under `Attributes:` in the docstring of its section.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Final

from pydantic import BaseModel

from glyphoxa.config.sections import NameOf
from glyphoxa.config.settings import Settings
from glyphoxa.context.prompt import BUDGETS
from glyphoxa.providers.chat_models import PROFILES
from glyphoxa.providers.rows import ROWS, Provider

_INTRO: Final = """\
# Settings

Made by `glyphoxa config reference`.

All settings stand in one YAML file, which every verb takes as `--config FILE`. Each has a default; without a file all
have. `glyphoxa config check FILE` says what will be used and what is missing. A heading below is a block of the file:
`turns.pause_ms` is written as

```yaml
turns:
  pause_ms: 250
```
"""
_PROVIDERS: Final = """\
## Providers

The names that `name` takes, by kind (`structured` is for `correction.llm`, `recall.llm` and `chronicle.llm`), each with
its usual model. Its key is in this environment variable, unless `api_key_env` names another. What it needs besides
comes with `pip install 'glyphoxa[EXTRA]'`.
"""
_UNITS: Final = {"_ms": "ms", "_tokens": "tokens", "_facts": "sentences", "_depth": "messages"}
"""By how the name of a setting ends."""
_TYPES: Final = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
_ENTRY: Final = re.compile(r"    (\w+(?:, \w+)*): (.*)")


def reference() -> str:
    """Return the page in Markdown."""
    return "\n".join((_INTRO, *_section("", Settings), *_profiles(), *_providers()))


def _section(name: str, model: type[BaseModel]) -> Iterator[str]:
    """Yield a section, then the sections in it."""
    meanings = meanings_of(model)
    found = {key: _blocks(field.annotation) for key, field in model.model_fields.items()}
    blocks = {key: each for key, each in found.items() if each is not None}
    plain = {key: field for key, field in model.model_fields.items() if key not in blocks or blocks[key][0]}
    if name and plain:
        yield "\n\n".join(filter(None, (f"## {name}", _intro(model)))) + "\n"
    if plain:
        yield "| setting | type | default | unit | meaning |\n|---|---|---|---|---|"
        for key, field in plain.items():
            kind = type_in_words(field.annotation, field.metadata)
            unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
            default = "needed" if field.is_required() else _default(field.get_default(call_default_factory=True))
            yield f"| `{key}` | {kind} | {default} | {unit} | {meanings[key]} |"
        yield ""
    for key, (ending, section) in sorted(blocks.items(), key=lambda each: each[1][0]):
        yield from _section(f"{name}.{key}{ending}" if name else f"{key}{ending}", section)


def meanings_of(model: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each setting of a section, those of its base classes included."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        names: list[str] = []
        for line in inspect.cleandoc(each.__doc__ or "").partition("Attributes:")[2].splitlines():
            if entry := _ENTRY.fullmatch(line):
                names = entry[1].split(", ")
                found.update(dict.fromkeys(names, entry[2]))
            elif line.strip():
                found.update({name: f"{found[name]} {line.strip()}" for name in names})
    return found


def _intro(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").partition("Attributes:")[0].strip()


def _model(annotation: Any) -> type[BaseModel] | None:
    return annotation if inspect.isclass(annotation) and issubclass(annotation, BaseModel) else None


def _blocks(annotation: Any) -> tuple[str, type[BaseModel]] | None:
    """Return the model of a block, and what ends its heading where there are several: by name, or in a list."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    ending, one = {dict: (".NAME", parts[-1:]), tuple: ("[]", parts[:1])}.get(origin, ("", (annotation,)))
    model = _model(one[0]) if one else None
    return None if model is None else (ending, model)


def type_in_words(annotation: Any, metadata: typing.Iterable[Any] = ()) -> str:
    """Return what may stand there."""
    names = next((each.names for each in metadata if isinstance(each, NameOf)), None)
    if names is not None:
        return _one_of(names)
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        inner = [inner for each in parts[1:] for inner in (*getattr(each, "metadata", ()), each)]
        return type_in_words(parts[0], inner)
    if origin is typing.Literal:
        return _one_of(parts)
    if origin is tuple:
        if _model(parts[0]) is not None:
            return "list of blocks"
        return f"list of {type_in_words(parts[0])}"
    if origin is dict:
        return f"names, each with a {'block' if _model(parts[1]) else type_in_words(parts[1])}"
    if NoneType in parts:
        [kind] = [part for part in parts if part is not NoneType]
        return type_in_words(kind, metadata)
    low, high = (next((getattr(m, end) for m in metadata if hasattr(m, end)), None) for end in ("ge", "le"))
    return _TYPES[annotation] + (f", {low:g} to {high:g}" if low is not None and high is not None else "")


def _one_of(names: typing.Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _default(value: object) -> str:
    match value:
        case None:
            return "left out"
        case tuple():
            return f"`[{', '.join(map(str, value))}]`"
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{value}`"


_PROFILES: Final = """\
## Profiles

What a prompt may hold for the language model of `providers.llm`, where `context` does not say otherwise. `openai`,
`google`, and models of a server of your own that have such a name, are `large`. Models that run here, and others that
have up to 2 billion parameters by their name, are `small`. All others are `middle`. Tokens are counted as 4 characters
each, for every model.
"""


def _profiles() -> Iterator[str]:
    yield _PROFILES
    yield f"| profile | {' | '.join(f'`{name}`' for name in BUDGETS)} | tools |\n|---|{'---|' * len(BUDGETS)}---|"
    for one in PROFILES:
        sizes = " | ".join(f"{getattr(one, name):,}" for name in BUDGETS)
        yield f"| {one.name} | {sizes} | {'yes' if one.takes_tools else 'no'} |"
    yield ""


def _providers() -> Iterator[str]:
    yield _PROVIDERS
    yield "| kind | name | model | key | extra | to be set |\n|---|---|---|---|---|---|"
    yield from map(_provider, ROWS)
    yield ""


def _provider(row: Provider) -> str:
    model = ", ".join(row.weights) or row.model
    key = f"`{row.key_env}`" if row.key_env else ""
    return f"| {row.kind} | `{row.name}` | {model} | {key} | {row.extra} | {_one_of(row.needs)} |"
