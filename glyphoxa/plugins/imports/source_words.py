"""The meaning of names and bytes in a source: types of entities, encodings."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from glyphoxa.dm.imported import SourceDocument, SourceLink, SourceText
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.words import fold, words

LOCATED_AT: Final = "LOCATED_AT"
_OF_LANGUAGES: Final = {"places": "location", "factions": "faction", "items": "item", "ranks": "npc"}
"""Topics of the extractor's words that name things of a type."""
_MOST_PARTS: Final = 3
"""Limit of the words that name a type together: "place of interest"."""
_FEW_BYTES: Final = 16
MOST_VALUES: Final = 30_000_000
"""Limit of values in a JSON text; they take a few GB. An export of 100 MB has about 10 million."""
_ENCODINGS: Final = ("cp1252", "cp1250", "cp1251", "cp1253", "cp932", "gb18030", "big5", "cp949", "mac_roman")


def type_named(name: str, *, of_folder: bool = True) -> str | None:
    """Return the type of entity that a folder, a tag or a key names, in singular or plural; None for none.

    Args:
        of_folder: False for a tag or title: only by our words and those of other tools, not by a word like "crown".

    >>> type_named("01 - NPCs"), type_named("Important Places"), type_named("Player Handouts")
    ('npc', 'location', None)
    """
    joined_by = lexicon("chronicle").words("joined_by")
    parts: list[list[str]] = []
    for word in words(name.replace("_", " ")):
        if not word.joins or word.full in joined_by:
            parts.append([])
        parts[-1].append(word.full)
    for types in _types()[: 2 if of_folder else 1]:
        # The last word says what it is: "Sword Coast". Of a path, the first part does: "npc/innkeeper".
        for part in parts:
            for end in range(len(part), 0, -1):
                for start in range(max(0, end - _MOST_PARTS), end):
                    type_ = types.get("".join(part[start:end]))
                    # "Player notes" are about anything.
                    if type_ and (type_ != "player" or end == len(part)):
                        return type_
    return None


@cache
def _types() -> tuple[Mapping[str, str], ...]:
    """Return the types that other tools and languages call by these words, and those of things that they name."""
    spoken = {word: type_ for topic, type_ in _OF_LANGUAGES.items() for word in lexicon("chronicle").words(topic)}
    of_tools = {word: type_ for type_, named in lexicon("imports").table("types").items() for word in named}
    every = ({**of_tools, **{type_: type_ for type_ in ENTITY_TYPES}}, spoken)
    folded = [[(fold(word), type_) for word, type_ in types.items()] for types in every]
    return tuple(
        {f"{word}{end}": type_ for word, type_ in types for end in ("", "s", "es")}
        | {f"{word[:-1]}ies": type_ for word, type_ in types if word.endswith("y")}
        for types in folded
    )


def encoding_of(content: bytes) -> str:
    """Return the encoding of a table: UTF-8, UTF-16, or else Windows-1252, which old versions of Excel write."""
    begins = content[:8]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in begins:  # without a byte order mark, Latin letters show it
        return "utf-16-le" if not any(begins[1::2]) else "utf-16-be" if not any(begins[::2]) else "utf-8-sig"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8-sig" if b"\0" in content else "cp1252"
    return "utf-8-sig"


def decoded(content: bytes, name: str) -> str:
    """Return the text of a file, whatever its encoding is. Raises: InvalidInput: It is no text."""
    encoding = encoding_of(content)
    n_foreign = sum(byte > 127 for byte in content[:4096])
    if encoding == "cp1252" and n_foreign >= _FEW_BYTES:  # of fewer letters, nothing can be told
        from charset_normalizer import from_bytes

        found = from_bytes(content[: 1 << 16], cp_isolation=list(_ENCODINGS))
        best, usual = found.best(), next((each for each in found if encoding in each.could_be_from_charset), None)
        if best is not None and (usual is None or usual.chaos > best.chaos):
            encoding = best.encoding
    text = content.decode(encoding, errors="replace")
    if "\0" in text:
        raise InvalidInput(f"{name!r} is no text file")
    return text


def json_of(content: bytes, name: str) -> object:
    """Return what a JSON file holds. Raises: InvalidInput: It is no JSON, or has too many values for an export."""
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:  # `[],[],[],` takes much more memory than its size
        raise InvalidInput(f"{name!r} has more than {MOST_VALUES:,} values: it is no export")
    try:
        try:
            return json.loads(content)
        except UnicodeDecodeError:
            return json.loads(decoded(content, name))
    except RecursionError:
        raise InvalidInput(f"{name!r} is nested too deeply") from None
    except ValueError as error:
        raise InvalidInput(f"{name!r} is damaged JSON: {shown(str(error))}") from None


def listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def objects_in(value: object) -> list[dict[str, Any]]:
    return [each for each in listed(value) if isinstance(each, dict)]


def fields_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def united(documents: Sequence[SourceDocument]) -> SourceDocument:
    """Return one document of those with the same name and type. What only the DM knew of any stays hidden."""
    hidden = all(each.hidden for each in documents)
    texts: dict[tuple[str, bool], SourceText] = {}
    links: dict[tuple[str, str], bool] = {}
    for each in documents:
        for text in each.texts:
            texts.setdefault((text.text, text.hidden), text)
        for link in each.links:
            links[link.target, link.type] = links.get((link.target, link.type), True) and link.hidden
    known = [each for each in documents if each.hidden == hidden]
    return replace(
        documents[0],
        aliases=tuple(dict.fromkeys(alias for each in known for alias in each.aliases)),
        attributes={name: value for each in reversed(known) for name, value in each.attributes.items()},
        hidden=hidden,
        texts=tuple(texts.values()),
        links=tuple(SourceLink(target, type_, is_secret) for (target, type_), is_secret in links.items()),
        portrait=next((each.portrait for each in known if each.portrait), ""),
        why=documents[0].why if hidden else "",
    )


def told_apart(documents: Iterable[SourceDocument]) -> list[SourceDocument]:
    """Add the name of its folder, or its file, to each document that shares its name and type with another one."""
    made = list(documents)
    for by_folder in (True, False):
        count = Counter((each.name.casefold(), each.type) for each in made)
        for n, each in enumerate(made):
            more = "".join(each.folders[-1:]) if by_folder else each.file
            if more and count[each.name.casefold(), each.type] > 1:
                made[n] = replace(each, name=f"{each.name} ({more})")
    return made
