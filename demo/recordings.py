"""Recordings from anywhere, as an ear takes them: 16 kHz, one channel, signed 16 bit.

Any sample rate from 4 to 192 kHz is resampled, channels are averaged, integer and float samples of every width
are read. What is not speech (silence, music, noise) is a valid recording: the voice detector decides about it.
"""

from __future__ import annotations

import struct
import warnings
from dataclasses import dataclass
from math import gcd
from pathlib import Path

import numpy as np
import numpy.typing as npt

from glyphoxa.domain.errors import InvalidInput, NotFound

Samples = npt.NDArray[np.float32]

RATE_HZ = 16_000
MIN_RATE_HZ, MAX_RATE_HZ = 4_000, 192_000
MAX_SECONDS = 600
MAX_BYTES = 512 * 1024 * 1024
VALID = (
    f"valid: a RIFF/WAVE file of integer or float samples, {MIN_RATE_HZ // 1000} to {MAX_RATE_HZ // 1000} kHz, "
    f"one or more channels, at most {MAX_SECONDS // 60} minutes"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """Sound of a file as mono s16le at `rate_hz`."""

    path: Path
    pcm: bytes
    rate_hz: int = RATE_HZ

    @property
    def duration_ms(self) -> int:
        return len(self.pcm) * 1000 // (2 * self.rate_hz)


def read_recording(path: Path, *, rate_hz: int = RATE_HZ) -> Recording:
    """Read a WAV file of any common kind, at the rate that is wanted.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It cannot be read or used; the message says which file, why, and what is valid.
    """
    rate, samples = _read(path)
    return Recording(path, pcm16(resample(samples, from_hz=rate, to_hz=rate_hz)), rate_hz)


def resample(samples: Samples, *, from_hz: int, to_hz: int) -> Samples:
    """The same sound at another rate, with a polyphase filter; shape (n,)."""
    if from_hz == to_hz or not len(samples):
        return samples
    from scipy.signal import resample_poly  # it takes a second to import, and most recordings have the rate

    common = gcd(from_hz, to_hz)
    return np.asarray(resample_poly(samples, to_hz // common, from_hz // common), np.float32)


def pcm16(samples: Samples) -> bytes:
    """s16le of samples in -1 to 1; what is louder is clipped."""
    return np.round(np.clip(samples, -1.0, 1.0) * 32767).astype("<i2").tobytes()


def samples_of(pcm: bytes) -> Samples:
    """Samples in -1 to 1 of s16le; an odd last byte is dropped."""
    return np.frombuffer(pcm[: len(pcm) // 2 * 2], "<i2").astype(np.float32) / np.float32(32768)


def _read(path: Path) -> tuple[int, Samples]:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise NotFound(f"no recording {path}; {VALID}") from None
    except OSError as error:
        raise InvalidInput(f"recording {path} cannot be read: {error.strerror}; {VALID}") from None
    if not path.is_file():
        raise InvalidInput(f"recording {path} is not a file; {VALID}")
    if size == 0:
        raise InvalidInput(f"recording {path} is empty (0 bytes); {VALID}")
    if size > MAX_BYTES:
        raise InvalidInput(f"recording {path} is too large ({size // 2**20} MiB); {VALID}")
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            # Odd chunks (an editor's metadata) and headers that promise too much: scipy warns and reads on.
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            rate, samples = wavfile.read(path)
    except OSError as error:
        raise InvalidInput(f"recording {path} cannot be read: {error.strerror}; {VALID}") from None
    except (ValueError, EOFError, TypeError, UnboundLocalError, struct.error, ZeroDivisionError) as error:
        # All of these have been seen from scipy on damaged headers; none of them says more than "not a WAV file".
        raise InvalidInput(f"recording {path} is not a WAV file, or a broken one ({error}); {VALID}") from None
    return rate, _checked(path, rate, samples)


def _checked(path: Path, rate: int, samples: npt.NDArray[np.generic]) -> Samples:
    """Mono samples in -1 to 1 of whatever scipy returned."""
    if not samples.size:
        raise InvalidInput(f"recording {path} holds no samples; {VALID}")
    if not MIN_RATE_HZ <= rate <= MAX_RATE_HZ:
        raise InvalidInput(f"recording {path} has a sample rate of {rate} Hz; {VALID}")
    if len(samples) > MAX_SECONDS * rate:
        raise InvalidInput(f"recording {path} lasts {len(samples) // rate} s; {VALID}")
    floats: Samples = samples.astype(np.float32)
    if samples.dtype.kind == "u":
        floats = (floats - np.float32(128)) / np.float32(128)
    elif samples.dtype.kind == "i":
        floats /= np.float32(2 ** (8 * samples.dtype.itemsize - 1))
    if not np.isfinite(floats).all():
        raise InvalidInput(f"recording {path} holds samples that are not numbers; {VALID}")
    return np.asarray(floats.mean(axis=1) if floats.ndim > 1 else floats, np.float32)
