"""What of somebody or something an NPC is told for a question (R-136).

The facts that the question asks for by name, where it asks for some; else what describes it best.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from glyphoxa.context.knowledge import recalled_of
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.turn import Recalled
from glyphoxa.memory.ports.by_name import KnownByName
from glyphoxa.memory.ports.graph import Known
from glyphoxa.memory.recall.exact.facts import FactsAsked, facts_asked

_BESIDE = 0.5
"""What describes an entity, against what is asked of it."""


def told_by_name(
    found: Sequence[KnownByName], question: str, npc: NpcId, *, language: str = "en"
) -> list[tuple[KnownByName, list[Recalled]]]:
    """
    Args:
        found: Whom the question names, in the order in which they are named, then who comes along. Who comes along is
            told of beside the others, and not at all where the question is answered without.
        language: Of the question.
    """
    named = [one.known.entity.id for one in found if one.is_named]
    told: list[tuple[KnownByName, list[Recalled]]] = []
    is_answered = False
    for one in found:
        asked = facts_asked(one.known, question, named=named, language=language)
        is_answered = is_answered or (asked.answer is not None and asked.is_short)
        if one.is_named:
            told.append((one, _told_of(one.known, asked, npc)))
        elif not is_answered:
            told.append((one, [replace(each, score=_BESIDE) for each in _most_telling(recalled_of(one.known, npc))]))
    return told


def told_of(
    known: Known, question: str, npc: NpcId, *, named: Collection[EntityId] = (), language: str = "en"
) -> list[Recalled]:
    """
    Args:
        known: As the graph gives it for this NPC.
        named: All entities that the question names.
        language: Of the question.
    """
    return _told_of(known, facts_asked(known, question, named=named, language=language), npc)


def _told_of(known: Known, asked: FactsAsked, npc: NpcId) -> list[Recalled]:
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
