"""Files for this user alone, whatever the umask is and whatever rights they had before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TextIO


def private_directory(path: Path) -> None:
    """Raises: OSError: It cannot be made."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)


def open_private(path: Path, mode: Literal["w", "a"]) -> TextIO:
    """As `open` for text in UTF-8.

    Raises:
        OSError: It cannot be opened.
    """
    return open(path, mode, encoding="utf-8", opener=_opener)


def _opener(path: str, flags: int) -> int:
    opened = os.open(path, flags | os.O_CLOEXEC, 0o600)
    os.fchmod(opened, 0o600)
    return opened
