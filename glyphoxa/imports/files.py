"""Open what a user names as a source, a file, a folder or a zip, without trusting it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1 << 30
"""Of a file inside a source, and of all files that are read of it together."""

Progress = Callable[[int, int], None]
"""Is told how many bytes were read, and of how many."""


class SourceFiles:
    """The files of a source: read only, each by its path inside it, with `/` between folders.

    Attributes:
        path: What the user named.
        names: Paths of all regular files, sorted. Links, devices, and paths that lead out of the source are not among
            them.
    """

    path: Path
    names: tuple[str, ...]

    def read(self, name: str) -> bytes:
        """
        Raises:
            InvalidInput: It is larger than `MOST_BYTES`, damaged, encrypted, or too much was read in all.
        """
        raise NotImplementedError

    def lines(self, name: str) -> Iterator[bytes]:
        """Read a large file line by line, as `read`."""
        raise NotImplementedError

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """A private copy of a folder with the files directly in it, which is deleted at the end of the block.

        Raises:
            InvalidInput: As `read`.
        """
        raise NotImplementedError


@contextmanager
def open_source(path: Path, progress: Progress = lambda _read, _of: None) -> Iterator[SourceFiles]:
    """
    Raises:
        NotFound: There is no such file or folder.
        InvalidInput: It is neither a file nor a folder, a damaged or encrypted zip, or one that expands too much.
    """
    raise NotImplementedError
