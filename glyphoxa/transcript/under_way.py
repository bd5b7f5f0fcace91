"""A file of what is just being said, as far as it was heard: what a process that is killed leaves of it."""

from __future__ import annotations

import os
from pathlib import Path

from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.transcript import spool_files


class UnderWay:
    """The utterances of `path`, as records of a spool; there is no file when there is none of them. Every change is
    whole on disk when it returns, or nothing of it.

    Raises:
        OSError: From all methods: the disk is full, or fails.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: dict[UtteranceId, Utterance] = {}

    def left(self) -> list[Utterance]:
        """What an earlier process left. It stays in the file until it is forgotten, or all is cleared. A record that
        cannot be read is none: nobody was told of it.
        """
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        left = [utterance for utterance in map(spool_files.utterance_of, lines) if utterance is not None]
        self._noted = {utterance.id: utterance for utterance in left}
        return left

    def note(self, utterance: Utterance) -> None:
        """In the place of what was noted of it before."""
        self._write({**self._noted, utterance.id: utterance})

    def forget(self, utterance: UtteranceId) -> None:
        """It has been said to its end."""
        if utterance in self._noted:
            self._write({key: noted for key, noted in self._noted.items() if key != utterance})

    def clear(self) -> None:
        self._write({})

    def _write(self, noted: dict[UtteranceId, Utterance]) -> None:
        if noted:
            temporary = self._path.with_suffix(".new")
            with temporary.open("wb") as file:
                file.write(b"".join(spool_files.record(utterance) for utterance in noted.values()))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
            spool_files.sync_directory(self._path.parent)
        else:
            self._path.unlink(missing_ok=True)
        self._noted = noted
