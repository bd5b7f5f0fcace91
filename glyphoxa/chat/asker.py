"""Asks a language model in the background: for extraction, judgement, summaries, the glossary, names and recall.

A question waits for the rate limit, has a deadline for all its attempts, and contains no line that must not come up.
An answer of another form is asked for again if at least half of the deadline is left by then. After repeated failures
the model is paused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from glyphoxa.actors.clock import loop_ms
from glyphoxa.actors.deadline import answered_within
from glyphoxa.actors.limits import CircuitBreaker, RateLimit
from glyphoxa.chat.questions import Answer, ModelQuestion, StructuredLlm, Unparseable, validated

_AGAIN: Final = 0.3
"""Temperature of another attempt: at 0 the same question gets the same answer."""
_GRACE_MS: Final = 100
"""A client has so long to report itself that its model is late."""


@dataclass(frozen=True, slots=True)
class QuestionLimits:
    """Limits of a prompt and its answer.

    Attributes:
        max_chars: For all lines together. Lines before the stretch are dropped first, then its last lines.
        max_found: For each kind. Without a limit a small model repeats its findings.
        max_text_chars: Characters of each text in the answer; None: the model's schemas support no such limit.
    """

    max_chars: int = 40_000
    max_found: int = 12
    max_text_chars: int | None = None


@dataclass(frozen=True, slots=True)
class ModelAsker:
    """A language model that is asked in the background.

    Attributes:
        deadline_ms: For one answer, all attempts together. A later answer is ignored.
        pace: Rate limit of all requests.
        breaker: Pauses the model after repeated failures.
        retries: How often it is asked again, if its answer is of another form and time is left.
        at_once: Most questions at a time, where several do not depend on each other.
        temperature: Least temperature.
        limits: Limits of the prompt and the answer, where a task needs some.
        forbids: Whether a line touches what must not come up. The model reads "..." instead.
    """

    llm: StructuredLlm
    deadline_ms: int = 30_000
    pace: RateLimit = field(default_factory=lambda: RateLimit(1, 0))
    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker(loop_ms))
    retries: int = 1
    at_once: int = 1
    temperature: float = 0.0
    limits: QuestionLimits = QuestionLimits()
    forbids: Callable[[str], bool] = lambda _line: False

    @property
    def longest_ms(self) -> int:
        """Maximum time for one question, including the rate limit."""
        return self.pace.every_ms + self.deadline_ms

    async def ask(
        self,
        question: ModelQuestion[Answer],
        *,
        deadline_ms: int | None = None,
        check: Callable[[Answer], object] = lambda _answer: None,
    ) -> Answer:
        """Ask the model a question, at its rate limit.

        Args:
            deadline_ms: If less time is left than the model has.
            check: Raises `Unparseable` for an answer that is of the form and still cannot be used.

        Raises:
            Unavailable: It is paused, cannot be reached or is late.
            Unparseable: The answer has another form, or does not pass the check, after all attempts.
        """
        left_ms = whole_ms = self.deadline_ms if deadline_ms is None else deadline_ms
        await self._in_turn()
        until_ms = loop_ms() + whole_ms
        with self.breaker.calling(answers=Unparseable):
            for again in range(self.retries + 1):
                try:
                    answer = await self._attempt(question, max(self.temperature, _AGAIN if again else 0.0), left_ms)
                    check(answer)
                    return answer
                except Unparseable:
                    if again == self.retries or until_ms - loop_ms() - self.pace.every_ms < whole_ms // 2:
                        raise
                await self._in_turn()
                left_ms = until_ms - loop_ms()
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, question: ModelQuestion[Answer], temperature: float, deadline_ms: int) -> Answer:
        user = "\n".join("..." if self.forbids(line) else line for line in question.user.split("\n"))
        async with answered_within(deadline_ms + _GRACE_MS, "the model did not answer"):
            fields = await self.llm.complete(
                question.system, user, question.schema, temperature=temperature, deadline_ms=deadline_ms
            )
        return validated(question.answer, fields)

    async def _in_turn(self) -> None:
        await asyncio.sleep(self.pace.reserve(at_ms=loop_ms()) / 1_000)
