"""The DM's commands for sessions and utterances. A summary is an event of the campaign's world and can be undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from glyphoxa.dm.actions import Option, SessionName, action
from glyphoxa.dm.entities import MAX_FACTS, stated_by_dm, storable
from glyphoxa.dm.ports import CitedUtterance, Review
from glyphoxa.domain.errors import InvalidInput, NotFound, nearest
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, SessionId, UtteranceId, plain_name
from glyphoxa.domain.knowledge import DM, PUBLIC, Claim, Fact, Visibility, witnessed_by
from glyphoxa.transcript.ports import TalkFilter, TalkSearch
from glyphoxa.transcript.sessions import EPISODE, episode_name, episode_of
from glyphoxa.world.event_kinds import EntityAdded, EntityScoped, FactReplaced, FactScoped
from glyphoxa.world.event_log import Cause, Event, WorldEvent
from glyphoxa.world.graph import WorldHistory

MAX_CHARACTERS: Final = 4_000
"""Maximum characters of a summary. It precedes the conversation in a prompt, which has at most 1,000 tokens for it."""
MAX_TITLE: Final = 100
LAST: Final = "last"
_MAX_LISTED: Final = 5
_MOST_NUMBERED: Final = 12
_MOST_DIGITS: Final = 9
_SHORT: Final = 10
"""Length of a shortened id: its number in its session, and the end of the session's start time."""


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class SessionDesk:
    """Sessions of one campaign and their utterances.

    An utterance is named by its id, a unique ending of it, or its words. Every call raises `Unavailable` when the
    database is away.

    Args:
        tell: Writes what NPCs recall of a session, with links to its people, places and whatever was named.
        now_ms: Milliseconds since the Unix epoch.
    """

    campaign: CampaignId
    world: WorldHistory
    review: Review
    talk: TalkSearch
    tell: Callable[[SessionId], Awaitable[object]]
    now_ms: Callable[[], int]

    async def summary(self, session: SessionId) -> Summary | None:
        """Return the session's summary, whoever may know it."""
        for fact in await self._known_of(episode_of(session)):
            if fact.claim.predicate == "summary":
                return Summary(str(fact.claim.content), fact.visibility)
        return None

    async def summarise(self, session: SessionId, text: str, known_by: Sequence[NpcId] | None) -> list[WorldEvent]:
        """Set the session's summary; it replaces the previous ones.

        Args:
            known_by: The NPCs that recall it; None for everybody.

        Raises:
            InvalidInput: The text is empty, or longer than `MAX_CHARACTERS`.
        """
        words = " ".join(text.split())
        if not words:
            raise InvalidInput(f"the summary of session {session!r} is empty: write what happened")
        if len(words) > MAX_CHARACTERS:
            raise InvalidInput(
                f"the summary of session {session!r} has {len(words):,} characters: at most {MAX_CHARACTERS:,} allowed"
            )
        at_ms = self.now_ms()
        visibility = PUBLIC if known_by is None else witnessed_by(dict.fromkeys(known_by), at_ms=at_ms)
        episode = episode_of(session)
        if not await self._known_of(episode):
            await self.tell(session)  # the links stay
        known = await self._known_of(episode)
        events: list[Event] = (
            [EntityScoped(episode, visibility)]
            if known
            else [EntityAdded(episode, "event", episode_name(session), (), visibility)]
        )
        for name, value in (("kind", EPISODE), ("summary", words)):
            claim = storable(Claim.attribute(episode, name, value))
            stored = [fact for fact in known if fact.claim.predicate == name]
            if not stored:
                events.append(stated_by_dm(claim, visibility, at_ms=at_ms))
            for fact in stored:
                events.append(FactScoped(fact.id, visibility))
                if fact.claim != claim:
                    events.append(FactReplaced(fact.id, claim))  # it is known to the same
        return await self.world.commit(self.campaign, events, Cause("dm", at_ms))

    @action(
        "sessions",
        "transcript title",
        "give a session a title, which only you see; without one, remove it",
        form="title",
        discord="session title",
        tool="dm.title_session",
    )
    async def title(
        self,
        session: SessionName,
        title: Annotated[str, Option("such as The Night of the Bell", "TITLE", is_argument=True)] = "",
    ) -> str:
        """Set the title of a session.

        Raises:
            NotFound: There is no such session.
            InvalidInput: The title is longer than `MAX_TITLE`.
        """
        words, named = plain_name(title), await self.named(session)
        if len(words) > MAX_TITLE:
            raise InvalidInput(f"the title has {len(words):,} characters: at most {MAX_TITLE} allowed")
        await self.review.set_title(self.campaign, named, words)
        return f"session {named} is called {words!r}" if words else f"session {named} has no title"

    async def named(self, wanted: str) -> SessionId:
        """Return a session; see `session_named`."""
        return await session_named(wanted, self.campaign, self.review)

    async def _known_of(self, episode: EntityId) -> list[Fact]:
        return await self.review.current(self.campaign, DM, about=episode, limit=MAX_FACTS)

    async def heard_by(self, session: SessionId, npcs: Iterable[NpcId]) -> list[NpcId]:
        """Return those NPCs that heard any of the session."""
        any_of_it = TalkFilter("", session=session, limit=1)
        return [npc for npc in npcs if await self.talk.search(self.campaign, npc, any_of_it)]

    async def find(self, named: str) -> CitedUtterance:
        """
        Args:
            named: Words are found as by `glyphoxa show said --all-words`, and may include the speaker.

        Raises:
            NotFound: There is no such utterance.
            InvalidInput: It is ambiguous; the message lists the matches.
        """
        named = named.strip()
        if not named:
            raise InvalidInput("name an utterance by its id, as `glyphoxa show said` shows it, or by words of it")
        found: Sequence[CitedUtterance] = await self.review.said_ending_with(
            self.campaign, named, limit=_MAX_LISTED + 1
        )
        if len(found) != 1:
            found = [said for said in found if said.utterance_id == named] or found
        if not found:
            found = await self._with_words(named)
        if not found:
            raise NotFound(
                f"nobody said {named!r}, and no utterance has that id: `glyphoxa show said` lists the latest"
            )
        if len(found) > 1:
            listed = "; ".join(f"{short(each.utterance_id)} {_in_short(each)}" for each in found[:_MAX_LISTED])
            more = "; and more" if len(found) > _MAX_LISTED else ""
            raise InvalidInput(f"{named!r} matches several utterances: {listed}{more}")
        return found[0]

    async def _with_words(self, words: str) -> list[CitedUtterance]:
        found = await self.talk.search(self.campaign, DM, TalkFilter(words, match="all", limit=_MAX_LISTED + 1))
        exact = [one for one in found if one.utterance.text.casefold() == words.casefold()]
        ids = [one.utterance.id for one in exact or found]
        return [said for each in ids if (said := await self.review.said(self.campaign, each)) is not None]


async def session_named(wanted: str, campaign: CampaignId, review: Review, *, takes_new: bool = False) -> SessionId:
    """Return the session with this id or number, or with "last" that of the last utterance, even if it was rolled back.

    Args:
        takes_new: Whether an id of which nothing is stored is one all the same.

    Raises:
        NotFound: There is no such session.
    """
    sessions = await review.sessions(campaign)
    ids = [each.id for each in sessions]
    if wanted in ids:
        return SessionId(wanted)
    if wanted == LAST and ids:
        return max(sessions, key=lambda each: each.last_at_ms or 0).id
    if is_number(wanted) and 1 <= int(wanted) <= len(ids):
        return ids[int(wanted) - 1]
    if takes_new and wanted != LAST and not is_number(wanted):
        return SessionId(wanted)
    if not ids:
        raise NotFound(f"no session {wanted!r} in campaign {campaign!r}: nothing was said in it yet")
    hint = "" if (near := nearest(wanted, ids)) is None else f"did you mean {near!r}? "
    valid = ", ".join(f"{number} ({session})" for number, session in enumerate(ids, start=1))
    if len(ids) > _MOST_NUMBERED:
        valid = f"1 to {len(ids)}, an id as `glyphoxa show sessions` shows it"
    raise NotFound(f"no session {wanted!r} in campaign {campaign!r}: {hint}valid: {valid}, {LAST}")


def is_number(wanted: str) -> bool:
    return wanted.isdecimal() and len(wanted) <= _MOST_DIGITS


def short(utterance: UtteranceId) -> str:
    """Return the end of an id, which is almost always unique."""
    return utterance[-_SHORT:]


def _in_short(said: CitedUtterance) -> str:
    text = said.text if len(said.text) <= 40 else f"{said.text[:40]}..."
    return f"({said.speaker_name}: {text!r})"
