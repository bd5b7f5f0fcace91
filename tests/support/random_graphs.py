"""Random worlds of many small graphs each, what a slow reader of them says a viewer may be told, and the fastest way
into the tables.

A world is a hundred graphs around one public entity that is related to the first of each, so that one walk meets all
of them. All worlds use the same ids, so that a row of another campaign would look like one of this.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from pydantic_core import to_jsonable_python

from glyphoxa.adapters.postgres.world.tables import row_of_entity, row_of_fact
from glyphoxa.domain.campaign import BIDIRECTIONAL_RELATIONS
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim, Fact, Knower, Provenance, Status, Viewer, Visibility
from glyphoxa.world.state import WorldEntity

GRAPHS: Final = 100
CENTRE: Final = EntityId("centre")
NPCS: Final = tuple(NpcId(f"npc-{n}") for n in range(4))
VIEWERS: Final[tuple[Viewer, ...]] = (DM, NPCS[0], NPCS[1])
WORDS: Final = ("lantern", "harbour", "bell", "grave", "oath", "raven")
RELATIONS: Final = ("KNOWS", "LOCATED_AT", "OWNS", "ALLIED_WITH", "HOSTILE_TO")
ATTRIBUTES: Final = ("note", "secret", "occupation")
MODEL: Final = "a model"
SESSION: Final = SessionId("s1")
DIMENSIONS: Final = 384
_STATUSES: Final[tuple[Status, ...]] = ("accepted",) * 7 + ("pending", "conflict", "stale")


@dataclass(frozen=True, slots=True)
class Said:
    """An utterance and its chunk."""

    id: UtteranceId
    text: str
    hearers: tuple[NpcId, ...]
    speaks_of: tuple[EntityId, ...]
    retracted: bool
    model: str
    embedding: np.ndarray[Any, np.dtype[np.float32]]

    def is_for(self, viewer: Viewer) -> bool:
        return not self.retracted and (viewer is DM or viewer in self.hearers)


@dataclass(slots=True, eq=False)
class World:
    graphs: list[list[EntityId]] = field(default_factory=list)
    entities: dict[EntityId, WorldEntity] = field(default_factory=dict)
    facts: dict[FactId, Fact] = field(default_factory=dict)
    talk: list[Said] = field(default_factory=list)

    @cache  # noqa: B019 - worlds live as long as the tests of them
    def entities_for(self, viewer: Viewer) -> set[EntityId]:
        return {e.id for e in self.entities.values() if e.visibility.is_visible_to(viewer)}

    @cache  # noqa: B019
    def facts_for(self, viewer: Viewer) -> list[Fact]:
        there = self.entities_for(viewer)
        return [
            fact
            for fact in self.facts.values()
            if (viewer is DM or fact.status == "accepted")
            and fact.visibility.is_visible_to(viewer)
            and {fact.claim.subject, fact.claim.object or fact.claim.subject} <= there
        ]

    def words_of(self, fact: Fact) -> set[str]:
        ends = [self.entities[end] for end in (fact.claim.subject, fact.claim.object) if end is not None]
        names = [name for end in ends for name in (end.name, *end.aliases)]
        text = " ".join((fact.claim.predicate.replace("_", " "), str(fact.claim.content), *names))
        return set(text.lower().split())


def depths(
    facts: Iterable[Fact], start: EntityId, *, depth: int, first: Collection[str] = RELATIONS,
    beyond: Collection[str] = RELATIONS,
) -> dict[EntityId, int]:  # fmt: skip
    """How far each entity is, over relations in either direction."""
    found, level = {start: 0}, {start}
    relations = [fact.claim for fact in facts if fact.claim.object is not None]
    for steps in range(1, depth + 1):
        types = first if steps == 1 else beyond
        nexts: set[EntityId] = set()
        for claim in relations:
            if claim.predicate in types and claim.object is not None:
                if claim.subject in level:
                    nexts.add(claim.object)
                if claim.object in level:
                    nexts.add(claim.subject)
        level = nexts - found.keys()
        found.update(dict.fromkeys(level, steps))
    return found


def a_world(dice: random.Random, *, graphs: int = GRAPHS, turns: int = 40) -> World:
    world = World()
    world.entities[CENTRE] = WorldEntity(CENTRE, "location", "Middenmark")
    for n in range(graphs):
        ids = [EntityId(f"g{n}-{k}") for k in range(dice.randint(2, 6))]
        world.graphs.append(ids)
        for entity in ids:
            aliases = (dice.choice(WORDS),) if dice.random() < 0.1 else ()
            name = f"{dice.choice(WORDS).title()} {entity}" if dice.random() < 0.1 else f"Nn {entity}"
            world.entities[entity] = WorldEntity(entity, "npc", name, aliases, _visibility(dice, 0.7))
        _add(world, Fact(FactId(""), Claim.relation(CENTRE, "KNOWS", ids[0]), len(world.facts) + 1))
        for _ in range(dice.randint(2, 8)):
            subject, other = dice.sample(ids, 2)
            claim = (
                Claim.relation(subject, dice.choice(RELATIONS), other)
                if dice.random() < 0.6
                else Claim.attribute(subject, dice.choice(ATTRIBUTES), " ".join(dice.sample(WORDS, 2)))
            )
            provenance = Provenance(confidence=round(dice.random(), 2), at_ms=dice.randrange(10_000) * 1_000)
            _add(
                world,
                Fact(
                    FactId(""),
                    claim,
                    len(world.facts) + 1,
                    dice.choice(_STATUSES),
                    provenance,
                    _visibility(dice, 0.5),
                ),
            )
    everything = list(world.entities)
    vectors = np.random.default_rng(dice.randrange(2**32)).normal(size=(turns, DIMENSIONS)).astype(np.float32)
    for n in range(turns):
        world.talk.append(
            Said(
                UtteranceId(f"u{n}"),
                " ".join(dice.sample(WORDS, 2)),
                tuple(npc for npc in NPCS if dice.random() < 0.5),
                tuple(sorted(dice.sample(everything, dice.randint(0, 3)))),
                dice.random() < 0.1,
                MODEL if dice.random() < 0.9 else "another model",
                vectors[n] / np.linalg.norm(vectors[n]),
            )
        )
    return world


def _add(world: World, fact: Fact) -> None:
    named = fact.with_(id=fact.claim.fact_id)
    world.facts.setdefault(named.id, named)


def _visibility(dice: random.Random, share_public: float) -> Visibility:
    if dice.random() < share_public:
        return PUBLIC
    knowers = (Knower(npc, dice.choice(("witnessed", "told", "secret"))) for npc in NPCS if dice.random() < 0.5)
    return Visibility.of(dice.choice(("public", "witnessed", "told", "secret", "hidden")), knowers)


async def put(connection: Any, campaign: CampaignId, world: World) -> None:
    """
    Args:
        connection: With the rights of a superuser.
    """
    await connection.execute("SELECT set_config('glyphoxa.campaign', $1, false)", campaign)
    await connection.execute("INSERT INTO campaigns (id, name, language) VALUES ($1, $1, 'en')", campaign)
    relations: list[dict[str, object]] = []
    attributes: list[dict[str, object]] = []
    for fact in world.facts.values():
        row = to_jsonable_python(row_of_fact(fact))
        (attributes if fact.claim.object is None else relations).append(row)
        if fact.claim.predicate in BIDIRECTIONAL_RELATIONS:
            relations.append({**row, "subject_id": row["object_id"], "object_id": row["subject_id"]})
    entities = to_jsonable_python([row_of_entity(entity) for entity in world.entities.values()])
    await connection.execute(_ENTITIES, campaign, entities)
    await connection.execute(_RELATIONS, campaign, relations)
    await connection.execute(
        _ATTRIBUTES, campaign, [{**row, "value": json.loads(str(row["value"]))} for row in attributes]
    )
    await connection.execute(
        "INSERT INTO sessions (campaign_id, id, started_at, last_ordinal) VALUES ($1, $2, now(), $3)",
        *(campaign, SESSION, len(world.talk)),
    )
    await connection.executemany(
        """INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, speaker_id, speaker_name, text,
                                        witnesses, retracted)
           VALUES ($1, $2, $3, $4, 'tamsin', 'Tamsin', $5, $6, $7)""",
        [(campaign, SESSION, n, s.id, s.text, s.hearers, s.retracted) for n, s in enumerate(world.talk, start=1)],
    )
    await connection.executemany(
        """INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model,
                               entity_ids, knowers, retracted)
           VALUES ($1, $2, $2, $3, $4, '', $5, $6, $7, $8, $9)""",
        [
            (campaign, s.id, SESSION, s.text, s.embedding, s.model, s.speaks_of, s.hearers, s.retracted)
            for s in world.talk
        ],
    )


_OF_BOTH_KINDS: Final = """attributes, provenance, origin, status, scope, knowers, known_how, doubted, seq"""
_TYPES: Final = """attributes JSONB, provenance JSONB, origin TEXT, status TEXT, scope TEXT, knowers TEXT[],
                   known_how JSONB, doubted BOOLEAN, seq BIGINT"""
_ENTITIES: Final = """
INSERT INTO entities (campaign_id, id, type, name, aliases, origin, scope, knowers, known_how)
    SELECT $1, r.* FROM jsonb_to_recordset($2) AS r (id TEXT, type TEXT, name TEXT, aliases TEXT[], origin TEXT,
                                                     scope TEXT, knowers TEXT[], known_how JSONB)"""
_RELATIONS: Final = f"""
INSERT INTO relationships (campaign_id, fact_id, source_id, rel_type, target_id, {_OF_BOTH_KINDS})
    SELECT $1, fact_id, subject_id, predicate, object_id, {_OF_BOTH_KINDS}
      FROM jsonb_to_recordset($2) AS r (fact_id TEXT, subject_id TEXT, predicate TEXT, object_id TEXT, {_TYPES})"""
_ATTRIBUTES: Final = f"""
INSERT INTO attribute_facts (campaign_id, fact_id, entity_id, attribute, value, {_OF_BOTH_KINDS})
    SELECT $1, fact_id, subject_id, predicate, value, {_OF_BOTH_KINDS}
      FROM jsonb_to_recordset($2) AS r (fact_id TEXT, subject_id TEXT, predicate TEXT, value JSONB, {_TYPES})"""
