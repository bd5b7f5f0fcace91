"""Names that are called ("Grimjaw, how is my blade?") told from names that are talked about.

Recognisers set commas unreliably, so a comma is one sign among others: a name that opens a sentence is called
unless a verb in the third person follows; a name set off by punctuation on both sides, or right after a greeting,
is called; one after a preposition is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glyphoxa.domain.ids import EntityId
from glyphoxa.speech.language.words import Word, words
from glyphoxa.speech.names.gazetteer import Gazetteer, Name

_OPENERS = frozenset(
    {"hey", "hi", "hello", "oh", "so", "well", "and", "but", "now", "good", "morning", "evening", "day", "night"}
    | {
        "listen",
        "excuse",
        "me",
        "please",
        "dear",
        "my",
        "friend",
        "thank",
        "thanks",
        "you",
        "wait",
        "stop",
        "no",
        "yes",
    }
    | {"greetings", "goodbye", "farewell", "sorry", "okay", "ok", "ah", "right"}
    | {"he", "hallo", "guten", "morgen", "abend", "tag", "danke", "bitte", "nein", "ja", "und", "aber", "also", "ach"}
)
"""Words that may stand before a called name (English and German)."""
_ABOUT = frozenset(
    {"about", "of", "to", "from", "with", "at", "for", "by", "on", "in", "like", "than", "see", "seen", "know", "trust"}
    | {"is", "does", "did", "has", "was", "ask", "tell"}
    | {"über", "von", "zu", "mit", "bei", "für", "gegen", "nach", "hat", "ist"}
)
_THIRD_PERSON = frozenset(
    {"is", "was", "has", "had", "says", "said", "told", "knows", "knew", "owes", "does", "did", "went", "will", "would"}
    | {"ist", "war", "hat", "hatte", "sagt", "sagte", "weiß", "wird", "and", "or", "und", "oder"}
)


@dataclass(frozen=True, slots=True)
class Call:
    """A person's name in a text.

    Attributes:
        position: Index of its first word.
        is_vocative: It is called, not talked about.
    """

    entity_id: EntityId
    name: str
    position: int
    is_vocative: bool


def is_person(name: Name) -> bool:
    return name.entity_type in ("npc", "player")


def find_calls(text: str, names: Gazetteer, *, can_be_called: Callable[[Name], bool] = is_person) -> tuple[Call, ...]:
    """The people named in a text, in order.

    A word that only sounds like a name ("bard" for Bart) counts where a name would be called: at the start or the
    end of a sentence, set off by punctuation. The transcript itself is never changed by it.

    Args:
        names: All names of the campaign: what belongs to the name of a place calls nobody.
    """
    spoken = words(text)
    mentions = names.mentions_in(spoken)
    calls = [
        Call(m.name.entity_id, m.name.canonical, m.first, _is_called(text, spoken, m.first, m.last, m.start, m.end))
        for m in mentions
        if can_be_called(m.name)
    ]
    if calls:
        return tuple(calls)
    taken = {at for m in mentions for at in range(m.first, m.last + 1)}
    return tuple(_sound_alikes(text, spoken, taken, names, can_be_called))


def _is_called(text: str, spoken: Sequence[Word], first: int, last: int, start: int, end: int) -> bool:
    before = [word.folded for word in _of_this_sentence(text, spoken[:first], start)]
    after = spoken[last + 1].folded if last + 1 < len(spoken) else ""
    if spoken[last].tail:  # "Grimjaw's forge"
        return False
    is_closed = not after or _has_punctuation(text[end : spoken[last + 1].start])
    if all(word in _OPENERS for word in before):
        return is_closed or after not in _THIRD_PERSON
    is_set_off = _has_punctuation(text[spoken[first - 1].end : start])
    return is_closed and is_set_off and before[-1] not in _ABOUT


def _of_this_sentence(text: str, before: Sequence[Word], start: int) -> list[Word]:
    begin = max((m.end() for m in re.finditer(r"[.!?…]", text[:start])), default=0)
    return [word for word in before if word.start >= begin]


def _has_punctuation(gap: str) -> bool:
    return re.search(r"[,.!?;:…—–]", gap) is not None


def _sound_alikes(
    text: str, spoken: Sequence[Word], taken: set[int], names: Gazetteer, can_be_called: Callable[[Name], bool]
) -> list[Call]:
    found = []
    for at, word in enumerate(spoken):
        if at in taken or len(word.folded) < 4 or not _is_called_strictly(text, spoken, at):
            continue
        name = _sounding_like(word.folded, names, can_be_called)
        if name is not None:
            found.append(Call(name.entity_id, name.canonical, at, True))
    return found


def _is_called_strictly(text: str, spoken: Sequence[Word], at: int) -> bool:
    word = spoken[at]
    gap_after = text[word.end : spoken[at + 1].start] if at + 1 < len(spoken) else "."
    gap_before = text[spoken[at - 1].end : word.start] if at else "."
    return _has_punctuation(gap_after) and _has_punctuation(gap_before) and len(spoken) > 1


def _sounding_like(folded: str, names: Gazetteer, can_be_called: Callable[[Name], bool]) -> Name | None:
    for code in names.coder(folded) if names.coder is not None else ():
        for name in names.by_code.get(code, ()):
            if name.is_shared or not can_be_called(name):
                continue
            if name.joined[0] == folded[0] and abs(len(name.joined) - len(folded)) <= 1:
                return name
    return None
