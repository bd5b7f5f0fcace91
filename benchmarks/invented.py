"""Invent campaigns for the benchmarks of memory: names, utterances, a graph, and vectors for all of it.

Few names are frequent and many are rare; common words occur often and most words seldom, as in speech. Everything
follows from the seed and the size, so that two runs measure the same.
"""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import yaml
from numpy import float32
from numpy.typing import NDArray

from benchmarks.runner import MINILM, local_embeddings
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Scene
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import (
    HIDDEN,
    PUBLIC,
    Claim,
    Knower,
    Provenance,
    Visibility,
    secret_of,
    witnessed_by,
)
from glyphoxa.recall.vectors import Embedder
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Event

if TYPE_CHECKING:
    from glyphoxa.adapters.local.minilm import MiniLm

TURNS_IN_A_SESSION: Final = 400
TURNS_IN_A_SCENE: Final = 20
SHARES: Final = (0.01, 0.1, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6)
"""The share of the utterances that each NPC of the table hears."""
RANKS: Final = (4, 12, 20, 35, 60, 90, 140, 200, 300, 450, 700, 1_100)
"""The rank of each NPC's entity, by how much is said about it."""

_BEGAN_MS: Final = 1_700_000_000_000
_WEEK_MS: Final = 7 * 24 * 3_600_000
_TURN_MS: Final = 12_000
_KINDS: Final = (
    *("npc",) * 9, *("location",) * 4, *("item",) * 3, "faction", "faction", "quest", "concept",
)  # fmt: skip
_PLAYERS: Final = ("Merle", "Tamsin", "Piers", "Agnes", "Rowan")
_RELATIONS: Final = (
    *("KNOWS",) * 6, *("LOCATED_AT",) * 3, *("MEMBER_OF",) * 3, "ALLIED_WITH", "HOSTILE_TO", "OWNS",
    *("PARTICIPATED_IN",) * 2, *("OWES", "SERVES", "FEARS"),
)  # fmt: skip
_ONE_A_SUBJECT: Final = frozenset({"LOCATED_AT"})
_ONE_AN_OBJECT: Final = frozenset({"OWNS"})
DIMENSIONS: Final = 384
Kind = Literal["real", "invented"]
_MOVED: Final = 0.75  # the noise's length: a cosine of 1 / sqrt(1 + 0.75²) = 0.8 to the original

_LISTS: Final[dict[str, list[str]]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "invented" / "words.yaml").read_text("utf-8")
)
_SLOTS: Final = {"verb": "verbs", "thing": "things", "quality": "qualities"}


# -- campaigns


@dataclass(frozen=True, slots=True)
class Size:
    """
    Attributes:
        turns: Utterances, in sessions of 400.
        relationships: Current facts between two entities; one that holds both ways counts once.
    """

    turns: int
    entities: int
    relationships: int

    @property
    def sessions(self) -> int:
        return -(-self.turns // TURNS_IN_A_SESSION)

    def part(self, share: float) -> Size:
        """Return a smaller size that still has at least the NPCs and their like."""
        return Size(
            max(1, round(self.turns * share)),
            max(40, round(self.entities * share)),
            max(40, round(self.relationships * share)),
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """
    Attributes:
        entity_ids: The entities that it mentions.
    """

    utterance: Utterance
    entity_ids: tuple[EntityId, ...]


class InventedCampaign:
    """One campaign: its names at once, its utterances and events on demand."""

    def __init__(self, campaign: CampaignId, size: Size, *, seed: int) -> None:
        self.id = campaign
        self.size = size
        self._seed = f"{campaign} {seed}"
        self.entities = self._invent_entities()
        """The most frequent come first."""
        self.words = Words(
            [e.name for e in self.entities if e.type == "npc"],
            [e.name for e in self.entities if e.type == "location"],
            [e.name for e in self.entities if e.type not in ("npc", "location")],
            seed=seed,
        )
        people = [entity for entity in self.entities if entity.type == "npc"]
        self.npcs = tuple(
            Npc(NpcId(entity.id), entity.id, entity.name, f"You are {entity.name}.", budget_tier="STANDARD")
            for entity in (
                people[min(rank * len(people) // 2_000 + n, len(people) - 1)] for n, rank in enumerate(RANKS)
            )
        )
        self.shares = dict(zip((npc.id for npc in self.npcs), SHARES, strict=True))
        self._by_name = {entity.name: entity.id for entity in self.entities}
        self._weights = pick_by_rank(len(self.entities))

    @cached_property
    def campaign(self) -> Campaign:
        """Return the campaign as a table plays it."""
        place = next(entity for entity in self.entities if entity.type == "location")
        return Campaign(
            self.id,
            "Measured",
            "en",
            self.entities,
            (),
            self.npcs,
            tuple(Player(PlayerId(name.lower()), name) for name in _PLAYERS),
            (Scene(SceneId("here"), place.id, tuple(npc.id for npc in self.npcs[3:6]), "evening"),),
        )

    def dice(self, purpose: str) -> random.Random:
        return random.Random(f"{self._seed} {purpose}")

    def spoken_of(self, dice: random.Random) -> Entity:
        """Draw an entity by its frequency."""
        return dice.choices(self.entities, cum_weights=self._weights)[0]

    def session_id(self, n: int) -> SessionId:
        return SessionId(f"session-{n:05d}")

    # -- utterances

    def talk(self) -> Iterator[list[Turn]]:
        """Yield a session at a time, oldest first."""
        for session in range(self.size.sessions):
            first = session * TURNS_IN_A_SESSION
            yield self._session(session, first, min(TURNS_IN_A_SESSION, self.size.turns - first))

    def _session(self, session: int, first: int, n_turns: int) -> list[Turn]:
        dice = self.dice(f"session {session}")
        speakers = [(SpeakerId(player.id), player.name, None) for player in self.campaign.players]
        turns: list[Turn] = []
        here: frozenset[NpcId] = frozenset()
        for n in range(n_turns):
            if n % TURNS_IN_A_SCENE == 0:
                here = frozenset(npc for npc, share in self.shares.items() if dice.random() < share)
            npc = dice.choice(sorted(here)) if here and dice.random() < 0.3 else None
            if npc is None:
                speaker, name, _ = dice.choice(speakers)
            else:
                speaker, name = SpeakerId(npc), self.campaign.npc(npc).name
            said = self.words.turn(dice)
            utterance = Utterance(
                id=UtteranceId(f"turn-{first + n:08d}"),
                campaign_id=self.id,
                session_id=self.session_id(session),
                speaker_id=speaker,
                speaker_name=name,
                text=said.text,
                raw_text=said.text,
                at_ms=_BEGAN_MS + session * _WEEK_MS + n * _TURN_MS,
                duration_ms=4_000,
                npc_id=npc,
                witnesses=here,
            )
            turns.append(Turn(utterance, tuple(self._by_name[name] for name in said.names)))
        return turns

    # -- the graph

    def entities_told(self) -> Iterator[Event]:
        """Yield each entity, three attributes of each, and the secrets of the NPCs."""
        dice = self.dice("entities")
        for entity in self.entities:
            yield EntityAdded(entity.id, entity.type, entity.name, entity.aliases, self._entity_scope(dice, entity))
        for entity in self.entities:
            for name in dice.sample(("description", "occupation", "origin", "temper", "wealth"), 3):
                value = self.words.sentence(dice).text if name == "description" else self.words.question(dice)[:40]
                yield FactStated(Claim.attribute(entity.id, name, value), self._provenance(dice), self._scope(dice))
        for npc in self.npcs:
            for _ in range(3):
                secret = Claim.attribute(npc.entity_id, "secret", self.words.sentence(dice).text)
                yield FactStated(secret, self._provenance(dice), secret_of([npc.id]))

    def relations_told(self) -> Iterator[Event]:
        dice = self.dice("relations told")
        for claim in self.relations():
            yield FactStated(claim, self._provenance(dice), self._scope(dice))

    def relations(self) -> Iterator[Claim]:
        """Yield as many relations as the size says, hubs included.

        All are different, and none ends or contradicts another.
        """
        dice = self.dice("relations")
        seen: set[object] = set()
        given = 0
        while given < self.size.relationships:
            subject, other = self.spoken_of(dice), self.spoken_of(dice)
            kind = dice.choice(_RELATIONS)
            if subject is other:
                continue
            claim = Claim.relation(subject.id, kind, other.id)
            slot: object = (claim.subject, kind, claim.object)
            if kind in _ONE_A_SUBJECT:
                slot = (claim.subject, kind)
            elif kind in _ONE_AN_OBJECT:
                slot = (kind, claim.object)
            elif kind in ("ALLIED_WITH", "HOSTILE_TO"):
                slot = ("one of both", claim.subject, claim.object)
            if slot not in seen:
                seen.add(slot)
                given += 1
                yield claim

    def summaries_told(self) -> Iterator[Event]:
        """Yield a summary of each session, known to those who were there (see `glyphoxa.transcript.sessions`)."""
        dice = self.dice("summaries")
        for n in range(self.size.sessions):
            entity = episode_of(self.session_id(n))
            there = witnessed_by([npc for npc, share in self.shares.items() if dice.random() < 1 - (1 - share) ** 20])
            yield EntityAdded(entity, "event", f"Session {n}", (), there)
            text = " ".join(self.words.sentence(dice).text for _ in range(8))
            for name, value in (("kind", EPISODE), ("summary", text)):
                yield FactStated(Claim.attribute(entity, name, value), Provenance(), there)

    def _entity_scope(self, dice: random.Random, entity: Entity) -> Visibility:
        is_ours = any(npc.entity_id == entity.id for npc in self.npcs)
        return PUBLIC if is_ours or dice.random() < 0.9 else self._restricted(dice)

    def _scope(self, dice: random.Random) -> Visibility:
        return PUBLIC if dice.random() < 0.7 else self._restricted(dice)

    def _restricted(self, dice: random.Random) -> Visibility:
        """Draw a scope: witnessed, told, secret, or hidden from all."""
        hearers = [npc for npc, share in self.shares.items() if dice.random() < share]
        match dice.choice(("witnessed", "witnessed", "witnessed", "told", "secret", "hidden")):
            case "witnessed":
                return witnessed_by(hearers, at_ms=_BEGAN_MS)
            case "told":
                return Visibility.of("told", (Knower(npc, "told", SpeakerId("merle"), _BEGAN_MS) for npc in hearers))
            case "secret":
                return secret_of([dice.choice(self.npcs).id])
            case _:
                return HIDDEN

    def _provenance(self, dice: random.Random) -> Provenance:
        """Nine in ten are certain enough to be accepted; the rest need review."""
        confidence = dice.uniform(0.7, 1.0) if dice.random() < 0.9 else dice.uniform(0.3, 0.7)
        turn = dice.randrange(self.size.turns)
        session, ordinal = divmod(turn, TURNS_IN_A_SESSION)
        return Provenance(
            confidence=round(confidence, 2),
            session_id=self.session_id(session),
            utterance_id=UtteranceId(f"turn-{turn:08d}"),
            ordinal=ordinal + 1,
            at_ms=_BEGAN_MS + session * _WEEK_MS + ordinal * _TURN_MS,
        )

    def _invent_entities(self) -> tuple[Entity, ...]:
        dice = self.dice("names")
        taken: set[str] = set()
        entities: list[Entity] = []
        while len(entities) < self.size.entities:
            kind = _KINDS[len(entities) % len(_KINDS)]
            name = invented_name(dice, kind)
            if name in taken:
                continue
            taken.add(name)
            aliases = (name.split()[0],) if " " in name and name.split()[0] not in taken and kind == "npc" else ()
            taken.update(aliases)
            entities.append(Entity(EntityId(f"{kind}-{len(entities):05d}"), kind, name, aliases))
        dice.shuffle(entities)
        return tuple(entities)


def invented_campaigns(n: int, size: Size, *, other_share: float, seed: int) -> Sequence[InventedCampaign]:
    """Return the measured one first; the others, each a share of its size, only fill the database."""
    sizes = [size, *(size.part(other_share) for _ in range(n - 1))]
    return [InventedCampaign(CampaignId(f"campaign-{at:02d}"), one, seed=seed + at) for at, one in enumerate(sizes)]


# -- names and sentences


def pick_by_rank(n: int, *, exponent: float = 0.9, offset: int = 3) -> list[float]:
    """Return cumulative weights for `random.choices`: rank r, from 0, weighs 1 / (r + 1 + offset) ** exponent."""
    return list(accumulate((rank + 1 + offset) ** -exponent for rank in range(n)))


@dataclass(frozen=True, slots=True)
class Sentence:
    """
    Attributes:
        names: The entities' names in it, each once.
    """

    text: str
    names: tuple[str, ...]


class Words:
    """Draws names and sentences.

    Args:
        people: Names, the most frequent first; so are `places` and `things`.
        rare: The number of invented words that no dictionary contains.
    """

    def __init__(
        self, people: Sequence[str], places: Sequence[str], things: Sequence[str], *, seed: int, rare: int = 4_000
    ) -> None:
        of_people, of_places, of_things = ((names, pick_by_rank(len(names))) for names in (people, places, things))
        self._names = {"who": of_people, "other": of_people, "where": of_places, "what": of_things}
        dice = random.Random(f"rare words {seed}")
        invented = sorted({invented_word(dice) for _ in range(rare)})
        self._ranked = {
            slot: (words, pick_by_rank(len(words)))
            for slot, words in (*((slot, _LISTS[name]) for slot, name in _SLOTS.items()), ("rare", invented))
        }

    def sentence(self, dice: random.Random, templates: str = "statements") -> Sentence:
        names = {slot: _drawn(dice, ranked) for slot, ranked in self._names.items()}
        words = {slot: _drawn(dice, ranked) for slot, ranked in self._ranked.items()}
        template = _of(dice, templates)
        text = template.format(
            **names,
            **words,
            place=_of(dice, "things"),
            person=_of(dice, "things"),
            when=_of(dice, "whens"),
        )
        return Sentence(
            text[0].upper() + text[1:], tuple(name for slot, name in names.items() if f"{{{slot}}}" in template)
        )

    def turn(self, dice: random.Random) -> Sentence:
        """Return one to four sentences, two in the mean."""
        said = [self.sentence(dice) for _ in range(dice.choice((1, 1, 2, 2, 2, 3, 4)))]
        names = dict.fromkeys(name for one in said for name in one.names)
        return Sentence(" ".join(one.text for one in said), tuple(names))

    def question(self, dice: random.Random) -> str:
        return self.sentence(dice, "questions").text


def invented_word(dice: random.Random) -> str:
    return _of(dice, "first", "middle", "middle", "last").lower()


def invented_name(dice: random.Random, kind: str) -> str:
    """Return a name for a kind of entity; two calls may return the same."""
    stem = _of(dice, "first", "middle")
    match kind:
        case "npc" | "player":
            family = _of(dice, "first", "last")
            return f"{stem}{_of(dice, 'last')} {family}" if dice.random() < 0.5 else stem + _of(dice, "last")
        case "location":
            return stem + _of(dice, "places")
        case "item":
            return f"{_of(dice, 'qualities').title()} {_of(dice, 'of_things').title()} of {stem}{_of(dice, 'last')}"
        case "faction":
            return f"{_of(dice, 'of_groups')} of {stem}{_of(dice, 'last')}"
        case _:
            return f"The {_of(dice, 'qualities').title()} {_of(dice, 'things').title()} of {stem}{_of(dice, 'last')}"


def _of(dice: random.Random, *lists: str) -> str:
    """Join one word of each list."""
    return "".join(dice.choice(_LISTS[each]) for each in lists)


def _drawn(dice: random.Random, ranked: tuple[Sequence[str], list[float]]) -> str:
    words, weights = ranked
    return dice.choices(words, cum_weights=weights)[0]


# -- vectors


class Embeddings:
    """Make vectors for a hundred thousand turns without the minutes that a model would take.

    The shipped model embeds a few thousand distinct turns. Every other turn gets the embedding of one of them, moved so
    far that their cosine is about 0.8, which costs an index as much work as real ones. Without the model on this
    machine, the centres are random.

    Args:
        model: None: vectors depend on the spelling only.
    """

    def __init__(self, model: MiniLm | None, *, seed: int) -> None:
        self._model = model
        self._dice = np.random.default_rng(seed)
        self._centres: NDArray[float32] = _unit(self._dice.standard_normal((2_000, DIMENSIONS)).astype(float32))

    @classmethod
    def load(cls, kind: Kind | None, *, seed: int) -> Embeddings:
        """
        Args:
            kind: None: the model if it is here.

        Raises:
            NotFound: The model is requested and not here.
        """
        if kind == "invented":
            return cls(None, seed=seed)
        try:
            return cls(local_embeddings(), seed=seed)
        except NotFound:
            if kind == "real":
                raise
            return cls(None, seed=seed)

    @property
    def kind(self) -> Kind:
        return "invented" if self._model is None else "real"

    def learn(self, texts: Sequence[str]) -> None:
        """Set the texts whose vectors all others are near to."""
        if self._model is not None:
            self._centres = self._model.embed(texts)

    @property
    def embedder(self) -> Embedder:
        """Return an embedder for a store."""
        return Embedder(MINILM if self._model is not None else "invented", DIMENSIONS, self.embed)

    async def embed(self, texts: list[str]) -> NDArray[float32]:
        """Embed as the product does, in a thread."""
        if self._model is not None:
            embedded: NDArray[float32] = await asyncio.to_thread(self._model.embed, texts)
            return embedded
        return np.stack([self._spelled(text) for text in texts])

    def invented(self, n: int) -> NDArray[float32]:
        """Return `n` more vectors of turns: float32, rows of unit length."""
        near = self._centres[self._dice.integers(0, len(self._centres), n)]
        return self._moved(near, self._dice)

    def _spelled(self, text: str) -> NDArray[float32]:
        dice = np.random.default_rng(zlib.crc32(text.encode()))
        near = self._centres[dice.integers(0, len(self._centres), 1)]
        vector: NDArray[float32] = self._moved(near, dice)[0]
        return vector

    @staticmethod
    def _moved(rows: NDArray[float32], dice: np.random.Generator) -> NDArray[float32]:
        return _unit(rows + dice.standard_normal(rows.shape, float32) * float32(_MOVED / DIMENSIONS**0.5))


def _unit(rows: NDArray[float32]) -> NDArray[float32]:
    unit: NDArray[float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(float32)
    return unit
