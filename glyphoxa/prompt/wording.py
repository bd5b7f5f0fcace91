"""Provide the fixed words of prompts in the campaign's language, and the form of lines, facts and recalled items.

Short sentences, the same for all: a small model copies the form of what it reads, and forgets what is long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Final, Literal

from pydantic import TypeAdapter

from glyphoxa.domain.campaign import Exchange
from glyphoxa.domain.turn import Fault
from glyphoxa.language.lexicon import lexicon, texts
from glyphoxa.language.prompt_quotes import as_label, as_said
from glyphoxa.language.sentence_form import only_states
from glyphoxa.language.text import language_of

FACTS: Final = "Facts: "
REMEMBERED: Final = "Remembered: "
SCENE: Final = "Scene: "
PAST: Final = "Earlier: "
DIRECTION: Final = "For this answer: "
Cue = Literal["language", "brief", "fact"]
"""For a question after an answer in another language, or one that needs a single sentence."""


def said_line(speaker_name: str, text: str, *, to: str = "") -> str:
    """Return a line of the transcript."""
    who = as_label(speaker_name)
    return f"{who} says to {as_label(to)}: {as_said(text)}" if to else f"{who} says: {as_said(text)}"


OCCUPATIONS: Final = lexicon("prompt").words("occupations")
"""Attributes for somebody's occupation."""
QUEST_OVER: Final = lexicon("prompt").words("quest_over")
"""A quest with such a `status` is not active."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The wording of one language.

    Attributes:
        persona: For an NPC whose author wrote none.
        persona_of_trade: The same for an NPC with a known occupation, with `{name}` and `{occupation}`.
        known_of_you: Before the facts in a drafted persona, `{facts}`.
        frame: After every persona.
        keeps: Before an NPC's own secrets.
        so_far: Before the summary of this session.
        is_here: After the names of those present, one and several.
        to_do: Before active quests.
        speaks: For an NPC that does not speak every language, with `{languages}`.
        coined: Before terms without a meaning, with `{terms}`.
        somebody: The speaker of the examples.
        unknown_then: An example for a story of old times; as all, with the places `{name}`, `{occupation}`, `{place}`.
        works: An example for an NPC with a known occupation, `is_at` for one with a known place.
        examples: The others, for an NPC that has none. They fit any time and place, and invent no name. A small model
            copies the last ones most, so an example that answers from facts comes last.
        at_a_loss: Said when nothing of a reply may be said.
        noted: The same in reply to a statement.
        too_late: Said when the answer does not come.
        fillers: Sounds of an NPC without its own, while its answer is on its way.
        deflects: Said instead of a secret of its own.
        knows_nothing: Said instead of an answer that it does not know.
        of_us: A sentence of the bible as it is embedded, so that it is about those who speak.
        changes_subject: Said instead of a sentence about a topic that the group does not play.
        redirect: Directions for an answer when a player brings up such a topic, without its name.
        veil: The direction for a topic that may happen, but is not described.
        sessions_ago: When something was said: in this session, the last one, ... The last form is for more, `{n}`.
    """

    persona: str
    persona_of_trade: str
    known_of_you: str
    frame: str
    keeps: str
    so_far: str
    is_here: tuple[str, str]
    joins: str
    to_do: str
    speaks: str
    coined: str
    somebody: str
    unknown_then: Exchange
    works: Exchange
    is_at: Exchange
    examples: tuple[Exchange, ...]
    at_a_loss: tuple[str, ...]
    noted: tuple[str, ...]
    too_late: tuple[str, ...]
    fillers: tuple[str, ...]
    deflects: tuple[str, ...]
    knows_nothing: tuple[str, ...]
    changes_subject: tuple[str, ...]
    redirect: tuple[str, ...]
    veil: str
    of_us: str
    sessions_ago: tuple[str, ...]

    def here(self, names: Sequence[str]) -> str:
        """Return a sentence with those present; empty for nobody.

        >>> wording("en").here(["Mirelle", "Tamsin", "Bran"])
        'Mirelle, Tamsin and Bran are here.'
        """
        return f"{self._listed(names)} {self.is_here[len(names) > 1]}." if names else ""

    def speaks_only(self, languages: Sequence[str]) -> str:
        """Return a sentence that an NPC speaks these languages and no other.

        >>> wording("en").speaks_only(["English", "Dwarvish"])
        'You speak only English and Dwarvish. To any other language you say that you do not understand it.'
        """
        return self.speaks.format(languages=self._listed(languages))

    def said_here(self, terms: Sequence[str]) -> str:
        """Return a sentence with terms of the campaign; empty for none.

        >>> wording("en").said_here(["ORACLE", "Geometers"])
        'Words of this world: ORACLE, Geometers.'
        """
        return self.coined.format(terms=", ".join(terms)) if terms else ""

    def _listed(self, names: Sequence[str]) -> str:
        *first, last = names
        return f"{', '.join(first)} {self.joins} {last}" if first else last


_WORDING: Final = TypeAdapter(Wording)


@cache
def wording(language: str) -> Wording:
    """Return the wording of a campaign's language (BCP 47); English if the language has none."""
    words = texts("prompt", language)
    return _WORDING.validate_python({each.name: words.value(each.name) for each in fields(Wording)})


def cue_for(question: str, cue: Cue, **values: str) -> str:
    """Return the cue that follows a question, in its language; empty if the question shows none."""
    language = language_of(question)
    return str(lexicon("prompt", language).value(f"{cue}_cue")).format(**values) if language else ""


# A line in character for when nothing of a reply may be said, chosen without a model.


class StandIns:
    """The lines of one NPC, in turn: no line is repeated at once.

    Args:
        language: The campaign's, for a question that shows none.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._used: Counter[tuple[str, Fault | None]] = Counter()

    def line(self, question: str, fault: Fault | None, told: Sequence[str] = ()) -> str:
        """Return a line in the language of the question.

        Args:
            fault: Why there is no reply, if that is known.
            told: Answers from what the asker told; see `HotContext.told`.
        """
        if told and fault not in (Fault.SECRET, Fault.SAFETY):
            return told[0]
        language = language_of(question) or self._language
        words = wording(language)
        if only_states(question) and fault is not Fault.SAFETY:
            return self._next_of(words.noted, language, None)
        of_fault: dict[Fault | None, tuple[str, ...]] = {
            Fault.SECRET: words.deflects,
            Fault.UNFOUNDED: words.knows_nothing,
            Fault.SAFETY: words.changes_subject,
        }
        why = fault if fault in of_fault else None
        return self._next_of(of_fault.get(why, words.at_a_loss), language, why)

    def shrug(self, lines: Sequence[str]) -> str:
        """Return one of the lines for a question that the NPC knows nothing about."""
        return self._next_of(lines, self._language, Fault.UNFOUNDED)

    def _next_of(self, lines: Sequence[str], language: str, why: Fault | None) -> str:
        n_used = self._used[language, why]
        self._used[language, why] += 1
        return lines[n_used % len(lines)]
