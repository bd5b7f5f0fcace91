"""The interface of plug-ins: what a package adds to Glyphoxa, without a change in Glyphoxa.

A package registers a `Plugin` as an entry point of the group `glyphoxa.plugins`. The declaration refers to everything
as `module:name`, and a module is imported when it is used. docs/building.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from glyphoxa.domain.errors import GlyphoxaError, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "glyphoxa.plugins"

T = TypeVar("T")


class Command(NamedTuple):
    """A verb of the command line.

    Attributes:
        group: Its heading in the help of all verbs.
        verb: Refers to its declaration, a `glyphoxa.cli.verb.Verb`.
        text: Its line in the help of all verbs.
        example: A command with its options, without `glyphoxa`.
    """

    group: str
    verb: str
    text: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A declaration of all that a plug-in adds; references are `module:name`.

    Attributes:
        settings: Sections of the settings file by name, each a subclass of `glyphoxa.config.sections.Section`.
        commands: Verbs of the command line by name.
        actions: Actions of other verbs, each a `glyphoxa.cli.verb.Verb` of the verb that it is given for.
        readers: Functions that read what another tool wrote, by its name in `glyphoxa.dm.source_world.ImportKind`.
        checks: Functions for `glyphoxa doctor` and `glyphoxa config check`: see `glyphoxa.config.check.PluginCheck`.
        observers: Functions that open what follows a table: see `glyphoxa.app.table.OpenObserver`.
        pages: Functions that add pages to a served table: see `glyphoxa.web.desk.frame.AddPages`.
        tools: Functions that open tools for NPCs when a table opens: see `glyphoxa.app.table.OpenTools`.
        providers: Sequences of `glyphoxa.providers.registry.Provider`.
        recall: Functions that open deep recall: see `glyphoxa.app.background.OpenDeepRecall`. The first is used.

    Raises:
        TypeError: A part has another type.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    actions: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, str] = field(default_factory=dict)
    checks: Sequence[str] = ()
    observers: Sequence[str] = ()
    pages: Sequence[str] = ()
    tools: Sequence[str] = ()
    providers: Sequence[str] = ()
    recall: Sequence[str] = ()

    def __post_init__(self) -> None:
        for part in fields(self):
            value: object = getattr(self, part.name)
            of = Command if part.name == "commands" else str
            what = "Command" if of is Command else "'module:name'"
            if isinstance(part.default, tuple):
                if not isinstance(value, list | tuple) or not all(isinstance(one, of) for one in value):
                    raise TypeError(f"{part.name} must be a list of {what}")
            elif not isinstance(value, Mapping) or not all(
                isinstance(name, str) and isinstance(one, of) for name, one in value.items()
            ):
                raise TypeError(f"{part.name} must be a dict of names, each with a {what}")


class BrokenPlugin(GlyphoxaError):
    """A plug-in cannot be loaded, or has a name that is taken."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed plug-in; as text, its name and its distribution."""

    point: EntryPoint
    plugin: Plugin = field(default_factory=Plugin)

    def __str__(self) -> str:
        dist = self.point.dist
        return f"plug-in {self.point.name!r}" + (f" of {dist.name} {dist.version}" if dist else "")

    def load(self, reference: str, *, kind: type = object) -> Any:
        """Import what the plug-in refers to.

        Raises:
            BrokenPlugin: It cannot be imported, or is of another kind.
        """
        with self.named_in_errors(reference):
            found = resolve_name(reference)
            if not isinstance(found, kind):
                raise TypeError(f"it is no {kind.__module__}.{kind.__name__}")
        return found

    @contextmanager
    def named_in_errors(self, reference: str) -> Iterator[None]:
        """Name the plug-in in the error that what it refers to raises.

        Raises:
            BrokenPlugin: It raised something that is no error for a user.
        """
        try:
            yield
        except GlyphoxaError:
            raise
        except Exception as error:  # whatever the code of a plug-in raises
            why = shown(f"{type(error).__name__}: {error}")
            raise BrokenPlugin(f"{self} cannot be used: {reference}: {why}; repair or uninstall it") from error


@cache
def plugins() -> tuple[Installed, ...]:
    """Return the installed plug-ins by name.

    Raises:
        BrokenPlugin: The declaration of one cannot be loaded.
    """
    # A verb of Glyphoxa's own that reads no settings does without.
    from importlib.metadata import entry_points

    found = map(Installed, sorted(entry_points(group=GROUP), key=lambda point: point.name))
    return tuple(replace(one, plugin=one.load(one.point.value, kind=Plugin)) for one in found)


def references(kind: str) -> list[tuple[Installed, str]]:
    """Return what plug-ins refer to in one of the sequences of `Plugin`, each with its plug-in."""
    return [(one, reference) for one in plugins() for reference in getattr(one.plugin, kind)]


def parts(kind: str) -> list[Any]:
    """Return all that plug-ins refer to in one of the sequences of `Plugin`, imported.

    Raises:
        BrokenPlugin: Some of it cannot be imported.
    """
    return [one.load(reference) for one, reference in references(kind)]


def claims(kind: str, own: Mapping[str, T]) -> dict[str, tuple[Installed | None, T]]:
    """Return what has a name in one of the mappings of `Plugin`, each with its plug-in; Glyphoxa's own first.

    Raises:
        BrokenPlugin: Two have the same name.
    """
    found: dict[str, tuple[Installed | None, T]] = {name: (None, value) for name, value in own.items()}
    for one in plugins():
        for name, value in getattr(one.plugin, kind).items():
            if name in found:
                both = f"{found[name][0] or 'Glyphoxa'} and {one}"
                raise BrokenPlugin(f"{both} both have {name!r} in their {kind}: uninstall one of them")
            found[name] = one, value
    return found
