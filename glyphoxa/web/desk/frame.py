"""What all pages of the desk share: who may see them, in what time, and how they are rendered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from loguru import logger

from glyphoxa.desk import Desk, DeskSource
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.commands import TableCommand
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.npc.table import Table
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Action, Forbidden, NotInvited
from glyphoxa.web.requests import MAX_BODY_BYTES, address_of, content_of

WITHIN_S: Final = 10.0
"""A page that takes longer says so; the table plays on."""

Shown = dict[str, Any]
"""Plain values that a template names: of a page, or of one thing on it."""

DECISIONS: Final[Mapping[str, str]] = {
    "confirm": "It is true",
    "reject": "It never was so",
    "hide": "Nobody knows it",
    "reveal": "Everybody knows it",
}
"""Those that need no more than the fact, each with the words of its button."""


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
        """See `TableSession.obey`."""


Page = Callable[[Request], Awaitable[Response]]


class DeskFrame:
    """Around every page of a desk.

    Attributes:
        table: Whose evening it is.
        consents: Who agreed to be heard; None where nobody is asked.
    """

    def __init__(self, parts: DeskParts) -> None:
        self.table = parts.table
        self._source = parts.source
        self._links = parts.links
        self._authenticator = parts.entrance.authenticator
        self.consents = parts.entrance.consents
        self._record = parts.entrance.record
        self._templates = Environment(
            loader=PackageLoader("glyphoxa.web.desk"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def add(self, app: FastAPI, looked_at: Mapping[str, Page], posted: Mapping[str, Page]) -> None:
        """Put pages on a server, by their paths. An earlier path comes first where two fit."""
        for method, pages in (("GET", looked_at), ("POST", posted)):
            for path, page in pages.items():
                app.add_api_route(path, self.guarded(page), methods=[method], response_model=None)

    def guarded(self, page: Page) -> Page:
        """The page for the game master alone, in time, with every error in words."""

        async def answer(request: Request) -> Response:
            try:
                self._authenticator.grants(request.cookies).need(Action.DIRECT)
                async with asyncio.timeout(WITHIN_S):
                    return await page(request)
            except (NotInvited, Forbidden) as error:
                self._record(AuditKind.REFUSED, what="the desk", address=address_of(request))
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

    def record(self, kind: AuditKind, done: str, *, who: str = "dm") -> None:
        """In the audit log of the table."""
        self._record(kind, who=who, what=done)

    def memory(self) -> DeskSource:
        """Raises: InvalidInput: There is none."""
        if self._source is None:
            raise InvalidInput("this table has no long-term memory (memory.postgres_dsn: none): the live page is all")
        return self._source

    @property
    def has_links(self) -> bool:
        return self._links is not None

    def links(self) -> Links:
        """Raises: InvalidInput: There are none."""
        if self._links is None:
            raise InvalidInput("this table is open to everybody on this machine: it has no links")
        return self._links

    async def desk(self) -> Desk:
        """The campaign as it is now. Raises: InvalidInput: There is no memory. Unavailable: It is away."""
        return await self.memory().open()

    def page(self, name: str, request: Request | None = None, /, **shown: object) -> HTMLResponse:
        """The template of this name, with what was just done, if the page was asked for behind that."""
        return self._rendered(name, 200, "" if request is None else request.query_params.get("done", ""), shown)

    def _problem(self, message: str, status: int) -> HTMLResponse:
        return self._rendered("problem", status, "", {"message": message})

    def _rendered(self, name: str, status: int, done: str, shown: Mapping[str, object]) -> HTMLResponse:
        template = self._templates.get_template(f"{name}.html")
        campaign = self.table.campaign
        text = template.render(
            page=name,
            campaign=campaign.name,
            language=campaign.language,
            session=self.table.session,
            has_memory=self._source is not None,
            done=done,
            decisions=DECISIONS,
            **shown,
        )
        return HTMLResponse(text, status)


async def form_of(request: Request, *, most_bytes: int = MAX_BODY_BYTES) -> dict[str, str]:
    """Raises: InvalidInput: It is too long, too slow, or no form."""
    try:
        content = await content_of(request, most_bytes=most_bytes)
        return dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=50))
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("what was posted is no form") from error


def see_other(back: str, otherwise: str, done: str) -> RedirectResponse:
    """To the page that was decided on, if it is one of the desk's, with what was done."""
    path, _, query = back.partition("?")
    if not path.startswith("/desk") or "//" in path or "\\" in path:
        path, query = otherwise, ""
    kept = [(name, value) for name, value in parse_qsl(query) if name != "done"]
    return RedirectResponse(f"{path}?{urlencode([*kept, ('done', done)])}", status_code=303)


def scene_of(scene: Scene, campaign: Campaign) -> Shown:
    place = campaign.entity(scene.location).name
    return {"id": scene.id, "name": ", ".join(each for each in (place, scene.time_of_day) if each)}
