"""How somebody came to know something, and how sure it is, in words for the DM. See `glyphoxa.world.wording`."""

from __future__ import annotations

from typing import assert_never

from glyphoxa.dm.resolver import NameResolver
from glyphoxa.domain.knowledge import Fact, Knower
from glyphoxa.world.api import moment


def knower_in_words(knower: Knower, resolver: NameResolver) -> str:
    """How one NPC came to know something."""
    match knower.how:
        case "witnessed":
            how = "was there when it was said"
        case "told":
            how = "was told" if knower.by is None else f"was told by {resolver.person(knower.by)}"
        case "secret":
            how = "is in the secret"
        case _:
            assert_never(knower.how)
    when = f", {moment(knower.at_ms)}" if knower.at_ms is not None else ""
    where = f" (utterance {knower.utterance_id})" if knower.utterance_id is not None else ""
    return f"{resolver.person(knower.npc)} {how}{when}{where}"


def certainty_in_words(fact: Fact) -> str:
    """Such as: 0.55 inferred; 1.00 stated, confirmed."""
    told = f"{fact.provenance.confidence:.2f} {fact.provenance.source}"
    return f"{told}, confirmed" if fact.provenance.dm_confirmed else told
