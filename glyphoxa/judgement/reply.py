"""Decides on each sentence of a reply before it is spoken.

A sentence passes, is repaired, or is rejected with a reason:

    1. the safety filter cleans it                                 (`glyphoxa.judgement.guard`)
    2. the wording of an assistant's refusal, or of the prompt, rejects it
    3. mistakes of small models are repaired                       (`glyphoxa.judgement.small_model`)
    4. rules judge it with the question, the conversation and the NPC's prompt

A rule is a pure function from sentence, character and question to a `Fault` or None. It calls no model and never
waits. Repairs and their rules apply to small models only, because a wrong repair leaves a hole in a reply.

Nobody hears a rejected sentence. It is stored in the turn's record only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from glyphoxa.domain.turn import Asked, Character, Fault, Verdict
from glyphoxa.judgement.guard import Rule, SafetyFilter, recites_direction, reveals_secret
from glyphoxa.judgement.small_model import ReplyRepair
from glyphoxa.language.lexicon import lexicon, primary_language
from glyphoxa.language.text import GREETINGS, Text, language_of, log_odds, phrases, shipped

_WORDS: Final = lexicon("reply")
_OF_THE_PROMPT: Final = _WORDS.pattern("of_the_prompt", flags=re.IGNORECASE)
_OPENS_REFUSAL: Final = _WORDS.compile("{opens_refusal},", flags=re.IGNORECASE)
"""A first clause that ordinary speech has as well. The next piece decides."""
_OTHER_SCRIPT: Final = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def in_another_language(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in another language than the question, for English and German.

    A sentence with too few indicative words passes. A question with too few counts as the campaign's language.
    """
    if _OTHER_SCRIPT.search(sentence) and not _OTHER_SCRIPT.search(asked.question):
        return Fault.LANGUAGE
    own = primary_language(character.language)
    spoken, wanted = language_of(sentence), language_of(asked.question, least=1) or (own if own in GREETINGS else "")
    return Fault.LANGUAGE if spoken and wanted and spoken != wanted else None


# Refusals: an assistant declines, asks for details or offers more help, in any wording.


_REFUSED: Final = 1.0
"""Score of a refusal whatever was asked. `python -m benchmarks.refusals` measures both limits."""
_REFUSED_A_FACT: Final = -0.5
"""Score of a refusal if the prompt holds a fact about the question and the sentence contains nothing of it."""


def refusal_score(sentence: str) -> float:
    """Return the log odds that an assistant words it like this, and no character: see `benchmarks/refusals.py`."""
    return log_odds(phrases(sentence), shipped(__package__, "refusals"))


def refuses(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject what may be a refusal if the NPC knows something about the question and the sentence says none of it."""
    known = Text.of(fact_about(asked)).content
    is_empty = bool(known) and known.isdisjoint(Text.of(sentence).content)
    return Fault.ASSISTANT if is_empty and refusal_score(sentence) > _REFUSED_A_FACT else None


def fact_about(asked: Asked) -> str:
    """Return the fact that shares most words with the question; empty if none does, or a direction may withhold it."""
    about = Text.of("" if asked.direction or asked.flags else asked.question).content
    facts = set(asked.facts).difference(asked.not_known)
    shared = max(sorted(facts), key=lambda fact: len(Text.of(fact).content & about), default="")
    return shared if Text.of(shared).content & about else ""


RULES: Final[Sequence[Rule]] = (reveals_secret, recites_direction, in_another_language, refuses)
"""Applied in this order before the repairs; the first fault is reported."""


class ReplyCheck:
    """Judges one reply of one NPC. Create a new one for every reply.

    Args:
        repairs: Whether mistakes of small models are repaired.
        more_rules: Applied after all others.
    """

    def __init__(
        self, character: Character, asked: Asked, *, repairs: bool = True, more_rules: Sequence[Rule] = ()
    ) -> None:
        self._character = character
        self._asked = asked
        self._safety = SafetyFilter(character.name, others=character.others)
        self._repair = ReplyRepair(character, asked) if repairs else None
        self._rules = (*RULES, *((self._repair.rejects,) if self._repair else ()), *more_rules)
        self._held = ""

    def decide(self, piece: str) -> Verdict:
        """Return the part of the next piece that may be said."""
        verdict = self.clean(piece)
        if not verdict.text:
            return verdict
        for rule in self._rules:
            if (fault := rule(verdict.text, self._character, self._asked)) is not None:
                return Verdict(fault=fault)
        self._asked = replace(self._asked, so_far=f"{self._asked.so_far} {verdict.text}".strip())
        return verdict

    def clean(self, piece: str) -> Verdict:
        """Return the cleaned piece, without applying the rules.

        The possible beginning of an assistant's refusal is held until the next piece.
        """
        verdict = self._safety.judge(piece)
        if not verdict.text:
            return verdict
        if not self._held and _OPENS_REFUSAL.fullmatch(Text.of(verdict.text).plain):
            self._held = verdict.text
            return Verdict()
        said, self._held = f"{self._held} {verdict.text}".strip(), ""
        plain = Text.of(said).plain
        if refusal_score(said) > _REFUSED:
            return Verdict(fault=Fault.ASSISTANT)
        if _OF_THE_PROMPT.search(plain):
            return Verdict(fault=Fault.OF_THE_PROMPT)
        return Verdict(said) if self._repair is None else self._repair.repaired(said)
