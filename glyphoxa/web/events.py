"""The messages of the page: table events as JSON objects, each with a `type`. See `docs/reference/messages.md`.

Players read these, so they contain nothing that only an NPC or the DM may know: no prompt, and only the number of
recalled memories. A failure is a fixed word; the DM's log has the error of the provider, the database or the disk.

The log, memory and the NPCs have corrected names. A player who said something like "sharothrix" would learn from their
own caption that there is a Zharothrix, and how it is written. So `redacted` keeps the heard words if the corrected name
is hidden or secret. A player who typed the name sees it, because they knew it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from glyphoxa.domain.turn import Stage, TurnRecord
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.words import applied, leads_to

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
        case UtteranceKept() | UtteranceRevised() | UtteranceRetracted():
            return _of_utterance(event)
        case NpcThinks(npc, name, turn, player, at_ms):
            return {"type": "npc_thinks", "npc": npc, "name": name, "turn": turn, "player": player, "at_ms": at_ms}
        case NpcSpeaks(npc, name, turn, text, at_ms):
            return {"type": "npc_speaks", "npc": npc, "name": name, "turn": turn, "text": text, "at_ms": at_ms}
        case NpcSilent(npc, turn, at_ms):
            return {"type": "npc_silent", "npc": npc, "turn": turn, "at_ms": at_ms}
        case TurnFinished(turn_record):
            return _turn_json(turn_record, campaign)
        case SceneChanged(scene, at_ms):
            return {"type": "scene", "scene": scene_json(scene, campaign, may_show), "at_ms": at_ms}
        case Whispered(player, text, at_ms):
            return {"type": "whisper", "to": player, "text": text, "at_ms": at_ms}
        case NpcsGetReady() | MemoryChanged() | Degraded() | PauseChanged() | SessionEnds():
            return _condition_json(event, campaign)
        case _:
            assert_never(event)


def _partial(player: PlayerId, heard: Heard, at_ms: int) -> Json:
    return {"type": "partial", "player": player, "text": heard.text, "raw": heard.raw_text, "at_ms": at_ms}


def _condition_json(
    event: NpcsGetReady | MemoryChanged | Degraded | PauseChanged | SessionEnds, campaign: Campaign
) -> Json:
    """Describe a change of the table's state."""
    match event:
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


def _of_utterance(event: UtteranceKept | UtteranceRevised | UtteranceRetracted) -> Json:
    match event:
        case UtteranceKept(utterance):
            return _utterance_json(utterance)
        case UtteranceRevised(utterance):
            return {**_utterance_json(utterance), "type": "revised"}
        case UtteranceRetracted(utterance, is_retracted):
            return {"type": "retracted", "id": utterance.id, "is_retracted": is_retracted}


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
