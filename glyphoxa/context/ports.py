"""The seam between a graph's hot-context injector and the assembly of hot context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import Recalled
from glyphoxa.domain.turn import Rejected


@dataclass(frozen=True, slots=True)
class Gathered:
    """How a part of a hot context was gathered.

    Attributes:
        source: Where its words come from.
        took_us: How long it took, in microseconds; None for what was there.
    """

    source: str
    took_us: int | None


@dataclass(frozen=True, slots=True)
class HotContext:
    """What an NPC has in mind for one turn.

    Attributes:
        facts: What it knows of the world: short sentences in the order in which they are to be read, already visible to
            this NPC.
        not_known: Of the facts, those which say that it knows nothing of what is asked.
        shrugs: What the NPC can say to that without thinking, of which one is enough; empty where it has to think.
        told: What the NPC can say from what the asker told it of just this, the best first.
        remembered: What was said, each line with who said it; it need not be so. Likewise visible and in order.
        recalled: Both with their provenance.
        omitted: "scene: late by 12 ms", "recall: database away": parts left out, each with its reason.
        identity: What it knows of itself: its description, its relationships. The same from turn to turn.
        scenes: Where it is and where it was, when, and with whom: a line for each scene of this session that it is in.
        kept: Its secrets that the question touches, in the form of `facts`; `keeps` are the words in front of them.
        past: What happened in earlier sessions, as far as it recalls that without being asked.
        rejected: What it recalled as well and is not told, each with the reason.
        gathered: How each part was gathered, by its name.
    """

    facts: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    shrugs: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    remembered: tuple[str, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    omitted: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    scenes: Mapping[Scene, str] = field(default_factory=dict)
    past: str = ""
    rejected: tuple[Rejected, ...] = ()
    kept: tuple[str, ...] = ()
    keeps: str = ""
    gathered: Mapping[str, Gathered] = field(default_factory=dict)


class HotContextSource(Protocol):
    """Assembles hot context. Each part has its own deadline; a late one is left out and said so."""

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        """All parts, for an answer. Never raises, never takes longer than the longest deadline.

        Args:
            asker: The name of who asks; empty if that is not known.
            within_ms: For what the question asks to have looked up: a session, a time, how two are related. Any other
                part keeps its own deadline.
        """
        ...

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        """What is already in memory (pre-fetched on partial transcripts), for priming a prompt cache."""
        ...
