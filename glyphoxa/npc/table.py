"""The table, as transports, demos and benchmarks see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from glyphoxa.domain.campaign import Campaign, Player, Scene
from glyphoxa.domain.events import MemoryHealth, TableEvent
from glyphoxa.domain.heard import EarEvent
from glyphoxa.domain.ids import LineId, NpcId, PlayerId, SceneId, SessionId
from glyphoxa.domain.utterance import Utterance

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
