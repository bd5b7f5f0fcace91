"""The form in which a verb of the command line is declared.

A module of a verb holds one `VERB`: how its acts are called, and options that all of them take. Each act is declared
where it stands, with its arguments and what its help says:

    VERB = Verb(run_at_desk, common=CAMPAIGN)

    @VERB.action("nobody knows it until you reveal it", argument("fact", metavar="ID"))
    async def _hide(desk: Desk, options: argparse.Namespace) -> int: ...
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

A = TypeVar("A", bound=Callable[..., Any])
"""An act: does the work of an action."""

Call = Callable[[argparse.Namespace, A], int]
"""Calls an act with what the verb opens for it; returns what the process ends with."""

Argument = Callable[[argparse._ActionsContainer], object]
"""Adds itself to a parser."""

_MOST_ROWS = 1_000_000


def argument(*names: str, **how: Any) -> Argument:
    """As `ArgumentParser.add_argument`; an option of which no more than its help is said is a switch."""
    if names[0].startswith("-") and not how.keys() - {"help", "dest"}:
        how["action"] = "store_true"
    return lambda parser: parser.add_argument(*names, **how)


def one_of(*options: Argument) -> Argument:
    """Options of which at most one may be given."""

    def add(parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group()
        for option in options:
            option(group)

    return add


def limit(default: int) -> Argument:
    """How much to show."""
    return argument("--limit", type=count, default=default, metavar="N", help=f"default {default}")


def count(text: str) -> int:
    """How many to show, as a user types it."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_ROWS:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {_MOST_ROWS:,}, not {text!r}")
    return int(text)


def any_option(parser: argparse._ActionsContainer) -> None:
    """An `Argument`: options of any other name, which stand in `options.free`."""
    parser.set_defaults(takes_any_option=True)


class Verb(Generic[A]):
    """See the module.

    Args:
        common: Options that every act takes, in front of its own.
    """

    def __init__(self, call: Call[A], *, common: Sequence[Argument] = ()) -> None:
        self._call = call
        self._common = common
        self._actions: dict[str, tuple[A, Sequence[Argument], dict[str, Any]]] = {}
        self._itself: tuple[A, Sequence[Argument], dict[str, Any]] | None = None
        self._text = ""

    def action(self, text: str, *arguments: Argument, **parser: Any) -> Callable[[A], A]:
        """Declares an act as the action of its name.

        Args:
            text: What it does, for the help.
            parser: More that its parser is told.
        """

        def declare(act: A) -> A:
            told = {"help": text, "description": text, **parser}
            self._actions[act.__name__.strip("_")] = act, arguments, told
            return act

        return declare

    def itself(self, *arguments: Argument, text: str = "", **defaults: Any) -> Callable[[A], A]:
        """Declares an act as what the verb does without an action. Where it has actions as well, what is not given
        behind one is as it was given, or not, in front of it.

        Args:
            text: What it does, at length; left out, what the help of all verbs says of it.
            defaults: Of options for which it has no argument.
        """

        def declare(act: A) -> A:
            self._itself, self._text = (act, arguments, defaults), text
            return act

        return declare

    def add_to(self, verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str) -> None:
        """Put it on the command line.

        Args:
            text: What the help of all verbs says of it.
        """
        alone = self._itself is not None
        parser = verbs.add_parser(name, help=text, description=self._text or (text if alone else None))
        if self._itself is not None:
            act, arguments, defaults = self._itself
            self._fill(parser, act, arguments)
            parser.set_defaults(**defaults)
        if not self._actions:
            return
        actions = parser.add_subparsers(title="actions", metavar="ACTION", required=not alone)
        inherited: dict[str, Any] = {"argument_default": argparse.SUPPRESS} if alone else {}
        for each, (act, arguments, told) in self._actions.items():
            self._fill(actions.add_parser(each, **inherited, **told), act, arguments)

    def _fill(self, parser: argparse.ArgumentParser, act: A, arguments: Sequence[Argument]) -> None:
        for add in (*self._common, *arguments):
            add(parser)
        parser.set_defaults(run=lambda options: self._call(options, act))


def at_once(options: argparse.Namespace, act: Callable[[argparse.Namespace], int]) -> int:
    """A `Call` of a function."""
    return act(options)


def in_a_loop(options: argparse.Namespace, act: Callable[[argparse.Namespace], Coroutine[Any, Any, int]]) -> int:
    """A `Call` of a coroutine."""
    return asyncio.run(act(options))
