"""Read a folder of Markdown notes: an Obsidian vault, or what other tools export.

A note becomes a document, named after its file. Its type is what its front matter, its tags or its folders say. Links
between notes are relations: the key in the front matter or before `::` names their type.
"""

from __future__ import annotations

import mimetypes
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from string import hexdigits
from typing import Any, Final, TypeVar

from glyphoxa.config.campaign_schema import wrong_attribute
from glyphoxa.config.located_yaml import read_yaml
from glyphoxa.dm.source_world import (
    LOCATED_AT,
    SourceDocument,
    SourceLink,
    SourceText,
    SourceWorld,
    name_of,
    told_apart,
)
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.language.relations import known_type
from glyphoxa.language.words import words
from glyphoxa.plugins.imports.files import SourceFiles, decoded, json_of
from glyphoxa.plugins.imports.html_text import PageLink, PageText
from glyphoxa.plugins.imports.labels import asks_who_sees, is_marked, name_mark, property_mark, type_named
from glyphoxa.plugins.imports.markdown_text import (
    MARKUP,
    n_marks,
    note_text,
    wikilinks,
    without_links,
)
from glyphoxa.plugins.imports.obsidian import OBSIDIAN, is_of_rules
from glyphoxa.recall.facts import LINKED_TO

_T = TypeVar("_T")
_SUFFIXES: Final = (".md", ".markdown")
_TEMPLATES: Final = ".obsidian/templates.json"
_NOTION_ID: Final = 32
_MOST_BYTES: Final = 1 << 20
_MOST_MARKS: Final = 150_000
_MOST_MARKS_IN_ALL: Final = 4_000_000
"""Limits of `n_marks` in a note and in a source. A usual note of 1 MB has 70,000, and a vault of 50 MB 3.5 million."""
_LONGEST_VALUE: Final = 200
_MOST_WORDS: Final = 4
"""Limit of a key that names a relation, and of the name of a vault for the DM."""
_MOST_NAMES: Final = 8
"""Limit of the names in the end of a path that a link may have instead of the whole path."""
_MOST_TAGS: Final = 100
_ALIASES: Final = ("aliases", "alias")
_TAGS: Final = ("tags", "tag")
_CLASSES: Final = ("cssclass", "cssclasses")
_PARTS: Final = re.compile(r"[/,]")
"""Between the parts of a tag, and between tags in one text."""
_KINDS: Final = (*_TAGS, *OBSIDIAN["kinds"])
_PICTURES: Final = tuple(OBSIDIAN["pictures"])
_PLAYERS: Final = tuple(OBSIDIAN["players"])
_NAMING: Final = frozenset(("id", "permalink", "name", "title", *_ALIASES, *_TAGS, *_PICTURES))
"""Keys whose values say nothing about who may see the note, or are read otherwise."""
_OWN: Final = frozenset(("type", "name", *_ALIASES, *_KINDS, *_PICTURES, *_PLAYERS, *OBSIDIAN["settings"]))
"""Keys of the front matter that are no attributes."""
_SETTINGS: Final = tuple(OBSIDIAN["setting_prefixes"])


@dataclass(slots=True)
class _Note:
    """A note as it is read. Links, values (short ones) and pictures are those of its front matter.

    Attributes:
        file: Its path in the source.
        key: Its path in the vault, with its suffix.
        body: Its text, with the prose and the secrets of its front matter.
        why: The mark that hides it; "" for none.
    """

    file: str
    key: str
    name: str
    folders: tuple[str, ...]
    body: str
    aliases: tuple[str, ...]
    pictures: list[str]
    why: str
    type: str = ""
    text: PageText = field(default_factory=PageText)
    links: list[PageLink] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)

    @property
    def hidden(self) -> bool:
        return bool(self.why)

    @property
    def stem(self) -> str:
        return posixpath.splitext(self.key)[0].casefold()


def read_markdown(files: SourceFiles) -> SourceWorld:
    """Raises: InvalidInput: It has no Markdown notes, or a note cannot be read."""
    remarks: list[str] = []
    root = _root(files)
    templates = _templates(files, root)
    path = files.path.resolve()
    vault_name = root.rstrip("/") or (path.name if path.is_dir() else path.stem)
    notes: list[_Note] = []
    dense: list[str] = []
    n_left = _MOST_MARKS_IN_ALL
    for file in files.names:
        key = file.removeprefix(root)
        if _is_note(file) and not (templates and key.startswith(templates)):
            content = files.read(file, most=_MOST_BYTES)
            if len(content) <= _MOST_BYTES:
                text = decoded(content, file)
                is_read = (n := n_marks(text)) <= min(_MOST_MARKS, n_left)
                n_left -= n if is_read else 0
                dense += [] if is_read else [key]
                notes.append(_note(file, key, text, remarks, is_read=is_read))
            else:
                remarks.append(f"{key} is left out: larger than {_MOST_BYTES >> 20} MB, split it")
    if not notes and remarks:
        raise InvalidInput(f"{files.path}: {remarks[0]}")
    if not notes:
        raise InvalidInput(f"{files.path}: no Markdown notes in it; name a vault, a folder of .md files, or one note")
    if len(words(vault_name)) <= _MOST_WORDS and is_marked(vault_name, "folder"):
        remarks.append(f"{vault_name!r} is a name for what only the DM reads: all its notes are hidden")
        for note in notes:
            note.why = note.why or f"vault {vault_name!r}"
    if dense:
        many = f"more than {_MOST_MARKS:,} marks of Markdown, or {_MOST_MARKS_IN_ALL:,} in all"
        remarks.append(f"notes with {many}, are hidden as plain text ({len(dense)}): {shown(', '.join(dense))}")
    if rules := [note.key for note in notes if is_of_rules(note.name)]:
        remarks.append(f"notes about rules or a licence, without their texts ({len(rules)}): {shown(', '.join(rules))}")
    vault = _Vault(notes, files.names, root)
    documents = told_apart([vault.document(note) for note in notes])
    if n_open := sum(not each.hidden for each in documents):
        remarks.append(f"notes without a mark like `hidden: true` become known to everybody once accepted ({n_open})")
    if vault.missing:
        missing = shown(", ".join(sorted(vault.missing)))
        remarks.append(f"links to notes that do not exist are left out ({len(vault.missing)}): {missing}")
    return SourceWorld("markdown", vault_name, vault_name, tuple(documents), tuple(remarks))


def _root(files: SourceFiles) -> str:
    """Return the folder that a zip has everything in, with `/`; "" for none."""
    tops = {name.partition("/")[0] for name in files.names if not name.startswith("__MACOSX/")}
    is_one = len(tops) == 1 and not files.path.is_dir() and all("/" in name for name in files.names)
    return f"{tops.pop()}/" if is_one else ""


def _templates(files: SourceFiles, root: str) -> str:
    """Return the folder with templates for notes, with `/`; "" for none."""
    if root + _TEMPLATES not in files.names:
        return ""
    try:
        return str(json_of(files.read(root + _TEMPLATES), _TEMPLATES)["folder"]).strip("/") + "/"  # type: ignore[index]
    except (InvalidInput, LookupError, TypeError):
        return ""


def _is_note(file: str) -> bool:
    path = PurePosixPath(file)
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return path.suffix.casefold() in _SUFFIXES and not file.endswith(".excalidraw.md") and not is_hidden


def _note(file: str, key: str, text: str, remarks: list[str], *, is_read: bool) -> _Note:
    front, body, why = _front_matter(key, text, remarks) if is_read else ({}, text, "more marks than are read")
    path = PurePosixPath(key)
    title, _, id_ = path.stem.rpartition(" ")
    titles = [each for each in _texts(front, ("title",)) if _is_name(each, path.stem)]
    is_of_notion = len(id_) == _NOTION_ID and set(id_) <= set(hexdigits)
    note = _Note(
        file,
        key,
        name_of(next(iter((*_texts(front, ("name",)), *titles)), title if is_of_notion else path.stem)) or key,
        path.parent.parts,
        body,
        tuple(dict.fromkeys(_texts(front, _ALIASES))),
        [next(wikilinks(each), each) for each in _values(front, _PICTURES)],
        why,
    )
    for name, value in front.items():
        _take_value(note, str(name), str(name), value)
    if is_of_rules(note.name):
        note.body = ""  # a licence, a list of feats
    first, _, rest = note.body.lstrip().partition("\n")
    if first.lstrip("# ").strip().casefold() == note.name.casefold():  # the title again
        note.body = rest
    note.text = note_text(note.body) if is_read else PageText(hidden=note.body)
    written = ",".join(_texts(front, _KINDS)).replace("#", ",").split(",")
    tags = [*dict.fromkeys((*filter(None, map(str.strip, written)), *note.text.tags))]
    named = next(iter(_texts(front, ("type",))), "")
    note.type = _type(named, tags[:_MOST_TAGS], note.folders, is_played=bool(_texts(front, _PLAYERS)))
    labels = (*tags, *_texts(front, _CLASSES))
    marks = (f"tag {tag!r}" for tag in labels if any(is_marked(part, "folder") for part in _PARTS.split(tag)))
    note.why = note.why or name_mark((note.name, path.stem), note.folders) or next(marks, note.text.mark)
    return note


def _front_matter(key: str, text: str, remarks: list[str]) -> tuple[Mapping[str, Any], str, str]:
    """Return the front matter, the text after it, and why the note is hidden if nobody can tell."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text, ""
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    try:
        if end is None:
            raise InvalidInput(f"{key}:1: has no end")
        value = read_yaml(Path(key), "\n".join(("", *lines[1:end]))).value
    except InvalidInput as error:
        remarks.append(f"{str(error).splitlines()[0]}: the front matter is not read, and the note is hidden")
        return {}, text, "front matter that cannot be read"
    return value if isinstance(value, dict) else {}, "\n".join(lines[end + 1 :]), ""


def _take_value(note: _Note, path: str, name: str, value: Any) -> None:
    """Add a value of the front matter: a mark that hides the note, a relation, an attribute, or prose.

    Args:
        path: Its name, after the names of the values it is in if they are about who may see what.
    """
    key = _plain_key(path)
    texts = _strings(f"{value}" if key in OBSIDIAN["numbers"] and type(value) is int else value)
    said = ", ".join(texts)
    is_marked_key, is_asking = is_marked(path, "key"), asks_who_sees(path)
    listed = value if isinstance(value, list) else [value]
    for inner, each in ((inner, each) for part in listed if isinstance(part, dict) for inner, each in part.items()):
        _take_value(note, f"{path} {inner}" if is_marked_key or is_asking else str(inner), str(inner), each)
    single = [each for each in listed if not isinstance(each, dict | list)]
    hides = "" if key in _NAMING else property_mark(path, single)
    if hides == "note":
        note.why = note.why or f"property '{name}: {', '.join(map(_as_written, single))}'"
    if said and (hides == "value" or (hides and is_marked_key)):
        named = " ".join(name.replace(":", " ").split())
        note.body += f"\n\n:::secret (property {named})\n{name}: {said.replace(':::', '')}\n:::\n"
    elif is_asking or is_marked_key:
        return
    elif said not in ("", note.name) and not (key in _OWN or key.startswith(_SETTINGS) or is_of_rules(key, said)):
        note.links += [PageLink(each, key) for text in texts for each in wikilinks(text)]
        if any(mark in said for mark in MARKUP):  # a link may lead to what is hidden
            note.body += f"\n\n{name}: {said}\n"
        elif key == "description" or len(said) > _LONGEST_VALUE or wrong_attribute(name):
            note.body += f"\n\n{said}\n"
        elif plain := ", ".join(text for text in texts if "[[" not in text):
            note.values[name] = plain


def _plain_key(name: object) -> str:
    return " ".join(str(name).casefold().replace("_", " ").replace("-", " ").split())


def _is_name(title: str, stem: str) -> bool:
    """Return whether the title of a note names it, as "Speaker of the Guild" in a note "Trovus" does not."""
    own, of_file = ({word.full for word in words(text.replace("_", " "))} for text in (title, stem))
    return not own.isdisjoint(of_file) or any(map(str.isdecimal, stem))


def _values(front: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    values = (value for key in keys for name, value in front.items() if _plain_key(name) == key)
    return [text for value in values for text in _strings(value)]


def _texts(front: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    return [name for text in _values(front, keys) if (name := name_of(without_links(text)))]


def _as_written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _strings(value: Any) -> list[str]:
    """Return the texts of a value. `[[Target]]` without quotes is a list in a list."""
    listed = value if isinstance(value, list) else [value]
    named = (f"[[{each[0]}]]" if isinstance(each, list) and len(each) == 1 else each for each in listed)
    return [each for each in named if isinstance(each, str) and each.strip()]


def _type(named: str, tags: Iterable[str], folders: tuple[str, ...], *, is_played: bool) -> str:
    """Return the type of a note: what it says itself, also in words of its own, or what its place says."""
    of_tags = [found for tag in tags if (found := type_named(tag, of_folder=False))]
    is_played = is_played or (of_tags[:1] == ["npc"] and "player" in of_tags)
    said = type_named(named) or ("player" if is_played else next(iter(of_tags), None))
    if said or named:
        return said or named.casefold()
    return next(filter(None, map(type_named, (*reversed(folders), *tags))), "concept")


class _Vault:
    """Finds the notes that links mean; `missing` are targets that no note has."""

    def __init__(self, notes: Iterable[_Note], files: Iterable[str], root: str) -> None:
        self.missing: set[str] = set()
        self._root = root
        shortest = sorted(notes, key=lambda note: (len(note.key), note.key))
        self._by_stem = {note.stem: note for note in reversed(shortest)}
        self._by_end = _by_end((note.stem, note) for note in shortest)
        self._named: dict[str, _Note] = {}
        for note in shortest:
            for name in (note.name, *note.aliases):
                self._named.setdefault(name.casefold(), note)
        images = (file for file in files if (mimetypes.guess_type(file)[0] or "").startswith("image/"))
        own = (file for file in images if not any(word in file.casefold() for word in OBSIDIAN["placeholders"]))
        self._pictures = _by_end((file.casefold(), file) for file in sorted(own, key=lambda file: (len(file), file)))

    def document(self, note: _Note) -> SourceDocument:
        def is_hidden(target: str) -> bool:
            found = self._find(target, note)
            return found is not None and found.hidden

        if not note.hidden and any(is_hidden(link.target) for link in note.text.links if not link.hidden):
            note.text = note_text(note.body, is_hidden)  # a paragraph that names what is hidden is hidden
        links, attributes = self._links(note)
        secret = SourceText(note.text.hidden, hidden=True, page="secrets", why="; ".join(note.text.why))
        texts = SourceText(note.text.visible, note.hidden), secret
        pictures = (self._picture(each, note) for each in (*note.pictures, *note.text.pictures))
        own = (note.key, note.name, note.type, "note", note.file, note.folders, note.aliases, attributes, note.hidden)
        found = tuple(each for each in texts if each.text)
        return SourceDocument(*own, found, links, next(filter(None, pictures), ""), note.why)

    def _links(self, note: _Note) -> tuple[tuple[SourceLink, ...], dict[str, str]]:
        """Return the relations of a note, and the attributes that name no note."""
        found: dict[tuple[str, str], bool] = {}
        attributes: dict[str, str] = {}
        for link in (*note.links, *note.text.links):
            if (target := self._find(link.target, note)) is None:
                self.missing |= {link.target} - {""}
            else:
                end = (target.key, _relation(link.key, note) or _own_relation(link.key))
                found[end] = found.get(end, True) and (link.hidden or target.hidden)
        for name, value in note.values.items():
            target = self._find(value, note)
            if target and (relation := _relation(_plain_key(name), note)):
                found.setdefault((target.key, relation), target.hidden)
                continue
            parts = {part: self._find(part, note) for part in value.split(", ")}
            secret = {part: each for part, each in parts.items() if each and each.hidden and not note.hidden}
            for each in secret.values():
                found.setdefault((each.key, _own_relation(_plain_key(name))), True)
            if shown := ", ".join(part for part in parts if part not in secret):
                attributes[name] = shown
        places = sorted((hidden, target) for (target, relation), hidden in found.items() if relation == LOCATED_AT)
        for hidden, place in places[1:]:  # a thing is in one place
            found[place, LINKED_TO] = found.pop((place, LOCATED_AT)) and found.get((place, LINKED_TO), hidden)
        if not places and (above := self._place_of(note)):
            found[above.key, LOCATED_AT] = above.hidden
        named = {target for target, relation in found if relation != LINKED_TO}
        links = (
            SourceLink(target, relation, hidden or note.hidden)
            for (target, relation), hidden in found.items()
            if target != note.key and (relation != LINKED_TO or target not in named)
        )
        return tuple(links), attributes

    def _find(self, target: str, note: _Note) -> _Note | None:
        """Return the note that a link means: by its path, or the nearest one of that name."""
        path = target.casefold().removesuffix(".md").removesuffix(".markdown")
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(note.stem), path))
        if posixpath.basename(beside) == posixpath.basename(path) and beside in self._by_stem:
            return self._by_stem[beside]
        return self._by_end.get(f"/{posixpath.normpath(path).lstrip('./')}") or self._named.get(path)

    def _place_of(self, note: _Note) -> _Note | None:
        """Return the innermost place that a folder of a place is named after."""
        own = posixpath.basename(note.stem)
        for folder in reversed(note.folders) if note.type == "location" else ():
            place = self._find(folder, note)
            if place and place.type == "location" and folder.casefold() not in (own, note.name.casefold()):
                return place
        return None

    def _picture(self, written: str, note: _Note) -> str:
        """Return the path of a picture in the source; "" if it is not there."""
        beside = posixpath.normpath(posixpath.join(self._root, posixpath.dirname(note.key), written)).casefold()
        near = f"/{posixpath.normpath(written).casefold().lstrip('./')}"
        return self._pictures.get(f"/{beside}") or self._pictures.get(near, "")


def _by_end(paths: Iterable[tuple[str, _T]]) -> dict[str, _T]:
    """Return what the first path with an end of whole names has, for each whole path and its ends of a few names."""
    found: dict[str, _T] = {}
    for path, value in paths:
        names = path.split("/")
        for n in (*range(1, min(len(names), _MOST_NAMES) + 1), len(names)):
            found.setdefault("/" + "/".join(names[-n:]), value)
    return found


def _relation(key: str, note: _Note) -> str | None:
    """Return the type of relation that a key names; None for one of the author's own."""
    kind, known = type_named(key), known_type(key)
    if known is None and (kind == "location" or (key == "parent" and note.type in ("location", "concept"))):
        return LOCATED_AT
    if known is None and kind == "faction" and note.type in ("npc", "player"):
        return "MEMBER_OF"
    known = known or known_type(f"has {key}") or known_type(f"has {key[:-1]}")
    return None if known is None else known.spelled or known.type


def _own_relation(key: str) -> str:
    own = [word.text.upper() for word in words(key)]
    return "_".join(own) if 0 < len(own) <= _MOST_WORDS and own[0] != "RELATED" else LINKED_TO
