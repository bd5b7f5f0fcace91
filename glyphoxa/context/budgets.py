"""How much of each part goes into a prompt, and how long it may take to gather."""

from __future__ import annotations

from dataclasses import dataclass

PERSONA_TOKENS = 300
"""Of what an author writes of an NPC: beyond that little is left for the talk in a small model's 2,048 tokens."""
STANDING_TOKENS = 800
"""Persona, frame and examples of an NPC, which stand in front of what has a budget, and its reply."""
BUDGETS = ("identity_tokens", "scene_tokens", "bible_tokens", "past_tokens", "facts_tokens", "history_tokens")
"""Of `Budgets`, those that a model's profile decides."""
_TOKENS_A_LINE = 22
"""Of talk at a table, with who says it."""
_SHORTEST_LINE = 12
_LEAST_RECALLED = 15


@dataclass(frozen=True, slots=True)
class Budgets:
    """
    Attributes:
        identity_tokens: Of what an NPC knows of itself, and of each secret it has in mind. A small local model is given
            few: they cost it its voice.
        scene_tokens: Of the line that says where the NPC is. From 100 it says more than where, see
            `glyphoxa.context.scene`.
        bible_tokens: Of the campaign's bible and coined words, see `glyphoxa.context.bible`.
        past_tokens: Of the summaries of earlier sessions, see `glyphoxa.context.past`.
        facts_tokens: Of recalled and looked-up sentences together, tokens of 4 characters. A small model has use for
            few; what a large one is given nearly covers what is found at all (94 % of LoCoMo's questions in 1,500).
        max_facts: The same in lines; None: as many as usually fit.
        history_tokens: Of the talk so far.
    """

    identity_tokens: int = 120
    scene_tokens: int = 60
    bible_tokens: int = 120
    past_tokens: int = 60
    facts_tokens: int = 90
    max_facts: int | None = None
    history_tokens: int = 500
    part_deadline_ms: int = 50
    recall_deadline_ms: int = 50

    @property
    def most_facts(self) -> int:
        return self.facts_tokens // _TOKENS_A_LINE if self.max_facts is None else self.max_facts

    @property
    def max_recalled(self) -> int:
        """Utterances that memory is asked for, from which these are chosen."""
        return max(_LEAST_RECALLED, self.facts_tokens // _SHORTEST_LINE)
