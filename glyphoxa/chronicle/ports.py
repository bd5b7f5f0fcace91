"""Who reads talk for the chronicle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from glyphoxa.chronicle.extraction import Extraction
from glyphoxa.chronicle.talk import KnownEntity, SceneTalk


class Extractor(Protocol):
    """Finds what a stretch of talk tells of the world: by rules, or by a model."""

    async def extract(self, talk: SceneTalk, known: Sequence[KnownEntity]) -> Extraction:
        """What is learned from `talk.said`, each with the utterances that say it. It says only what is there: whether
        that is new, and who may know it, is decided behind it.

        Raises:
            Unavailable: A model cannot be reached in time.
            Unparseable: A model answered something else than was asked for; nothing of it counts.
        """
        ...
