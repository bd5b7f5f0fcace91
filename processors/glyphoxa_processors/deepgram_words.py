"""What Deepgram's messages tell of each word, for the notes of a transcript."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from deepgram.listen.v1.types import ListenV1Results
from pipecat.frames.frames import EagerTranscriptionFrame, Frame, InterimTranscriptionFrame, TranscriptionFrame

from glyphoxa.domain.utterance import HeardWord
from glyphoxa.speech.language.alignment import SpokenWord, placed
from glyphoxa_processors.transcript_notes import notes_of, put_notes


@dataclass(frozen=True, slots=True)
class _Told:
    """Seconds since the connection was opened; None where the service tells none."""

    word: str
    confidence: float | None
    begins_s: float | None
    ends_s: float | None


def tell_words(frame: Frame) -> None:
    """Put `words`, and `sound_ms` if there are times, into the notes of a transcript that came from a message."""
    if not isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
        return
    told = list(_nova(frame.result) if isinstance(frame.result, ListenV1Results) else _flux(frame.result))
    words = placed(frame.text, (SpokenWord(t.word, t.confidence, _ms(t.begins_s), _ms(t.ends_s)) for t in told))
    words, sound_ms = _from_the_first(words)
    put_notes(frame, replace(notes_of(frame), words=words, sound_ms=sound_ms))


def heard_span_s(frame: Frame) -> tuple[float, float, float] | None:
    """Where a transcript's sound begins, its first word, and where its sound ends, in seconds since the connection was
    opened.

    None for other frames, and for a transcript that came from no message.
    """
    if not isinstance(frame, TranscriptionFrame | InterimTranscriptionFrame | EagerTranscriptionFrame):
        return None
    match frame.result:
        case ListenV1Results(start=start, duration=duration) as results:
            first = next((t.begins_s for t in _nova(results) if t.begins_s is not None), start)
            return start, first, start + duration
        case {"audio_window_start": int() | float() as start, "audio_window_end": int() | float() as end}:
            return start, next((t.begins_s for t in _flux(frame.result) if t.begins_s is not None), start), end
        case _:
            return None


def _nova(results: ListenV1Results) -> Iterator[_Told]:
    for word in results.channel.alternatives[0].words:
        # Without punctuation asked for, there is none.
        yield _Told(word.punctuated_word or word.word, word.confidence, word.start, word.end)


def _flux(turn_info: Any) -> Iterator[_Told]:
    """Flux's messages reach us as they were on the wire. Times came to it in 2026; older servers send none."""
    for word in turn_info.get("words") or () if isinstance(turn_info, dict) else ():
        yield _Told(word.get("word") or "", word.get("confidence"), word.get("start"), word.get("end"))


def _from_the_first(words: tuple[HeardWord, ...]) -> tuple[tuple[HeardWord, ...], int | None]:
    """The words timed from the first one on, and when that was in the sound of the connection."""
    first_ms = next((word.from_ms for word in words if word.from_ms is not None), None)
    if first_ms is None:
        return words, None
    return tuple(word.moved(places=0, ms=-first_ms) for word in words), first_ms


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)
