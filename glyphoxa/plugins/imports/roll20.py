"""Read what Roll20's users save of their games: zips and JSON of R20Exporter and of the VTT Enhancement Suite.

Roll20 itself exports nothing. R20Exporter writes `campaign.json`, and beside it a folder for each character and handout
with its JSON and its texts in HTML. The VTT Enhancement Suite writes one JSON file for each (schemas 1 to 3). Both
hold the fields of Roll20's own documents, so they are told by their content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from glyphoxa.dm.source_world import (
    LOCATED_AT,
    SourceDocument,
    SourceLink,
    SourceText,
    SourceWorld,
    name_of,
    told_apart,
    united,
)
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.plugins.imports.files import SourceFiles, decoded, fields_of, json_of, listed, objects_in
from glyphoxa.plugins.imports.labels import is_marked, name_mark, type_named
from glyphoxa.plugins.imports.markdown_text import page_text, texts_of
from glyphoxa.recall.facts import LINKED_TO

_TERMS: Final = (
    "Roll20 has no export of its own, and its terms of service limit what other programs may copy from it:"
    " import only games that are yours"
)
_LISTS: Final = {"characters": "character", "handouts": "handout", "pages": "page"}
_SIGNS: Final = (
    ("page", ("graphics", "zorder")),
    ("character", ("attribs", "attributes", "abilities", "bio")),
    ("handout", ("notes",)),
)
"""Fields that only such a document has."""
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "character": ("bio", "gmnotes"),
    "handout": ("notes", "gmnotes"),
    "page": (),
}
_ATTRIBUTES: Final = {
    "race": "race", "class": "class", "background": "background", "alignment": "alignment", "type": "creature type",
    "npc_type": "creature type", "occupation": "occupation", "size": "size",
}  # fmt: skip
"""Fields and attributes of sheets that say what somebody is."""
_PICTURES: Final = ("png", "jpg", "jpeg", "webp", "gif")
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class _Record:
    """A character, handout or page of Roll20, with its texts in HTML by field."""

    kind: str
    key: str
    name: str
    fields: Mapping[str, Any]
    texts: Mapping[str, str]
    file: str
    folders: tuple[str, ...] = ()
    portrait: str = ""


def read_roll20(files: SourceFiles) -> SourceWorld:
    """Raises: InvalidInput: It has no campaign, character or handout of Roll20, or a file cannot be read."""
    campaign: dict[str, Any] = {}
    records: dict[str, _Record] = {}
    names = frozenset(files.names)
    # The campaign is read first: it knows the folders of the journal, and holds all pages.
    for file in sorted(names, key=lambda each: (each.count("/"), each)):
        path = PurePosixPath(file)
        if path.suffix.casefold() == ".json" and not (campaign and path.name in ("page.json", "chat_archive.json")):
            content = fields_of(json_of(files.read(file), file))
            if not campaign and _is_campaign(content):
                campaign = content
            for record in _records(content, file, files, names):
                known = records.get(record.key, record)
                records[record.key] = replace(
                    known,
                    fields={**record.fields, **known.fields},
                    texts={**record.texts, **known.texts},
                    folders=known.folders or record.folders,
                    portrait=known.portrait or record.portrait,
                )
    if not records:
        raise InvalidInput(
            f"{files.path}: no document of Roll20 in it; name a zip or campaign.json of R20Exporter, or JSON of the VTT"
            " Enhancement Suite"
        )
    title = name_of(str(campaign.get("campaign_title") or "")) or files.path.stem
    number = name_of(str(campaign.get("campaign_id") or ""))
    empty = [each.name for each in records.values() if each.kind == "handout" and not each.texts]
    why = ": exports of Jumpgate games often lack them" if campaign.get("release") == "jumpgate" else ""
    lacks = [f"{len(empty)} handouts have no text{why}: {shown(', '.join(empty))}"] if empty else []
    return SourceWorld(
        "roll20", number if number.strip("0") else title, title, _documents(campaign, records), (*lacks, _TERMS)
    )


def _is_campaign(content: Mapping[str, Any]) -> bool:
    return isinstance(content.get("characters"), list) or isinstance(content.get("handouts"), list)


def _records(content: Mapping[str, Any], file: str, files: SourceFiles, names: frozenset[str]) -> Iterator[_Record]:
    if _is_campaign(content):
        for listed, kind in _LISTS.items():
            yield from (_record(kind, fields, file) for fields in objects_in(content.get(listed)))
        return
    # R20Exporter puts numbers before names.
    numbered = PurePosixPath(file).parts
    *folders, name = [each[6:] if each[:3].isdigit() and each[3:6] == " - " else each for each in numbered]
    kind = str(content.get("type")) if "schema_version" in content else PurePosixPath(name).stem
    fields = fields_of(content.get(kind)) or content
    if kind not in _TEXTS:
        kind = next((kind for kind, signs in _SIGNS if any(sign in fields for sign in signs)), "")
    if not kind or not isinstance(fields.get("name"), str):
        return
    if PurePosixPath(file).stem != kind:
        yield replace(_record(kind, fields, file), folders=tuple(folders))
        return
    # R20Exporter: "journal/000 - Places/001 - Ironhold/handout.json", with texts and pictures beside it.
    beside = {field: str(PurePosixPath(file).with_name(f"{field}.html")) for field in _TEXTS[kind]}
    texts = {field: decoded(files.read(path), path) for field, path in beside.items() if path in names}
    pictures = (str(PurePosixPath(file).with_name(f"avatar.{suffix}")) for suffix in _PICTURES)
    portrait = next((path for path in pictures if path in names), "")
    yield replace(_record(kind, fields, file, texts), folders=tuple(folders[1:-1]), portrait=portrait)


def _record(kind: str, fields: Mapping[str, Any], file: str, beside: Mapping[str, str] | None = None) -> _Record:
    name = name_of(str(fields.get("name") or "")) or f"unnamed {kind}"
    key = name_of(str(fields.get("id") or fields.get("oldId") or "")) or f"{kind}:{name.casefold()}"
    # A number instead of a text is the time at which Roll20 stored a text that the export does not have.
    written = {field: text for field in _TEXTS[kind] if isinstance(text := fields.get(field), str) and text.strip()}
    texts = {field: text for field, text in {**(beside or {}), **written}.items() if not text.strip().isdecimal()}
    return _Record(kind, key, name, fields, texts, file)


def _folders(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(tree, str) and not above:
        with suppress(ValueError, RecursionError):
            yield from _folders(json.loads(tree or "[]"), ())
    for each in listed(tree) if len(above) < _DEEPEST else ():
        if isinstance(each, str):
            yield each, above
        elif isinstance(each, dict):
            yield from _folders(each.get("i"), (*above, name_of(str(each.get("n") or ""))))


def _players(campaign: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the players. Only the account of the export says who the GM is; without it, nobody is."""
    users, account = objects_in(campaign.get("players")), campaign.get("account_id")
    others = [user for user in users if not user.get("d20userid") or user["d20userid"] != account]
    return frozenset(str(user.get("id")) for user in others) if len(others) < len(users) else frozenset()


def _people(value: Any) -> set[str]:
    """Return the ids in a field with ids: a list, or a text with commas."""
    listed = value if isinstance(value, list) else str(value or "").split(",")
    return {each.strip() for each in listed if isinstance(each, str) and each.strip()}


def _documents(campaign: Mapping[str, Any], records: Mapping[str, _Record]) -> tuple[SourceDocument, ...]:
    """Return a document for each name and type, with texts and links. Handouts of no type are told apart by folders."""
    folders = dict(_folders(campaign.get("journalfolder"), ()))
    players = _players(campaign)
    alone = [_alone(each, folders.get(each.key, each.folders), players) for each in records.values()]
    typed = [each for each in alone if each.type != "concept"]
    groups: dict[tuple[str, str], list[SourceDocument]] = {}
    for each in (*typed, *told_apart([each for each in alone if each.type == "concept"])):
        groups.setdefault((each.name.casefold(), each.type), []).append(each)
    keys = {each.key: group[0].key for group in groups.values() for each in group}
    pages = (each for each in records.values() if each.kind == "page")
    tokens = [
        (token.get("represents"), page.key) for page in pages for token in objects_in(page.fields.get("graphics"))
    ]
    places = {character: page for character, page in reversed(tokens) if isinstance(character, str)}
    documents = []
    for group in groups.values():
        made = united([_with_texts(each, records[each.key].texts, keys) for each in group])
        links = [each for each in made.links if each.target != made.key]
        place = next((places[each.key] for each in group if each.key in places), None)
        if place and made.type != "player":  # characters of players go everywhere
            links.append(SourceLink(keys[place], LOCATED_AT, hidden=True))  # players do not see all tokens
        documents.append(replace(made, links=tuple(links)))
    return tuple(documents)


def _alone(record: _Record, folders: tuple[str, ...], players: frozenset[str]) -> SourceDocument:
    """Return a document without links, and without its texts in HTML.

    Players see the name and the biography of a character in their journal; only those who control it see its sheet.
    """
    fields, attributes, type_ = record.fields, {}, "location"
    is_open = True
    if record.kind == "handout":
        type_ = next(filter(None, map(type_named, reversed(folders))), "concept")
    elif record.kind == "character":
        rows = (each for name in ("attributes", "attribs") for each in objects_in(fields.get(name)))
        sheet = {**fields, **{str(row.get("name")): row.get("current") for row in rows}}
        named = {name: value for field, name in _ATTRIBUTES.items() if isinstance(value := sheet.get(field), str)}
        attributes = {name: plain for name, value in named.items() if (plain := name_of(value))}
        everybody = _people(fields.get("controlledby"))
        controlled_by = everybody - {"all"}
        is_played = controlled_by & players if players else controlled_by
        is_open = bool(is_played) or "all" in everybody
        type_ = "player" if is_played and str(sheet.get("npc")) != "1" else "npc"
    seen_by = _people(fields.get("inplayerjournals"))
    is_shared = record.kind != "page" and ("all" in seen_by or (players and players <= seen_by))
    tags = (tag.strip(' []"') for tag in str(fields.get("tags") or "").replace("'", '"').split(","))
    marks = [mark] if (mark := name_mark((record.name,), folders)) else []
    marks += ["archived"] * bool(fields.get("archived")) + [f"tag {tag!r}" for tag in tags if is_marked(tag, "folder")]
    why = next(iter(marks), "") if is_shared else "not shared with all players"
    own = (record.key, record.name, type_, record.kind, record.file, folders)
    if why or is_open:
        return SourceDocument(*own, attributes=attributes, hidden=bool(why), portrait=record.portrait, why=why)
    sheet_only = (SourceText(f"{name}: {value}", True, "sheet", why="sheet") for name, value in attributes.items())
    return SourceDocument(*own, hidden=False, texts=tuple(sheet_only), portrait=record.portrait)


def _with_texts(document: SourceDocument, pages: Mapping[str, str], keys: Mapping[str, str]) -> SourceDocument:
    texts, links = [*document.texts], []
    for field, html in pages.items():
        page = "GM notes" if field == "gmnotes" else field
        why = page if document.hidden or field == "gmnotes" else ""
        read = page_text(html)
        texts += texts_of(read, page, why)
        for each in read.links:
            key = keys.get(each.target.rpartition("/")[2]) if "journal.roll20.net/" in each.target else None
            if key is not None:
                links.append(SourceLink(key, LINKED_TO, bool(why) or each.hidden))
    return replace(document, texts=tuple(texts), links=tuple(links))
