"""All that a prompt says by itself: what stands in every NPC's in the campaign's language, and in which words a line of
talk, a fact and something recalled stand there.

Short sentences, the same for all: a small model copies the form of what it reads, and forgets what is long.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, Literal

from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledUtterance
from glyphoxa.domain.turn import Fault
from glyphoxa.language.content import language_of
from glyphoxa.language.lexicon import lexicon, primary_language
from glyphoxa.language.quoted import as_fact, as_label, as_said, as_told

FACTS: Final = "Facts: "
REMEMBERED: Final = "Remembered: "
SCENE: Final = "Scene: "
PAST: Final = "Earlier: "
DIRECTION: Final = "For this answer: "
Cue = Literal["language", "brief"]
"""Behind a question that was answered in another language, or for which a sentence is enough."""
SAYS: Final = re.compile(r"\s*[^\W_][\w'’. -]{0,40} says(?: to [^:\n]{1,40})?:\s*")
"""Who speaks, in front of a line of talk."""


def said_line(speaker_name: str, text: str, *, to: str = "") -> str:
    """A line of talk."""
    who = as_label(speaker_name)
    return f"{who} says to {as_label(to)}: {as_said(text)}" if to else f"{who} says: {as_said(text)}"


def recalled_line(one: Recalled) -> str:
    """Something recalled, also where it is shown to a DM or found by a tool."""
    who = recalled_of(one)
    if who:
        return f"{who}{as_said(one.text)}"
    return as_fact(one.text) if isinstance(one, RecalledFact) else as_told(one.text)


def recalled_of(one: Recalled) -> str:
    """Who said it, in front of it; empty for what nobody said."""
    if isinstance(one, RecalledUtterance) and one.speaker_name:
        return f"{'You' if one.is_own else as_label(one.speaker_name)} said: "
    return ""


OCCUPATIONS: Final = lexicon("prompt").words("occupations")
"""Attributes that say what somebody does."""
QUEST_OVER: Final = lexicon("prompt").words("quest_over")
"""A quest of such a `status` is not under way."""


@dataclass(frozen=True, slots=True)
class Example:
    """An exchange in which `{name}`, `{occupation}` and `{place}` are put in.

    Attributes:
        kept: What the NPC keeps to itself in it.
    """

    said: str
    reply: str
    facts: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """One language's.

    Attributes:
        persona: For an NPC whose author wrote none.
        frame: Behind every persona.
        keeps: In front of an NPC's own secrets.
        is_here: Behind who is here, one and several.
        to_do: In front of quests that are under way.
        speaks: For an NPC that does not speak every language, with `{languages}`.
        strangers: Who speaks in the examples: the first whose name nobody in the campaign has.
        works: An example for an NPC whose occupation is known, `is_at` for one whose place is.
        examples: The others, for an NPC that has none. A small model copies the last ones most: one that answers from
            facts stands behind those that do not.
        at_a_loss: What it says when nothing of a reply may be said.
        too_late: What it says when its answer does not come.
        fillers: Sounds of an NPC whose author gave it none, while its answer is on its way.
        deflects: What it says instead of a secret of its own.
        knows_nothing: What it says instead of something that it does not know. `never_heard` is the same of a name,
            `{what}`, and `never_said` of words of its own.
        you_told: An answer from what the asker told, `{what}` in the second person; `you_said` with its very words.
        untold: A fact: nobody has told `{name}` of what is asked. `unheard` is the same of a name, `{what}`,
            `unsaid` of words of its own, and `no_more` where it knows something else of whom the question names.
    """

    persona: str
    frame: str
    keeps: str
    is_here: tuple[str, str]
    joins: str
    to_do: str
    speaks: str
    strangers: tuple[str, ...]
    works: Example
    is_at: Example
    examples: tuple[Example, ...]
    at_a_loss: tuple[str, ...]
    too_late: tuple[str, ...]
    fillers: tuple[str, ...]
    deflects: tuple[str, ...]
    knows_nothing: tuple[str, ...]
    never_heard: tuple[str, ...]
    never_said: tuple[str, ...]
    you_told: str
    you_said: str
    untold: str
    unheard: str
    unsaid: str
    no_more: str

    def here(self, names: Sequence[str]) -> str:
        """Who is here, as a sentence; empty for nobody.

        >>> wording("en").here(["Mirelle", "Tamsin", "Bran"])
        'Mirelle, Tamsin and Bran are here.'
        """
        return f"{self._listed(names)} {self.is_here[len(names) > 1]}." if names else ""

    def speaks_only(self, languages: Sequence[str]) -> str:
        """That an NPC speaks these and no other.

        >>> wording("en").speaks_only(["English", "Dwarvish"])
        'You speak only English and Dwarvish. To any other language you say that you do not understand it.'
        """
        return self.speaks.format(languages=self._listed(languages))

    def _listed(self, names: Sequence[str]) -> str:
        *first, last = names
        return f"{', '.join(first)} {self.joins} {last}" if first else last


def wording(language: str) -> Wording:
    """Return the wording of a campaign's language (BCP 47); English where there is none of its own."""
    return _wording(primary_language(language))


@cache
def _wording(language: str) -> Wording:
    words = lexicon("prompt", language) or lexicon("prompt", "en")

    def text(name: str) -> Any:
        value = words.value(name)
        return tuple(value) if isinstance(value, list) else value

    examples = words.value("examples")
    return Wording(
        **{each.name: text(each.name) for each in fields(Wording) if each.name not in (*examples, "examples")},
        works=Example(**examples["works"]),
        is_at=Example(**examples["is_at"]),
        examples=tuple(Example(**each) for each in examples["others"]),
    )


def cue_for(question: str, cue: Cue) -> str:
    """Return the cue that follows a question, in its language; empty where the question shows none."""
    language = language_of(question)
    return str(lexicon("prompt", language).value(f"{cue}_cue")) if language else ""


# What an NPC says where nothing of its reply may be said: a line in character, chosen without a model.


_WITH_LINES_OF_THEIR_OWN: Final = (Fault.SECRET, Fault.UNFOUNDED)
"""Where the NPC had something to say and keeps it to itself, and where it does not know."""


class StandIns:
    """The lines of one NPC, in turn: none comes twice running.

    Args:
        language: The campaign's, for a question that shows none.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._used: Counter[tuple[str, Fault | None]] = Counter()

    def line(self, question: str, fault: Fault | None, told: Sequence[str] = ()) -> str:
        """In the language of the question.

        Args:
            fault: Why there is no reply, if that is known.
            told: Answers from what the asker told; see `HotContext.told`.
        """
        if told and fault is not Fault.SECRET:
            return told[0]
        language = language_of(question) or self._language
        why = fault if fault in _WITH_LINES_OF_THEIR_OWN else None
        words = wording(language)
        of_fault: dict[Fault | None, tuple[str, ...]] = {
            Fault.SECRET: words.deflects,
            Fault.UNFOUNDED: words.knows_nothing,
        }
        lines = of_fault.get(why, words.at_a_loss)
        return self._next_of(lines, language, why)

    def shrug(self, question: str, lines: Sequence[str]) -> str:
        """One of what an NPC can say to what it knows nothing of, `lines` in the campaign's language. Empty for a
        question in another one.
        """
        language = language_of(question)
        if language and language != primary_language(self._language):
            return ""
        return self._next_of(lines, self._language, Fault.UNFOUNDED)

    def _next_of(self, lines: Sequence[str], language: str, why: Fault | None) -> str:
        n_used = self._used[language, why]
        self._used[language, why] += 1
        return lines[n_used % len(lines)]
