"""Write WAV files, and play them with a program of this machine."""

from __future__ import annotations

import shutil
import subprocess
import wave
from pathlib import Path
from typing import Final

PLAYERS: Final = (
    ("pw-play",),
    ("paplay",),
    ("aplay", "-q"),
    ("afplay",),
    ("play", "-q"),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "quiet"),
)
_WITHIN_S: Final = 120


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
                timeout=_WITHIN_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return program
    return ""
