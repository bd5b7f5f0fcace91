"""Ways to name a thing of the campaign, and which thing a typed name means.

An entity has its name, aliases, usual short forms and confirmed wrong forms. A typed name means a thing by its id, name
or alias, or as the only one with this part of a name. An id matches exactly. Names ignore case, accents, spaces and a
leading article. A part of a name ("Ironhand" of "Grimjaw Ironhand") ignores the titles before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from rapidfuzz import fuzz, process

from glyphoxa.domain.campaign import Entity, Npc, Player
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import EntityId
from glyphoxa.language.language_data import Vocabulary, lexicon
from glyphoxa.language.roles import AGES, ARTICLES, COURTESY, KIN, OTHERS, TITLES, may_be_one, trades_of
from glyphoxa.language.words import Word, fold, words
from glyphoxa.names.sound import Coder, Sounder

NameKind = Literal["name", "alias", "short", "learned"]
KINDS: tuple[NameKind, ...] = ("name", "alias", "short", "learned")
"""Ordered by priority for a spelling: "Marek" is the smith even if the innkeeper is "Marek's wife"."""
_MY: Final = lexicon("chronicle").words("my")
_PERSONS = frozenset(("npc", "player", "character", "deity", "person"))
_PLACES = frozenset(("location", "place"))
_SHORTEST_PART = 4
_SHORTEST_PLACE = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """An entity and its names.

    Attributes:
        name: The correct spelling.
        aliases: Other correct names ("the smith").
        learned: Wrong forms that the DM has confirmed for this name ("Finland").
        is_public: Everybody may know that the entity exists.
    """

    name: str
    entity_id: EntityId
    entity_type: str = ""
    aliases: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    is_public: bool = True


@dataclass(frozen=True, slots=True)
class Name:
    """One way to name an entity.

    Attributes:
        text: The name as it is written.
        canonical: The entity's own name.
        joined: `text` folded, without spaces.
        words: Its words, folded.
        codes: The phonetic codes of `joined`; empty if the language has none.
        sound: The sound of `joined` as symbols; see `glyphoxa.names.sound`.
        is_ordinary: All its words are in a dictionary, so that hearing them is no evidence of the name.
        is_faint: Only stop words or a single letter ("It", "Will"): only a capital makes it a name.
        is_shared: A short form of several entities ("Fennimore" of two siblings): correct, but nobody's.
    """

    text: str
    entity_id: EntityId
    entity_type: str
    canonical: str
    kind: NameKind
    joined: str
    words: tuple[str, ...]
    codes: tuple[str, ...]
    sound: str
    is_ordinary: bool
    is_faint: bool = False
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Speech:
    """Language resources for naming."""

    vocabulary: Vocabulary
    coder: Coder
    sounder: Sounder


def names_of(entry: Entry, speech: Speech) -> tuple[Name, ...]:
    """All ways to name an entry, each spelling once. Skips those without a letter or digit."""
    found: dict[str, Name] = {}
    for kind, text in _ways_to_name(entry, speech.vocabulary):
        joined = fold(text)
        if not joined or joined in found:
            continue
        parts = tuple(part.full for part in words(text)) or (joined,)
        found[joined] = Name(
            text=text,
            entity_id=entry.entity_id,
            entity_type=entry.entity_type,
            canonical=entry.name,
            kind=kind,
            joined=joined,
            words=parts,
            codes=speech.coder(joined),
            sound=speech.sounder(joined),
            is_ordinary=_is_ordinary(parts, speech.vocabulary),
            is_faint=len(joined) == 1 or all(part in speech.vocabulary.stop for part in parts),
        )
    return tuple(found.values())


def _ways_to_name(entry: Entry, vocabulary: Vocabulary) -> Iterator[tuple[NameKind, str]]:
    yield "name", entry.name
    for alias in entry.aliases:
        yield "alias", alias
    for short in _short_forms(entry, vocabulary):
        yield "short", short
    for wrong in entry.learned:
        if not all(word.folded in vocabulary.stop for word in words(wrong)):
            yield "learned", wrong


def _short_forms(entry: Entry, vocabulary: Vocabulary) -> Iterator[str]:
    """Short forms, never ordinary words: "the Tower" is any tower, "Stone" is seldom Mayor Stone."""
    parts = words(entry.name)
    is_person = entry.entity_type in _PERSONS
    bare = _without_titles(parts, are_persons=is_person or not entry.entity_type)
    if bare and len(bare) < len(parts) and not _is_ordinary([part.full for part in bare], vocabulary):
        yield entry.name[bare[0].start : bare[-1].end]
    if is_person and len(parts) > 1:
        for part in bare:
            if len(part.folded) >= _SHORTEST_PART and not vocabulary.is_ordinary(part.full):
                yield part.text
    if entry.entity_type in _PLACES and len(bare) > 1:
        # "Grondheim Keep" -> "Grondheim": the rest only names the kind of place.
        first, rest = bare[0], [part.full for part in bare[1:]]
        if (
            len(first.folded) >= _SHORTEST_PLACE
            and not first.tail
            and not vocabulary.is_ordinary(first.full)
            and vocabulary.is_known
            and _is_ordinary(rest, vocabulary)
        ):
            yield first.text


def parts_of(name: str) -> Iterator[str]:
    """Yield the runs of words of a person's name, without its titles: of "Dr. Ida van den Berg", "van den Berg".

    A run ends with no word in lower case if others have capitals, so that "van den" names nobody.
    """
    bare = _without_titles(words(name), are_persons=True)
    has_capitals = any(word.is_capital for word in bare)
    for first, opening in enumerate(bare):
        if opening.folded in ARTICLES and len(bare) > 1:
            continue
        for last in bare[first:]:
            if not last.text[0].islower() or not has_capitals:
                yield name[opening.start : last.end]


def without_titles(name: str) -> str:
    """Return a person's name without the titles and articles before it; empty if it has nothing else."""
    bare = _without_titles(words(name), are_persons=True)
    return name[bare[0].start : bare[-1].end] if bare else ""


def titles_of(name: str) -> Iterator[str]:
    """Yield the titles before a person's name."""
    parts = words(name)
    for word in parts[: len(parts) - len(_without_titles(parts, are_persons=True))]:
        if word.folded in TITLES:
            yield word.text


def described_in(spoken: Sequence[Word], first: int, last: int) -> tuple[int, int, frozenset[str]]:
    """Return the titles, trades and ages beside a name: "Guard Piers", "old Piers", "Piers, the smith".

    A relative is none with "my" or the like before it, unless it is a relative of somebody of that name.

    Args:
        first: Index of the first word of the name; `last` is that of its last one.

    Returns:
        The indexes of the first and the last word of both together, and those words in lower case.
    """
    begins, ends = first, last
    while begins > 0 and spoken[begins].joins and _describes(spoken[begins - 1].text.lower()):
        begins -= 1
    if 0 < begins < first and spoken[begins].folded in KIN:
        before = spoken[begins - 1]
        if before.folded == spoken[first].folded:
            return begins, last, OTHERS
        begins += before.folded in _MY or bool(before.tail)
    after = spoken[last + 1 : last + 3]
    if len(after) == 2 and after[0].folded in ARTICLES and not after[0].opens and _describes(after[1].text.lower()):
        ends = last + 2
    return begins, ends, frozenset(word.text.lower() for word in (*spoken[begins:first], *spoken[last + 2 : ends + 1]))


def fits_person(said: Iterable[str], own: Iterable[str]) -> bool | None:
    """Return whether titles, trades and ages beside a name are a person's; None if nothing shows it.

    Args:
        said: See `described_in`.
        own: The words of the person's names and occupations, in lower case.
    """
    found: bool | None = None
    for word in said:
        same_kind = [each for each in own if _describes(each) and (fold(each) in AGES) == (fold(word) in AGES)]
        if any(may_be_one(word, each) or trades_of(word) & trades_of(each) for each in same_kind):
            found = True
        elif same_kind or fold(word) in OTHERS:
            return False
    return found


def _describes(word: str) -> bool:
    return fold(word) in (TITLES | AGES | OTHERS) - COURTESY or bool(trades_of(word))


def _without_titles(parts: Sequence[Word], *, are_persons: bool) -> Sequence[Word]:
    """Return "Gilded Eel" for "The Gilded Eel"; for persons, "Marek Dorn" for "Lord Marek Dorn"."""
    at = 0
    while at < len(parts) and (
        parts[at].folded in ARTICLES or (are_persons and not parts[at].tail and parts[at].folded in TITLES)
    ):
        at += 1
    return parts[at:]


def _is_ordinary(parts: Iterable[str], vocabulary: Vocabulary) -> bool:
    return all(vocabulary.is_ordinary(part) or len(part) < 2 for part in parts)


def looks_like_a_name(word: Word, vocabulary: Vocabulary) -> bool:
    """Whether it is in no dictionary, or has a capital letter within a sentence."""
    if len(word.folded) < 2 or word.folded in vocabulary.stop or word.folded.isdigit():
        return False
    if word.is_capital and not word.opens:
        return True
    is_odd = vocabulary.is_known and not vocabulary.is_ordinary(word.folded) and not vocabulary.is_ordinary(word.full)
    return is_odd and "'" not in word.text and "’" not in word.text


# Which thing a typed name means.

T = TypeVar("T")
_SHORTEST_TYPED: Final = 2
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
        found = {id(thing): thing for thing in parts} if len(wanted) >= _SHORTEST_TYPED else {}
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
