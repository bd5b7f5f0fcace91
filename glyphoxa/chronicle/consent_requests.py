"""Requests to forget or to remember again: what a player asks for, and which utterances it concerns.

The patterns of each language are in `glyphoxa/language/data/LANGUAGE/consent.toml`. Quotations of others are not
requests, and no NPC decides about being remembered.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from glyphoxa.domain.heard import Utterance
from glyphoxa.language.calls import tokens_of
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.sentences import parts_of, sentences
from glyphoxa.world.graph import ConsentChange

WITHIN_MS: Final = 120_000
"""A request refers to an earlier utterance only if that was said at most this long before."""
_MOST: Final = 500
"""Utterances among which a request finds what it refers to."""
_OWN_WORDS: Final = 4
"""With at least so many words before the request, it refers to its own line."""
_WORDS: Final = lexicon("consent")
_REPORTED: Final = re.compile(r"(?<=[:,] )[\"“„»][^\"”“«»]*[\"”“«]|[\"“„»][^\"”“«»]*(?:,[\"”“«]|[\"”“«],)")
"""Words of others, by the marks between them and their speaker: a player asks for nothing by repeating them."""


class ConsentRequest(Enum):
    """The request in a line: forget this line, forget what was said, or remember it again."""

    LINE = "line"
    WITHHOLD = "withhold"
    GIVE = "give"


_PATTERNS: Final[Mapping[ConsentRequest, re.Pattern[str]]] = {
    kind: _WORDS.pattern(kind.value) for kind in ConsentRequest
}
_NO_REQUEST: Final = _WORDS.pattern("no_request")


def consent_request(text: str) -> ConsentRequest | None:
    """Return what the speaker asks for about being remembered; None for ordinary talk."""
    found = _found(text)
    return None if found is None else found[0]


def asks_to_forget(text: str) -> bool:
    """Return whether the speaker wants it not to be remembered ("Don't write that down", "Merk dir das nicht")."""
    return consent_request(text) in (ConsentRequest.LINE, ConsentRequest.WITHHOLD)


def consent_change(said: Utterance, before: Sequence[Utterance]) -> ConsentChange | None:
    """Return what an utterance changes about being remembered; None for ordinary talk and for NPCs.

    Args:
        before: Utterances before it in its session, the latest last.
    """
    found = None if said.npc_id is not None else _found(said.text)
    if found is None:
        return None
    kind, n_words = found
    if kind is ConsentRequest.GIVE:
        return ConsentChange(said.speaker_id, "given")
    meant = [said.id]
    if kind is ConsentRequest.WITHHOLD and n_words < _OWN_WORDS:
        own = (each for each in reversed(before) if each.npc_id is None and each.speaker_id == said.speaker_id)
        last = next(own, None)
        if last is not None and said.at_ms - last.at_ms <= WITHIN_MS:
            meant.insert(0, last.id)
    return ConsentChange(said.speaker_id, "withheld", tuple(meant))


class SpokenRequests:
    """Lines that the players of one session asked to forget, without a database.

    As in the database, an NPC's answer belongs to the withheld line just before it, because it may repeat it.
    """

    def __init__(self) -> None:
        self._said: deque[Utterance] = deque(maxlen=_MOST)
        self._requests: list[ConsentChange] = []

    def take(self, utterance: Utterance) -> list[Utterance]:
        """Take the next utterance. Returns what may no longer be remembered from now on."""
        before = {each.id for each in self.withheld()}
        change = consent_change(utterance, self._said)
        self._said.append(utterance)
        if change is not None and change.state == "withheld":
            self._requests.append(change)
        elif change is not None:
            own = [each for each in self._requests if each.speaker == utterance.speaker_id]
            self._requests = [each for each in self._requests if each not in own[-1:]]
        return [each for each in self.withheld() if each.id not in before]

    def withheld(self) -> list[Utterance]:
        """Return what may not be remembered now."""
        asked = {each for request in self._requests for each in request.utterances}
        found: list[Utterance] = []
        is_withheld = False
        for utterance in self._said:
            is_withheld = utterance.id in asked or (is_withheld and utterance.npc_id is not None)
            if is_withheld:
                found.append(utterance)
        return found


def _found(text: str) -> tuple[ConsentRequest, int] | None:
    """The first request of a line, and the number of words before it."""
    n_words = 0
    for sentence in (each for part in parts_of(text) for each in sentences(_REPORTED.sub(" ", part))):
        plain = " ".join(token.text for token in tokens_of(sentence)).rstrip(" .!?…")
        for kind, pattern in () if _NO_REQUEST.search(plain) else _PATTERNS.items():
            if (match := pattern.search(plain)) is not None:
                return kind, n_words + len(plain[: match.start()].split())
        n_words += len(plain.split())
    return None
