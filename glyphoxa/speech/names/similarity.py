"""How alike a name and what was heard are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rapidfuzz.distance import JaroWinkler, Levenshtein

edit_similarity = Levenshtein.normalized_similarity


class Spelling(NamedTuple):
    """Letters, folded and without spaces, how they sound, sign by sign, and their phonetic codes, if they matter."""

    letters: str
    sound: str
    codes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Similarity:
    """Each figure 0 to 1.

    Attributes:
        sound: Levenshtein of how they sound, sign by sign; see `glyphoxa.speech.language.sounds`.
        edits: Levenshtein of the letters.
        spelling: Jaro-Winkler of the letters.
        same_sound: They have a phonetic code in common.
    """

    sound: float
    edits: float
    spelling: float
    same_sound: bool

    @classmethod
    def of(cls, heard: Spelling, name: Spelling) -> Similarity:
        return cls(
            edit_similarity(heard.sound, name.sound),
            edit_similarity(heard.letters, name.letters),
            JaroWinkler.similarity(heard.letters, name.letters),
            any(code in name.codes for code in heard.codes),
        )

    @property
    def overall(self) -> float:
        return overall(self.sound, self.edits, self.spelling)


def overall(sound: float, edits: float, spelling: float) -> float:
    """One figure to rank names by; half of it is the sound."""
    return 0.5 * sound + 0.3 * edits + 0.2 * spelling


def similarity_in_spelling(heard: str, name: str, *, sound: float) -> float:
    """`Similarity.overall` of two spellings whose likeness in sound is known."""
    return overall(sound, edit_similarity(heard, name), JaroWinkler.similarity(heard, name))
