"""Which bytes a name of the hub stands for: as the hub declared them when they were asked for the first time."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from glyphoxa.adapters.weights.files import naming_disk_troubles
from glyphoxa.adapters.weights.manifest import WeightFile
from glyphoxa.domain.errors import Corrupt

_PINNED = TypeAdapter(dict[str, WeightFile])


class Pins:
    """
    Args:
        file: Where they are kept; made with the first one.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, name: str) -> WeightFile | None:
        """None: nothing was fetched by that name.

        Raises:
            Corrupt: What is kept cannot be read.
        """
        return self.all().get(name)

    def all(self) -> dict[str, WeightFile]:
        """As `of`, by name."""
        try:
            with naming_disk_troubles(self._file):
                text = self._file.read_bytes() if self._file.exists() else b"{}"
            return _PINNED.validate_json(text)
        except ValidationError as error:
            raise Corrupt(
                f"{self._file}: the hashes of models from the hub cannot be read; take the file away, and each is"
                " declared anew with its next fetch"
            ) from error

    def put(self, name: str, file: WeightFile) -> None:
        """From now on the name stands for this file.

        Raises:
            Corrupt: As `of`.
            Unavailable: It cannot be written.
        """
        kept = {**self.all(), name: file}
        with naming_disk_troubles(self._file):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._file.with_suffix(f".{os.getpid()}")
            fresh.write_bytes(_PINNED.dump_json(kept, indent=1, exclude_defaults=True))
            fresh.replace(self._file)
