"""What people are at work, and by rank (English and German)."""

from __future__ import annotations

from typing import Final

from glyphoxa.chronicle.rules.patterns import word_set
from glyphoxa.turns.trades import trades_of

_RANKS: Final = word_set(
    "miller ferryman fisherman fisher farmer baker butcher brewer carpenter mason tailor cobbler scholar sage librarian"
    " spy thief assassin bard minstrel sailor captain merchant banker judge mayor king queen prince princess duke"
    " duchess baron baroness count countess noble nobleman knight squire hermit shepherd miner pirate smuggler"
    " müller fährmann fischer bauer bäcker metzger brauer zimmermann maurer schneider schuster gelehrter spion dieb"
    " mörder barde seemann kapitän händler richter bürgermeister könig königin prinz prinzessin herzog graf gräfin"
    " ritter knappe einsiedler hirte bergmann pirat schmuggler"
)
"""Beside the trades that are known by their business."""
_ENDINGS: Final = ("keeper", "maker", "monger", "wright", "smith", "seller", "wärter", "macher", "hüter", "müllerin")


def is_occupation(word: str) -> bool:
    """
    Args:
        word: In lower case.
    """
    return word in _RANKS or word.endswith(_ENDINGS) or bool(trades_of(word))


def occupation_in(noun: str) -> str | None:
    """The words up to a trade or a rank."""
    spoken = noun.split()
    for n, word in enumerate(spoken, start=1):
        if is_occupation(word.lower()):
            return " ".join(spoken[:n])
    return None
