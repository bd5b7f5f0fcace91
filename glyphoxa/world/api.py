"""What other packages use of memory level 3.

events      what can happen to a campaign's world, and how it stands in the log
state       what is so, as it follows from events: `replay`, `apply`, `difference`
words       what happened, and what is known, for the DM
ports       `World` changes it, `KnowledgeGraph` is asked in the name of a viewer, `WorldFeed` is followed
"""

from glyphoxa.world.erasing import without_words
from glyphoxa.world.events.entity import (
    AliasAdded,
    AliasRemoved,
    EntitiesMerged,
    EntityAdded,
    EntityChanged,
    EntityRemoved,
    EntityScoped,
)
from glyphoxa.world.events.fact import FactClosed, FactConfirmed, FactRejected, FactReplaced, FactStated
from glyphoxa.world.events.knowing import FactRevealed, FactScoped, FactTold
from glyphoxa.world.events.log import Cause, Event, TakenBack, WorldEvent
from glyphoxa.world.events.slot import SlotDeclared
from glyphoxa.world.events.undo import RolledBack, TalkErased, Undone
from glyphoxa.world.events.utterance import UtteranceCorrected, UtteranceRetracted
from glyphoxa.world.feed import WorldFeed, WorldRead
from glyphoxa.world.graph import (
    KNOWN_THROUGH,
    FactQuery,
    GraphRag,
    IdentitySnapshot,
    KnowledgeGraph,
    Known,
    Neighbourhood,
    Passage,
    Reached,
    Subgraph,
    TalkAround,
    Walk,
    beginnings_of,
)
from glyphoxa.world.ports import World
from glyphoxa.world.projection import apply
from glyphoxa.world.replay import difference, dropped, replay
from glyphoxa.world.rows import Changes, StateRows, WorldEntity
from glyphoxa.world.slots import DEFAULT_RULES, rule_of
from glyphoxa.world.state import WorldState
from glyphoxa.world.visibility import may_know
from glyphoxa.world.wording import Words, claim_in_words, moment, value_in_words, visibility_in_words

__all__ = [
    "DEFAULT_RULES",
    "KNOWN_THROUGH",
    "AliasAdded",
    "AliasRemoved",
    "Cause",
    "Changes",
    "EntitiesMerged",
    "EntityAdded",
    "EntityChanged",
    "EntityRemoved",
    "EntityScoped",
    "Event",
    "FactClosed",
    "FactConfirmed",
    "FactQuery",
    "FactRejected",
    "FactReplaced",
    "FactRevealed",
    "FactScoped",
    "FactStated",
    "FactTold",
    "GraphRag",
    "IdentitySnapshot",
    "KnowledgeGraph",
    "Known",
    "Neighbourhood",
    "Passage",
    "Reached",
    "RolledBack",
    "SlotDeclared",
    "StateRows",
    "Subgraph",
    "TakenBack",
    "TalkAround",
    "TalkErased",
    "Undone",
    "UtteranceCorrected",
    "UtteranceRetracted",
    "Walk",
    "Words",
    "World",
    "WorldEntity",
    "WorldEvent",
    "WorldFeed",
    "WorldRead",
    "WorldState",
    "apply",
    "beginnings_of",
    "claim_in_words",
    "difference",
    "dropped",
    "may_know",
    "moment",
    "replay",
    "rule_of",
    "value_in_words",
    "visibility_in_words",
    "without_words",
]
