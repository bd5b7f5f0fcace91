"""How alike a name and what was heard are, and how alike they must be.

Whether a likeness is enough depends on what the words would be otherwise. "Crimjaw" is in no dictionary; "bard" is
said at every table; and words that stand alone between two full stops are a name far more often than the same words
in the middle of a sentence. So each kind of window has a least likeness of its own. The numbers are set on real
table talk that holds none of the names (two episodes of Critical Role against 134 invented names): each kind may
cost at most a few false corrections in 100,000 words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rapidfuzz.distance import JaroWinkler, Levenshtein

from glyphoxa.speech.gazetteer import Name


class Standing(Enum):
    """What stands around the words."""

    ALONE = 0
    """They are a whole sentence."""
    SET_OFF = 1
    """Punctuation on both sides, as around somebody's name who is called."""
    WITHIN = 2


class Suspicion(Enum):
    """Why words may be a misheard name, strongest first."""

    ODD = "in no dictionary"
    CAPITAL = "written as a name"
    ORDINARY = "sounds the same"


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a window before any name is looked at.

    Attributes:
        holds_stop_word: One of its words is an article, a pronoun ...
        rarity: Of its most common word, as in `Vocabulary.rarity`.
    """

    standing: Standing
    suspicion: Suspicion
    is_single: bool
    holds_stop_word: bool
    rarity: int

    @property
    def only_same_sound(self) -> bool:
        """Only names that sound exactly so come into question; any other would be chance."""
        if self.standing is not Standing.WITHIN:
            return False
        return self.suspicion is Suspicion.ORDINARY or self.holds_stop_word


# Least likeness: alone, set off, within a sentence. Above 1: never.
_NEVER = 2.0
_LEAST = {
    (Suspicion.ODD, "one"): (0.61, 0.69, 0.73),
    (Suspicion.ODD, "several"): (0.58, 0.64, 0.69),
    (Suspicion.ODD, "with a stop word"): (0.65, 0.68, 0.74),
    (Suspicion.CAPITAL, "one"): (0.66, 0.74, 0.84),
    (Suspicion.CAPITAL, "several"): (0.58, 0.64, 0.70),
    (Suspicion.CAPITAL, "with a stop word"): (0.65, 0.68, 0.76),
    (Suspicion.ORDINARY, "one"): (0.73, 0.80, _NEVER),
    (Suspicion.ORDINARY, "several"): (0.62, 0.72, 0.78),
    (Suspicion.ORDINARY, "with a stop word"): (0.72, 0.80, _NEVER),
}
_RARE = 50
_RARE_WORD = -0.03
_ORDINARY_NAME = 0.08
_SHORT_FORM = 0.04
_NEARBY = -0.05
_SURE_OF_IT = 0.03
_UNSURE_OF_IT = -0.04


def least_likeness(kind: Kind, name: Name, *, is_nearby: bool, confidence: float | None) -> float:
    """What `Likeness.overall` must reach.

    Args:
        is_nearby: The name belongs to somebody in the scene, or was said lately.
        confidence: The recogniser's, in its least certain word of the window; None when it tells none.
    """
    many = "with a stop word" if kind.holds_stop_word else "one" if kind.is_single else "several"
    least = _LEAST[kind.suspicion, many][kind.standing.value]
    if kind.suspicion is Suspicion.ORDINARY and kind.rarity >= _RARE:
        least += _RARE_WORD
    if name.is_ordinary:
        least += _ORDINARY_NAME
    # Short words resemble each other by chance.
    least += 0.03 * max(0, 7 - len(name.joined))
    if name.kind == "short":
        least += _SHORT_FORM
    if is_nearby:
        least += _NEARBY
    if confidence is not None:
        least += _SURE_OF_IT if confidence > 0.95 else _UNSURE_OF_IT if confidence < 0.5 else 0.0
    return least


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two spellings are, each figure 0 to 1.

    Attributes:
        sound: Levenshtein of how they sound, sign by sign; see `glyphoxa.speech.sounds`.
        edits: Levenshtein of the letters.
        spelling: Jaro-Winkler of the letters.
    """

    sound: float
    edits: float
    spelling: float

    @classmethod
    def of(cls, heard: str, its_sound: str, name: str, its: str) -> Likeness:
        return cls(
            Levenshtein.normalized_similarity(its_sound, its),
            Levenshtein.normalized_similarity(heard, name),
            JaroWinkler.similarity(heard, name),
        )

    @property
    def overall(self) -> float:
        return 0.5 * self.sound + 0.3 * self.edits + 0.2 * self.spelling
