"""The readers of other tools' files, by the name of the tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from glyphoxa.dm.imported import ImportKind, SourceWorld
from glyphoxa.imports.files import Progress, SourceFiles, open_source

Reader = Callable[[SourceFiles], SourceWorld]
READERS: Final[Mapping[ImportKind, Reader]] = {}
"""Each raises `InvalidInput` for files of another kind, which names what it looked for; and `NotInstalled`."""


def read_source(kind: ImportKind, path: Path, progress: Progress = lambda _read, _of: None) -> SourceWorld:
    """Read a world. It takes seconds: call it in a thread.

    Raises:
        NotFound: There is no such file or folder.
        InvalidInput: It cannot be read; the message names the file inside it and what would be valid.
        NotInstalled: A library is missing.
    """
    with open_source(path, progress) as files:
        return READERS[kind](files)
