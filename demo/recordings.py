"""Reads WAV recordings of mono signed 16-bit sound, and converts samples."""

from __future__ import annotations

import struct
import wave
from dataclasses import dataclass
from math import gcd
from pathlib import Path

import numpy as np
import numpy.typing as npt

from glyphoxa.domain.errors import InvalidInput, NotFound

Samples = npt.NDArray[np.float32]

RATE_HZ = 16_000


@dataclass(frozen=True, slots=True)
class Recording:
    """The sound of a file as mono s16le at `rate_hz`."""

    path: Path
    pcm: bytes
    rate_hz: int = RATE_HZ

    @property
    def duration_ms(self) -> int:
        return len(self.pcm) * 1000 // (2 * self.rate_hz)


def read_recording(path: Path, *, rate_hz: int = RATE_HZ) -> Recording:
    """Read a WAV file of that sample rate.

    Raises:
        NotFound: The file does not exist.
        InvalidInput: The file is unreadable or of another form. The message names the file, the reason and what is
            valid.
    """
    valid = f"valid: a RIFF/WAVE file of 16-bit samples, {rate_hz} Hz, one channel"
    try:
        if not path.stat().st_size:
            raise InvalidInput(f"recording {path} is empty (0 bytes); {valid}")
        with wave.open(str(path), "rb") as file:
            form = file.getnchannels(), 8 * file.getsampwidth(), file.getframerate()
            pcm = file.readframes(file.getnframes())
    except FileNotFoundError:
        raise NotFound(f"no recording {path}; {valid}") from None
    except OSError as error:
        raise InvalidInput(f"recording {path} cannot be read: {error.strerror}; {valid}") from None
    except (EOFError, wave.Error, struct.error) as error:
        raise InvalidInput(f"recording {path} is not a valid WAV file ({error}); {valid}") from None
    if form != (1, 16, rate_hz):
        channels, bits, rate = form
        raise InvalidInput(f"recording {path} has {channels} channels of {bits} bits at {rate} Hz; {valid}")
    if not pcm:
        raise InvalidInput(f"recording {path} holds no samples; {valid}")
    return Recording(path, pcm, rate_hz)


def resample(samples: Samples, *, from_hz: int, to_hz: int) -> Samples:
    """Resample with a polyphase filter; shape (n,)."""
    if from_hz == to_hz or not len(samples):
        return samples
    from scipy.signal import resample_poly  # the import takes a second, and most recordings need no resampling

    common = gcd(from_hz, to_hz)
    return np.asarray(resample_poly(samples, to_hz // common, from_hz // common), np.float32)


def pcm16(samples: Samples) -> bytes:
    """Convert samples in -1 to 1 to s16le, clipping louder ones."""
    return np.round(np.clip(samples, -1.0, 1.0) * 32767).astype("<i2").tobytes()


def samples_of(pcm: bytes) -> Samples:
    """Convert s16le to samples in -1 to 1. An odd last byte is dropped."""
    return np.frombuffer(pcm[: len(pcm) // 2 * 2], "<i2").astype(np.float32) / np.float32(32768)
