"""What a page that comes late is shown: what has happened, and what is happening just now."""

from __future__ import annotations

from collections import deque

from glyphoxa.domain.ids import PlayerId
from glyphoxa.web.events import Json

LENGTH = 240


class History:
    """Takes the messages that pages are sent, in order; keeps those that a page needs to show what the others show.

    What is over is kept up to a length. What is going on (who thinks, what is being said) is kept until it is over:
    a player's words until they are an utterance, an NPC's too, or until their turn ended without any having been heard.
    """

    def __init__(self) -> None:
        self._past: deque[Json] = deque(maxlen=LENGTH)
        self._now: list[Json] = []
        self._retracted: set[str] = set()

    def messages(self, player: PlayerId | None) -> list[Json]:
        """For this player: without what the game master retracted, or whispered to others."""
        return [*(message for message in self._past if self._is_for(message, player)), *self._now]

    def _is_for(self, message: Json, player: PlayerId | None) -> bool:
        if message["type"] == "whisper":
            return bool(message["to"] == player)
        return message["type"] != "utterance" or message["id"] not in self._retracted

    def take(self, message: Json) -> None:
        match message:
            case {"type": "speech_started" | "partial" | "turn_ended" | "nothing_said", "player": player}:
                self._player_speaks(message, player)
            case {"type": "npc_thinks" | "npc_silent"}:
                self._now.append(message)
            case {"type": "npc_speaks", "turn": turn}:
                self._drop("npc_thinks", turn=turn)
                self._now.append(message)
            case {"type": "utterance", "speaker": {"id": speaker, "kind": kind}}:
                self._past.append(message)
                if kind == "npc":
                    self._npc_was_heard(speaker)
                else:
                    self._drop("speech_started", "partial", "turn_ended", player=speaker)
            case {"type": "revised", "id": utterance}:
                self._revise(message, utterance)
            case {"type": "retracted", "id": utterance, "is_retracted": is_retracted}:
                (self._retracted.add if is_retracted else self._retracted.discard)(utterance)
            case {"type": "turn", "id": turn, "reply": reply}:
                self._past.append(message)
                self._drop("npc_thinks", turn=turn)
                if reply is None:
                    self._drop("npc_speaks", "npc_silent", turn=turn)
            case {"type": "scene" | "whisper"}:
                self._past.append(message)
            case {"type": "getting_ready", "npcs": npcs}:
                self._drop("getting_ready")
                self._now += [message] if npcs else []

    def _player_speaks(self, message: Json, player: str) -> None:
        """The latest words replace those before; that somebody speaks is worth knowing without any."""
        self._drop("partial", "turn_ended", player=player)
        if message["type"] in ("turn_ended", "nothing_said", "speech_started"):
            self._drop("speech_started", player=player)
        if message["type"] != "nothing_said":
            self._now.append(message)

    def _npc_was_heard(self, npc: str) -> None:
        """Its words are an utterance now. It may be giving the next answer already: the first that ended is meant."""
        ended = [m["turn"] for m in self._now if m["type"] == "npc_silent" and m["npc"] == npc]
        for turn in ended[:1]:
            self._drop("npc_speaks", "npc_silent", turn=turn)

    def _revise(self, message: Json, utterance: str) -> None:
        """Who comes later is shown the better words at once."""
        for at, earlier in enumerate(self._past):
            if earlier["type"] == "utterance" and earlier["id"] == utterance:
                self._past[at] = {**message, "type": "utterance"}

    def _drop(self, *types: str, player: str | None = None, turn: str | None = None) -> None:
        self._now = [
            message
            for message in self._now
            if message["type"] not in types
            or (player is not None and message["player"] != player)
            or (turn is not None and message["turn"] != turn)
        ]
