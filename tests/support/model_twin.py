"""A language model that gives prepared answers."""

from __future__ import annotations

from typing import Any

from glyphoxa.actors.limits import CircuitBreaker
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import JsonSchema


class ModelTwin:
    """Gives its answers in order, and the last one again and again. An error among them is raised.

    Attributes:
        asked: Questions so far, without the system's part.
    """

    def __init__(self, *answers: dict[str, Any] | BaseException) -> None:
        self._answers = answers
        self.asked: list[str] = []
        self.temperatures: list[float] = []
        self.schema: JsonSchema = {}

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        self.schema = schema
        self.temperatures.append(temperature)
        self.asked.append(user)
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def asking(self) -> ModelAsker:
        """The client of this model: one try for each question, within a second."""
        return ModelAsker(self, 1_000, breaker=CircuitBreaker(lambda: 0), retries=0)
