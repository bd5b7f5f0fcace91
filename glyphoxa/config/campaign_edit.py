"""Change a campaign file: replace it, insert items into its text, read forms for such items, write a first file.

An edit inserts or replaces a block and copies all other text, so the author's comments, order and line breaks stay. A
YAML library that writes a whole document loses them.
"""

from __future__ import annotations

import hashlib
import json
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from glyphoxa.config.located_yaml import InvalidFile, Node, YamlPath, read_yaml, text_of
from glyphoxa.domain.campaign import DEFAULT_SCHEMA, Campaign, Compression, NodeType
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.files import PRIVATE, new_version
from glyphoxa.domain.ids import slug


def stamp_of(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal. Two texts with the same stamp are the same."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AtomicFile:
    """A text file that is replaced as a whole, or not at all. If `path` is a link, the link stays."""

    path: Path

    @property
    def can_be_written(self) -> bool:
        real = self.path.resolve()
        return os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)

    def read(self) -> str:
        """Return the text. Raises: NotFound: There is no such file. InvalidInput: It cannot be read, or is no text."""
        return text_of(self.path)

    def replace(self, text: str, *, base: str) -> None:
        """Replace the whole file atomically. Its mode stays.

        Args:
            base: The stamp of the expected current text.

        Raises:
            InvalidInput: The file was changed, or cannot be written. It is unchanged.
        """
        if stamp_of(self.read()) != base:
            raise InvalidInput(f"{self.path.name} was changed by somebody else in the meantime; nothing was written")
        real = self.path.resolve()
        try:
            with new_version(real, mode=PRIVATE) as file:
                file.write(text.encode())
                os.fchmod(file.fileno(), real.stat().st_mode & 0o777)
        except OSError as error:
            raise InvalidInput(f"{self.path}: cannot be written: {error.strerror}") from error


# Insertions: new list items in the text of a campaign file.

_WIDTH: Final = 110


@dataclass(frozen=True, slots=True)
class Insertion:
    """A new last item of a list in a campaign file.

    Attributes:
        place: Keys and indices that lead to the list.
        value: A text, or keys with texts, switches and lists of these.
    """

    place: YamlPath
    value: str | dict[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of a name in a section of a campaign file, instead of those that it has there.

    Attributes:
        place: The section and the name. A section that lists only names becomes one with settings.
        value: Keys with texts, numbers, switches and lists or keys of these.
    """

    place: tuple[str, str]
    value: dict[str, object]


def insert(text: str, *changes: Insertion | Setting) -> str:
    """Insert items into a text.

    Args:
        text: A YAML document for `glyphoxa.config.located_yaml.read_yaml`.

    Raises:
        InvalidInput: The place of an item was not found; the message shows the block to write by hand.
    """
    for change in changes:
        root = _root_of(text)
        before = {} if root is None else root.value or {}
        if not isinstance(before, dict):
            raise InvalidInput("this text has no sections: a campaign file begins with `campaign:`")
        try:
            if isinstance(change, Setting):
                wanted, text = _with_setting(before, change), _set(text, root, change)
            else:
                wanted, text = _with(before, change), _inserted(text, root, change)
            new_root = _root_of(text)
        except (InvalidFile, ValueError):
            new_root = None
        if new_root is None or new_root.value != wanted:
            at = ".".join(str(step) for step in change.place)
            block = _settings({at: change.value}) if isinstance(change, Setting) else _block(change.value)
            block = textwrap.indent(block.rstrip(), "  ")
            raise InvalidInput(f"no place under `{at}:` was found; add this there by hand:\n{block}")
    return text


def _root_of(text: str) -> Node | None:
    return read_yaml(Path("the campaign file"), text).root


def _with(value: Any, insertion: Insertion) -> Any:
    """Return the expected value of the document."""
    if not insertion.place:
        return [*(value or []), insertion.value]
    step, rest = insertion.place[0], Insertion(insertion.place[1:], insertion.value)
    if isinstance(step, int):
        return [_with(each, rest) if i == step else each for i, each in enumerate(value)]
    return {**value, step: _with(value.get(step), rest)}


def _inserted(text: str, root: Node | None, insertion: Insertion) -> str:
    found = _find(root, insertion.place)
    if found is None or not isinstance(found.value, list):
        return _with_new_list(text, root, insertion)
    if found.is_flow:
        at = found.end - 1
        comma = ", " if found.items else ""
        return text[:at].rstrip(" ") + comma + _in_line(insertion.value) + text[at:]
    return _below(text, found, _block(insertion.value))


def _with_new_list(text: str, root: Node | None, insertion: Insertion) -> str:
    """Begin a list: at the end of the document, or after the last key of a block."""
    *above, name = insertion.place
    block = f"{name}:\n{textwrap.indent(_block(insertion.value), '  ')}"
    if not above:
        return _at_end(text, block)
    owner = _find(root, tuple(above))
    if owner is None or owner.is_flow or not owner.keys:
        raise ValueError("only a block of keys can get another key")
    return _below(text, owner, block)


def _at_end(text: str, block: str) -> str:
    ending = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{ending}\n{block}"


def _below(text: str, owner: Node, block: str) -> str:
    """Put a block of lines after the last line of a value, as its last part."""
    at = _end_of_line(text, _end(owner))
    return f"{text[:at]}\n{textwrap.indent(block, ' ' * owner.column).rstrip()}{text[at:]}"


def _with_setting(value: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    section, name = setting.place
    before = value.get(section) or {}
    if isinstance(before, list):
        before = {str(each): {} for each in before}
    if not isinstance(before, dict):
        raise ValueError("a section has names")
    return {**value, section: {**before, name: setting.value}}


def _set(text: str, root: Node | None, setting: Setting) -> str:
    """Replace the settings of one name; a list of names becomes a block of settings."""
    section, name = setting.place
    if root is None or section not in root.keys:
        return _at_end(text, _settings(_with_setting({}, setting)))
    line, owner = root.keys[section]
    if owner.is_flow or not owner.keys:
        block = _settings({section: _with_setting(root.value, setting)[section]})
        end = owner.end if owner.is_flow else _end_of_line(text, _end(owner))
        return text[: _start_of_line(text, line)] + block.rstrip() + text[end:]
    block = _settings({name: setting.value})
    if name not in owner.keys:
        return _below(text, owner, block)
    line, value = owner.keys[name]
    block = textwrap.indent(block, " " * owner.column).rstrip()
    return text[: _start_of_line(text, line)] + block + text[_end_of_line(text, _end(value)) :]


def _settings(value: Mapping[str, object]) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=None)


def _start_of_line(text: str, line: int) -> int:
    return sum(len(each) + 1 for each in text.split("\n")[: line - 1])


def _find(node: Node | None, place: YamlPath) -> Node | None:
    for step in place:
        if node is None:
            return None
        if isinstance(step, int):
            node = node.items[step] if step < len(node.items) else None
        else:
            node = node.keys[step][1] if step in node.keys else None
    return node


def _end(node: Node) -> int:
    """Return the index after the last character of a value. `Node.end` of a block is where the next value begins."""
    parts = node.items or [value for _, value in node.keys.values()]
    return node.end if node.is_flow or not parts else max(map(_end, parts))


def _end_of_line(text: str, index: int) -> int:
    """Return the end of the last line of a value. The node of a folded text ends at the next line."""
    while index and text[index - 1] in "\n\r \t":
        index -= 1
    found = text.find("\n", index)
    return len(text) if found < 0 else found


def _block(value: str | dict[str, object]) -> str:
    return yaml.safe_dump([value], sort_keys=False, allow_unicode=True, width=_WIDTH)


def _in_line(value: str | dict[str, object]) -> str:
    dumped = yaml.safe_dump([value], sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=True)
    return dumped.strip().removeprefix("[").removesuffix("]")


# Forms of the desk, read as items of the campaign file.

Form = Mapping[str, str]


def additions(form: Form, campaign: Campaign | None) -> Sequence[Insertion | Setting]:
    """Return what a form adds or sets.

    Args:
        form: `add` is one of `KINDS`, the others are its fields. Empty fields are left out.
        campaign: The current content of the file; None while it has mistakes.

    Raises:
        InvalidInput: There is no such kind, or a required field is empty.
    """
    kind = form.get("add", "")
    if kind not in KINDS:
        raise InvalidInput(f"cannot add a {kind!r}, {did_you_mean(kind, KINDS)}")
    return KINDS[kind](form, campaign)


def _person(form: Form, campaign: Campaign | None) -> Sequence[Insertion]:
    """Add an NPC that speaks: its entity unless the file has it, the NPC, and its place in a scene.

    A form with `entity`, the id of an entity of the world, adds an NPC for that one.
    """
    name, entity_id = _need(form, "name", "an NPC has a name"), _field(form, "entity")
    attributes = _filled({"occupation": _field(form, "occupation"), "description": _field(form, "description")})
    own_id = "" if entity_id == slug(name) else entity_id
    aliases = _names(form, "aliases")
    entity = _filled({"name": name, "id": own_id, "type": "npc", "aliases": aliases, "attributes": attributes})
    in_file = {str(each.id): each.name for each in (() if campaign is None else campaign.entities)}
    made = [] if entity_id in in_file else [Insertion(("entities",), entity)]
    name = in_file.get(entity_id, name)
    texts = {"voice": _field(form, "voice"), "persona": _field(form, "persona")}
    examples = read_yaml(Path("examples"), form.get("examples") or "[]").value
    npc = _filled({"entity": name, **texts, "examples": examples})
    made.append(Insertion(("npcs",), npc))
    if scene := _field(form, "scene"):
        ids = [] if campaign is None else [str(each.id) for each in campaign.scenes]
        if scene not in ids:
            raise InvalidInput(f"there is no scene {scene!r}, {did_you_mean(scene, ids)}")
        made.append(Insertion(("scenes", ids.index(scene), "npcs"), name))
    return made


def _entity(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    entity = {
        "name": _need(form, "name", "an entity has a name"),
        "type": _need(form, "type", "an entity has a type"),
        "aliases": _names(form, "aliases"),
        "attributes": _filled({"description": _field(form, "description")}),
        "known_by": _names(form, "known_by"),
    }
    return [Insertion(("entities",), _filled(entity))]


def _relationship(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    relationship = {
        "source": _need(form, "source", "a relation begins at an entity"),
        "type": _need(form, "type", "a relation has a type, such as KNOWS"),
        "target": _need(form, "target", "a relation ends at an entity"),
        "known_by": _names(form, "known_by"),
    }
    return [Insertion(("relationships",), _filled(relationship))]


def _player(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    player: dict[str, object] = {"name": _need(form, "name", "a player has the name of the character")}
    if form.get("dm"):
        player["dm"] = True
    return [Insertion(("players",), player)]


def _scene(form: Form, campaign: Campaign | None) -> Sequence[Insertion]:
    """Add a scene, and its place if there is none of that name."""
    place = _need(form, "location", "a scene has a place")
    known = set() if campaign is None else {each.name.casefold() for each in campaign.entities}
    made = [] if place.casefold() in known else [Insertion(("entities",), {"name": place, "type": "location"})]
    texts = {part: _field(form, part) for part in ("time_of_day", "description", "read_aloud")}
    scene = {"location": place, "npcs": _names(form, "npcs"), **_filled(texts)}
    return [*made, Insertion(("scenes",), scene)]


def _secret(form: Form, _: Campaign | None) -> Sequence[Insertion]:
    secret = {
        "text": _need(form, "text", "a secret has a text"),
        "known_by": _names(form, "known_by"),
        "about": _field(form, "about"),
    }
    return [Insertion(("secrets",), _filled(secret))]


def _type(form: Form, _: Campaign | None) -> Sequence[Setting]:
    """Set a type of entity. Numbers that are none are kept, for the file's own error."""
    name = _need(form, "name", "a type has a name")
    usual = _all_settings(DEFAULT_SCHEMA.named(name))
    limits = {key: _number(form, key) for key in asdict(Compression())}
    given: dict[str, object] = {
        "fields": _names(form, "fields"),
        **{key: bool(form.get(key)) for key in ("appends", "always_inject", "active")},
        "instructions": _field(form, "instructions"),
        "every": _number(form, "every"),
        "compression": _filled(limits) if form.get("compress") else "none",
    }
    own = {key: each for key, each in given.items() if each not in ("", [], usual[key])}
    return [Setting(("entity_types", name), own)]


def type_form(name: str, node: NodeType) -> dict[str, object]:
    """Return the form that sets a type to what it is."""
    limits = {**asdict(node.compression or Compression()), "compress": node.compression is not None}
    return {**asdict(node), "name": name, "fields": ", ".join(node.fields), **limits}


def _all_settings(node: NodeType) -> dict[str, object]:
    limits = "none" if node.compression is None else asdict(node.compression)
    return {**asdict(node), "fields": [*node.fields], "compression": limits}


def _number(form: Form, name: str) -> int | str:
    text = _field(form, name)
    return int(text) if text.isascii() and text.isdecimal() else text


KINDS: Final[Mapping[str, Callable[[Form, Campaign | None], Sequence[Insertion | Setting]]]] = {
    "person": _person,
    "entity": _entity,
    "relationship": _relationship,
    "player": _player,
    "scene": _scene,
    "secret": _secret,
    "type": _type,
}


def _field(form: Form, name: str) -> str:
    """Return a field in one line: a browser ends the lines of a text area with CR LF."""
    return " ".join(form.get(name, "").split())


def _need(form: Form, name: str, why: str) -> str:
    if value := _field(form, name):
        return value
    raise InvalidInput(f"{name} is empty: {why}")


def _names(form: Form, name: str) -> list[str]:
    """Split a list at its commas."""
    return [each.strip() for each in _field(form, name).split(",") if each.strip()]


def _filled(value: Mapping[str, object]) -> dict[str, object]:
    return {name: each for name, each in value.items() if each not in ("", [], {})}


# A first campaign file: small, with comments that tell the author how to continue.

_TEMPLATES: Final = Path(__file__).parent / "templates"
_LANGUAGES: Final = ("en", "de")


def template(name: str, language: str, *, npc: str, player: str) -> str:
    """Return the text of a first campaign file. It can be played unchanged.

    Args:
        language: A BCP 47 tag such as en.
    """
    wanted = language.split("-")[0]
    file = f"campaign.{wanted if wanted in _LANGUAGES else 'en'}.yaml"
    text = (_TEMPLATES / file).read_text("utf-8")
    for mark, value in (("CAMPAIGN", name), ("LANGUAGE", language), ("NPC", npc), ("PLAYER", player)):
        # Unquoted in a folded text, elsewhere as a JSON string, which is always a valid YAML string.
        text = text.replace(f"<<{mark}>>", value).replace(f"<{mark}>", json.dumps(value, ensure_ascii=False))
    return text
