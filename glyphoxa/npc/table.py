"""The table, as transports, demos and benchmarks see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from loguru import logger

from glyphoxa.context.conversation import Conversation
from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.events import MemoryHealth, TableEvent, UtteranceKept
from glyphoxa.domain.heard import EarEvent, Utterance
from glyphoxa.domain.ids import LineId, NpcId, PlayerId, SceneId, SessionId, TurnId, UtteranceId, line_of

OUTPUT_RATE_HZ = 24_000
INPUT_RATE_HZ = 16_000

AudioSink = Callable[[NpcId, bytes], None]
"""Takes what an NPC says as it is said: 24 kHz mono s16le, paced in real time. Returns at once."""


class Ear(Protocol):
    """Listens to one human. Reports `EarEvent`s to the listener it was built with."""

    async def start(self) -> None: ...

    def hear(self, pcm: bytes) -> None:
        """Sound from this human's microphone: 16 kHz mono s16le, any length, in real time. Returns at once."""
        ...

    async def close(self) -> None: ...


EarListener = Callable[[EarEvent], None]


class Seat(Protocol):
    """A human's place at the table."""

    @property
    def player(self) -> Player: ...

    def hear(self, pcm: bytes) -> None:
        """See `Ear.hear`."""
        ...

    async def leave(self) -> None: ...


class Table(Protocol):
    """A running session: humans sit down, NPCs answer, everything said is kept."""

    @property
    def campaign(self) -> Campaign: ...

    @property
    def session(self) -> SessionId: ...

    @property
    def scene(self) -> Scene: ...

    @property
    def health(self) -> MemoryHealth:
        """How long-term memory is now."""
        ...

    @property
    def earlier(self) -> Sequence[Utterance]:
        """What was said in this session before it was opened again, oldest first, as far as it is shown."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether the DM has paused it: nothing that is said is heard, answered or kept."""
        ...

    def may_show(self, text: str) -> bool:
        """Whether a text holds no name but those that everybody knows, so that players may read it."""
        ...

    def subscribe(self, listener: Callable[[TableEvent], None]) -> Callable[[], None]:
        """Be told of everything that happens, in order. Returns what ends the subscription."""
        ...

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        """Hear the NPCs. Returns what removes the sink."""
        ...

    async def seat(self, player: Player) -> Seat:
        """Give a human an ear of their own.

        Raises:
            InvalidInput: Someone already sits there.
        """
        ...

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        """Words typed instead of spoken. They are corrected, addressed, answered and kept like speech.

        Args:
            line: What the page calls this line. It is said once, however often it is sent, also when the session was
                opened again meanwhile.

        Returns: False when this line is on disk already. Otherwise `UtteranceKept` will tell.

        Raises:
            InvalidInput: The table is paused.
        """
        ...

    async def move(self, scene: SceneId) -> None:
        """Change the scene: from now on only its NPCs witness what is said.

        Raises:
            NotFound: The campaign has no such scene.
        """
        ...

    async def wait_until_quiet(self) -> None:
        """Until nobody speaks and no answer is on its way."""
        ...

    async def kept(self) -> int:
        """How many utterances of this session stand in the log (memory level 1), after what waits has been sent.

        Without long-term memory, and while it is away: how many of the last ones are on disk.
        """
        ...

    async def close(self) -> None:
        """End the session: nothing said is lost, no task or process is left."""
        ...


# What happens and what is heard at a table, passed on to whoever watches and listens.


Watcher = Callable[[TableEvent], None]


class TableEvents:
    """Tells each event to every watcher, in the order in which they subscribed."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []

    def subscribe(self, watcher: Watcher) -> Callable[[], None]:
        """Returns what ends the subscription."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def tell(self, event: TableEvent) -> None:
        for watcher in tuple(self._watchers):
            try:
                watcher(event)
            except Exception as error:  # whoever watches must not stop the table
                logger.opt(exception=error).error("a listener of the table raised an error")


class NpcVoices:
    """Plays what NPCs say to every sink."""

    def __init__(self) -> None:
        self._sinks: list[AudioSink] = []

    def add_sink(self, sink: AudioSink) -> Callable[[], None]:
        """Returns what removes the sink."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink) if sink in self._sinks else None

    def play(self, npc: NpcId, pcm: bytes) -> None:
        for sink in tuple(self._sinks):
            sink(npc, pcm)


# What the parts of one table share: where it is, who is there, and what each NPC has in mind of the talk.


class TableState:
    """Made before any of the parts. `TableSession` and its seats change it; the others ask.

    Args:
        conversations: Of every NPC of the campaign.

    Attributes:
        scene: Where the table is now.
        events: Told of all that happens at the table.
    """

    def __init__(
        self, campaign: Campaign, session: SessionId, scene: Scene, conversations: Mapping[NpcId, Conversation]
    ) -> None:
        self.campaign = campaign
        self.session = session
        self.scene = scene
        self.conversations = conversations
        self.events = TableEvents()
        self._seated: dict[PlayerId, Player] = {}
        self._names = {player.id: player.name for player in campaign.players}

    # -- humans

    def sits_down(self, player: Player) -> None:
        """Perhaps somebody who is not in the campaign file."""
        self._seated[player.id] = player
        self._names[player.id] = player.name

    def stands_up(self, player: PlayerId) -> None:
        self._seated.pop(player, None)

    @property
    def is_empty(self) -> bool:
        return not self._seated

    def is_seated(self, player: PlayerId) -> bool:
        return player in self._seated

    def name_of(self, player: PlayerId) -> str:
        """Also of an NPC whose words another one answers."""
        if player in self._names:
            return self._names[player]
        return next((npc.name for npc in self.campaign.npcs if str(npc.id) == player), str(player))

    def somebody(self) -> str:
        """Who will probably speak next; a guess only costs the cache a few words."""
        return next(iter(self._names.values()), "Somebody")

    # -- NPCs

    def remember(self, said: Sequence[Utterance]) -> None:
        """What was said in this session before the table was opened, oldest first."""
        for utterance in said:
            for npc in utterance.witnesses & self.conversations.keys():
                conversation = self.conversations[npc]
                (conversation.spoke if utterance.npc_id == npc else conversation.hear)(utterance)

    def present(self) -> tuple[NpcId, ...]:
        return self.scene.npcs

    def present_names(self) -> dict[NpcId, str]:
        return {npc: self.campaign.npc(npc).name for npc in self.scene.npcs}

    def known_utterances(self, npc: NpcId) -> Sequence[UtteranceId]:
        """What an NPC's prompt holds already."""
        return self.conversations[npc].utterance_ids

    def holds_words(self, npc: NpcId, words: str) -> bool:
        """Whether it holds these words, whenever they were said."""
        return self.conversations[npc].holds(words)

    def talk_of(self, npc: NpcId, question: str) -> Sequence[str]:
        """What was said in an NPC's prompt, the question aside."""
        return self.conversations[npc].said_beside(question)

    def heard_before(self, npc: NpcId, question: str) -> str:
        """What was said to an NPC last, before the question."""
        return self.conversations[npc].heard_before(question)


State = Literal["new", "under way", "kept"]


class TypedLines:
    """Which typed lines of a session were taken, so that one that is sent again is said once."""

    def __init__(self) -> None:
        self._is_kept: dict[UtteranceId, bool] = {}

    def take(self, line: UtteranceId) -> State:
        """What was known of a line until now. It is under way from here on, unless it is kept."""
        if line not in self._is_kept:
            self._is_kept[line] = False
            return "new"
        return "kept" if self._is_kept[line] else "under way"

    def kept(self, utterances: Iterable[Utterance]) -> None:
        """These are on disk, perhaps since before a restart of the session."""
        self._is_kept.update({utterance.id: True for utterance in utterances if line_of(utterance.id) is not None})

    def on(self, event: TableEvent) -> None:
        if isinstance(event, UtteranceKept):
            self.kept((event.utterance,))


class SessionIds:
    """Ids of what happens in a session. A session may be opened again: what is said then has other ids than what was
    said before.

    Args:
        opened_ms: When it was opened now, Unix epoch.
    """

    def __init__(self, session: SessionId, *, opened_ms: int) -> None:
        self._opened = f"{session}-{opened_ms:x}"
        self._numbers = 0

    def new_utterance(self) -> UtteranceId:
        self._numbers += 1
        return UtteranceId(f"{self._opened}-{self._numbers:06d}")

    def logged(self, turn: TurnId) -> TurnId:
        """At one table a turn's number is enough; in the log it is one of many tables."""
        return TurnId(f"{self._opened}-{turn}")
