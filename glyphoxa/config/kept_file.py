"""A text file that a user keeps, changed only if it is still what was looked at."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from glyphoxa.config.located_yaml import text_of
from glyphoxa.domain.errors import InvalidInput


def stamp_of(text: str) -> str:
    """What tells a text from another one: its SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KeptFile:
    """
    Attributes:
        path: Of the file itself, or of a link to it, which stays one.
    """

    path: Path

    @property
    def can_be_written(self) -> bool:
        real = self.path.resolve()
        return os.access(real, os.W_OK) and os.access(real.parent, os.W_OK)

    def read(self) -> str:
        """
        Raises:
            NotFound: There is no such file.
            InvalidInput: It cannot be read, or is no text.
        """
        return text_of(self.path)

    def replace(self, text: str, *, instead_of: str) -> None:
        """Write the whole file anew, atomically; its mode stays.

        Args:
            instead_of: The stamp of the text that it has to hold now.

        Raises:
            InvalidInput: It holds another one by now, or cannot be written. It is as it was.
        """
        if stamp_of(self.read()) != instead_of:
            raise InvalidInput(f"{self.path.name} was changed meanwhile by somebody else; nothing was written")
        real = self.path.resolve()
        try:
            descriptor, name = tempfile.mkstemp(prefix=f".{real.name}.", suffix=".new", dir=real.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode())
                    file.flush()
                    os.fchmod(file.fileno(), real.stat().st_mode & 0o777)
                    os.fsync(file.fileno())
                Path(name).replace(real)
            except OSError:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise InvalidInput(f"{self.path}: cannot be written: {error.strerror}") from error
