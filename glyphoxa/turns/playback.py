"""Decides which part of a reply may be played, and tracks which words were heard.

Rules:

- A reply consists of pieces (clauses), each followed by its sound. Nothing plays before `Released`.
- A filler ("Hm.") may play once after the release, until sound of the reply arrives. It is not part of the reply and
  does not count as its first sound. It ends at its next break when the reply's sound arrives.
- An excuse is a filler in place of a failed reply. It plays at once, at the release, or after the filler.
- A held reply is silent. After `Resumed` it continues with the next sample.
- A reply is over when its last sample was played, when it was cancelled, when it failed and its remaining sound was
  played, or at once if nothing of it may be said. `Over` comes exactly once.
- The share of a piece's sound that was played, spread over the characters that the voice received, gives the heard
  words. A word counts if it was heard to its end. The length of a piece still in synthesis is estimated.
- Written words that the voice received in another form ("40 gp" as "forty gold pieces") are heard together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

_SPEECH_CHARACTERS_PER_S = 15
"""Rate of an unhurried English speaker; only used while a piece's sound is incomplete."""

_LAST_WORD_TOLERANCE = 0.02
"""A clause ends with a little silence, so its last word was heard before the last sample."""


@dataclass(frozen=True, slots=True)
class PieceBegan:
    """The following sound says `text`; the voice received `spoken`, if that differs."""

    text: str
    spoken: str = ""


@dataclass(frozen=True, slots=True)
class SoundCame:
    n_samples: int


@dataclass(frozen=True, slots=True)
class PieceEnded:
    """The sound of the latest piece is complete."""


@dataclass(frozen=True, slots=True)
class FillerCame:
    """A filler is available. `breaks`: sample counts after which it may end, ascending."""

    n_samples: int
    breaks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ExcuseCame:
    n_samples: int


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """No more pieces follow. `withheld`: none of the words may be said."""

    withheld: bool = False


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    error: str


@dataclass(frozen=True, slots=True)
class PieceTrouble:
    """An error that may have cost a piece its sound. The reply continues."""

    error: str


@dataclass(frozen=True, slots=True)
class Retracted:
    """The pieces so far are not part of the reply."""


@dataclass(frozen=True, slots=True)
class Released:
    pass


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody speaks: play nothing for now."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Continue where the reply was held."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    pass


@dataclass(frozen=True, slots=True)
class Played:
    """The next `n_samples` were taken for playback, fillers first."""

    n_samples: int


PlaybackEvent = (
    PieceBegan
    | SoundCame
    | PieceEnded
    | FillerCame
    | ExcuseCame
    | ReplyEnded
    | ReplyFailed
    | PieceTrouble
    | Retracted
    | Released
    | Held
    | Resumed
    | Cancelled
    | Played
)


@dataclass(frozen=True, slots=True)
class FillerBegins:
    pass


@dataclass(frozen=True, slots=True)
class FillerEnds:
    """The reply arrived: play only this much more of the filler, fading out."""

    n_samples: int


@dataclass(frozen=True, slots=True)
class SoundBegins:
    """The first sample of the reply plays now."""


@dataclass(frozen=True, slots=True)
class PieceBegins:
    text: str


@dataclass(frozen=True, slots=True)
class Over:
    """See `glyphoxa.npc.mouth.Finished`."""

    reply: str
    heard: str
    n_samples: int
    interrupted: bool
    withheld: bool
    error: str


PlaybackEffect = FillerBegins | FillerEnds | SoundBegins | PieceBegins | Over


@dataclass(slots=True)
class _Piece:
    text: str
    spoken: str = ""
    n_samples: int = 0
    n_played: int = 0
    is_complete: bool = False

    def heard(self, *, rate_hz: int) -> str:
        if not self.n_played:
            return ""
        spoken = self.spoken or self.text
        length = self.n_samples
        if not self.is_complete:
            length = max(length, len(spoken) * rate_hz // _SPEECH_CHARACTERS_PER_S)
        until = (self.n_played / length + _LAST_WORD_TOLERANCE) * len(spoken)
        if until >= len(spoken):
            return self.text
        end = 0
        while (space := spoken.find(" ", end + 1)) != -1 and space <= until:
            end = space
        return (
            spoken[:end] if spoken == self.text else _written(self.text.split(), spoken.split(), spoken[:end].split())
        )


def _written(text: Sequence[str], spoken: Sequence[str], heard: Sequence[str]) -> str:
    """Return the written words that belong to the first spoken ones."""
    n_words = 0
    for _, _, end, start_spoken, end_spoken in SequenceMatcher(None, text, spoken, autojunk=False).get_opcodes():
        same = text[n_words:end] == spoken[start_spoken:end_spoken]
        if end_spoken > len(heard):
            return " ".join(text[: n_words + max(0, len(heard) - start_spoken) * same])
        n_words = end
    return " ".join(text[:n_words])


@dataclass(slots=True)
class Playback:
    """Playback state of one reply, by the rules of this module."""

    rate_hz: int = 24_000
    is_released: bool = False
    is_held: bool = False
    _pieces: list[_Piece] = field(default_factory=list)
    _at: int = 0
    _n_filler: int = 0
    _ends_of_filler: tuple[int, ...] = ()
    """Remaining samples of the filler at each break."""
    _had_filler: bool = False
    _had_excuse: bool = False
    _has_ended: bool = False
    _has_begun: bool = False
    _is_over: bool = False
    _withheld: bool = False
    _error: str = ""
    _trouble: str = ""

    @property
    def awaits_more(self) -> bool:
        """Whether the reply is still being generated."""
        return not (self._is_over or self._has_ended)

    @property
    def is_silent(self) -> bool:
        """Whether no sound of the reply has arrived."""
        return not any(piece.n_samples for piece in self._pieces)

    def playable(self, n_samples: int) -> int:
        """Return how many of the next `n_samples` may play now. Less than that only where a piece or filler ends."""
        if not self.is_released or self.is_held or self._is_over:
            return 0
        if self._n_filler:
            return min(n_samples, self._n_filler)
        for piece in self._pieces[self._at :]:
            left = piece.n_samples - piece.n_played
            if left >= n_samples or (left and piece.is_complete):
                return min(left, n_samples)
            if left or not piece.is_complete:
                return 0
        return 0

    def on(self, event: PlaybackEvent) -> tuple[PlaybackEffect, ...]:
        """Take one event; return the effects, in order."""
        if self._is_over:
            return ()
        match event:
            case PieceBegan(text, spoken):
                self._complete_latest()
                self._pieces.append(_Piece(text, spoken))
            case SoundCame(n_samples):
                if self._pieces:
                    self._pieces[-1].n_samples += n_samples
                    return self._shorten_filler()
            case PieceEnded():
                self._complete_latest()
            case FillerCame() | ExcuseCame():
                return self._takes(event)
            case ReplyEnded(withheld):
                self._complete_latest()
                self._has_ended, self._withheld = True, withheld
            case ReplyFailed(error):
                self._failed(error)
            case PieceTrouble(error):
                self._trouble = self._trouble or error
            case Retracted():
                self._pieces, self._at = [], 0
            case Released():
                return self._released()
            case Held() | Resumed():
                self.is_held = isinstance(event, Held)
            case Cancelled():
                return self._end(interrupted=self._has_begun)
            case Played(n_samples):
                return self._played(n_samples)
            case _:
                assert_never(event)
        return self._end() if self._nothing_left() else ()

    def _failed(self, error: str) -> None:
        if self._has_ended and not self.is_silent:
            return  # the reply is complete
        self._complete_latest()
        self._has_ended, self._error = True, self._error or error

    def accepts_filler(self) -> bool:
        return self.is_released and not self._had_filler and self.is_silent and self.accepts_excuse()

    def accepts_excuse(self) -> bool:
        return not (self._has_begun or self._had_excuse or self._is_over)

    def _takes(self, event: FillerCame | ExcuseCame) -> tuple[PlaybackEffect, ...]:
        if not (self.accepts_filler() if isinstance(event, FillerCame) else self.accepts_excuse()):
            return ()
        is_first, self._had_filler = not self._had_filler, True
        self._had_excuse = isinstance(event, ExcuseCame)
        self._n_filler += event.n_samples
        # An excuse always plays to its end.
        self._ends_of_filler = (
            tuple(event.n_samples - at for at in event.breaks) if isinstance(event, FillerCame) else ()
        )
        return (FillerBegins(),) if self.is_released and is_first else ()

    def _shorten_filler(self) -> tuple[PlaybackEffect, ...]:
        """Let the filler end at its next break, because the reply's sound has arrived."""
        left = next((n for n in self._ends_of_filler if n <= self._n_filler), 0)
        if not left:
            return ()
        self._n_filler -= left
        self._ends_of_filler = ()
        return (FillerEnds(self._n_filler),)

    def _released(self) -> tuple[PlaybackEffect, ...]:
        was, self.is_released = self.is_released, True
        if self._n_filler and not was:
            return (FillerBegins(),)
        return self._end() if self._nothing_left() else ()

    def _complete_latest(self) -> None:
        if self._pieces:
            self._pieces[-1].is_complete = True

    def _played(self, n_samples: int) -> tuple[PlaybackEffect, ...]:
        if self._n_filler:
            self._n_filler -= n_samples
            return self._end() if self._nothing_left() else ()
        effects: list[PlaybackEffect] = []
        if not self._has_begun:
            self._has_begun = True
            effects.append(SoundBegins())
        while n_samples and self._at < len(self._pieces):
            piece = self._pieces[self._at]
            step = min(n_samples, piece.n_samples - piece.n_played)
            if step and not piece.n_played:
                effects.append(PieceBegins(piece.text))
            piece.n_played += step
            n_samples -= step
            if n_samples:
                self._at += 1
        if self._nothing_left():
            effects += self._end()
        return tuple(effects)

    def _nothing_left(self) -> bool:
        return self._has_ended and not self._n_filler and all(p.n_played == p.n_samples for p in self._pieces)

    def _end(self, *, interrupted: bool = False) -> tuple[PlaybackEffect, ...]:
        self._is_over = True
        if self._has_ended and self._pieces and self.is_silent:
            self._error = self._error or self._trouble or "the voice service returned no sound"
        heard = [piece.heard(rate_hz=self.rate_hz) for piece in self._pieces]
        return (
            Over(
                reply=" ".join(piece.text for piece in self._pieces),
                heard=" ".join(part for part in heard if part),
                n_samples=sum(piece.n_played for piece in self._pieces),
                interrupted=interrupted,
                withheld=self._withheld,
                error=self._error,
            ),
        )


# A filler without surrounding silence, and the places where it may be cut.
#
# A voice that speaks "Hm." adds up to half a second of silence, more than the sound itself. It would delay an answer
# that is ready.


_STEP_MS = 8
_SILENT_SHARE = 0.02
"""Share of the loudest 8 ms: -34 dB. Quieter ends are trimmed."""
_QUIET_SHARE = 0.08
"""Share for a break: -22 dB. A word has ended, although the next one may follow at once."""
_A_BREAK_STEPS = 3
"""Minimum length of a break between two words, in steps."""
_KEPT_STEPS = 2
"""Silence kept at both ends, so that no fading sound is cut."""


@dataclass(frozen=True, slots=True)
class Filler:
    """A trimmed filler: mono s16le.

    Attributes:
        breaks: Sample counts after which it may be cut, ascending.
    """

    pcm: bytes
    breaks: tuple[int, ...] = ()

    @property
    def n_samples(self) -> int:
        return len(self.pcm) // 2


def filler_of(pcm: bytes, *, rate_hz: int) -> Filler:
    """Trim a rendered filler and find its breaks."""
    samples = np.frombuffer(pcm, dtype=np.int16)
    step = rate_hz * _STEP_MS // 1_000
    loudness = _loudness(samples, step)
    loud = np.flatnonzero(loudness > _SILENT_SHARE * loudness.max(initial=0.0))
    if not len(loud):
        return Filler(b"")
    first = max(0, int(loud[0]) - _KEPT_STEPS)
    last = min(len(loudness), int(loud[-1]) + 1 + _KEPT_STEPS)
    sound = samples[first * step : last * step].copy()
    if first:
        sound[:step] = sound[:step] * np.linspace(0, 1, step)
    if last < len(loudness):
        sound[-step:] = sound[-step:] * np.linspace(1, 0, step)
    breaks = _breaks(loudness[first:last], step)
    return Filler(sound.tobytes(), tuple(at for at in breaks if at < len(sound)))


def _loudness(samples: NDArray[np.int16], step: int) -> NDArray[np.float64]:
    """Return the loudness of each step; the last one may be shorter."""
    steps = np.pad(samples.astype(np.float64), (0, -len(samples) % step)).reshape(-1, step)
    loudness: NDArray[np.float64] = np.sqrt(np.mean(steps**2, axis=1))
    return loudness


def _breaks(loudness: NDArray[np.float64], step: int) -> list[int]:
    """Return one position in each quiet stretch that is long enough, after the first loud step."""
    is_quiet = loudness < _QUIET_SHARE * loudness.max()
    breaks: list[int] = []
    n_quiet, was_loud = 0, False
    for at, quiet in enumerate(is_quiet):
        n_quiet = n_quiet + 1 if quiet else 0
        was_loud = was_loud or not quiet
        if was_loud and n_quiet == _A_BREAK_STEPS:
            breaks.append((at - _A_BREAK_STEPS + 2) * step)
    return breaks


# Trims the silence before a reply.
#
# A voice adds 0.2 to 0.33 s of silence before a clause. Between clauses this is a breath; before the first clause it
# only delays the answer.


_LEAD_IN_STEP_MS = 8
_SILENT = 160
"""8 ms below this loudness are inaudible: -46 dBFS, while voices are at about -20."""
_LEAD_IN_KEPT_STEPS = 3
"""Silence kept, so that the start of a word is not cut."""
_MAX_LEAD_IN_MS = 600
"""Longer than any voice's silence: a longer quiet stretch is a quiet voice and is kept."""


class LeadIn:
    """Trims the leading silence of one reply whose sound arrives in pieces of any length."""

    def __init__(self, *, rate_hz: int) -> None:
        self._step = rate_hz * _LEAD_IN_STEP_MS // 1_000 * 2
        self._most = rate_hz * _MAX_LEAD_IN_MS // 1_000 * 2
        self._waiting = b""
        self._is_over = False

    def cut(self, pcm: bytes) -> bytes:
        """Return the audible part of the next piece; mono s16le."""
        if self._is_over:
            return pcm
        self._waiting += pcm
        samples = np.frombuffer(self._waiting, dtype=np.int16, count=len(self._waiting) // self._step * self._step // 2)
        steps = samples.reshape(-1, self._step // 2).astype(np.float32)
        loud = np.flatnonzero(np.sqrt(np.mean(steps * steps, axis=1)) >= _SILENT)
        if len(loud):
            self._is_over = True
            return self._waiting[max(0, int(loud[0]) - _LEAD_IN_KEPT_STEPS) * self._step :]
        self._is_over = len(self._waiting) > self._most
        return self._waiting if self._is_over else b""
