"""How many key terms a provider takes, when it takes fewer than it says."""

from __future__ import annotations

from collections.abc import Sequence

from loguru import logger


class KeytermLimit:
    """Learned from refusals: after the first, half of the list is sent; after the second, none. A recogniser that
    hears no names is better than none.
    """

    def __init__(self) -> None:
        self._most: int | None = None
        self._n_refusals = 0

    def fit(self, keyterms: Sequence[str]) -> list[str]:
        """What may be sent of them."""
        return list(keyterms if self._most is None else keyterms[: self._most])

    def refused(self, keyterms: Sequence[str]) -> bool:
        """These were refused. Returns whether fewer may help."""
        if not keyterms:
            return False
        self._n_refusals += 1
        self._most = len(keyterms) // 2 if self._n_refusals == 1 else 0
        logger.warning("the recogniser refused {} names; it is sent {} of them from now on", len(keyterms), self._most)
        return True
