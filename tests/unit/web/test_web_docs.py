"""docs/reference/messages.md lists every route, message and field that page and server use, and no other."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import get_args

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
    Trouble,
    TurnFinished,
    UtteranceKept,
    UtteranceRetracted,
    UtteranceRevised,
    Whispered,
)
from glyphoxa.domain.heard import EagerTurn, NothingSaid, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.web import app as web_app
from glyphoxa.web import events as web_events
from glyphoxa.web.app import OfferBody, create_app
from glyphoxa.web.page_socket import PageMessage
from glyphoxa_pipelines.webrtc import WebRtcPeers
from tests.support.builders import a_draft, a_partial, a_turn_record, an_utterance
from tests.support.web_table import CAMPAIGN, GRIMJAW, TAMSIN, TwinTable

DOCS = (Path(__file__).parents[3] / "docs" / "reference" / "messages.md").read_text("utf-8")
TURN = TurnId("t1")
DRAFT = a_draft(TAMSIN.id, "Grimjaw?", end_ms=1)
SAID = an_utterance("Grimjaw?")

EVENTS: list[TableEvent] = [
    SpeechStarted(TAMSIN.id, 1),
    a_partial(TAMSIN.id, "Grim", 1),
    EagerTurn(DRAFT),
    TurnEnded(DRAFT, 1),
    NothingSaid(TAMSIN.id, 1),
    UtteranceKept(SAID),
    UtteranceRevised(replace(SAID, text="Grimjaw!"), SAID),
    UtteranceRetracted(SAID),
    NpcThinks(GRIMJAW.id, GRIMJAW.name, TURN, TAMSIN.id, 1),
    NpcSpeaks(GRIMJAW.id, GRIMJAW.name, TURN, "Aye.", 1),
    NpcSilent(GRIMJAW.id, TURN, 1),
    TurnFinished(a_turn_record()),
    SceneChanged(CAMPAIGN.scenes[0], 1),
    NpcsGetReady((GRIMJAW.id,), 1),
    MemoryChanged(MemoryHealth("ok"), 1),
    Degraded("", 1, Trouble.OUT),
    Whispered(TAMSIN.id, "Hush.", 1),
    PauseChanged(True, 1),
    SessionEnds(1),
]


def section(title: str) -> str:
    return DOCS.partition(f"## {title}\n")[2].partition("\n## ")[0]


def listed() -> dict[str, set[str]]:
    """Return the fields of each type in the table of the server's messages."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("From the server"), re.MULTILINE))
    del rows["type"]  # the table's head
    fields = {kind: _fields(cell) for kind, cell in rows.items()}
    return {kind: fields[as_[1]] if (as_ := re.match(r"as `(\w+)`", rows[kind])) else fields[kind] for kind in rows}


def _fields(cell: str) -> set[str]:
    """The names before the remark; what stands in brackets is no name of a field of the message."""
    bare = re.sub(r"`(\w+)[^`]*`", r"`\1`", re.sub(r"\(.*?\)", "", cell))
    return set(re.findall(r"`(\w+)`", re.split("[;:]", bare)[0]))


def sent() -> dict[str, set[str]]:
    """Return what the code can send over the websocket: each event, and every message that is written out elsewhere."""
    kinds = {
        message["type"]: set(message) - {"type"} for message in (web_events.event_json(e, CAMPAIGN) for e in EVENTS)
    }
    for path in Path(web_app.__file__).parent.glob("*.py"):
        if path != Path(web_events.__file__):
            kinds |= _written_out(ast.parse(path.read_text("utf-8")))
    return kinds


def _written_out(tree: ast.Module) -> dict[str, set[str]]:
    kinds = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            fields = {
                key.value: value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            }
            kind = fields.pop("type", None)
            # Others with a type are the answer to an offer, ASGI's own, and copies of a message (`**message`).
            if (
                isinstance(kind, ast.Constant)
                and "sdp" not in fields
                and "." not in kind.value
                and None not in node.keys
            ):
                kinds[kind.value] = {str(field) for field in fields}
    return kinds


def _members(union: object) -> set[type]:
    return {m for one in get_args(union) for m in (_members(one) if isinstance(one, UnionType) else {one})}


def test_every_table_event_is_checked() -> None:
    assert {type(event) for event in EVENTS} == _members(TableEvent)


def test_server_messages_equal_the_documented_list() -> None:
    assert listed() == sent()


def test_page_messages_equal_the_documented_list() -> None:
    first = section("From the page").strip().partition("\n\n")[0]
    assert set(re.findall(r'"(\w+)":', first)) | set(re.findall(r', "(\w+)":', first)) == set(PageMessage.model_fields)


async def test_every_route_is_listed_and_an_offer_with_its_fields() -> None:
    table = TwinTable()
    paths = {getattr(route, "path", "") for route in create_app(table, connect=WebRtcPeers(table).connect).routes}
    listed_paths = set(re.findall(r"`(?:GET|POST|WS) (/[\w/{}]*)", DOCS))
    assert paths - {"/static"} == listed_paths
    (offer,) = re.findall(r"`POST /api/offer` \| `\{(.*?)\}`", DOCS)
    assert {name for name in OfferBody.model_fields if f'"{name}"' in offer} == set(OfferBody.model_fields)


def test_every_word_that_a_player_may_be_told_is_listed() -> None:
    assert {word.value for word in Trouble if f"`{word.value}`" not in section("From the server")} == set()
    first_cells = re.findall(r"^\| (`.*?`) \|", section("Why nobody was addressed"), re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == {word.value for word in Unaddressed}
