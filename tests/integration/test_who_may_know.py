"""Who may know a fact is one rule in SQL and one in Python: both say the same of every case."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

import asyncpg
import pytest

from glyphoxa.adapters.postgres.server.sql import viewer_parameter
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim, Fact, Knower, ScopeName, Status, Viewer, Visibility
from glyphoxa.world.graph import may_know

MIRA, GRIM = NpcId("mira"), NpcId("grimjaw")


def known_to(scope: ScopeName, *npcs: NpcId) -> Visibility:
    return Visibility.of(scope, (Knower(npc, "told") for npc in npcs))


@dataclass(frozen=True, slots=True)
class Case:
    """A fact, its two ends, and who asks.

    Attributes:
        other: Visibility of the other end; None for an attribute.
    """

    viewer: Viewer
    fact: Visibility = PUBLIC
    status: Status = "accepted"
    subject: Visibility = PUBLIC
    other: Visibility | None = None


HIDDEN_FROM_ALL = known_to("hidden", MIRA)
MAY: tuple[tuple[str, Case], ...] = (
    ("everybody, what is public", Case(MIRA)),
    ("who was there", Case(MIRA, known_to("witnessed", MIRA))),
    ("who was told", Case(MIRA, known_to("told", GRIM, MIRA))),
    ("whom the DM named", Case(MIRA, known_to("secret", MIRA))),
    ("who knows of both ends", Case(MIRA, subject=known_to("secret", MIRA), other=known_to("told", MIRA))),
    ("the DM, what is hidden", Case(DM, HIDDEN_FROM_ALL, subject=HIDDEN_FROM_ALL, other=HIDDEN_FROM_ALL)),
    ("the DM, what waits", Case(DM, status="pending")),
    ("the DM, what is known to nobody", Case(DM, known_to("secret"))),
)
MAY_NOT: tuple[tuple[str, Case], ...] = (
    ("who was not there", Case(MIRA, known_to("witnessed", GRIM))),
    ("who was not told", Case(MIRA, known_to("told"))),
    ("whom the DM did not name", Case(MIRA, known_to("secret", GRIM))),
    ("anybody, what is hidden, though they heard it", Case(MIRA, HIDDEN_FROM_ALL)),
    ("anybody, what waits for the DM", Case(MIRA, status="pending")),
    ("anybody, what is disputed", Case(MIRA, known_to("secret", MIRA), status="conflict")),
    ("anybody, what rests on nothing any more", Case(MIRA, status="stale")),
    ("who may not know of the subject", Case(MIRA, subject=known_to("secret", GRIM))),
    ("who may not know of the other end", Case(MIRA, other=known_to("secret", GRIM))),
    ("who may know of a fact but of neither end", Case(MIRA, known_to("told", MIRA), subject=HIDDEN_FROM_ALL)),
    ("another whose name only begins so", Case(NpcId("mir"), known_to("told", MIRA))),
)


def all_cases() -> Iterator[Case]:
    """Every scope, known or not, of a fact and of its ends, of every status, for either viewer."""
    seen = [known_to(scope, *npcs) for scope in get_args(ScopeName) for npcs in ((), (MIRA,), (GRIM,))]
    for viewer, fact, status in product((DM, MIRA), seen, get_args(Status)):
        for subject, other in product(seen, (None, *seen)):
            yield Case(viewer, fact, status, subject, other)


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
