"""Read what Roll20's users save of their games: zips and JSON of R20Exporter and of the VTT Enhancement Suite.

Roll20 itself exports nothing. R20Exporter writes `campaign.json`, and beside it a folder for each character and handout
with its JSON and its texts in HTML. The VTT Enhancement Suite writes one JSON file for each (schemas 1 to 3). Both
hold the fields of Roll20's own documents, so they are told by their content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from glyphoxa.dm.imported import SourceDocument, SourceLink, SourceText, SourceWorld
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.imports.files import SourceFiles
from glyphoxa.imports.html_text import html_text
from glyphoxa.imports.source_words import LOCATED_AT, RELATED_TO, decoded, name_of, told_apart, type_named

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
_IN_CAMPAIGN: Final = ("page.json", "chat_archive.json")
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
_JOURNAL: Final = "journal.roll20.net/"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class _Record:
    """A document of Roll20.

    Attributes:
        kind: "character", "handout" or "page".
        texts: In HTML, by field.
    """

    kind: str
    key: str
    name: str
    fields: Mapping[str, Any]
    texts: Mapping[str, str]
    file: str
    folders: tuple[str, ...] = ()
    portrait: str = ""


def read_roll20(files: SourceFiles) -> SourceWorld:
    """
    Raises:
        InvalidInput: It has no campaign, character or handout of Roll20, or a file in it cannot be read.
        NotInstalled: The libraries that read HTML are missing.
    """
    campaign: dict[str, Any] = {}
    records: dict[str, _Record] = {}
    names = frozenset(files.names)
    # The campaign is read first: it knows the folders of the journal, and holds all pages.
    for file in sorted(names, key=lambda each: (each.count("/"), each)):
        path = PurePosixPath(file)
        if path.suffix.casefold() == ".json" and not (campaign and path.name in _IN_CAMPAIGN):
            content = _read_json(files, file)
            if not campaign and _is_campaign(content):
                campaign = content
            for record in _records(content, file, files, names):
                known = records.get(record.key)
                records[record.key] = record if known is None else _completed(known, record)
    if not records:
        raise InvalidInput(
            f"{files.path}: no document of Roll20 in it; name a zip or campaign.json of R20Exporter, or JSON of the VTT"
            " Enhancement Suite"
        )
    folders = dict(_folders(campaign.get("journalfolder"), ()))
    players = _players(campaign)
    listed = [replace(each, folders=folders.get(each.key, each.folders)) for each in records.values()]
    documents = [_document(each, players, records) for each in listed]
    places = _places(listed)
    documents = [replace(each, links=(*each.links, *places.get(each.key, ()))) for each in documents]
    title = name_of(str(campaign.get("campaign_title") or "")) or files.path.stem
    number = name_of(str(campaign.get("campaign_id") or ""))
    id_ = number if number.strip("0") else title
    return SourceWorld("roll20", id_, title, _united(documents), (*_remarks(campaign, listed), _TERMS))


def _read_json(files: SourceFiles, file: str) -> dict[str, Any]:
    """Return the object in a JSON file; nothing if it is no object."""
    try:
        content = json.loads(decoded(files.read(file), file))
    except ValueError as error:
        raise InvalidInput(f"{file!r} in {files.path} is no JSON: {error}") from None
    except RecursionError:
        raise InvalidInput(f"{file!r} in {files.path} is nested too deeply for an export") from None
    return content if isinstance(content, dict) else {}


def _is_campaign(content: Mapping[str, Any]) -> bool:
    return isinstance(content.get("characters"), list) or isinstance(content.get("handouts"), list)


def _records(content: Mapping[str, Any], file: str, files: SourceFiles, names: frozenset[str]) -> Iterator[_Record]:
    """Yield the documents of a JSON file: a campaign's, or the one that it is."""
    if _is_campaign(content):
        for listed, kind in _LISTS.items():
            yield from (_record(kind, fields, file) for fields in _listed(content.get(listed)))
        return
    *folders, name = _names(file)
    kind = str(content.get("type")) if "schema_version" in content else PurePosixPath(name).stem
    wrapped = content.get(kind)
    fields = wrapped if isinstance(wrapped, dict) else content
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


def _listed(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _names(file: str) -> list[str]:
    """Return the parts of a path without the numbers that R20Exporter puts before them."""
    return [part[6:] if part[:3].isdigit() and part[3:6] == " - " else part for part in PurePosixPath(file).parts]


def _record(kind: str, fields: Mapping[str, Any], file: str, beside: Mapping[str, str] = _NOTHING) -> _Record:
    name = name_of(str(fields.get("name") or "")) or f"unnamed {kind}"
    key = name_of(str(fields.get("id") or fields.get("oldId") or "")) or f"{kind}:{name.casefold()}"
    # A number instead of a text is the time at which Roll20 stored a text that the export does not have.
    written = {field: text for field in _TEXTS[kind] if isinstance(text := fields.get(field), str) and text.strip()}
    texts = {field: text for field, text in {**beside, **written}.items() if not text.strip().isdecimal()}
    return _Record(kind, key, name, fields, texts, file)


def _completed(known: _Record, other: _Record) -> _Record:
    """Return a document with what another file says of it."""
    fields, texts = {**other.fields, **known.fields}, {**other.texts, **known.texts}
    folders, portrait = known.folders or other.folders, known.portrait or other.portrait
    return replace(known, fields=fields, texts=texts, folders=folders, portrait=portrait)


def _folders(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the key of each document in the journal, with its folders."""
    if isinstance(tree, str) and not above:
        with suppress(ValueError, RecursionError):
            yield from _folders(json.loads(tree or "[]"), ())
    for each in tree if isinstance(tree, list) and len(above) < _DEEPEST else ():
        if isinstance(each, str):
            yield each, above
        elif isinstance(each, dict):
            yield from _folders(each.get("i"), (*above, name_of(str(each.get("n") or ""))))


def _players(campaign: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the players. Only the account of the export says who the GM is; without it, nobody is."""
    users = _listed(campaign.get("players"))
    gms = [user for user in users if user.get("d20userid") and user["d20userid"] == campaign.get("account_id")]
    return frozenset(str(user.get("id")) for user in users if user not in gms) if gms else frozenset()


def _people(value: Any) -> set[str]:
    """Return the ids in a field with ids: a list, or a text with commas."""
    listed = value if isinstance(value, list) else str(value or "").split(",")
    return {each.strip() for each in listed if isinstance(each, str) and each.strip()}


def _document(record: _Record, players: frozenset[str], records: Mapping[str, _Record]) -> SourceDocument:
    fields = record.fields
    hidden = record.kind == "page" or not _people(fields.get("inplayerjournals")) & {"all", *players}
    sheet = {
        str(each.get("name")): each.get("current")
        for field in ("attributes", "attribs")
        for each in _listed(fields.get(field))
    }
    said = {**fields, **sheet} if record.kind == "character" else {}
    attributes = {
        name: name_of(value)
        for field, name in _ATTRIBUTES.items()
        if isinstance(value := said.get(field), str) and name_of(value)
    }
    texts: list[SourceText] = []
    links: dict[str, bool] = {}
    for field, html in record.texts.items():
        is_secret, page = field == "gmnotes", "GM notes" if field == "gmnotes" else field
        read = html_text(html)
        texts += [SourceText(read.visible, hidden or is_secret, page), SourceText(read.hidden, hidden=True, page=page)]
        for address in (*read.links, *read.hidden_links):
            key = address.rpartition("/")[2]
            if _JOURNAL in address and key in records and key != record.key:
                is_hidden = hidden or is_secret or address not in read.links
                links[key] = links.get(key, True) and is_hidden
    return SourceDocument(
        record.key,
        record.name,
        _type(record, sheet, players),
        record.kind,
        record.file,
        record.folders,
        attributes=attributes,
        hidden=hidden,
        texts=tuple(text for text in texts if text.text),
        links=tuple(SourceLink(key, RELATED_TO, is_hidden) for key, is_hidden in links.items()),
        portrait=record.portrait,
    )


def _type(record: _Record, sheet: Mapping[str, Any], players: frozenset[str]) -> str:
    if record.kind == "page":
        return "location"
    if record.kind == "character":
        controlled_by = _people(record.fields.get("controlledby")) - {"all"}
        is_played = controlled_by & players if players else controlled_by
        return "player" if is_played and str(sheet.get("npc")) != "1" else "npc"
    return next(filter(None, map(type_named, reversed(record.folders))), "concept")


def _places(records: Iterable[_Record]) -> Mapping[str, list[SourceLink]]:
    """Return the page that each character stands on. Players do not see all tokens, so it is hidden."""
    found: dict[str, list[SourceLink]] = {}
    for page in records:
        for token in _listed(page.fields.get("graphics")) if page.kind == "page" else ():
            if (key := token.get("represents")) and isinstance(key, str) and key not in found:
                found[key] = [SourceLink(page.key, LOCATED_AT, hidden=True)]
    return found


def _united(documents: Iterable[SourceDocument]) -> tuple[SourceDocument, ...]:
    """Make one document of those with the same name and type; notes without a type are told apart by their folders."""
    notes = told_apart([each for each in documents if each.type == "concept"])
    found: dict[tuple[str, str], SourceDocument] = {}
    keys: dict[str, str] = {}
    for each in (*(each for each in documents if each.type != "concept"), *notes):
        known = found.setdefault((each.name.casefold(), each.type), each)
        keys[each.key] = known.key
        if known is not each:
            found[each.name.casefold(), each.type] = _joined(known, each)
    return tuple(replace(each, links=tuple(_of_united(each, keys))) for each in found.values())


def _joined(first: SourceDocument, second: SourceDocument) -> SourceDocument:
    """Return one document of two. What only the DM knew of either stays hidden."""
    open_ones = [each for each in (second, first) if not each.hidden] or [second, first]
    return replace(
        first,
        attributes={name: value for each in open_ones for name, value in each.attributes.items()},
        hidden=first.hidden and second.hidden,
        texts=tuple(dict.fromkeys((*first.texts, *second.texts))),
        portrait=first.portrait or second.portrait,
        links=(*first.links, *second.links),
    )


def _of_united(document: SourceDocument, keys: Mapping[str, str]) -> Iterator[SourceLink]:
    hidden: dict[tuple[str, str], bool] = {}
    for link in document.links:
        end = (keys[link.target], link.type)
        hidden[end] = hidden.get(end, True) and link.hidden
    located = False
    for (target, type_), is_hidden in hidden.items():
        if target != document.key and not (located and type_ == LOCATED_AT):
            located = located or type_ == LOCATED_AT
            yield SourceLink(target, type_, is_hidden)


def _remarks(campaign: Mapping[str, Any], records: Iterable[_Record]) -> Iterator[str]:
    empty = [each.name for each in records if each.kind == "handout" and not each.texts]
    if empty:
        why = ": exports of Jumpgate games often lack them" if campaign.get("release") == "jumpgate" else ""
        yield f"{len(empty)} handouts have no text{why}: {shown(', '.join(empty))}"
