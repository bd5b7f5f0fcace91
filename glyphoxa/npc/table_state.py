"""The shared state of a table: its scene, its people, the NPCs' conversations, typed lines and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from glyphoxa.actors.subscribers import Subscribers
from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.events import TableEvent, UtteranceKept
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, PlayerId, SessionId, TurnId, UtteranceId, line_of
from glyphoxa.prompt.conversation import Conversation, RollingSummary
from glyphoxa.transcript.sessions import DM_VIEW, SessionState, View


@dataclass(frozen=True, slots=True)
class Covered:
    """How far summaries cover a session.

    Attributes:
        states: The state of each view that has one.
        ordinals: Ordinals of the utterances in the log.
    """

    states: Mapping[View, SessionState] = field(default_factory=dict)
    ordinals: Mapping[UtteranceId, int] = field(default_factory=dict)

    def has(self, view: View, utterance: UtteranceId) -> bool:
        """Return whether a view's summary covers an utterance."""
        state, ordinal = self.states.get(view), self.ordinals.get(utterance)
        return state is not None and ordinal is not None and ordinal <= state.last_ordinal


@dataclass(eq=False, repr=False)
class TableState:
    """Created before all other parts. `TableSession` and its seats modify it; the others only read it.

    Args:
        conversations: One for each NPC of the campaign.
        summaries: Each view's summary of the session, the DM's included.

    Attributes:
        scene: The current scene.
        events: Receives all events of the table.
        voices: Plays the NPCs' speech.
        speaker_of: Returns who says a text at a seat: see `TableNames.speaker_of`.
    """

    campaign: Campaign
    session: SessionId
    scene: Scene
    conversations: Mapping[NpcId, Conversation]
    summaries: Mapping[View, RollingSummary] = field(default_factory=dict)
    speaker_of: Callable[[PlayerId, str], PlayerId] = lambda seat, _: seat
    _seated: dict[PlayerId, Player] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.events = Subscribers[[TableEvent]]("the table")
        self.voices = Subscribers[[NpcId, bytes]]("the voices")
        self._names = {player.id: player.name for player in self.campaign.players}

    # -- humans

    def add_player(self, player: Player) -> None:
        """Add a player, who may be missing from the campaign file."""
        self._seated[player.id] = player
        self._names[player.id] = player.name

    def remove_player(self, player: PlayerId) -> None:
        self._seated.pop(player, None)

    @property
    def is_empty(self) -> bool:
        return not self._seated

    @property
    def seated_names(self) -> list[str]:
        """Return the names of the players who have a seat, in the order in which they sat down."""
        return [player.name for player in self._seated.values()]

    @property
    def location_name(self) -> str:
        """Return the name of the current scene's location, as the campaign file has it."""
        location = self.scene.location
        return next((entity.name for entity in self.campaign.entities if entity.id == location), str(location))

    def is_seated(self, player: PlayerId) -> bool:
        return player in self._seated

    def name_of(self, player: PlayerId) -> str:
        """Return the name of a player, or of an NPC that is answered by another one."""
        if player in self._names:
            return self._names[player]
        return next((npc.name for npc in self.campaign.npcs if str(npc.id) == player), str(player))

    def likely_speaker(self) -> str:
        """Guess who will speak next. A wrong guess only costs a few cached tokens."""
        return next(iter(self._names.values()), "Somebody")

    # -- NPCs

    def remember(self, said: Sequence[Utterance], covered: Covered | None = None) -> None:
        """Restore what was said in this session before a restart, oldest first.

        Args:
            covered: Which of it the summaries cover.
        """
        covered = covered or Covered()
        for view in (DM_VIEW, *map(View, self.conversations)):
            npc = NpcId(view)
            heard = [each for each in said if view == DM_VIEW or npc in each.witnesses]
            lines = [each for each in heard if not covered.has(view, each.id)]
            state = covered.states.get(view, SessionState())
            if view in self.summaries:
                self.summaries[view].restore(state, lines)
            if (conversation := self.conversations.get(npc)) is not None:
                conversation.cover(state.summary, ())
                conversation.fold()
                for each in lines:
                    (conversation.spoke if each.npc_id == npc else conversation.hear)(each)

    def present(self) -> tuple[NpcId, ...]:
        return self.scene.npcs

    def present_names(self) -> dict[NpcId, str]:
        return {npc: self.campaign.npc(npc).name for npc in self.scene.npcs}


State = Literal["new", "under way", "kept"]


_MOST_LINES: Final = 1_000
"""A page sends again only lines whose storing it has not seen."""


class TypedLines:
    """Tracks the typed lines of a session, so that a line sent twice is said once."""

    def __init__(self) -> None:
        self._is_kept: dict[UtteranceId, bool] = {}

    def take(self, line: UtteranceId) -> State:
        """Return the state of a line and mark it as pending, unless it is stored."""
        if line not in self._is_kept:
            self._is_kept[line] = False
            return "new"
        return "kept" if self._is_kept[line] else "under way"

    def kept(self, utterances: Iterable[Utterance]) -> None:
        """Mark utterances as stored, perhaps before a restart."""
        self._is_kept.update({utterance.id: True for utterance in utterances if line_of(utterance.id) is not None})
        while len(self._is_kept) > _MOST_LINES:
            del self._is_kept[next(iter(self._is_kept))]

    def on(self, event: TableEvent) -> None:
        if isinstance(event, UtteranceKept):
            self.kept((event.utterance,))


class SessionIds:
    """Creates ids of a session's utterances and turns, different for each time it is opened.

    Args:
        opened_ms: When it was opened this time, Unix epoch.
    """

    def __init__(self, session: SessionId, *, opened_ms: int) -> None:
        self._opened = f"{session}-{opened_ms:x}"
        self._numbers = 0

    def new_utterance(self) -> UtteranceId:
        self._numbers += 1
        return UtteranceId(f"{self._opened}-{self._numbers:06d}")

    def logged(self, turn: TurnId) -> TurnId:
        """Return the turn's id in the log, which is unique across tables."""
        return TurnId(f"{self._opened}-{turn}")
