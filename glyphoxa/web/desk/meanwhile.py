"""Two game masters decide on one fact: who decides on what has changed since they saw it is told what changed."""

from __future__ import annotations

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.dm.wording import certainty_in_words
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.knowledge import Fact
from glyphoxa.world.api import visibility_in_words


class ChangedMeanwhile(InvalidInput):
    def __init__(self, words: str, *, seen: str, now: str) -> None:
        super().__init__(f"{words!r} has changed meanwhile: you saw {seen!r}, and now it is {now!r}; look at it again")


def state_in_words(desk: Desk, fact: Fact) -> str:
    """All of a fact that a decision changes and its words do not say. A page's forms send it back as they showed it."""
    certainty = "confirmed" if fact.provenance.dm_confirmed else certainty_in_words(fact)
    return f"{fact.status}, {certainty}, {visibility_in_words(fact.visibility, desk.resolver)}"


def need_unchanged(desk: Desk, fact: Fact, seen: str) -> None:
    """
    Args:
        seen: As `state_in_words` made it for whoever decides; "" is from a page that does not say.

    Raises:
        ChangedMeanwhile: It is not so any more.
    """
    now = state_in_words(desk, fact)
    if seen and seen != now:
        raise ChangedMeanwhile(desk.facts.words(fact), seen=seen, now=now)
