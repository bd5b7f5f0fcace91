"""Who may know a fact: one rule over what is held in memory. In SQL it is `glyphoxa_may_know`, asked of a fact and of
both of its ends.
"""

from __future__ import annotations

from collections.abc import Callable

from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.knowledge import Dm, Fact, Viewer, Visibility


def may_know(viewer: Viewer, fact: Fact, visibility_of: Callable[[EntityId], Visibility | None]) -> bool:
    """The DM may know everything. An NPC may know what is accepted, if it is in its scope and so are both of its ends.

    Args:
        visibility_of: Who may know of an entity; None when it is not there.
    """
    if isinstance(viewer, Dm):
        return True
    if fact.status != "accepted" or not fact.visibility.is_visible_to(viewer):
        return False
    claim = fact.claim
    ends = (claim.subject,) if claim.object is None else (claim.subject, claim.object)
    return all((seen := visibility_of(end)) is not None and seen.is_visible_to(viewer) for end in ends)
