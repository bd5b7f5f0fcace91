"""Finds the thing that a typed name means: by id, name or alias, or as the only one with this part of a name.

An id matches exactly. Names ignore case, accents, spaces and a leading article. A part of a name ("Ironhand" of
"Grimjaw Ironhand") ignores the titles before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from rapidfuzz import fuzz, process

from glyphoxa.domain.campaign import Entity, Npc, Player
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.roles import ARTICLES
from glyphoxa.language.words import fold
from glyphoxa.names.naming import parts_of, without_titles

T = TypeVar("T")
_SHORTEST: Final = 2
"""Letters of a part that means a longer name."""
_BARE: Final = 2
"""The tier of names without their article, after names and aliases."""


class Called(NamedTuple):
    """Names of a thing.

    Attributes:
        names: Its name, and others that count as much. The first one is shown.
        aliases: Names that mean it if nothing else has them as a name.
        kind: Its type, for messages: "npc".
    """

    id: str
    names: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    kind: str = ""

    @property
    def all_names(self) -> tuple[str, ...]:
        return (*self.names, *self.aliases)

    def __str__(self) -> str:
        return f"{self.names[0]} ({self.kind}{', ' if self.kind else ''}id {self.id})"


class Resolver(Generic[T]):
    """Things of a campaign by what they are called.

    Args:
        called: Returns the names of one of them.
        what: The word for such a thing in messages.
        plural: Default: `what` with an s.
    """

    def __init__(
        self, things: Iterable[T], called: Callable[[T], Called], *, campaign: str, what: str, plural: str = ""
    ) -> None:
        self._called, self._campaign, self._what, self._plural = called, campaign, what, plural or f"{what}s"
        self.by_id: dict[str, T] = {}
        self._by_key: dict[str, list[tuple[int, str]]] = {}
        """Ids by folded names, each with its tier."""
        for thing in things:
            self.add(thing)

    def add(self, thing: T) -> None:
        """Add a thing; replace the one with its id."""
        called = self._called(thing)
        self.by_id[called.id] = thing
        for tier, names in enumerate((called.names, called.aliases)):
            for name in names:
                key = fold(name)
                self._by_key.setdefault(key, []).append((tier, called.id))
                if (bare := without_article(name)) != name:
                    self._by_key.setdefault(fold(bare), []).append((_BARE, called.id))

    def tiers(self, name: str) -> Sequence[Mapping[str, T]]:
        """Return the things of this name, those of this alias, and those of either but for an article, all by id."""
        key = fold(name)
        found: list[dict[str, T]] = [{}, {}, {}]
        if key:
            for tier, each in self._by_key.get(key, ()):
                found[tier][each] = self.by_id[each]
            for _, each in self._by_key.get(fold(without_article(name)), ()):
                found[_BARE][each] = self.by_id[each]
        return found

    def exact(self, name: str) -> T | None:
        """Return the first thing with this name, else with this alias."""
        return next((thing for tier in self.tiers(name)[:_BARE] for thing in tier.values()), None)

    def exact_or_bare(self, name: str) -> T | None:
        """Return the same, else the first thing with this name or alias but for an article."""
        return next((thing for tier in self.tiers(name) for thing in tier.values()), None)

    def like(self, name: str, *, least: float, limit: int = 1) -> list[T]:
        """Return things with a similar name or alias, the most similar first.

        Args:
            least: Minimum similarity, 0 to 100: that of `rapidfuzz.fuzz.ratio` for the letters.
            limit: Maximum number of different names.
        """
        key = fold(without_article(name))
        near = process.extract(key, self._by_key.keys(), scorer=fuzz.ratio, score_cutoff=least, limit=limit)
        found = {each: self.by_id[each] for similar, _, _ in near for _, each in self._by_key[similar]}
        return list(found.values())

    def one(self, name: str) -> T:
        """Return the thing with this id, name, alias or part of a name, in this order.

        Raises:
            NotFound: Nothing is called so; the message has the nearest name, or the valid ones.
            InvalidInput: It may be several.
        """
        if name in self.by_id:
            return self.by_id[name]
        for tier in self.tiers(name):
            if tier:
                return self._only(tier.values(), f"{name!r} matches", "use the id")
        wanted = fold(without_titles(name)) or fold(name)
        known = [(one, thing) for thing in self.by_id.values() for one in self._called(thing).all_names]
        parts = (thing for one, thing in known if any(fold(part) == wanted for part in parts_of(one)))
        found = {id(thing): thing for thing in parts} if len(wanted) >= _SHORTEST else {}
        if found:
            return self._only(found.values(), f"{name!r} may be", "write more of the name")
        hint = did_you_mean(without_article(name), (one for one, _ in known))
        raise NotFound(f"no {self._what} {name!r} in campaign {self._campaign!r}: {hint}")

    def _only(self, found: Collection[T], matches: str, remedy: str) -> T:
        if len(found) > 1:
            listed = ", ".join(str(self._called(each)) for each in found)
            raise InvalidInput(f"{matches} several {self._plural}: {listed}; {remedy}")
        return next(iter(found))


def entities_by_name(entities: Iterable[Entity], campaign: str = "") -> Resolver[Entity]:
    """Return a resolver of entities."""

    def called(one: Entity) -> Called:
        return Called(one.id, (one.name,), one.aliases, one.type)

    return Resolver(entities, called, campaign=campaign, what="entity", plural="entities")


def npcs_by_name(npcs: Iterable[Npc], entities: Mapping[EntityId, Entity], campaign: str) -> Resolver[Npc]:
    """Return a resolver of NPCs. The names of their entities count too."""
    return Resolver(npcs, lambda npc: called_npc(npc, entities), campaign=campaign, what="NPC")


def called_npc(npc: Npc, entities: Mapping[EntityId, Entity]) -> Called:
    entity = entities.get(npc.entity_id, Entity(npc.entity_id, "", npc.name))
    return Called(npc.id, (npc.name, entity.name), (*npc.aliases, *entity.aliases))


def players_by_name(players: Iterable[Player], campaign: str) -> Resolver[Player]:
    """Return a resolver of players."""
    return Resolver(players, called_player, campaign=campaign, what="player")


def called_player(player: Player) -> Called:
    return Called(player.id, (player.name,))


def without_article(name: str) -> str:
    """Return a name without the article before it, if it has more than that."""
    first, _, rest = name.strip().partition(" ")
    return rest if first.casefold() in ARTICLES and fold(rest) else name
