"""What an NPC has in mind for one turn: the section `context` of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from glyphoxa.config.sections import Section
from glyphoxa.context.composition import AT_MOST_LATER_MS
from glyphoxa.context.prompt import Placement, Role


class ContextSettings(Section):
    """What an NPC has in mind for one turn.

    Attributes:
        part_deadline_ms: For identity and facts each; a late part is left out.
        recall_deadline_ms: For recall of past talk.
        identity_tokens: Of what an NPC knows of itself, tokens of 4 characters each. Left out, this and the other
            budgets are those of the model's profile.
        scene_tokens: Of where it is, and with whom.
        bible_tokens: Of the campaign's bible and coined words.
        past_tokens: Of the summaries of earlier sessions.
        facts_tokens: Of what an NPC recalls.
        max_facts: Sentences of it; left out, one for each 22 tokens.
        facts_depth: It stands in a message of its own, with so many messages of talk behind it. Left out: in the
            message of the question, behind it. An NPC with engine s2s has it there always.
        facts_role: Of that message. system: what was said stands behind it in one of the user's.
        history_tokens: Of recent talk; the oldest half is cut when there is more.
        guard_secrets: No sentence that tells one of the NPC's own secrets is said. false: the prompt still marks them
            to be kept, and the model decides.
    """

    part_deadline_ms: Annotated[int, Field(ge=1, le=5000)] = 50
    recall_deadline_ms: Annotated[int, Field(ge=1, le=5000)] = 50
    identity_tokens: Annotated[int, Field(ge=20, le=4_000)] | None = None
    scene_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    bible_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    past_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    facts_tokens: Annotated[int, Field(ge=0, le=20_000)] | None = None
    max_facts: Annotated[int, Field(ge=0, le=500)] | None = None
    facts_depth: Annotated[int, Field(ge=0, le=9999)] | None = None
    facts_role: Role = "system"
    history_tokens: Annotated[int, Field(ge=0, le=100_000)] | None = None
    guard_secrets: bool = True

    @property
    def facts_at(self) -> Placement:
        """Where what an NPC recalls stands."""
        return Placement(self.facts_depth, self.facts_role)

    @property
    def deadline_ms(self) -> int:
        """Of a hot context whose parts do not keep their deadlines."""
        return max(self.part_deadline_ms, self.recall_deadline_ms) + AT_MOST_LATER_MS


def placement_contradictions(context: ContextSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each with where it stands in the file."""
    at, role = ("context", "facts_role"), context.facts_role
    if context.facts_depth is None and role != "system":
        yield at, f"context.facts_role {role} is of a message of its own: set context.facts_depth, 0 to 9999, as well"
    elif context.facts_depth == 0 and role == "assistant":
        yield (
            at,
            "context.facts_role assistant at context.facts_depth 0 would be what the NPC has answered already; "
            "valid: system, user",
        )
