"""Reads WAV recordings as 16 kHz mono signed 16-bit sound, the input format of an ear.

Sample rates from 4 to 192 kHz are resampled, channels are averaged, and integer and float samples of every width are
accepted. Silence, music and noise are valid; the voice detector decides what is speech.
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
    """The sound of a file as mono s16le at `rate_hz`."""

    path: Path
    pcm: bytes
    rate_hz: int = RATE_HZ

    @property
    def duration_ms(self) -> int:
        return len(self.pcm) * 1000 // (2 * self.rate_hz)


def read_recording(path: Path, *, rate_hz: int = RATE_HZ) -> Recording:
    """Read a WAV file and convert it to `rate_hz`.

    Raises:
        NotFound: The file does not exist.
        InvalidInput: The file is unreadable or invalid. The message names the file, the reason and what is valid.
    """
    rate, samples = _read(path)
    return Recording(path, pcm16(resample(samples, from_hz=rate, to_hz=rate_hz)), rate_hz)


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
            # scipy warns about odd chunks (editor metadata) and wrong lengths in headers, and reads on.
            warnings.simplefilter("ignore", wavfile.WavFileWarning)
            rate, samples = wavfile.read(path)
    except OSError as error:
        raise InvalidInput(f"recording {path} cannot be read: {error.strerror}; {VALID}") from None
    except (ValueError, EOFError, TypeError, UnboundLocalError, struct.error, ZeroDivisionError) as error:
        # scipy raises each of these for damaged headers. None says more than "not a WAV file".
        raise InvalidInput(f"recording {path} is not a valid WAV file ({error}); {VALID}") from None
    return rate, _checked(path, rate, samples)


def _checked(path: Path, rate: int, samples: npt.NDArray[np.generic]) -> Samples:
    """Convert the array from scipy to mono samples in -1 to 1."""
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
        raise InvalidInput(f"recording {path} contains samples that are not numbers; {VALID}")
    return np.asarray(floats.mean(axis=1) if floats.ndim > 1 else floats, np.float32)
