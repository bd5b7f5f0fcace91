"""Arrays that grow with the talk."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NOWHERE: Final = -1
"""The place of what is not there."""
_SPARE: Final = 1.5


def grown(array: NDArray[Any], least: int = 64, fill: int = 0) -> NDArray[Any]:
    """A longer copy; what is added is not told from the outside."""
    longer = np.zeros(max(least, int(len(array) * _SPARE)), array.dtype)
    if fill:
        longer[len(array) :] = fill
    longer[: len(array)] = array
    return longer
