"""How many examples a test of a property looks at: a fifth of them in `make test`, all of them in `make proof`.

What is asserted of an example is the same in both.
"""

from __future__ import annotations

import os
from typing import Final

IS_PROOF: Final = "GLYPHOXA_PROOF" in os.environ
_ONE_OF: Final = 5
_FEWEST: Final = 20


def n_examples(full: int) -> int:
    """How many of `full` random examples this run tries."""
    return full if IS_PROOF else max(min(full, _FEWEST), full // _ONE_OF)
