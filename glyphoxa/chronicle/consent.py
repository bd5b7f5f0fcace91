"""Requests to forget or to remember again: what a player asks for, and which utterances it concerns.

The patterns of each language are in `glyphoxa/language/data/LANGUAGE/consent.toml`. Quotations of others are not
requests, and no NPC decides about being remembered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from glyphoxa.chronicle.talk import NumberedUtterance, SceneTalk
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.judgement import ConsentChange
from glyphoxa.language.lexicon import lexicon
from glyphoxa.language.sentence_form import sentences_of
from glyphoxa.world.events import Cause

WITHIN_MS: Final = 120_000
"""A request refers to an earlier utterance only if that was said at most this long before."""
_OWN_WORDS: Final = 4
"""With at least so many words before the request, it refers to its own line."""
_WORDS: Final = lexicon("consent")


class ConsentRequest(Enum):
    """What a line asks for: forget this line, forget what was said, or remember it again."""

    LINE = "line"
    WITHHOLD = "withhold"
    GIVE = "give"


_PATTERNS: Final[Mapping[ConsentRequest, re.Pattern[str]]] = {
    kind: _WORDS.pattern(kind.value) for kind in ConsentRequest
}
_NO_REQUEST: Final = _WORDS.pattern("no_request")


@dataclass(frozen=True, slots=True)
class ConsentEffect:
    """What a request changes; `cause` names the request, which counts once, however often it is read."""

    change: ConsentChange
    cause: Cause


def consent_request(text: str) -> ConsentRequest | None:
    """Return what the speaker asks for about being remembered; None for ordinary talk."""
    found = _found(text)
    return None if found is None else found[0]


def asks_to_forget(text: str) -> bool:
    """Return whether the speaker wants it not to be remembered ("Don't write that down", "Merk dir das nicht")."""
    return consent_request(text) in (ConsentRequest.LINE, ConsentRequest.WITHHOLD)


def consent_effect(said: NumberedUtterance, before: Sequence[NumberedUtterance]) -> ConsentEffect | None:
    """Return what an utterance changes about being remembered; None for ordinary talk and for NPCs.

    Args:
        before: Utterances before it in its session, the latest last.
    """
    spoken = said.utterance
    found = None if spoken.npc_id is not None else _found(spoken.text)
    if found is None:
        return None
    kind, n_words = found
    cause = Cause("player", spoken.at_ms, spoken.session_id, said.ordinal, spoken.id)
    if kind is ConsentRequest.GIVE:
        return ConsentEffect(ConsentChange(spoken.speaker_id, "given"), cause)
    meant = [spoken.id]
    if kind is ConsentRequest.WITHHOLD and n_words < _OWN_WORDS:
        own = (
            each.utterance
            for each in reversed(before)
            if each.utterance.npc_id is None and each.utterance.speaker_id == spoken.speaker_id
        )
        last = next(own, None)
        if last is not None and spoken.at_ms - last.at_ms <= WITHIN_MS:
            meant.insert(0, last.id)
    return ConsentEffect(ConsentChange(spoken.speaker_id, "withheld", tuple(meant)), cause)


def consent_effects(talk: SceneTalk, asked: Collection[UtteranceId]) -> tuple[ConsentEffect, ...]:
    """Return what a stretch changes about being remembered, in order.

    Args:
        asked: Its utterances that may be requests: all that were not judged to be ordinary.
    """
    said = [*talk.before, *talk.said]
    places = [n for n, each in enumerate(said) if n >= len(talk.before) and each.utterance.id in asked]
    effects = (consent_effect(said[n], said[:n]) for n in places)
    return tuple(effect for effect in effects if effect is not None)


def without_withheld(talk: SceneTalk, effects: Sequence[ConsentEffect]) -> SceneTalk | None:
    """Return the stretch without withheld utterances and the NPCs' answers to them; None if nothing is left."""
    withheld = {each for effect in effects if effect.change.state == "withheld" for each in effect.change.utterances}
    kept: list[NumberedUtterance] = []
    is_kept = True
    for each in (*talk.before, *talk.said):
        is_kept = each.utterance.id not in withheld and (is_kept or each.utterance.npc_id is None)
        if is_kept:
            kept.append(each)
    n_before = sum(each in talk.before for each in kept)
    return replace(talk, said=tuple(kept[n_before:]), before=tuple(kept[:n_before])) if kept[n_before:] else None


def _found(text: str) -> tuple[ConsentRequest, int] | None:
    """The first request of a line, and the number of words before it."""
    n_words = 0
    for sentence in sentences_of(text, ())[0]:
        plain = sentence.text
        for kind, pattern in () if _NO_REQUEST.search(plain) else _PATTERNS.items():
            if (match := pattern.search(plain)) is not None:
                return kind, n_words + len(plain[: match.start()].split())
        n_words += len(plain.split())
    return None
