"""The messages of the page: table events as JSON objects, each with a `type`. See `docs/reference/messages.md`.

A `Hub` sends them to all pages, and earlier ones to a page that connects later.

Players read these, so they contain nothing that only an NPC or the DM may know: no prompt, and only the number of
recalled memories. A failure is a fixed word; the DM's log has the error of the provider, the database or the disk.

The log, memory and the NPCs have corrected names. A player who said something like "sharothrix" would learn from their
own caption that there is a Zharothrix, and how it is written. So `redacted` keeps the heard words if the corrected name
is hidden or secret. A player who typed the name sees it, because they knew it.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import Any, Final, assert_never

from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.events import (
    Degraded,
    MemoryChanged,
    MemoryHealth,
    NpcsGetReady,
    NpcSilent,
    NpcSpeaks,
    NpcThinks,
    PauseChanged,
    SceneChanged,
    SessionEnds,
    TableEvent,
    TurnFinished,
    UtteranceKept,
    UtteranceRetracted,
    UtteranceRevised,
    Whispered,
)
from glyphoxa.domain.heard import (
    Correction,
    EagerTurn,
    Heard,
    NothingSaid,
    PartialHeard,
    SpeechStarted,
    TurnEnded,
    Utterance,
)
from glyphoxa.domain.ids import NpcId, PlayerId, line_of
from glyphoxa.domain.turn_record import Stage, TurnRecord
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.words import applied, leads_to
from glyphoxa.npc.table_interface import Table

Json = dict[str, Any]
MayShow = Callable[[str], bool]
"""Whether every name in a text is public."""

_NO_WAITING = frozenset({Stage.BARGE_IN, Stage.SILENCED, Stage.AUDIO_END})
"""Stages that say how long a reply was heard; they have no bar."""


def marked(text: str, raw_text: str, corrections: Sequence[Correction]) -> list[Json]:
    """Cut `text` into spans; a span that replaced other words also has `raw` and `why`.

    When the corrections do not lead from `raw_text` to `text` (a later stage changed it again), the text
    comes back whole and unmarked rather than marked wrongly.
    """
    spans: list[Json] = []
    done = 0
    for correction in sorted(corrections, key=lambda c: c.start):
        if correction.start < done:
            return [{"text": text}]
        if correction.start > done:
            spans.append({"text": raw_text[done : correction.start]})
        spans.append({"text": correction.after, "raw": correction.before, "why": correction.reason})
        done = correction.end
    if done < len(raw_text):
        spans.append({"text": raw_text[done:]})
    return spans if "".join(span["text"] for span in spans) == text else [{"text": text}]


def scene_json(scene: Scene, campaign: Campaign, may_show: MayShow = lambda _: True) -> Json:
    """Describe a scene for its players. The id is left out: it may reveal what is to come."""
    location = campaign.entity(scene.location).name
    return {
        "location": location if may_show(location) else "",
        "npcs": [
            {"id": npc.id, "name": npc.name, "portrait": npc.portrait is not None}
            for npc in map(campaign.npc, scene.npcs)
        ],
        "time_of_day": scene.time_of_day,
        "read_aloud": topics_of(campaign).allowed(scene.read_aloud),
    }


def whole_scene_json(scene: Scene, campaign: Campaign) -> Json:
    """Describe a scene for the game master."""
    whole = {"id": scene.id, "description": scene.description, "read_aloud": scene.read_aloud}
    return {**scene_json(scene, campaign), **whole}


def memory_json(health: MemoryHealth) -> Json:
    return {"state": health.state, "since_ms": health.since_ms, "waiting": health.waiting}


def event_json(event: TableEvent, campaign: Campaign, may_show: MayShow = lambda _: True) -> Json:
    """Describe an event for players."""
    match event:
        case SpeechStarted(player, at_ms):
            return {"type": "speech_started", "player": player, "at_ms": at_ms}
        case PartialHeard(player, heard, at_ms):
            return _partial(player, heard, at_ms)
        case EagerTurn(draft):
            return _partial(draft.player, draft.heard, draft.heard.corrected_ms)
        case TurnEnded(draft, at_ms):
            return {
                "type": "turn_ended",
                "player": draft.player,
                "line": line_of(draft.utterance) if draft.utterance is not None else None,
                "spans": marked(draft.heard.text, draft.heard.raw_text, draft.heard.corrections),
                "at_ms": at_ms,
            }
        case NothingSaid(player, at_ms):
            return {"type": "nothing_said", "player": player, "at_ms": at_ms}
        case UtteranceKept(utterance):
            return _utterance_json(utterance)
        case UtteranceRevised(utterance):
            return {**_utterance_json(utterance), "type": "revised"}
        case UtteranceRetracted(utterance, is_retracted):
            return {"type": "retracted", "id": utterance.id, "is_retracted": is_retracted}
        case NpcThinks(npc, name, turn, player, at_ms):
            return {"type": "npc_thinks", "npc": npc, "name": name, "turn": turn, "player": player, "at_ms": at_ms}
        case NpcSpeaks(npc, name, turn, text, at_ms):
            return {"type": "npc_speaks", "npc": npc, "name": name, "turn": turn, "text": text, "at_ms": at_ms}
        case NpcSilent(npc, turn, at_ms):
            return {"type": "npc_silent", "npc": npc, "turn": turn, "at_ms": at_ms}
        case TurnFinished(turn_record):
            return _turn_json(turn_record, campaign)
        case Whispered(player, text, at_ms):
            return {"type": "whisper", "to": player, "text": text, "at_ms": at_ms}
        case SceneChanged() | NpcsGetReady() | MemoryChanged() | Degraded() | PauseChanged() | SessionEnds():
            return _condition_json(event, campaign, may_show)
        case _:
            assert_never(event)


def _partial(player: PlayerId, heard: Heard, at_ms: int) -> Json:
    return {"type": "partial", "player": player, "text": heard.text, "raw": heard.raw_text, "at_ms": at_ms}


def _condition_json(
    event: SceneChanged | NpcsGetReady | MemoryChanged | Degraded | PauseChanged | SessionEnds,
    campaign: Campaign,
    may_show: MayShow,
) -> Json:
    """Describe a change of the table's state."""
    match event:
        case SceneChanged(scene, at_ms):
            return {"type": "scene", "scene": scene_json(scene, campaign, may_show), "at_ms": at_ms}
        case NpcsGetReady(names, at_ms):
            return {"type": "getting_ready", "npcs": list(names), "at_ms": at_ms}
        case MemoryChanged(health, at_ms):
            return {"type": "memory", **memory_json(health), "at_ms": at_ms}
        case Degraded(_, at_ms, trouble, npc):
            return {"type": "degraded", "what": trouble.value, "npc": _name(npc, campaign), "at_ms": at_ms}
        case PauseChanged(is_paused, at_ms):
            return {"type": "paused", "is_paused": is_paused, "at_ms": at_ms}
        case SessionEnds(at_ms):
            return {"type": "session_ends", "at_ms": at_ms}
        case _:
            assert_never(event)


def _utterance_json(utterance: Utterance) -> Json:
    is_npc, seat = utterance.npc_id is not None, utterance.seat or utterance.speaker_id
    return {
        "type": "utterance",
        "id": utterance.id,
        "line": line_of(utterance.id),
        "speaker": {"id": seat, "name": utterance.speaker_name, "kind": "npc" if is_npc else "player"},
        # An NPC's raw text is its whole answer; words that nobody heard are not shown as a correction.
        "spans": [{"text": utterance.text}]
        if is_npc
        else marked(utterance.text, utterance.raw_text, utterance.corrections),
        "cut_off": is_npc and len(utterance.text.rstrip()) < len(utterance.raw_text.rstrip()),
        "at_ms": utterance.at_ms,
        "duration_ms": utterance.duration_ms,
    }


def _turn_json(turn: TurnRecord, campaign: Campaign) -> Json:
    return {
        "type": "turn",
        "id": turn.id,
        "player": turn.speaker_id,
        "speaker": turn.speaker_name,
        "npc": _name(turn.npc_id, campaign),
        "why": turn.address_reason,
        "unaddressed": turn.unaddressed.value if turn.unaddressed is not None else None,
        "outcome": turn.outcome.value,
        "utterance": turn.utterance_id,
        "reply": turn.reply_id,
        "broke_off": bool(turn.error),
        "first_audio_ms": turn.first_audio_ms,
        "recalled": len(turn.prompt.recalled),
        "omitted": [part.partition(":")[0] for part in turn.prompt.omitted],
        "bars": _bars(turn),
    }


def _name(npc: NpcId | None, campaign: Campaign) -> str | None:
    return campaign.npc(npc).name if npc is not None else None


def _bars(turn: TurnRecord) -> list[Json]:
    """Return the waterfall: each stage to the next, in milliseconds since the end of speech.

    The bar of a stage is the time before it. Stages before the end of speech (an answer begun on a partial) have a
    negative `from_ms`. The length of the reply is not waiting time, so its end has no bar.
    """
    usual_order = list(Stage)
    reached = sorted(
        ((at_ms, stage) for stage, at_ms in turn.stages.items() if stage not in _NO_WAITING),
        key=lambda mark: (mark[0], usual_order.index(mark[1])),
    )
    if not reached:
        return []
    zero = turn.stages.get(Stage.SPEECH_END, reached[0][0])
    return [
        {"stage": stage.value, "from_ms": before - zero, "to_ms": at_ms - zero}
        for (before, _), (at_ms, stage) in pairwise(reached)
    ]


_UNSAID: Final[Json] = {"text": "…", "raw": "…", "spans": [{"text": "…"}]}


def allowed(message: Json, campaign: Campaign) -> Json:
    """Return a message without words about what the group does not play; the same object if there are none."""
    spans = message.get("spans", ())
    said = ("".join(span.get(which, span["text"]) for span in spans) for which in ("text", "raw"))
    texts = (message.get("text", ""), message.get("raw", ""), *said)
    if message["type"] == "whisper" or not any(map(topics_of(campaign).forbids, texts)):
        return message
    return {key: _UNSAID.get(key, value) for key, value in message.items()}


def redacted(event: TableEvent, may_show: MayShow) -> TableEvent:
    """Return the event without names that players may not know."""
    match event:
        case PartialHeard(heard=heard):
            return replace(event, heard=_heard(heard, may_show))
        case EagerTurn(draft=draft) | TurnEnded(draft=draft):
            return replace(event, draft=replace(draft, heard=_heard(draft.heard, may_show)))
        case UtteranceKept(utterance):
            return replace(event, utterance=_utterance(utterance, may_show))
        case UtteranceRevised(utterance, was):
            return replace(event, utterance=_utterance(utterance, may_show), was=_utterance(was, may_show))
        case TurnFinished(turn) if not may_show(turn.address_reason):
            return replace(event, turn=replace(turn, address_reason=""))
        case _:
            return event


def _shown(
    text: str, raw_text: str, corrections: Sequence[Correction], may_show: MayShow
) -> tuple[str, tuple[Correction, ...]]:
    if not leads_to(raw_text, corrections, text):
        return (text, tuple(corrections)) if may_show(text) else (raw_text, ())
    kept = tuple(correction for correction in corrections if may_show(correction.after))
    return applied(raw_text, kept), kept


def _heard(heard: Heard, may_show: MayShow) -> Heard:
    text, corrections = _shown(heard.text, heard.raw_text, heard.corrections, may_show)
    return replace(heard, text=text, corrections=corrections)


def _utterance(utterance: Utterance, may_show: MayShow) -> Utterance:
    if utterance.npc_id is None:
        text, corrections = _shown(utterance.text, utterance.raw_text, utterance.corrections, may_show)
        return replace(utterance, text=text, corrections=corrections)
    # An NPC's words are its own; only a recogniser's errors in them were corrected.
    text = utterance.text
    for correction in utterance.corrections:
        if not may_show(correction.after):
            text = text.replace(correction.after, correction.before)
    return replace(utterance, text=text)


# To all pages, and earlier events to a page that connects later.


QUEUE_LENGTH = 512
"""A page that is this many messages behind is disconnected; it reconnects and gets the history."""


class CloseReason(Enum):
    """The close code and reason of a page's websocket.

    A page reconnects by itself, unless another page took over its seat.
    """

    TAKEN_OVER = (4410, "another page took over the seat")
    TOO_SLOW = (4408, "the page read too slowly, or not at all")
    CLOSED = (4503, "the table was closed")
    NOT_INVITED = (4401, "the page's link does not allow this, or was revoked")

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason


class PageOutbox:
    """Messages for one page. Bounded, so that a page that stops reading does not delay others."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[str | None] = asyncio.Queue(QUEUE_LENGTH + 1)
        self.close_reason: CloseReason | None = None

    def put(self, message: str) -> None:
        if self.close_reason is not None:
            return
        if self._messages.qsize() >= QUEUE_LENGTH:
            self.close(CloseReason.TOO_SLOW)
        else:
            self._messages.put_nowait(message)

    def put_json(self, message: Json) -> None:
        self.put(json.dumps(message))

    def close(self, reason: CloseReason) -> None:
        """Discard all later messages. The first reason counts."""
        if self.close_reason is None:
            self.close_reason = reason
            self._messages.put_nowait(None)

    async def next(self) -> str | None:
        """Return the next message; None once the outbox is closed and empty."""
        return await self._messages.get()


@dataclass(frozen=True, slots=True)
class PageReader:
    """The reader of a page.

    Attributes:
        player: None for a spectator.
        is_dm: The page gets what only the game master may know.
    """

    player: PlayerId | None
    is_dm: bool = False


class Hub:
    """Sends table events to every page, and the history to a page that joins late."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._outboxes: dict[PageOutbox, PageReader] = {}
        self._history = {False: History(), True: History()}
        for utterance in table.earlier:
            self.on(UtteranceKept(utterance))

    def history(self, player: PlayerId | None, *, is_dm: bool = False) -> list[Json]:
        """Return the history for this player's page; None means a spectator's."""
        return self._history[is_dm].messages(player)

    def on(self, event: TableEvent) -> None:
        for is_dm in self._history:
            self._broadcast(event, is_dm=is_dm)

    def _broadcast(self, event: TableEvent, *, is_dm: bool) -> None:
        may_show, campaign = self._table.may_show, self._table.campaign
        message = event_json(redacted(event, may_show), campaign, may_show)
        match event:
            case SceneChanged(scene=scene) if is_dm:
                message["scene"] = whole_scene_json(scene, campaign)
            case Degraded(npc=str(npc)) if not is_dm and npc not in self._table.scene.npcs:
                message["npc"] = None  # players may not have met it yet, so they get the trouble without the name
            case _ if not is_dm:
                message = allowed(message, campaign)
        self._history[is_dm].take(message)
        # A whisper names its only reader.
        self.send(message, to=lambda who: who.is_dm is is_dm and message.get("to", who.player) == who.player)

    def send(self, message: Json, *, to: Callable[[PageReader], bool] = lambda _: True) -> None:
        """Send a message to the pages of these readers."""
        text = json.dumps(message)
        for outbox, reader in self._outboxes.items():
            if to(reader):
                outbox.put(text)

    @contextmanager
    def joined(self, outbox: PageOutbox, reader: PageReader) -> Iterator[None]:
        """Send all events during the block to `outbox`, and close it at the end."""
        self._outboxes[outbox] = reader
        try:
            yield
        finally:
            self._outboxes.pop(outbox, None)
            outbox.close(CloseReason.CLOSED)

    def close(self) -> None:
        for outbox in list(self._outboxes):
            outbox.close(CloseReason.CLOSED)


HISTORY_LENGTH = 240


class History:
    """Keeps the messages that a new page needs to show the same as earlier ones.

    The last `HISTORY_LENGTH` finished messages are kept. Messages about the present (who thinks, speech in progress)
    are kept until an utterance replaces them, or the turn ends without one.
    """

    def __init__(self) -> None:
        self._finished: deque[Json] = deque(maxlen=HISTORY_LENGTH)
        self._ongoing: list[Json] = []
        self._retracted: set[str] = set()

    def messages(self, player: PlayerId | None) -> list[Json]:
        """Return the messages for this player, without retracted utterances and whispers to others."""
        return [*(message for message in self._finished if self._is_for(message, player)), *self._ongoing]

    def _is_for(self, message: Json, player: PlayerId | None) -> bool:
        if message["type"] == "whisper":
            return bool(message["to"] == player)
        return message["type"] != "utterance" or message["id"] not in self._retracted

    def take(self, message: Json) -> None:
        match message:
            case {"type": "speech_started" | "partial" | "turn_ended" | "nothing_said", "player": player}:
                self._player_speaks(message, player)
            case {"type": "npc_thinks" | "npc_silent"}:
                self._ongoing.append(message)
            case {"type": "npc_speaks", "turn": turn}:
                self._drop("npc_thinks", turn=turn)
                self._ongoing.append(message)
            case {"type": "utterance", "speaker": {"id": speaker, "kind": kind}}:
                self._finished.append(message)
                if kind == "npc":
                    self._npc_was_heard(speaker)
                else:
                    self._drop("speech_started", "partial", "turn_ended", player=speaker)
            case {"type": "revised", "id": utterance}:
                self._revise(message, utterance)
            case {"type": "retracted", "id": utterance, "is_retracted": is_retracted}:
                (self._retracted.add if is_retracted else self._retracted.discard)(utterance)
            case {"type": "turn", "id": turn, "reply": reply}:
                self._finished.append(message)
                self._drop("npc_thinks", turn=turn)
                if reply is None:
                    self._drop("npc_speaks", "npc_silent", turn=turn)
            case {"type": "scene" | "whisper"}:
                self._finished.append(message)
            case {"type": "getting_ready", "npcs": npcs}:
                self._drop("getting_ready")
                self._ongoing += [message] if npcs else []

    def _player_speaks(self, message: Json, player: str) -> None:
        """Replace the player's speech in progress by the latest."""
        self._drop("partial", "turn_ended", player=player)
        if message["type"] in ("turn_ended", "nothing_said", "speech_started"):
            self._drop("speech_started", player=player)
        if message["type"] != "nothing_said":
            self._ongoing.append(message)

    def _npc_was_heard(self, npc: str) -> None:
        """Drop the first finished reply of this NPC, because an utterance contains its words now."""
        ended = [m["turn"] for m in self._ongoing if m["type"] == "npc_silent" and m["npc"] == npc]
        for turn in ended[:1]:
            self._drop("npc_speaks", "npc_silent", turn=turn)

    def _revise(self, message: Json, utterance: str) -> None:
        """Replace an utterance by its corrected words."""
        for at, earlier in enumerate(self._finished):
            if earlier["type"] == "utterance" and earlier["id"] == utterance:
                self._finished[at] = {**message, "type": "utterance"}

    def _drop(self, *types: str, player: str | None = None, turn: str | None = None) -> None:
        self._ongoing = [
            message
            for message in self._ongoing
            if message["type"] not in types
            or (player is not None and message["player"] != player)
            or (turn is not None and message["turn"] != turn)
        ]
