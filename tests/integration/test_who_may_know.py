"""Who may know a fact is one rule in SQL and one in Python: both say the same of every case."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.sql import viewer_parameter
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Claim, Fact, Visibility
from glyphoxa.world.graph import may_know
from tests.support.who_may_know import MAY, MAY_NOT, Case, all_cases

SUBJECT, OTHER = EntityId("subject"), EntityId("other")

_RULE = """
SELECT glyphoxa_may_know(c.viewer, c.status, c.scope, c.knowers)
       AND glyphoxa_may_know(c.viewer, c.subject_scope, c.subject_knowers)
       AND (c.other_scope IS NULL OR glyphoxa_may_know(c.viewer, c.other_scope, c.other_knowers)) AS may
  FROM jsonb_to_recordset($1::text::jsonb) AS c (n INT, viewer TEXT, status TEXT, scope TEXT, knowers TEXT[],
       subject_scope TEXT, subject_knowers TEXT[], other_scope TEXT, other_knowers TEXT[])
 ORDER BY c.n
"""


async def in_python(dsn: str, cases: Sequence[Case]) -> list[bool]:
    return [_in_python(case) for case in cases]


def _in_python(case: Case) -> bool:
    ends = {SUBJECT: case.subject} | ({} if case.other is None else {OTHER: case.other})
    claim = Claim.attribute(SUBJECT, "note", 1) if case.other is None else Claim.relation(SUBJECT, "KNOWS", OTHER)
    fact = Fact(claim.fact_id, claim, 1, case.status, visibility=case.fact)
    return may_know(case.viewer, fact, ends.get)


async def in_sql(dsn: str, cases: Sequence[Case]) -> list[bool]:
    told = [
        {
            "n": n,
            "viewer": viewer_parameter(case.viewer),
            "status": case.status,
            **_columns("", case.fact),
            **_columns("subject_", case.subject),
            **({} if case.other is None else _columns("other_", case.other)),
        }
        for n, case in enumerate(cases)
    ]
    connection = await asyncpg.connect(dsn)
    try:
        return [row["may"] for row in await connection.fetch(_RULE, json.dumps(told))]
    finally:
        await connection.close()


def _columns(end: str, visibility: Visibility) -> dict[str, object]:
    return {f"{end}scope": visibility.scope, f"{end}knowers": [knower.npc for knower in visibility.knowers]}


Rule = Callable[[str, Sequence[Case]], Awaitable[list[bool]]]
EITHER = pytest.mark.parametrize("rule", [in_python, in_sql])


@EITHER
async def test_who_may_know(dsn: str, rule: Rule) -> None:
    answers = await rule(dsn, [case for _, case in MAY])
    assert [why for (why, _), may in zip(MAY, answers, strict=True) if not may] == []


@EITHER
async def test_who_may_not_know(dsn: str, rule: Rule) -> None:
    answers = await rule(dsn, [case for _, case in MAY_NOT])
    assert [why for (why, _), may in zip(MAY_NOT, answers, strict=True) if may] == []


async def test_both_say_the_same_of_every_scope_status_and_end(dsn: str) -> None:
    cases = list(all_cases())
    by_python, by_sql = await in_python(dsn, cases), await in_sql(dsn, cases)
    assert [case for case, one, other in zip(cases, by_python, by_sql, strict=True) if one != other] == []
    assert 0 < sum(by_python) < len(cases)


def test_nobody_may_know_what_an_entity_that_is_gone_is_said_to_be() -> None:
    claim = Claim.attribute(SUBJECT, "note", 1)
    fact = Fact(claim.fact_id, claim, 1, "accepted")
    assert not may_know(MAY[0][1].viewer, fact, {}.get)
