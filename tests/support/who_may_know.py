"""Who may know a fact: the cases by which every implementation of the rule is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import get_args

from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import DM, PUBLIC, Knower, ScopeName, Status, Viewer, Visibility

MIRA, GRIM = NpcId("mira"), NpcId("grimjaw")


def known_to(scope: ScopeName, *npcs: NpcId) -> Visibility:
    return Visibility.of(scope, (Knower(npc, "told") for npc in npcs))


@dataclass(frozen=True, slots=True)
class Case:
    """A fact, its two ends, and who asks.

    Attributes:
        other: Of the other end; None for an attribute.
    """

    viewer: Viewer
    fact: Visibility = PUBLIC
    status: Status = "accepted"
    subject: Visibility = PUBLIC
    other: Visibility | None = None


HIDDEN_FROM_ALL = known_to("hidden", MIRA)
MAY: tuple[tuple[str, Case], ...] = (
    ("everybody, what is public", Case(MIRA)),
    ("who was there", Case(MIRA, known_to("witnessed", MIRA))),
    ("who was told", Case(MIRA, known_to("told", GRIM, MIRA))),
    ("whom the DM named", Case(MIRA, known_to("secret", MIRA))),
    ("who knows of both ends", Case(MIRA, subject=known_to("secret", MIRA), other=known_to("told", MIRA))),
    ("the DM, what is hidden", Case(DM, HIDDEN_FROM_ALL, subject=HIDDEN_FROM_ALL, other=HIDDEN_FROM_ALL)),
    ("the DM, what waits", Case(DM, status="pending")),
    ("the DM, what is known to nobody", Case(DM, known_to("secret"))),
)
MAY_NOT: tuple[tuple[str, Case], ...] = (
    ("who was not there", Case(MIRA, known_to("witnessed", GRIM))),
    ("who was not told", Case(MIRA, known_to("told"))),
    ("whom the DM did not name", Case(MIRA, known_to("secret", GRIM))),
    ("anybody, what is hidden, though they heard it", Case(MIRA, HIDDEN_FROM_ALL)),
    ("anybody, what waits for the DM", Case(MIRA, status="pending")),
    ("anybody, what is disputed", Case(MIRA, known_to("secret", MIRA), status="conflict")),
    ("anybody, what rests on nothing any more", Case(MIRA, status="stale")),
    ("who may not know of the subject", Case(MIRA, subject=known_to("secret", GRIM))),
    ("who may not know of the other end", Case(MIRA, other=known_to("secret", GRIM))),
    ("who may know of a fact but of neither end", Case(MIRA, known_to("told", MIRA), subject=HIDDEN_FROM_ALL)),
    ("another whose name only begins so", Case(NpcId("mir"), known_to("told", MIRA))),
)


def all_cases() -> Iterator[Case]:
    """Every scope, known or not, of a fact and of its ends, of every status, for either viewer."""
    seen = [known_to(scope, *npcs) for scope in get_args(ScopeName) for npcs in ((), (MIRA,), (GRIM,))]
    for viewer, fact, status in product((DM, MIRA), seen, get_args(Status)):
        for subject, other in product(seen, (None, *seen)):
            yield Case(viewer, fact, status, subject, other)
