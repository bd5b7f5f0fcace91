"""What other packages may use of recall."""

from __future__ import annotations

from glyphoxa.recall.around import RecallAround
from glyphoxa.recall.entities.facts import TOOK_PART, FactsAsked, asked_predicates, facts_asked
from glyphoxa.recall.entities.named_world import FactsByName, KnownByName, NamedWorld
from glyphoxa.recall.question import MOST_CHARACTERS, asks_for_a_time
from glyphoxa.recall.ranking.ranking import BY_WORDS
from glyphoxa.recall.recall import Recall, RecallResult, RecallSettings
from glyphoxa.recall.semantic.embedder import Embedder
from glyphoxa.recall.temporal.evenings import STILL_PLAYED_MS
from glyphoxa.recall.terms import NAME, Terms

__all__ = [
    "BY_WORDS",
    "MOST_CHARACTERS",
    "NAME",
    "STILL_PLAYED_MS",
    "TOOK_PART",
    "Embedder",
    "FactsAsked",
    "FactsByName",
    "KnownByName",
    "NamedWorld",
    "Recall",
    "RecallAround",
    "RecallResult",
    "RecallSettings",
    "Terms",
    "asked_predicates",
    "asks_for_a_time",
    "facts_asked",
]
