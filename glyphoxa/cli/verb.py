"""The form in which a verb of the command line is declared.

A verb says how its acts are called, and which options all of them take. Each act is declared where it stands, with its
arguments and its help:

    FACTS = Verb(run_at_desk, common=CAMPAIGN)

    @FACTS.action("hide a fact: nobody knows it until you reveal it", argument("fact", metavar="ID"))
    async def _hide(desk: Desk, options: argparse.Namespace) -> int: ...
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

A = TypeVar("A", bound=Callable[..., Any])
"""An act: does the work of an action."""

Call = Callable[[argparse.Namespace, A], int]
"""Calls an act with what the verb opens for it; returns what the process ends with."""

Argument = Callable[[argparse._ActionsContainer], object]
"""Adds itself to a parser."""

_MOST_ROWS = 1_000_000


def argument(*names: str, **how: Any) -> Argument:
    """Declare an argument like `ArgumentParser.add_argument`; an option with only a help text is a switch."""
    if names[0].startswith("-") and not how.keys() - {"help", "dest"}:
        how["action"] = "store_true"
    return lambda parser: parser.add_argument(*names, **how)


def one_of(*options: Argument) -> Argument:
    """Allow at most one of these options."""

    def add(parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group()
        for option in options:
            option(group)

    return add


def limit(default: int) -> Argument:
    """Declare `--limit`."""
    return argument("--limit", type=count, default=default, metavar="N", help=f"default {default}")


def count(text: str) -> int:
    """Read a number of rows as a user types it."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_ROWS:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {_MOST_ROWS:,}, not {text!r}")
    return int(text)


def any_option(parser: argparse._ActionsContainer) -> None:
    """Accept options of any other name, collected in `options.free`."""
    parser.set_defaults(takes_any_option=True)


@dataclass(frozen=True, slots=True)
class _Act:
    call: Call[Any]
    act: Callable[..., Any]
    arguments: Sequence[Argument]
    told: dict[str, Any] = field(default_factory=dict)

    def fill(self, parser: argparse.ArgumentParser) -> None:
        for add in self.arguments:
            add(parser)
        parser.set_defaults(run=lambda options: self.call(options, self.act), parser=parser)


class Verb(Generic[A]):
    """A verb of the command line; see the module.

    Args:
        call: Opens what an act works on, and calls the act.
        common: Options that every act takes, before its own.
        of: The verb whose actions these are, where they need another call or other options than its own.
    """

    def __init__(self, call: Call[A], *, common: Sequence[Argument] = (), of: Verb[Any] | None = None) -> None:
        self._call = call
        self._common = common
        self._actions: dict[str, _Act] = {} if of is None else of._actions
        self._itself: _Act | None = None
        self._text = ""

    def action(self, text: str, *arguments: Argument, name: str = "", **parser: Any) -> Callable[[A], A]:
        """Declare an act as an action.

        Args:
            text: Its description in the help.
            name: Name of the action; default: that of the act.
            parser: More arguments for its parser.
        """

        def declare(act: A) -> A:
            told = {"help": text, "description": text, **parser}
            called = name or act.__name__.strip("_")
            if called in self._actions:
                raise ValueError(f"there already is an action {called!r}")
            self._actions[called] = _Act(self._call, act, (*self._common, *arguments), told)
            return act

        return declare

    def itself(self, *arguments: Argument, text: str = "") -> Callable[[A], A]:
        """Declare what the verb does without an action. Options before an action also hold for the action, unless
        repeated after it.

        Args:
            text: A long description; default: its line in the help of all verbs.
        """

        def declare(act: A) -> A:
            self._itself, self._text = _Act(self._call, act, (*self._common, *arguments)), text
            return act

        return declare

    def add_to(
        self, verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, *, example: str = ""
    ) -> None:
        """Add the verb to the command line.

        Args:
            text: Its line in the help of all verbs.
            example: A command, shown below its options.
        """
        parser = verbs.add_parser(name, description=self._text or text, epilog=f"Example: {example}" if example else "")
        if self._itself is not None:
            self._itself.fill(parser)
        else:
            parser.set_defaults(run=lambda _options: _help_of(parser), parser=parser)
        if not self._actions:
            return
        actions = parser.add_subparsers(title="actions", metavar="ACTION")
        of_verb = {each.dest for each in parser._actions}
        for name, act in self._actions.items():
            of_action = actions.add_parser(name, **act.told)
            act.fill(of_action)
            for each in of_action._actions:
                if each.dest in of_verb:
                    each.default = argparse.SUPPRESS


def _help_of(parser: argparse.ArgumentParser) -> int:
    """Print the help of a verb that needs an action, which was left out."""
    parser.print_help(sys.stderr)
    return 2


def at_once(options: argparse.Namespace, act: Callable[[argparse.Namespace], int]) -> int:
    """A `Call` of a function."""
    return act(options)


def in_a_loop(options: argparse.Namespace, act: Callable[[argparse.Namespace], Coroutine[Any, Any, int]]) -> int:
    """A `Call` of a coroutine."""
    return asyncio.run(act(options))
