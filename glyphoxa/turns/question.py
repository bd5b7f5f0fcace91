"""What somebody asks, in the parts in which they said it."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_PARTS = 6
"""Of a question that its speaker goes on with."""
_MOST_CHARACTERS = 1_200
"""Of all parts of a question together, where there are several: some five sentences of speech each."""


@dataclass(frozen=True, slots=True)
class SpokenQuestion:
    """What somebody asks, in the parts in which they said it."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.parts)

    def going_on(self, text: str) -> SpokenQuestion:
        """With another part. The newest stay: the NPC heard the others as it hears everything."""
        parts, n_characters = [text], len(text)
        for part in reversed(self.parts[1 - MOST_PARTS :]):
            n_characters += 1 + len(part)
            if n_characters > _MOST_CHARACTERS:
                break
            parts.append(part)
        return SpokenQuestion(tuple(reversed(parts)))


def same_words(a: str, b: str) -> bool:
    return re.findall(r"\w+", a.lower()) == re.findall(r"\w+", b.lower())
