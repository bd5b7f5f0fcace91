"""Read a world of Foundry VTT: actors, items, scenes and journal pages, and which of them players could see.

Ownership is a level for each user: 1 shows name and picture, 2 also shows the texts. The name of an actor, item or
scene is visible if any player could see it. Journal pages and texts are visible only if every player could see them:
the DM may have shared them with one player in secret. Documents of compendiums are always hidden, because their files
do not say who may open the compendium.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from glyphoxa.dm.source_world import SourceDocument, SourceLink, SourceText, SourceWorld, name_of, united
from glyphoxa.domain.errors import counted
from glyphoxa.language.words import fold
from glyphoxa.plugins.imports.files import SourceFiles, fields_of, listed, objects_in
from glyphoxa.plugins.imports.foundry_store import CLASSES, Content, Contents, Stored
from glyphoxa.plugins.imports.labels import is_marked, name_mark, type_named
from glyphoxa.plugins.imports.markdown_text import page_text, texts_of

_LIMITED: Final = 1
_OBSERVER: Final = 2
_NOBODY: Final = 9
"""Required level of a text that no player can read."""
_INHERIT: Final = -1
_ROLE_PLAYER, _ROLE_ASSISTANT = 1, 3
_SHOWN_ALWAYS: Final = 30
"""Modes from this one on show the name of a token to everybody."""

_OF_ACTORS: Final = {"character": "player", "vehicle": "item", "group": "faction", "party": "faction"}
_ATTRIBUTES: Final = {
    "race": "race", "species": "race", "ancestry": "race", "class": "class", "alignment": "alignment",
    "occupation": "occupation", "profession": "occupation", "creaturetype": "creature type",
    "creaturetypes": "creature type",
}  # fmt: skip
"""Field of a system, or type of an actor's item -> attribute."""
_ALIASES: Final = frozenset(("alias", "aliases", "aka", "nickname", "nicknames"))
_RULES: Final = frozenset(
    ("items", "effects", "activities", "advancement", "rules", "source", "spells", "migrationdata", "prerequisites")
)
"""Fields of a system with texts about rules."""
_PLAIN: Final = frozenset(("system", "data", "details", "value", "description", "content", "text", "html"))
"""Fields whose names do not describe their text."""
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""The words of a field such as `privateNotes` or `GMNotes`."""
_MEDIA: Final = re.compile(r"data:[\w/+.;=-]+;base64,[A-Za-z0-9+/=]+")
"""A picture embedded in a text, which can be megabytes long."""
_TAG: Final = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_FEW_WORDS, _FEW_LETTERS, _LETTERS_PERCENT = 4, 12, 70
_LONGEST_ATTRIBUTE: Final = 60
_DEEPEST: Final = 12
_ID_SHOWN: Final = 4
_ID: Final = re.compile(r"(?=.*(?:[0-9]|[a-z][A-Z]))[A-Za-z0-9]{16}")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, and the level of ownership that a player needs to read it."""

    page: str
    html: str
    level: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """The part of a document that is needed.

    Attributes:
        origins: Ids of the documents of compendiums that it was made from.
        inside: Ids of its pages, tokens and notes; None if it does not list them.
        refers_to: Actor of a token, page or entry of a note, journal entry of a scene.
        is_secret: Its name is hidden from players whatever its ownership is: an unidentified item, a hidden token, a
            scene that players see under another name.
    """

    name: str
    type: str = ""
    folder: str = ""
    ownership: Mapping[str, int] = field(default_factory=dict)
    picture: str = ""
    texts: tuple[_Text, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    origins: frozenset[str] = frozenset()
    inside: frozenset[str] | None = None
    refers_to: str = ""
    is_secret: bool = False
    order: float = 0


def read_foundry(files: SourceFiles) -> SourceWorld:
    """Raises: InvalidInput: These are no files of Foundry VTT, or damaged ones."""
    contents = Contents(files, _kept)
    manifest = contents.manifest
    packs = {str(each.get("name")): _clean(each.get("label")) for each in objects_in(manifest.get("packs"))}
    world = _World(contents.documents, packs)
    documents = tuple(world.documents())
    id_ = _clean(manifest.get("id") or manifest.get("name")) or files.path.stem
    name = _clean(manifest.get("title")) or files.path.stem
    return SourceWorld("foundry", id_, name, documents, (*contents.remarks, *world.remarks))


def _kept(collection: str, content: Content) -> _Kept | None:
    """Reduce a document as it is read."""
    name, type_ = _clean(content.get("name")), _clean(content.get("type"))
    match collection:
        case "users":
            return _Kept(name, str(content.get("role")))
        case "folders":
            return _Kept(name, folder=str(content.get("folder") or content.get("parent")))
        case "actors.items":
            return _Kept(name, _ATTRIBUTES[type_]) if type_ in _ATTRIBUTES else None
        case "scenes.tokens":
            return _Kept(name, refers_to=f"Actor.{content.get('actorId')}", is_secret=bool(content.get("hidden")))
        case "scenes.notes":
            return _Kept(name, refers_to=str(content.get("pageId") or content.get("entryId")))
    system = fields_of(content.get("system") or content.get("data"))
    texts, attributes, aliases = _of_system(system)
    page = fields_of(content.get("text"))
    html = (content.get("content"), page.get("content") or _rendered(page.get("markdown")))
    caption = fields_of(content.get("image")).get("caption")
    own = [_Text("", _MEDIA.sub("", each), _OBSERVER) for each in (*html, caption) if isinstance(each, str)]
    token = fields_of(content.get("prototypeToken") or content.get("token"))
    # The token of a unique character may have another name. Tokens of monsters share the name of their kind.
    if token.get("actorLink") is True and _number(token.get("displayName")) >= _SHOWN_ALWAYS:
        aliases.append(_clean(token.get("name")))
    ownership = fields_of(content.get("ownership", content.get("permission")))
    # Icons that come with Foundry are no portraits.
    picture = _clean(content.get("img") or (content.get("src") if type_ == "image" else ""))
    inside = [listed(content[kind]) for kind in ("pages", "tokens", "notes") if kind in content]
    origins = (
        fields_of(content.get("_stats")).get("compendiumSource"),
        fields_of(fields_of(content.get("flags")).get("core")).get("sourceId"),
    )
    is_unidentified = (
        system.get("identified") is False or fields_of(system.get("identification")).get("status") == "unidentified"
    )
    return _Kept(
        name,
        type_,
        str(content.get("folder")),
        {user: level for user, level in ownership.items() if type(level) is int},
        "" if picture.startswith("icons/") else picture,
        (*own, *texts),
        attributes,
        tuple(each for each in dict.fromkeys(aliases) if each not in ("", name)),
        frozenset(str(each).rpartition(".")[2] for each in origins if each),
        frozenset(str(each) for ids in inside for each in ids) if inside else None,
        str(content.get("journal")),
        is_unidentified or _clean(content.get("navName")) not in ("", name),
        _number(content.get("sort")),
    )


def _of_system(system: object) -> tuple[list[_Text], dict[str, str], list[str]]:
    texts: dict[str, _Text] = {}
    attributes: dict[str, str] = {}
    aliases: list[str] = []
    found: list[tuple[tuple[str, ...], str]] = []
    _add_strings(system, (), found)
    for path, value in found:
        last = next((part.lower() for part in reversed(path) if part and part not in _PLAIN), "")
        attribute = "creature type" if last == "type" and "details" in path else _ATTRIBUTES.get(last)
        is_name = attribute is not None or last in _ALIASES
        if not value.strip() or not (is_name or " " in value or "<" in value or not value.isascii()):
            continue
        words = [word.lower() for part in path for word in _WORDS.findall(part)]
        is_private = is_marked(" ".join(words), "key")
        if is_name and not is_private and len(value) <= _LONGEST_ATTRIBUTE and not _TAG.search(value):
            if attribute is None:
                aliases += map(_clean, value.split(","))
            elif not _ID.fullmatch(value):
                attributes.setdefault(attribute, _clean(value))
        elif is_private or _is_prose(value, in_list="" in path):
            level = _NOBODY if is_private else _LIMITED if "public" in words else _OBSERVER
            page = " ".join(dict.fromkeys(word for word in words if word not in _PLAIN))
            # A text in two fields needs the higher level of the two.
            if (known := texts.get(value)) is None or known.level < level:
                texts[value] = _Text(page, _MEDIA.sub("", value), level)
    return list(texts.values()), attributes, aliases


def _add_strings(value: object, path: tuple[str, ...], found: list[tuple[tuple[str, ...], str]]) -> None:
    """Add all strings that are not empty, with the names of their fields; "" for being in a list."""
    if isinstance(value, str):
        found.append((path, value))
    elif isinstance(value, (dict, list)) and len(path) < _DEEPEST:
        for key, each in value.items() if isinstance(value, dict) else (("", each) for each in value):
            # Most values of a system are numbers.
            if each and isinstance(each, (str, dict, list)) and key.lower() not in _RULES:
                _add_strings(each, (*path, key), found)


def _is_prose(value: str, *, in_list: bool) -> bool:
    if _TAG.search(value):
        return True
    n_letters = sum(map(str.isalpha, value))
    n_signs = sum(not char.isspace() for char in value)
    long = value.count(" ") >= _FEW_WORDS or (not value.isascii() and n_letters >= _FEW_LETTERS)
    return not in_list and long and n_letters * 100 >= n_signs * _LETTERS_PERCENT


@dataclass(frozen=True, slots=True)
class _Part:
    """A document that becomes an entity, or part of one.

    Attributes:
        why: The reason why it is hidden; "" if it is not.
        level: The lowest level of ownership that a player has.
        within: Name of the journal entry that it is a page of; "" where players may not see that name.
    """

    stored: Stored[_Kept]
    key: str
    name: str
    type: str
    kind: str
    folders: tuple[str, ...]
    why: str
    level: int
    within: str = ""

    @property
    def hidden(self) -> bool:
        return bool(self.why)

    @property
    def is_journal(self) -> bool:
        return self.key.startswith("JournalEntry.")


@dataclass(slots=True, eq=False)
class _Entity:
    """Documents with one name and type. `links`: key of a target, type -> whether it is hidden."""

    parts: list[_Part]
    name: str
    links: dict[tuple[str, str], bool] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return self.parts[0].type

    @property
    def hidden(self) -> bool:
        return all(each.hidden for each in self.parts)

    def link(self, other: _Entity | None, type_: str, *, hidden: bool) -> None:
        if other is not None and other is not self:
            link = other.parts[0].key, type_
            self.links[link] = (hidden or self.hidden or other.hidden) and self.links.get(link, True)


class _World:
    def __init__(self, documents: Iterable[Stored[_Kept]], pack_labels: Mapping[str, str]) -> None:
        self._labels = pack_labels
        self._of: dict[str, list[Stored[_Kept]]] = defaultdict(list)
        self._by_id: dict[tuple[str, str, str], Stored[_Kept]] = {}
        self._inside: dict[tuple[str, str, str], list[Stored[_Kept]]] = defaultdict(list)
        for each in documents:
            self._of[each.collection].append(each)
            self._by_id[each.collection, each.pack, each.id] = each
            self._inside[each.collection, each.pack, each.parent].append(each)
        roles = {user.id: _number(user.content.type) for user in self._of["users"]}
        # Without players, the default level applies.
        self._players = [user for user, role in roles.items() if _ROLE_PLAYER <= role < _ROLE_ASSISTANT] or ["default"]
        parts = [*self._parts()]
        named = [each for each in parts if fold(each.name)]
        self._n_nameless = len(parts) - len(named)
        self._entities = _merged(self._once(named))
        self._found: dict[str, tuple[_Entity, _Part]] = {}
        for entity in self._entities:
            for part in entity.parts:
                for reference in (part.stored.id, part.key, f"{part.key.partition('.')[0]}.{_folded(part.name)}"):
                    self._found.setdefault(reference, (entity, part))
                if part.stored.parent and _folded(part.within) == _folded(part.name):
                    self._found.setdefault(part.stored.parent, (entity, part))

    @property
    def remarks(self) -> list[str]:
        parts = [part for entity in self._entities for part in entity.parts]
        owned = [each for each in parts if not each.stored.content.is_secret]
        n_partly = sum(max(self._levels(each.stored)) >= _LIMITED > each.level for each in owned)
        partly, nameless = counted(n_partly, "document"), counted(self._n_nameless, "document")
        all_hidden = all(each.hidden for each in parts)
        return [
            *([f"{partly} that only some of the players could see: hidden, in full or in part."] * (n_partly > 0)),
            *([f"{nameless} left out: no letter or digit in the name."] * (self._n_nameless > 0)),
            *(["Nothing in these files could be seen by players: all of it is hidden."] * all_hidden),
        ]

    def documents(self) -> Iterator[SourceDocument]:
        self._add_places()
        for entity in self._entities:
            of_parts = united([self._alone(part, entity) for part in entity.parts])
            links = (SourceLink(target, type_, secret) for (target, type_), secret in entity.links.items())
            yield replace(of_parts, name=entity.name, links=tuple(links))

    def _parts(self) -> Iterator[_Part]:
        for class_ in ("Actor", "Item", "Scene"):
            for stored in self._of[CLASSES[class_]]:
                kept, levels = stored.content, self._levels(stored)
                if class_ == "Item" and type_named(kept.type) == "concept":
                    continue  # rules, such as a spell: nobody can hold it
                type_ = {"Item": "item", "Scene": "location"}.get(class_) or _OF_ACTORS.get(kept.type.lower(), "npc")
                kind = f"{class_} ({kept.type})" if kept.type else class_
                why = "not seen by players" if kept.is_secret or max(levels) < _LIMITED else ""
                key, level = f"{class_}.{stored.id}", 0 if kept.is_secret else min(levels)
                folders = self._folders(stored)
                why = why or name_mark((kept.name,), folders)
                yield _Part(stored, key, kept.name, type_, kind, folders, why, level)
        for entry in self._of["journal"]:
            listed = entry.content.inside
            pages = [
                page
                for page in self._inside["journal.pages", entry.pack, entry.id]
                if listed is None or page.id in listed
            ]
            yield from self._of_entry(entry, sorted(pages, key=lambda page: (page.content.order, page.id)))

    def _of_entry(self, entry: Stored[_Kept], pages: list[Stored[_Kept]]) -> Iterator[_Part]:
        folders, name = self._folders(entry), entry.content.name
        is_one = not pages or (len(pages) == 1 and _folded(pages[0].content.name) == _folded(name))
        of_title = None if is_one else type_named(name, of_folder=False)
        for stored in pages or [entry]:
            kept, level = stored.content, min(self._levels(stored))
            of_folders = map(type_named, (*reversed(folders), kept.type if pages else ""))
            type_ = of_title or next(filter(None, of_folders), "concept")
            kind = f"JournalEntryPage ({kept.type})" if pages else "JournalEntry"
            key = f"JournalEntry.{entry.id}" + (f".JournalEntryPage.{stored.id}" if pages else "")
            why = "not seen by all players" if level < _LIMITED else name_mark((name, kept.name), folders)
            within = name if why or min(self._levels(entry)) >= _LIMITED else ""
            yield _Part(stored, key, kept.name or name, type_, kind, folders, why, level, within)

    def _folders(self, stored: Stored[_Kept]) -> tuple[str, ...]:
        names: dict[str, str] = {}
        id_ = stored.content.folder
        while len(names) < _DEEPEST and id_ not in names and (folder := self._by_id.get(("folders", stored.pack, id_))):
            names[id_], id_ = folder.content.name, folder.content.folder
        pack = [self._labels.get(stored.pack) or stored.pack] if stored.pack else []
        return (*pack, *reversed(names.values()))

    def _levels(self, stored: Stored[_Kept]) -> list[int]:
        """Return the level of each player. A page may inherit the levels of its entry."""
        entry = self._by_id.get(("journal", stored.pack, stored.parent)) if stored.parent else None
        of_entry = self._levels(entry) if entry else [_INHERIT] * len(self._players)
        # An export keeps the levels of pages, but not of their entry, so nobody can tell what players saw.
        if stored.pack or (entry and not entry.content.ownership):
            return [0]
        ownership = stored.content.ownership
        own = [ownership.get(user, ownership.get("default", _INHERIT)) for user in self._players]
        return [above if level == _INHERIT else level for level, above in zip(own, of_entry, strict=True)]

    def _once(self, parts: Iterable[_Part]) -> list[_Part]:
        """Return each document once, without those of compendiums that a document of the world was made from."""
        once: dict[str, _Part] = {}
        origins: set[str] = set()
        for part in sorted(parts, key=lambda each: (bool(each.stored.pack), each.key)):
            stored = part.stored
            entry = self._by_id.get(("journal", stored.pack, stored.parent))
            if not stored.pack:
                origins |= stored.content.origins | (entry.content.origins if entry else frozenset())
            elif {stored.id, stored.parent} & origins:
                continue
            once.setdefault(part.key, part)
        return list(once.values())

    def _referred(self, reference: str) -> tuple[_Entity, _Part] | tuple[None, None]:
        """Return the target of a reference such as `Actor.x`, `Actor.Name` or `Compendium.world.pack.x`."""
        class_, _, name = reference.partition(".")
        found = self._found.get(reference.rpartition(".")[2]) or self._found.get(f"{class_}.{_folded(name)}")
        return found or (None, None)

    def _add_places(self) -> None:
        """Link actors and entries to scenes with their tokens or notes, and scenes to the place of their folder."""
        for stored in (*self._of["scenes.tokens"], *self._of["scenes.notes"]):
            scene, of_scene = self._found.get(f"Scene.{stored.parent}", (None, None))
            entity, part = self._found.get(stored.content.refers_to, (None, None))
            if scene is None or of_scene is None or entity is None or part is None:
                continue
            listed = of_scene.stored.content.inside
            # Player characters move from scene to scene.
            if entity.type != "player" and (listed is None or stored.id in listed):
                hidden = stored.content.is_secret or part.hidden or of_scene.hidden
                entity.link(scene, "LOCATED_AT", hidden=hidden)
        places = {_folded(each.name): each for each in self._entities if each.type == "location"}
        for place in places.values():
            above = (places.get(_folded(folder)) for folder in reversed(place.parts[0].folders))
            parent = next((each for each in above if each not in (None, place)), None)
            place.link(parent, "LOCATED_AT", hidden=place.parts[0].hidden)
            journal, _ = self._referred(place.parts[0].stored.content.refers_to)
            place.link(journal, "LINKED_TO", hidden=True)

    def _alone(self, part: _Part, entity: _Entity) -> SourceDocument:
        """Return the document of one part. The links in its texts become those of its entity."""
        content, attributes = part.stored.content, self._attributes(part.stored)
        texts: list[SourceText] = []
        if not entity.hidden and (part.hidden or part.level < _OBSERVER):
            texts = [SourceText(f"{name}: {value}", True, "attributes") for name, value in attributes.items()]
            attributes = {}
        for text in content.texts:
            of_text = f"field {text.page!r}" if text.level == _NOBODY else "not seen by all players"
            texts += self._texts(entity, text, why=part.why or of_text * (part.level < text.level))
        own = (part.key, part.name, part.type, part.kind, part.stored.file, part.folders, content.aliases, attributes)
        return SourceDocument(*own, part.hidden, tuple(texts), portrait=content.picture, why=part.why)

    def _attributes(self, stored: Stored[_Kept]) -> Mapping[str, str]:
        """Return the attributes of a document. An actor may have its race and classes as items."""
        found: dict[str, list[str]] = {name: [value] for name, value in stored.content.attributes.items()}
        for each in self._inside["actors.items", stored.pack, stored.id]:
            if each.content.name and each.content.type not in stored.content.attributes:
                found.setdefault(each.content.type, []).append(each.content.name)
        return {name: ", ".join(dict.fromkeys(values)) for name, values in found.items()}

    def _texts(self, entity: _Entity, text: _Text, *, why: str) -> list[SourceText]:
        def label(reference: str, only_dm: bool) -> str:
            other, part = self._referred(reference)
            if other is None or part is None:
                return ""
            return part.name if why or only_dm or not other.hidden else "..."

        converted = page_text(text.html, name_of=label)
        for each in converted.links:
            entity.link(self._referred(each.target)[0], "LINKED_TO", hidden=bool(why) or each.hidden)
        return texts_of(converted, text.page, why)


def _merged(parts: Sequence[_Part]) -> list[_Entity]:
    """Merge documents with the same name and type. Pages that share a name get different names instead."""
    groups: dict[tuple[str, str, str], list[_Part]] = {}
    for part in sorted(parts, key=lambda each: each.is_journal):
        name, type_ = _folded(part.name), part.type
        own = part.key if part.is_journal and (name, type_, "") not in groups else ""
        groups.setdefault((name, type_, own), []).append(part)
    entities = [_Entity(group, group[0].name) for group in groups.values()]
    pages = [each for each in entities if each.parts[0].is_journal]
    marks: tuple[Callable[[_Part], str], ...] = (
        lambda part: part.within,
        lambda part: part.within and "".join(part.folders[-1:]),
        lambda part: part.key[-_ID_SHOWN:],
    )
    for mark in marks:
        count = Counter(_folded(each.name) for each in pages)
        for page in pages:
            name, more = page.parts[0].name, mark(page.parts[0])
            if count[_folded(page.name)] > 1 and _folded(more) not in ("", _folded(name)):
                page.name = f"{name} ({more})"
    return entities


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _clean(value: object) -> str:
    return name_of(str(value)) if isinstance(value, (str, int, float)) else ""


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return 0


def _rendered(markdown: object) -> str:
    if not isinstance(markdown, str) or not markdown:
        return ""
    from markdown_it import MarkdownIt

    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
