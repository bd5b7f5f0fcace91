"""Read a world of Foundry VTT: actors, items, scenes and pages of journals, and what players could see of them.

Ownership is a level for each user: 1 shows name and picture, 2 the texts. What only some of the players could see is
hidden where it may be a secret between them and the DM: pages of journals, and all texts. So is what lies in a
compendium, as who may open it can be changed outside of its files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from glyphoxa.dm.imported import SourceDocument, SourceLink, SourceText, SourceWorld
from glyphoxa.domain.errors import counted
from glyphoxa.imports.files import SourceFiles
from glyphoxa.imports.foundry_store import CLASSES, Content, Stored, read_contents
from glyphoxa.imports.html_text import html_text
from glyphoxa.imports.source_words import type_named
from glyphoxa.language.words import fold
from glyphoxa.providers.extras import not_installed

_LIMITED: Final = 1
_OBSERVER: Final = 2
_NOBODY: Final = 9
"""Level of a text that no player can read."""
_INHERIT: Final = -1
_ROLE_PLAYER, _ROLE_ASSISTANT = 1, 3
_SHOWN_ALWAYS: Final = 30
"""From this mode on, everybody sees the name of a token."""

_OF_ACTORS: Final = {"character": "player", "vehicle": "item", "group": "faction", "party": "faction"}
_ATTRIBUTES: Final = {
    "race": "race",
    "species": "race",
    "ancestry": "race",
    "class": "class",
    "alignment": "alignment",
    "occupation": "occupation",
    "profession": "occupation",
    "creaturetype": "creature type",
    "creaturetypes": "creature type",
}
"""Field of a system, or type of an item that an actor has -> attribute."""
_ALIASES: Final = frozenset(("alias", "aliases", "aka", "nickname", "nicknames"))
_FOR_THE_DM: Final = ("private", "secret", "hidden", "gm", "dm", "gamemaster", "keeper")
_RULES: Final = frozenset(
    ("items", "effects", "activities", "advancement", "rules", "source", "spells", "migrationdata", "prerequisites")
)
"""Fields of a system whose texts are about rules."""
_PLAIN: Final = frozenset(("system", "data", "details", "value", "description", "content", "text", "html"))
"""Words in the path of a text that do not say what it is about."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""The words of a field such as `privateNotes` or `GMNotes`."""
_TAG: Final = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_FEW_WORDS, _FEW_LETTERS, _LETTERS_PERCENT = 4, 12, 70
_LONGEST_ATTRIBUTE: Final = 60
_DEEPEST: Final = 12
_ID_SHOWN: Final = 4
_ID: Final = re.compile(r"(?=.*(?:[0-9]|[a-z][A-Z]))[A-Za-z0-9]{16}")


@dataclass(frozen=True, slots=True)
class _Text:
    """
    Attributes:
        level: From which level of ownership players can read it.
    """

    page: str
    html: str
    level: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a document.

    Attributes:
        origins: Ids of the documents of compendiums that it was made from.
        inside: Ids of its pages, tokens and notes; None if it does not list them.
        refers_to: Id of the actor of a token, the page of a note, the journal of a scene.
        is_secret: Players do not see its name whatever they may see: an unidentified item, a hidden token, a scene
            with another name for players.
    """

    name: str
    type: str = ""
    folder: str = ""
    ownership: Mapping[str, int] = field(default_factory=dict)
    picture: str = ""
    texts: tuple[_Text, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    inside: tuple[str, ...] | None = None
    refers_to: str = ""
    is_secret: bool = False
    order: float = 0


def read_foundry(files: SourceFiles) -> SourceWorld:
    """
    Raises:
        InvalidInput: These are no files of Foundry VTT, or damaged ones.
        NotInstalled: A library is missing.
    """
    contents = read_contents(files, _kept)
    manifest = contents.manifest
    labels = {
        str(each.get("name")): _clean(each.get("label")) for each in _dicts(manifest.get("packs")) if each.get("label")
    }
    world = _World(contents.documents, labels)
    documents = tuple(world.documents())
    id_ = _clean(manifest.get("id") or manifest.get("name")) or files.path.stem
    left_out = (
        [f"{counted(len(files.left_out), 'link or device', 'links or devices')} not read"] if files.left_out else []
    )
    name = _clean(manifest.get("title")) or files.path.stem
    return SourceWorld("foundry", id_, name, documents, (*contents.remarks, *world.remarks))


def _kept(collection: str, content: Content) -> _Kept | None:
    """Reduce a document as it is read."""
    name, type_ = _clean(content.get("name")), _clean(content.get("type"))
    system = content.get("system") or content.get("data")
    match collection:
        case "users":
            return _Kept(name, str(content.get("role")))
        case "folders":
            return _Kept(name, folder=str(content.get("folder") or content.get("parent")))
        case "actors.items":
            return _Kept(name, _ATTRIBUTES[type_]) if type_ in _ATTRIBUTES else None
        case "scenes.tokens":
            return _Kept(name, refers_to=str(content.get("actorId")), is_secret=bool(content.get("hidden")))
        case "scenes.notes":
            return _Kept(name, refers_to=str(content.get("pageId") or content.get("entryId")))
    texts, attributes, aliases = _of_system(system)
    if collection == "journal":
        texts = [_Text("", _string(content.get("content")), _OBSERVER), *texts]
    if collection == "journal.pages":
        page = _dict(content.get("text"))
        html = _string(page.get("content")) or _rendered(_string(page.get("markdown")))
        caption = _string(_dict(content.get("image")).get("caption"))
        texts = [_Text("", html, _OBSERVER), _Text("caption", caption, _OBSERVER), *texts]
    called = _clean(content.get("navName"))
    token = _dict(content.get("prototypeToken") or content.get("token"))
    # Only the token of a unique character has a name of its own; that of a kind of monsters is called as others are.
    if token.get("actorLink") is True and _number(token.get("displayName")) >= _SHOWN_ALWAYS:
        aliases.append(_clean(token.get("name")))
    inside = [str(each) for kind in ("pages", "tokens", "notes") for each in _list(content.get(kind))]
    return _Kept(
        name,
        type_,
        str(content.get("folder")),
        {
            user: level
            for user, level in _dict(content.get("ownership", content.get("permission"))).items()
            if isinstance(level, int)
        },
        _clean(content.get("img") or (content.get("src") if type_ == "image" else "")),
        tuple(each for each in texts if each.html.strip()),
        attributes,
        tuple(each for each in dict.fromkeys(aliases) if each and each != name),
        _origins(content),
        tuple(inside) if {"pages", "tokens", "notes"} & content.keys() else None,
        str(content.get("journal")) if collection == "scenes" else "",
        (bool(called) and called != name) or _is_unidentified(_dict(system)),
        _number(content.get("sort")),
    )


def _origins(content: Content) -> tuple[str, ...]:
    found = (
        _dict(content.get("_stats")).get("compendiumSource"),
        _dict(_dict(content.get("flags")).get("core")).get("sourceId"),
    )
    return tuple(str(each).rpartition(".")[2] for each in found if each)


def _is_unidentified(system: Content) -> bool:
    return system.get("identified") is False or _dict(system.get("identification")).get("status") == "unidentified"


def _of_system(system: object) -> tuple[list[_Text], dict[str, str], list[str]]:
    """Find texts, attributes and aliases among the fields of whatever system of rules."""
    texts: dict[str, _Text] = {}
    attributes: dict[str, str] = {}
    aliases: list[str] = []
    for path, value in _strings(system):
        if not value.strip():
            continue
        words = [word.lower() for part in path for word in _WORDS.findall(part)]
        is_private = any(word.startswith(_FOR_THE_DM) or word.endswith("gm") for word in words)
        keys = [part.lower() for part in path if part and part not in _PLAIN]
        last = keys[-1] if keys else ""
        is_short = len(value) <= _LONGEST_ATTRIBUTE and not _TAG.search(value)
        of_type = last == "type" and "details" in path
        if is_short and not is_private and (of_type or last in _ATTRIBUTES):
            if not _ID.fullmatch(value):
                attributes.setdefault("creature type" if of_type else _ATTRIBUTES[last], _clean(value))
        elif is_short and not is_private and last in _ALIASES:
            aliases += [_clean(each) for each in value.split(",")]
        elif (is_private and " " in value.strip()) or _is_prose(value, in_list="" in path):
            level = _NOBODY if is_private else _LIMITED if "public" in words else _OBSERVER
            page = " ".join(dict.fromkeys(word for word in words if word not in _PLAIN))
            # The same text in two fields is as secret as its better kept copy.
            if (known := texts.get(value)) is None or known.level < level:
                texts[value] = _Text(page, value, level)
    return list(texts.values()), attributes, aliases


def _strings(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield all strings with the names of their fields; "" for being in a list."""
    if isinstance(value, str):
        yield path, value
    elif len(path) < _DEEPEST:
        if isinstance(value, dict):
            for key, each in value.items():
                if key.lower() not in _RULES:
                    yield from _strings(each, (*path, key))
        elif isinstance(value, list):
            for each in value:
                yield from _strings(each, (*path, ""))


def _is_prose(value: str, *, in_list: bool) -> bool:
    if _TAG.search(value):
        return True
    n_letters = sum(map(str.isalpha, value))
    n_signs = sum(not char.isspace() for char in value)
    long = value.count(" ") >= _FEW_WORDS or (not value.isascii() and n_letters >= _FEW_LETTERS)
    return not in_list and long and n_letters * 100 >= n_signs * _LETTERS_PERCENT


@dataclass(slots=True)
class _Draft:
    """A document that becomes an entity, or part of one.

    Attributes:
        level: From which level of ownership on players read its texts.
        entry: Name of the journal entry of a page; "" where players do not see it but do see the page.
    """

    stored: Stored[_Kept]
    key: str
    name: str
    type: str
    kind: str
    folders: tuple[str, ...]
    hidden: bool
    level: int
    entry: str = ""

    @property
    def is_journal(self) -> bool:
        return self.key.startswith("JournalEntry.")


@dataclass(slots=True)
class _Entity:
    """Drafts with one name and type, the one that gives the key first."""

    drafts: list[_Draft]
    name: str
    links: dict[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.drafts[0].key

    @property
    def type(self) -> str:
        return self.drafts[0].type

    @property
    def hidden(self) -> bool:
        return all(each.hidden for each in self.drafts)

    def link(self, other: _Entity | None, type_: str, *, hidden: bool) -> None:
        if other is not None and other is not self:
            hidden = hidden or self.hidden or other.hidden
            self.links[other.key, type_] = hidden and self.links.get((other.key, type_), True)


class _World:
    def __init__(self, documents: Iterable[Stored[_Kept]], pack_labels: Mapping[str, str]) -> None:
        self._labels = pack_labels
        self._of: dict[str, list[Stored[_Kept]]] = defaultdict(list)
        self._by_id: dict[tuple[str, str, str], Stored[_Kept]] = {}
        for each in documents:
            self._of[each.collection].append(each)
            self._by_id[each.collection, each.pack, each.id] = each
        roles = {user.id: _number(user.content.type) for user in self._of["users"]}
        # Without any player, what everybody may see counts.
        self._players = [user for user, role in roles.items() if _ROLE_PLAYER <= role < _ROLE_ASSISTANT] or ["default"]
        self._n_partly = 0
        self._of_actor: dict[tuple[str, str], list[Stored[_Kept]]] = defaultdict(list)
        for each in self._of["actors.items"]:
            self._of_actor[each.pack, each.parent].append(each)
        self._entities = self._merged(self._drafts())
        self._by_document: dict[str, _Entity] = {}
        self._by_name: dict[tuple[str, str], _Entity] = {}
        for entity in self._entities:
            for draft in entity.drafts:
                self._by_document.setdefault(draft.stored.id, entity)
                self._by_name.setdefault((draft.key.partition(".")[0], _folded(draft.name)), entity)
                if draft.is_journal and _folded(draft.entry) == _folded(draft.name):
                    self._by_document.setdefault(draft.stored.parent, entity)

    @property
    def remarks(self) -> list[str]:
        remarks = []
        if not any(each.content.ownership for group in self._of.values() for each in group):
            remarks.append("The files do not say what players could see: everything stays hidden until you reveal it.")
        if self._n_partly:
            remarks.append(
                f"{counted(self._n_partly, 'document')} that only some of the players could see stay hidden, in full"
                " or in part."
            )
        if any(draft.stored.pack for entity in self._entities for draft in entity.drafts):
            remarks.append("What lies in compendiums and adventures stays hidden until you reveal it.")
        return remarks

    def documents(self) -> Iterator[SourceDocument]:
        self._add_places()
        for entity in self._entities:
            yield self._document(entity)

    # Drafts.

    def _drafts(self) -> Iterator[_Draft]:
        for class_ in ("Actor", "Item", "Scene"):
            for stored in self._of[CLASSES[class_]]:
                kept = stored.content
                type_ = {"Item": "item", "Scene": "location"}.get(class_) or _OF_ACTORS.get(kept.type.lower(), "npc")
                most, least = self._levels(stored)
                kind = f"{class_} ({kept.type})" if kept.type else class_
                hidden = most < _LIMITED or kept.is_secret
                self._n_partly += most >= _LIMITED > least
                level = _NOBODY if kept.is_secret else least
                key = f"{class_}.{stored.id}"
                yield _Draft(stored, key, kept.name, type_, kind, self._folders(stored), hidden, level)
        pages: dict[tuple[str, str], list[Stored[_Kept]]] = defaultdict(list)
        for page in self._of["journal.pages"]:
            pages[page.pack, page.parent].append(page)
        for entry in self._of["journal"]:
            listed = entry.content.inside
            of_entry = [page for page in pages[entry.pack, entry.id] if listed is None or page.id in listed]
            yield from self._of_entry(entry, sorted(of_entry, key=lambda page: (page.content.order, page.id)))

    def _of_entry(self, entry: Stored[_Kept], pages: list[Stored[_Kept]]) -> Iterator[_Draft]:
        folders, name = self._folders(entry), entry.content.name
        is_one = not pages or (len(pages) == 1 and _folded(pages[0].content.name) == _folded(name))
        _, of_entry = self._levels(entry)
        for stored in pages or [entry]:
            kept = stored.content
            most, least = self._levels(stored, within=entry if pages else None)
            of_title = None if is_one else type_named(name, of_folder=False)
            of_folders = map(type_named, (*reversed(folders), kept.type if pages else ""))
            type_ = of_title or next(filter(None, of_folders), "concept")
            kind = f"JournalEntryPage ({kept.type})" if pages else "JournalEntry"
            key = f"JournalEntry.{entry.id}" + (f".JournalEntryPage.{stored.id}" if pages else "")
            hidden = least < _LIMITED
            self._n_partly += most >= _LIMITED > least
            shown = "" if of_entry < _LIMITED and not hidden else name
            yield _Draft(stored, key, kept.name or name, type_, kind, folders, hidden, least, shown)

    def _folders(self, stored: Stored[_Kept]) -> tuple[str, ...]:
        names: list[str] = []
        ids: set[str] = set()
        id_ = stored.content.folder
        while id_ not in ids and (folder := self._by_id.get(("folders", stored.pack, id_))):
            ids.add(id_)
            names.append(folder.content.name)
            id_ = folder.content.folder
        if stored.pack:
            names.append(self._labels.get(stored.pack) or stored.pack)
        return tuple(reversed(names))

    def _levels(self, stored: Stored[_Kept], *, within: Stored[_Kept] | None = None) -> tuple[int, int]:
        """Return the levels of the players who see most and least of it."""

        def level(of: Stored[_Kept], user: str, default: int) -> int:
            return of.content.ownership.get(user, of.content.ownership.get("default", default))

        if stored.pack:
            return 0, 0
        levels = []
        for user in self._players:
            own = level(stored, user, _INHERIT)
            levels.append(level(within, user, 0) if within is not None and own == _INHERIT else own)
        return max(levels), min(levels)

    # Entities.

    def _merged(self, drafts: Iterable[_Draft]) -> list[_Entity]:
        made: dict[str, _Draft] = {}
        origins: set[str] = set()
        # The world's own documents come first; in a compendium is what they were made from.
        for draft in sorted(drafts, key=lambda each: (bool(each.stored.pack), each.key)):
            stored = draft.stored
            if not stored.pack:
                origins |= {*stored.content.origins}
                if stored.parent:
                    origins |= {*self._by_id["journal", "", stored.parent].content.origins}
            if stored.pack and ({stored.id, stored.parent} & origins):
                continue
            if fold(draft.name):
                made.setdefault(draft.key, draft)
        groups: dict[tuple[str, str, str], list[_Draft]] = {}
        for draft in (each for each in made.values() if not each.is_journal):
            groups.setdefault((_folded(draft.name), draft.type, ""), []).append(draft)
        for draft in (each for each in made.values() if each.is_journal):
            name, type_ = _folded(draft.name), draft.type
            groups.setdefault((name, type_, "" if (name, type_, "") in groups else draft.key), []).append(draft)
        entities = [_Entity(group, group[0].name) for group in groups.values()]
        _tell_apart([each for each in entities if each.drafts[0].is_journal])
        return entities

    def _entity(self, reference: str) -> _Entity | None:
        """Return what a reference such as `Actor.x` or `Compendium.world.pack.Actor.x` leads to."""
        class_, _, name = reference.partition(".")
        return self._by_document.get(reference.rpartition(".")[2]) or self._by_name.get((class_, _folded(name)))

    def _add_places(self) -> None:
        """Add where actors and entries are: their tokens and notes lie on scenes, and scenes in folders."""
        for kind in ("scenes.tokens", "scenes.notes"):
            for stored in self._of[kind]:
                scene = self._by_id.get(("scenes", stored.pack, stored.parent))
                if scene is None or (scene.content.inside is not None and stored.id not in scene.content.inside):
                    continue
                entity = self._by_document.get(stored.content.refers_to)
                # Characters of players go everywhere.
                if entity is not None and entity.type != "player":
                    entity.link(self._by_document.get(scene.id), "LOCATED_AT", hidden=stored.content.is_secret)
        for stored in self._of["scenes"]:
            if (scene_of := self._by_document.get(stored.id)) is not None:
                scene_of.link(self._by_document.get(stored.content.refers_to), "RELATED_TO", hidden=True)
        places = {_folded(each.name): each for each in self._entities if each.type == "location"}
        for place in [each for each in self._entities if each.type == "location"]:
            above = (places.get(_folded(folder)) for folder in reversed(place.drafts[0].folders))
            if parent := next((each for each in above if each is not None and each is not place), None):
                place.link(parent, "LOCATED_AT", hidden=False)

    def _document(self, entity: _Entity) -> SourceDocument:
        drafts, hidden = entity.drafts, entity.hidden
        texts: dict[tuple[str, bool], SourceText] = {}
        attributes: dict[str, str] = {}
        shown = [each for each in drafts if each.hidden == hidden]
        for draft in drafts:
            for name, value in self._attributes(draft).items():
                if hidden or (not draft.hidden and draft.level >= _OBSERVER):
                    attributes.setdefault(name, value)
                else:
                    known = f"{name}: {value}"
                    texts[known, True] = SourceText(known, True, "attributes")
            for text in draft.stored.content.texts:
                self._add_text(entity, draft, text, texts)
        aliases = dict.fromkeys(alias for each in shown for alias in each.stored.content.aliases)
        first = drafts[0]
        return SourceDocument(
            key=first.key,
            name=entity.name,
            type=entity.type,
            kind=first.kind,
            file=_clean(first.stored.file),
            folders=first.folders,
            aliases=tuple(aliases),
            attributes=attributes,
            hidden=hidden,
            texts=tuple(texts.values()),
            links=tuple(SourceLink(target, type_, secret) for (target, type_), secret in entity.links.items()),
            portrait=next((each.stored.content.picture for each in shown if each.stored.content.picture), ""),
        )

    def _attributes(self, draft: _Draft) -> Mapping[str, str]:
        stored = draft.stored
        found = dict(stored.content.attributes)
        of_actor = self._of_actor.get((stored.pack, stored.id), []) if stored.collection == "actors" else []
        for each in of_actor:
            if each.content.name and each.content.type not in stored.content.attributes:
                known = found.get(each.content.type)
                found[each.content.type] = f"{known}, {each.content.name}" if known else each.content.name
        return found

    def _add_text(self, entity: _Entity, draft: _Draft, text: _Text, texts: dict[tuple[str, bool], SourceText]) -> None:
        hidden = draft.hidden or draft.level < text.level

        def name_of(reference: str, only_dm: bool) -> str:
            other = self._entity(reference)
            if other is None:
                return ""
            return other.drafts[0].name if hidden or only_dm or not other.hidden else "..."

        converted = html_text(text.html, name_of=name_of)
        for content, is_hidden in ((converted.visible, hidden), (converted.hidden, True)):
            if content:
                texts.setdefault((content, is_hidden), SourceText(content, is_hidden, text.page))
        for reference in converted.links:
            entity.link(self._entity(reference), "RELATED_TO", hidden=hidden)
        for reference in converted.hidden_links:
            entity.link(self._entity(reference), "RELATED_TO", hidden=True)


def _tell_apart(entities: list[_Entity]) -> None:
    """Give pages of one name different names."""
    marks: tuple[Callable[[_Draft], str], ...] = (
        lambda draft: draft.entry,
        lambda draft: draft.folders[-1] if draft.folders else "",
        lambda draft: draft.key[-_ID_SHOWN:],
    )
    for mark in marks:
        count = Counter(_folded(each.name) for each in entities)
        for entity in entities:
            more = mark(entity.drafts[0])
            if count[_folded(entity.name)] > 1 and more and _folded(more) != _folded(entity.drafts[0].name):
                entity.name = f"{entity.drafts[0].name} ({more})"


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _clean(value: object) -> str:
    """Return a name on one line, without characters that no database holds."""
    text = str(value) if isinstance(value, (str, int, float)) else ""
    return " ".join(text.replace("\0", "").encode(errors="replace").decode().split())


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: object) -> Content:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: object) -> list[Content]:
    return [each for each in _list(value) if isinstance(each, dict)]


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0


def _rendered(markdown: str) -> str:
    if not markdown:
        return ""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise not_installed(error, by="reading Markdown pages") or error from error
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
