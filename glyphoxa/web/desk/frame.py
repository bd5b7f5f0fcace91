"""The frame of all pages of the desk: access, deadline and rendering."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from loguru import logger

from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.campaign_editor import MOST_CHARACTERS
from glyphoxa.app.desk import Desk, desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.app.source_reader import SourceReader
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Scene
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import SessionId
from glyphoxa.domain.knowledge import DM, Viewer
from glyphoxa.language.facts import moment
from glyphoxa.npc.table_interface import Table
from glyphoxa.observability import Observer
from glyphoxa.plugin import references
from glyphoxa.web.access.links import Entrance, Links
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.access.roles import Action
from glyphoxa.web.requests import content_of, problem_of

_MOST_BYTES: Final = 4 * MOST_CHARACTERS
"""Most bytes of a form, which may contain a campaign file. Umlauts take up to nine bytes, most letters one."""
WITHIN_S: Final = 10.0
"""A page that takes longer shows an error; the table is not affected."""

T = TypeVar("T")
Shown = dict[str, Any]
"""The values that a template uses, for a page or for one item on it."""

DECISIONS: Final[Mapping[str, str]] = {
    "confirm": "Accept",
    "reject": "Reject",
    "hide": "Hide",
    "reveal": "Reveal to all",
}
"""Decisions that need only the fact, each with the label of its button."""


Form = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """A decision in one line, and the page that follows.

    Attributes:
        kind, who: Fields of the entry in the audit log.
    """

    text: str
    then: str
    kind: AuditKind = AuditKind.DECIDED
    who: str = "dm"


Shows = Callable[["DeskFrame", Request], Awaitable[Shown | Response]]
Decides = Callable[["DeskFrame", Request, Form], Awaitable[Done | Response]]
Answers = Callable[["DeskFrame", Request], Awaitable[Response]]


Tab = tuple[str, str, Sequence[str]]


class Pages:
    """Declares pages of the desk where they are defined. The first declared path that fits is taken.

    Args:
        package: Its folder `templates` holds those of the pages.
        tab: For the desk's tabs: path and name of a page, and the templates under which it is the current one; None if
            it is there already.
    """

    def __init__(self, package: str = "glyphoxa.web.desk", tab: Tab | None = None) -> None:
        self.package = package
        self.tab = tab
        self.declared: list[tuple[str, str, Answers, bool]] = []

    def get(
        self, path: str, template: str = "", *, method: str = "GET", may_last: bool = False
    ) -> Callable[[Shows], Shows]:
        """Declare a page, without a deadline if it may last; or with POST what receives a file.

        Args:
            template: Renders the values that the function returns; empty if it returns a response.
        """

        def declare(shows: Shows) -> Shows:
            async def answer(frame: DeskFrame, request: Request) -> Response:
                shown = await shows(frame, request)
                return shown if isinstance(shown, Response) else frame.page(template, request, **shown)

            self.declared.append((method, path, answer, may_last))
            return shows

        return declare

    def post(self, path: str, *, may_last: bool = False) -> Callable[[Decides], Decides]:
        """Declare what a posted form does. The result goes into the audit log and onto the page that follows."""

        def declare(decides: Decides) -> Decides:
            async def answer(frame: DeskFrame, request: Request) -> Response:
                done = await decides(frame, request, await form_of(request))
                return done if isinstance(done, Response) else frame.done(done)

            self.declared.append(("POST", path, answer, may_last))
            return decides

        return declare


class DeskFrame:
    """Access, deadline, errors and templates of all pages of the desk.

    Args:
        table: The open table.
        source: None without long-term memory: then only the live page works.
    """

    def __init__(self, table: Table, source: Scope | None, entrance: Entrance) -> None:
        self.table = table
        self.entrance = entrance
        self._source = source
        self.source_reader = SourceReader()
        self._tabs: list[Tab] = []
        self._loaders: list[BaseLoader] = [PackageLoader("glyphoxa.web.desk")]
        self._templates = Environment(
            loader=ChoiceLoader(self._loaders),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["moment"] = moment

    def add(self, app: FastAPI, pages: Pages) -> None:
        """Put pages on a server."""
        if pages.tab is not None:
            self._tabs.append(pages.tab)
            self._loaders.append(PackageLoader(pages.package))
        for method, path, answers, may_last in pages.declared:
            app.add_api_route(path, self._guarded(answers, may_last=may_last), methods=[method], response_model=None)

    def done(self, done: Done) -> Response:
        """Record a decision, and go to the page that follows, which shows it."""
        self.record(done.kind, done.text, who=done.who)
        path, _, query = done.then.partition("?")
        kept = [(name, value) for name, value in parse_qsl(query) if name != "done"]
        return RedirectResponse(f"{path}?{urlencode([*kept, ('done', done.text)])}", status_code=303)

    def _guarded(self, page: Answers, *, may_last: bool) -> Callable[[Request], Awaitable[Response]]:
        """Return the page for the game master only, with a deadline unless it may last, and errors in words."""

        async def answer(request: Request) -> Response:
            try:
                self.entrance.visitor(request).admit(Action.DIRECT)
                async with asyncio.timeout(None if may_last else WITHIN_S):
                    return await page(self, request)
            except TimeoutError:
                text = f"this page was not ready within {WITHIN_S:.0f} s; try again"
                return self.page("problem", status_code=503, message=text)
            except (InvalidInput, Unavailable) as error:
                if isinstance(error, Unavailable):
                    logger.warning("the desk: {}", error)
                return self.page("problem", status_code=problem_of(error).status, message=str(error))

        return answer

    def record(self, kind: AuditKind, done: str, *, who: str = "dm") -> None:
        """Add an entry to the table's audit log."""
        self.entrance.record(kind, who=who, what=done)

    def memory(self) -> Scope:
        """Raises: InvalidInput: There is none."""
        if self._source is None:
            raise InvalidInput("there is no long-term memory (memory.postgres_dsn: none), so only the live page works")
        return self._source

    def links(self) -> Links:
        """Raises: InvalidInput: There are none."""
        if self.entrance.links is None:
            raise InvalidInput("this table is open to everybody on this machine: it has no links")
        return self.entrance.links

    async def desk(self) -> Desk:
        """Open the desk in the current state. Raises: InvalidInput: There is no memory. Unavailable: It is away."""
        return await desk_of(self.memory())

    def page(
        self, name: str, request: Request | None = None, /, *, status_code: int = 200, **shown: object
    ) -> HTMLResponse:
        """Render a template; with `request`, also the line about what was just done."""
        template = self._templates.get_template(f"{name}.html")
        campaign = self.table.campaign
        text = template.render(
            page=name,
            more_tabs=tuple(self._tabs),
            campaign=campaign.name,
            language=campaign.language,
            session=self.table.session,
            has_memory=self._source is not None,
            done="" if request is None else request.query_params.get("done", ""),
            decisions=DECISIONS,
            **shown,
        )
        return HTMLResponse(text, status_code)


@dataclass(frozen=True, slots=True)
class ServedTable:
    """An open table that is served, for plug-ins that add pages to it.

    Attributes:
        app: The page's server.
        desk: Frame of the desk's pages.
        store: None without long-term memory.
        observers: Those of all plug-ins.
        stack: Closed before the page's server stops.
    """

    app: FastAPI
    desk: DeskFrame
    settings: Settings
    store: Store | None
    observers: Sequence[Observer]
    stack: ClosingStack


AddPages = Callable[[ServedTable], object]
"""Adds the pages of a plug-in."""


def add_pages(served: ServedTable) -> None:
    """Add the pages of all plug-ins. Raises: BrokenPlugin: Those of one cannot be added."""
    for plugin, reference in references("pages"):
        add: AddPages = plugin.load(reference)
        with plugin.named_in_errors(reference):
            add(served)


async def form_of(request: Request) -> dict[str, str]:
    """Raises: InvalidInput: It is too long, too slow, or no form."""
    try:
        content = await content_of(request, most_bytes=_MOST_BYTES)
        return dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=50))
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("the request does not contain a valid form") from error


def number_in(text: str, what: str, *, least: int = 1, most: int = 999_999_999) -> int:
    """Raises: InvalidInput: The text is no such number."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise InvalidInput(f"{what} {text!r} must be a number from {least} to {most}")
    return int(text)


def paged(found: Sequence[T], page: str, *, most: int) -> tuple[Sequence[T], Shown]:
    """Return one page of at most so many rows, and what its links need. Raises: InvalidInput: There is no such page."""
    n_pages = max(1, -(-len(found) // most))
    at = number_in(page or "1", "page", most=n_pages)
    return found[(at - 1) * most : at * most], {"n": len(found), "at": at, "n_pages": n_pages}


def viewer_of(desk: Desk, npc: str) -> tuple[Viewer, Shown]:
    """Return who looks, the game master or an NPC, and the values of the field that chooses it."""
    viewer = desk.resolver.npc(npc) if npc else DM
    return viewer, {"npcs": desk.resolver.npcs, "npc": "" if viewer is DM else viewer}


def page_of_desk(back: str, otherwise: str) -> str:
    """Return `back`, if it is a page of the desk."""
    path = back.partition("?")[0]
    return back if path.startswith("/desk") and "//" not in path and "\\" not in path else otherwise


def session_names(desk: Desk) -> Mapping[SessionId, str]:
    """Name each session by its number, such as: session 2."""
    return {each: desk.resolver.session(each) for each in desk.resolver.sessions}


def scene_of(scene: Scene, campaign: Campaign) -> Shown:
    place = campaign.entity(scene.location).name
    return {"id": scene.id, "name": ", ".join(each for each in (place, scene.time_of_day) if each)}
