"""What a fact is worth. It is worked out anew whenever something it depends on changes, in this order.

    stale      one of its supports is not held any more, or is itself stale
    pending    not certain enough (0.70) or refused before, and not confirmed; or one of its supports is not
               accepted yet
    conflict   an accepted fact disagrees with it
    accepted   otherwise

What becomes accepted may supersede accepted facts of its slot, if the slot is functional (see `slots`): the later in
the world's time wins, and a conclusion never supersedes what the DM confirmed. Whatever else disagrees waits for the
DM; who came first stays.

Supports cannot form a circle that matters: a fact is stated after what it rests on, and one whose support was not
there is stale.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from glyphoxa.domain.campaign import SlotRule
from glyphoxa.domain.ids import FactId
from glyphoxa.domain.knowledge import EndedAs, EndedFact, Fact, Provenance, Validity
from glyphoxa.world.state import OPPOSITES, WorldState, rule_of

_EVER = -(2**63)
_Ground: TypeAlias = Literal["stale", "pending"]


class StatusUpdate:
    """Ends facts and settles what follows, in one state and for one event.

    Args:
        seq: Of the event.
    """

    def __init__(self, state: WorldState, seq: int) -> None:
        self._state = state
        self._seq = seq
        self._may_supersede = True

    def end(
        self, fact: Fact, ended_as: EndedAs, *, by: FactId | None = None, validity: Validity | None = None
    ) -> list[FactId]:
        """Move a fact to the history. Returns those whose status may depend on it."""
        concerned = self.dependents(fact.id)
        self._state.drop_fact(fact.id)
        past = fact if validity is None else fact.with_(validity=validity)
        self._state.put_ended(EndedFact(past, self._seq, ended_as, by))
        return concerned

    def dependents(self, fact_id: FactId) -> list[FactId]:
        return [f.id for f in (*self._state.resting_on(fact_id), *self._state.disputing(fact_id))]

    def settle(self, facts: Iterable[FactId], *, may_supersede: bool = True) -> None:
        """Work out the status of these facts, and of whatever depends on one that changed.

        Args:
            may_supersede: Whether facts of a functional slot end each other; else they are a conflict.
        """
        self._may_supersede = may_supersede
        waiting = deque(dict.fromkeys(facts))
        while waiting:
            fact = self._state.fact(waiting.popleft())
            if fact is None:
                continue
            for fact_id in self._settle_one(fact):
                if fact_id not in waiting:
                    waiting.append(fact_id)

    def _settle_one(self, fact: Fact) -> list[FactId]:
        ground = self._ground(fact)
        if ground is not None:
            return self._stand(fact.with_(status=ground, disputes=()), was=fact)
        rivals = self.rivals(fact)
        if fact.status == "accepted" and not rivals:
            return []
        rule = self.rule(fact)
        if rule not in ("functional", "functional_object") or any(_opposite(fact, rival) for rival in rivals):
            return self._accept(fact, against=rivals)
        later = [rival for rival in rivals if since(rival) > since(fact)]
        if later and self._may_supersede:
            first = min(later, key=since)
            return self.end(fact, "superseded", by=first.id, validity=until(fact, first))
        firm = [r for r in rivals if not self._may_supersede or _outranks(r.provenance, fact.provenance)]
        if firm:
            return self._accept(fact, against=firm)
        concerned: list[FactId] = []
        for rival in rivals:
            concerned += self.end(rival, "superseded", by=fact.id, validity=until(rival, fact))
        return [*self._accept(fact, against=()), *concerned]

    def _ground(self, fact: Fact) -> _Ground | None:
        """What it rests on lets it be no more than this; None when it may be accepted."""
        supports = [self._state.fact(support) for support in fact.supports]
        if any(on is None or on.status == "stale" for on in supports):
            return "stale"
        is_enough = fact.provenance.dm_confirmed or (fact.provenance.is_enough and not fact.doubted)
        if not is_enough or any(on is not None and on.status != "accepted" for on in supports):
            return "pending"
        return None

    def _accept(self, fact: Fact, *, against: Sequence[Fact]) -> list[FactId]:
        disputes = tuple(sorted(rival.id for rival in against))
        return self._stand(fact.with_(status="conflict" if disputes else "accepted", disputes=disputes), was=fact)

    def _stand(self, fact: Fact, *, was: Fact) -> list[FactId]:
        self._state.put_fact(fact)
        return [] if fact.status == was.status else self.dependents(fact.id)

    def rivals(self, fact: Fact) -> list[Fact]:
        """Accepted facts that cannot hold beside it. What was so once stands in nobody's way."""
        claim, state = fact.claim, self._state
        if fact.validity.to_ms is not None:
            return []
        found: list[Fact] = []
        match self.rule(fact):
            case "one" | "functional":
                found = state.in_slot(claim.subject, claim.predicate)
            case "functional_object" if claim.object is not None:
                found = state.of_object(claim.object, claim.predicate)
            case _:
                pass
        if claim.object is not None and (opposite := OPPOSITES.get(claim.predicate)) is not None:
            found += [f for f in state.in_slot(claim.subject, opposite) if f.claim.object == claim.object]
        return [f for f in found if f.id != fact.id and f.status == "accepted" and f.validity.to_ms is None]

    def rule(self, fact: Fact) -> SlotRule:
        return rule_of(fact.claim, self._state.own_rules())


def since(fact: Fact) -> int:
    """When it begins to hold, milliseconds since the Unix epoch; before everything when it holds since ever."""
    return _EVER if fact.validity.from_ms is None else fact.validity.from_ms


def until(fact: Fact, successor: Fact) -> Validity:
    """When it held, if the other took its place."""
    to_ms = successor.validity.from_ms
    if to_ms is None:
        to_ms = successor.provenance.at_ms
    return replace(fact.validity, to_ms=to_ms, story_to=successor.validity.story_from)


def _opposite(fact: Fact, rival: Fact) -> bool:
    return OPPOSITES.get(fact.claim.predicate) == rival.claim.predicate


def _outranks(held: Provenance, new: Provenance) -> bool:
    """Whether a conclusion meets what the DM confirmed."""
    return held.dm_confirmed and new.source == "inferred" and not new.dm_confirmed
