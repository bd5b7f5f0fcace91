from __future__ import annotations

import pytest

from glyphoxa.domain.budgets import lower_tier
from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.npc.toolbox import TierSelector


def take(selector: TierSelector, question: str, *, at_ms: int, queued: int = 0) -> BudgetTier:
    """The tier of a turn that is not called off."""
    chosen = selector.choose(question, at_ms=at_ms, queued=queued)
    selector.took(chosen, at_ms=at_ms)
    return chosen.tier


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
        take(selector, "Good morning.", at_ms=0)
    assert take(selector, question, at_ms=60_000, queued=queued) == tier


def test_a_second_deep_question_within_half_a_minute_is_standard() -> None:
    selector = TierSelector("DEEP")
    assert take(selector, "Tell me everything.", at_ms=0) == "DEEP"
    assert take(selector, "Tell me everything.", at_ms=29_999) == "STANDARD"
    assert take(selector, "Tell me everything.", at_ms=30_000) == "DEEP"


def test_cancelled_turn_does_not_count_for_the_next() -> None:
    selector = TierSelector("DEEP")
    assert selector.choose("Tell me everything.", at_ms=0).tier == "DEEP"
    assert selector.choose("Tell me everything.", at_ms=1).tier == "DEEP"
    assert selector.choose("Hello.", at_ms=2).tier == "STANDARD"


@pytest.mark.parametrize(
    ("question", "tier"),
    [
        ("Überleg gut: wo war er?", "DEEP"),
        ("Erzähl mir alles über den Turm.", "DEEP"),
        ("Weißt du noch, wie der Wirt hieß?", "STANDARD"),
        ("Wer ist der Bürgermeister?", "STANDARD"),
        ("Ich habe eine Frage.", "FAST"),
        ("Remember the tower!", "FAST"),
    ],
)
def test_a_campaign_has_the_words_of_its_language(question: str, tier: BudgetTier) -> None:
    selector = TierSelector("DEEP", language="de-AT")
    take(selector, "Guten Morgen.", at_ms=0)
    assert take(selector, question, at_ms=60_000) == tier


def test_words_of_the_settings_are_added() -> None:
    selector = TierSelector("DEEP", deep=("by the old gods",), standard=("my ledger",))
    take(selector, "Hello.", at_ms=0)
    assert take(selector, "By the old gods, who was it?", at_ms=1) == "DEEP"
    assert take(selector, "Read me my ledger.", at_ms=2) == "STANDARD"
    assert take(selector, "Do you remember?", at_ms=3) == "STANDARD"


def test_a_choice_says_why_and_how_long() -> None:
    selector = TierSelector("STANDARD")
    first = selector.choose("Hello.", at_ms=0)
    assert (first.tier, first.reason, first.ceiling_ms) == ("STANDARD", "first turn of the conversation", 1_500)
    deep = selector.choose("Tell me all of it in detail.", at_ms=0)
    assert (deep.tier, deep.reason) == ("STANDARD", "asks for depth: 'in detail'; limited by this NPC's tier")
    assert selector.choose("Hm.", at_ms=0, queued=3).reason == "3 others are waiting"


def test_the_lower_of_two_tiers_holds() -> None:
    assert lower_tier("FAST", "DEEP") == "FAST"
    assert lower_tier("DEEP", "STANDARD") == "STANDARD"
