"""The desk's pages of what was said, session by session."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import SessionId, UtteranceId
from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.desk import session_views, timeline_views
from glyphoxa.web.desk.frame import DeskFrame, form_of, seen


class SessionPages:
    """Sessions, and the way back to a line of one. A session's id may hold slashes."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {
            "/desk/lines/{utterance}": self.by_utterance,
            "/desk/sessions": self.sessions,
            "/desk/sessions/{session:path}/transcript.md": self.markdown,
            "/desk/sessions/{session:path}/recap": self.recap,
            "/desk/sessions/{session:path}/line": self.line,
            "/desk/sessions/{session:path}/back": self.back,
            "/desk/sessions/{session:path}": self.session,
        }
        self.posted = {
            "/desk/sessions/{session:path}/line": self.put_right,
            "/desk/sessions/{session:path}/back": self.roll_back,
            "/desk/sessions/{session:path}": self.summarise,
        }

    async def sessions(self, request: Request) -> Response:
        return self._frame.page("sessions", request, sessions=await session_views.sessions(await self._frame.desk()))

    async def session(self, request: Request) -> Response:
        asked, session = request.query_params, _session(request)
        desk = await self._frame.desk()
        shown = await session_views.session(desk, session, asked.get("line", ""), asked.get("words", "").strip())
        return self._frame.page("session", request, **shown)

    async def recap(self, request: Request) -> Response:
        source, session = self._frame.memory(), _session(request)
        await session_views.session(await self._frame.desk(), session, "", "")
        recaps = [
            ("For the players", await source.recap(session, "players")),
            ("For you", await source.recap(session, "dm")),
        ]
        return self._frame.page("recap", request, id=session, recaps=recaps)

    async def markdown(self, request: Request) -> Response:
        text = await session_views.transcript_as_markdown(await self._frame.desk(), _session(request))
        name = f"{_session(request)}.md"
        return PlainTextResponse(
            text,
            media_type="text/markdown; charset=utf-8",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"},
        )

    async def summarise(self, request: Request) -> Response:
        session = _session(request)
        await session_views.summarise(await self._frame.desk(), session, (await form_of(request)).get("summary", ""))
        return seen("", f"/desk/sessions/{quote(session, safe='')}", "the summary is kept")

    async def by_utterance(self, request: Request) -> Response:
        """To the page of a line that is known by its utterance's id alone, as the live page knows it."""
        desk, wanted = await self._frame.desk(), UtteranceId(request.path_params["utterance"])
        said = await desk.inspection.said(desk.campaign, wanted)
        if said is None:
            raise NotFound("this line is not in the database (yet): try again in a moment")
        return RedirectResponse(f"/desk/sessions/{quote(said.session_id, safe='')}/line?line={said.ordinal}")

    async def line(self, request: Request) -> Response:
        line = _line(request.query_params.get("line", ""))
        shown = await timeline_views.one_line(await self._frame.desk(), _session(request), line)
        return self._frame.page("line", request, **shown)

    async def put_right(self, request: Request) -> Response:
        session, form, desk = _session(request), await form_of(request), await self._frame.desk()
        line, what = _line(form.get("line", "")), form.get("do", "")
        said = (await timeline_views.find_line(desk, session, line)).said
        match what:
            case "correct":
                await desk.timeline.correct(said, form.get("text", ""))
            case "retract":
                await desk.timeline.retract(said)
            case _:
                raise InvalidInput(f"a line cannot be changed by {what!r}: correct, or retract")
        done = f"line {line} of {session} is {what}ed"
        self._frame.record(AuditKind.DECIDED, done)
        return seen(f"/desk/sessions/{quote(session, safe='')}?line={line}", "/desk/sessions", done)

    async def back(self, request: Request) -> Response:
        desk, line = await self._frame.desk(), _line(request.query_params.get("line", ""))
        return self._frame.page("back", request, **await timeline_views.preview(desk, _session(request), line))

    async def roll_back(self, request: Request) -> Response:
        session, line = _session(request), _line((await form_of(request)).get("line", ""))
        desk = await self._frame.desk()
        event = await desk.timeline.rollback(session, line)
        done = f"back to line {line} of {session}" if event else "nothing was learned or said behind that line"
        self._frame.record(AuditKind.DECIDED, done)
        return seen("", f"/desk/sessions/{quote(session, safe='')}", done)


def _session(request: Request) -> SessionId:
    return SessionId(request.path_params["session"])


def _line(text: str) -> int:
    """Raises: InvalidInput: It is no number of a line."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"line {text!r}: the number of a line of the transcript is wanted")
    return int(text)
