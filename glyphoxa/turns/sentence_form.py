"""What the form of a sentence says of whom it is meant for (English and German, whatever the campaign's language).

The patterns are laid on a `SaidSentence`. Each is a sign and no proof; `glyphoxa.turns.address` weighs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from glyphoxa.turns.form_patterns import (
    ALOUD,
    DOUBT,
    GREETED,
    GREETING,
    NARRATION,
    ORDER,
    PLAN,
    QUESTION,
    REQUEST,
    SECOND,
    SECOND_OF_SIE,
    TALKED,
    THE_OTHERS,
    TO_ALL,
    WEAK_ACT,
)
from glyphoxa.turns.sentences import SaidSentence


@dataclass(frozen=True, slots=True)
class Form:
    """The signs of one sentence.

    Attributes:
        second: It speaks to somebody: "you", "dein".
        others: It speaks to several: "you two", "Leute".
        question: It asks.
        order: A verb that commands stands first.
        request: It wants something of somebody: "I'd like a room".
        greeting: It greets, thanks or takes leave.
        plan: It makes plans: "we should", "lasst uns".
        talked: It asks what was talked about: "What did we agree on?".
        aloud: It thinks aloud: "I wonder".
        narration: It tells what a character does: "I walk to the bar".
        weak_act: It may tell that, or be an answer: "I take it".
        doubt: It speaks of a third person as one speaks of somebody who stands by: "he's lying".
        to_all: It asks everybody: "does anyone here ...".
        greeted_all: It greets everybody.
    """

    second: bool
    others: bool
    question: bool
    order: bool
    request: bool
    greeting: bool
    plan: bool
    talked: bool
    aloud: bool
    narration: bool
    weak_act: bool
    doubt: bool
    to_all: bool
    greeted_all: bool

    @property
    def asks_somebody(self) -> bool:
        """It wants something of one who hears it."""
        return self.second or self.question or self.order or self.request or self.greeting


def all_of(forms: Sequence[Form]) -> Form:
    """The signs of all these sentences together."""
    return Form(**{sign.name: any(getattr(form, sign.name) for form in forms) for sign in fields(Form)})


@lru_cache(1024)  # a partial transcript repeats the sentences of the one before it
def form_of(sentence: SaidSentence) -> Form:
    text = sentence.text
    request = REQUEST.search(text) is not None
    plan = PLAN.search(text) is not None
    return Form(
        second=SECOND.search(text) is not None or SECOND_OF_SIE.search(text) is not None,
        others=THE_OTHERS.search(text) is not None,
        question=sentence.end == "?" or QUESTION.search(text) is not None,
        order=ORDER.search(text) is not None,
        request=request,
        greeting=GREETING.search(text) is not None,
        plan=plan and not request,
        talked=TALKED.search(text) is not None,
        aloud=ALOUD.search(text) is not None,
        narration=NARRATION.search(text) is not None,
        weak_act=WEAK_ACT.search(text) is not None,
        doubt=DOUBT.search(text) is not None,
        to_all=TO_ALL.search(text) is not None,
        greeted_all=GREETED.search(text) is not None,
    )
