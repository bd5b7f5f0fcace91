"""Connections to providers, and the requests that a server of OpenAI's chat protocol accepts, as far as they are known.

Compatible servers differ. Some refuse fields that they do not know, some refuse a value of null, some want the limit of
a reply under its new name and some under its old one, some want roles that alternate, and some chat templates have no
system role. None of this can be asked for. So a request is sent as the settings and the model's name suggest. A refusal
then says what to change, and the request is sent again. What helped is remembered for the session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, Literal

Message = Mapping[str, Any]

Roles = Literal["auto", "any", "alternate", "no_system"]
Reasoning = Literal["auto", "none", "unopened"]

_REQUIRED: Final = frozenset({"model", "messages", "input", "query", "documents"})
_OLD_LIMIT: Final = "max_tokens"
_NEW_LIMIT: Final = "max_completion_tokens"
_LIMITS: Final = (_OLD_LIMIT, _NEW_LIMIT)
_WANTS_NEW: Final = re.compile(r"(^|/)(gpt-(?!oss)|chatgpt|o\d)", re.IGNORECASE)
"""OpenAI's models. Those since o1 refuse the old name; the others know both."""
_REASONS_UNOPENED: Final = re.compile(
    r"(^|[-_/:.])(r1|qwq|reasoner|thinking|openthinker\d*|exaone-deep|z1)($|[-_/:.\d])", re.IGNORECASE
)
"""Models whose chat templates write the opening mark of reasoning themselves, so that the answer lacks it."""
_FIELD: Final = re.compile(r"\w+")
_ABOUT_ROLES: Final = frozenset({"role", "roles", "system"})
_STARTS_TALK: Final = "…"
"""A player's message before an NPC's first line, for servers that want the user to begin."""


@dataclass(frozen=True, slots=True)
class Habits:
    """Settings of a server and its model.

    Attributes:
        roles: `alternate`: consecutive messages of one role are merged. `no_system`: the system message also becomes
            part of the first user message. `any`: messages are sent as they are. `auto`: as they are until the server
            refuses them.
        reasoning: `unopened`: every answer begins with reasoning without an opening mark. `none`: the model does not
            reason, and nothing is removed. `auto`: marks of known forms are looked for.
    """

    roles: Roles = "auto"
    reasoning: Reasoning = "auto"


UNKNOWN: Final = Habits()


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a provider.

    Attributes:
        model: The provider's name for it; empty if chosen otherwise.
        base_url: None is the provider's own address.
        habits: Settings of an OpenAI-compatible server.
    """

    model: str
    base_url: str | None
    key: str = field(repr=False)
    habits: Habits = UNKNOWN


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a server refuses a request.

    Attributes:
        status: The HTTP status.
        text: Its body, or the message in it.
    """

    status: int
    text: str

    @property
    def names(self) -> frozenset[str]:
        """Words that may be names of fields."""
        return frozenset(_FIELD.findall(self.text))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to put a request to one model of one server.

    Attributes:
        limit: The name of the limit of a reply; "" for none.
        omits: Fields that the server refuses.
        merges: Consecutive messages of one role are merged.
        folds: The system message becomes part of the first user message.
        lacks_opening: Whether answers begin with reasoning without an opening mark; None if it is not known.
    """

    habits: Habits = UNKNOWN
    limit: str = _OLD_LIMIT
    omits: frozenset[str] = frozenset()
    merges: bool = False
    folds: bool = False
    lacks_opening: bool | None = None

    def fitted(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request as this server accepts it. Fields without a value are left out."""
        fitted = {
            name: value
            for name, value in request.items()
            if value is not None and name not in self.omits and name not in _LIMITS
        }
        limit = next((request[name] for name in _LIMITS if request.get(name) is not None), None)
        if limit is not None and self.limit:
            fitted[self.limit] = limit
        if "tools" not in fitted:
            fitted.pop("tool_choice", None)
        if "stream" not in fitted:
            fitted.pop("stream_options", None)
        if "messages" in fitted:
            messages = fitted["messages"]
            if "response_format" in self.omits and request.get("response_format"):
                messages = _with_schema(messages, request["response_format"])
            fitted["messages"] = self._talk(messages)
        return fitted

    def after(self, refusal: Rejection, request: Mapping[str, Any]) -> Dialect | None:
        """Return what to try after a refusal; None if nothing is left to change.

        A refusal without a reason that is understood is answered with the plainest request, then without a limit.
        """
        sent = self.fitted(request)
        named = refusal.names & (sent.keys() - _REQUIRED)
        if limits := named & {*_LIMITS}:
            other = _NEW_LIMIT if self.limit == _OLD_LIMIT else _OLD_LIMIT
            has_both = other in self.omits
            return replace(self, limit="" if has_both else other, omits=self.omits | limits)
        if named:
            return replace(self, omits=self.omits | named)
        if refusal.names & _ABOUT_ROLES and self.habits.roles != "any":
            for change in (replace(self, merges=True), replace(self, merges=True, folds=True)):
                if change.fitted(request) != sent:
                    return change
        if refusal.status not in (400, 422):
            return None
        plainest = replace(self, omits=self.omits | (sent.keys() - _REQUIRED - {*_LIMITS, "stream"}))
        if self.habits.roles != "any":
            plainest = replace(plainest, merges=True, folds=True)
        if plainest.fitted(request) != sent:
            return plainest
        return replace(self, limit="") if self.limit in sent else None

    def _talk(self, messages: Sequence[Message]) -> Sequence[Message]:
        if self.folds:
            messages = [_as_user(each) for each in messages]
        return _merged(messages) if self.merges or self.folds else messages


def _merged(messages: Sequence[Message]) -> list[Message]:
    """Return messages of alternating roles, after at most one system message. Tool calls and results stay separate."""
    first = [each for each in messages[:1] if each["role"] == "system"]
    others = [_as_user(each) for each in messages[len(first) :]]
    if others and others[0]["role"] == "assistant":
        others.insert(0, {"role": "user", "content": _STARTS_TALK})
    merged: list[Message] = []
    for (role, is_plain), run in groupby([*first, *others], key=lambda each: (each["role"], _is_plain(each))):
        together = list(run)
        if is_plain and len(together) > 1:
            together = [{"role": role, "content": "\n\n".join(each["content"] for each in together)}]
        merged += together
    return merged


def _as_user(message: Message) -> Message:
    return {**message, "role": "user"} if message["role"] == "system" else message


def _is_plain(message: Message) -> bool:
    return message.keys() == {"role", "content"} and isinstance(message["content"], str)


def _with_schema(messages: Sequence[Message], wanted: Mapping[str, Any]) -> list[Message]:
    """Return the messages with the schema of the answer in words, for a server that enforces none."""
    schema = json.dumps(wanted.get("json_schema", {}).get("schema", {}), ensure_ascii=False)
    first, *others = messages
    return [{**first, "content": f"{first['content']}\n\nAnswer only with JSON of this schema: {schema}"}, *others]


def dialect_of(model: str, *, has_new_limit: bool = False, habits: Habits = UNKNOWN) -> Dialect:
    """Return what to expect of a model, from its name and the settings.

    Args:
        has_new_limit: The server is OpenAI's own.

    >>> [dialect_of(model).limit for model in ("llama3.2", "gpt-oss:20b", "gpt-5-mini", "openai/o3")]
    ['max_tokens', 'max_tokens', 'max_completion_tokens', 'max_completion_tokens']
    """
    wants_new = has_new_limit or _WANTS_NEW.search(model) is not None
    is_unopened = habits.reasoning == "unopened" or (
        habits.reasoning == "auto" and _REASONS_UNOPENED.search(model) is not None
    )
    return Dialect(
        habits,
        limit=_NEW_LIMIT if wants_new else _OLD_LIMIT,
        merges=habits.roles in ("alternate", "no_system"),
        folds=habits.roles == "no_system",
        lacks_opening=True if is_unopened else None,
    )


class Dialects(dict[tuple[str, str], Dialect]):
    """The dialects of a session's servers, by address and model. Shared by all NPCs."""

    close = dict.clear
