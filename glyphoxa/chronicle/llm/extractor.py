"""Extraction with a language model beside the rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.chronicle.effects import folded
from glyphoxa.chronicle.llm.merging import KnownBefore, merged
from glyphoxa.chronicle.llm.question import Pace, QuestionLimits, question_about
from glyphoxa.chronicle.rules.extractor import RulesExtractor
from glyphoxa.chronicle.talk import Extraction, KnownEntity, SceneTalk
from glyphoxa.domain.errors import Unavailable
from glyphoxa.llm.structured import StructuredLlm, Unparseable

TEMPERATURE: Final = 0.0


@dataclass(frozen=True, slots=True)
class LlmReading:
    """How a language model is asked.

    Attributes:
        pace: Of all that is asked of it.
        breaker: It is let be for a while when it fails again and again.
        deadline_ms: For one answer; later is none.
        limits: Of what it is shown at once, and of its answer.
    """

    llm: StructuredLlm
    pace: Pace
    breaker: CircuitBreaker
    deadline_ms: int
    limits: QuestionLimits

    @property
    def longest_ms(self) -> int:
        """For one stretch, the wait for its turn included."""
        return self.pace.gap_ms + self.deadline_ms


class LlmExtractor:
    """An `Extractor` that keeps what the rules find and asks a model once for what they missed. A model that is away,
    late, or answers something else costs nothing but what it would have found.

    Args:
        narrators: Names of speakers who tell the story and are nobody in it.
    """

    def __init__(
        self, rules: RulesExtractor, asking: LlmReading, language: str, *, narrators: Iterable[str] = ()
    ) -> None:
        self._rules = rules
        self._asking = asking
        self._language = language
        self._narrators = frozenset(folded(name) for name in narrators)

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        found, asking = await self._rules.extract(talk, known), self._asking
        question = question_about(talk, asking.limits)
        if question is None:
            return found
        if question.n_left:
            found = _noted(found, f"{question.n_left} lines of the stretch were too many for the model")
        if not asking.breaker.may_try():
            return _noted(found, "read by rules alone: the model failed before, and is let be for a while")
        try:
            await asking.pace.wait()
            answer = await asking.llm.complete(
                question.system,
                question.user,
                question.schema,
                temperature=TEMPERATURE,
                deadline_ms=asking.deadline_ms,
            )
        except Unavailable as error:
            asking.breaker.failed()
            return _noted(found, f"read by rules alone: {error}")
        except Unparseable as error:
            asking.breaker.succeeded()
            return _noted(found, f"read by rules alone: {error}")
        except BaseException:
            asking.breaker.failed()  # stopped by whoever waits: how it would have gone is not known
            raise
        asking.breaker.succeeded()
        before = KnownBefore(known, self._rules.names, found, self._narrators)
        return await asyncio.to_thread(merged, answer, question, before, language=self._language)


def _noted(found: Extraction, why: str) -> Extraction:
    return replace(found, refused=(*found.refused, why))
