"""The game master's actions. Each is declared once, on the method that does it, for all surfaces that offer it.

    @action("facts", "facts hide", "hide a fact: nobody knows it until you reveal it", form="hide")
    async def hide(self, fact: FactName) -> Decision: ...

The method's parameters are the action's. The command line makes arguments of them, Discord options with completion, MCP
a JSON schema, and the desk reads them from a form. Every action is for the game master only. A surface offers only
actions that name it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from glyphoxa.domain.errors import InvalidInput, did_you_mean

_MOST_LISTED: Final = 20
_Method = Callable[..., Awaitable[Any]]
Question = tuple[list[str], str]
F = TypeVar("F", bound=_Method)


@dataclass(frozen=True, slots=True)
class Option:
    """How a parameter is offered; its declaration has the first six, and its type and default the others.

    Attributes:
        text: Its help.
        word: Placeholder of its value in the help of the command line.
        names: Kind of thing that its value names, for completion while somebody types.
        is_argument: On the command line it stands alone, without its name; None: if it is required.
        is_repeated: On the command line it takes one value each time.
        takes_rest: On the command line it also gets the options of any other name, explained with these words.
        kind: A whole number, a switch, or else text.
        is_several: It takes several values, separated by commas except on the command line.
    """

    text: str
    word: str = ""
    names: Literal["", "entity", "npc", "type", "session"] = ""
    is_argument: bool | None = None
    is_repeated: bool = False
    takes_rest: str = ""
    name: str = ""
    kind: type[str | int | bool] = str
    is_required: bool = False
    is_several: bool = False

    @property
    def meaning(self) -> str:
        """Its help where several values are separated by commas."""
        return f"{self.text[:1].upper()}{self.text[1:]}{', separated by commas' * self.is_several}"

    def read(self, value: Any) -> Any:
        """Return a value as the model takes it."""
        is_listed = self.is_several and isinstance(value, str)
        return [each.strip() for each in value.split(",") if each.strip()] if is_listed else value


FactName = Annotated[str, Option("a fact's id, or the beginning of it", "ID")]
FactNames = Annotated[Sequence[str], Option("a fact's id, or the beginning of it", "ID")]
EntityName = Annotated[str, Option("an entity's name, alias or id", "NAME", "entity")]
OtherEntity = Annotated[str | None, Option("the other entity", "NAME", "entity")]
SessionName = Annotated[str, Option("its number, `last` or its id", "SESSION", "session")]
Value = Annotated[object, Option("JSON, or plain text", "VALUE")]
Predicate = Annotated[str | None, Option("such as LOCATED_AT or occupation", "WORD")]
_WHO: Final = "NPCs that know it: a name, alias or id each"
Knowers = Annotated[Sequence[str], Option(_WHO, "NPC", "npc", is_argument=False)]
SomeKnowers = Annotated[Sequence[str], Option(f"{_WHO}; default: everybody", "NPC", "npc")]


@dataclass(frozen=True, slots=True)
class DmAction:
    """An action of the game master; see the module.

    Attributes:
        part: The part of the desk that does it, such as "facts"; "" for the desk itself.
        method: The method of that part.
        verb: Verb and action of the command line; "" if it has none.
        text: Its help.
        parameters: The model of its parameters. A method with many `takes_model` as its only one.
        done: The word for the thing afterwards, for one line on a page.
        form: The value of `do` in a form of the desk.
        discord: The command in Discord.
        tool: The tool over MCP.
        asks: Returns lines that say what it would do, and the question before it is done; None if there is none.
    """

    part: str
    method: _Method
    verb: str
    text: str
    parameters: type[BaseModel]
    takes_model: bool
    done: str = ""
    form: str = ""
    discord: str = ""
    tool: str = ""
    asks: _Method | None = None

    @property
    def meaning(self) -> str:
        return f"{self.text[:1].upper()}{self.text[1:]}"

    @property
    def options(self) -> list[Option]:
        return [_option(name, field) for name, field in self.parameters.model_fields.items()]

    async def run(self, desk: object, given: Mapping[str, Any], method: _Method | None = None) -> Any:
        """Do it with the parameters among what was given; None counts as left out. Returns what the method returns.

        Args:
            method: Another one with the same parameters.

        Raises:
            InvalidInput: A parameter is missing or wrong.
        """
        values = {each.name: each.read(given[each.name]) for each in self.options if given.get(each.name) is not None}
        try:
            read = self.parameters.model_validate(values)
        except ValidationError as error:
            [first, *_] = error.errors()
            raise InvalidInput(f"{first['loc'][0]}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
        call, part = method or self.method, getattr(desk, self.part) if self.part else desk
        return await (call(part, read) if self.takes_model else call(part, **{n: getattr(read, n) for n in values}))

    async def question(self, desk: object, given: Mapping[str, Any]) -> Question | None:
        """Return what to ask before it is done; see `asks`. Raises as `run`."""
        return None if self.asks is None else await self.run(desk, given, self.asks)


ACTIONS: Final[list[DmAction]] = []
"""All actions, in the order in which they are declared."""


def action(part: str, verb: str, text: str, *, asks: _Method | None = None, **surfaces: str) -> Callable[[F], F]:
    """Declare a method of a part of the desk as an action; see `DmAction` for the surfaces."""

    def declare(method: F) -> F:
        hints = get_type_hints(method, include_extras=True)
        [_, *parameters] = signature(method).parameters.values()
        model = hints[parameters[0].name]
        if not (takes_model := isinstance(model, type) and issubclass(model, BaseModel)):
            defaults = {each.name: ... if each.default is Parameter.empty else each.default for each in parameters}
            fields: dict[str, Any] = {name: (hints[name], default) for name, default in defaults.items()}
            model = create_model(f"{part}_{method.__name__}", **fields)
        ACTIONS.append(DmAction(part, method, verb, text, model, takes_model, asks=asks, **surfaces))
        return method

    return declare


def actions_of(surface: Literal["form", "discord", "tool"], part: str | None = None) -> dict[str, DmAction]:
    """Return the actions that a surface offers, by their name there; of all parts of the desk, or of one."""
    return {getattr(each, surface): each for each in ACTIONS if getattr(each, surface) and part in (None, each.part)}


def chosen(do: str, actions: Mapping[str, DmAction], what: str) -> DmAction:
    """Raises: InvalidInput: The form names no such action."""
    if do not in actions:
        raise InvalidInput(f"unknown {what} {do!r}: {did_you_mean(do, actions)}")
    return actions[do]


def listed(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines after their title, cut where they are many."""
    more = [f"{title}: {len(lines) - _MOST_LISTED} more"] if len(lines) > _MOST_LISTED else []
    return [*(f"{title}: {each}" for each in lines[:_MOST_LISTED]), *more]


def _option(name: str, field: FieldInfo) -> Option:
    [declared] = [each for each in field.metadata if isinstance(each, Option)]
    kinds = {*get_args(field.annotation), field.annotation}
    kind = bool if bool in kinds else int if int in kinds else str
    is_several = get_origin(field.annotation) is Sequence
    return replace(declared, name=name, kind=kind, is_required=field.is_required(), is_several=is_several)
