"""Contents of a prompt, for its sentences where memory is silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import RecalledFact, RecalledUtterance
from glyphoxa.judgement.small_model import PromptRepair
from glyphoxa.prompt.select import without_call
from tests.support.recalled import heard


def a_mind(
    *facts: str, remembered: Sequence[str] = (), talk: Sequence[str] = (), known: Sequence[str] = (), path: str = ""
) -> PromptRepair:
    """Mirelle's, asked by Wenna. `remembered` are lines of Wenna's, unless they say who said them."""
    return PromptRepair(
        "",
        "en",
        "Mirelle",
        facts=[RecalledFact(FactId("f"), text, path=path) for text in facts],
        remembered=[said(text) for text in remembered],
        talk=talk,
        beside=("Mirelle keeps the Salted Eel, where a room costs four pennies.",),
        is_known=lambda name: name in known,
        asker="Wenna",
    )


def said(text: str, *, by: str = "Wenna", similarity: float | None = None) -> RecalledUtterance:
    by, text = text.split(" said: ") if " said: " in text else (by, text)
    return heard(text, by=by, is_own=by == "Mirelle", similarity=similarity)


def repair(question: str, mind: PromptRepair | None = None, *, language: str = "en") -> PromptRepair:
    mind = mind or a_mind()
    return replace(mind, question=without_call(question, mind.name), language=language)


def sentences(question: str, mind: PromptRepair | None = None, *, language: str = "en") -> tuple[str, ...]:
    return repair(question, mind, language=language).not_known().facts
