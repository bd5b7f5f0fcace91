"""The meaning of names and bytes in a source: types of entities, encodings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from rapidfuzz import fuzz, process

from glyphoxa.config.campaign_csv import encoding_of
from glyphoxa.dm.imported import SourceDocument
from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.domain.errors import InvalidInput, shown
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.words import words

LOCATED_AT: Final = "LOCATED_AT"
_OF_LANGUAGES: Final = {"places": "location", "factions": "faction", "items": "item", "ranks": "npc"}
"""Topics of the extractor's words that name things of a type."""
_CLOSE: Final = 88
_LONG: Final = 6
_FEW_BYTES: Final = 16
MOST_VALUES: Final = 30_000_000
"""Limit of values in a JSON text; they take a few GB. An export of 100 MB has about 10 million."""
_ENCODINGS: Final = ("cp1252", "cp1250", "cp1251", "cp1253", "cp932", "gb18030", "big5", "cp949", "mac_roman")


def type_named(name: str, *, of_folder: bool = True) -> str | None:
    """Return the type of entity that a folder, a tag or a key names, in singular or plural; None for none.

    Args:
        of_folder: False for a tag or title: only by our words and those of other tools, not by a word like "crown".

    >>> type_named("NPCs"), type_named("Important Places"), type_named("Campaign notes")
    ('npc', 'location', None)
    """
    named = [word.full for word in words(name.replace("-", "").replace("_", " "))]  # "Non-Player" is one word
    for types in _types()[: 3 if of_folder else 2]:
        # Of other words than ours, the last one says what it is: "Sword Coast".
        for word in named if types is _types()[0] else named[::-1]:
            cutoff = _CLOSE if len(word) >= _LONG else 100  # "owns" is not "towns"
            if found := process.extractOne(word, list(types), scorer=fuzz.ratio, score_cutoff=cutoff):
                return types[found[0]]
    return None


@cache
def _types() -> tuple[Mapping[str, str], ...]:
    spoken = {word: type_ for topic, type_ in _OF_LANGUAGES.items() for word in lexicon("chronicle").words(topic)}
    of_tools = {word: type_ for type_, named in lexicon("imports").tables("types") for word in named}
    every = ({type_: type_ for type_ in ENTITY_TYPES}, of_tools, spoken)
    return tuple({**{f"{word}s": type_ for word, type_ in types.items()}, **types} for types in every)


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


def check_json(content: bytes, name: str) -> None:
    """
    Raises:
        InvalidInput: It has so many values that they would fill the memory, whatever its size: `[],[],[],`.
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise InvalidInput(f"{name!r} has more than {MOST_VALUES:,} values: it is no export")


def json_of(content: bytes, name: str) -> object:
    """Return what a JSON file holds. Raises: InvalidInput: It is no JSON, or too large."""
    check_json(content, name)
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


def fields_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
