"""Read the texts of campaigns as their authors mean them: without markup of other programs and invisible characters.

Authors copy from wikis, virtual tabletops, role-play programs and word processors. Known markup is converted,
characters that nobody sees are removed, and text is normalised to NFC, so that a name is the same however its accents
were typed. Each change that its author may not expect is a remark.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from glyphoxa.config.located_yaml import (
    QUOTES,
    SPACES,
    LocatedYaml,
    Node,
    Problem,
    character_in_words,
    odd_character,
    short,
)
from glyphoxa.domain.ids import INVISIBLE, plain_name
from glyphoxa.language.language_data import texts
from glyphoxa.language.plain_text import plain_text, unknown_markup

_NAMES: Final = frozenset({"name", "entity", "source", "target", "location", "aliases", "known_by", "known_in", "npcs"})
"""Keys whose values are names."""
_OWNER: Final = ("entity", "name")
"""Keys that name the block in which `{{char}}` stands."""
_QUOTES: Final = f"{QUOTES}\"'`"
_NO_QUOTES: Final = dict.fromkeys(map(ord, QUOTES))
_NOTHING: Final = "".join(map(chr, INVISIBLE))
_AROUND_KEY: Final = re.compile(
    rf"^[ \t{SPACES}]*(?:-[ {SPACES}{_NOTHING}]+)*"
    rf"(?:-[{SPACES}{_NOTHING}]|[\w ]{{1,40}}[{SPACES}]*:(?:[{SPACES}{_NOTHING}]|\s))",
    re.MULTILINE,
)
_ODD_SPACE: Final = re.compile(rf"[{SPACES}]|(?<=[-:])[{_NOTHING}]")


def with_plain_spaces(text: str) -> tuple[str, list[Problem]]:
    """Return a YAML text with plain spaces around its keys, each character at its place, and remarks."""
    remarks: list[Problem] = []

    def plain(found: re.Match[str]) -> str:
        odd = _ODD_SPACE.search(found[0])
        if odd is not None:
            line = text.count("\n", 0, found.start()) + 1
            remarks.append(Problem(line, f"{character_in_words(odd[0])} is read as a space: replace it with one"))
        return _ODD_SPACE.sub(" ", found[0])

    return (text, []) if text.isascii() else (_AROUND_KEY.sub(plain, text), remarks)


def quotes_in_name(name: str) -> str:
    """Return a remark on quotation marks around a name; "" if there are none."""
    bare = name.strip()
    if len(bare) < 2 or bare[0] not in _QUOTES or bare[-1] not in _QUOTES:
        return ""
    marks = " and ".join(dict.fromkeys(map(character_in_words, (bare[0], bare[-1]))))
    return f"{marks} in {short(bare)!r}: part of the name; write the name without quotation marks around it"


def as_meant(text: str, *, char: str, language: str) -> tuple[str, list[str]]:
    """Return a text as it is read, and remarks.

    Args:
        char: The name that `{{char}}` stands for; "" for none.
    """
    text = unicodedata.normalize("NFC", text)
    remarks: list[str] = []
    shown = text.translate(INVISIBLE)
    if hidden := next((each for each in text if ord(each) in INVISIBLE), ""):
        remarks.append(f"{short(shown)!r} contains {character_in_words(hidden)}, which is ignored: remove it")
    beside = shown.strip(" \t\r\n")
    if outside := odd_character("".join((beside[:1], beside[-1:])).translate(_NO_QUOTES)):
        remarks.append(
            f"{short(shown.strip())!r} has {character_in_words(outside)} beside it, which is ignored: remove it"
        )
    user: str = texts("prompt", language).value("user")
    plain = plain_text(shown, char=char, user=user)
    if plain != shown:
        joined = "\n" if "\n" in shown.strip() else " "
        plain = joined.join(line for line in map(str.strip, plain.splitlines()) if line)
        remarks.append(f"markup is read as plain text, {short(plain)!r}: write it without markup, and people by name")
    if unknown := unknown_markup(plain):
        remarks.append(f"{short(unknown)!r} looks like markup of another program and is kept: write what it stands for")
    return plain, remarks


def _is_link(node: Node) -> bool:
    inner = node.items[0].items if len(node.items) == 1 and node.is_flow else []
    return bool(inner) and node.items[0].is_flow and all(isinstance(item.value, str) for item in inner)


def read_as_meant(source: LocatedYaml) -> tuple[list[Problem], list[Problem]]:
    """Change all texts of a campaign file to what is meant; return remarks on texts, and on quotes around names."""
    root = source.value
    block = root.get("campaign") if isinstance(root, dict) else None
    language = str(block.get("language")) if isinstance(block, dict) else ""
    remarks: list[Problem] = []
    quoted: list[Problem] = []
    seen: set[int] = set()

    def change(node: Node, *, char: str, is_name: bool) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node.value, str):
            node.value, found = as_meant(node.value, char=char, language=language)
            remarks.extend(Problem(node.line, each) for each in found)
            if is_name and (remark := quotes_in_name(node.value)):
                quoted.append(Problem(node.line, remark))
        elif _is_link(node):
            # [[Old Mill]] without quotes is a link to its author, and a list within a list to YAML.
            node.value = ", ".join(str(item.value) for item in node.items[0].items)
            remarks.append(Problem(node.line, f"the link [[{node.value}]] is read as text: put it in quotes"))
        elif node.items:
            for item in node.items:
                change(item, char=char, is_name=is_name)
            node.value = [item.value for item in node.items]
        elif node.keys:
            owner = next((node.keys[key][1].value for key in _OWNER if key in node.keys), None)
            char = unicodedata.normalize("NFC", owner) if isinstance(owner, str) else char
            keys: dict[str, tuple[int, Node]] = {}
            for key, (line, value) in node.keys.items():
                plain = plain_name(key)
                if (odd := odd_character(key)) and plain != unicodedata.normalize("NFC", key):
                    remarks.append(
                        Problem(line, f"key {short(plain)!r}: {character_in_words(odd)} is ignored: remove it")
                    )
                change(value, char=char, is_name=plain in _NAMES)
                keys[plain] = line, value
            node.keys = keys
            node.value = {key: value.value for key, (_, value) in node.keys.items()}

    if source.root is not None:
        change(source.root, char="", is_name=False)
    return remarks, quoted
