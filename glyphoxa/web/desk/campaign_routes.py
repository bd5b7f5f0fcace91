"""The desk's page of the campaign file: as a text, with forms that add to it, and what it changes before it is kept."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response

from glyphoxa.bootstrap.campaign_editor import MOST_CHARACTERS
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.web.access.audit import AuditKind
from glyphoxa.web.desk import campaign_views
from glyphoxa.web.desk.frame import DeskFrame, form_of, seen

_MOST_BYTES: Final = 4 * MOST_CHARACTERS
"""Of a form that holds the text: umlauts and line ends take up to nine bytes in it, most letters one."""


class CampaignPages:
    """The campaign file. The text that is being changed travels with the form, and nothing is kept beside the file."""

    def __init__(self, frame: DeskFrame) -> None:
        self._frame = frame
        self.looked_at = {"/desk/campaign": self.campaign, "/desk/campaign.yaml": self.download}
        self.posted = {"/desk/campaign": self.change}

    async def campaign(self, request: Request) -> Response:
        editor = self._frame.memory().campaign_editor()
        draft = await editor.begin()
        return self._frame.page("campaign", request, **campaign_views.campaign(editor, draft))

    async def download(self, _: Request) -> Response:
        file = self._frame.memory().campaign_editor().file
        return PlainTextResponse(
            file.read(),
            media_type="application/yaml; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="campaign.yaml"'},
        )

    async def change(self, request: Request) -> Response:
        editor, form = self._frame.memory().campaign_editor(), await form_of(request, most_bytes=_MOST_BYTES)
        draft = await editor.look(form.get("text", ""), instead_of=form.get("instead_of", ""))
        what, _, kind = form.get("do", "").partition(" ")
        fields = campaign_views.fields_of(form, kind)
        refused = ""
        match what:
            case "look":
                pass
            case "add":
                try:
                    draft, fields = await editor.add(draft, {**fields, "add": kind}), {}
                except InvalidInput as error:
                    refused = str(error)
            case "keep":
                try:
                    changes = await editor.keep(draft, shown=form.get("shown", ""))
                except InvalidInput as error:
                    refused = str(error)
                else:
                    n = len(changes.added) + len(changes.changed) + len(changes.removed)
                    done = f"the campaign file is kept, with {n} change{'' if n == 1 else 's'} to the campaign"
                    self._frame.record(AuditKind.DECIDED, done)
                    return seen("", "/desk/campaign", done)
            case _:
                raise InvalidInput(f"a campaign file cannot be changed by {what!r}: look, add, or keep")
        shown = campaign_views.campaign(editor, draft, refused=refused, filled=(kind, fields))
        return self._frame.page("campaign", None, **shown)
