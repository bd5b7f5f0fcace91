"""Who may know a fact: decided by the DM, revealed, told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from glyphoxa.domain.ids import FactId, NpcId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Knower, Visibility
from glyphoxa.world.change import Change
from glyphoxa.world.preconditions import no_fact
from glyphoxa.world.state import Key, WorldState
from glyphoxa.world.wording import Words


class _OneFact:
    """An event that changes who may know one fact which is held."""

    __slots__ = ()
    fact: FactId

    def read_set(self) -> Iterator[Key]:
        yield "fact", self.fact

    def failed_precondition(self, state: WorldState) -> str | None:
        return no_fact(state, self.fact)

    def effect(self, change: Change) -> None:
        if (fact := change.state.fact(self.fact)) is not None:
            change.state.put_fact(fact.with_(visibility=self._visibility(fact.visibility, at_ms=change.at_ms)))

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        """What becomes of it.

        Args:
            at_ms: When it happens.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FactScoped(_OneFact):
    """The DM decides who may know it."""

    fact: FactId
    visibility: Visibility

    def read_set(self) -> Iterator[Key]:
        yield "fact", self.fact
        if self.visibility.scope != "public":
            yield "resting_on", self.fact

    def effect(self, change: Change) -> None:
        _OneFact.effect(self, change)  # `super()` is of the class before it got its slots
        self._guard_what_rests_on_it(change.state)

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        return self.visibility

    def _guard_what_rests_on_it(self, state: WorldState) -> None:
        """What the DM guards is not to be told by what was concluded from it."""
        waiting = [] if self.visibility.scope == "public" else [self.fact]
        while waiting:
            for resting in state.resting_on(waiting.pop()):
                narrower = resting.visibility.within(self.visibility)
                if narrower != resting.visibility:
                    state.put_fact(resting.with_(visibility=narrower))
                    waiting.append(resting.id)

    def in_words(self, words: Words) -> str:
        return f"{words.visibility(self.visibility)}: {words.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactRevealed(_OneFact):
    """To these NPCs, or to everybody when none is named."""

    fact: FactId
    to: tuple[NpcId, ...] = ()

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        if not self.to:
            return replace(seen, scope="public")
        if seen.scope == "public":
            return seen
        told = (Knower(npc, "told", SpeakerId("dm"), at_ms) for npc in self.to)
        # What was hidden is revealed to those who are named, not to those who happened to hear of it.
        return Visibility.of("secret", told) if seen.scope == "hidden" else seen.known_to(*told)

    def in_words(self, words: Words) -> str:
        return f"revealed to {words.people(self.to) or 'everybody'}: {words.fact(self.fact)}"


@dataclass(frozen=True, slots=True)
class FactTold(_OneFact):
    """Somebody told it. What the DM hid stays hidden, and who was told is noted."""

    fact: FactId
    to: tuple[NpcId, ...]
    by: SpeakerId
    at_ms: int | None = None
    utterance: UtteranceId | None = None

    def knowers(self) -> tuple[Knower, ...]:
        return tuple(Knower(npc, "told", self.by, self.at_ms, self.utterance) for npc in self.to)

    def _visibility(self, seen: Visibility, *, at_ms: int) -> Visibility:
        return seen if seen.scope == "public" else seen.known_to(*self.knowers())

    def in_words(self, words: Words) -> str:
        return f"{words.names.person(self.by)} told {words.people(self.to)}: {words.fact(self.fact)}"
