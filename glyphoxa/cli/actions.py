"""The actions of the game master as actions of a verb; see `glyphoxa.dm.actions`."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

from glyphoxa.cli.render import show_result
from glyphoxa.cli.scope import YES, goes_on, session_argument
from glyphoxa.cli.verb import Argument, Verb, any_option, argument
from glyphoxa.dm.actions import ACTIONS, DmAction, Option

if TYPE_CHECKING:
    from glyphoxa.app.desk import Desk


def offer(verb: Verb[Any], name: str) -> None:
    """Declare the actions that the verb of this name has."""
    for each in ACTIONS:
        of, _, word = each.verb.partition(" ")
        if of == name:
            rest = [option.takes_rest for option in each.options if option.takes_rest]
            more = [*([any_option] if rest else ()), *((YES,) if each.asks else ())]
            how = {"epilog": rest[0], "allow_abbrev": False} if rest else {}
            verb.action(each.text, *map(_argument, each.options), *more, name=word, **how)(partial(_act, each))


def _argument(option: Option) -> Argument:
    if option.names == "session":
        return session_argument(option.name)
    told: dict[str, Any] = {"help": option.text}
    if option.kind is not bool:
        told |= {"metavar": option.word, "type": option.kind}
    if option.is_several and not option.is_repeated:
        told["nargs"] = "+"
    if option.is_required if option.is_argument is None else option.is_argument:
        return argument(option.name, **told, **({} if option.is_required else {"nargs": "?"}))
    if option.is_several:
        told["action"] = "append" if option.is_repeated else "extend"
    if option.is_required:
        told["required"] = True
    return argument(f"--{option.name.replace('_', '-')}", **told)


async def _act(action: DmAction, desk: Desk, options: argparse.Namespace) -> int:
    given = {each.name: getattr(options, each.name) for each in action.options}
    for each in action.options:
        if each.takes_rest:
            given[each.name] = f"{given[each.name] or ''} {shlex.join(options.free)}"
    if (asked := await action.question(desk, given)) is not None:
        lines, question = asked
        show_result(desk, lines)
        if not await goes_on(question, is_sure=options.yes):
            return 1
    return show_result(desk, await action.run(desk, given))
