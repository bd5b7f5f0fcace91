"""The sentences of a long line of talk that bear on a question, where a prompt has room for few words.

Whole lines fill a small model's budget with greetings and asides: two of them, of 45 tokens each. Cut to what bears on
the question, four fit in the same room. Measured in `docs/recall-measured.md`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Final

from glyphoxa.context.relevance import telling_words
from glyphoxa.context.tokens import tokens_of
from glyphoxa.context.wording import recalled_of
from glyphoxa.domain.recalled import Recalled, RecalledUtterance

LONGEST_TOKENS: Final = 30
"""Of an excerpt. At 20 tokens 3 % more questions find evidence, but what is cut keeps the sentence nearest to the
question in meaning in 72 of 100 lines, instead of 78.
"""
_ENDS: Final = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+")
_SHARED, _TELLING, _MOST_TELLING = 2.0, 0.25, 8
"""What a sentence is worth for a word of the question, and for a word that is about something, up to so many."""
_LEAST_CHARACTERS: Final = 20


def excerpted(one: Recalled, question: str, *, shown: Sequence[str] = ()) -> Recalled:
    """The same, with no more of it than bears on the question: whole sentences that stand in a row. What is short, one
    sentence, or no talk stays as it is.

    Args:
        shown: Lines that stand in the prompt for the same speech. An excerpt that is among them stays what it was: a
            prompt cache has read it.
    """
    if not isinstance(one, RecalledUtterance) or tokens_of(one.text) <= LONGEST_TOKENS:
        return one
    who = recalled_of(one)
    for line in shown:
        words = line.removeprefix(who)
        if line.startswith(who) and len(words) >= _LEAST_CHARACTERS and words in one.text:
            return replace(one, text=words)
    return replace(one, text=_excerpt(one.text, question))


def _excerpt(text: str, question: str) -> str:
    begins = [0, *(gap.end() for gap in _ENDS.finditer(text))]
    ends = [*begins[1:], len(text)]
    sentences = [text[begin:end].strip() for begin, end in zip(begins, ends, strict=True)]
    asked = telling_words(question)
    worth = [_worth(sentence, asked) for sentence in sentences]
    first = last = max(range(len(sentences)), key=worth.__getitem__)
    while True:
        beside = [at for at in (first - 1, last + 1) if 0 <= at < len(sentences)]
        spans = {at: text[begins[min(at, first)] : ends[max(at, last)]] for at in beside}
        fitting = [at for at, span in spans.items() if tokens_of(span) <= LONGEST_TOKENS]
        if not fitting:
            return text[begins[first] : ends[last]].strip()
        best = max(fitting, key=worth.__getitem__)
        first, last = min(first, best), max(last, best)


def _worth(sentence: str, asked: Set[str]) -> float:
    telling = telling_words(sentence)
    return _SHARED * len(telling & asked) + _TELLING * min(len(telling), _MOST_TELLING)
