"""The desk's page of the campaign file: its text, forms that add to it, and a preview of the changes."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from fastapi.responses import PlainTextResponse, Response

from glyphoxa.adapters.local.hibari_voice import PRESETS
from glyphoxa.app.campaign_editor import CampaignDraft, CampaignEditor, npc_form
from glyphoxa.config.campaign_edit import type_form
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.domain.campaign import DEFAULT_SCHEMA
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, Shown, scene_of

PAGES: Final = Pages()


@PAGES.get("/desk/campaign", "campaign")
async def campaign(frame: DeskFrame, request: Request) -> Shown:
    """Show the campaign file, with a filled form: `speak` lets this entity speak, `type` changes or adds this type."""
    editor = CampaignEditor(frame.memory())
    draft = await editor.begin()
    wanted, type_ = request.query_params.get("speak", ""), request.query_params.get("type", "")
    if not (wanted or type_) or draft.campaign is None:
        return campaign_page(editor, draft)
    if type_:
        return campaign_page(editor, draft, filled=("type", type_form(type_, draft.campaign.schema.named(type_))))
    form = await npc_form(await frame.desk(), wanted, draft.campaign, scene=frame.table.scene.id)
    return campaign_page(editor, draft, filled=("person", form))


@PAGES.get("/desk/campaign.yaml")
async def download(frame: DeskFrame, _: Request) -> Response:
    return PlainTextResponse(
        CampaignEditor(frame.memory()).file.read(),
        media_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="campaign.yaml"'},
    )


@PAGES.post("/desk/campaign")
async def change(frame: DeskFrame, _request: Request, form: Form) -> Done | Response:
    """Check, extend or store the campaign file. The edited text travels with the form; nothing else is stored."""
    editor = CampaignEditor(frame.memory())
    draft = await editor.check(form.get("text", ""), base=form.get("base", ""))
    what, _, kind = form.get("do", "").partition(" ")
    fields = fields_of(form, kind)
    refused = ""
    try:
        match what:
            case "check":
                pass
            case "add":
                draft, fields = await editor.add(draft, {**fields, "add": kind}), {}
            case "save":
                changes = await editor.save(draft, shown=form.get("shown", ""))
                text = f"the campaign file is saved, with {counted(changes.n, 'change')} to the campaign"
                return Done(text, "/desk/campaign")
            case _:
                raise InvalidInput(f"unknown action {what!r} on the campaign file; valid: check, add, save")
    except InvalidInput as error:
        if what not in ("add", "save"):
            raise
        refused = str(error)
    return frame.page("campaign", None, **campaign_page(editor, draft, refused=refused, filled=(kind, fields)))


MOST_LISTED: Final = 100
"""Lines of one kind. A new campaign can have thousands."""


def changes_shown(changes: CampaignChanges) -> list[Shown]:
    return [
        {"title": title, "lines": told[:MOST_LISTED], "n_more": max(0, len(told) - MOST_LISTED)}
        for title, told in (
            ("New", changes.added),
            ("Changed", changes.changed),
            ("Removed", changes.removed),
            ("Notes", changes.remarks),
        )
        if told
    ]


def campaign_page(
    editor: CampaignEditor,
    draft: CampaignDraft,
    *,
    refused: str = "",
    filled: tuple[str, Shown] = ("", {}),
) -> Shown:
    """
    Args:
        refused: The error of the last action.
        filled: A kind of form, and the values of its fields.
    """
    lines = draft.text.split("\n")
    described, changes = draft.campaign, draft.changes
    return {
        "file": editor.file.path.name,
        "can_be_written": editor.file.can_be_written,
        "text": draft.text,
        "is_changed": draft.is_changed,
        "base": draft.base,
        "shown": draft.shown,
        "problems": [
            {"line": each.line, "text": each.text, "stands": lines[each.line - 1] if each.line <= len(lines) else ""}
            for each in draft.problems[:MOST_LISTED]
        ],
        "warnings": draft.warnings[:MOST_LISTED],
        "changes": [] if changes is None else changes_shown(changes),
        "refused": refused,
        "filled": {filled[0]: filled[1]} if filled[0] else {},
        "voices": sorted(PRESETS),
        "types": sorted((DEFAULT_SCHEMA if described is None else described.schema).entity_types),
        "names": [] if described is None else sorted(each.name for each in described.entities),
        "npcs": [] if described is None else [each.name for each in described.npcs],
        "scenes": [] if described is None else [scene_of(scene, described) for scene in described.scenes],
    }


def fields_of(form: Form, kind: str) -> dict[str, str]:
    """Return the fields of one kind of form: `person-name` is the name of a person."""
    return {name.removeprefix(f"{kind}-"): value for name, value in form.items() if name.startswith(f"{kind}-")}
