"""Finds what a group does not play (its lines and veils, and what no campaign may play), and judges a turn by it.

A topic is found by words, in microseconds, because this runs before an NPC's model is asked and before each sentence
of its reply is said. A topic's words are matched by their stems, also within compounds. A word that names an idea
("harm", "children") stands for all words of the idea. Two words of a topic must meet within one clause, near each
other: "harm to children" is not touched by a child that finds a coin. The words are data: see
`glyphoxa/language/data/en/safety.toml`.

The floor is what no campaign can switch off: sexual content with minors.

The floor and the lines hold on every road by which text reaches a model, a player or a voice, listed in
`docs/how-it-works.md`. Every road asks the topics of its campaign (`topics_of`). The DM sees everything.

What follows from the flags of a turn, for every judge (`mode_and_risk`, `TurnJudgement`):

| flag | mode | risk | consequence |
|---|---|---|---|
| `legal_floor:minors` | safe_redirect | high | redirected, the DM should look, nothing is learned |
| `line:TOPIC` | safe_redirect | medium | redirected, the DM should look, nothing is learned |
| `veil:TOPIC` | in_world_answer | medium | answered without description, the DM should look |
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Any, Final, Literal

from glyphoxa.domain.campaign import Campaign, Safety
from glyphoxa.domain.ids import INVISIBLE
from glyphoxa.domain.turn_record import Asked, Character, Fault
from glyphoxa.language.language_data import languages, lexicon
from glyphoxa.language.text import FUNCTION_WORDS, Text, stemmer_of

_LEGAL_FLOOR: Final = "legal_floor:"
"""Prefix of the flags that no campaign can switch off."""
MINORS: Final = f"{_LEGAL_FLOOR}minors"
_LINE: Final = "line:"
_VEIL: Final = "veil:"
_APART: Final = 6
"""Most words between two ideas of a topic."""
_LEAST_WITHIN: Final = 5
"""Letters of a word or stem that is also found within other words."""
_REMEMBERED: Final = 1_000
"""Texts: facts return from turn to turn."""
_CAMPAIGNS: Final = 16
"""Whose topics are kept ready."""
_CLAUSES: Final = re.compile(r"[.,;:!?…\n–—]+")


class Mode(StrEnum):
    IN_WORLD_ANSWER = "in_world_answer"
    MEMORY_CONSENT = "memory_consent"
    """The speaker decides whether something may be remembered."""
    SAFE_REDIRECT = "safe_redirect"
    """The NPC must lead away from the topic."""


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class TurnJudgement:
    """The verdict of a judge. No judge is asked for what follows from it.

    Attributes:
        flags: Labels of what the turn violates: "line:spiders", "veil:torture", "legal_floor:minors".
        note: The reasons, and what an answer should respect. For the DM; never shown to players.
        extract_memory: The turn states something that matters in a later session.
    """

    mode: Mode = Mode.IN_WORLD_ANSWER
    risk: Risk = Risk.LOW
    flags: tuple[str, ...] = ()
    note: str = ""
    extract_memory: bool = False

    @property
    def is_blocked(self) -> bool:
        """Whether the turn is redirected or of high risk."""
        return self.mode is Mode.SAFE_REDIRECT or self.risk is Risk.HIGH

    @property
    def needs_review(self) -> bool:
        """Whether the DM should look at the turn."""
        return self.risk is not Risk.LOW

    @property
    def may_extract(self) -> bool:
        """Whether facts may be learned from the turn: never from one that is redirected or about consent."""
        return self.extract_memory and self.mode is Mode.IN_WORLD_ANSWER


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement and who made it.

    Attributes:
        by: `backstop`: the rules, when they judged again with what was said afterwards.
        reason: Why another judge decided than the configured one; else empty.
    """

    judgement: TurnJudgement
    by: Literal["rules", "llm", "backstop"] = "rules"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic in one language: patterns that must all match, near each other."""

    label: str
    parts: tuple[re.Pattern[str], ...]

    def is_in(self, text: str) -> bool:
        if len(self.parts) == 1:
            return self.parts[0].search(text) is not None
        if not all(part.search(text) for part in self.parts):
            return False
        return any(self._meet(clause) for clause in _CLAUSES.split(text))

    def _meet(self, clause: str) -> bool:
        found = ([match.span() for match in part.finditer(clause)] for part in self.parts)
        return any(_are_near(clause, sorted(spans)) for spans in product(*found))


def _are_near(clause: str, spans: Sequence[tuple[int, int]]) -> bool:
    return all(clause.count(" ", one[1], other[0]) <= _APART + 1 for one, other in pairwise(spans))


class SafetyTopics:
    """The topics of a campaign, ready to be found.

    Args:
        language: The campaign's (BCP 47), for the stems of its topics. Ideas are found in every language.
    """

    def __init__(self, safety: Safety | None = None, language: str = "en") -> None:
        safety = safety or Safety()
        self._topics = [
            *_floor(),
            *(each for topic in safety.lines for each in _topics(_LINE, topic, language)),
            *(each for topic in safety.veils for each in _topics(_VEIL, topic, language)),
        ]

        self._found = lru_cache(_REMEMBERED)(self._search)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return all flags that a text can have."""
        return tuple(dict.fromkeys(topic.label for topic in self._topics))

    def flags(self, text: str) -> tuple[str, ...]:
        """Return what the text touches: "legal_floor:minors", "line:spiders", "veil:torture", in this order."""
        return self._found(text)

    def _search(self, text: str) -> tuple[str, ...]:
        plain = Text.of(unicodedata.normalize("NFC", text).translate(INVISIBLE)).plain
        return tuple(dict.fromkeys(topic.label for topic in self._topics if topic.is_in(plain)))

    def forbids(self, text: str) -> bool:
        """Return whether the text touches what must not come up: the floor or a line."""
        return any(not flag.startswith(_VEIL) for flag in self.flags(text))

    def allowed(self, text: str) -> str:
        """Return the text without the sentences that touch what must not come up; unchanged if none does."""
        if not self.forbids(text):
            return text
        kept = " ".join(each for each in Text.of(text).sentences if not self.forbids(each))
        return "" if self.forbids(kept) else kept

    def allowed_in(self, value: Any) -> Any:
        """Return a JSON value without what must not come up; None if nothing is left. A dict goes with its first."""
        match value:
            case str() if value:
                return self.allowed(value) or None
            case list():
                return [kept for each in value if (kept := self.allowed_in(each)) is not None]
            case dict():
                kept = {key: self.allowed_in(each) for key, each in value.items()}
                first = next(iter(value), None)
                lost = {key for key, each in kept.items() if each is None and value[key] is not None}
                return None if first in lost else {key: each for key, each in kept.items() if key not in lost}
            case _:
                return value

    def rejects(self, sentence: str, _character: Character, asked: Asked) -> Fault | None:
        """Reject a piece of a reply that touches the floor or a line, also together with what its sentence began with.

        A `glyphoxa.judgement.reply.Rule`.
        """
        begun = Text.of(asked.so_far).sentences[-1:]
        return Fault.SAFETY if self.forbids(" ".join((*begun, sentence))) else None


def topics_of(campaign: Campaign) -> SafetyTopics:
    """Return the topics of a campaign: the same for all its roads, so that a text is searched once."""
    return _shared(campaign.safety, campaign.language)


@lru_cache(_CAMPAIGNS)
def _shared(safety: Safety, language: str) -> SafetyTopics:
    return SafetyTopics(safety, language)


def mode_and_risk(flags: Sequence[str]) -> tuple[Mode, Risk]:
    """Return the mode and the risk of a turn with these flags; see the table of this module."""
    if any(flag.startswith(_LEGAL_FLOOR) for flag in flags):
        return Mode.SAFE_REDIRECT, Risk.HIGH
    if any(flag.startswith(_LINE) for flag in flags):
        return Mode.SAFE_REDIRECT, Risk.MEDIUM
    return Mode.IN_WORLD_ANSWER, Risk.MEDIUM if flags else Risk.LOW


def _floor() -> Iterator[_Topic]:
    for language in languages():
        yield _Topic(MINORS, (_of_data("floor_alone", language),))
        yield _Topic(MINORS, (_of_data("floor_sexual", language), _of_data("floor_minor", language)))


def _topics(kind: str, topic: str, language: str) -> Iterator[_Topic]:
    """Yield a topic as it is found in each language, without repetition."""
    phrase = Text.of(topic).plain.casefold()
    generic = lexicon("safety", language).words("generic") | FUNCTION_WORDS
    named = [word for word in Text.of(topic).spoken if word not in generic] or [phrase]
    named = [phrase] if _of_idea(phrase, language) else named
    for each in languages():
        # Most texts touch no topic: search the shortest pattern first.
        parts = {_of_idea(word, each) or _of_word(word, language) for word in named}
        yield _Topic(f"{kind}{topic}", tuple(sorted(parts, key=lambda part: (len(part.pattern), part.pattern))))


def _of_idea(name: str, language: str) -> re.Pattern[str] | None:
    """Return the pattern in a language of the idea with this name in any language; None for no idea."""
    for idea, names in lexicon("safety").table("ideas").items():
        if name in names:
            return _of_data(idea, language)
    return None


def _of_word(word: str, language: str) -> re.Pattern[str]:
    stem = stemmer_of(language)(word)
    endings = "|".join(sorted(lexicon("safety", language).words("endings")))
    forms = (
        rf"\w*{re.escape(form)}\w*" if len(form) >= _LEAST_WITHIN else rf"{re.escape(form)}(?:{endings})?"
        for form in dict.fromkeys((word, stem))
    )
    return re.compile(rf"\b(?:{'|'.join(forms)})\b", re.IGNORECASE)


@cache
def _of_data(key: str, language: str) -> re.Pattern[str]:
    return lexicon("safety", language).compile(rf"\b{{{key}}}\b", flags=re.IGNORECASE)
