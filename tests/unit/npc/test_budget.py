from __future__ import annotations

import pytest

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.npc.budget import DEFAULT_RULES, TierSelector, lower_tier


def test_fast_declares_exactly_one_tool_and_the_others_all() -> None:
    every = {
        "memory.query_entities",
        "memory.search_sessions",
        "memory.get_session_summary",
        "memory.search_facts",
    }
    assert set(DEFAULT_RULES["FAST"].tools) == {"memory.query_entities"}
    assert set(DEFAULT_RULES["STANDARD"].tools) == every
    assert set(DEFAULT_RULES["DEEP"].tools) == every


def test_each_tier_has_the_ceiling_of_the_table() -> None:
    assert {tier: rule.ceiling_ms for tier, rule in DEFAULT_RULES.items()} == {
        "FAST": 500,
        "STANDARD": 1_500,
        "DEEP": 4_000,
    }


@pytest.mark.parametrize(
    ("question", "queued", "first", "tier"),
    [
        ("Tell me everything about the tower.", 0, False, "DEEP"),
        ("Explain the ancient ruins in detail.", 0, False, "DEEP"),
        ("Do you remember the tavern in Saltmere?", 0, False, "STANDARD"),
        ("Do you remember the tavern in Saltmere?", 2, False, "STANDARD"),
        ("Do you remember the tavern in Saltmere?", 3, False, "FAST"),
        ("What are the rules for grappling?", 0, False, "STANDARD"),
        ("Good morning, traveller!", 0, False, "FAST"),
        ("Hello there.", 0, True, "STANDARD"),
        ("Think carefully before you answer.", 3, False, "DEEP"),
        ("I have one question.", 0, False, "FAST"),
    ],
)
def test_the_question_asks_for_its_tier(question: str, queued: int, first: bool, tier: BudgetTier) -> None:
    selector = TierSelector("DEEP")
    if not first:
        selector.select("Good morning.", at_ms=0)
    assert selector.select(question, at_ms=60_000, queued=queued) == tier


def test_a_second_deep_question_within_half_a_minute_is_standard() -> None:
    selector = TierSelector("DEEP")
    assert selector.select("Tell me everything.", at_ms=0) == "DEEP"
    assert selector.select("Tell me everything.", at_ms=29_999) == "STANDARD"
    assert selector.select("Tell me everything.", at_ms=30_000) == "DEEP"


def test_the_dm_overrides_but_never_beyond_what_the_npc_may() -> None:
    selector = TierSelector("STANDARD")
    assert selector.select("Hello.", at_ms=0, override="DEEP") == "STANDARD"
    assert selector.select("Tell me everything.", at_ms=1, override="FAST") == "FAST"


def test_an_override_ignores_the_guard_against_repeated_depth() -> None:
    selector = TierSelector("DEEP")
    selector.select("Tell me everything.", at_ms=0)
    assert selector.select("Hello.", at_ms=1, override="DEEP") == "DEEP"


def test_a_reset_makes_the_first_turn_first_again_and_allows_depth() -> None:
    selector = TierSelector("DEEP")
    selector.select("Tell me everything.", at_ms=0)
    selector.reset()
    assert selector.select("Hello.", at_ms=1) == "STANDARD"
    assert selector.select("Tell me everything.", at_ms=2) == "DEEP"


def test_the_lower_of_two_tiers_holds() -> None:
    assert lower_tier("FAST", "DEEP") == "FAST"
    assert lower_tier("DEEP", "STANDARD") == "STANDARD"
