"""This machine: its load, how native libraries use it, and its sound. Requires none of the model packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import wave
from pathlib import Path
from typing import Final

_BUSY: Final = 0.7
"""Programs that want a core, for each core: beside so many a model reads and speaks at a fraction of its speed."""


def is_busy() -> bool:
    """Whether other programs slow a model down; False if the system does not report its load."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1) > _BUSY
    except OSError:
        return False


def prepare() -> None:
    """Configure how native libraries wait for work. Call it before any of them is imported: they read it once.

    Idle OpenMP threads that spin take a core from speech and recognition. On two cores beside one busy process,
    sleeping threads answer in 2.9 s instead of 3.7 s; alone the difference is within the noise. User settings are not
    changed.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # BLAS threads of numpy always spin. With one core, a product of 100,000 vectors takes
    # 9 ms (p95 13) on a busy machine; with both, 46 ms (p95 188).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The tokenizers' own pool deadlocks after a fork and gains nothing on single sentences.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


PLAYERS: Final = (
    ("pw-play",),
    ("paplay",),
    ("aplay", "-q"),
    ("afplay",),
    ("play", "-q"),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "quiet"),
)
_PLAYED_WITHIN_S: Final = 120


def write_wav(path: Path, pcm: bytes, *, rate_hz: int) -> None:
    """Write mono s16le as a WAV file."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate_hz)
        out.writeframes(pcm)


def play(path: Path) -> str:
    """Play a WAV file to its end. Returns the name of the program used, "" if none is installed or has a device."""
    for program, *options in PLAYERS:
        if (found := shutil.which(program)) is None:
            continue
        try:
            done = subprocess.run(  # noqa: S603 - the program is one of a fixed list, the file is ours
                [found, *options, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PLAYED_WITHIN_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return program
    return ""
