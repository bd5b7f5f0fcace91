"""What of somebody or something an NPC is told for a question (R-136).

The facts that the question asks for by name, where it asks for some; else what describes it best.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from glyphoxa.context.knowledge import recalled_of
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports.graph import Known
from glyphoxa.memory.recall.exact.facts import facts_asked

_BESIDE = 0.5
"""What describes an entity, against what is asked of it."""


def told_of(
    known: Known, question: str, npc: NpcId, *, named: Collection[EntityId] = (), language: str = "en"
) -> list[Recalled]:
    """
    Args:
        known: As the graph gives it for this NPC.
        named: All entities that the question names.
        language: Of the question.
    """
    asked = facts_asked(known, question, named=named, language=language)
    if asked.answer is None:
        return _most_telling(recalled_of(known, npc))
    answer = list(recalled_of(asked.answer, npc))
    if asked.is_short:
        return answer
    beside = (one for one in _most_telling(recalled_of(known, npc)) if one not in answer)
    return [*answer, *(replace(one, score=_BESIDE) for one in beside)]


def _most_telling(known: Sequence[Recalled]) -> list[Recalled]:
    """What describes an entity best, and of what not everybody knows of it the best."""
    return [*known[:1], *[one for one in known[1:] if one.reason != "public"][:1]]
