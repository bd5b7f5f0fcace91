"""The facts about somebody or something that a prompt has room for: those that the question asks for by name, where it
asks for some; else what describes it best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.context.knowledge import most_telling, recalled_of
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import RecalledFact
from glyphoxa.recall.entities.facts import FactsAsked, facts_asked
from glyphoxa.recall.entities.named_world import KnownByName
from glyphoxa.world.api import Known

_BESIDE = 0.5
"""What describes an entity, against what is asked of it."""


def select_facts(
    found: Sequence[KnownByName], question: str, npc: NpcId, *, language: str = "en"
) -> list[tuple[KnownByName, list[RecalledFact]]]:
    """
    Args:
        found: Whom the question names, in the order in which they are named, then who comes along. Facts about who
            comes along stand beside the others, and not at all where the question is answered without.
        language: Of the question.

    Returns:
        Of each of them the selected facts, with their `path`.
    """
    named = [one.known.entity.id for one in found if one.is_named]
    selected: list[tuple[KnownByName, list[RecalledFact]]] = []
    is_answered = False
    for one in found:
        asked = facts_asked(one.known, question, named=named, language=language)
        is_answered = is_answered or (asked.answer is not None and asked.is_short)
        if one.is_named:
            selected.append((one, _with_path(_facts_of(one.known, asked, npc), one.why, asked)))
        elif not is_answered:
            beside = [replace(each, score=_BESIDE) for each in most_telling(one.known, npc)]
            selected.append((one, _with_path(beside, one.why, asked)))
    return selected


def _facts_of(known: Known, asked: FactsAsked, npc: NpcId) -> list[RecalledFact]:
    if asked.answer is None:
        return most_telling(known, npc)
    answer = list(recalled_of(asked.answer, npc))
    if asked.is_short:
        return answer
    beside = (one for one in most_telling(known, npc) if one not in answer)
    return [*answer, *(replace(one, score=_BESIDE) for one in beside)]


def _with_path(facts: Sequence[RecalledFact], why: str, asked: FactsAsked) -> list[RecalledFact]:
    answer = asked.answer
    answering = () if answer is None else (*answer.attributes, *(fact for fact, _ in answer.relations))
    asks = {fact.id: f"{why}, asks for {fact.claim.predicate}" for fact in answering}
    return [replace(one, path=asks.get(one.fact_id, why)) for one in facts]
