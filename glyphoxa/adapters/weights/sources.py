from __future__ import annotations

from pathlib import Path
from typing import Protocol

from glyphoxa.adapters.weights.files import PartFile, blocks_of
from glyphoxa.adapters.weights.manifest import WeightFile
from glyphoxa.adapters.weights.progress import Progress


class Source(Protocol):
    """Something that may give a file's bytes. Whether they are the right ones is for others to check."""

    @property
    def label(self) -> str:
        """Where it is, for a message."""
        ...

    def offers(self, wanted: WeightFile) -> bool:
        """Whether it is worth trying."""
        ...

    def fetch(self, wanted: WeightFile, part: PartFile, progress: Progress) -> None:
        """Fill the part.

        Raises:
            Unavailable: It cannot, now.
            Corrupt: What it has is not usable.
        """
        ...


class Directory:
    """Files of the user's: in a folder of the artefact's name, side by side, or the one file that is named."""

    def __init__(self, place: Path, artefact: str) -> None:
        self._place = place
        self._artefact = artefact
        self.label = str(place)

    def offers(self, wanted: WeightFile) -> bool:
        return self._find(wanted) is not None

    def fetch(self, wanted: WeightFile, part: PartFile, progress: Progress) -> None:
        found = self._find(wanted)
        if found is not None:
            part.discard()
            progress.begin(part.label, size=wanted.size, have=0)
            part.append(blocks_of(found), advance=progress.advance)

    def _find(self, wanted: WeightFile) -> Path | None:
        if self._place.is_file():
            return self._place if self._place.name == wanted.name else None
        places = (self._place / self._artefact / wanted.name, self._place / wanted.name)
        return next((place for place in places if place.is_file()), None)
