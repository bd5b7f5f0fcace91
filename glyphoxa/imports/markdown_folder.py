"""Read a folder of Markdown notes: an Obsidian vault, or what other tools export.

A note becomes a document, named after its file. Its type is what its front matter, its tags or its folders say. Links
between notes are relations: the key in the front matter or before `::` names their type.
"""

from __future__ import annotations

import json
import mimetypes
import posixpath
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from glyphoxa.config.campaign_checks import wrong_attribute
from glyphoxa.config.located_yaml import read_yaml
from glyphoxa.dm.imported import SourceDocument, SourceLink, SourceText, SourceWorld
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.imports.files import SourceFiles
from glyphoxa.imports.markdown_text import NoteLink, NoteText, note_text, wikilinks, without_links
from glyphoxa.imports.source_words import LOCATED_AT, RELATED_TO, decoded, is_for_dm, name_of, told_apart, type_named
from glyphoxa.language.relations import known_type
from glyphoxa.language.words import words

_SUFFIXES: Final = (".md", ".markdown")
_DRAWING: Final = ".excalidraw.md"
_TEMPLATES: Final = (
    (".obsidian/templates.json", "folder"),
    (".obsidian/plugins/templater-obsidian/data.json", "templates_folder"),
)
_MOST_BYTES: Final = 4 << 20
_LONGEST_VALUE: Final = 200
_MOST_WORDS: Final = 4
"""Of a key that names a relation."""
_TYPE, _NAME, _ALIASES, _TAGS = ("type", "entity type"), ("name", "title"), ("aliases", "alias"), ("tags", "tag")
_PICTURE: Final = ("image", "picture", "portrait", "avatar", "cover", "banner")
_OF_OBSIDIAN: Final = ("cssclass", "cssclasses", "publish", "permalink", "created", "updated", "modified", "date")
_OWN: Final = frozenset((*_TYPE, *_NAME, *_ALIASES, *_TAGS, *_PICTURE, *_OF_OBSIDIAN))
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")
_PARENT: Final = "parent"
_MEMBER_OF: Final = "MEMBER_OF"


@dataclass(slots=True)
class _Note:
    """A note as it is read.

    Attributes:
        file: Its path in the source.
        key: Its path in the vault, with its suffix.
        links: Of its text and its front matter.
        values: Of the front matter, that may name a note.
        passages: Prose of the front matter.
    """

    file: str
    key: str
    name: str
    type: str
    folders: tuple[str, ...]
    text: NoteText
    hidden: bool
    aliases: tuple[str, ...] = ()
    links: list[NoteLink] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    passages: list[SourceText] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


def read_markdown(files: SourceFiles) -> SourceWorld:
    """
    Raises:
        InvalidInput: It has no Markdown notes, or a note cannot be read.
        NotInstalled: The libraries that read Markdown are missing.
    """
    remarks: list[str] = []
    root = _root(files)
    templates = _templates(files, root)
    notes: list[_Note] = []
    for file in files.names:
        key = file.removeprefix(root)
        if _is_note(file, key, templates):
            content = files.read(file)
            if len(content) > _MOST_BYTES:
                remarks.append(f"{key} is left out: larger than {_MOST_BYTES >> 20} MB, split it")
            else:
                notes.append(_note(file, key, decoded(content, file), remarks))
    if not notes:
        raise InvalidInput(f"{files.path}: no Markdown notes in it; name a vault, a folder of .md files, or one note")
    vault = _Vault(notes, files.names, root)
    documents = told_apart([vault.document(note) for note in notes])
    if n_open := sum(not each.hidden for each in documents):
        remarks.append(
            f"{n_open} notes have no mark that hides them, such as `hidden: true`: accepted, everybody may know them"
        )
    if vault.missing:
        shown_ones = shown(", ".join(sorted(vault.missing)))
        remarks.append(f"links to {len(vault.missing)} notes that do not exist are left out: {shown_ones}")
    path = files.path.resolve()
    name = root.rstrip("/") or (path.name if path.is_dir() else path.stem)
    return SourceWorld("markdown", name, name, tuple(documents), tuple(remarks))


def _root(files: SourceFiles) -> str:
    """Return the folder that a zip has everything in, with `/`; "" for none."""
    tops = {name.partition("/")[0] for name in files.names if not name.startswith("__MACOSX/")}
    is_one = len(tops) == 1 and not files.path.is_dir() and all("/" in name for name in files.names)
    return f"{tops.pop()}/" if is_one else ""


def _templates(files: SourceFiles, root: str) -> tuple[str, ...]:
    """Return the folders with templates for notes, with `/`."""
    found: list[str] = []
    for file, key in _TEMPLATES:
        if root + file in files.names:
            with suppress(ValueError, RecursionError, AttributeError):
                folder = json.loads(decoded(files.read(root + file), file)).get(key)
                found += [f"{folder.strip('/')}/"] if folder and folder.strip("/") else []
    return tuple(found)


def _is_note(file: str, key: str, templates: tuple[str, ...]) -> bool:
    path = PurePosixPath(file)
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    is_markdown = path.suffix.casefold() in _SUFFIXES and not file.endswith(_DRAWING)
    return is_markdown and not is_hidden and not key.startswith(templates)


def _note(file: str, key: str, text: str, remarks: list[str]) -> _Note:
    front, body, hidden = _front_matter(key, text, remarks)
    path = PurePosixPath(key)
    read = note_text(body)
    tags = (*_texts(front, _TAGS), *read.tags)
    folders = path.parent.parts
    named = next(iter(_texts(front, _NAME)), "") or path.stem
    note = _Note(
        file,
        key,
        name_of(named) or path.stem,
        _type(next(iter(_texts(front, _TYPE)), ""), tags, folders),
        folders,
        read,
        hidden=hidden or any(map(is_for_dm, (*tags, *folders))),
        aliases=tuple(dict.fromkeys(_texts(front, _ALIASES))),
        links=list(read.links),
        pictures=[*(next(wikilinks(each), each) for each in _texts(front, _PICTURE)), *read.pictures],
    )
    for name, value in front.items():
        _take_value(note, _plain_key(name), name, value)
    return note


def _front_matter(key: str, text: str, remarks: list[str]) -> tuple[Mapping[str, Any], str, bool]:
    """Return the front matter, the text after it, and whether the note is hidden because nobody can tell."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text, False
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, text, False
    try:
        value = read_yaml(Path(key), "\n".join(("", *lines[1:end]))).value
    except InvalidInput as error:
        remarks.append(f"{str(error).splitlines()[0]}: the front matter is not read, and the note is hidden")
        return {}, "\n".join(lines[end + 1 :]), True
    return value if isinstance(value, dict) else {}, "\n".join(lines[end + 1 :]), False


def _take_value(note: _Note, key: str, name: str, value: Any) -> None:
    texts = _strings(value)
    if is_for_dm(key):
        is_mark = isinstance(value, bool) or (len(texts) == 1 and texts[0].casefold() in (*_YES, *_NO))
        if is_mark:
            note.hidden = note.hidden or value is True or (not isinstance(value, bool) and texts[0].casefold() in _YES)
        elif texts:
            note.passages.append(SourceText(", ".join(map(without_links, texts)), hidden=True, page=str(name)))
            note.links += [NoteLink(each, hidden=True) for text in texts for each in wikilinks(text)]
    elif "publish" in key.split():
        note.hidden = note.hidden or value is False or any(text.casefold() in _NO for text in texts)
    elif key not in _OWN:
        note.links += [NoteLink(each, key) for text in texts for each in wikilinks(text)]
        said = ", ".join(without_links(text) for text in texts if not text.startswith("[["))
        if said and (len(said) > _LONGEST_VALUE or wrong_attribute(name)):
            note.passages.append(SourceText(said, note.hidden, str(name)))
        elif said:
            note.values[name] = said


def _plain_key(name: str) -> str:
    return " ".join(str(name).casefold().replace("_", " ").replace("-", " ").split())


def _texts(front: Mapping[str, Any], keys: tuple[str, ...]) -> list[str]:
    found = [text for name, value in front.items() if _plain_key(name) in keys for text in _strings(value)]
    return [name for text in found if (name := name_of(text))]


def _strings(value: Any) -> list[str]:
    """Return the texts of a value. `[[Target]]` without quotes is a list in a list."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if not isinstance(value, list):
        return []
    named = (f"[[{each[0]}]]" if isinstance(each, list) and each else each for each in value)
    return [each for each in named if isinstance(each, str) and each.strip()]


def _type(named: str, tags: Iterable[str], folders: tuple[str, ...]) -> str:
    """Return the type of a note: what it says itself, also in words of its own, or what its place says."""
    said = type_named(named) or next(filter(None, (type_named(tag, of_tools=True) for tag in tags)), None)
    if said or named:
        return said or named.casefold()
    return next(filter(None, map(type_named, (*reversed(folders), *tags))), "concept")


class _Vault:
    """Finds the notes that links mean.

    Attributes:
        missing: Targets that no note has.
    """

    def __init__(self, notes: Iterable[_Note], files: Iterable[str], root: str) -> None:
        self.missing: set[str] = set()
        self._root = root
        self._pictures: dict[str, list[str]] = {}
        for file in files:
            if (mimetypes.guess_type(file)[0] or "").startswith("image/"):
                self._pictures.setdefault(posixpath.basename(file).casefold(), []).append(file)
        self._notes = {note.key: note for note in notes}
        self._named: dict[str, list[str]] = {}
        self._places: dict[str, list[str]] = {}
        for note in self._notes.values():
            path = PurePosixPath(note.key)
            for name in {path.stem.casefold(), note.name.casefold(), *(alias.casefold() for alias in note.aliases)}:
                self._named.setdefault(name, []).append(note.key)
            if note.type == "location":
                self._places.setdefault(path.stem.casefold(), []).append(note.key)

    def document(self, note: _Note) -> SourceDocument:
        texts = (
            SourceText(note.text.visible, note.hidden),
            SourceText(note.text.hidden, hidden=True, page="secrets"),
            *(replace(text, hidden=note.hidden or text.hidden) for text in note.passages),
        )
        links, attributes = self._links(note)
        return SourceDocument(
            note.key,
            note.name,
            note.type,
            "note",
            note.file,
            note.folders,
            tuple(alias for alias in note.aliases if alias.casefold() != note.name.casefold()),
            attributes,
            note.hidden,
            tuple(text for text in texts if text.text),
            links,
            next((found for each in note.pictures if (found := self._picture(each, note))), ""),
        )

    def _links(self, note: _Note) -> tuple[tuple[SourceLink, ...], dict[str, str]]:
        """Return the relations and the attributes that are none."""
        found: dict[tuple[str, str], bool] = {}
        attributes: dict[str, str] = {}
        for link in note.links:
            if (target := self._find(link.target, note)) is None:
                self.missing.add(link.target)
            else:
                relation = _relation(link.key, note, self._notes[target])
                found[target, relation] = found.get((target, relation), True) and link.hidden
        for name, value in note.values.items():
            other = self._find(value, note)
            if other and (known := _known_relation(_plain_key(name), note, self._notes[other])):
                found[other, known] = False
            else:
                attributes[name] = value
        places = [target for target, relation in found if relation == LOCATED_AT]
        for place in places[1:]:  # a thing is in one place
            found[place, RELATED_TO] = found.pop((place, LOCATED_AT))
        if not places and (above := self._place_of(note)):
            found[above, LOCATED_AT] = False
        named = {target for target, relation in found if relation != RELATED_TO}
        links = tuple(
            SourceLink(target, relation, hidden or note.hidden or self._notes[target].hidden)
            for (target, relation), hidden in found.items()
            if target != note.key and (relation != RELATED_TO or target not in named)
        )
        return links, attributes

    def _find(self, target: str, note: _Note) -> str | None:
        """Return the key of the note that a link means: by its path, or the nearest one of that name."""
        path = target.casefold().removesuffix(".md").removesuffix(".markdown")
        name = path.rpartition("/")[2]
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(note.key), path)).casefold()
        keys = self._named.get(name, ()) if name else ()
        stems = {key: posixpath.splitext(key)[0].casefold() for key in keys}
        if "/" in path:
            wanted = posixpath.normpath(path).lstrip("./")
            keys = [key for key in keys if stems[key] == beside or f"/{stems[key]}".endswith(f"/{wanted}")]

        def rank(key: str) -> tuple[bool, bool, int, str]:
            return stems[key] != beside, posixpath.basename(stems[key]) != name, len(key), key

        return min(keys, key=rank, default=None)

    def _place_of(self, note: _Note) -> str | None:
        """Return the innermost place that a folder of a place is named after."""
        if note.type == "location":
            for folder in reversed(note.folders):
                places = [key for key in self._places.get(folder.casefold(), ()) if key != note.key]
                if places and PurePosixPath(note.key).stem.casefold() != folder.casefold():
                    return min(places, key=lambda key: (len(key), key))
        return None

    def _picture(self, written: str, note: _Note) -> str:
        """Return the path of a picture in the vault; "" if it has none."""
        beside = posixpath.normpath(posixpath.join(self._root, posixpath.dirname(note.key), written)).casefold()
        name = posixpath.normpath(written).casefold().lstrip("./")
        files = self._pictures.get(posixpath.basename(name), ())
        near = [file for file in files if file.casefold() == beside or f"/{file.casefold()}".endswith(f"/{name}")]
        return min(near, key=lambda file: (file.casefold() != beside, len(file), file), default="")


def _relation(key: str, note: _Note, target: _Note) -> str:
    """Return the type of a relation by the key that names it."""
    if not key:
        return RELATED_TO
    own = "_".join(word.text.upper() for word in words(key))
    return _known_relation(key, note, target) or (own if own.count("_") < _MOST_WORDS else RELATED_TO)


def _known_relation(key: str, note: _Note, target: _Note) -> str | None:
    kind = type_named(key)
    if kind == "location" or (key == _PARENT and "location" in (note.type, target.type)):
        return LOCATED_AT
    if kind == "faction" and note.type in ("npc", "player"):
        return _MEMBER_OF
    found = next((found for form in (key, f"has {key}", f"has {key[:-1]}") if (found := known_type(form))), None)
    return None if found is None else found.spelled or found.type
