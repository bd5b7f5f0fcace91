"""How a model's chat template wants a chat.

A template is a program of the model's publisher. Most take any chat; some refuse two lines of the same side in a row,
as at a table where two players speak one after the other: then these become one message. What a template refuses is
found out when the model is loaded, never in a turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import httpx

from glyphoxa.domain.errors import InvalidInput, Unavailable

_PATIENCE_S: Final = 30.0
_BEGINNING: Final = (("system", "You are Mira."), ("user", "Tamsin says: Hello."), ("assistant", "Good evening."))
_TWICE: Final = (*_BEGINNING, ("user", "Bran says: Hm."), ("user", "Tamsin says: Where are we?"))
_ONCE: Final = (*_BEGINNING, ("user", "Tamsin says: Where are we?"))

Message = Mapping[str, Any]


def joined(messages: Sequence[Message]) -> list[Message]:
    r"""Lines of the same side in a row as one message. What calls a tool or answers for one stays by itself.

    >>> joined([{"role": "user", "content": "Hm."}, {"role": "user", "content": "Well."}])
    [{'role': 'user', 'content': 'Hm.\nWell.'}]
    """
    found: list[Message] = []
    for (role, is_plain), run in groupby(messages, key=lambda each: (each["role"], _is_plain(each))):
        together = list(run)
        if is_plain and len(together) > 1:
            found.append({"role": role, "content": "\n".join(each["content"] for each in together)})
        else:
            found += together
    return found


def wants_joined(server: str, key: str, model: Path) -> bool:
    """Whether lines of the same side have to be `joined` for the model that runs there.

    Raises:
        InvalidInput: Its template refuses the chat of a table altogether.
        Unavailable: The server does not answer.
    """
    if not _refused(server, key, _TWICE):
        return False
    if why := _refused(server, key, _ONCE):
        raise InvalidInput(f"{model}: its chat template does not take the talk of a table: {why}")
    return True


def _is_plain(message: Message) -> bool:
    return message.keys() == {"role", "content"} and isinstance(message["content"], str)


def _refused(server: str, key: str, chat: Sequence[tuple[str, str]]) -> str:
    messages = [{"role": role, "content": content} for role, content in chat]
    try:
        answer = httpx.post(
            f"{server}/apply-template",
            json={"messages": messages},
            headers={"Authorization": f"Bearer {key}"},
            timeout=_PATIENCE_S,
        )
        if answer.is_success:
            return ""
        said = answer.json().get("error", {}).get("message") or f"HTTP {answer.status_code}"
        return " ".join(str(said).split())
    except (httpx.HTTPError, ValueError) as error:
        raise Unavailable(f"the language model cannot be asked for its chat template: {error}") from error
