"""A campaign's own rules for its predicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.world.change import Change
from glyphoxa.world.state import Key, WorldState
from glyphoxa.world.wording import Words


@dataclass(frozen=True, slots=True)
class SlotDeclared:
    """This campaign's own rule for a predicate."""

    predicate: str
    rule: SlotRule

    def read_set(self) -> Iterator[Key]:
        yield from ()

    def failed_precondition(self, state: WorldState) -> str | None:
        return None

    def effect(self, change: Change) -> None:
        change.state.own_rules()
        change.state.put_rule(self.predicate, self.rule)

    def in_words(self, words: Words) -> str:
        return f"declared: {self.predicate} is {self.rule.replace('_', ' ')}"
