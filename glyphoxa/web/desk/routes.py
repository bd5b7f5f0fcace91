"""The game master's desk: pages made on the server, and what is posted from them.

Every page is a URL of its own and works without a script, but for the live one. Whatever is changed is posted, answered
with a redirect, and said in one line on the page that follows.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

from glyphoxa.dm.table_commands import CommandReader
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.desk import asking_views, fact_views, finding, name_views, table_views, views
from glyphoxa.web.desk.campaign_routes import CampaignPages
from glyphoxa.web.desk.decisions import decide
from glyphoxa.web.desk.frame import DeskFrame, DeskParts, form_of, seen
from glyphoxa.web.desk.session_routes import SessionPages
from glyphoxa.web.desk.world_routes import WorldPages


def add_desk(app: FastAPI, parts: DeskParts) -> None:
    """Put the desk on a page's server."""
    frame = DeskFrame(parts)
    for pages in (_Pages(frame), WorldPages(frame), SessionPages(frame), CampaignPages(frame)):
        frame.add(app, pages.looked_at, pages.posted)


class _Pages:
    """The evening itself, facts, turns and links."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {
            "/desk": self.live,
            "/desk/review": self.review,
            "/desk/knowledge": self.knowledge,
            "/desk/facts/{fact}": self.fact,
            "/desk/ask": self.ask,
            "/desk/secrets": self.secrets,
            "/desk/names": self.names,
            "/desk/turns": self.turns,
            "/desk/turns/{turn}": self.turn,
            "/desk/table": self.table,
            "/desk/find": self.find,
            "/desk/links": self.links,
            "/desk/links/{who}/qr.svg": self.qr,
        }
        self.posted = {
            "/desk/command": self.command,
            "/desk/facts": self.decide,
            "/desk/names": self.decide_name,
            "/desk/links": self.revoke,
        }

    # -- looking

    async def live(self, _: Request) -> Response:
        campaign = self._frame.table.campaign
        return self._frame.page(
            "live",
            npcs=[{"id": npc.id, "name": npc.name} for npc in campaign.npcs],
            players=[{"id": player.id, "name": player.name} for player in campaign.players],
            scenes=[views.scene_of(scene, campaign) for scene in campaign.scenes],
            in_force=await self._frame.table.obey(CommandReader(campaign).read({"do": "show"})),
        )

    async def review(self, request: Request) -> Response:
        return self._frame.page("review", request, groups=await views.review(await self._frame.desk()))

    async def knowledge(self, request: Request) -> Response:
        asked = request.query_params
        return self._frame.page(
            "knowledge",
            request,
            **await views.knowledge(
                await self._frame.desk(), asked.get("npc"), asked.get("about", ""), asked.get("as_of", "").strip()
            ),
        )

    async def fact(self, request: Request) -> Response:
        shown = await fact_views.fact(await self._frame.desk(), request.path_params["fact"])
        return self._frame.page("fact", request, **shown)

    async def ask(self, request: Request) -> Response:
        shown = await asking_views.asking(self._frame.memory(), self._frame.table, request.query_params)
        return self._frame.page("ask", request, **shown)

    async def secrets(self, request: Request) -> Response:
        return self._frame.page("secrets", request, **await views.secrets(await self._frame.desk()))

    async def names(self, request: Request) -> Response:
        return self._frame.page("names", request, **await name_views.names(await self._frame.memory().names()))

    async def turns(self, request: Request) -> Response:
        return self._frame.page("turns", request, turns=await views.turns(await self._frame.desk()))

    async def turn(self, request: Request) -> Response:
        return self._frame.page(
            "turn", request, **await views.turn(await self._frame.desk(), request.path_params["turn"])
        )

    async def table(self, request: Request) -> Response:
        source, table = self._frame.memory(), self._frame.table
        url = self._frame.links().url if self._frame.has_links else None
        return self._frame.page("table", request, **await table_views.table(source, await source.open(), table, url))

    async def find(self, request: Request) -> Response:
        """For the palette: pages of what is called so."""
        words = request.query_params.get("words", "")[: finding.LONGEST]
        return JSONResponse({"found": await finding.found(await self._frame.desk(), words)})

    async def links(self, request: Request) -> Response:
        links = views.links(self._frame.links()) if self._frame.has_links else []
        consents = views.consents(self._frame.consents, self._frame.table.campaign)
        return self._frame.page("links", request, links=links, consents=consents)

    async def qr(self, request: Request) -> Response:
        import segno

        links = self._frame.links()
        drawn = io.BytesIO()
        segno.make(links.link(links.grant_named(request.path_params["who"])), error="l").save(
            drawn, kind="svg", scale=4
        )
        return Response(drawn.getvalue(), media_type="image/svg+xml")

    # -- doing

    async def command(self, request: Request) -> Response:
        """Of the live page, which shows the answer without being loaded anew."""
        told = {name: value for name, value in (await form_of(request)).items() if value}
        try:
            command = CommandReader(self._frame.table.campaign).read(_with_numbers(told))
            done = await self._frame.table.obey(command)
        except GlyphoxaError as error:
            return JSONResponse({"error": {"code": "refused", "message": str(error)}}, status_code=400)
        in_force = await self._frame.table.obey(CommandReader(self._frame.table.campaign).read({"do": "show"}))
        self._frame.record(AuditKind.COMMANDED, done)
        request.app.state.tell_in_force(in_force, done)
        return JSONResponse({"done": done, "in_force": in_force})

    async def decide(self, request: Request) -> Response:
        form = await form_of(request)
        desk = await self._frame.desk()
        done = await decide(desk, form)
        self._frame.record(AuditKind.DECIDED, done)
        return seen(form.get("back", ""), "/desk/review", done)

    async def decide_name(self, request: Request) -> Response:
        form = await form_of(request)
        done = await name_views.decide_name(await self._frame.memory().names(), form)
        self._frame.record(AuditKind.DECIDED, done)
        return seen("", "/desk/names", done)

    async def revoke(self, request: Request) -> Response:
        links = self._frame.links()
        grant = links.grant_named((await form_of(request)).get("who", ""))
        await asyncio.to_thread(links.revoke, grant)
        self._frame.record(AuditKind.REVOKED, "", who=grant.key)
        return seen("", "/desk/links", "the links of before are void, and whoever came by them is put out")


def _with_numbers(told: Mapping[str, str]) -> dict[str, object]:
    """Raises: InvalidInput: `turns` is no number."""
    turns = told.get("turns")
    if turns is None:
        return dict(told)
    if not (turns.isascii() and turns.isdecimal() and len(turns) < 10):
        raise InvalidInput(f"{turns!r} is no number of answers")
    return {**told, "turns": int(turns)}
