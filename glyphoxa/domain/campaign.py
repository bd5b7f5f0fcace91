"""A campaign as its file describes it, and the schema of its memory.

The schema names the fields of each type of node, and how it is extracted, shown and compressed. A type of node is a
type of entity. Two types are stored as one: persons of both kinds are `character_sheet`. The fields of the three
default types and the numbers of extraction are those of the memory graph document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeVar

from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId

DEFAULT_PRIORITY = 1
"""Default priority of an NPC for the floor."""

Findings = Literal["review", "accept"]

BIDIRECTIONAL_RELATIONS = frozenset({"ALLIED_WITH", "HOSTILE_TO"})
"""Symmetric relations; both directions are stored."""

Engine = str
"""`cascaded`, `s2s`, or the name of another installed or configured pipeline."""
BudgetTier = Literal["FAST", "STANDARD", "DEEP"]


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the knowledge graph. `type` is one of `ENTITY_TYPES` or the campaign's own.

    Attributes:
        known_by: The NPCs that may know the entity exists, as in the campaign file; empty for everybody.
        hidden: No NPC may know it until the DM reveals it; then `known_by` applies.
    """

    id: EntityId
    type: str
    name: str
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    known_by: tuple[NpcId, ...] = ()
    hidden: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class Relationship:
    """A typed edge. `confidence` is 0 to 1; `origin` says whether it was stated or inferred.

    `known_by` and `hidden` are as in `Entity`.
    """

    source: EntityId
    target: EntityId
    type: str
    attributes: Mapping[str, object] = field(default_factory=dict)
    confidence: float = 1.0
    origin: Literal["stated", "inferred"] = "stated"
    dm_confirmed: bool = True
    known_by: tuple[NpcId, ...] = ()
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Secret:
    """Something only the named NPCs may know. It reaches no other NPC's prompt.

    Attributes:
        about: The entity it concerns; None for the first (by id) of those who know it.
        hidden: Not even those NPCs know it until the DM reveals it.
    """

    text: str
    known_by: frozenset[NpcId]
    about: EntityId | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Safety:
    """Topics that the group agreed on (lines and veils, after Ron Edwards, "Sex and Sorcery", 2003).

    Attributes:
        lines: Never come up in the game.
        veils: May happen, but are never described.
    """

    lines: tuple[str, ...] = ()
    veils: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VoiceSpec:
    """How an NPC sounds: a preset of the local voice, or a provider's voice id."""

    preset: str = "heart"
    provider_voice: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """An example of how an NPC answers: shown to the model, never part of the story.

    Attributes:
        facts: The NPC's knowledge in the example; may be empty.
        remembered: Earlier lines with their speakers ("Peter said: ..."); may be empty.
        said: The player's words.
        reply: The NPC's answer.
        kept: The NPC's secret in the example; may be empty.
    """

    said: str
    reply: str
    facts: str = ""
    remembered: str = ""
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Portrait:
    """A picture ready to be served: pixels only, without metadata.

    Attributes:
        content_type: `image/png`, `image/jpeg` or `image/webp`.
    """

    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Npc:
    """A character the DM puts at the table.

    Attributes:
        entity_id: Its node in the graph.
        persona: Who it is and how it speaks, in the second person ("You are Grimjaw ...").
        fillers: Short sounds in character ("Hm.") for when a reply takes long.
        aliases: Other names that players use ("the smith"). Used for address detection.
        standing: Rules it always follows: promises, limits, a mood. In the second person.
        speaks: Names of its languages; empty for any.
        priority: When several NPCs wait for the floor, the highest goes first.
        role: Its occupation ("blacksmith"); players may address it by this too. "" for none.
        address_only: It answers only when addressed by a name or by its role.
        portrait: Shown to players; None shows its initials.
    """

    id: NpcId
    entity_id: EntityId
    name: str
    persona: str
    voice: VoiceSpec = VoiceSpec()
    examples: tuple[Exchange, ...] = ()
    fillers: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    engine: Engine = "cascaded"
    budget_tier: BudgetTier = "FAST"
    standing: tuple[str, ...] = ()
    speaks: tuple[str, ...] = ()
    priority: int = DEFAULT_PRIORITY
    role: str = ""
    address_only: bool = False
    portrait: Portrait | None = None


@dataclass(frozen=True, slots=True)
class Player:
    """A human at the table. `name` is their character's name, which NPCs use.

    `dm` marks the game master, who may give voice commands. `table` marks the seat of a microphone that several people
    share: who speaks there is unknown.
    """

    id: PlayerId
    name: str
    dm: bool = False
    table: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """A place of the story and the NPCs that are present and hear what is said.

    Attributes:
        description: For the NPCs and the game master.
        read_aloud: For the players, on their page.
    """

    id: SceneId
    location: EntityId
    npcs: tuple[NpcId, ...]
    time_of_day: str = ""
    description: str = ""
    read_aloud: str = ""


_Part = TypeVar("_Part", Entity, Npc, Scene, Player)


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign as its file describes it: the unit that is loaded, scoped and shared.

    Attributes:
        slots: The campaign's own rules for predicates.
        time_zone: IANA name of the table's time zone; "" for the machine's.
        calendar: None if the story does not count days.
        story_day: The current day of the story, as written in the campaign's calendar; "" if not given.
        bible: The common knowledge of all NPCs about the party, the world and how it began.
        glossary: Words the campaign coined, with their meanings.
        relation_types: Sentences for relation types, with `{source}` and `{target}`.
        units: Its measures by their sign, each as a voice says one ("one crown") and any other number ("crowns").
        safety: Topics that never come up, or are never described.
        memory_interval: Rounds between two summaries of a running session; 0: as the settings say.
        findings: The treatment of claims found in the transcript: `review` (the DM confirms each), or `accept` (those
            of enough confidence need no review).
        node_types: Its own types of entities, and its changes to the usual ones: see `schema`.
    """

    id: CampaignId
    name: str
    language: str
    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]
    npcs: tuple[Npc, ...]
    players: tuple[Player, ...]
    scenes: tuple[Scene, ...]
    secrets: tuple[Secret, ...] = ()
    slots: Mapping[str, SlotRule] = field(default_factory=dict)
    time_zone: str = ""
    calendar: StoryCalendar | None = None
    story_day: str = ""
    bible: str = ""
    glossary: Mapping[str, str] = field(default_factory=dict)
    relation_types: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    safety: Safety = Safety()
    memory_interval: int = 0
    findings: Findings = "review"
    node_types: Mapping[str, NodeType] = field(default_factory=dict)

    @property
    def schema(self) -> Schema:
        return Schema(self.node_types)

    @property
    def people(self) -> Mapping[str, str]:
        """Return the names of those who speak, by their ids."""
        return {**{each.id: each.name for each in self.players}, **{each.id: each.name for each in self.npcs}}

    @property
    def known_players(self) -> tuple[Player, ...]:
        """Return the players who are persons with a name: without seats of a shared microphone."""
        return tuple(player for player in self.players if not player.table)

    def entity(self, entity_id: EntityId) -> Entity:
        return self._by_id("entity", entity_id, self.entities)

    def npc(self, npc_id: NpcId) -> Npc:
        return self._by_id("NPC", npc_id, self.npcs)

    def scene(self, scene_id: SceneId) -> Scene:
        return self._by_id("scene", scene_id, self.scenes)

    def player(self, player_id: PlayerId) -> Player:
        return self._by_id("player", player_id, self.players)

    def _by_id(self, what: str, wanted: str, things: Iterable[_Part]) -> _Part:
        for thing in things:
            if thing.id == wanted:
                return thing
        hint = did_you_mean(wanted, (thing.id for thing in things))
        raise NotFound(f"no {what} {wanted!r} in campaign {self.id!r}: {hint}")


# How many facts of one predicate may hold at a time, and what disagrees with what.
#
#     many               any number: KNOWS, PARTICIPATED_IN
#     one                one value per subject; another one conflicts and needs the DM: most attributes
#     functional         one object per subject; a later one supersedes the earlier one: LOCATED_AT
#     functional_object  one subject per object; likewise: OWNS (a sword has one owner)
#
# Only declared functional slots supersede. Retiring facts more freely destroys true ones: a user of another system
# found 41 % of 3,950 facts retired, most of those audited wrongly.


SlotRule = Literal["many", "one", "functional", "functional_object"]
SLOT_RULES: Final[Mapping[str, SlotRule]] = {
    "LOCATED_AT": "functional",
    "OWNS": "functional_object",
    "alive": "functional",
    "status": "functional",
    "emotional_state": "functional",
    "secret": "many",
    "note": "many",
    "rumour": "many",
    "trait": "many",
    "promise": "many",
    "decision": "many",
    "plan": "many",
    "wish": "many",
    "discovery": "many",
    "gave": "many",
    "took": "many",
    "bought": "many",
    "sold": "many",
    "lost": "many",
    "price": "many",
    "past": "many",
    "denied": "many",
    "summary": "many",
}


ENTITY_TYPES: Final = ("npc", "player", "location", "item", "faction", "event", "quest", "concept")
NODE_TYPE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {"npc": "character_sheet", "player": "character_sheet", "location": "location_state"}
)
"""The schema's name for a type of entity, where it is another one."""


@dataclass(frozen=True, slots=True)
class Compression:
    """When and how the nodes of a type are summed up by a node of the next tier.

    Attributes:
        threshold: Nodes of a tier that nothing sums up yet, above which the oldest are compressed.
        fan_in: Nodes that one summary sums up.
        max_depth: Highest tier; the nodes made from talk have tier 0.
        keep_recent: Latest nodes of tier 0 that stay as they are.
        by: Who sums them up: the curator alone; "automatic" for a call without one past the threshold; or both.
    """

    threshold: int = 5
    fan_in: int = 3
    max_depth: int = 10
    keep_recent: int = 3
    by: Literal["both", "automatic", "curator"] = "both"


@dataclass(frozen=True, slots=True)
class NodeType:
    """
    Attributes:
        fields: Names of attributes that extraction fills.
        appends: Each extraction adds a node, and none is merged with another.
        always_inject: An NPC's knowledge of such nodes is in each of its prompts, and is not recalled in addition.
        instructions: Added to the request for extraction while the type takes part.
        every: It takes part in the extraction of talk in which the number of an utterance is a multiple of this.
        active: Without it, it takes part in no extraction.
        compression: None: its nodes are not compressed.
    """

    fields: tuple[str, ...] = ()
    appends: bool = False
    always_inject: bool = False
    instructions: str = ""
    every: int = 1
    active: bool = True
    compression: Compression | None = None

    def takes_part(self, ordinals: range) -> bool:
        """Return whether talk with utterances of these numbers is read for nodes of this type."""
        return self.active and ordinals.stop - 1 >= -(-ordinals.start // self.every) * self.every


DEFAULT_TYPES: Final[Mapping[str, NodeType]] = MappingProxyType(
    {
        "character_sheet": NodeType(
            ("aliases", "traits", "identity", "goal", "inventory", "language_sample", "addressing_user")
        ),
        "location_state": NodeType(("controller", "danger", "resources")),
        "event": NodeType(("summary",), appends=True, compression=Compression()),
    }
)
TYPE_TEMPLATES: Final[Mapping[str, NodeType]] = MappingProxyType(
    {
        "rule_constraint": NodeType(("rule", "exceptions"), always_inject=True),
        "world_law": NodeType(("law", "consequence"), always_inject=True),
        "thread": NodeType(("goal", "status", "owner")),
        "faction": NodeType(("leader", "goals", "territory")),
        "magic_system": NodeType(("source", "restrictions", "cost")),
        "inventory_item": NodeType(("owner", "condition", "powers")),
    }
)
"""Used for a type of this name that a campaign declares without anything else."""
_PLAIN_TYPE: Final = NodeType()


@dataclass(frozen=True, slots=True)
class Schema:
    """The types of nodes of a campaign.

    Attributes:
        declared: The campaign's own, by name; they replace default types of the same name.
    """

    declared: Mapping[str, NodeType]

    @property
    def types(self) -> Mapping[str, NodeType]:
        """Return all types, by name: the default ones, then the campaign's own."""
        return {**DEFAULT_TYPES, **self.declared}

    @property
    def entity_types(self) -> tuple[str, ...]:
        """Return the types that an entity may have: the usual ones, then the campaign's own."""
        return (*ENTITY_TYPES, *(name for name in self.declared if name not in (*ENTITY_TYPES, *DEFAULT_TYPES)))

    def of_entity(self, type_: str) -> NodeType:
        """Return the type of node of an entity of this type."""
        declared = self.declared.get(type_)
        return declared if declared is not None else self.types.get(NODE_TYPE_OF.get(type_, type_), _PLAIN_TYPE)

    def named(self, name: str) -> NodeType:
        """Return the type of this name; if the campaign does not declare it, as its name alone would declare it."""
        return self.declared.get(name) or TYPE_TEMPLATES.get(name) or self.of_entity(name)

    def name_of(self, type_: str) -> str:
        """Return the name of the type of node of an entity of this type."""
        return type_ if type_ in self.declared else NODE_TYPE_OF.get(type_, type_)

    def always_injected(self) -> frozenset[str]:
        """Return the types of entities that are in each prompt."""
        return frozenset(each for each in self.entity_types if self.of_entity(each).always_inject)

    def taking_part(self, ordinals: range) -> Mapping[str, NodeType]:
        """Return the types of entities for which talk with utterances of these numbers is read."""
        each = {type_: self.of_entity(type_) for type_ in self.entity_types}
        return {type_: node for type_, node in each.items() if node.takes_part(ordinals)}


DEFAULT_SCHEMA: Final = Schema(MappingProxyType({}))
