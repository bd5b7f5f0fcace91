"""The schema of a campaign's memory: the fields of each type of node, and how it is extracted, shown and compressed.

A type of node is a type of entity. Two types are stored as one: persons of both kinds are `character_sheet`. The fields
of the three default types and the numbers of extraction are those of the memory graph document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

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
TEMPLATES: Final[Mapping[str, NodeType]] = MappingProxyType(
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
_PLAIN: Final = NodeType()


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
        return declared if declared is not None else self.types.get(NODE_TYPE_OF.get(type_, type_), _PLAIN)

    def named(self, name: str) -> NodeType:
        """Return the type of this name; if the campaign does not declare it, as its name alone would declare it."""
        return self.declared.get(name) or TEMPLATES.get(name) or self.of_entity(name)

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
