"""Models that pick and reorder memories, for recall over the memory graph."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from glyphoxa.chat.questions import JsonSchema
from glyphoxa.config.provider_sections import RecallStage

GRAPH_STAGES: tuple[RecallStage, ...] = get_args(RecallStage)


@dataclass
class PickingLlm:
    """Picks, and opens, the memories that hold certain words, round by round; the last round is repeated.

    Attributes:
        rounds: Words of what is picked and of what is opened. An error in place of a round is raised.
        is_silent: It never answers.
    """

    rounds: Sequence[tuple[Sequence[str], Sequence[str]] | Exception] = (((), ()),)
    is_silent: bool = False
    prompts: list[str] = field(default_factory=list)
    deadlines_ms: list[int] = field(default_factory=list)

    async def complete(
        self, system: str, user: str, schema: JsonSchema, *, temperature: float = 0.0, deadline_ms: int = 30_000
    ) -> dict[str, Any]:
        round_ = self.rounds[min(len(self.prompts), len(self.rounds) - 1)]
        self.prompts.append(user)
        self.deadlines_ms.append(deadline_ms)
        if self.is_silent:
            await asyncio.Event().wait()
        if isinstance(round_, Exception):
            raise round_
        chosen, opened = ([n for word in words for n, line in enumerate(self.shown[-1], 1) if word in line]
                          for words in round_)  # fmt: skip
        return {"chosen": chosen, "open": opened}

    @property
    def shown(self) -> list[list[str]]:
        """The memories of each prompt."""
        return [re.findall(r"^\d+\. (.*)$", prompt, re.MULTILINE) for prompt in self.prompts]


@dataclass
class RerankerTwin:
    """Gives `answer`, raises it if it is an error, never answers if it is "never"; None: prefers what comes last."""

    answer: Any = None
    asked: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    async def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        self.asked.append((question, list(texts)))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer == "never":
            await asyncio.Event().wait()
        return range(len(texts)) if self.answer is None else self.answer
