"""Detects the end of a player's turn from pauses and transcripts.

Rules:

- The voice activity detector cuts speech into segments at every pause. The recogniser returns a closing transcript for
  each pause; some services also send earlier ones while the player speaks.
- At a pause, as soon as its transcript arrives, the turn so far is reported as eager, so that an answer can be
  prepared.
- With a streaming service, a partial transcript that sounds finished is reported as eager too.
- The turn ends after silence, with no transcript outstanding: after `complete_ms` if it ends with a question or is
  long, after `unfinished_ms` if it is short or sounds unfinished ("I would like the"), otherwise after
  `end_of_turn_ms`. If the player continues before that, the segments form one turn.
- The detector confirms speech about 200 ms after its start. While it hears possible speech, the turn does not end, so
  that a pause shorter than these waits never ends a turn. This wait is limited to `onset_within_ms`.
- A transcript that is late by `final_within_ms` is given up. The turn ends with the last partial transcript, or as
  nothing said. If the transcript arrives after nothing was said, it becomes a turn.
- Words that a recogniser writes for sound without speech ("Thanks for watching!") are no words. A turn of nothing else
  is nothing said, and its words are reported as noise.
- Words without detected speech (a voice too quiet for the detector) are a turn too.
- A transcript with `revises` replaces the last one, because the recogniser heard the same speech again with more
  context. Other transcripts are appended, as from streaming services. An empty one removes nothing.
- Segments are counted from their starts. At the end of a turn the recogniser receives the number of its last segment.
  A transcript that ends in that or an earlier segment is late. It becomes a turn if nothing was said before it and
  since. Otherwise its words were already reported or would be mistaken for the next turn's, and it is dropped.
  Transcripts without a segment number are never late.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from glyphoxa.domain.heard import (
    Correction,
    Draft,
    EagerTurn,
    EarEvent,
    Heard,
    HeardWord,
    NothingSaid,
    PartialHeard,
    SpeechPaused,
    SpeechStarted,
    TurnEnded,
)
from glyphoxa.domain.ids import PlayerId
from glyphoxa.language.language_data import lexicon
from glyphoxa.language.table_talk import BACKCHANNEL, is_noise, without_noise
from glyphoxa.language.text import Text

# Whether speech sounds unfinished.


_SPELLED = re.compile(r"(?:\b[A-ZÄÖÜ][\s,.-]+)+[A-ZÄÖÜ]$")
"""Spelled letters as recognisers write them: "K-O-R", "K, O, R"."""


def sounds_unfinished(text: str, *, language: str = "en") -> bool:
    """Return whether the last words suggest that more will follow.

    >>> sounds_unfinished("How is my blade?")
    False
    >>> sounds_unfinished("I would like the")
    True
    >>> sounds_unfinished("I have a question, and.")
    True
    >>> sounds_unfinished("His name is spelled K-O-R.")
    True
    """
    ending = text.rstrip(" \"'”’»")
    if ending.endswith(("?", "!")):
        return False
    if ending.endswith(("...", "…", ",", ";", ":", "-", "–", "—")):
        return True
    words = ending.rstrip(".")
    last = words.rpartition(" ")[2].lower()
    known = lexicon("unfinished", language)
    if _SPELLED.search(words) or last in known.words("never_last") or last in known.words("hesitations"):
        return True
    return not ending.endswith(".")


_SHORT, _LONG = 4, 7
"""A statement of at most the first number of words often continues after a breath, one of the second rarely."""


_LOOK_AGAIN_MS = 40
"""A little longer than a detector window."""


@dataclass(frozen=True, slots=True)
class Started:
    """Speech began at `at_ms`."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class Paused:
    """The detector confirmed a pause. `speech_end_ms` is when the last voiced sample was heard."""

    speech_end_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial transcript. With `revises` it includes the last `Final`; otherwise it follows it.

    `segment`: As in `Final`.
    """

    heard: Heard
    at_ms: int
    revises: bool = False
    segment: int | None = None


@dataclass(frozen=True, slots=True)
class Final:
    """A transcript of the speech up to a pause.

    Attributes:
        closes: No more transcripts will follow for the segment before the last pause.
        revises: It replaces the last transcript; otherwise it is appended.
        segment: The number of the segment in which the transcribed sound ends; None if unknown.
    """

    heard: Heard
    at_ms: int
    closes: bool = True
    revises: bool = False
    segment: int | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    at_ms: int


@dataclass(frozen=True, slots=True)
class Onset:
    """The detector hears possible speech. Send this as long as it does, before other events."""

    at_ms: int


EndpointingEvent = Started | Paused | Partial | Final | Tick | Onset


@dataclass(frozen=True, slots=True)
class TickAt:
    """Send a `Tick` at this time. Replaces an earlier request."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class TurnOver:
    """Tell the recogniser that the turn is over. `segment`: the turn's last one."""

    segment: int


EndpointingEffect = EarEvent | TickAt | TurnOver
"""An `EarEvent` is to be reported."""


@dataclass(slots=True)
class Endpointing:
    """Detects the turns of one player, by the rules of this module.

    Args:
        language: Language of the player, for unfinished sentences. Unknown languages use punctuation only.
        confirm_within_ms: For services that do not always confirm the end of a segment. If words are there and no newer
            partial arrives, this much silence counts as confirmation.
    """

    player: PlayerId
    language: str = "en"
    complete_ms: int = 200
    end_of_turn_ms: int = 480
    unfinished_ms: int = 1_200
    final_within_ms: int = 3_000
    confirm_within_ms: int | None = None
    onset_within_ms: int = 300
    _segments: list[Heard] = field(default_factory=list)
    _partial: Partial | None = None
    _n_begun: int = 0
    _last_over: int = 0
    _segment_began_ms: int = 0
    _began_ms: int | None = None
    _speech_end_ms: int = 0
    _is_speaking: bool = False
    _outstanding: int = 0
    _onset_ms: int | None = None
    _held_from_ms: int | None = None
    _gave_up: tuple[int, int] | None = None

    def on(self, event: EndpointingEvent) -> tuple[EndpointingEffect, ...]:
        """Take one event; return the effects, in order."""
        match event:
            case Started(at_ms):
                self._began_ms = at_ms if self._began_ms is None else self._began_ms
                self._segment_began_ms = at_ms
                self._n_begun += 1
                self._is_speaking = True
                self._held_from_ms = None
                self._gave_up = None
                return (SpeechStarted(self.player, at_ms),)
            case Partial():
                return self._partially(event)
            case Paused(speech_end_ms, at_ms):
                if not self._is_speaking:
                    return ()
                self._is_speaking = False
                # Both are estimates. For very short speech the end could precede the start.
                self._speech_end_ms = max(speech_end_ms, self._segment_began_ms)
                self._outstanding += 1
                return (SpeechPaused(self.player, at_ms), *self._settle(at_ms))
            case Final():
                return self._finally(event)
            case Tick(at_ms):
                return self._settle(at_ms)
            case Onset(at_ms):
                self._onset_ms = at_ms
                return ()
            case _:
                assert_never(event)

    def _partially(self, partial: Partial) -> tuple[EndpointingEffect, ...]:
        partial = replace(partial, heard=without_noise(partial.heard))
        if not partial.heard.text.strip() or self._began_ms is None or self._is_late(partial):
            return ()
        self._partial = partial
        whole = _joined(self._with(partial))
        draft = Draft(self.player, whole, self._began_ms, partial.at_ms)
        reported = PartialHeard(self.player, whole, partial.at_ms)
        # A recogniser of whole recordings ends each of its partials with a full stop.
        if self.confirm_within_ms is None or is_noise(draft) or self.wait_ms(whole.text) >= self.unfinished_ms:
            return (reported,)
        return (reported, EagerTurn(draft))

    def _finally(self, final: Final) -> tuple[EndpointingEffect, ...]:
        at_ms, has_words, heard = final.at_ms, bool(final.heard.text.strip()), without_noise(final.heard)
        final = replace(final, heard=heard, revises=final.revises and bool(heard.text.strip()))
        if self._is_late(final) and self._gave_up is None:
            return ()
        effects: tuple[EndpointingEffect, ...] = ()
        if self._began_ms is None:
            if not has_words:
                return ()
            self._began_ms, self._speech_end_ms = self._gave_up or (at_ms, at_ms)
            effects = (SpeechStarted(self.player, self._began_ms),)
        elif final.closes and self._outstanding:
            self._outstanding -= 1
        self._gave_up = None
        if has_words:
            self._segments = self._with(final)
            self._partial = None
        if self._is_speaking:
            return effects
        settled = self._settle(at_ms)
        if self._outstanding and self.confirm_within_ms is None:
            return (*effects, *settled)
        if has_words and self._began_ms is not None and not is_noise(self._draft()):
            return (*effects, EagerTurn(self._draft()), *settled)
        return (*effects, *settled)

    def _settle(self, at_ms: int) -> tuple[EndpointingEffect, ...]:
        """End the turn if it is over, or request a `Tick`."""
        if self._began_ms is None or self._is_speaking:
            return ()
        if self._outstanding:
            unconfirmed = self.confirm_within_ms is not None and self._segments and self._partial is None
            wait_ms = self.confirm_within_ms if unconfirmed else self.final_within_ms
            give_up_ms = self._speech_end_ms + (wait_ms or 0)
            if at_ms < give_up_ms:
                return (TickAt(give_up_ms),)
            self._outstanding = 0
            if self._partial is not None:
                self._segments = self._with(self._partial)
            if not self._segments:
                self._gave_up = (self._began_ms, self._speech_end_ms)
        if not self._segments:
            self._forget()
            return (NothingSaid(self.player, at_ms), TurnOver(self._last_over))
        over_ms = self._speech_end_ms + self.wait_ms(*(segment.text for segment in self._segments))
        if at_ms < over_ms:
            return (TickAt(over_ms),)
        if self._is_held(at_ms):
            return (TickAt(at_ms + _LOOK_AGAIN_MS),)
        draft = self._draft()
        self._forget()
        written = replace(draft, heard=replace(draft.heard, text=draft.heard.raw_text, corrections=()))
        ended = NothingSaid(self.player, at_ms, written) if is_noise(draft) else TurnEnded(draft, at_ms)
        return (ended, TurnOver(self._last_over))

    def _with(self, transcript: Partial | Final) -> list[Heard]:
        kept = self._segments[:-1] if transcript.revises else self._segments
        return [*kept, transcript.heard]

    def _is_late(self, transcript: Partial | Final) -> bool:
        return transcript.segment is not None and transcript.segment <= self._last_over

    def _is_held(self, at_ms: int) -> bool:
        if self._onset_ms is None or at_ms - self._onset_ms >= _LOOK_AGAIN_MS:
            self._held_from_ms = None
            return False
        if self._held_from_ms is None:
            self._held_from_ms = at_ms
        return at_ms - self._held_from_ms < self.onset_within_ms

    def wait_ms(self, *segments: str) -> int:
        """Return the silence after which a turn of these words ends."""
        last = segments[-1].rstrip(" \"'”’»")
        n_words = sum(len(segment.split()) for segment in segments)
        if sounds_unfinished(last, language=self.language):
            return self.unfinished_ms
        if last.endswith("?") or n_words >= _LONG:
            return self.complete_ms
        is_answer = BACKCHANNEL.issuperset(Text.of(last).spoken)  # "Yes.", "No, thanks."
        is_short = n_words <= _SHORT and last.endswith(".") and not is_answer
        return self.unfinished_ms if is_short else self.end_of_turn_ms

    def _draft(self) -> Draft:
        began_ms = self._began_ms if self._began_ms is not None else self._speech_end_ms
        return Draft(self.player, _joined(self._segments), began_ms, self._speech_end_ms)

    def _forget(self) -> None:
        self._segments = []
        self._partial = None
        self._began_ms = None
        self._outstanding = 0
        self._held_from_ms = None
        self._last_over = self._n_begun


def _joined(segments: tuple[Heard, ...] | list[Heard]) -> Heard:
    """Join segments into one transcript, shifting the offsets of corrections and words and the word times."""
    corrections: list[Correction] = []
    words: list[HeardWord] = []
    raw_text = ""
    for segment in segments:
        # Some recognisers begin with a space. Offsets count from it, but the text is stripped.
        offset = (len(raw_text) + 1 if raw_text else 0) - (len(segment.raw_text) - len(segment.raw_text.lstrip()))
        corrections += (replace(c, start=c.start + offset, end=c.end + offset) for c in segment.corrections)
        later_ms = _later_ms(segment, segments[0])
        words += (word.moved(places=offset, ms=later_ms) for word in segment.words)
        raw_text = f"{raw_text} {segment.raw_text.strip()}".lstrip()
    return Heard(
        text=" ".join(segment.text.strip() for segment in segments if segment.text.strip()),
        raw_text=raw_text,
        corrections=tuple(corrections),
        transcript_ms=segments[-1].transcript_ms,
        corrected_ms=segments[-1].corrected_ms,
        words=tuple(words),
        sound_ms=segments[0].sound_ms,
    )


def _later_ms(segment: Heard, first: Heard) -> int | None:
    if segment is first:
        return 0
    if segment.sound_ms is None or first.sound_ms is None or segment.sound_ms < first.sound_ms:
        return None  # a service that reconnected counts from zero again
    return segment.sound_ms - first.sound_ms


# Finds where speech ends in the sound.
#
# A detector classifies windows and counts the decay of a voice as speech. Silero's last speech window ends 18 to 86 ms
# after the last voiced sample (median 60; thirteen recordings, each at sixteen offsets of the window grid), or before
# it if a word ends in a hiss ("Velkoreth"). Loudness gives the end to within 8 ms: the last nearby step that is less
# than 34 dB below the voice. In a noisy room, the detector's typical delay is subtracted instead.


DETECTOR_TAIL_MS = 50
"""Typical delay of the last speech window, used if loudness does not help."""

_STEP_MS = 8
_VOICED_SHARE = 0.02
"""Share of the voice's loudest 8 ms: -34 dB. Quieter steps are background."""
_NEAR = 80 // _STEP_MS
"""Search range around the end of the last speech window, in steps."""
_VOICE = 2_000 // _STEP_MS
"""Length of recent speech that determines the voice's loudness, in steps."""
_ROOM = 96 // _STEP_MS
_NOISY_ROOM = 1.5
"""If the background times this factor reaches the threshold, it hides the end of the voice."""


class SpeechEnd:
    """Finds the end of speech, window by window.

    Args:
        rate_hz: Sample rate. A window is a whole number of 8 ms steps.
    """

    def __init__(self, rate_hz: int) -> None:
        self._step = rate_hz * _STEP_MS // 1_000
        self._speech: deque[float] = deque(maxlen=_VOICE)
        self._after_speech: list[float] = []
        self._room: deque[float] = deque(maxlen=_ROOM)
        self._n_after_speech = 0

    def hear(self, window: NDArray[np.int16], *, is_speech: bool) -> None:
        """Take the next window: mono samples, and the detector's classification."""
        steps = window.astype(np.float32).reshape(-1, self._step)
        loudness = np.sqrt(np.mean(steps * steps, axis=1)).tolist()
        if is_speech:
            if self._n_after_speech:
                self._speech.extend(self._after_speech)
                self._after_speech.clear()
                self._room.clear()
                self._n_after_speech = 0
            self._speech.extend(loudness)
        else:
            self._after_speech.extend(loudness[: _NEAR - len(self._after_speech)])
            self._room.extend(loudness)
            self._n_after_speech += len(loudness)

    @property
    def detected_quiet_ms(self) -> int:
        """Time since the last speech window."""
        return self._n_after_speech * _STEP_MS

    @property
    def quiet_ms(self) -> int:
        """Time from the end of the voice to the end of the last window; 0 during speech."""
        return self.detected_quiet_ms + self._tail_ms() if self._n_after_speech else 0

    def _tail_ms(self) -> int:
        threshold = max(self._speech, default=0.0) * _VOICED_SHARE
        if float(np.median(self._room)) * _NOISY_ROOM >= threshold:
            return DETECTOR_TAIL_MS
        near = [*list(self._speech)[-_NEAR:], *self._after_speech]
        n_quiet = next((n for n, loudness in enumerate(reversed(near)) if loudness > threshold), len(near))
        return (n_quiet - len(self._after_speech)) * _STEP_MS
