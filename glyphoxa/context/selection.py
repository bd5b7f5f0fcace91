"""Which of what an NPC recalls for a question enters its prompt, and why the rest does not.

The one place where that is decided: for a table that is open, and for `glyphoxa recall --explain`. Pure: what is
recalled, and what the prompt holds already, is given.

    talk   ── not in the prompt's talk ── own words only if asked for ── near enough ──┐
                                                                                       ├── fits the budget
    facts  ── not in the prompt's identity ────────────────────────────────────────────┘

In a tight budget long talk is cut to the sentences that bear on the question before it has to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.context.budgets import Budgets
from glyphoxa.context.choice import chosen
from glyphoxa.context.excerpt import excerpted
from glyphoxa.context.identity import NOTHING_KNOWN, Identity
from glyphoxa.context.own_words import asks_what_it_said, of_others
from glyphoxa.context.relevance import TIGHT_TOKENS, worth_telling
from glyphoxa.context.wording import recalled_line
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import Recalled, RecalledFact, RecalledTalk, RecalledUtterance
from glyphoxa.domain.turn import Rejected
from glyphoxa.speech.language.past import speaks_of_the_past

IN_EVERY_PROMPT: Final = "it stands in every prompt"
IN_THE_TALK: Final = "it stands in the talk of the prompt"
OWN_WORDS: Final = "its own words, and it is not asked what it said"
NOT_NEAR: Final = "not near enough to the question"


@dataclass(frozen=True, slots=True)
class Candidates:
    """
    Attributes:
        question: As it was asked.
        language: Of the campaign.
        facts: Of whom the question names, in the order in which they are named.
        talk: Best first.
    """

    npc: NpcId
    question: str
    language: str
    facts: Sequence[RecalledFact] = ()
    talk: Sequence[RecalledTalk] = ()


def _no_talk(_: RecalledUtterance) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class PromptSoFar:
    """What the prompt holds already.

    Attributes:
        in_talk: Whether something that was said stands in its talk.
        shown: Lines of an earlier selection for the same speech, in their order: a prompt cache has read them.
    """

    identity: Identity = NOTHING_KNOWN
    in_talk: Callable[[RecalledUtterance], bool] = _no_talk
    shown: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """
    Attributes:
        chosen: What enters the prompt, in its order.
        rejected: What does not, each with the reason. What is chosen in the same words is not among it.
    """

    chosen: tuple[Recalled, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    @property
    def facts(self) -> tuple[RecalledFact, ...]:
        return tuple(one for one in self.chosen if isinstance(one, RecalledFact))

    @property
    def talk(self) -> tuple[RecalledTalk, ...]:
        return tuple(one for one in self.chosen if not isinstance(one, RecalledFact))

    @property
    def lines(self) -> tuple[str, ...]:
        """As they stand in the prompt."""
        return tuple(recalled_line(one) for one in self.chosen)


def select(candidates: Candidates, budgets: Budgets, prompt: PromptSoFar | None = None) -> Selection:
    """Facts come before talk, unless it is the past that is asked about. What was shown for the same speech stands
    first and in the same order, so that as much as possible of what a prompt cache has read stays as it was.
    """
    prompt = prompt or PromptSoFar()
    npc, question, language = candidates.npc, candidates.question, candidates.language
    tokens, most = budgets.facts_tokens, budgets.most_facts
    asks_of_the_past = speaks_of_the_past(question, language=language)
    fresh = [one for one in candidates.talk if not (isinstance(one, RecalledUtterance) and prompt.in_talk(one))]
    others = of_others(fresh, npc)
    if len(others) < len(fresh) and asks_what_it_said(question, language=language):
        others = fresh
    near = worth_telling(question, others, npc=npc, tokens=tokens, asks_of_the_past=asks_of_the_past)
    facts = [fact for fact in candidates.facts if not prompt.identity.tells(fact)]
    ranked: Sequence[Recalled] = [*near, *facts] if asks_of_the_past else [*facts, *near]
    if tokens <= TIGHT_TOKENS:
        ranked = [excerpted(one, question, shown=prompt.shown) for one in ranked]
    found = chosen(ranked, tokens=tokens, most=most, already=prompt.shown)
    stages: Sequence[tuple[Sequence[Recalled], Sequence[Recalled], str]] = (
        (found, ranked, no_room(budgets)),
        (near, others, NOT_NEAR),
        (others, fresh, OWN_WORDS),
        (fresh, candidates.talk, IN_THE_TALK),
        (facts, candidates.facts, IN_EVERY_PROMPT),
    )
    lines = {recalled_line(one) for one in found}
    rejected = tuple(
        Rejected(one, why) for kept, of, why in stages for one in _without(kept, of) if recalled_line(one) not in lines
    )
    return Selection(tuple(found), rejected)


def _without(kept: Sequence[Recalled], of: Sequence[Recalled]) -> Iterator[Recalled]:
    """What of `of` is not among `kept`, which holds the same objects."""
    ids = {id(one) for one in kept}
    return (one for one in of if id(one) not in ids)


def no_room(budgets: Budgets) -> str:
    return f"no room among {budgets.most_facts} in {budgets.facts_tokens} tokens"
