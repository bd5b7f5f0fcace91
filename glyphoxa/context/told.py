"""What of somebody or something an NPC is told for a question.

The facts that the question asks for by name, where it asks for some; else what describes it best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.context.knowledge import most_telling, recalled_of
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.turn import Recalled
from glyphoxa.recall.by_name import KnownByName
from glyphoxa.recall.entities.facts import FactsAsked, facts_asked
from glyphoxa.world.graph import Known

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

    Returns:
        Of each of them what is told, with its `path`.
    """
    named = [one.known.entity.id for one in found if one.is_named]
    told: list[tuple[KnownByName, list[Recalled]]] = []
    is_answered = False
    for one in found:
        asked = facts_asked(one.known, question, named=named, language=language)
        is_answered = is_answered or (asked.answer is not None and asked.is_short)
        if one.is_named:
            told.append((one, _with_path(_told_of(one.known, asked, npc), one.why, asked)))
        elif not is_answered:
            beside = [replace(each, score=_BESIDE) for each in most_telling(one.known, npc)]
            told.append((one, _with_path(beside, one.why, asked)))
    return told


def _told_of(known: Known, asked: FactsAsked, npc: NpcId) -> list[Recalled]:
    if asked.answer is None:
        return most_telling(known, npc)
    answer = list(recalled_of(asked.answer, npc))
    if asked.is_short:
        return answer
    beside = (one for one in most_telling(known, npc) if one not in answer)
    return [*answer, *(replace(one, score=_BESIDE) for one in beside)]


def _with_path(told: Sequence[Recalled], why: str, asked: FactsAsked) -> list[Recalled]:
    answer = asked.answer
    facts = () if answer is None else (*answer.attributes, *(fact for fact, _ in answer.relations))
    asks = {fact.id: f"{why}, asks for {fact.claim.predicate}" for fact in facts}
    return [replace(one, path=why if one.fact_id is None else asks.get(one.fact_id, why)) for one in told]
