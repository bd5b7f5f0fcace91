"""What a DM says of the world, put into claims, and into statements that need no further word."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import Claim, Knower, Provenance, Validity, Visibility
from glyphoxa.world.fact_events import FactStated
from glyphoxa.world.state import rule_of

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # as JSON writes it


def stated_by_dm(claim: Claim, visibility: Visibility, *, at_ms: int) -> FactStated:
    """Certain and confirmed."""
    # Where a later fact ends an earlier one it counts since when it holds; elsewhere that is not known.
    since = at_ms if rule_of(claim, {}) in ("functional", "functional_object") else None
    provenance = Provenance(1.0, "stated", dm_confirmed=True, origin="dm", at_ms=at_ms)
    return FactStated(claim, provenance, visibility, Validity(from_ms=since))


def attribute_claim(subject: EntityId, name: str, value: object) -> Claim:
    """
    Raises:
        InvalidInput: No JSON, or no database, can hold the value.
    """
    claim = Claim.attribute(subject, name, value)
    if _NUL.search(claim.value or ""):
        raise InvalidInput(f"{name!r} of {subject!r}: text cannot hold NUL characters")
    return claim


def secret_among(npcs: Sequence[NpcId], before: Visibility, *, now_ms: int) -> Visibility:
    """Known to these; who of them knew it before keeps how."""
    how = {knower.npc: knower for knower in before.knowers}
    return Visibility.of("secret", (how.get(npc) or Knower(npc, "secret", None, now_ms) for npc in npcs))


def predicate_of(predicate: str) -> str:
    """
    Raises:
        InvalidInput: It is empty.
    """
    word = " ".join(predicate.split())
    if not word:
        raise InvalidInput("a fact needs a predicate, such as LOCATED_AT or occupation")
    return word


def json_or_text(text: str) -> object:
    """A value as a user types it.

    >>> json_or_text("[1, true]"), json_or_text("a paranoid wizard")
    ([1, True], 'a paranoid wizard')
    """
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return text if value is None else value
