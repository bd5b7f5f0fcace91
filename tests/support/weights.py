"""Where the local models are that `make test` fetches."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.domain.errors import NotFound


def weights(name: str) -> Path:
    """Where the model `name` is. Without it a test fails and says how to get it: it is never skipped."""
    try:
        return WeightStore().path(name)
    except NotFound as missing:
        pytest.fail(f"{missing} (`make test` does that)", pytrace=False)
