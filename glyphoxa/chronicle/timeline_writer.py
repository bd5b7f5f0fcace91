"""Grow a campaign's timeline: an event node for each stretch of talk, and nodes that sum up older ones.

    session  one node for each session that is over, told again whenever its lines have changed
    tier 0   one node for each stretch, with its most salient lines
    tier n   one node for `fan_in` nodes of the tier below, once more than `threshold` of them have none

The nodes are the same for all, their summaries are not: each NPC's is made from what it heard. A node that is summed up
is hidden from prompts and can still be recalled. A summary rests on its lines: when one of them is retracted, so is the
summary, and the next pass tells the node again. What the DM hid, rewrote, rejected, merged or removed stays so. Own or
rejected words go with a line of theirs that is taken back.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, Protocol

from glyphoxa.chronicle.ports import ChronicleLog, said_in
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LineSelection, LlmSummariser, Teller, Told
from glyphoxa.chronicle.talk import LONGEST, NumberedUtterance, stretches
from glyphoxa.chronicle.utterance_nodes import place_of
from glyphoxa.domain.budgets import SUMMARY_TOKENS
from glyphoxa.domain.campaign import Campaign, Compression
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import TOOK_PART, Claim, Fact, Provenance, Viewer, Visibility, lines_of, witnessed_by
from glyphoxa.judgement.safety import topics_of
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.transcript.sessions import (
    EPISODE,
    SummarySentence,
    episode_name,
    episode_of,
    node_name,
    node_of,
    start_of,
    summary_of,
    tier_of,
)
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause, Event

NODE_TOKENS: Final = 50
"""Length of a node's summary: twelve of them fit into 600 tokens, the most that an NPC is told of earlier sessions."""
PART_OF: Final = "PART_OF"
"""The relation of a node to the one that sums it up."""
FLOOR: Final = "floor"
"""The attribute of a node with the number of its last utterance."""
OCCURRED_AT: Final = "OCCURRED_AT"
NAMED_IN: Final = "INVOLVED_IN"
_SURE: Final = 0.9
_TRIES: Final = 3
"""A node is told again if another writer has told another one meanwhile."""


@dataclass(frozen=True, slots=True)
class EventNode:
    """A stored node with at least one summary.

    Attributes:
        end: Its fact "floor" has the session, the number and the time of its last utterance as provenance.
        summaries: Its facts "summary", each with its lines among its attributes.
        seen: Who may know of it.
        parent: The node that sums it up.
    """

    id: EntityId
    end: Provenance
    summaries: tuple[Fact, ...]
    seen: Visibility
    parent: EntityId | None = None

    @property
    def tier(self) -> int:
        return tier_of(self.id)

    @property
    def lines(self) -> frozenset[UtteranceId]:
        return frozenset(line for fact in self.summaries for line in lines_of(fact))

    def of(self, npc: NpcId) -> Fact | None:
        """Return the summary that an NPC may know."""
        shown = self.summaries if self.seen.is_visible_to(npc) else ()
        return next((fact for fact in shown if fact.visibility.is_visible_to(npc)), None)


@dataclass(frozen=True, slots=True)
class StoredTimeline:
    """
    Attributes:
        ids: The entities of all nodes, also of those without a summary.
        nodes: Those with a summary, in the order of the talk.
        sessions: The summaries of whole sessions, by their entities.
        decided: Nodes and sessions on whose summaries the DM has decided. They are not told again.
    """

    ids: frozenset[EntityId] = frozenset()
    nodes: tuple[EventNode, ...] = ()
    sessions: Mapping[EntityId, Sequence[Fact]] = field(default_factory=dict)
    decided: frozenset[EntityId] = frozenset()

    def node(self, wanted: EntityId) -> EventNode | None:
        return next((node for node in self.nodes if node.id == wanted), None)

    def folds(self, rules: Compression, but: Collection[EntityId] = ()) -> Iterator[Sequence[EventNode]]:
        """Yield nodes to sum up: what one may have lost, then the oldest of a full tier, first one not in `but`."""
        for parent in dict.fromkeys(node.parent for node in self.nodes if node.parent is not None):
            yield [node for node in self.nodes if node.parent == parent]
        for tier in range(rules.max_depth):
            free = [node for node in self.nodes if node.tier == tier and node.parent is None]
            free = [node for node in free if node.id not in but and summary_of(node.id, tier + 1) not in self.decided]
            old = free[: max(0, len(free) - rules.keep_recent)] if tier == 0 else free
            if len(free) > rules.threshold and len(old) >= rules.fan_in:
                yield old[: rules.fan_in]


def timeline_of(seen: Mapping[EntityId, Visibility], facts: Iterable[Fact], viewer: Viewer) -> StoredTimeline:
    """Return the timeline of entities and facts, as far as a viewer may know of the entities.

    Args:
        seen: Who may know of each entity. What sums up one that the DM has hidden is hidden with it.
        facts: The viewer's facts "floor", "summary" and `PART_OF`, also the summaries of sessions.
    """
    ends: dict[EntityId, Provenance] = {}
    parents: dict[EntityId, EntityId] = {}
    summaries: defaultdict[EntityId, list[Fact]] = defaultdict(list)
    for fact in facts:
        node = fact.claim.subject
        if fact.claim.object is not None:
            parents[node] = fact.claim.object
        elif fact.claim.predicate == FLOOR:
            ends[node] = fact.provenance
        else:
            summaries[node].append(fact)
    hidden = {node for node, who in seen.items() if not who.is_visible_to(viewer)}
    above = {node for node in hidden if seen[node].scope in ("hidden", "secret")}
    while above:
        hidden |= above
        above = {parents.get(node, summary_of(node, tier_of(node) + 1)) for node in above} & summaries.keys()
    summaries = defaultdict(list, {node: summaries[node] for node in summaries.keys() & seen.keys() - hidden})
    nodes: list[EventNode] = []
    for node in ends.keys() & summaries.keys():
        # The relation to its sum goes with a node that is told again. The first of several is known by the sum's id.
        parent = parents.get(node, summary_of(node, tier_of(node) + 1))
        # A node is free again when the one that sums it up has lost all its words.
        is_free = parent not in summaries
        nodes.append(EventNode(node, ends[node], tuple(summaries[node]), seen[node], None if is_free else parent))
    nodes.sort(key=lambda node: (node.end.at_ms or 0, node.id))
    ids = frozenset(each for each in seen if "#" in each)
    return StoredTimeline(ids, tuple(nodes), {each: told for each, told in summaries.items() if each not in ids})


class TimelineStore(Protocol):
    """The stored timelines. All methods raise `Unavailable` if the database is unreachable or late."""

    async def read(self, campaign: CampaignId) -> StoredTimeline: ...

    async def grow(
        self,
        campaign: CampaignId,
        seen: StoredTimeline,
        events: Sequence[Event],
        cause: Cause,
        said: Mapping[UtteranceId, Utterance],
    ) -> bool:
        """Commit events in one transaction, without those about an entity that is gone.

        False: the timeline is not as seen any more, or a line was retracted or has other words.

        Args:
            cause: Without an ordinal, the events replace what was told of its session as a whole.
            said: Lines that the events rest on, as they were read.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Telling:
    """A node as it is told now.

    Attributes:
        end: See `EventNode`.
        told: The summary of each NPC that has none yet.
        heard: NPCs that heard some of it.
        of: The nodes that it sums up.
        about: Further facts of a new node.
        name: Its name; empty: it gets a number.
    """

    node: EntityId
    end: Provenance
    told: Told
    heard: Collection[NpcId]
    of: Sequence[EventNode] = ()
    about: Sequence[FactStated] = ()
    name: str = ""

    @property
    def cause(self) -> Cause:
        return Cause("talk", self.end.at_ms or 0, self.end.session_id, None if self.name else self.end.ordinal or 0)

    def concerned(self, stored: StoredTimeline) -> object:
        """Return what it is made for: the stored node, and those that it sums up."""
        nodes = [stored.node(each) for each in (self.node, *(child.id for child in self.of))]
        return nodes, stored.sessions.get(self.node), self.node in stored.ids, self.node in stored.decided

    def events(self, stored: StoredTimeline) -> list[Event]:
        """Return what is missing of the node; nothing if nobody is told anything new."""
        if not self.told:
            return []
        node, at_ms, sure = self.node, self.end.at_ms, self.end
        everybody = witnessed_by(sorted(self.heard), at_ms=at_ms)
        made: list[Event] = []
        if node not in stored.ids:
            name = self.name or node_name(len(stored.ids) + 1)
            own = Claim.attribute(node, *(("kind", EPISODE) if self.name else (FLOOR, sure.ordinal or 0)))
            made += [EntityAdded(node, "event", name, (), everybody, "talk"), FactStated(own, sure, everybody)]
            made += self.about
        # Each text once, for the NPCs that are told it. Retracting or rewording a line of it removes it.
        by_text: defaultdict[str, list[NpcId]] = defaultdict(list)
        for npc, sentences in self.told.items():
            by_text[" ".join(one.text for one in sentences)].append(npc)
        for text, npcs in by_text.items():
            lines = dict.fromkeys(line for npc in npcs for one in self.told[npc] for line in one.evidence)
            claim, knowers = Claim.attribute(node, "summary", text), witnessed_by(npcs, at_ms=at_ms)
            made.append(FactStated(claim, sure, knowers, attributes={"evidence": list(lines)}))
        made += [
            FactStated(Claim.relation(child.id, PART_OF, node), sure, everybody)
            for child in self.of
            if child.parent is None
        ]
        return made


@dataclass(frozen=True, slots=True)
class TimelineWriter:
    """
    Args:
        day: Returns the story day of a time in a session, in words; empty if it is unknown.
        dated: Returns a text that was said at a time in a session with days instead of words such as "yesterday".
        summariser: None: lines are selected.
        curator: Sums up nodes of its choice before the oldest ones are, and returns how many; None: nobody does.
    """

    campaign: Campaign
    log: ChronicleLog
    timeline: TimelineStore
    day: Callable[[SessionId, int], str] = lambda _session, _at_ms: ""
    dated: Callable[[str, SessionId, int], str] = lambda text, _session, _at_ms: text
    summariser: LlmSummariser | None = None
    curator: Callable[[TimelineWriter, SessionId], Awaitable[int]] | None = None

    async def write(self, session: SessionId, *, is_over: bool = False) -> int:
        """Add what is missing in a session's nodes, then sum up older ones. Returns how many nodes changed.

        Args:
            is_over: Tell its last stretch, too, which may be incomplete.

        Raises:
            Unavailable: The database is unreachable. What was committed so far stays.
        """
        growing = await self._pass()
        await growing.tell(session, is_over=is_over)
        rules = self.campaign.schema.of_entity("event").compression
        if rules is None:
            return growing.n_changed
        if self.curator is not None and rules.by != "automatic":
            growing.n_changed += await self.curator(self, session)
            growing.stored = await self.timeline.read(self.campaign.id)
        # A sum that has lost its words is told again, whoever made it.
        await growing.sum_up(replace(rules, max_depth=0) if rules.by == "curator" else rules)
        return growing.n_changed

    async def sum_up(self, session: SessionId) -> Mapping[NpcId, str] | None:
        """Write a session that is over: what each NPC recalls of it, and its nodes. Returns the current summaries.

        None: the DM has decided on the summary, which stays.

        Raises:
            Unavailable: The database is unreachable. What was committed so far stays.
        """
        texts = await self.tell_whole(session)
        await self.write(session, is_over=True)
        return texts

    async def tell_whole(self, session: SessionId) -> Mapping[NpcId, str] | None:
        """Write what each NPC recalls of a session, without its nodes. See `sum_up`."""
        return await (await self._pass()).tell_whole(session)

    async def candidates(self) -> list[Sequence[EventNode]]:
        """Return the nodes that may be summed up now, in groups."""
        rules = self.campaign.schema.of_entity("event").compression
        stored = await self.timeline.read(self.campaign.id)
        return [] if rules is None else [fold for fold in stored.folds(rules) if fold[0].parent is None]

    async def compact(
        self, nodes: Sequence[EntityId], summary: Sequence[SummarySentence] = (), *, shown: Iterable[Utterance] = ()
    ) -> EntityId:
        """Sum up these nodes. Returns the new node.

        Args:
            summary: An NPC is told the sentences of which it heard all lines; without any, lines are selected for it.
                A sentence without lines rests on those of all nodes, and is for NPCs that heard all that was said then.
            shown: Lines that it was made from, as they were read.

        Raises:
            InvalidInput: Nodes cannot be summed up together, or the world has changed meanwhile.
            Unavailable: The database is unreachable; nothing was stored.
        """
        growing = await self._pass()
        growing.shown = {each.id: each for each in shown}
        fold = [node for node in growing.stored.nodes if node.id in set(nodes)]
        for id_ in nodes:
            node = growing.stored.node(id_)
            if node is None:
                raise InvalidInput(f"no event node {id_!r} in campaign {self.campaign.id!r}")
            if node.parent is not None:
                raise InvalidInput(f"event node {id_!r} is summed up already, by {node.parent!r}")
            if node.tier != fold[0].tier:
                raise InvalidInput(f"event nodes {fold[0].id!r} and {id_!r} are of different tiers")
        if len(fold) < 2:
            raise InvalidInput(f"name at least two event nodes to sum up, not {len(fold)}")
        if summary and not growing.teller.selection.compress(summary):
            raise InvalidInput(f"the summary is too long: use at most {NODE_TOKENS * 3 // 4} words or so")
        told = await growing.told_as(summary, fold)
        telling = await growing.summed_up(fold, but=told)
        telling = replace(telling, told={**telling.told, **told})
        before = growing.n_changed
        await growing.grow(telling)
        if growing.n_changed == before:
            raise InvalidInput("the event nodes have changed meanwhile; nothing was stored, try again")
        return telling.node

    async def lines(self, nodes: Sequence[EventNode]) -> list[NumberedUtterance]:
        """Return the lines that nodes rest on, in order, each with the NPCs that know it from them as witnesses."""
        return await (await self._pass()).lines(nodes)

    async def _pass(self) -> _Pass:
        names = names_of(await self.log.known(self.campaign.id), self.campaign.language)
        selection = LineSelection(self.campaign.language, lambda: names, NODE_TOKENS)
        teller = Teller(self.campaign, selection, self.dated, self.summariser)
        return _Pass(self, names, teller, await self.timeline.read(self.campaign.id))


@dataclass(slots=True)
class _Pass:
    """One pass over the timeline.

    Attributes:
        read: The lines of the sessions read so far that may be told.
        shown: Lines that somebody else has read.
    """

    writer: TimelineWriter
    names: Gazetteer
    teller: Teller
    stored: StoredTimeline
    n_changed: int = 0
    read: dict[SessionId, Sequence[NumberedUtterance]] = field(default_factory=dict)
    shown: Mapping[UtteranceId, Utterance] = field(default_factory=dict)

    async def tell(self, session: SessionId, *, is_over: bool) -> None:
        for start, said in self._stretches(session, await self._said_in(session), is_over=is_over):
            node = node_of(session, start)
            told = await self.teller.tell(said, but=self._has(node))
            heard = frozenset[NpcId]().union(*(each.utterance.witnesses for each in said))
            await self.grow(_Telling(node, _end(said[-1]), told, heard, about=self._about(node, said)))

    async def tell_whole(self, session: SessionId) -> Mapping[NpcId, str] | None:
        """See `TimelineWriter.tell_whole`."""
        node, said = episode_of(session), await self._said_in(session)
        if node in self.stored.decided:
            return None
        whole = replace(self.teller.selection, tokens=SUMMARY_TOKENS)
        told = await replace(self.teller, selection=whole).tell(said)
        texts = {npc: " ".join(one.text for one in sentences) for npc, sentences in told.items()}
        known = self.stored.sessions.get(node, ())
        if texts == {knower.npc: fact.claim.content for fact in known for knower in fact.visibility.knowers}:
            return texts
        end = replace(_end(said[-1]), ordinal=None) if said else Provenance(session_id=session)
        people = [self.writer.campaign.npc(npc).entity_id for npc in told]
        everybody = witnessed_by(told, at_ms=end.at_ms)
        about = [FactStated(Claim.relation(each, TOOK_PART, node), end, everybody) for each in people]
        about += links_of(await asyncio.to_thread(self._shown_in, node, session, said), end)
        telling = _Telling(node, end, told, told.keys(), about=about, name=episode_name(session))
        await self.grow(telling)
        return None if node in self.stored.decided else texts

    async def sum_up(self, rules: Compression) -> None:
        done: set[EntityId] = set()
        while fold := next((each for each in self.stored.folds(rules, done) if each[0].id not in done), None):
            done.add(fold[0].id)
            await self.grow(await self.summed_up(fold))

    async def summed_up(self, fold: Sequence[EventNode], *, but: Collection[NpcId] = ()) -> _Telling:
        """Tell what several nodes tell, from the same lines, and the DM's own words in them as they are.

        Args:
            but: NPCs that are told something else.
        """
        first, tier = fold[0], fold[0].tier + 1
        node = first.parent or summary_of(first.id, tier)
        has, facts = self._has(node), self._known(fold)
        told = await self.teller.tell(await self.lines(fold), but=lambda npc: npc in but or has(npc))
        for npc, known in facts.items():
            own = _own_words(known)
            if own and npc not in but and not has(npc):
                told[npc] = self.teller.selection.compress([*own, *told.get(npc, ())])
        return _Telling(node, fold[-1].end, told, facts.keys(), fold)

    async def told_as(self, summary: Sequence[SummarySentence], fold: Sequence[EventNode]) -> Told:
        """Return what each NPC is told by a summary of nodes. See `TimelineWriter.compact`."""
        known_by = {one.utterance.id: one.utterance.witnesses for one in await self.lines(fold)}
        heard_by = {one.utterance.id: one.utterance.witnesses for said in self.read.values() for one in said}
        lines = sorted(frozenset[UtteranceId]().union(*(node.lines for node in fold)))
        said_then = [one.utterance.id for node in self._made_of(fold) for one in await self._said_until(node)]
        of_all = [replace(one, evidence=tuple(lines)) for one in summary if not one.evidence]
        told: dict[NpcId, Sequence[SummarySentence]] = {}
        for npc, known in self._known(fold).items():
            knows_all = len(known) == len(fold) and all(npc in heard_by.get(line, ()) for line in (*lines, *said_then))
            cited = (one for one in summary if one.evidence)
            heard = [one for one in cited if all(npc in known_by.get(line, ()) for line in one.evidence)]
            shown = self.teller.selection.compress([*(of_all if knows_all else ()), *heard])
            # The DM's own words in the nodes stay, unless the summary is the DM's, too.
            if shown and not of_all:
                shown = self.teller.selection.compress([*_own_words(known), *shown])
            if shown:
                told[npc] = shown
        return told

    async def _said_until(self, node: EventNode) -> list[NumberedUtterance]:
        """Return the lines of a node in the session of its last one; of a sum, all up to that one."""
        session, last = SessionId(str(node.end.session_id)), node.end.ordinal or 0
        first = start_of(node.id, session) or 0
        return [one for one in await self._said_in(session) if first <= one.ordinal <= last]

    def _known(self, nodes: Sequence[EventNode]) -> Mapping[NpcId, Sequence[Fact]]:
        """Return what each NPC may know of nodes, if it may know any of it."""
        npcs = (npc.id for npc in self.writer.campaign.npcs if any(each.of(npc.id) for each in nodes))
        return {npc: [fact for each in nodes if (fact := each.of(npc)) is not None] for npc in npcs}

    async def lines(self, nodes: Sequence[EventNode]) -> list[NumberedUtterance]:
        """See `TimelineWriter.lines`."""
        knowers: defaultdict[UtteranceId, set[NpcId]] = defaultdict(set)
        for npc, known in self._known(nodes).items():
            for line in (line for one in known if not one.provenance.dm_confirmed for line in lines_of(one)):
                knowers[line].add(npc)
        return [
            replace(one, utterance=replace(said := one.utterance, witnesses=said.witnesses & knowers[said.id]))
            for session in dict.fromkeys(each.end.session_id for each in self._made_of(nodes))
            if session is not None
            for one in await self._said_in(session)
            if one.utterance.id in knowers
        ]

    def _made_of(self, nodes: Sequence[EventNode]) -> list[EventNode]:
        """Return these nodes and all that they sum up, in the order of the talk: a sum has lines of many sessions."""
        made_of = {node.id for node in nodes}
        for node in sorted(self.stored.nodes, key=lambda node: -node.tier):
            if node.parent in made_of:
                made_of.add(node.id)
        return [node for node in self.stored.nodes if node.id in made_of]

    def _has(self, node: EntityId) -> Callable[[NpcId], bool]:
        """Return whether an NPC has a summary of a node already."""
        told = [fact for each in self.stored.nodes if each.id == node for fact in each.summaries]
        return lambda npc: node in self.stored.decided or any(fact.visibility.is_visible_to(npc) for fact in told)

    async def grow(self, telling: _Telling) -> None:
        timeline, campaign = self.writer.timeline, self.writer.campaign.id
        said = {one.utterance.id: one.utterance for page in self.read.values() for one in page}
        said |= self.shown
        for _ in range(_TRIES):
            events, seen = telling.events(self.stored), telling.concerned(self.stored)
            if not events and telling.cause.ordinal is not None:
                return
            is_grown = await timeline.grow(campaign, self.stored, events, telling.cause, said)
            self.n_changed += is_grown
            self.stored = await timeline.read(campaign)
            if is_grown or telling.concerned(self.stored) != seen:
                return

    async def _said_in(self, session: SessionId) -> Sequence[NumberedUtterance]:
        if session not in self.read:
            forbids = topics_of(self.writer.campaign).forbids
            said = await said_in(self.writer.log, self.writer.campaign.id, session)
            self.read[session] = [each for each in said if not forbids(each.utterance.text)]
        return self.read[session]

    def _stretches(
        self, session: SessionId, said: Sequence[NumberedUtterance], *, is_over: bool
    ) -> Iterator[tuple[int, Sequence[NumberedUtterance]]]:
        """Yield stretches, each with the number of its first utterance. Those of existing nodes stay as they are."""
        campaign = self.writer.campaign
        starts = sorted(
            n for node in self.stored.ids | self.stored.decided if (n := start_of(node, session)) is not None
        )
        for start, part in groupby(said, lambda each: max((n for n in starts if n <= each.ordinal), default=0)):
            if start and start != starts[-1]:
                yield start, list(part)
                continue
            cut = list(stretches(campaign.id, session, campaign.language, list(part)))
            for n, each in enumerate(cut):
                if is_over or n + 1 < len(cut) or len(each.said) == LONGEST:
                    yield (start if start and n == 0 else each.said[0].ordinal), each.said

    def _about(self, node: EntityId, said: Sequence[NumberedUtterance]) -> list[FactStated]:
        """Return who took part in a stretch, what else it names, and when and where it happened.

        Each is known to those who heard the line that shows it, and goes with that line.
        """
        first, end = said[0].utterance, _end(said[-1])
        shown = self._shown_in(node, first.session_id, said)
        if day := self.writer.day(first.session_id, first.at_ms):
            shown[Claim.attribute(node, "time", day)] = first
        return links_of(shown, end)

    def _shown_in(
        self, node: EntityId, session: SessionId, said: Sequence[NumberedUtterance]
    ) -> dict[Claim, Utterance]:
        """Return who spoke, what was named and where, as relations to a node, each with the first line that shows it.

        A stretch is where the scene is whose NPCs heard its first line.
        """
        campaign, shown = self.writer.campaign, people_in(node, said, self.names)
        for stretch in stretches(campaign.id, session, campaign.language, said):
            first = stretch.said[0].utterance
            if (where := place_of(campaign.scenes, first.witnesses)) is not None:
                shown.setdefault(Claim.relation(node, OCCURRED_AT, where), first)
        return shown


def _end(last: NumberedUtterance) -> Provenance:
    """Return the source of a summary: talk up to this utterance."""
    said, why = last.utterance, "selected lines"
    return Provenance(_SURE, "inferred", session_id=said.session_id, ordinal=last.ordinal, at_ms=said.at_ms, reason=why)


def _own_words(known: Iterable[Fact]) -> list[SummarySentence]:
    """Return what the DM wrote among facts."""
    own = (fact for fact in known if fact.provenance.dm_confirmed)
    return [SummarySentence(str(fact.claim.content), tuple(lines_of(fact))) for fact in own]


def people_in(node: EntityId, said: Sequence[NumberedUtterance], names: Gazetteer) -> dict[Claim, Utterance]:
    """Return who spoke and what was named, as relations to a node, each with the first line that shows it."""
    shown: dict[Claim, Utterance] = {}
    for each in (one.utterance for one in said if one.utterance.is_evidence):
        speaker = names.spelled(each.speaker_name)
        if speaker is not None:
            shown.setdefault(Claim.relation(speaker.entity_id, TOOK_PART, node), each)
        for entity in names.entities_in(each.text):
            shown.setdefault(Claim.relation(entity, NAMED_IN, node), each)
    return shown


def links_of(shown: Mapping[Claim, Utterance], said: Provenance) -> list[FactStated]:
    """Return claims about a node, each known to those who heard the line that shows it, and gone with that line."""
    return [
        FactStated(claim, said, witnessed_by(sorted(by.witnesses), at_ms=by.at_ms), attributes={"evidence": [by.id]})
        for claim, by in shown.items()
    ]
