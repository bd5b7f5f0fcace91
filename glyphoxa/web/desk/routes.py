"""The game master's desk: pages made on the server, and what is posted from them.

Every page is a URL of its own and works without a script, but for the live one. Whatever is changed is posted, answered
with a redirect, and said in one line on the page that follows.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from loguru import logger

from glyphoxa.bootstrap.desk import Desk, DeskSource
from glyphoxa.dm.table_commands import CommandReader
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import SessionId
from glyphoxa.npc.table import Table
from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.access.entrance import Entrance
from glyphoxa.web.access.links import Links
from glyphoxa.web.access.roles import Action, Forbidden, NotInvited
from glyphoxa.web.answers import content_of
from glyphoxa.web.desk import views
from glyphoxa.web.desk.decisions import DECISIONS, decide

WITHIN_S: Final = 10.0
"""A page that takes longer says so; the table plays on."""


@dataclass(frozen=True, slots=True)
class DeskParts:
    """
    Attributes:
        source: None where there is no long-term memory: then there is the live page alone.
        links: None where nobody needs one.
    """

    table: CommandedTable
    source: DeskSource | None
    entrance: Entrance
    links: Links | None


class CommandedTable(Table, Protocol):
    """A table that obeys its game master."""

    async def obey(self, command: TableCommand) -> str:
        """See `LiveTable.obey`."""


Page = Callable[[Request], Awaitable[Response]]


def add_desk(app: FastAPI, parts: DeskParts) -> None:
    """Put the desk on a page's server."""
    pages = _Pages(parts)
    for path, page in (
        ("/desk", pages.live),
        ("/desk/review", pages.review),
        ("/desk/knowledge", pages.knowledge),
        ("/desk/secrets", pages.secrets),
        ("/desk/sessions", pages.sessions),
        ("/desk/sessions/{session}", pages.session),
        ("/desk/sessions/{session}/transcript.md", pages.markdown),
        ("/desk/turns", pages.turns),
        ("/desk/turns/{turn}", pages.turn),
        ("/desk/links", pages.links),
        ("/desk/links/{who}/qr.svg", pages.qr),
    ):
        app.add_api_route(path, pages.guarded(page), methods=["GET"], response_model=None)
    for path, page in (
        ("/desk/command", pages.command),
        ("/desk/facts", pages.decide),
        ("/desk/sessions/{session}", pages.summarise),
        ("/desk/links", pages.revoke),
    ):
        app.add_api_route(path, pages.guarded(page), methods=["POST"], response_model=None)


class _Pages:
    def __init__(self, parts: DeskParts) -> None:
        self._table = parts.table
        self._source = parts.source
        self._links = parts.links
        self._authenticator = parts.entrance.authenticator
        self._record = parts.entrance.record
        self._templates = Environment(
            loader=PackageLoader("glyphoxa.web.desk"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def guarded(self, page: Page) -> Page:
        """The page for the game master alone, in time, with every error in words."""

        async def answer(request: Request) -> Response:
            try:
                self._authenticator.grants(request.cookies).need(Action.DIRECT)
                async with asyncio.timeout(WITHIN_S):
                    return await page(request)
            except (NotInvited, Forbidden) as error:
                self._record(AuditKind.REFUSED, what="the desk", address=request.client.host if request.client else "")
                return self._problem(str(error), 401 if isinstance(error, NotInvited) else 403)
            except NotFound as error:
                return self._problem(str(error), 404)
            except InvalidInput as error:
                return self._problem(str(error), 400)
            except TimeoutError:
                return self._problem(f"this page was not ready within {WITHIN_S:.0f} s; try again", 503)
            except Unavailable as error:
                logger.warning("the desk: {}", error)
                return self._problem(str(error), 503)

        return answer

    # -- looking

    async def live(self, _: Request) -> Response:
        campaign = self._table.campaign
        return self._page(
            "live",
            npcs=[{"id": npc.id, "name": npc.name} for npc in campaign.npcs],
            players=[{"id": player.id, "name": player.name} for player in campaign.players],
            scenes=[views.scene_of(scene, campaign) for scene in campaign.scenes],
            in_force=await self._table.obey(CommandReader(campaign).read({"do": "show"})),
        )

    async def review(self, request: Request) -> Response:
        return self._page("review", request, groups=await views.review(await self._desk()))

    async def knowledge(self, request: Request) -> Response:
        asked = request.query_params
        return self._page(
            "knowledge", request, **await views.knowledge(await self._desk(), asked.get("npc"), asked.get("about", ""))
        )

    async def secrets(self, request: Request) -> Response:
        return self._page("secrets", request, **await views.secrets(await self._desk()))

    async def sessions(self, request: Request) -> Response:
        return self._page("sessions", request, sessions=await views.sessions(await self._desk()))

    async def session(self, request: Request) -> Response:
        source, desk, session = self._memory(), await self._desk(), _session(request)
        found = await views.session(desk, session)
        recaps = [
            ("For the players", await source.recap(session, "players")),
            ("For you", await source.recap(session, "dm")),
        ]
        return self._page("session", request, recaps=recaps, **found)

    async def markdown(self, request: Request) -> Response:
        text = await views.transcript_as_markdown(await self._desk(), _session(request))
        name = f"{_session(request)}.md"
        return PlainTextResponse(
            text,
            media_type="text/markdown; charset=utf-8",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
        )

    async def turns(self, request: Request) -> Response:
        return self._page("turns", request, turns=await views.turns(await self._desk()))

    async def turn(self, request: Request) -> Response:
        return self._page("turn", request, **await views.turn(await self._desk(), request.path_params["turn"]))

    async def links(self, request: Request) -> Response:
        return self._page("links", request, links=[] if self._links is None else views.links(self._links))

    async def qr(self, request: Request) -> Response:
        import segno

        links = self._need_links()
        drawn = io.BytesIO()
        segno.make(links.link(links.grant_named(request.path_params["who"])), error="l").save(
            drawn, kind="svg", scale=4
        )
        return Response(drawn.getvalue(), media_type="image/svg+xml")

    # -- doing

    async def command(self, request: Request) -> Response:
        """Of the live page, which shows the answer without being loaded anew."""
        told = {name: value for name, value in (await _form(request)).items() if value}
        try:
            command = CommandReader(self._table.campaign).read(_with_numbers(told))
            done = await self._table.obey(command)
        except GlyphoxaError as error:
            return JSONResponse({"error": {"code": "refused", "message": str(error)}}, status_code=400)
        in_force = await self._table.obey(CommandReader(self._table.campaign).read({"do": "show"}))
        self._record(AuditKind.COMMANDED, who="dm", what=done)
        return JSONResponse({"done": done, "in_force": in_force})

    async def decide(self, request: Request) -> Response:
        form = await _form(request)
        desk = await self._desk()
        done = await decide(desk, form)
        self._record(AuditKind.DECIDED, who="dm", what=done)
        return _seen(form.get("back", ""), "/desk/review", done)

    async def summarise(self, request: Request) -> Response:
        session = _session(request)
        await views.summarise(await self._desk(), session, (await _form(request)).get("summary", ""))
        return _seen("", f"/desk/sessions/{quote(session, safe='')}", "the summary is kept")

    async def revoke(self, request: Request) -> Response:
        links = self._need_links()
        grant = links.grant_named((await _form(request)).get("who", ""))
        await asyncio.to_thread(links.revoke, grant)
        self._record(AuditKind.REVOKED, who=grant.key)
        return _seen("", "/desk/links", "the links of before are void, and whoever came by them is put out")

    # -- what they stand on

    def _memory(self) -> DeskSource:
        if self._source is None:
            raise InvalidInput("this table has no long-term memory (memory.postgres_dsn: none): the live page is all")
        return self._source

    def _need_links(self) -> Links:
        if self._links is None:
            raise InvalidInput("this table is open to everybody on this machine: it has no links")
        return self._links

    async def _desk(self) -> Desk:
        return await self._memory().open()

    def _page(self, name: str, request: Request | None = None, **shown: object) -> HTMLResponse:
        return self._rendered(name, 200, "" if request is None else request.query_params.get("done", ""), shown)

    def _problem(self, message: str, status: int) -> HTMLResponse:
        return self._rendered("problem", status, "", {"message": message})

    def _rendered(self, name: str, status: int, done: str, shown: Mapping[str, object]) -> HTMLResponse:
        template = self._templates.get_template(f"{name}.html")
        campaign = self._table.campaign
        text = template.render(
            page=name,
            campaign=campaign.name,
            language=campaign.language,
            session=self._table.session,
            has_memory=self._source is not None,
            done=done,
            decisions=DECISIONS,
            **shown,
        )
        return HTMLResponse(text, status)


def _session(request: Request) -> SessionId:
    return SessionId(request.path_params["session"])


async def _form(request: Request) -> dict[str, str]:
    """Raises: InvalidInput: It is too long, too slow, or no form."""
    try:
        return dict(parse_qsl((await content_of(request)).decode(), keep_blank_values=True, max_num_fields=50))
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("what was posted is no form") from error


def _with_numbers(told: Mapping[str, str]) -> dict[str, object]:
    """Raises: InvalidInput: `turns` is no number."""
    turns = told.get("turns")
    if turns is None:
        return dict(told)
    if not (turns.isascii() and turns.isdecimal() and len(turns) < 10):
        raise InvalidInput(f"{turns!r} is no number of answers")
    return {**told, "turns": int(turns)}


def _seen(back: str, otherwise: str, done: str) -> RedirectResponse:
    """To the page that was decided on, if it is one of the desk's, with what was done."""
    path, _, query = back.partition("?")
    if not path.startswith("/desk") or "//" in path or "\\" in path:
        path, query = otherwise, ""
    kept = [(name, value) for name, value in parse_qsl(query) if name != "done"]
    return RedirectResponse(f"{path}?{urlencode([*kept, ('done', done)])}", status_code=303)
