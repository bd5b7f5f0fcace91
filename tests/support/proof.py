"""How many examples a test of a property looks at: a tenth of them or less in `make test`, all of them in `make proof`.

What is asserted of an example is the same in both.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

IS_PROOF: Final = "GLYPHOXA_PROOF" in os.environ
_FEWEST: Final = 10

proof_only = pytest.mark.skipif(not IS_PROOF, reason="takes long: `make proof`")
"""For a test whose rule `make test` checks in a shorter way."""


def n_examples(full: int, *, one_of: int = 10) -> int:
    """How many of `full` random examples this run tries.

    Args:
        one_of: More than ten where thousands would be left, each of which takes a while.
    """
    return full if IS_PROOF else max(min(full, _FEWEST), full // one_of)
