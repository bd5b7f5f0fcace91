"""Describe an NPC's place in one line, as the world is now and as far as that NPC may know.

    1. time of day, and the place by its present name          always
    2. the NPCs that hear what is said there                   always
    3. the place's description, if the DM changed it           if there is room, as all below
    4. what the campaign's file says about the scene
    5. the story day                                           if a scene has `_ROOM_FOR_MORE`, as all below
    6. others at the place
    7. active quests in which this NPC has a part
    8. the place's description from the campaign's file

The last is trimmed first. Players are not named: they come and go, and each line of the transcript names its speaker.
The line is placed where the scene starts in the transcript, where a change makes a prompt cache read everything after
it again. So an earlier scene keeps its line, unless the NPC may no longer know something in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

from glyphoxa.domain.campaign import Campaign, Entity, Scene
from glyphoxa.domain.ids import EntityId, FactId, NpcId
from glyphoxa.domain.knowledge import Fact, RecalledSummary
from glyphoxa.language.facts import fact_sentence
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.relations import RelationWords
from glyphoxa.language.sentences import RoomLeft, characters_in
from glyphoxa.prompt.identity import KnownSentences
from glyphoxa.prompt.wording import QUEST_OVER, SaidWhen, wording
from glyphoxa.recall.facts import is_secret
from glyphoxa.recall.world import World
from glyphoxa.world.graph import Known

_ROOM_FOR_MORE: Final = 100
"""Tokens of a scene. A small model with fewer needs the place only."""
_JOINED: Final = 8
"""Characters between two names in any language."""


@dataclass(slots=True)
class _Line(RoomLeft):
    """A scene in words, and what an NPC must know for them.

    Attributes:
        facts: Each with an entity that it is about.
    """

    entities: set[EntityId] = field(default_factory=set)
    facts: set[tuple[EntityId, FactId]] = field(default_factory=set)
    text: str = ""


class Scenes:
    """A campaign's scenes, each as one NPC may know it.

    Args:
        tokens: Budget of a line. Time, place and company are included even if they are longer.
        story_day: In words; empty if it is unknown.

    Attributes:
        here: The table's scene; None before the first.
    """

    def __init__(
        self,
        campaign: Campaign,
        sentences: KnownSentences,
        *,
        tokens: int,
        story_day: Callable[[], str] = str,
    ) -> None:
        self._campaign = campaign
        self._words = wording(campaign.language)
        self._relations = RelationWords.of(campaign)
        self._speaking = {npc.entity_id for npc in campaign.npcs}
        self._in_file = {entity.id: entity.attributes.get("description") for entity in campaign.entities}
        self._most_characters = characters_in(tokens)
        self._has_room_for_more = tokens >= _ROOM_FOR_MORE
        self._sentences = sentences
        self._story_day = story_day
        self._told: dict[tuple[Scene, NpcId], _Line] = {}
        self._entered: dict[Scene, None] = {}
        self.here: Scene | None = None

    def enter(self, scene: Scene) -> None:
        """Move the table to a scene."""
        self.here = scene
        self._entered[scene] = None

    def lines(self, npc: NpcId) -> dict[Scene, str]:
        """Return the line of each scene of this session in which the NPC is present."""
        return {scene: self.line(scene, npc) for scene in self._entered if npc in scene.npcs}

    def line(self, scene: Scene, npc: NpcId) -> str:
        """Return the line of the table's scene, or of an earlier one as it was last."""
        told = self._told.get((scene, npc))
        if scene == self.here or told is None or not self._may_still_know(npc, told):
            told = self._told[scene, npc] = self._line(scene, npc)
        return told.text

    def _line(self, scene: Scene, npc: NpcId) -> _Line:
        place = self._sentences.known(npc, scene.location)
        when = [scene.time_of_day] if scene.time_of_day else []
        where = [place.entity.name] if place is not None else []
        here = [known.entity for known in self._others(scene, npc)]
        least = f"{_sentence([*when, *where])} {self._words.here([one.name for one in here])} "
        told = _Line(self._most_characters - len(least), {one.id for one in here})
        looks, quests = "", ""
        if place is not None:
            told.entities.add(place.entity.id)
            looks = self._looks(npc, place, told, is_changed=True)
        of_scene = self._fitting(scene.description, npc, told)
        if self._has_room_for_more:
            day = self._story_day()
            when += [day] if day and told.takes(len(day) + 2) else []
            for other, fact in self._also_there(place):
                if told.takes(len(other.name) + _JOINED):
                    here.append(other)
                    told.entities.add(other.id)
                    told.facts.add((fact.claim.subject, fact.id))
            quests = self._quests(npc, told)
            if place is not None and not looks:
                looks = self._looks(npc, place, told, is_changed=False)
        parts = (_sentence([*when, *where]), looks, of_scene, self._words.here([one.name for one in here]), quests)
        told.text = " ".join(part for part in parts if part)
        return told

    def _may_still_know(self, npc: NpcId, told: _Line) -> bool:
        if any(self._sentences.known(npc, one) is None for one in told.entities):
            return False
        for entity, fact in told.facts:
            known = self._sentences.known(npc, entity)
            if known is None or all(fact != one.id for one in _facts(known)):
                return False
        return True

    def _others(self, scene: Scene, npc: NpcId) -> Iterator[Known]:
        """Yield those who hear what is said, by their present names."""
        for other in scene.npcs:
            known = None if other == npc else self._sentences.known(npc, self._campaign.npc(other).entity_id)
            if known is not None:
                yield known

    def _also_there(self, place: Known | None) -> Iterator[tuple[Entity, Fact]]:
        """Yield persons without a voice. An NPC is where the scene says, and hears nothing elsewhere."""
        for fact, other in place.relations if place is not None else ():
            is_there = fact.claim.predicate == "LOCATED_AT" and fact.claim.subject == other.id
            if is_there and other.type == "npc" and other.id not in self._speaking and not is_secret(fact):
                yield other, fact

    def _quests(self, npc: NpcId, told: _Line) -> str:
        own = self._campaign.npc(npc).entity_id
        itself = self._sentences.known(npc, own)
        names: dict[str, None] = {}
        for fact, other in itself.relations if itself is not None else ():
            if other.type != "quest" or other.name in names or is_secret(fact) or not self._is_under_way(npc, other.id):
                continue
            if told.takes(len(other.name) + (2 if names else len(self._words.to_do) + 2)):
                names[other.name] = None
                told.entities.add(other.id)
                told.facts.add((own, fact.id))
        return f"{self._words.to_do}{', '.join(names)}." if names else ""

    def _is_under_way(self, npc: NpcId, quest: EntityId) -> bool:
        known = self._sentences.known(npc, quest)
        if known is None:
            return False
        said = (fact.claim.content for fact in known.attributes if fact.claim.predicate.casefold() == "status")
        return not any(isinstance(status, str) and status.strip().casefold() in QUEST_OVER for status in said)

    def _looks(self, npc: NpcId, place: Known, told: _Line, *, is_changed: bool) -> str:
        """Return the place's description, if it is one that the DM changed, or if it is not."""
        described = next((fact for fact in place.attributes if fact.claim.predicate == "description"), None)
        if described is None or is_secret(described):
            return ""
        if is_changed != (described.claim.content != self._in_file.get(place.entity.id)):
            return ""
        text = self._fitting(fact_sentence(described, place.entity, words=self._relations), npc, told)
        if text:
            told.facts.add((place.entity.id, described.id))
        return text

    def _fitting(self, text: str, npc: NpcId, told: _Line) -> str:
        """Return what fits, without the sentences that name what the NPC may not know."""
        known = self._sentences.of(npc, text)
        found = told.fitting([" ".join(sentence for sentence, _ in known)], cuts=True)
        if found:
            told.entities.update(one for _, named in known for one in named)
        return "".join(found)


def _facts(known: Known) -> Iterator[Fact]:
    yield from known.attributes
    yield from (fact for fact, _ in known.relations)


def _sentence(parts: list[str]) -> str:
    return f"{', '.join(parts)}." if parts else ""


# What an NPC recalls of earlier sessions unasked: the arc of the campaign, the latest session, what it got or gave, and
# what is still open.
#
# Read when the table opens, and the same for the whole session, because it precedes the transcript. It is read again
# only after something was taken back, or after the DM has decided on it.


_MOST_SESSIONS: Final = 5
_LEAST_OF_ARC: Final = 110
"""Characters of an event in the arc; in fewer, most of them would be cut within their first sentence."""


class EarlierSessions(Protocol):
    """Returns memories of the sessions before the present one. All methods may raise `Unavailable`."""

    def summaries(self, npc: NpcId) -> Iterable[RecalledSummary]:
        """Return the summaries of all sessions, latest first."""

    async def threads(self, npc: NpcId) -> Sequence[RecalledSummary]:
        """Return what an NPC heard and nothing continues yet, latest first."""

    async def arc(self, npc: NpcId) -> Sequence[RecalledSummary]:
        """Return the timeline in the order of the talk, each event with its tier as score.

        If it is empty, the latest summaries are told.
        """


@dataclass(slots=True, eq=False)
class Past:
    """
    Args:
        when: The campaign and the present session; adds when things were said.
        sessions: None without long-term memory.
        tokens: For each NPC. A summary that does not fit is cut at the end of a sentence. The rest takes half at most.
        world: Returns the world in memory; None without long-term memory, and while it is read again.
    """

    when: SaidWhen
    sessions: EarlierSessions | None
    tokens: int
    world: Callable[[], World | None] = lambda: None
    _read: dict[NpcId, tuple[object, str]] = field(default_factory=dict)

    async def read(self, npc: NpcId, holdings: Sequence[str] = ()) -> None:
        """Read the summaries, once for each NPC and world.

        Args:
            holdings: Lines about things that the NPC got or gave.

        Raises:
            Unavailable: They are not in memory, or the database is unavailable. The next call tries again.
        """
        world = self._told_as()
        sessions = self.sessions
        if sessions is None or (npc in self._read and self._read[npc][0] is world) or not self.tokens:
            return
        arc = list(await sessions.arc(npc))
        earlier = (one for one in sessions.summaries(npc) if one.session_id != self.when.session)
        latest = list(islice(earlier, _MOST_SESSIONS))
        # The latest session that has a summary is told by it, or by a sum.
        arc = [one for one in arc if one.score or one.session_id != latest[0].session_id] if latest else arc
        latest = latest[:1] if arc else latest
        threads = await sessions.threads(npc)
        told = [*latest, *arc]
        own = [line for line in holdings if not any(line in one.text for one in told)]
        new = (each for each in threads if not any(each.text in one.text for one in told))
        own += map(self._line, new)
        room = RoomLeft.of(self.tokens // 2)
        own = room.fitting(own)
        room.left += characters_in(self.tokens - self.tokens // 2)
        of_latest = room.fitting(map(self._line, latest), cuts=True, share=1 / 2 if arc else 1)
        # The sums of most come first, as many as have room for a sentence, and each gets the same share.
        n_shown = room.left // _LEAST_OF_ARC
        by_weight = sorted(range(len(arc)), key=lambda at: (-arc[at].score, -at))[:n_shown]
        of_arc: dict[int, list[str]] = {}
        for n, at in enumerate(by_weight):
            of_arc[at] = room.fitting([self._line(arc[at])], cuts=True, share=1 / (len(by_weight) - n))
        in_order = (text for at in sorted(of_arc) for text in of_arc[at])
        self._read[npc] = world, " ".join((*in_order, *reversed(of_latest), *own))

    def _line(self, one: RecalledSummary) -> str:
        return recalled_line(self.when.dated(one))

    def of(self, npc: NpcId) -> str:
        """Return the summaries in chronological order; empty if there are none, or they were not read of this world."""
        world, told = self._read.get(npc, (None, ""))
        return told if world is self._told_as() else ""

    def _told_as(self) -> object:
        world = self.world()
        return None if world is None else world.past
