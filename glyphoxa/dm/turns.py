"""Why an NPC said what it said: the record of a turn, and what has become since of what the NPC recalled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from glyphoxa.dm.ports import Review, Turns, Uttered
from glyphoxa.dm.resolver import NameResolver
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, FactId, NpcId, SessionId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import EndedFact, Fact, Validity
from glyphoxa.domain.recalled import Recalled, RecalledFact, learned_from
from glyphoxa.domain.turn import TurnRecord

LAST: Final = "last"
_MOST_LISTED: Final = 10
_MOST_COMPARED: Final = 1_000
_LETTERS: Final = 10


@dataclass(frozen=True, slots=True)
class RecalledThen:
    """Something that an NPC recalled, as the DM sees it now.

    Attributes:
        place: Where it was said or learned; None when that is not known.
        validity: Of a fact, as it is now; None for what is no fact, or not known any more.
        since: What has become of it since the turn: "rolled back". Empty: nothing.
        why_rejected: Why it had no place in the prompt; empty for what had one.
    """

    recalled: Recalled
    place: Uttered | None = None
    validity: Validity | None = None
    since: str = ""
    why_rejected: str = ""


@dataclass(frozen=True, slots=True)
class ExplainedTurn:
    """
    Attributes:
        heard: What was said to the NPC, in the log; None when that is not known.
        spoken: Likewise, what was heard of its answer.
        memories: What stood in the prompt in that order, then what did not.
    """

    turn: TurnRecord
    heard: Uttered | None
    spoken: Uttered | None
    memories: tuple[RecalledThen, ...]

    @property
    def selected(self) -> tuple[RecalledThen, ...]:
        return tuple(memory for memory in self.memories if not memory.why_rejected)

    @property
    def rejected(self) -> tuple[RecalledThen, ...]:
        return tuple(memory for memory in self.memories if memory.why_rejected)


@dataclass(frozen=True, slots=True)
class _Now:
    """What is known now of what a turn rests on."""

    uttered: Mapping[UtteranceId, Uttered]
    held: Mapping[FactId, Fact]
    ended: Mapping[FactId, EndedFact]


@dataclass(frozen=True, slots=True)
class TurnDesk:
    """Turns of one campaign. A turn is named by its id, an ending of it that no other has, or `LAST`. Every call raises
    `Unavailable` when the database is away.
    """

    campaign: CampaignId
    turns: Turns
    review: Review
    resolver: NameResolver

    async def latest(
        self, *, session: SessionId | None = None, npc: NpcId | None = None, limit: int
    ) -> list[TurnRecord]:
        """The newest first, without their prompts."""
        return await self.turns.latest(self.campaign, session=session, npc=npc, limit=limit)

    async def find(self, turn: str, *, session: SessionId | None = None, npc: NpcId | None = None) -> TurnRecord:
        """
        Args:
            session: Only turns of this one are meant, likewise of the NPC that was to answer.

        Raises:
            NotFound: There is no such turn; the message says which are like it.
            InvalidInput: Several ids end so; the message lists them.
        """
        found: list[TurnId] = []
        if turn == LAST:
            found = [each.id for each in await self.latest(session=session, npc=npc, limit=1)]
        elif turn:
            found = await self.turns.ending_with(self.campaign, turn, session=session, npc=npc, limit=_MOST_LISTED + 1)
        if turn in found:
            found = [TurnId(turn)]
        if len(found) > 1:
            listed = found[:_MOST_LISTED]
            names = [short(each) for each in listed]
            more = " and more" if len(found) > _MOST_LISTED else ""
            listing = ", ".join(names if len({*names}) == len(names) else listed)
            raise InvalidInput(f"{turn!r} may be several turns: {listing}{more}")
        record = await self.turns.turn(self.campaign, found[0]) if found else None
        if record is None:
            raise NotFound(await self._missing(turn, session=session, npc=npc))
        return record

    async def explain(self, turn: TurnRecord) -> ExplainedTurn:
        """With what is known now of everything that it rests on."""
        recalled = [(one, "") for one in turn.recalled]
        recalled += [(rejected.recalled, rejected.why) for rejected in turn.rejected]
        everything = [one for one, _ in recalled]
        uttered = await self.turns.uttered(self.campaign, _utterances(turn, everything))
        facts = {one.fact_id for one in everything if isinstance(one, RecalledFact)}
        held = {fact.id: fact for fact in await self.review.facts(self.campaign, facts)}
        ended = {each.fact.id: each for each in await self.review.once_held(self.campaign, facts - held.keys())}
        now = _Now(uttered, held, ended)
        memories = [self._memory(turn, one, why, now) for one, why in recalled]
        return ExplainedTurn(
            turn,
            uttered.get(turn.utterance_id) if turn.utterance_id is not None else None,
            uttered.get(turn.reply_id) if turn.reply_id is not None else None,
            tuple(memories),
        )

    def _memory(
        self,
        turn: TurnRecord,
        one: Recalled,
        why_rejected: str,
        now: _Now,
    ) -> RecalledThen:
        utterance = learned_from(one)
        place = now.uttered.get(utterance) if utterance is not None else None
        if not isinstance(one, RecalledFact):
            gone = "not in the log any more" if utterance is not None and place is None else ""
            return RecalledThen(one, place, None, gone or _of_talk(one, place), why_rejected)
        fact, end = now.held.get(one.fact_id), now.ended.get(one.fact_id)
        if fact is not None:
            return RecalledThen(one, place, fact.validity, self._of_fact(fact, turn.npc_id), why_rejected)
        if end is not None:
            by = f" by {end.superseded_by}" if end.superseded_by is not None else ""
            since = f"no longer held: {end.ended_as.replace('_', ' ')}{by} (event {end.ended_seq})"
            return RecalledThen(one, place, end.fact.validity, since, why_rejected)
        return RecalledThen(one, place, None, "no longer held: it was taken back", why_rejected)

    def _of_fact(self, fact: Fact, npc: NpcId | None) -> str:
        if fact.status != "accepted":
            return f"{fact.status} now"
        if npc is not None and not fact.visibility.is_visible_to(npc):
            return f"{self.resolver.person(npc)} may not know it any more"
        return ""

    async def _missing(self, turn: str, *, session: SessionId | None, npc: NpcId | None) -> str:
        known = [each.id for each in await self.latest(session=session, npc=npc, limit=_MOST_COMPARED)]
        of = "".join(
            [
                f" of session {session!r}" if session is not None else "",
                f" to {self.resolver.person(npc)}" if npc is not None else "",
            ]
        )
        if not known:
            return f"no turn{of} in campaign {self.campaign!r} yet"
        near = did_you_mean(turn, [*known, *map(short, known)]) if turn else ""
        if not near.startswith("did you mean"):
            near = f"the latest are {', '.join(map(short, known[:_MOST_LISTED]))}"
        return f"no turn {turn!r}{of} in campaign {self.campaign!r}: {near}"


def short(turn: TurnId) -> str:
    """Enough of an id's end to find the turn by: its number, and when its table was opened."""
    return turn[-_LETTERS:].lstrip("-")


def _utterances(turn: TurnRecord, recalled: Sequence[Recalled]) -> set[UtteranceId]:
    ids: Iterable[UtteranceId | None] = (turn.utterance_id, turn.reply_id, *map(learned_from, recalled))
    return {each for each in ids if each is not None}


def _of_talk(one: Recalled, place: Uttered | None) -> str:
    if place is None:
        return ""
    if place.said.is_retracted:
        return "rolled back"
    return "" if one.text.endswith(place.said.text) else f"its words are now: {place.said.text}"
