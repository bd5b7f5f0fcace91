"""The names of an open table: one gazetteer, and everything that hears or addresses by it.

    the graph ──▶ NamesFollowed ──▶ corrector, hints, other subscribers
        ▲                               │
        └──────── Learner ◀── talk ◀────┘

All objects built from the names are replaced in one step, so that they are consistent. A player's turn keeps the names
and nearby entities with which it began: an answer prepared on an eager transcript fits the final one only if both were
corrected alike.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from loguru import logger

from glyphoxa.actors.supervisor import Supervisor, follow
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.events import TableEvent
from glyphoxa.domain.heard import HeardWord, NothingSaid, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import EntityId, PlayerId, UtteranceId
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.roles import TITLES
from glyphoxa.language.words import fold
from glyphoxa.names.corrector import Corrected, Corrector
from glyphoxa.names.gazetteer import Gazetteer, cast_of, entries_of
from glyphoxa.names.keyterms import Hints
from glyphoxa.names.learning import LearnedNames, Learner, NamesFollowed
from glyphoxa.names.people import CallForms, Understood, understand

_SPEAKS: Final = lexicon("calls").compile(r"(?:^|[.!?…]\s+)(?:{lead_in}[,!.]?\s+)*{speaks}", flags=re.IGNORECASE)
"""The speaker's own name, for which "@" stands."""
_TEXTS_REMEMBERED: Final = 64


@dataclass(frozen=True, slots=True)
class _Made:
    """Objects built from one gazetteer. `corrector` is None if disabled in the settings."""

    names: Gazetteer
    understand: Callable[[str], Understood]
    corrector: Corrector | None


@dataclass(frozen=True, slots=True)
class _Turn:
    """The names and nearby entities for a player's turn."""

    made: _Made
    nearby: frozenset[EntityId]


@dataclass(frozen=True, slots=True)
class NamesOfGraph:
    """The names in the database.

    Attributes:
        changes: Yields the entities whose names changed from now on, None for any. Never ends: close it. Raises
            `GlyphoxaError` if they cannot be followed, for a permanent reason.
    """

    learned: LearnedNames
    changes: Callable[[], AsyncGenerator[Collection[str] | None, None]]


class TableNames:
    """See the module. All methods except `open`, `finish` and what the supervisor runs return at once.

    Args:
        now_ms: Unix epoch.
        corrector: Creates the corrector; None disables correction.
        graph: None without long-term memory: the names are then those of the campaign file.
        wait_until_logged: See `Learner`.
    """

    def __init__(
        self,
        campaign: Campaign,
        *,
        now_ms: Callable[[], int],
        corrector: Callable[[Gazetteer], Corrector] | None = Corrector,
        graph: NamesOfGraph | None = None,
        wait_until_logged: Callable[[UtteranceId], Awaitable[bool]] | None = None,
    ) -> None:
        self._campaign = campaign
        self._corrector = corrector
        self._followed = NamesFollowed(
            campaign.id, entries_of(campaign), cast=cast_of(campaign), language=campaign.language
        )
        self._made = self._made_for(self._followed.current)
        self._turns: dict[PlayerId, _Turn] = {}
        self.hints = Hints(campaign, self._followed.current, now_ms=now_ms)
        self.nearby = self.hints.nearby
        self.changed = self._followed.changed
        self.changed.subscribe(self._names_are)
        self.changed.subscribe(self.hints.names_are)
        self._is_open = False
        self._graph = graph
        if graph is not None:
            self._learner = Learner(
                campaign.id,
                graph.learned,
                lambda: self.current,
                now_ms=now_ms,
                wait_until_logged=wait_until_logged,
            )

    # -- for ears, the room and recall

    @property
    def current(self) -> Gazetteer:
        return self._made.names

    def correct(self, text: str, /, *, heard: Sequence[HeardWord] = (), player: PlayerId | None = None) -> Corrected:
        """Correct the names in a transcript. During a turn of `player`, uses the names with which it began."""
        turn = self._turns.get(player) if player is not None else None
        turn = turn or self._now()
        if turn.made.corrector is None:
            return Corrected(text, ())
        return turn.made.corrector.correct(text, heard=heard, nearby=turn.nearby)

    def understand(self, text: str) -> Understood:
        """Return who is named and called in a text, and how. Asked again for the same text, it looks nothing up."""
        return self._made.understand(text)

    def speaker_of(self, seat: PlayerId, text: str) -> PlayerId:
        """Return who speaks: the seat's player; at a shared microphone, the player who says "This is Tamsin."."""
        players = {player.id: player for player in self._campaign.players}
        if seat not in players or not players[seat].table:
            return seat
        for call in self.understand(text).mentions:
            before, _, title = text[: call.start].rstrip().rpartition(" ")
            before = before if fold(title) in TITLES else text[: call.start].rstrip()
            speaker, named = players.get(call.player or seat), f"{before} @{text[call.end :]}".lstrip()
            if speaker is not None and not speaker.dm and _SPEAKS.search(named):
                return speaker.id
        return seat

    def may_show(self, text: str) -> bool:
        """Whether all names in a text are public."""
        return self._made.names.is_all_public(text)

    # -- for the table

    def on(self, event: TableEvent) -> None:
        """Process an event of the table."""
        match event:
            case SpeechStarted(player):
                # Continuing after a pause is the same turn.
                self._turns.setdefault(player, self._now())
            case TurnEnded(draft):
                self._turns.pop(draft.player, None)
            case NothingSaid(player):
                self._turns.pop(player, None)
            case _:
                pass
        self.hints.on(event)
        if self._graph is not None:
            self._learner.on(event)

    # -- while the table is open

    async def open(self) -> None:
        """Load the graph's names, and misrecognitions of earlier sessions.

        Without a database, the names are those of the campaign file.
        """
        if self._graph is None:
            return
        try:
            await self.take(self._graph.learned, None)
        except GlyphoxaError as error:
            logger.warning("the names are those of the campaign file for now: {}", error)

    def start(self, supervisor: Supervisor) -> None:
        """Follow the graph and learn from utterances. Needs the database until the supervisor has ended."""
        if self._graph is not None:
            take = partial(self.take, self._graph.learned)
            supervisor.start("names", partial(follow, self._graph.changes, take, what="names"))
            supervisor.start("learning", self._learner.run)

    async def finish(self, deadline_ms: int) -> None:
        """Learn from the remaining utterances."""
        if self._graph is not None and not await self._learner.finish(deadline_ms):
            logger.warning("the last utterances were not fully learned from")

    async def take(self, learned: LearnedNames, changed: Collection[str] | None) -> None:
        """Take changed names, and misrecognitions of earlier sessions once."""
        await self._followed.take(learned, changed)
        if not self._is_open:
            self.hints.garbled_before(await learned.statuses(self._campaign.id))
            self._is_open = True

    def _now(self) -> _Turn:
        return _Turn(self._made, self.nearby())

    def _names_are(self, names: Gazetteer) -> None:
        self._made = self._made_for(names)

    def _made_for(self, names: Gazetteer) -> _Made:
        # The room, the final transcript after an eager one and a continued question ask about a text again.
        understood = lru_cache(_TEXTS_REMEMBERED)(partial(understand, forms=CallForms.at_table(self._campaign, names)))
        return _Made(names, understood, self._corrector(names) if self._corrector is not None else None)
