"""The DM's commands for facts. Each decision is an event of the campaign's world and can be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from pydantic import BaseModel

from glyphoxa.dm.actions import (
    EntityName,
    FactName,
    FactNames,
    Knowers,
    Option,
    OtherEntity,
    Predicate,
    SomeKnowers,
    Value,
    action,
)
from glyphoxa.dm.entities import (
    DM_SPEAKER,
    MAX_FACTS,
    Decisions,
    NameResolver,
    json_or_text,
    predicate_of,
    secret_among,
    stated_by_dm,
    storable,
)
from glyphoxa.dm.ports import CitedUtterance
from glyphoxa.domain.calendar import StoryCalendar
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId, FactId
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim, EndedFact, Fact, Visibility
from glyphoxa.language.facts import (
    certainty_in_words,
    claim_in_words,
    ended_in_words,
    fact_in_words,
    fact_row,
    knower_in_words,
    known_to_in_words,
    moment,
    place,
    short,
    validity_in_words,
)
from glyphoxa.world.event_kinds import (
    FactClosed,
    FactConfirmed,
    FactRejected,
    FactReplaced,
    FactRevealed,
    FactScoped,
    FactStated,
    FactTold,
)
from glyphoxa.world.event_log import Event, WorldEvent

_MAX_LISTED = 10


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the DM and its consequences.

    Attributes:
        events: Numbers of its events, for `undo`.
        facts: The facts that it changed and did not end, in their new state.
        ended: The facts that it ended.
    """

    events: tuple[int, ...]
    facts: tuple[Fact, ...] = ()
    ended: tuple[EndedFact, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedFact:
    """A fact, its source, and the related current facts.

    Attributes:
        ended: The ended fact; None while it is current.
        said: The utterance that stated it; None if there is none or the log no longer contains it.
        supports: Facts it was derived from.
        resting: Facts derived from it.
        disputes: Facts it conflicts with.
    """

    fact: Fact
    ended: EndedFact | None = None
    said: CitedUtterance | None = None
    supports: Sequence[Fact] = ()
    resting: Sequence[Fact] = ()
    disputes: Sequence[Fact] = ()


class NewFact(BaseModel):
    """A fact to state.

    Attributes:
        known_by: The only NPCs that know it; if empty, it is public unless hidden.
        hidden: Nobody knows it until it is revealed; then these NPCs do.
    """

    subject: EntityName
    predicate: Annotated[str, Option("such as LOCATED_AT or occupation", "PREDICATE")]
    object: OtherEntity = None
    value: Value = None
    known_by: SomeKnowers = ()
    hidden: Annotated[bool, Option("nobody knows it until you reveal it")] = False


_action = partial(action, "facts")


class ChangedMeanwhile(InvalidInput):
    def __init__(self, words: str, *, seen: str, now: str) -> None:
        super().__init__(f"{words!r} has changed meanwhile: you saw {seen!r}, and it is {now!r} now; review it again")


class FactDesk(Decisions):
    """The DM's decisions about facts. A fact is named by its id or a unique prefix, an NPC by name.

    Every call may raise what `find` raises, and `Unavailable` when the database is away.
    """

    __slots__ = ()

    async def find(self, fact: str) -> Fact:
        """Return the current fact with this id or prefix.

        Raises:
            NotFound: No current fact has such an id; the message lists the most similar ids.
            InvalidInput: The prefix is ambiguous; the message lists the matches.
        """
        found = await self.review.beginning_with(self.campaign, fact, limit=_MAX_LISTED + 1) if fact else []
        exact = [each for each in found if each.id == fact]
        if len(exact) == 1 or len(found) == 1:
            return (exact or found)[0]
        if found:
            listed = "; ".join(f"{each.id} ({self.words(each)})" for each in found[:_MAX_LISTED])
            more = " and more" if len(found) > _MAX_LISTED else ""
            raise InvalidInput(f"{fact!r} matches several facts: {listed}{more}")
        raise NotFound(f"no fact {fact!r} in campaign {self.campaign!r}: {await self._hint_for(fact)}")

    async def find_ever(self, fact: str) -> Fact | EndedFact:
        """Return the current fact, or else the one with this id that ended last.

        Raises:
            NotFound: No fact ever had such an id.
            InvalidInput: The prefix is ambiguous.
        """
        try:
            return await self.find(fact)
        except NotFound as missing:
            ended = await self.review.ended(self.campaign, fact, limit=MAX_FACTS) if fact else []
            by_id = {each.fact.id: each for each in reversed(ended)}
            if not by_id:
                raise
            if len(by_id) > 1:
                listed = "; ".join(f"{key} ({self.words(each.fact)})" for key, each in [*by_id.items()][:_MAX_LISTED])
                raise InvalidInput(f"{fact!r} matches several ended facts: {listed}") from missing
            return next(iter(by_id.values()))

    async def explain(self, fact: str) -> ExplainedFact:
        """Return the fact that `find_ever` finds, with its source and related facts."""
        found = await self.find_ever(fact)
        ended = found if isinstance(found, EndedFact) else None
        one = found if isinstance(found, Fact) else found.fact
        said, disputes = await self.evidence(one)
        return ExplainedFact(
            one,
            ended,
            said=said,
            supports=await self.review.facts(self.campaign, one.supports),
            resting=await self.review.resting_on(self.campaign, one.id),
            disputes=disputes,
        )

    async def evidence(self, fact: Fact) -> tuple[CitedUtterance | None, Sequence[Fact]]:
        """Return the utterance that stated a fact, and the facts that it conflicts with; see `ExplainedFact`."""
        source = fact.provenance.utterance_id
        said = None if source is None else await self.review.said(self.campaign, source)
        return said, await self.review.facts(self.campaign, fact.disputes) if fact.disputes else []

    async def names_in(self, events: Sequence[WorldEvent]) -> NameResolver:
        """Return the names, with the texts of the facts in these events, including ended facts."""
        ids = {fact for recorded in events if (fact := getattr(recorded.event, "fact", None)) is not None}
        held = {fact.id: self.words(fact) for fact in await self.review.facts(self.campaign, ids)}
        once = await self.review.once_held(self.campaign, ids - held.keys())
        held |= {each.fact.id: self.words(each.fact) for each in once}
        claims = [recorded.event.claim for recorded in events if isinstance(recorded.event, FactStated)]
        stated = {claim.fact_id: claim_in_words(claim, self.resolver) for claim in claims}
        return replace(self.resolver, facts=stated | held)

    async def history_in_words(self, happened: Sequence[tuple[WorldEvent, bool]]) -> list[tuple[str, ...]]:
        """Return a row per event: number, time, author, text, place in a transcript, and "undone" or ""."""
        names = await self.names_in([event for event, _ in happened])
        return [
            (
                str(recorded.seq),
                moment(recorded.cause.at_ms),
                recorded.cause.by.replace("_", " "),
                recorded.event.in_words(names),
                place(recorded.cause.session_id, recorded.cause.ordinal, self.resolver),
                "" if counts else "undone",
            )
            for recorded, counts in happened
        ]

    def words(self, fact: Fact) -> str:
        return fact_in_words(fact, self.resolver)

    def line(self, fact: Fact) -> str:
        """Return a fact in one line: the beginning of its id, its words and its state."""
        return f"{short(fact.id)} {self.words(fact)}: {self.state_in_words(fact)}"

    def explained_in_words(
        self, found: ExplainedFact, calendar: StoryCalendar | None = None
    ) -> dict[str, str | Sequence[str]]:
        """Return the row of a fact, its source, who knows it and how, and related facts, by heading.

        Args:
            calendar: The story's calendar; None if it does not count days.
        """
        fact, said, source = found.fact, found.said, found.fact.provenance
        stated = "once" if fact.mentions == 1 else f"{fact.mentions} times"
        state = "no longer in the log" if said is None else said.state
        lines = {each.id: self.line(each) for each in (*found.supports, *found.disputes)}
        more: dict[str, str | Sequence[str]] = {
            "no longer held": "" if found.ended is None else ended_in_words(found.ended),
            "because": source.reason,
            "said": "" if said is None else f"{said.speaker_name}: {said.text}",
            "when": moment(source.at_ms if said is None else said.at_ms),
            "utterance": ", ".join(filter(None, (source.utterance_id, state))) if source.utterance_id else "",
            "origin": source.origin.replace("_", " ") if source.session_id is not None else "",
            "stated": f"{stated}{', although you rejected it before' * fact.doubted}",
            "holds": validity_in_words(fact.validity, calendar),
            "rests on": [lines.get(each) or f"{short(each)}, which is no longer held" for each in fact.supports],
            "supports": [*map(self.line, found.resting)],
            "contradicts": [lines.get(each) or f"{short(each)}, which is no longer held" for each in fact.disputes],
        }
        return {
            **fact_row(fact, self.resolver),
            "who knows it": [knower_in_words(each, self.resolver) for each in fact.visibility.knowers],
            **{heading: told for heading, told in more.items() if told},
        }

    def decision_in_words(self, made: Decision) -> list[str]:
        """Return a line for each fact that a decision changed, and for each that it ended."""
        held = [self.line(fact) for fact in made.facts]
        ended = (f"{self.words(each.fact)} ({each.ended_as.replace('_', ' ')})" for each in made.ended)
        return [*held, *(f"no longer held: {each}" for each in ended)]

    def state_in_words(self, fact: Fact) -> str:
        """Return status, certainty and visibility of a fact. A form sends back the text that it showed."""
        return f"{fact.status}, {certainty_in_words(fact)}, {known_to_in_words(fact, self.resolver)}"

    def need_unchanged(self, fact: Fact, seen: str) -> None:
        """Check that a fact is still in the state that the DM saw; "": the page did not show it.

        Raises:
            ChangedMeanwhile: Its state has changed.
        """
        now = self.state_in_words(fact)
        if seen and seen != now:
            raise ChangedMeanwhile(self.words(fact), seen=seen, now=now)

    @_action("facts accept", "accept facts; facts that contradict them end", form="confirm", done="accepted")
    async def confirm(self, facts: FactNames) -> Decision:
        """Accept facts; facts that contradict them end."""
        found = await self._find_all(facts)
        return await self._decide([FactConfirmed(each.id) for each in found], found)

    @_action(
        "facts reject",
        "reject facts: they were never true, but misunderstood",
        form="reject",
        done="rejected",
    )
    async def reject(self, facts: FactNames) -> Decision:
        """Reject facts: they were never true. Facts that depend on them become stale."""
        found = await self._find_all(facts)
        return await self._decide([FactRejected(each.id) for each in found], found)

    @_action("facts retcon", "change the story: a fact was never true, or something else was true instead")
    async def retcon(
        self,
        fact: FactName,
        *,
        predicate: Predicate = None,
        object: OtherEntity = None,  # noqa: A002 - the claim's word
        value: Value = None,
    ) -> Decision:
        """Change the story: the fact was never true, and something else always was if that is given, as in `edit`."""
        found = await self.find(fact)
        if predicate is None and object is None and value is None:
            return await self._decide([FactRejected(found.id, "retcon")], [found])
        claim = self._claim_instead(found.claim, predicate=predicate, object=object, value=value)
        return await self._decide([FactReplaced(found.id, claim, "retcon")], [found], says=claim)

    @_action("facts correct", "correct a misunderstood fact: something else is true", form="edit", done="corrected")
    async def edit(
        self,
        fact: FactName,
        *,
        subject: Annotated[str | None, Option("the entity that it is about", "NAME", "entity")] = None,
        predicate: Predicate = None,
        object: OtherEntity = None,  # noqa: A002 - the claim's word
        value: Value = None,
    ) -> Decision:
        """Correct a misunderstood fact. The correction is as certain as the DM's own statement.

        Args:
            subject: Name of the entity that it is about instead.
            object: Name of the entity that the subject is related to instead.
            value: The attribute's new value.

        Raises:
            InvalidInput: There is nothing to change, or an attribute is given an object without another predicate.
        """
        found = await self.find(fact)
        claim = found.claim
        if subject is not None:
            claim = replace(claim, subject=self.resolver.entity(subject).id)
        if subject is None or (predicate, object, value) != (None, None, None):
            claim = self._claim_instead(claim, predicate=predicate, object=object, value=value)
        return await self._decide([FactReplaced(found.id, claim)], [found], says=claim)

    async def close(self, fact: str, *, at_ms: int | None = None, story: int | None = None) -> Decision:
        """End a fact: it was true and no longer is.

        Args:
            at_ms: The end, in ms since the Unix epoch; None: now.
            story: The last day, in days of the story's calendar.
        """
        found = await self.find(fact)
        begun = found.validity.from_ms
        if at_ms is not None and begun is not None and at_ms < begun:
            raise InvalidInput(f"{self.words(found)} cannot have ended before it began")
        return await self._decide([FactClosed(found.id, at_ms, story)], [found])

    @_action("facts secret", "keep a fact secret: only these NPCs know it")
    async def keep_secret(self, fact: FactName, known_by: Knowers) -> Decision:
        """Make a fact known to these NPCs only."""
        found = await self.find(fact)
        visibility = secret_among(self._npcs(known_by), found.visibility, now_ms=self.now_ms())
        return await self._decide([FactScoped(found.id, visibility)], [found])

    @_action("", "keep a fact from an NPC; others still know it", form="keep_from", done="kept from the NPC")
    async def keep_from(self, fact: FactName, npc: Annotated[str, Option("the NPC", "NPC", "npc")]) -> Decision:
        """Make a fact unknown to this NPC; others still know it."""
        kept_from, found = self.resolver.npc(npc), await self.find(fact)
        left = [each.npc for each in found.visibility.knowers if each.npc != kept_from]
        return await self.keep_secret(found.id, left) if left else await self.hide(found.id)

    @_action("facts hide", "hide a fact: nobody knows it until you reveal it", form="hide", done="hidden")
    async def hide(self, fact: FactName) -> Decision:
        """Make a fact known to nobody until it is revealed."""
        found = await self.find(fact)
        return await self._decide([FactScoped(found.id, replace(found.visibility, scope="hidden"))], [found])

    @_action(
        "facts reveal", "reveal a fact, to these NPCs or to everybody", form="reveal", done="revealed to everybody"
    )
    async def reveal(self, fact: FactName, to: SomeKnowers = ()) -> Decision:
        """Reveal a fact to these NPCs, or to everybody if none is named."""
        found = await self.find(fact)
        if found.visibility.scope == "public":
            raise InvalidInput(
                f"{self.words(found)} is {known_to_in_words(found, self.resolver)}: there is nothing to reveal"
            )
        return await self._decide([FactRevealed(found.id, self._npcs(to) if to else ())], [found])

    @_action("facts tell", "record that somebody told a fact to NPCs", form="tell", done="told")
    async def tell(
        self,
        fact: FactName,
        to: Knowers,
        *,
        by: Annotated[str, Option("a player, an NPC, or dm; default: dm", "WHO")] = DM_SPEAKER,
    ) -> Decision:
        """Record that a player, an NPC or the DM told a fact to NPCs.

        Raises:
            InvalidInput: Everybody knows it.
        """
        found = await self.find(fact)
        if found.visibility.scope == "public":
            raise InvalidInput(f"{self.words(found)} is public: everybody knows it")
        told = FactTold(found.id, self._npcs(to), self.resolver.speaker(by), self.now_ms())
        return await self._decide([told], [found])

    @_action("facts state", "state a new fact", form="state", discord="fact add")
    async def state(self, new: NewFact) -> Decision:
        """State a fact. It becomes a conflict if its slot allows only one and is taken."""
        subject = self.resolver.entity(new.subject).id
        claim = self._claim(subject, new.predicate, object=new.object, value=new.value)
        visibility = PUBLIC
        if new.known_by:
            visibility = secret_among(self._npcs(new.known_by), PUBLIC, now_ms=self.now_ms())
        if new.hidden:
            visibility = Visibility.of("hidden", visibility.knowers)
        return await self._decide([stated_by_dm(claim, visibility, at_ms=self.now_ms())], [], says=claim)

    async def _decide(self, events: Sequence[Event], about: Sequence[Fact], *, says: Claim | None = None) -> Decision:
        """Commit events. The decision includes the facts `about` and the fact that states the claim `says`."""
        made = await self._commit(*events)
        return await self.decision_of(made, [each.id for each in about], () if says is None else (says,))

    async def decision_of(
        self, made: Sequence[WorldEvent], about: Sequence[FactId], says: Sequence[Claim] = ()
    ) -> Decision:
        """Return what committed events decided: the facts `about`, and those that state the claims `says`."""
        facts = await self.review.facts(self.campaign, about)
        for claim in says:
            known = await self.review.current(self.campaign, DM, about=claim.subject, limit=MAX_FACTS)
            facts += [fact for fact in known if fact.claim == claim and fact not in facts]
        numbers = tuple(recorded.seq for recorded in made)
        return Decision(numbers, tuple(facts), tuple(await self.review.ended_by(self.campaign, numbers)))

    async def _find_all(self, facts: Sequence[str]) -> list[Fact]:
        found = [await self.find(each) for each in facts]
        return list({fact.id: fact for fact in found}.values())

    async def _hint_for(self, fact: str) -> str:
        gone = await self.review.ended(self.campaign, fact, limit=1) if fact else []
        if gone:
            return f"{self.words(gone[0].fact)} is no longer held: {ended_in_words(gone[0])}; its history remains"
        near = await self.review.like(self.campaign, fact, limit=3)
        return f"nearest: {', '.join(near)}" if near else "it has no facts yet"

    def _claim(self, subject: EntityId, predicate: str, *, object: str | None, value: object) -> Claim:  # noqa: A002
        if (object is None) == (value is None):
            raise InvalidInput("a fact has either an object (another entity) or a value")
        if object is None:
            read = json_or_text(value) if isinstance(value, str) else value
            return storable(Claim.attribute(subject, predicate_of(predicate), read))
        return Claim.relation(subject, predicate_of(predicate), self.resolver.entity(object).id)

    def _claim_instead(
        self,
        claim: Claim,
        *,
        predicate: str | None = None,
        object: str | None = None,  # noqa: A002
        value: object = None,
    ) -> Claim:
        if predicate is None and object is None and value is None:
            raise InvalidInput("give a new value, object or predicate")
        if object is None and value is None:
            word = predicate_of(predicate or "")
            if claim.object is None:
                return replace(claim, predicate=word)
            return Claim.relation(claim.subject, word, claim.object)
        if predicate is None and (object is None or value is None) and (object is None) != (claim.object is None):
            kind = "an attribute: give a value" if claim.object is None else "a relation: give an object"
            raise InvalidInput(f"{claim_in_words(claim, self.resolver)} is {kind}, or a predicate, too")
        return self._claim(claim.subject, predicate or claim.predicate, object=object, value=value)


def lines_of(rows: Mapping[str, str | Sequence[str]]) -> list[str]:
    """Return a line for each row, or for each item of a row, after its heading."""
    told = {heading: [each] if isinstance(each, str) else each for heading, each in rows.items()}
    return [f"{heading}: {line}" for heading, lines in told.items() for line in lines]
