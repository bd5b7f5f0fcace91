"""What a speech-to-speech session knows of the talk, kept equal to the prompt.

A session holds a conversation of items on the provider's side. For each turn the prompt says what the NPC may know
now, and the items are made to match: what the prompt no longer holds is deleted, what is missing is created in
its place, what matches stays, with its sound. So hot context leaves the session with its turn, a session never
outgrows the prompt, and a new connection is told everything by the same rule, starting from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glyphoxa.context.prompt import Message

ClientEvent = Mapping[str, Any]
"""An event of the Realtime protocol, as it is sent."""


_OF_THIS_TURN = Message("system", "")
"""Equal to no message of a prompt, so that the next question deletes it."""


@dataclass(frozen=True, slots=True)
class _Item:
    id: str
    message: Message


class RealtimeTalk:
    """One connection's conversation.

    Args:
        new_id: A new item id each time; at most 32 characters.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._instructions: str | None = None
        self._items: list[_Item] = []

    def ask(self, messages: Sequence[Message]) -> list[ClientEvent]:
        """What to send so that the session knows exactly this; the last message is the one to be answered."""
        instructions = "\n\n".join(message.content for message in messages if message.role == "system")
        events: list[ClientEvent] = []
        if instructions != self._instructions:
            self._instructions = instructions
            events.append({"type": "session.update", "session": {"type": "realtime", "instructions": instructions}})
        return events + self._match([message for message in messages if message.role != "system"])

    def noted(self, item_id: str) -> None:
        """The session has an item of this turn's (a tool call, its answer, a reply that is being made)."""
        self._items.append(_Item(item_id, _OF_THIS_TURN))

    def replied(self, item_id: str, text: str) -> None:
        """The session has spoken: an item of its own, as long as nobody cuts it."""
        item = _Item(item_id, Message("assistant", text))
        ids = [known.id for known in self._items]
        if item_id in ids:
            self._items[ids.index(item_id)] = item
        else:
            self._items.append(item)

    def heard(self, item_id: str, text: str, *, audio_ms: int) -> list[ClientEvent]:
        """Of this reply only `text` was heard: the NPC must not believe that it said more."""
        item = next((item for item in self._items if item.id == item_id), None)
        if item is None or item.message.content == text:
            return []
        if not text:
            self._items.remove(item)
            return [{"type": "conversation.item.delete", "item_id": item_id}]
        at = self._items.index(item)
        self._items[at] = replace(item, message=Message("assistant", text))
        return [
            {"type": "conversation.item.truncate", "item_id": item_id, "content_index": 0, "audio_end_ms": audio_ms}
        ]

    def _match(self, wanted: Sequence[Message]) -> list[ClientEvent]:
        deleted: list[ClientEvent] = []
        created: list[ClientEvent] = []
        there = self._items
        now: list[_Item] = []
        for message in wanted:
            at = next((n for n, item in enumerate(there) if item.message == message), None)
            if at is None:
                item = _Item(self._new_id(), message)
                created.append(_creation(item, after=now[-1].id if now else "root"))
                now.append(item)
                continue
            deleted += [_deletion(item) for item in there[:at]]
            now.append(there[at])
            there = there[at + 1 :]
        deleted += [_deletion(item) for item in there]
        self._items = now
        return deleted + created


def _creation(item: _Item, *, after: str) -> ClientEvent:
    kind = "output_text" if item.message.role == "assistant" else "input_text"
    return {
        "type": "conversation.item.create",
        "previous_item_id": after,
        "item": {
            "id": item.id,
            "type": "message",
            "role": item.message.role,
            "content": [{"type": kind, "text": item.message.content}],
        },
    }


def _deletion(item: _Item) -> ClientEvent:
    return {"type": "conversation.item.delete", "item_id": item.id}
