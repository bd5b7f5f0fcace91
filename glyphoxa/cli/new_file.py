"""A file that a verb writes for its user."""

from __future__ import annotations

import os
from pathlib import Path

from glyphoxa.domain.errors import InvalidInput


def write_new_file(path: Path, data: bytes) -> None:
    """All of it or no file, which only its owner may read. Blocks.

    Raises:
        InvalidInput: It is there already, or cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(part, path)  # unlike a rename, it takes nobody's place
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError:
        raise InvalidInput(f"{path} is there already: name a file that is not") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None
