"""What the page of the campaign file shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from glyphoxa.bootstrap.campaign_editor import CampaignDraft, CampaignEditor
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.web.desk.views import Shown, scene_of

MOST_TOLD: Final = 100
"""Lines of a kind; a campaign that is new can have thousands."""


def campaign(
    editor: CampaignEditor, draft: CampaignDraft, *, refused: str = "", filled: tuple[str, Mapping[str, str]] = ("", {})
) -> Shown:
    """
    Args:
        refused: Why what was wished did not happen.
        filled: A kind of form, and what was written into it.
    """
    lines = draft.text.split("\n")
    described, changes = draft.campaign, draft.changes
    return {
        "file": editor.file.path.name,
        "can_be_written": editor.file.can_be_written,
        "text": draft.text,
        "is_changed": draft.is_changed,
        "instead_of": draft.instead_of,
        "shown": draft.shown,
        "problems": [
            {"line": each.line, "text": each.text, "stands": lines[each.line - 1] if each.line <= len(lines) else ""}
            for each in draft.problems[:MOST_TOLD]
        ],
        "warnings": draft.warnings[:MOST_TOLD],
        "changes": []
        if changes is None
        else [
            {"title": title, "lines": told[:MOST_TOLD], "n_more": max(0, len(told) - MOST_TOLD)}
            for title, told in (
                ("New", changes.added),
                ("Changed", changes.changed),
                ("Gone", changes.removed),
                ("To know", changes.remarks),
            )
            if told
        ],
        "refused": refused,
        "filled": {filled[0]: filled[1]} if filled[0] else {},
        "voices": voices(),
        "types": sorted(ENTITY_TYPES),
        "names": [] if described is None else sorted(each.name for each in described.entities),
        "npcs": [] if described is None else [each.name for each in described.npcs],
        "scenes": [] if described is None else [scene_of(scene, described) for scene in described.scenes],
    }


def fields_of(form: Mapping[str, str], kind: str) -> dict[str, str]:
    """Those of one kind: to the browser all forms of the page are one, and `person-name` is the name of a person."""
    return {name.removeprefix(f"{kind}-"): value for name, value in form.items() if name.startswith(f"{kind}-")}


def voices() -> list[Any]:
    """The presets of the local voice."""
    from glyphoxa.adapters.local.hibari_voice import PRESETS

    return sorted(PRESETS)
