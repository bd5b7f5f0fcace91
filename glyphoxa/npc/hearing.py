"""What is heard, or typed, on its way to the room: whoever works ahead of the room is told first."""

from __future__ import annotations

from collections.abc import Callable

from glyphoxa.actors.supervisor import Mailbox
from glyphoxa.context.assembly import HotContextAssembly
from glyphoxa.context.prefetch import Prefetch
from glyphoxa.domain.heard import Draft, EarEvent, Heard, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import LineId, PlayerId, SessionId, id_of_line
from glyphoxa.names.table_names import TableNames
from glyphoxa.npc.room_messages import Leave, RoomMessage
from glyphoxa.npc.typed_lines import TypedLines


class Hearing:
    """
    Args:
        room: The room's mailbox.
        typed: Which lines were taken before.
        now_ms: Unix epoch.
    """

    def __init__(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
        self,
        room: Mailbox[RoomMessage],
        *,
        session: SessionId,
        names: TableNames,
        prefetch: Prefetch,
        context: HotContextAssembly,
        typed: TypedLines,
        now_ms: Callable[[], int],
    ) -> None:
        self._room = room
        self._session = session
        self._names = names
        self._prefetch = prefetch
        self._context = context
        self._typed = typed
        self._now_ms = now_ms

    def on_ear(self, event: EarEvent) -> None:
        """Takes every event of every ear."""
        self._names.on_ear(event)
        self._pass_on(event)

    def say(self, player: PlayerId, text: str, *, line: LineId | None = None) -> bool:
        """See `glyphoxa.npc.table.Table.say`."""
        text = " ".join(text.split())
        if not text:
            return True
        utterance = id_of_line(self._session, player, line) if line is not None else None
        if utterance is not None and (known := self._typed.take(utterance)) != "new":
            return known != "kept"
        at_ms = self._now_ms()
        corrected = self._names.correct(text)
        heard = Heard(corrected.text, text, tuple(corrected.corrections), at_ms, at_ms)
        draft = Draft(player, heard, at_ms, at_ms, typed=True, utterance=utterance)
        for event in (SpeechStarted(player, at_ms), TurnEnded(draft, at_ms)):
            self._pass_on(event)
        return True

    def left(self, player: PlayerId) -> None:
        """They have stood up: nothing more is heard of them."""
        self._names.left(player)
        self._room.post(Leave(player))

    def _pass_on(self, event: EarEvent) -> None:
        if isinstance(event, SpeechStarted):
            self._prefetch.forget(event.player)
            self._context.new_speech()
        self._room.post(event)
