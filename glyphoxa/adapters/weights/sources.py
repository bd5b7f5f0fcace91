from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from glyphoxa.adapters.weights.files import PartFile, blocks_of
from glyphoxa.adapters.weights.manifest import WeightFile
from glyphoxa.domain.errors import Unavailable


class Source(Protocol):
    """Something that may give a file's bytes. Whether they are the right ones is for others to check."""

    @property
    def label(self) -> str:
        """Where it is, for a message."""
        ...

    def fetch(self, wanted: WeightFile, part: PartFile, report: Callable[[int], None]) -> None:
        """Fill the part, going on after the bytes that it holds.

        Args:
            report: Takes how many bytes of the file are here, from time to time.

        Raises:
            Unavailable: It cannot, now. What the part holds by then may be right.
            Corrupt: What it has is not usable.
        """
        ...


class Directory:
    """Files of the user's: in a folder of the artefact's name, side by side, or the one file that is named."""

    def __init__(self, place: Path, artefact: str) -> None:
        self._place = place
        self._artefact = artefact
        self.label = str(place)

    def fetch(self, wanted: WeightFile, part: PartFile, report: Callable[[int], None]) -> None:
        found = self._find(wanted)
        if found is None:
            raise Unavailable(f"has no {wanted.name}")
        part.discard()
        part.append(blocks_of(found), report=report)

    def _find(self, wanted: WeightFile) -> Path | None:
        if self._place.is_file():
            return self._place if self._place.name == wanted.name else None
        places = (self._place / self._artefact / wanted.name, self._place / wanted.name)
        return next((place for place in places if place.is_file()), None)
