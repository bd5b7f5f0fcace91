"""What players say, finished or not, and the utterance that it becomes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from glyphoxa.context.prompt import Message
from glyphoxa.domain.heard import (
    Draft,
    EagerTurn,
    EarEvent,
    NothingSaid,
    PartialHeard,
    SpeechStarted,
    TurnEnded,
    Utterance,
)
from glyphoxa.domain.ids import NpcId, PlayerId, SpeakerId, UtteranceId
from glyphoxa.npc.table import TableState
from glyphoxa.turns.turn import MOST_PARTS

_KEPT_IN_MIND = MOST_PARTS + 1


class PlayerTalk:
    """
    Args:
        present: Who hears it.
        new_id: Gives an id for an utterance.
    """

    def __init__(
        self, state: TableState, *, present: Callable[[], Sequence[NpcId]], new_id: Callable[[], UtteranceId]
    ) -> None:
        self._state = state
        self._present = present
        self._new_id = new_id
        self._kept: dict[PlayerId, deque[UtteranceId]] = {}
        """The last utterances of each player, without those that came between the parts of a question."""
        self._half_said: dict[PlayerId, Draft] = {}

    def follow(self, event: EarEvent) -> None:
        """Remember what is being said, in case it is never finished."""
        match event:
            case PartialHeard(player, heard, at_ms):
                began_ms = self._half_said[player].began_ms if player in self._half_said else at_ms
                self._half_said[player] = Draft(player, heard, began_ms, at_ms)
            case EagerTurn(draft):
                self._half_said[draft.player] = draft
            case TurnEnded(draft):
                self._half_said.pop(draft.player, None)
            case NothingSaid(player):
                self._half_said.pop(player, None)
            case SpeechStarted():
                pass

    def unfinished(self) -> list[PlayerId]:
        """Who is in the middle of saying something."""
        return list(self._half_said)

    def break_off(self, player: PlayerId) -> Draft | None:
        """What they said of what they will not finish; None when that is nothing."""
        return self._half_said.pop(player, None)

    def keep(self, draft: Draft, *, is_part: bool = True) -> Utterance:
        """The utterance that a draft becomes now.

        Args:
            is_part: Of a question, which it may turn out to begin or to go on with.
        """
        utterance = self.utterance(draft)
        if is_part:
            self._kept.setdefault(draft.player, deque(maxlen=_KEPT_IN_MIND)).append(utterance.id)
        return utterance

    def npc_said(self, utterance: Utterance) -> None:
        """An NPC stands where a player does if another one answers it."""
        self._kept[PlayerId(utterance.speaker_id)] = deque([utterance.id], maxlen=1)

    def came_between(self, player: PlayerId) -> None:
        """What they said last is no part of their question."""
        self._kept[player].pop()

    def last_kept(self, player: PlayerId) -> UtteranceId | None:
        kept = self._kept.get(player)
        return kept[-1] if kept else None

    def newest_kept(self, player: PlayerId, n: int) -> tuple[UtteranceId, ...]:
        kept = tuple(self._kept.get(player, ()))
        return kept[len(kept) - n :]

    def utterance(self, draft: Draft) -> Utterance:
        return Utterance(
            id=draft.utterance or self._new_id(),
            campaign_id=self._state.campaign.id,
            session_id=self._state.session,
            speaker_id=SpeakerId(draft.player),
            speaker_name=self._state.name_of(draft.player),
            text=draft.heard.text,
            raw_text=draft.heard.raw_text,
            at_ms=draft.began_ms,
            duration_ms=max(0, draft.speech_end_ms - draft.began_ms),
            witnesses=frozenset(self._present()),
            corrections=draft.heard.corrections,
            words=draft.heard.words,
            typed=draft.typed,
        )


# What a speech-to-speech session knows of the talk, kept equal to the prompt.
#
# A session holds a conversation of items on the provider's side. For each turn the prompt says what the NPC may know
# now, and the items are made to match: what the prompt no longer holds is deleted, what is missing is created in
# its place, what matches stays, with its sound. So hot context leaves the session with its turn, a session never
# outgrows the prompt, and a new connection is told everything by the same rule, starting from nothing.


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
