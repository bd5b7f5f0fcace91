"""Each reader refuses hostile bytes as it documents: seeds, and what hypothesis makes of them.

`make test` takes a few inputs that are always the same, `make fuzz` others and as many as `GLYPHOXA_FUZZ` says.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.targets import CORPUS, TARGETS, FuzzTarget

N_INPUTS = int(os.environ.get("GLYPHOXA_FUZZ", "50"))
START = int(time.time()) if "GLYPHOXA_FUZZ" in os.environ else 1
LONGEST_S = 2.0
"""Processor time of one input."""


def changed(target: FuzzTarget) -> st.SearchStrategy[bytes]:
    """A seed with up to six changes: a stretch becomes random bytes, a word, itself twice or nothing."""
    seeds = [path.read_bytes() for path in sorted((CORPUS / target.name).iterdir())]
    put = st.one_of(st.binary(max_size=12), st.sampled_from([*target.words, b"", b"\x00", b"\xff"]), st.none())
    change = st.tuples(st.floats(0, 1), st.integers(0, 24), put)
    return st.builds(_change, st.sampled_from([*seeds, b""]), st.lists(change, max_size=6))


def _change(data: bytes, changes: list[tuple[float, int, bytes | None]]) -> bytes:
    for where, length, put in changes:
        at = int(where * len(data))
        stretch = data[at : at + length]
        data = data[:at] + (stretch * 2 if put is None else put) + data[at + length :]
    return data


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_reader_takes_its_seeds_and_what_becomes_of_them(target: FuzzTarget, tmp_path: Path) -> None:
    @seed(START)
    @settings(
        max_examples=N_INPUTS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(changed(target))
    def feed(data: bytes) -> None:
        before = time.process_time()
        target.feed(data, tmp_path / "input")
        assert time.process_time() - before <= LONGEST_S

    feed()
