"""A campaign as the DM reads and changes it, on the command line and in the browser; and recaps of its sessions.

A recap is the most salient lines of a session, for players, the DM or an NPC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.transcript.log import PostgresTurns
from glyphoxa.adapters.postgres.world.imports import PostgresImports
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection, SeenEntity, SessionTalk
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.app.background import timeline_writer
from glyphoxa.app.scope import Scope
from glyphoxa.chronicle.ports import said_in
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LineSelection, heard_by
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.chronicle.timeline_writer import EventNode
from glyphoxa.chronicle.utterance_nodes import place_of
from glyphoxa.config.settings import Settings
from glyphoxa.dm.actions import FactName, Option, Question, SessionName, action, listed
from glyphoxa.dm.entities import EntityDesk, NameResolver
from glyphoxa.dm.facts import ChangedMeanwhile, Decision, FactDesk
from glyphoxa.dm.handouts import PlayedSession, PlayersView
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.dm.timeline import Preview, Timeline, moment_of
from glyphoxa.dm.turns import TurnDesk
from glyphoxa.dm.wording import MemoryNode, nodes_of
from glyphoxa.dm.wrap_up import MOST_LINES, FactProposal, LineDecision, WrapUp, chosen
from glyphoxa.domain.budgets import SUMMARY_TOKENS
from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import DM, HOLDINGS, MEANING, Fact, Viewer
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.facts import claim_in_words, known_to, moment
from glyphoxa.language.table_talk import is_out_of_character
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import Gazetteer, cast_of, entries_of
from glyphoxa.names.learning import NamesDesk, with_stored
from glyphoxa.recall.table_calendar import zone_of_campaign
from glyphoxa.transcript.ports import TalkFilter
from glyphoxa.transcript.sessions import DM_VIEW, SessionState, View, session_of
from glyphoxa.world.event_kinds import FactReplaced
from glyphoxa.world.event_log import Cause, WorldEvent

_ROWS_A_NAME: Final = 40
"""Rows that are read in the time in which one name is indexed."""
_ROWS_A_LINE: Final = 40
"""Rows that are read in the time in which one line is judged."""


Audience = Literal["players", "dm"] | NpcId


@dataclass(frozen=True, slots=True)
class SessionRecaps:
    """Recaps of a campaign's sessions, with its current names and secrets."""

    campaign: Campaign
    log: PostgresChronicleLog
    known: Sequence[KnownEntity]
    names: Gazetteer
    players: PlayersView

    @classmethod
    async def of(cls, store: Store, campaign: CampaignId, *, log: PostgresChronicleLog | None = None) -> SessionRecaps:
        """Raises: Unavailable: The database is away."""
        log = log or PostgresChronicleLog(store.database, store.world)
        stored, known = await store.campaigns.get(campaign), await log.known(campaign)
        merged, secrets = await log.guarded(campaign)

        def read() -> SessionRecaps:
            players = PlayersView((*known, *merged), stored, secrets)
            return cls(stored, log, known, names_of(known, stored.language), players)

        return await offload(read, amount=len(known) * _ROWS_A_NAME)

    async def said(self, session: SessionId) -> list[NumberedUtterance]:
        """Return the utterances of a session that are not retracted. Raises: Unavailable: The database is away."""
        return await said_in(self.log, self.campaign.id, session)

    async def told(
        self, said: Sequence[NumberedUtterance], audience: Audience, *, tokens: int = SUMMARY_TOKENS
    ) -> list[str]:
        """Return the recap of a session's utterances; see `recap_of`."""

        def told() -> list[str]:
            heard, own = said, None
            if audience == "players":
                heard = self.players.shown(heard)
            elif audience != "dm":
                own, forbids = NpcId(audience), topics_of(self.campaign).forbids
                heard = [each for each in heard_by(own, heard) if not forbids(each.utterance.text)]
            selection = LineSelection(self.campaign.language, lambda: self.names, tokens)
            return [one.text for one in selection.select([each.utterance for each in heard], own=own)]

        # This takes a second for a long session. Without a thread, an open table would hear nothing meanwhile.
        return await offload(told, amount=len(said) * _ROWS_A_LINE)


async def recap_of(
    store: Store, campaign: CampaignId, session: SessionId, audience: Audience, *, tokens: int = SUMMARY_TOKENS
) -> Sequence[str]:
    """Return the recap of a session.

    Args:
        audience: `players`: lines that they may know. `dm`: all statements of players. An NPC: those that it heard.
        tokens: The maximum length.

    Raises:
        Unavailable: The database is away.
    """
    recaps = await SessionRecaps.of(store, campaign)
    return await recaps.told(await recaps.said(session), audience, tokens=tokens)


async def played_sessions(
    inspection: PostgresInspection, campaign: CampaignId, times: CampaignTimes
) -> list[PlayedSession]:
    """Return the sessions in which something was said, without recaps. Times are in the campaign's zone, or in UTC."""
    found = await inspection.entries_per_session(campaign)
    return [_played(number, talk, times) for number, talk in enumerate(found, start=1) if talk.n_entries]


def _played(number: int, talk: SessionTalk, times: CampaignTimes) -> PlayedSession:
    zone, span = zone_of_campaign(times.time_zone) or UTC, times.sessions.get(talk.id)
    days = "" if span is None else times.in_words(span.first, span.last)
    began, ended = (
        datetime.fromtimestamp(at_ms / 1_000, UTC).astimezone(zone)
        for at_ms in (talk.started_ms, talk.last_at_ms or talk.started_ms)
    )
    return PlayedSession(talk.id, number, began, ended, days)


async def names_desk_of(scope: Scope) -> NamesDesk:
    """Open the names of a stored campaign. Raises: Unavailable: The database is away."""
    store, campaign = scope.store, scope.campaign
    loaded = await store.campaigns.get(campaign)
    learned = PostgresLearnedNames(store.database)
    entries = with_stored(entries_of(loaded), await learned.entries(campaign), cast_of(loaded))
    names = await offload(
        lambda: Gazetteer.build(entries, language=loaded.language), amount=len(entries) * _ROWS_A_NAME
    )
    return NamesDesk(campaign, names, learned, now_ms)


_GOALS: Final = ("plan", "promise", "quest", "wish")
_MOST_KNOWN: Final = 10_000
_MOST_THREADS: Final = 20
_LONGEST_SESSION: Final = 1_000_000
_TOKENS_ALOUD: Final = 600
"""Two minutes of reading."""


_A_DAY: Final = 'since which day of the story: such as "12 Hammer 1492", or 12 where days are only counted'
UtteranceName = Annotated[str, Option("its id, the end of it, or words that only it contains", "ID")]


@dataclass(frozen=True, slots=True)
class SessionView:
    """The memory of a session for the DM or one NPC. That of an NPC contains only what it may know.

    Attributes:
        state: The stored summary and its coverage.
        terms: Terms coined in the session, with their current meanings.
        lists: Items by title: characters, decisions, goals (an NPC's own), open threads, possessions and, for the DM,
            secret and hidden facts. Nothing is from a later session. Facts that need review are marked.
    """

    name: str
    state: SessionState
    terms: Mapping[str, str]
    lists: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class WrappedUp:
    """The open decisions about a session.

    Attributes:
        names: Entities that the session named first.
        opened, closed: Threads that it left open, and that it continued.
        recap: To read aloud to the players: lines of which the DM has accepted a fact that is no secret, or the DM's
            words for them.
    """

    proposals: Sequence[FactProposal]
    names: Sequence[KnownEntity]
    opened: Sequence[str]
    closed: Sequence[str]
    recap: Sequence[str]


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything that the DM reads and changes in one campaign.

    Attributes:
        seen: All entities, each with its visibility.
        days: The calendar and the current day when the desk was opened; `store.times` stores them.
    """

    store: Store
    campaign: CampaignId
    settings: Settings
    resolver: NameResolver
    seen: tuple[SeenEntity, ...]
    inspection: PostgresInspection
    facts: FactDesk
    entities: EntityDesk
    timeline: Timeline
    sessions: SessionDesk
    turns: TurnDesk
    days: CampaignTimes
    imports: PostgresImports

    def in_words(self, result: Decision | Sequence[WorldEvent] | Sequence[str]) -> list[str]:
        """Return what an action did, in lines. Of several events, the first says it."""
        if isinstance(result, Decision):
            return self.facts.decision_in_words(result)
        if isinstance(result, str):
            return [result]
        lines = [each for each in result if isinstance(each, str)]
        return lines or [each.event.in_words(self.resolver) for each in result[:1] if not isinstance(each, str)]

    @action("", "facts close", "end a fact: it was true, and is no longer")
    async def close(
        self,
        fact: FactName,
        *,
        at: Annotated[str | None, Option('since when: "2026-11-22 19:30" (UTC); default: now', "TIME")] = None,
        day: Annotated[str | None, Option(_A_DAY, "DAY")] = None,
    ) -> Decision:
        """End a fact. Raises: NotFound: There is no such fact. InvalidInput: A time is none."""
        at_ms = None if at is None else moment_of(at)
        if at is not None and at_ms is None:
            raise InvalidInput(f"--at {at!r} is not a time such as 2026-11-22 or 2026-11-22T19:30")
        return await self.facts.close(fact, at_ms=at_ms, story=None if day is None else self.days.day_named(day))

    async def _before_rollback(self, session: SessionId, ordinal: int) -> Question | None:
        found = await self.timeline.preview(session, ordinal)
        lines = self._preview_in_words(found)
        return (lines, "Your own decisions and the campaign's file are kept.") if lines else None

    @action("", "facts rollback", "go back to what was known after an utterance", asks=_before_rollback)
    async def rollback(
        self,
        session: SessionName,
        ordinal: Annotated[int, Option("number of the last utterance to keep; 0 for none", "ORDINAL")],
    ) -> str:
        """Roll back. Raises: NotFound: There is no such session. InvalidInput: It has no such utterance."""
        done = await self.timeline.rollback(SessionId(session), ordinal)
        return "nothing was said or learned after that" if done is None else _undoable("rolled back", done)

    @action("", "facts undo", "undo your last decision, or an event; repeat it for the one before")
    async def undo(
        self,
        seq: Annotated[
            int | None, Option("the event's number in `glyphoxa show history`", "SEQ", is_argument=True)
        ] = None,
    ) -> list[str]:
        """Undo a decision or an event; see `Timeline.undo`."""
        taken = await self.timeline.undo(seq)
        names = await self.facts.names_in(taken)
        return [f"undone: {recorded.event.in_words(names)}" for recorded in taken]

    def _preview_in_words(self, found: Preview) -> list[str]:
        lines: list[str] = []
        for title, facts in found.facts.items():
            lines += listed(title, [*map(self.facts.words, facts)])
        if found.events:
            lines.append(f"events to be dropped: {len(found.events)}")
        if found.n_utterances:
            lines.append(f"utterances that NPCs will no longer recall: {found.n_utterances}")
        return lines

    async def _without(self, what: str, said: CitedUtterance, *more: str) -> Question:
        words = f"{said.speaker_name}, {moment(said.at_ms)}, {self.resolver.session(said.session_id)}: {said.text}"
        gone = self._preview_in_words(await self.timeline.preview_without(said))
        return [f"{what}: {words}", *more, *gone], "It stays in the log; open tables follow."

    async def _before_retraction(self, utterance: str) -> Question:
        return await self._without("retracted", await self.sessions.find(utterance))

    @action(
        "",
        "transcript retract",
        "retract an utterance: it was never said; nobody recalls it, and no fact depends on it",
        form="retract",
        asks=_before_retraction,
    )
    async def retract(self, utterance: UtteranceName) -> str:
        """Retract an utterance. Raises: NotFound: There is none. InvalidInput: It may be several, or is retracted."""
        return _undoable("retracted", await self.timeline.retract(await self.sessions.find(utterance)))

    async def _before_correction(
        self, utterance: str, text: str | None = None, *, speaker: str | None = None
    ) -> Question:
        if text is None and speaker is None:
            raise InvalidInput("nothing to correct: give WORDS, --speaker PLAYER, or both")
        said = await self.sessions.find(utterance)
        by = f"{self.resolver.speaking_player(speaker).name}: " if speaker else ""
        return await self._without("heard", said, f"instead: {by}{said.text if text is None else text}")

    @action(
        "",
        "transcript correct",
        "correct an utterance: something else was said, and everybody heard that",
        form="correct",
        asks=_before_correction,
    )
    async def correct(
        self,
        utterance: UtteranceName,
        text: Annotated[
            str | None, Option("what was said instead; without it, only the speaker changes", "WORDS", is_argument=True)
        ] = None,
        *,
        speaker: Annotated[str | None, Option("who said it", "PLAYER")] = None,
    ) -> str:
        """Correct an utterance. Raises: NotFound: There is none. InvalidInput: It is so already, or retracted."""
        said = await self.sessions.find(utterance)
        by = self.resolver.speaking_player(speaker) if speaker else None
        event = await self.timeline.correct(said, said.text if text is None else text, by=by)
        return _undoable("corrected", event)

    async def session_views(self, session: SessionId, view: str = "") -> list[SessionView]:
        """Return the memory of a session for the DM and the NPCs.

        Args:
            view: "dm" or the name of an NPC; empty: all.

        Raises:
            NotFound: There is no such session or NPC.
            Unavailable: The database is away.
        """
        await self.timeline.session(session)
        named = {DM_VIEW: "DM", **{View(npc.id): npc.name for npc in self.resolver.npcs}}
        wanted = [DM_VIEW if view == DM_VIEW else View(self.resolver.npc(view))] if view else named
        states = await self.store.states(self.campaign, session).all()
        return [
            await self._session_view(session, each, named[each], states.get(each, SessionState())) for each in wanted
        ]

    async def _session_view(self, session: SessionId, view: View, name: str, state: SessionState) -> SessionView:
        npc = None if view == DM_VIEW else NpcId(view)
        known = await self.inspection.current(self.campaign, npc or DM, limit=_MOST_KNOWN)
        names, order = self.resolver.entities, self.resolver.sessions
        last = order.get(session, len(order))
        so_far = [fact for fact in known if order.get(fact.provenance.session_id or session, last) <= last]
        here = [fact for fact in so_far if fact.provenance.session_id == session]
        terms = {
            names[fact.claim.subject].name: str(fact.claim.content)
            for fact in here
            if fact.claim.predicate == MEANING and fact.status == "accepted"
        }
        said = await self.store.talk_search.search(
            self.campaign, npc or DM, TalkFilter(session=session, limit=_MOST_KNOWN)
        )
        spoke = {each.utterance.npc_id for each in said}
        met = {each for fact in here for each in (fact.claim.subject, fact.claim.object) if each is not None}
        met |= {each.entity_id for each in self.resolver.npcs if each.id in spoke}
        own = next((each.entity_id for each in self.resolver.npcs if each.id == npc), None)
        threads = await self.store.atoms.open_threads(self.campaign, session, npc=npc, limit=_MOST_THREADS)
        lists = {
            "characters": sorted(names[each].name for each in met & names.keys() if names[each].type == "npc"),
            "decisions": self._listed(fact for fact in here if fact.claim.predicate == "decision"),
            "goals": self._listed(
                fact for fact in so_far if fact.claim.predicate in _GOALS and own in (None, fact.claim.subject)
            ),
            "open threads": [each.summary for each in threads],
            "who has what": self._listed(fact for fact in so_far if fact.claim.predicate in HOLDINGS),
        }
        if npc is None:
            lists["secrets"] = self._listed(fact for fact in so_far if fact.visibility.scope in ("secret", "hidden"))
        return SessionView(name, state, dict(sorted(terms.items())), lists)

    def entities_like(self, name: str = "", type_: str = "", viewer: Viewer = DM) -> list[SeenEntity]:
        """Return entities that a viewer may know of, by name.

        Args:
            name: Part of a name or alias.
            type_: Their type, or their type of node.

        Raises:
            NotFound: There is no such type.
        """
        schema, wanted = self.resolver.schema, fold(name)
        types = {*self.resolver.types, *schema.types}
        if type_ and type_ not in types:
            raise NotFound(f"no type {type_!r} in campaign {self.campaign!r}: {did_you_mean(type_, types)}")
        found = [
            each
            for each in self.seen
            if type_ in ("", each.entity.type, schema.name_of(each.entity.type))
            and each.visibility.is_visible_to(viewer)
            and any(wanted in fold(called) for called in each.entity.names)
        ]
        return sorted(found, key=lambda each: (fold(each.entity.name), each.entity.id))

    async def nodes(self, of: Iterable[SeenEntity], viewer: Viewer = DM) -> list[MemoryNode]:
        """Return entities as nodes of the memory graph, as far as a viewer may know them."""
        entities = [each.entity for each in of]
        facts = await self.inspection.of_subjects(self.campaign, viewer, [each.id for each in entities])
        return nodes_of(entities, facts, self.resolver.schema)

    async def lines_of(self, nodes: Iterable[EventNode]) -> dict[EntityId, list[CitedUtterance]]:
        """Return the lines that the summaries of these event nodes rest on, in order."""
        of = {node.id: node.lines for node in nodes}
        found = await self.turns.turns.uttered(self.campaign, frozenset[UtteranceId]().union(*of.values()))
        lines = {node: [found[line].said for line in ids if line in found] for node, ids in of.items()}
        return {node: sorted(said, key=lambda each: (each.at_ms, each.ordinal)) for node, said in lines.items()}

    async def wrap_up(self, session: SessionId) -> WrappedUp:
        """Return what is left to decide of a session.

        Raises:
            NotFound: There is no such session.
            Unavailable: The database is away.
        """
        await self.timeline.session(session)
        # A table that has just closed may hold requests that the chronicle has not read yet.
        log = PostgresChronicleLog(self.store.database, self.store.world)
        read = next(each.read_ordinal for each in await log.progress(self.campaign) if each.session == session)
        unread = await said_in(log, self.campaign, session, after=read)
        await log.decide(self.campaign, session, [each.utterance for each in unread])
        return await self._wrapped_up(session, log)

    async def _wrapped_up(self, session: SessionId, log: PostgresChronicleLog) -> WrappedUp:
        recaps, atoms = await SessionRecaps.of(self.store, self.campaign, log=log), self.store.atoms
        stored, said = recaps.campaign, await recaps.said(session)
        judged = await log.judged(self.campaign, session, after=0, up_to=_LONGEST_SESSION)
        facts = await self.inspection.current(self.campaign, DM, limit=_MOST_KNOWN)
        ended = await self.inspection.ended(self.campaign, "", limit=_MOST_KNOWN)
        outside, forbids = {fold(player.name) for player in stored.players if player.dm}, topics_of(stored).forbids
        entities = {
            each.entity.id: each.entity
            for each in self.seen
            if each.entity.type != "event" and fold(each.entity.name) not in outside
        }
        selection = LineSelection(stored.language, lambda: recaps.names, _TOKENS_ALOUD)
        maker = WrapUp(selection, entities, lambda line: place_of(stored.scenes, line.witnesses))
        guarded = {fact.id for fact in facts if known_to(fact, self.resolver).scope in ("secret", "hidden")}

        def wrapped_up() -> tuple[Sequence[NumberedUtterance], Sequence[FactProposal], Sequence[str]]:
            played = [each for each in said if not forbids(each.utterance.text)]
            shown = [each for each in played if each.utterance.is_evidence]
            shown = [each for each in shown if not is_out_of_character(each.utterance.text)]
            aloud = maker.aloud(shown, facts, ended, recaps.players, guarded)
            return shown, maker.proposals(played, judged, facts, ended), aloud

        shown, proposals, aloud = await offload(wrapped_up, amount=len(said) * _ROWS_A_LINE)
        lines = {each.utterance.id for each in shown}
        return WrappedUp(
            proposals,
            [each for each in recaps.known if each.is_of_talk and not forbids(each.name) and _is_met_in(lines, each)],
            [each.summary for each in await atoms.open_threads(self.campaign, session) if lines & {*each.evidence}],
            [each for each in await atoms.closed_threads(self.campaign, session) if not forbids(each)],
            aloud,
        )

    async def decide(
        self, session: SessionId, decisions: Sequence[LineDecision], *, seen: str | None = None
    ) -> Decision:
        """Decide on proposals of a session: all of it or nothing, and one undo takes it back.

        Another decision waits until this one is stored, so that nobody decides on what is decided already.

        Args:
            seen: The words of the proposal as the DM saw it.

        Raises:
            NotFound: There is nobody of that name.
            InvalidInput: A proposal is decided already, is named twice, or cannot be decided so.
            ChangedMeanwhile: The proposal is not as it was seen.
            Unavailable: The database is away.
        """
        log = PostgresChronicleLog(self.store.database, self.store.world)
        async with self.store.world.deciding, self.store.world.writing(self.campaign, amount=2 * MOST_LINES) as world:
            proposals = (await self._wrapped_up(session, log)).proposals
            wanted = list[tuple[LineDecision, FactProposal]]()
            for decision in decisions:
                found = chosen(decision.numbers, proposals)
                if decision.words and len(found) > 1:
                    raise InvalidInput(f"reword or assign one line, not {', '.join(each.name for each in found)}")
                wanted += ((decision, one) for one in found)
            for name, n in Counter(one.name for _, one in wanted).items():
                if n > 1:
                    raise InvalidInput(f"{name} is named in two decisions; nothing was decided")
            for _, one in wanted:
                words = claim_in_words(one.claim, self.resolver)
                if seen not in (None, words):
                    raise ChangedMeanwhile(words, seen=str(seen), now=words)
                if one.finding is None:
                    await world.commit(*one.stated())
            state = (await world.current()).state
            held = ((decision, one.finding or state.of_claim(one.claim)) for decision, one in wanted)
            events = [each.event(fact.id, fact.claim, self.resolver) for each, fact in held if fact is not None]
            await world.commit(events, Cause("dm", self.facts.now_ms()))
        says = [event.claim for event in events if isinstance(event, FactReplaced)]
        return await self.facts.decision_of(world.recorded, [event.fact for event in events], says)

    def _listed(self, facts: Iterable[Fact]) -> list[str]:
        return [self.facts.words(fact) + " (needs review)" * (fact.status != "accepted") for fact in facts]


def _undoable(done: str, event: WorldEvent) -> str:
    return f"{done}; to undo it: glyphoxa facts undo {event.seq}"


def _is_met_in(lines: Collection[UtteranceId], entity: KnownEntity) -> bool:
    """Return whether one of these lines brought a name up, as far as somebody heard it."""
    return any(knower.utterance_id in lines for knower in entity.visibility.knowers)


async def desk_of(scope: Scope) -> Desk:
    """Open the desk of a campaign in its current state. Raises: Unavailable: The database is away."""
    store, campaign = scope.store, scope.campaign
    inspection, world = PostgresInspection(store.database), store.world
    sessions = [each.id for each in await inspection.sessions(campaign)]
    seen = [_with_number(each, sessions) for each in await inspection.entities(campaign)]
    stored = await store.campaigns.get(campaign)
    resolver = NameResolver.of(stored, (each.entity for each in seen), sessions)
    resolver = replace(resolver, scopes={each.entity.id: each.visibility for each in seen})

    async def tell(session: SessionId) -> None:
        await (await timeline_writer(store, campaign)).tell_whole(session)

    days = await store.times.times(campaign)
    return Desk(
        store,
        campaign,
        scope.settings,
        resolver,
        tuple(seen),
        inspection,
        FactDesk(campaign, world, inspection, resolver, now_ms),
        EntityDesk(campaign, world, inspection, resolver, now_ms),
        Timeline(campaign, world, inspection, now_ms),
        SessionDesk(campaign, world, inspection, store.talk_search, tell, now_ms),
        TurnDesk(campaign, PostgresTurns(store.database), inspection, resolver, days.calendar),
        days,
        scope.imports(),
    )


def _with_number(seen: SeenEntity, sessions: Sequence[SessionId]) -> SeenEntity:
    """Name the entity of a session's summary by the session's number: "Session 2"."""
    session = session_of(seen.entity)
    if session not in sessions:
        return seen
    return replace(seen, entity=replace(seen.entity, name=f"Session {sessions.index(session) + 1}"))
