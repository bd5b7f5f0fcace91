"""Engines of the user's own: files with Python, which the settings name and a campaign file may not.

A campaign file is passed on and opened by others, and runs nothing. The settings are of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from glyphoxa.config.yaml_surprises import short

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FILE = re.compile(r"(.+\.py):([A-Za-z_][A-Za-z0-9_]*)")
NO_MOUTHS: Final = ("ear", "host", "webrtc")
"""Installed pipelines that are not an NPC's."""
_TAKEN: Final = ("cascaded", "s2s", *NO_MOUTHS)


def not_a_name(engine: str) -> str:
    """Why a campaign file cannot name such an engine; "" if it can."""
    if not re.search(r"[/\\:]|\.py\b", engine):
        return ""
    return (
        f"{short(engine)!r} is a file, and a campaign file runs none: name it in the settings "
        "(`engines: {loud: ./loud.py:build}`), and write its name here (`engine: loud`)"
    )


def wrong_engine(name: str, value: str) -> str:
    """Why the settings cannot name such an engine; "" if they can."""
    if name in _TAKEN:
        return f"engines: {name!r} is an engine that is there already; give yours another name"
    if not _NAME.fullmatch(name):
        return f"engines: {short(name)!r} is no name: lower-case letters, digits, - and _, such as `loud`"
    if not _FILE.fullmatch(value):
        return f"engines.{name}: {short(value)!r} names no function of a file; valid: `./loud.py:build`"
    return ""


def file_and_function(value: str) -> tuple[Path, str]:
    """Of a value that `wrong_engine` has nothing against."""
    file, _, function = value.rpartition(":")
    return Path(file), function


def from_folder(base: Path, engines: Mapping[str, str]) -> dict[str, str]:
    """The same with paths that count from `base`."""
    found: dict[str, str] = {}
    for name, value in engines.items():
        file, function = file_and_function(value)
        found[name] = f"{base / file.expanduser()}:{function}"
    return found


def missing_files(engines: Mapping[str, str]) -> list[str]:
    """What is not there of what the settings name."""
    return [
        f"{name}: there is no file {file}"
        for name, value in engines.items()
        if not (file := file_and_function(value)[0]).is_file()
    ]
