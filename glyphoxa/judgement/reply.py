"""The one decision on each sentence of a reply, before the voice has it.

A sentence is passed, repaired or rejected with its reason:

    1. the safety filter cleans it                                 (`glyphoxa.judgement.guard`)
    2. phrases of assistants and words of the prompt reject it
    3. a small model's slips are repaired                          (`glyphoxa.judgement.repairs`)
    4. rules judge it beside the question, the talk before it and what the NPC had in mind

A rule is a pure function: a sentence, who speaks and what it answers in, a `Fault` or None out. It reads words, asks no
model and never waits. Repairs and their rules are for small models alone: a large model needs none, and a wrong
repair is a hole in what an NPC says.

What is rejected is heard by nobody: it stands in the turn's record, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from glyphoxa.domain.turn import Asked, Character, Fault, Verdict
from glyphoxa.judgement.guard import Rule, SafetyFilter, recites_direction, tells_a_secret
from glyphoxa.judgement.repairs import REPAIR_RULES, Repairs
from glyphoxa.language.content import GREETINGS, language_of, straight
from glyphoxa.language.lexicon import lexicon, primary_language

_WORDS: Final = lexicon("reply")
_ASSISTANT: Final = _WORDS.pattern("assistant", flags=re.IGNORECASE)
_OF_THE_PROMPT: Final = _WORDS.pattern("of_the_prompt", flags=re.IGNORECASE)
_OPENS_REFUSAL: Final = _WORDS.compile("{opens_refusal},", flags=re.IGNORECASE)
"""A first clause that ordinary talk has as well: what follows decides."""
_OTHER_SCRIPT: Final = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def in_another_language(sentence: str, character: Character, asked: Asked) -> Fault | None:
    """Reject a sentence in another language than the NPC was spoken to in, English and German.

    A sentence with too few telling words is in any language, and such a question in the campaign's.
    """
    if _OTHER_SCRIPT.search(sentence) and not _OTHER_SCRIPT.search(asked.question):
        return Fault.LANGUAGE
    own = primary_language(character.language)
    spoken, wanted = language_of(sentence), language_of(asked.question, least=1) or (own if own in GREETINGS else "")
    return Fault.LANGUAGE if spoken and wanted and spoken != wanted else None


RULES: Final[Sequence[Rule]] = (tells_a_secret, recites_direction, in_another_language)
"""In this order; the first fault is the reason. Those of the repairs follow."""


class ReplyCheck:
    """Judges one reply of one NPC. Build a new one for every reply.

    Args:
        repairs: Whether a small model's slips are repaired.
        more_rules: Applied after all others.
    """

    def __init__(
        self, character: Character, asked: Asked, *, repairs: bool = True, more_rules: Sequence[Rule] = ()
    ) -> None:
        self._character = character
        self._asked = asked
        self._rules = (*RULES, *(REPAIR_RULES if repairs else ()), *more_rules)
        self._safety = SafetyFilter(character.name, others=character.others)
        self._repairs = Repairs(character, asked) if repairs else None
        self._held = ""

    def decide(self, piece: str) -> Verdict:
        """Return what may be said of the next piece of the reply."""
        verdict = self.clean(piece)
        if not verdict.text:
            return verdict
        for rule in self._rules:
            if (fault := rule(verdict.text, self._character, self._asked)) is not None:
                return Verdict(fault=fault)
        self._asked = replace(self._asked, so_far=f"{self._asked.so_far} {verdict.text}".strip())
        return verdict

    def clean(self, piece: str) -> Verdict:
        """Return the same without the rules.

        The beginning of what may become an assistant's refusal is kept for the next piece.
        """
        verdict = self._safety.judge(piece)
        if not verdict.text:
            return verdict
        if not self._held and _OPENS_REFUSAL.fullmatch(straight(verdict.text)):
            self._held = verdict.text
            return Verdict()
        said, self._held = f"{self._held} {verdict.text}".strip(), ""
        plain = straight(said)
        if _ASSISTANT.search(plain):
            return Verdict(fault=Fault.ASSISTANT)
        if _OF_THE_PROMPT.search(plain):
            return Verdict(fault=Fault.OF_THE_PROMPT)
        return Verdict(said) if self._repairs is None else self._repairs.judge(said)
