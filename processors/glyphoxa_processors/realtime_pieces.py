"""The words and the sound of a speech-to-speech reply, cut into clauses."""

from __future__ import annotations

from collections.abc import Callable

from pipecat.frames.frames import Frame, TTSAudioRawFrame

from glyphoxa.domain.ids import TurnId
from glyphoxa.domain.turn import Unsaid
from glyphoxa_processors.frames import PieceEndFrame, PieceFrame, ReplyEndFrame
from glyphoxa_processors.spoken_text import Decide, Splitter

SESSION_RATE_HZ = 24_000


class Pieces:
    """Cuts words and sound that arrive side by side into clauses that a speaker can account for.

    The protocol does not say which word a sound belongs to; they arrive in step, the words a little early. So a
    clause begins with the sound that comes when its words are whole, which is also what a safety filter needs to
    judge it. The latest sound is kept back, so that the last words always have one.
    """

    def __init__(
        self, turn: TurnId, *, splitter: Splitter, decide: Decide, listen: Callable[[TurnId, Unsaid], None]
    ) -> None:
        self._turn = turn
        self._splitter = splitter
        self._decide = decide
        self._listen = listen
        self._clauses: list[str] = []
        self._sound = b""
        self._is_open = False
        self._withheld = False
        self.has_words = False
        self.n_begun = 0
        self.text = ""

    def take_words(self, words: str) -> None:
        self.has_words = self.has_words or bool(words.strip())
        self._clauses += self._splitter.push(words)

    def take_sound(self, sound: bytes) -> list[Frame]:
        if not self._clauses and not (self.n_begun or self._withheld):
            self._sound += sound  # nothing may be said before it is known what it is
            return []
        ready, self._sound = self._sound, sound
        return self._piece(ready)

    def end(self) -> list[Frame]:
        self._clauses += self._splitter.flush()
        frames = self._piece(self._sound)
        self._sound = b""
        if self._is_open:
            frames.append(PieceEndFrame(self._turn))
        return [*frames, ReplyEndFrame(self._turn, withheld=self._withheld and not self.n_begun)]

    def _piece(self, sound: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self._clauses:
            if self._is_open:
                frames.append(PieceEndFrame(self._turn))
            allowed = " ".join(kept for clause in self._clauses if (kept := self._allowed(clause)))
            self._clauses = []
            self._is_open = bool(allowed)
            self._withheld = self._withheld or not allowed
            if allowed:
                self.n_begun += 1
                self.text = f"{self.text} {allowed}".strip()
                frames.append(PieceFrame(self._turn, allowed))
        if self._is_open and sound:
            frames.append(TTSAudioRawFrame(sound, SESSION_RATE_HZ, 1))
        return frames

    def _allowed(self, clause: str) -> str:
        verdict = self._decide(clause)
        if verdict.fault is not None:
            self._listen(self._turn, Unsaid(clause, verdict.fault))
        return verdict.text.strip()
