"""The names of an open table, kept equal to those in the graph, and the wrong forms that are learned for them.

Wrong forms come from the DM and from utterances, by the rules of `glyphoxa.names.wrong_forms`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from loguru import logger

from glyphoxa.actors.deadline import done_within
from glyphoxa.actors.subscribers import Subscribers
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound
from glyphoxa.domain.events import TableEvent, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, UtteranceId
from glyphoxa.language.words import fold
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Called, Entry, Resolver
from glyphoxa.names.wrong_forms import (
    ENOUGH_OF_ORDINARY_WORDS,
    AlreadyTaken,
    FormHeard,
    Happened,
    LearnedName,
    SpelledOut,
    StepKind,
    TypedClaims,
    Uses,
    as_heard,
    form_of,
    is_ordinary,
    objection,
    proofs_of,
    too_short_or_long,
    warning,
)


class LearnedNames(Protocol):
    """Wrong forms of names and the evidence for them: see `glyphoxa.names.wrong_forms`."""

    async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
        """The names in the graph (all, or of these entities) with their active wrong forms; people first."""
        ...

    async def statuses(self, campaign: CampaignId) -> list[LearnedName]:
        """Return all pairs of form and name, the most frequent first."""
        ...

    async def record(self, campaign: CampaignId, step: FormHeard, *, at_ms: int) -> None:
        """Add a step to a form's history, unless it would change nothing.

        Raises:
            AlreadyTaken: It confirms a form that was confirmed for another name.
        """
        ...

    async def undo(self, campaign: CampaignId, *, at_ms: int, heard: str | None = None) -> Happened | None:
        """Undo the DM's last decision (on one form, if given); return it, or None if there is none left."""
        ...

    async def history(self, campaign: CampaignId, *, heard: str | None = None, limit: int = 50) -> list[Happened]:
        """The history of all forms or of one, latest first."""
        ...

    async def uses(self, campaign: CampaignId, heard: str, *, meant_in: UtteranceId | None = None) -> Uses:
        """Ordinary uses of a form's words; one more utterance in which they mean a name may be given."""
        ...


class NamesFollowed:
    """The names of an open table: the only place where they change.

    Changes come from one thread, readers from any: `current` is replaced as a whole, and a reader keeps the one it
    took.

    Args:
        of_file: Names in the campaign file when the table opened. They apply only while the graph is empty; afterwards
            the graph decides, including the DM's deletions. Ids are unique.
        cast: Names of NPCs and players at the table, whatever the graph contains; their ids are in `of_file`.

    Attributes:
        changed: Passes the new gazetteer to each subscriber, such as a corrector.
    """

    def __init__(
        self, campaign: CampaignId, of_file: Sequence[Entry], *, cast: Sequence[Entry] = (), language: str = "en"
    ) -> None:
        self._campaign = campaign
        self._file = tuple(of_file)
        self._cast = tuple(cast)
        self._graph: dict[EntityId, Entry] | None = None
        """The last state read; None before the first."""
        self.current = Gazetteer.build(self._file, language=language)
        self.changed = Subscribers[[Gazetteer]]("the names")

    async def take(self, store: LearnedNames, changed: Collection[str] | None) -> None:
        """Read changed names and update the gazetteer in one step.

        The entries are independent of the order of changes. Their order, which decides who gets a shared spelling, is
        only final after a full read: until then new entities come last.

        Args:
            changed: Entities with changed names, aliases or learned forms, and new or removed ones; None: any may have
                changed.

        Raises:
            Unavailable: The database is away; the gazetteer is unchanged.
        """
        asked = None if self._graph is None or changed is None else frozenset(map(EntityId, changed))
        stored = {entry.entity_id: entry for entry in await store.entries(self._campaign, asked)}
        if self._graph is not None and asked is not None:
            kept = {entity: entry for entity, entry in self._graph.items() if entity in stored or entity not in asked}
            stored = kept | stored
        self._graph = stored
        # A large campaign takes a while, and the table is running.
        self.replace(await asyncio.to_thread(self._names_with, stored.values()))

    def replace(self, names: Gazetteer) -> None:
        """Replace the names, and notify subscribers unless they are unchanged."""
        if names is not self.current:
            self.current = names
            self.changed.tell(names)

    def _names_with(self, stored: Iterable[Entry]) -> Gazetteer:
        return self.current.having(with_stored(self._file, stored, self._cast))


def with_stored(entries: Iterable[Entry], stored: Iterable[Entry], cast: Iterable[Entry] = ()) -> list[Entry]:
    """The entries of a file with the graph's current state and wrong forms, followed by those only in the graph.

    A graph that is not empty contains the whole file except the DM's deletions. Both describe one entity if they have
    the same id, or else the same type and name; the graph's name then applies. Of several with one type and name, the
    lowest ids of both are one entity.

    Args:
        cast: See `NamesFollowed`.
    """
    of_file = {entry.entity_id: entry for entry in entries}
    graph = {entry.entity_id: entry for entry in stored}
    seated = {entry.entity_id: entry for entry in cast}
    if not graph:
        return list(of_file.values())
    same = _same_by_name(of_file, graph)
    merged: list[Entry] = []
    for entity, entry in of_file.items():
        known, sits = graph.get(same.get(entity, entity)), seated.get(entity)
        if known is None:
            merged += [sits] if sits is not None else []
            continue
        others = dict.fromkeys((*((sits.name, *sits.aliases) if sits is not None else ()), *known.aliases))
        aliases = tuple(alias for alias in others if alias != known.name)
        merged.append(replace(known, entity_type=entry.entity_type, aliases=aliases))
    taken = {*of_file, *same.values()}
    return [*merged, *(entry for entity, entry in graph.items() if entity not in taken)]


def _same_by_name(of_file: Mapping[EntityId, Entry], graph: Mapping[EntityId, Entry]) -> dict[EntityId, EntityId]:
    """Pairs of ids in the file and the graph that denote the same entity."""
    only_graph: dict[tuple[str, str], list[EntityId]] = {}
    for entity in sorted(graph.keys() - of_file.keys(), reverse=True):
        only_graph.setdefault(_key(graph[entity]), []).append(entity)
    same: dict[EntityId, EntityId] = {}
    for entity in sorted(of_file.keys() - graph.keys()):
        if others := only_graph.get(_key(of_file[entity])):
            same[entity] = others.pop()
    return same


def _key(entry: Entry) -> tuple[str, str]:
    return entry.entity_type, fold(entry.name)


_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class NamesDesk:
    """The names of a campaign, for the DM. Raises `Unavailable` when the database is away.

    Attributes:
        names: Names of the campaign file, and names that were stored later.
        learned: Stored wrong forms, with the DM's decisions.
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    names: Gazetteer
    learned: LearnedNames
    now_ms: Callable[[], int]

    def entity(self, name: str) -> Entry:
        """Return the entry with this id, name, alias or part of a name; see `glyphoxa.names.naming`.

        Raises:
            NotFound: There is none.
            InvalidInput: There are several.
        """

        def called(entry: Entry) -> Called:
            return Called(entry.entity_id, (entry.name,), entry.aliases, entry.entity_type)

        return Resolver(self.names.entries, called, campaign=self.campaign, what="name").one(name)

    async def wrong_forms(self) -> dict[str, list[LearnedName]]:
        """Return accepted, rejected and suggested wrong forms, by the id of the entity that they mean."""
        pairs: dict[str, list[LearnedName]] = {}
        for pair in await self.learned.statuses(self.campaign):
            if pair.status.state != "undone":
                pairs.setdefault(pair.entity_id, []).append(pair)
        return pairs

    async def suggestions(self) -> list[LearnedName]:
        """Return wrong forms that need review, the most frequent first."""
        return [pair for pair in await self.learned.statuses(self.campaign) if pair.status.state == "suggested"]

    async def accept(self, heard: str, name: str, *, unless: str | None, why: str = "") -> tuple[str, str | None]:
        """Accept a wrong form: `heard` means `name` from now on.

        Args:
            unless: The end of the error for words that are common in ordinary speech; None: accept such words.
            why: A note for the history.

        Returns:
            A line about the decision, and a warning about the words that this rewrites, if any.

        Raises:
            NotFound: There is no such name.
            InvalidInput: This must not be learned, or was accepted for another name. Or the words are common.
        """
        entry = self.entity(name)
        problem = objection(heard, entry.entity_id, self.names)  # some need no search of the transcript
        uses = Uses() if problem is not None else await self.learned.uses(self.campaign, heard)
        problem = problem or objection(heard, entry.entity_id, self.names, uses=uses)
        if problem is not None:
            raise InvalidInput(f"{_shown(heard)} cannot be learned: it {problem}")
        warned = warning(as_heard(heard), self.names.vocabulary, uses)
        if warned is not None and unless is not None:
            raise InvalidInput(f"{warned}. {unless}")
        try:
            form = await self._decide("confirmed", heard, entry, why)
        except AlreadyTaken as taken:
            other = self.names.entry(taken.entity_id)
            raise InvalidInput(
                f"{as_heard(heard)!r} is already confirmed for {other.name if other else taken.entity_id!r}: "
                "reject it there first"
            ) from None
        return f"{form} means {entry.name} from now on", warned

    async def reject(self, heard: str, name: str, *, why: str = "") -> str:
        """Reject a wrong form: `heard` does not mean `name`, and is not suggested again.

        Returns:
            A line about the decision.

        Raises:
            NotFound: There is no such name.
            InvalidInput: This is not a valid form.
        """
        entry = self.entity(name)
        if (problem := too_short_or_long(heard)) is not None:
            raise InvalidInput(f"{_shown(heard)} cannot be a wrong form: it {problem}")
        form = await self._decide("rejected", heard, entry, why)
        return f"{form} does not mean {entry.name}, and will not be suggested again"

    async def undo(self, heard: str | None = None) -> str:
        """Undo the last decision, or the last one about these words. Return a line about it.

        Raises:
            NotFound: There is none left.
        """
        taken = await self.learned.undo(self.campaign, at_ms=self.now_ms(), heard=heard)
        if taken is None:
            about = "" if heard is None else f" on {as_heard(heard)!r}"
            raise NotFound(f"there is no decision{about} to undo in campaign {self.campaign!r}")
        what = "accepted" if taken.step.kind == "confirmed" else taken.step.kind
        return f"undone: {what} {taken.step.as_heard} for {taken.called}"

    async def _decide(self, kind: StepKind, heard: str, entry: Entry, why: str) -> str:
        """Record a decision; return the form."""
        step = FormHeard(*form_of(heard), entry.entity_id, kind, "dm", why)
        await self.learned.record(self.campaign, step, at_ms=self.now_ms())
        return step.as_heard


_CAPACITY = 1_000


@dataclass(slots=True, eq=False)
class Learner:
    """An actor that learns from one table's utterances.

    Protocol of use: subscribe `on` to the table; run `run` as a task; call `finish` at the end of the session. While
    the database is away, nothing is learned or queued: a wrong form that matters will recur.

    Args:
        names: Returns the current names.
        now_ms: Milliseconds since the Unix epoch.
        wait_until_logged: See `glyphoxa.transcript.journal.Journal`. None if nothing is recorded.
    """

    campaign: CampaignId
    store: LearnedNames
    names: Callable[[], Gazetteer]
    now_ms: Callable[[], int]
    wait_until_logged: Callable[[UtteranceId], Awaitable[bool]] | None = None
    _spelled_out: SpelledOut = field(default_factory=SpelledOut)
    _typed_claims: TypedClaims = field(default_factory=TypedClaims)
    _lessons: asyncio.Queue[tuple[Utterance, bool]] = field(default_factory=lambda: asyncio.Queue(_CAPACITY))
    """Utterances, each with whether the LLM stage has corrected it."""

    def on(self, event: TableEvent) -> None:
        """Process an event of the table. Returns at once."""
        match event:
            case UtteranceKept(utterance) if utterance.npc_id is None:
                self._take(utterance, is_revision=False)
            case UtteranceRevised(utterance, was):
                if any(each.stage == "llm" for each in utterance.corrections if each not in was.corrections):
                    self._take(utterance, is_revision=True)
            case _:
                pass

    async def run(self) -> None:
        """The actor's body."""
        while True:
            said, is_revision = await self._lessons.get()
            try:
                await self._learn(said, is_revision=is_revision)
            finally:
                self._lessons.task_done()

    async def finish(self, deadline_ms: int) -> bool:
        """Wait until everything is learned, while `run` continues. False on timeout."""
        return await done_within(deadline_ms, self._lessons.join())

    async def heard(self, said: Utterance) -> None:
        """Process an utterance after the inline stage, in order."""
        names = self.names()
        proofs = [*self._spelled_out.heard(said, names), *proofs_of(said, names)]
        await self.prove(self._typed_claims.weighed(said, proofs))

    async def revised(self, said: Utterance) -> None:
        """Process an utterance again after the LLM stage has corrected it."""
        await self.prove(self._typed_claims.weighed(said, proofs_of(said, self.names())))

    async def prove(self, proofs: Iterable[FormHeard]) -> None:
        """Record proofs from utterances. Inadmissible forms are skipped."""
        names = self.names()
        for proof in proofs:
            if objection(proof.as_heard, proof.entity, names) is not None:
                continue
            step = replace(proof, is_ordinary=is_ordinary(proof.as_heard, names.vocabulary))
            at_ms = self.now_ms()
            if step.is_ordinary:
                uses = await self.store.uses(self.campaign, step.as_heard, meant_in=step.utterance)
                if objection(step.as_heard, step.entity, names, uses=uses) is not None:
                    continue
                # With little proof nothing follows, and earlier misheard names count as ordinary uses too.
                if uses.spoken > uses.meant >= ENOUGH_OF_ORDINARY_WORDS:
                    why = "these words have their ordinary meaning"
                    doubt = replace(step, kind="disproved", by="talk", why=why, utterance=None)
                    await self.store.record(self.campaign, doubt, at_ms=at_ms)
            await self.store.record(self.campaign, step, at_ms=at_ms)

    def _take(self, said: Utterance, *, is_revision: bool) -> None:
        if self._lessons.full():
            self._lessons.get_nowait()
            self._lessons.task_done()
        self._lessons.put_nowait((said, is_revision))

    async def _learn(self, said: Utterance, *, is_revision: bool) -> None:
        try:
            if is_revision:
                await self.revised(said)
                return
            # Other uses of a form are counted in the log.
            if self.wait_until_logged is not None and not await self.wait_until_logged(said.id):
                logger.debug("an utterance is processed before it is in the log")
            await self.heard(said)
        except GlyphoxaError as error:
            logger.debug("nothing is learned from an utterance: {}", error)


def _shown(heard: str) -> str:
    shown = as_heard(heard) or heard
    return repr(shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}...")
