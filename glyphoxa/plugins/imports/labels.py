"""Read labels, names and properties in a source: signs that a text is not for players, and types of entities.

Signs of secrecy are also at the beginnings of lines. The words are data of all languages
(`language/data/*/imports.toml`), whatever the campaign's language is. How much a word says depends on where it is:

- Words for the game master, and phrases such as "for your eyes only", hide wherever they are in a label.
- "Keeper" or "Meister" may be anybody's trade: they hide alone in a label, and beside a word such as "only" or "notes".
- "Secret" and "hidden" describe many things: a label is hidden if it is nothing else, ends with them or goes on like
  "secret plans". A "secret door" is not.
- A label that denies something to players hides: "What the players do not know".
- A property that asks who may see a note hides it, unless its value is known to be open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, Literal

from glyphoxa.domain.campaign import ENTITY_TYPES
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.words import fold, words

Place = Literal["label", "folder", "name", "key"]
"""A heading or other label; a folder, tag or class; the name of a note or file; the key of a property."""
Hides = Literal["note", "value", ""]

_LONGEST_LABEL: Final = 60
_LONGEST_NAME: Final = 200
_FEW_WORDS: Final = 3
"""A property `secret` with as many words is the secret itself, with fewer the mark of its note."""
_INSIDE_WORD: Final = re.compile(r"(?<=[a-zà-ÿ])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z][a-z])|_")
"""Between the words of names such as `gmOnly`, `GMNotes` and `gm_notes`."""
_BEFORE_LABEL: Final = re.compile(r"[.!?;]\s|[|()\[\]{}]")
_IN_BRACKETS: Final = re.compile(r"[(\[{=]([^()\[\]{}=\n]{1,60})[)\]}=]")
_AFTER_FIRST: Final = re.compile(r"\s+[-–—]+\s+|\s*[–—]\s*|[.!]+\s+")
_NAME_PARTS: Final = re.compile(r"\s+[-–—]+\s*|\s*[-–—]+\s+|[–—:()\[\]{}]|-$")
_DECORATION: Final = " \t*_~=`#>+-!?:[](){}|•"


def is_marked(name: str, of: Place = "label") -> bool:
    """Return whether a label, a name or a key says that what belongs to it is not for players.

    >>> is_marked("GM-only"), is_marked("SL-Notizen"), is_marked("Secret Door"), is_marked("Dmitri")
    (True, True, False, False)
    """
    return _is_marked(name[:_LONGEST_NAME], of)


def is_mark(name: str, of: Place = "label") -> bool:
    """Return whether a label is nothing but a mark: "GM only", "the hidden notes"; as a name, "Keeper" is none."""
    return _is_mark(name[:_LONGEST_NAME], of)


def is_end(name: str) -> bool:
    """Return whether a label is the mark of the end of a part: "/GM", "end of secret", "GM END"."""
    tokens = _tokens(name[:_LONGEST_NAME])
    return is_mark(name) and (name.strip().startswith("/") or not _set("ends").isdisjoint((tokens[0], tokens[-1])))


@lru_cache(maxsize=8192)
def _is_marked(name: str, of: Place) -> bool:
    tokens = _tokens(name)
    whole = f" {' '.join(tokens)} "
    if _has(whole, "for_the_dm") or _is_denied(whole) or is_mark(name, of) or _is_preparation(tokens, of):
        return True
    if any(is_mark(part, "name") for part in _NAME_PARTS.split(name.replace("_", " "))):
        return True
    return any(_hides_here(tokens, at, of) for at in range(len(tokens)))


@lru_cache(maxsize=8192)
def _is_mark(name: str, of: Place) -> bool:
    whole = f" {' '.join(_tokens(name))} "
    marks = _set("secret_words") | _set("secret_nouns") | (frozenset() if of == "name" else _set("dm_roles"))
    short = whole
    for phrase in sorted(filter(lambda each: " " in each, _set("for_the_dm")), key=len, reverse=True):
        short = short.replace(f" {phrase} ", " gm ")
    rest = [token for token in short.split() if token not in _set("fillers") and not token.isdecimal()]
    marks |= _set("for_the_dm")
    is_all = any(token in marks for token in rest) and all(token in marks | _set("parts") for token in rest)
    return is_all or (len(rest) <= _FEW_WORDS and _is_denied(whole))


def _is_denied(whole: str) -> bool:
    """Return whether words deny something to players: "Not for players", "What the players do not know"."""
    return all(_has(whole, name) for name in ("players", "negations", "denied"))


def _is_preparation(tokens: Sequence[str], of: Place) -> bool:
    """Return whether a name is about the preparation of a session: "Session 9 prep", as a name also "Prep"."""
    telling = [token for token in tokens if token not in _set("fillers") and not token.isdecimal()]
    is_whole = len(telling) == 1 and of in ("name", "folder")
    is_about = not _set("preparation").isdisjoint((*telling[:1], *telling[-1:]))
    return is_about and (is_whole or not _set("sessions").isdisjoint(telling))


def _hides_here(tokens: Sequence[str], at: int, of: Place) -> bool:
    token, fillers = tokens[at], _set("fillers") - _set("of")
    before = next((each for each in reversed(tokens[:at]) if each not in fillers), "")
    after = next((each for each in tokens[at + 1 :] if each not in fillers), "")
    is_part = before in _set("parts") or after in _set("parts")
    is_of = not before and after in _set("of")
    if token in _set("secret_words"):
        is_noun = of == "label" and before not in _set("of") and (not after or is_of)
        return of == "key" or is_part or after in _set("secret_things") or is_noun
    if token in _set("secret_nouns"):
        return before not in _set("of") and (of == "label" or not before or not after)
    if token in _set("dm_roles"):
        return is_part or (tokens[0] in _set("for_whom") and not before)
    return token in _set("dm_titles") and is_part


def name_mark(names: Iterable[str], folders: Iterable[str]) -> str:
    """Return which name of a document, or of a folder around it, says that it is for the DM; "" for none."""
    found = [f"name {name!r}" for name in names if is_marked(name, "name")]
    return next(iter((*found, *(f"folder {each!r}" for each in folders if is_marked(each, "folder")))), "")


def text_mark(text: str) -> str:
    """Return the label in a paragraph that says that it is not for players; "" for none.

    A label is bold at the beginning of the text, or ends with `:`. A line, what is in brackets, and what is before a
    dash or is the first sentence of a line are labels if they are nothing but a mark.
    """
    text = text.replace("***", "**")
    bold = text[2:].partition(text[:2])[0] if text.startswith(("**", "__")) else ""
    return next((label.strip(_DECORATION) for label in (bold, *_labels(text)) if label and is_marked(label)), "")


def _labels(text: str) -> Iterator[str]:
    """Yield the labels in a text, and other parts that are nothing but marks."""
    for line in text.splitlines():
        for part in line.split(":")[:-1]:
            label = _BEFORE_LABEL.split(part.rstrip(" )]}"))[-1]
            if len(label) <= _LONGEST_LABEL:
                yield label
        first = _AFTER_FIRST.split(line.strip(_DECORATION), maxsplit=1)[0]
        for part in (line, first, *_IN_BRACKETS.findall(line)):
            if len(part) <= _LONGEST_LABEL and is_mark(part):
                yield part


def property_mark(key: str, values: Sequence[object]) -> Hides:
    """Return what a property hides: its note, or its own value. An unknown value hides as much as a known one."""
    said = [str(value).strip().casefold() for value in values if value is not None and str(value).strip()]
    is_no, is_yes = (all(each in _set(name) for each in said) for name in ("no", "yes"))
    tokens = [token for token in _tokens(key) if token not in _set("fillers") | _set("players")]
    if not said or (is_no and is_marked(key, "key")):
        return ""
    if is_marked(key, "key"):
        is_level = is_mark(key, "name") and (_set("parts") - _set("secret_words")).isdisjoint(tokens)
        is_short = len(" ".join(said).split()) < _FEW_WORDS
        return "note" if (is_yes and is_mark(key)) or (is_level and is_short) else "value"
    if asks_who_sees(key):
        return "" if is_yes or all(map(_is_open, said)) else "note"
    is_about_players = bool(tokens) or not _set("players").isdisjoint(_tokens(key))
    is_for_nobody = is_no and is_about_players and _set("found_keys").issuperset(tokens)
    if is_for_nobody or any(is_mark(each, "name") for each in said):
        return "note"
    return "value" if any(text_mark(each) not in ("", each) for each in said) else ""  # "Keeper" is an occupation


def is_answer(value: str) -> bool:
    """Return whether a value means yes or no."""
    return value.strip().casefold() in _set("yes") | _set("no")


def asks_who_sees(key: str) -> bool:
    """Return whether a property says who may see its note, such as `visibility` or `known to players`."""
    tokens = [token for token in _tokens(key) if token not in _set("fillers")]
    without_players = [token for token in tokens if token not in _set("players")]
    return not _set("visibility_keys").isdisjoint((" ".join(tokens), " ".join(without_players)))


def _is_open(value: str) -> bool:
    tokens = [token for token in _tokens(value) if token not in _set("fillers")]
    if len(tokens) >= _FEW_WORDS and tokens[0].isdecimal() and tokens[1].isdecimal():  # the day of publication
        return True
    return bool(tokens) and (_set("open_values").issuperset(tokens) or " ".join(tokens) in _set("open_values"))


def doubts_about(text: str) -> tuple[str, ...]:
    """Return words of a text that often tell a secret, for the game master to decide."""
    return tuple(dict.fromkeys(found.casefold() for found in _doubts().findall(text)))


@cache
def _doubts() -> re.Pattern[str]:
    return lexicon("imports").compile(r"\b{looks_secret}\b", flags=re.IGNORECASE)


def _has(whole: str, name: str) -> bool:
    return any(f" {mark} " in whole for mark in _set(name))


@cache
def _set(name: str) -> frozenset[str]:
    found = (" ".join(word.folded for word in words(each)) for each in lexicon("imports").words(name))
    return frozenset(each for each in found if each)


def _tokens(text: str) -> list[str]:
    """Return the words of a label, compounds in parts: "Meisterinfos" like "Meister-Infos"."""
    found = [word.folded for word in words(_INSIDE_WORD.sub(" ", text))]
    whole = f" {' '.join(part for word in found for part in _parts(word))} "
    for ordinary in _set("ordinary"):
        whole = whole.replace(f" {ordinary} ", " ")
    return whole.split()


@lru_cache(maxsize=8192)
def _parts(word: str) -> tuple[str, ...]:
    heads = _set("for_the_dm") | _set("dm_roles") | _set("secret_words")
    for at in range(2, len(word) - 2):
        first, last = word[:at], word[at:]
        for head in (first, first.removesuffix("s")):  # "Spielleitungsnotizen"
            if (head in heads and last in _set("parts")) or (head in _set("parts") and last in heads):
                return head, last
    return (word,)


# Types of entities

_OF_LANGUAGES: Final = {"places": "location", "factions": "faction", "items": "item", "ranks": "npc"}
"""Topics of the extractor's words that name things of a type."""
_MOST_PARTS: Final = 3
"""Limit of the words that name a type together: "place of interest"."""


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
