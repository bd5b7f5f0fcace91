"""The desk's pages of imports: upload a file of another tool, and accept, edit or skip its documents."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, get_args
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from glyphoxa.actors.limits import gc_paused
from glyphoxa.adapters.postgres.world.imports import PostgresImports
from glyphoxa.app.desk import Desk
from glyphoxa.app.source_reader import AlreadyReading, SourceReader
from glyphoxa.dm.import_review import Group
from glyphoxa.dm.source_world import NEW_ENTITY, Decision, DocumentEdit, DocumentSelection, ImportKind, SourceWorld
from glyphoxa.dm.wording import arrival_in_words, plain, proposal_in_words
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, Unavailable, counted, did_you_mean
from glyphoxa.plugins.imports.files import MOST_BYTES, TEMPORARY
from glyphoxa.plugins.imports.readers import READERS
from glyphoxa.web.access.records import AuditKind
from glyphoxa.web.desk.frame import DeskFrame, Done, Form, Pages, ServedTable, Shown, number_in, page_of_desk
from glyphoxa.web.desk.world import changes_shown
from glyphoxa.web.requests import receive_file, while_connected

PAGES: Final = Pages(__package__, ("/desk/import", "Import", ("import", "import_accept")))

PER_PAGE: Final = 50
MOST_GROUPS: Final = 100
_LONGEST_TEXT: Final = 4_000
_LONGEST_NAME: Final = 60
_TOOLS: Final[Mapping[ImportKind, str]] = {
    "foundry": "Foundry VTT",
    "roll20": "Roll20",
    "markdown": "Obsidian or Markdown",
    "card": "Character card or lorebook",
    "csv": "CSV tables",
}


def add_imports(served: ServedTable) -> None:
    """Put the pages on the desk."""
    served.desk.add(served.app, PAGES)


# -- what the pages show


@PAGES.get("/desk/import", "import")
async def import_page(frame: DeskFrame, request: Request) -> Shown:
    """Show what needs review, in groups, and one page of the documents that the query selects."""
    source, asked = frame.memory(), request.query_params
    imports, stored = source.imports(), await source.store.campaigns.get(source.campaign)
    selection = _selection(asked)
    decision: Decision = "skipped" if asked.get("decision") == "skipped" else "waiting"
    at = number_in(asked.get("page") or "1", "page")
    n, found = await imports.waiting(selection, offset=(at - 1) * PER_PAGE, limit=PER_PAGE, decision=decision)
    groups = await imports.groups()
    query = {**_fields(selection), **({"decision": decision} if decision == "skipped" else {})}
    return {
        "tools": _TOOLS,
        "most_bytes": MOST_BYTES,
        "groups": [(each, {**_fields(each), "folder": f"/{each.folder}"}) for each in groups[:MOST_GROUPS]],
        "n_more_groups": max(0, len(groups) - MOST_GROUPS),
        "proposals": [(each, proposal_in_words(each)) for each in found],
        "longest_text": _LONGEST_TEXT,
        "n": n,
        "n_all": sum(each.n for each in groups),
        "decision": decision,
        "selected": _in_words(selection),
        "query": urlencode(query),
        "at": at,
        "n_pages": max(1, -(-n // PER_PAGE)),
        "types": sorted({*stored.schema.entity_types, *(each.type for each in groups)}),
        "names": sorted({entity.name for each in found for entity in each.like}),
    }


@PAGES.get("/desk/import/accept", "import_accept", may_last=True)
async def accept_page(frame: DeskFrame, request: Request) -> Shown:
    """Show what accepting the documents that the query selects changes."""
    imports, selection = frame.memory().imports(), _selection(request.query_params)
    n, _ = await imports.waiting(selection, limit=1)
    return {
        "n": n,
        "changes": changes_shown(await imports.preview(selection)),
        "selected": _in_words(selection),
        "fields": _fields(selection),
        "query": urlencode(_fields(selection)),
    }


_FIELDS: Final = ("source", "type", "kind", "folder")


def _selection(asked: Mapping[str, str]) -> DocumentSelection:
    key = asked.get("key", "")
    return DocumentSelection(keys=(key,) if key else (), **{name: asked.get(name, "") for name in _FIELDS})


def _fields(selection: DocumentSelection | Group) -> dict[str, str]:
    return {name: value for name in _FIELDS if (value := getattr(selection, name))}


def _in_words(selection: DocumentSelection) -> str:
    return " · ".join(
        "in no folder" if value == "/" else value.removeprefix("/") for value in _fields(selection).values()
    )


# -- changes

_DECISIONS: Final = ("accept", "skip", "hide", "restore", "edit")


@PAGES.post("/desk/import", may_last=True)
async def decide(frame: DeskFrame, _: Request, form: Form) -> Done:
    """Do what a form says: `do`, the fields of a selection, and the page to go `back` to."""
    imports, selection, what = frame.memory().imports(), _selection(form), form.get("do", "")
    match what:
        case "accept":
            n = await _seen(imports, selection, form)
            made = await imports.accept(selection)
            done = f"accepted: {counted(n, 'document')}, with {counted(made.n, 'change')} to the campaign"
        case "skip":
            await _seen(imports, selection, form)
            done = f"skipped: {counted(await imports.skip(selection), 'document')}"
        case "hide":
            await _seen(imports, selection, form)
            done = f"hidden: {counted(await imports.edit(selection, DocumentEdit(hidden=True)), 'document')}"
        case "restore":
            done = f"review again: {counted(await imports.restore(selection), 'document')}"
        case "edit":
            done = await _edit(await frame.desk(), selection, form)
        case _:
            raise InvalidInput(f"unknown decision {what!r} on a document: {did_you_mean(what, _DECISIONS)}")
    return Done(done, page_of_desk(form.get("back", ""), "/desk/import"))


async def _seen(imports: PostgresImports, selection: DocumentSelection, form: Form) -> int:
    """Return how many documents are meant. Raises: InvalidInput: The game master saw another number."""
    n, _ = await imports.waiting(selection, limit=1)
    if str(n) != (seen := form.get("n", "1")):
        raise InvalidInput(f"you saw {seen} of these documents, and there are {n} now; nothing was changed")
    return n


async def _edit(desk: Desk, selection: DocumentSelection, form: Form) -> str:
    n, found = await desk.imports.waiting(selection, limit=1)
    if n != 1:
        raise NotFound(f"the document {form.get('key', '')!r} no longer needs review")
    old, held = found[0].document, found[0].same_as
    was = "" if held is None else held.name
    name, of_type, same_as = (form.get(field, "").strip() for field in ("new_name", "new_type", "same_as"))
    hidden = form.get("hidden") == "yes"
    edit = DocumentEdit(
        name=None if name in ("", old.name) else name,
        type=None if of_type in ("", old.type) else of_type,
        hidden=None if hidden is old.hidden else hidden,
        same_as=None if same_as == was else desk.resolver.entity(same_as).id if same_as else NEW_ENTITY,
    )
    await desk.imports.edit(selection, edit)
    return f"changed: {edit.name or old.name}"


# -- uploads


@PAGES.get("/desk/import/file", method="POST", may_last=True)
async def take_in(frame: DeskFrame, request: Request) -> Response:
    """Read a file of the `kind` and `name` in the query, which is the body, and answer what it brought, in lines."""
    asked = request.query_params
    kind = next((each for each in get_args(ImportKind) if each == asked.get("kind")), None)
    try:
        if kind is None:
            raise InvalidInput(f"unknown tool {asked.get('kind', '')!r}: {did_you_mean('', READERS)}")
        source = frame.memory()
        world = await _uploaded(request, kind, frame.source_reader)
        arrival = await source.imports().take_in(world)
    except GlyphoxaError as error:
        status = 503 if isinstance(error, Unavailable) else 409 if isinstance(error, AlreadyReading) else 400
        return JSONResponse({"error": str(error)}, status_code=status)
    lines = arrival_in_words(world.name, arrival)
    frame.record(AuditKind.DECIDED, f"imported {lines[0]}")
    return JSONResponse({"lines": lines})


async def _uploaded(request: Request, kind: ImportKind, reader: SourceReader) -> SourceWorld:
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as folder:
        path = Path(folder, _file_name(request.query_params.get("name", "")))
        await receive_file(request, path, most_bytes=MOST_BYTES)
        try:
            # A collection among so many new objects would stop a table that is open.
            with gc_paused(amount=MOST_BYTES):
                return await while_connected(request, reader.read(kind, path))
        except AlreadyReading:
            raise
        except InvalidInput as error:  # names where the file lay here, which means nothing to its sender
            raise InvalidInput(str(error).replace(f"{path}", path.name)) from None


def _file_name(name: str) -> str:
    """Return the name of an uploaded file; readers tell from it what the file holds, and what it is called."""
    return plain(name.replace("\\", "/").rpartition("/")[2])[-_LONGEST_NAME:].lstrip(".") or "upload"
