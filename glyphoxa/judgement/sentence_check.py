"""The one decision on each sentence of a reply, before the voice has it.

A sentence is passed, put right or rejected with its reason. `InCharacter` cleans what is written wrongly and finds what
shows in the sentence alone; the rules find what shows only beside the question, the talk before it and what the NPC
had in mind. A rule is a pure function: a sentence and `Asked` in, a `Fault` or None out. It reads words, so it takes
microseconds; it asks no model and never waits.

What is rejected is heard by nobody: it stands in the turn's record, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from glyphoxa.domain.turn import Fault
from glyphoxa.judgement.directed import recites_direction
from glyphoxa.judgement.echo import repeats
from glyphoxa.judgement.forgotten import forgets
from glyphoxa.judgement.in_character import InCharacter
from glyphoxa.judgement.languages import in_another_language
from glyphoxa.judgement.mistaken_identity import takes_itself_for_another
from glyphoxa.judgement.offers_help import offers_help
from glyphoxa.judgement.reply import Asked, Character, Verdict
from glyphoxa.judgement.secrets_told import tells_a_secret
from glyphoxa.judgement.third_person import tells_of_itself
from glyphoxa.judgement.unfounded import unfounded
from glyphoxa.judgement.whose import with_its_owner

Rule = Callable[[str, Character, Asked], Fault | None]
"""On one piece of a reply: a sentence, or the first clause of the first one. `Asked.so_far` holds the pieces said."""

RULES: Final[Sequence[Rule]] = (
    tells_a_secret,
    recites_direction,
    in_another_language,
    tells_of_itself,
    takes_itself_for_another,
    offers_help,
    repeats,
    unfounded,
    forgets,
)
"""In this order; the first fault is the reason."""


class SentenceCheck:
    """Of one reply of one NPC. Build a new one for every reply."""

    def __init__(self, character: Character, asked: Asked, *, rules: Sequence[Rule] = RULES) -> None:
        self._character = character
        self._asked = asked
        self._rules = rules
        self._in_character = InCharacter(
            character.name, others=character.others, aliases=character.aliases, asked=asked.question
        )

    def decide(self, piece: str) -> Verdict:
        """What may be said of the next piece."""
        verdict = self._in_character.judge(piece)
        if not verdict.text:
            return verdict
        verdict = Verdict(with_its_owner(verdict.text, self._asked))
        for rule in self._rules:
            if (fault := rule(verdict.text, self._character, self._asked)) is not None:
                return Verdict(fault=fault)
        self._asked = replace(self._asked, so_far=f"{self._asked.so_far} {verdict.text}".strip())
        return verdict
