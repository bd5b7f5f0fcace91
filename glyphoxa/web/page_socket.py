"""One page's websocket, after it has its seat: carries out its messages, sends events, and exchanges beats.

A page cannot see the pings of its websocket, and a frozen network reports nothing. So the server sends a beat, and the
page answers each. A page without beats reconnects. A page that has answered once and then falls silent is disconnected.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from fastapi import WebSocket, WebSocketDisconnect
from loguru import logger
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from glyphoxa.actors.clock import loop_ms
from glyphoxa.actors.deadline import done_within, end_tasks
from glyphoxa.actors.limits import RateLimit
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import LineId, PlayerId, SceneId, is_line
from glyphoxa.npc.table_interface import Table
from glyphoxa.web.access.links import Visitor
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Action, Forbidden, Refusal
from glyphoxa.web.events import CloseReason, Json, PageOutbox
from glyphoxa.web.requests import PageProblem, first_problem, problem_of
from glyphoxa.web.seats import NotNow, Pulse, TakenSeat

MAX_TEXT_LENGTH = 600
SHORTEST_LINE = 200
"""Characters that a line costs at least: many short lines are more work than their letters."""
MOVE_WITHIN_MS = 10_000


class PageMessage(BaseModel):
    """A page's message: exactly one of `say`, `move` and `beat`. `id` goes with `say`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    say: str | None = None
    id: str | None = None
    move: str | None = Field(default=None, max_length=200)
    beat: bool | None = None


class TooLong(Refusal):
    code = "too_long"

    def __init__(self, n_characters: int) -> None:
        text = f"a line has at most {MAX_TEXT_LENGTH} characters, this one has {n_characters}"
        super().__init__(text, most=MAX_TEXT_LENGTH, n=n_characters)


class Rationed(Refusal):
    """A seat exceeds its rate limit."""

    code = "rationed"
    status = 429

    def __init__(self, what: str, *, wait_ms: int) -> None:
        wait_s = -(-wait_ms // 1_000)
        super().__init__(f"too many {what}; try again in {wait_s} s", wait_s=wait_s)


@dataclass(slots=True)
class SeatLimits:
    """The rate limits of one seat, so that one player cannot crowd out others. Generous for fast typing.

    Attributes:
        lines: Typed lines, in characters.
        requests: Websockets and offers that ask for the seat, consents, changes of scene.
        messages: Messages of any kind over the websocket. Beyond the limit they are read more slowly.
    """

    lines: RateLimit = field(default_factory=lambda: RateLimit(1_600, 8))
    requests: RateLimit = field(default_factory=lambda: RateLimit(20, 1_000))
    messages: RateLimit = field(default_factory=lambda: RateLimit(60, 50))

    def need_request(self, what: str = "requests for this seat") -> None:
        """Count a request. Raises: Rationed: There are too many."""
        if wait_ms := self.requests.take(at_ms=loop_ms()):
            raise Rationed(what, wait_ms=wait_ms)


@dataclass(slots=True, eq=False)
class PageSocket:
    """One page's websocket; see the module.

    Attributes:
        place: Where its reader sits; None for a spectator.
        visitor: Its reader.
    """

    socket: WebSocket
    table: Table
    place: TakenSeat | None
    outbox: PageOutbox
    limits: SeatLimits
    visitor: Visitor
    pulse: Pulse
    _heard_ms: int = 0
    _beats: bool = False

    async def serve(self) -> None:
        """Serve until the page leaves, falls silent, or is sent nothing more."""
        self._heard_ms = loop_ms()
        tasks = [asyncio.create_task(work) for work in (self._read(), self._write(), self._beat())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for ended in await end_tasks(*tasks):
                if isinstance(ended, Exception):
                    logger.opt(exception=ended).error("the page of {} broke off", self._player)

    async def _beat(self) -> None:
        while True:
            self.outbox.put_json({"type": "beat"})
            await asyncio.sleep(self.pulse.every_ms / 1_000)
            if not self.visitor.grants.may(Action.WATCH if self.place is None else Action.PLAY, self._player):
                self.outbox.close(CloseReason.NOT_INVITED)
                return
            if self._beats and loop_ms() - self._heard_ms > self.pulse.server_waits_ms:
                logger.info("a page fell silent: {} has left the table", self._player)
                return

    async def _write(self) -> None:
        while (message := await self.outbox.next()) is not None:
            try:
                await self.socket.send_text(message)
            except (WebSocketDisconnect, RuntimeError):
                return
        why = self.outbox.close_reason or CloseReason.CLOSED
        try:
            await self.socket.close(why.code, reason=why.reason)
        except (WebSocketDisconnect, RuntimeError):
            logger.debug("the page closed before the server could close it")

    async def _read(self) -> None:
        while True:
            text = ""
            try:
                text = await self.socket.receive_text()
                self._heard_ms = loop_ms()
                # Beyond the limit, messages are read more slowly and queue in the sender's network.
                await asyncio.sleep(self.limits.messages.take(at_ms=loop_ms()) / 1_000)
                await self._obey(text)
            except (WebSocketDisconnect, RuntimeError):
                # Starlette raises RuntimeError when the socket was closed from our side meanwhile.
                return
            except KeyError:
                self._tell(PageProblem("invalid_message", "messages are JSON text", 400))
            except GlyphoxaError as error:
                self._tell(problem_of(error), line=_line_in(text))

    async def _obey(self, text: str) -> None:
        try:
            message = PageMessage.model_validate_json(text)
        except ValidationError as error:
            raise InvalidInput(first_problem(error)) from None
        match message:
            case PageMessage(say=str(words), move=None, beat=None) if words.strip():
                self._say(words.strip(), message.id)
            case PageMessage(say=None, id=None, move=str(scene), beat=None):
                await self._move(SceneId(scene))
            case PageMessage(say=None, id=None, move=None, beat=True):
                self._beats = True
            case _:
                raise InvalidInput('a message is {"say": "some text", "id": …}, {"move": "a scene"} or {"beat": true}')

    @property
    def _player(self) -> PlayerId | None:
        return self.place.player.id if self.place is not None else None

    def _say(self, words: str, line: str | None) -> None:
        player = self._player
        if player is None:
            raise Forbidden(Action.PLAY)
        self.visitor.admit(Action.PLAY, player)
        if line is not None and not is_line(line):
            raise InvalidInput("the id of a line is 16 to 32 lower-case letters and digits")
        if len(words) > MAX_TEXT_LENGTH:
            raise TooLong(len(words))
        if wait_ms := self.limits.lines.take(max(SHORTEST_LINE, len(words)), at_ms=loop_ms()):
            raise Rationed("typed lines", wait_ms=wait_ms)
        if line is None:
            self.table.say(player, words)
        elif not self.table.say(player, words, line=LineId(line)):
            self.outbox.put_json({"type": "kept", "line": line})

    async def _move(self, scene: SceneId) -> None:
        grants = self.visitor.admit(Action.MOVE)
        self.limits.need_request("scene changes")
        if not await done_within(MOVE_WITHIN_MS, self.table.move(scene)):
            raise NotNow("the scene did not change in time; try again")
        self.visitor.record(AuditKind.MOVED, grants.who, f"to {scene}")

    def _tell(self, problem: PageProblem, *, line: str | None = None) -> None:
        told: Json = {
            "type": "error",
            "code": problem.code,
            "message": problem.message,
            "values": problem.values,
            "line": line,
        }
        self.outbox.put_json(told)


def _line_in(text: str) -> str | None:
    """Return the line id of a refused message."""
    try:
        message: Json = json.loads(text)
        line = message["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return line if isinstance(line, str) and is_line(line) else None
