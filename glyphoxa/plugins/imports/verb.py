"""`glyphoxa import`: read what another tool wrote, and decide what of it enters the campaign."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from rich.progress import DownloadColumn
from rich.text import Text

from glyphoxa.app.desk import Desk
from glyphoxa.cli.render import cut, progress_bar, show_changes, show_rows
from glyphoxa.cli.scope import (
    CAMPAIGN,
    YES,
    desk_at,
    file_named,
    goes_on,
    need_stored,
    opened_store,
    run_at_desk,
    settings_with_memory,
    write_new_file,
)
from glyphoxa.cli.verb import Verb, argument, in_a_loop, limit, one_of
from glyphoxa.config.campaign_file import redrawn
from glyphoxa.dm.import_review import Group, Proposal
from glyphoxa.dm.source_world import (
    EVERYTHING,
    NEW_ENTITY,
    NO_EDIT,
    Decision,
    DocumentEdit,
    DocumentSelection,
    ImportKind,
    SourceDocument,
    SourceWorld,
)
from glyphoxa.dm.wording import arrival_in_words, plain, proposal_in_words, secrecy_in_words
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.ids import slug
from glyphoxa.names.naming import Called, Resolver
from glyphoxa.plugins.imports.files import Progress, open_source
from glyphoxa.plugins.imports.readers import read_source

_MOST_SHOWN: Final = 50
_TEXT_LENGTH: Final = 400
_MOST_NAMED: Final = 1_000_000
_MOST_LISTED: Final = 1_000

VERB: Final = Verb(in_a_loop)

# Reading

_TOOLS: Final[dict[ImportKind, tuple[str, str]]] = {
    "foundry": (
        "read a Foundry VTT world: its folder, a zip of it, an adventure, a compendium, or exported JSON files",
        "a folder, a zip, a JSON or .db file",
    ),
    "roll20": ("read a Roll20 campaign: a zip of R20Exporter, or JSON of VTT Enhancement Suite", "a zip or JSON file"),
    "markdown": ("read an Obsidian vault, or any folder of Markdown files", "a folder, a zip of it, or a .md file"),
    "card": ("read a character card or lorebook, such as of SillyTavern", "a PNG, JSON or .charx file"),
    "csv": ("read tables: entities.csv and relationships.csv", "a CSV file, a folder or zip of two"),
}


async def _bring_in(options: argparse.Namespace, *, kind: ImportKind) -> int:
    if options.preview or options.json:
        with _shown_progress() as progress:
            world = read_source(kind, options.path, progress)
        _print_documents(world, as_json=options.json)
        return 0
    settings = settings_with_memory(options.config, to_hold="imports")
    need_stored(settings)
    async with opened_store(settings) as store:
        desk = await desk_at(store, settings, options.campaign)
        with _shown_progress() as progress:
            world = await asyncio.to_thread(read_source, kind, options.path, progress)
        arrival = await desk.imports.take_in(world)
        for line in arrival_in_words(world.name, arrival):
            print(plain(line))
        if arrival.n_new or arrival.n_changed:
            print("to review them: glyphoxa import review, or the desk's page Import")
        if options.portraits is not None:
            await _write_portraits(desk, world, options)
    return 0


for _kind, (_text, _what) in _TOOLS.items():
    VERB.action(
        _text,
        argument("path", type=Path, metavar="PATH", help=_what),
        *CAMPAIGN,
        one_of(
            argument("--preview", help="list what it contains; nothing is stored, and no database is needed"),
            argument("--json", help="as --preview, one JSON object a line"),
            argument(
                "--portraits",
                type=Path,
                metavar="FOLDER",
                help="write the pictures of accepted people into this folder, for the campaign file",
            ),
        ),
        name=_kind,
    )(partial(_bring_in, kind=_kind))


@contextmanager
def _shown_progress() -> Iterator[Progress]:
    with progress_bar(DownloadColumn()) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda n_read, n_bytes: bar.update(task, completed=n_read, total=n_bytes)


def _print_documents(world: SourceWorld, *, as_json: bool) -> None:
    if as_json:
        for each in world.documents:
            shown = {name: getattr(each, name) for name in ("name", "type", "kind", "hidden", "file", "key", "folders")}
            print(json.dumps(shown, ensure_ascii=False))
        return
    rows = (
        (each.name, each.type, each.kind, _seen_by(each), "/".join(each.folders), each.file) for each in world.documents
    )
    show_rows(("name", "type", "kind", "seen by", "folder", "file"), rows)
    print(f"{plain(world.name)}: {counted(len(world.documents), 'document')}")
    for remark in world.remarks:
        print(f"! {plain(remark)}")


def _seen_by(document: SourceDocument) -> str:
    return "DM" if document.hidden else "players"


# Portraits


async def _write_portraits(desk: Desk, world: SourceWorld, options: argparse.Namespace) -> None:
    source = f"{world.kind}:{world.id}"
    pictures = {(source, each.key): each.portrait for each in world.documents if each.portrait}
    wanted = []
    for entity in (each.entity for each in desk.seen if each.entity.type in ("npc", "player")):
        found = [pictures.get((each.source, each.document.key)) for each in await desk.imports.documents_of(entity.id)]
        if path := next(filter(None, found), None):
            wanted.append((entity, path))
    campaign = file_named(options.campaign) or (desk.settings.campaign if options.campaign is None else None)
    for line in await asyncio.to_thread(lambda: [*_draw_portraits(wanted, options, campaign)]):
        print(line)


def _draw_portraits(
    wanted: Sequence[tuple[Entity, str]], options: argparse.Namespace, campaign: Path | None
) -> Iterator[str]:
    """Write pictures of a source into a folder beside the campaign file; existing files stay. Yields lines to print."""
    folder: Path = options.portraits.resolve()
    beside = folder.parent if campaign is None else campaign.resolve().parent
    if not folder.is_relative_to(beside):
        raise InvalidInput(f"{folder} is outside of the campaign file's folder {beside}; name a folder in it")
    folder.mkdir(parents=True, exist_ok=True)
    n_written = 0
    with open_source(options.path) as files:
        for entity, path in wanted:
            try:
                # Foundry counts a path from its data folder on, and writes it as in a URL.
                ends = [name for name in files.names if f"/{unquote(path)}".endswith(f"/{name}")]
                if not ends:
                    raise InvalidInput(f"its picture {path!r} is not in {options.path}")
                portrait = redrawn(path, files.read(max(ends, key=len)), most_bytes=16_000_000)
                file = folder / f"{slug(entity.id) or 'portrait'}.{portrait.content_type.partition('/')[2]}"
                if not file.exists():
                    write_new_file(file, portrait.content)
            except InvalidInput as error:
                yield f"! {plain(entity.name)}: {plain(str(error))}"
                continue
            n_written += 1
            yield f"portrait: {file.relative_to(beside).as_posix()}  # {plain(entity.name)}"
    yield f"{counted(n_written, 'picture')} of accepted people, for `npcs:` in the campaign file"


# Deciding

_REVIEW: Final = Verb(run_at_desk, common=CAMPAIGN, of=VERB)
_WHICH: Final = (
    argument("name", nargs="*", metavar="NAME", help="a document's name or id"),
    argument("--all", help="all documents that need review"),
    argument("--type", default="", metavar="TYPE", help="only of this type, such as npc or location"),
    argument("--kind", default="", metavar="KIND", help='only of this kind, such as "Actor (npc)" or handout'),
    argument(
        "--folder",
        default="",
        metavar="FOLDER",
        help="only in a folder of this name; /FOLDER: in this outermost one; /: in none",
    ),
    argument("--source", default="", metavar="SOURCE", help="only of this source, such as foundry:my-world"),
)


@_REVIEW.action(
    "list documents that need review: in groups, or those that are named or selected", *_WHICH, limit(_MOST_SHOWN)
)
async def _review(desk: Desk, options: argparse.Namespace) -> int:
    if not (options.name or options.all) and _filters(options) == EVERYTHING:
        _show_groups(await desk.imports.groups())
        _, found = await desk.imports.waiting(limit=_MOST_LISTED)
        for line in secrecy_in_words([each.document for each in found]):
            print(f"! {plain(line)}")
        return 0
    n, found = await desk.imports.waiting(await _meant(desk, options), limit=options.limit)
    if len(options.name) == 1:
        for each in found:
            _show_document(each)
        return 0
    documents = [(each.document, proposal_in_words(each)) for each in found]
    rows = (
        (one.name, one.type, one.kind, _seen_by(one), becomes, one.key, one.marks, ", ".join(one.doubts))
        for one, becomes in documents
    )
    nothing = "no imported documents like these need review"
    columns = ("name", "type", "kind", "seen by", "becomes", "id", "hidden by", "may be secret")
    show_rows(columns, rows, nothing=nothing)
    if n > len(found):
        print(f"{len(found)} of {n:,} documents; to list more: --limit {n}")
    return 0


def _show_groups(groups: Sequence[Group]) -> None:
    if not groups:
        print("no imported documents need review")
        return
    rows = ((each.source, each.kind, each.type, each.folder, f"{each.n:,}") for each in groups)
    show_rows(("source", "kind", "type", "folder", Text("documents", justify="right")), rows)
    print("to list documents: glyphoxa import review --all, or with --type, --kind, --folder or --source")


def _show_document(proposal: Proposal) -> None:
    one = proposal.document
    print(f"{plain(one.name)} ({plain(one.type)}), id {plain(one.key)}")
    rows = {
        "kind": one.kind,
        "from": f"{proposal.source}, {one.file}",
        "seen by": _seen_by(one),
        "hidden by": one.marks,
        "may be secret": ", ".join(one.doubts),
        "becomes": proposal_in_words(proposal),
        "aliases": ", ".join(one.aliases),
        **one.attributes,
    }
    for name, value in rows.items():
        if value:
            print(f"  {plain(name)}: {plain(value)}")
    for text in one.texts:
        seen_by = "this NPC" if text.for_npc else "DM" if text.hidden or one.hidden else "players"
        which = ", ".join(filter(None, (plain(text.page), seen_by, plain(text.why))))
        print(f"  text ({which}): {cut(plain(text.text), _TEXT_LENGTH)}")


@_REVIEW.action("accept documents: they become part of the campaign, all or none", *_WHICH, YES)
async def _accept(desk: Desk, options: argparse.Namespace) -> int:
    selection = await _meant(desk, options)
    n, _ = await desk.imports.waiting(selection, limit=1)
    show_changes(await desk.imports.preview(selection))
    if not await goes_on(f"This accepts {counted(n, 'document')}.", is_sure=options.yes):
        return 1
    done = await desk.imports.accept(selection)
    print(f"accepted: {counted(n, 'document')}, {counted(done.n, 'change')} to the campaign")
    return 0


@_REVIEW.action("skip documents, now and in later imports", *_WHICH)
async def _skip(desk: Desk, options: argparse.Namespace) -> int:
    n = await desk.imports.skip(await _meant(desk, options))
    print(f"skipped: {counted(n, 'document')}; to undo it: glyphoxa import restore, with the same names or options")
    return 0


@_REVIEW.action("review skipped documents again", *_WHICH)
async def _restore(desk: Desk, options: argparse.Namespace) -> int:
    n = await desk.imports.restore(await _meant(desk, options, "skipped"))
    print(f"restored: {counted(n, 'document')}; to review: glyphoxa import review")
    return 0


@_REVIEW.action(
    "change documents before you accept them",
    *_WHICH,
    argument("--new-name", metavar="NAME", help="what it is called in the campaign"),
    argument("--new-type", metavar="TYPE", help="npc, player, location, item, faction, event, quest, concept ..."),
    one_of(
        argument("--same-as", metavar="ENTITY", help="it is this entity of the campaign"),
        argument("--new-entity", help="it is an entity of its own, whatever its name"),
    ),
    one_of(
        argument("--hidden", help="only you know it until you reveal it"),
        argument("--visible", help="players may know it"),
    ),
)
async def _edit(desk: Desk, options: argparse.Namespace) -> int:
    same_as = NEW_ENTITY if options.new_entity else None
    if options.same_as is not None:
        same_as = desk.resolver.entity(options.same_as).id
    hidden = True if options.hidden else False if options.visible else None
    edit = DocumentEdit(options.new_name, options.new_type, hidden, same_as)
    if edit == NO_EDIT:
        raise InvalidInput(
            "nothing to change; use --new-name, --new-type, --same-as, --new-entity, --hidden or --visible"
        )
    n = await desk.imports.edit(await _meant(desk, options), edit)
    print(f"changed: {counted(n, 'document')}")
    return 0


def _filters(options: argparse.Namespace) -> DocumentSelection:
    return DocumentSelection(source=options.source, type=options.type, kind=options.kind, folder=options.folder)


async def _meant(desk: Desk, options: argparse.Namespace, decision: Decision = "waiting") -> DocumentSelection:
    chosen = _filters(options)
    if not (options.name or options.all) and chosen == EVERYTHING:
        raise InvalidInput("name documents, or select them with --type, --kind, --folder or --source; all: --all")
    if not options.name:
        return chosen
    _, found = await desk.imports.waiting(chosen, limit=_MOST_NAMED, decision=decision)
    meant = list(map(_by_name(found, desk).one, options.name))
    sources = {each.source for each in meant}
    if len(sources) > 1:
        raise InvalidInput(
            f"these documents have several sources; choose one with --source: {', '.join(sorted(sources))}"
        )
    return replace(chosen, source=meant[0].source, keys=tuple(each.document.key for each in meant))


def _by_name(found: Iterable[Proposal], desk: Desk) -> Resolver[Proposal]:
    def called(one: Proposal) -> Called:
        document = one.document  # those of two sources may have one key
        names = document.name, document.key
        return Called(f"{one.source} {document.key}", names, document.aliases, document.kind)

    return Resolver(found, called, campaign=desk.campaign, what="imported document")
