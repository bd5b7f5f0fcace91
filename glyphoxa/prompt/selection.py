"""Select what enters the prompt of what an NPC recalls for a question, and report why the rest does not.

Only this module decides that: for an open table, and for `glyphoxa recall --explain`. Pure: the recalled items, and the
present content of the prompt, are arguments.

    talk   ── not in the transcript ── own words only if asked for ── near enough ──┐
                                                                                    ├── fits the budget
    facts  ── not in the prompt's identity ─────────────────────────────────────────┘

In a tight budget, long lines are cut to the sentences that bear on the question before they have to fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.domain.knowledge import (
    ANSWERING,
    NEAR,
    RELATED,
    Recalled,
    RecalledFact,
    RecalledSummary,
    RecalledTalk,
    RecalledUtterance,
    Signal,
)
from glyphoxa.domain.turn import Rejected
from glyphoxa.language.asking import AskKind, question_of
from glyphoxa.language.prompt_quotes import in_one_line
from glyphoxa.language.text import Text
from glyphoxa.prompt.conversation import of_others
from glyphoxa.prompt.prompt import Budgets, RoomLeft, tokens_of
from glyphoxa.prompt.wording import recalled_line, recalled_of
from glyphoxa.recall.ranking import BY_WORDS

# Which recalled utterances are worth their place. Recall always finds something. A small model does better with nothing
# than with what does not bear on the question, and every sentence delays the first word.

_SHORTEST: Final = 3
TELLING_WORDS = 2
"""A line with fewer ("Good evening, Korvald.") carries no information."""
TIGHT_TOKENS = 120
"""A budget for a small model, which uses whatever it is given."""
_LEAST_TIGHT, _LEAST = 0.75, 0.5
"""The least score of other lines, relative to the best for the question. On five conversations of LoCoMo 55 % of the
questions then find evidence in 90 tokens, and 94 % in 1,500. With only the lines that are near by themselves it is
49 and 72 %, because answers seldom repeat the words of their question. Without a least score it is no more, in more
lines."""
_LEAST_ASKED = 3
"""Telling words of a question that asks for more than it contains; or a name. "Pass me the salt, please" has two."""
_FITS_THE_TIME = BY_WORDS[Signal.TIME] / 2
"""Half of what the ranking adds if the time of the question fits."""


def worth_telling(
    question: str, said: Sequence[RecalledTalk], *, tokens: int, asks_of_the_past: bool = False
) -> list[RecalledTalk]:
    """Return the utterances that may enter a prompt, in the order of `said`.

    These are the ones that bear on the question by themselves, at any rank. If one of those is among the best, the
    other best follow, because neighbours in the ranking belong together, such as an answer. If nothing bears on the
    question, the result is empty, because something is always the best. A text that hardly asks returns only what is
    near.

    Args:
        said: Best first.
        tokens: The budget. In a tight one, questions, the NPC's own words, and lines without information or answer must
            bear on the question by themselves.
    """
    is_tight = tokens <= TIGHT_TOKENS
    least = _LEAST_TIGHT if is_tight else _LEAST
    near = [
        one
        for one in said
        if not why_unrelated(question, one, asks_of_the_past=asks_of_the_past)
        or _is_of_the_time(one, asks_of_the_past=asks_of_the_past)
    ]
    if not any(one.score >= least for one in near) or _is_small_talk(question):
        return near
    is_near = {id(one) for one in near}
    return [one for one in said if id(one) in is_near or (one.score >= least and (not is_tight or _stands_beside(one)))]


def _is_small_talk(question: str) -> bool:
    return len(Text.of(question).topic) < _LEAST_ASKED and not Text.of(question).named


def _is_of_the_time(one: RecalledTalk, *, asks_of_the_past: bool) -> bool:
    """Last week's events are in last week's utterances, which do not contain "last week"."""
    if isinstance(one, RecalledSummary) or Signal.RECAP in one.signals:
        return True
    fits = Signal.THEN in one.signals or (asks_of_the_past and one.signals.get(Signal.TIME, 0.0) >= _FITS_THE_TIME)
    return fits and len(Text.of(one.text).topic) >= TELLING_WORDS


def _stands_beside(one: RecalledTalk) -> bool:
    """Return whether it may enter together with a line that bears on the question."""
    if isinstance(one, RecalledSummary) or one.text.rstrip().endswith("?") or one.is_own:
        return False
    answers = any(one.signals.get(signal, 0.0) > 0 for signal in ANSWERING)
    return answers or len(Text.of(one.text).topic) >= TELLING_WORDS


def why_unrelated(question: str, recalled: RecalledTalk, *, asks_of_the_past: bool = False) -> str:
    """Return why an utterance does not bear on the question; "" if it is near enough in meaning or words.

    The NPC's own words must share a word: its "I do not know" is near to every question. An earlier question carries no
    information, unless the past is asked about, and it is not the same question. A summary is not compared, because it
    is recalled only on request.
    """
    if isinstance(recalled, RecalledSummary):
        return "no summary was asked for"
    telling = Text.of(recalled.text).topic
    if recalled.text.rstrip().endswith("?") and (not asks_of_the_past or telling <= Text.of(question).topic):
        return "it is a question"
    if len(telling) < TELLING_WORDS:
        return f"it has fewer than {TELLING_WORDS} content words"
    n_shared = len(telling & Text.of(question).topic)
    # Without a similarity, the embedding was late, or this is too new to have one: words alone decide.
    similarity = None if recalled.is_own else recalled.similarity
    if similarity is None:
        return "" if n_shared >= 1 else "it shares no word with the question"
    if recalled.is_near(n_shared):
        return ""
    if n_shared:
        return f"similarity to the question {similarity:.2f} ({RELATED:.2f} needed with a shared word)"
    return f"similarity to the question {similarity:.2f} ({NEAR:.2f} needed without a shared word)"


_CALL: Final = "\0"
"""Marks where somebody was called."""


def without_call(question: str, name: str, aliases: Sequence[str] = ()) -> str:
    """Remove the NPC's name from a question, because a name in every question carries no information.

    Of a name of several words each counts as a call, too, if it stands apart. So does an alias.

    >>> without_call("Grimjaw, how much is a dagger?", "Grimjaw")
    'how much is a dagger?'
    >>> without_call("Where did my father fall, Ulric?", "Father Ulric")
    'Where did my father fall?'
    """
    left = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _CALL, question, flags=re.IGNORECASE)
    for part in map(re.escape, (*name.split(), *aliases)):
        left = re.sub(rf"^\s*{part}(?=\s*[,.:;!])|(?<=,)\s*{part}(?=[.?!]*\s*$)", _CALL, left, flags=re.IGNORECASE)
    left = re.sub(rf"^\s*{_CALL}[\s,.:;!?]*|,?\s*{_CALL}(?=[.?!])", "", left)
    left = re.sub(rf"[\s,]*{_CALL}[\s,]*", " ", left)
    return " ".join(left.split())


# Which recalled items get a place in the prompt, and in which order.


_STEEP = 12
"""How fast the worth of a line falls with its score. At 1, short lines without information win, and 24 % of LoCoMo's
questions find evidence in 90 tokens and 81 in 1,500; at 12 it is 59 and 96."""
_LEAST_TOKENS = 12
"""The least cost of a line: its speaker, and the reader's attention. A shorter one is worth no more."""


def chosen(candidates: Sequence[Recalled], *, tokens: int, most: int, already: Sequence[str] = ()) -> list[Recalled]:
    """Return what fits the budget.

    First what was shown `already` in that order, then greedily what is worth most for its length (the usual
    approximation of a knapsack: Dantzig, 1957). The result is in chronological order. An item without a time (a fact)
    keeps the place of its kind among the candidates.

    Args:
        candidates: Unique by their line; kinds in reading order.
        tokens: Budget of all together.
        most: Lines.
        already: Lines of a former selection for the same speech: a prompt cache has read them.
    """
    by_line: dict[str, Recalled] = {}
    for one in candidates:
        by_line.setdefault(recalled_line(one), one)
    kept = [by_line[line] for line in dict.fromkeys(already) if line in by_line]
    room = RoomLeft(tokens - sum(_tokens_of(one) for one in kept))
    new: list[Recalled] = []
    position = {line: at for at, line in enumerate(by_line)}
    rest = [(one, at) for at, one in enumerate(by_line.values()) if one not in kept]
    for one, _ in sorted(rest, key=lambda each: (-_worth_per_token(each[0]), each[1])):
        if len(kept) + len(new) < most and room.takes(_tokens_of(one)):
            new.append(one)
    kinds = {source: at for at, source in reversed(list(enumerate(one.source for one in candidates)))}
    new.sort(
        key=lambda one: (
            kinds[one.source],
            position[recalled_line(one)] if isinstance(one, RecalledFact) else one.at_ms or 0,
        )
    )
    return [*kept[:most], *new]


def _tokens_of(one: Recalled) -> int:
    return tokens_of(recalled_line(one))


def _worth_per_token(one: Recalled) -> float:
    return float(one.score**_STEEP) / max(_LEAST_TOKENS, _tokens_of(one))


# The sentences of a long line that bear on the question, for prompts with room for few words.
#
# Whole lines fill a small model's budget with greetings and asides: two of them, of 45 tokens each. Cut to what bears
# on the question, four fit in the same room. Measured in `docs/measurements.md`.


LONGEST_TOKENS: Final = 30
"""Limit of an excerpt. At 20 tokens 3 % more questions find evidence, but the cut lines keep the sentence nearest to
the question in meaning in 72 of 100 cases, instead of 78."""
_SHARED, _TELLING, _MOST_TELLING = 2.0, 0.25, 8
"""The worth of a word of the question, and of another word that carries a topic, up to a maximum number."""
_LEAST_CHARACTERS: Final = 20


def excerpted(one: Recalled, question: str, *, shown: Sequence[str] = ()) -> Recalled:
    """Return the item with only the consecutive sentences that bear on the question.

    A short item, a single sentence, and an item that is not an utterance stay unchanged.

    Args:
        shown: Lines in the prompt for the same speech. An excerpt among them stays the same, because a prompt cache has
            read it.
    """
    if not isinstance(one, RecalledUtterance) or tokens_of(one.text) <= LONGEST_TOKENS:
        return one
    who = recalled_of(one)
    for line in shown:
        words = line.removeprefix(who)
        if line.startswith(who) and len(words) >= _LEAST_CHARACTERS and words in in_one_line(one.text):
            return replace(one, text=words)
    return replace(one, text=_excerpt(one.text, question))


def _excerpt(text: str, question: str) -> str:
    said, asked = Text.of(text).sentences, Text.of(question).topic
    worth = [_worth(sentence, asked) for sentence in said]
    first = last = max(range(len(said)), key=worth.__getitem__)
    while True:
        beside = [at for at in (first - 1, last + 1) if 0 <= at < len(said)]
        fitting = [
            at for at in beside if tokens_of(" ".join(said[min(at, first) : max(at, last) + 1])) <= LONGEST_TOKENS
        ]
        if not fitting:
            return " ".join(said[first : last + 1])
        best = max(fitting, key=worth.__getitem__)
        first, last = min(first, best), max(last, best)


def _worth(sentence: str, asked: Set[str]) -> float:
    telling = Text.of(sentence).topic
    return _SHARED * len(telling & asked) + _TELLING * min(len(telling), _MOST_TELLING)


IN_EVERY_PROMPT: Final = "it is in every prompt"
NOT_PLAYED: Final = "it touches a topic that the group does not play"
NOT_NEEDED: Final = "another one contains it, or is nearer to the question"
IN_THE_TALK: Final = "it is already in the prompt's transcript"
_NEAR_THE_BEST: Final = 0.15
"""Largest distance from the best: among facts near to a question, only those almost as near as the best enter."""
OWN_WORDS: Final = "its own words, and the question does not ask for them"


@dataclass(frozen=True, slots=True)
class Candidates:
    """
    Attributes:
        question: The question in the asker's words.
        facts: About the entities in the question, in its order.
        talk: Best first.
        forbids: Returns whether a text must not come up.
        is_told: Returns whether a fact is in all prompts of the NPC.
        in_talk: Returns whether an utterance is in the transcript of the prompt.
        shown: Lines of an earlier selection for the same speech, in their order: a prompt cache has read them.
    """

    question: str
    language: str
    facts: Sequence[RecalledFact] = ()
    talk: Sequence[RecalledTalk] = ()
    forbids: Callable[[str], bool] = lambda _: False
    is_told: Callable[[RecalledFact], bool] = lambda _: False
    in_talk: Callable[[RecalledUtterance], bool] = lambda _: False
    shown: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Selection:
    """
    Attributes:
        chosen: Items that enter the prompt, in its order.
        rejected: The rest, each with the reason, except what is chosen in the same words.
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
        """Return the lines of the prompt."""
        return tuple(recalled_line(one) for one in self.chosen)


def select(candidates: Candidates, budgets: Budgets) -> Selection:
    """Select items for a prompt.

    Facts precede utterances, unless the past is asked about. What was shown for the same speech comes first and in the
    same order, so that most of what a prompt cache has read stays valid.
    """
    question = candidates.question
    asked = question_of(question, candidates.language)
    tokens, most = budgets.facts_tokens, budgets.most_facts
    asks_of_the_past = asked.has(AskKind.PAST)
    said = [one for one in candidates.talk if not candidates.forbids(one.text)]
    stated = [one for one in candidates.facts if not candidates.forbids(one.text)]
    fresh = [one for one in said if not (isinstance(one, RecalledUtterance) and candidates.in_talk(one))]
    others = of_others(fresh)
    if len(others) < len(fresh) and asked.has(AskKind.OWN_WORDS):
        others = fresh
    near = worth_telling(question, others, tokens=tokens, asks_of_the_past=asks_of_the_past)
    # A small model overlooks its identity, so what it says about somebody in the question is repeated beside that.
    least = max((one.similarity or 0.0 for one in (*near, *stated)), default=0.0)
    least -= _NEAR_THE_BEST
    repeated = [one for one in stated if one.is_asked or one.is_named]
    new = [one for one in stated if one in repeated or not candidates.is_told(one)]
    facts = [one for one in _without_parts(new) if one.similarity is None or one.similarity >= least]
    ranked: Sequence[Recalled] = [*near, *facts] if asks_of_the_past else [*facts, *near]
    if tokens <= TIGHT_TOKENS:
        ranked = [excerpted(one, question, shown=candidates.shown) for one in ranked]
    found = chosen(ranked, tokens=tokens, most=most, already=candidates.shown)
    unrelated = {
        id(one): why_unrelated(question, one, asks_of_the_past=asks_of_the_past)
        for one in _without(near, others)
        if not isinstance(one, RecalledFact)
    }
    stages: Sequence[tuple[Sequence[Recalled], Sequence[Recalled], str]] = (
        (found, ranked, no_room(budgets)),
        (near, others, ""),
        (others, fresh, OWN_WORDS),
        (fresh, said, IN_THE_TALK),
        (facts, new, NOT_NEEDED),
        (new, stated, IN_EVERY_PROMPT),
        ((*stated, *said), (*candidates.facts, *candidates.talk), NOT_PLAYED),
    )
    lines = {recalled_line(one) for one in found}
    rejected = tuple(
        Rejected(one, why or unrelated[id(one)])
        for kept, of, why in stages
        for one in _without(kept, of)
        if recalled_line(one) not in lines
    )
    return Selection(tuple(found), rejected)


def _without_parts(facts: Iterable[RecalledFact]) -> list[RecalledFact]:
    """Return the facts without those that are a sentence of another one."""
    found: list[RecalledFact] = []
    for fact in facts:
        if not any(fact.text in other.text for other in found):
            found.append(fact)
    return found


def _without(kept: Sequence[Recalled], of: Sequence[Recalled]) -> Iterator[Recalled]:
    """Yield items of `of` that are not in `kept`, which has the same objects."""
    ids = {id(one) for one in kept}
    return (one for one in of if id(one) not in ids)


def no_room(budgets: Budgets) -> str:
    return f"no room among {budgets.most_facts} in {budgets.facts_tokens} tokens"
