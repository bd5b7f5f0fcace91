"""Targets, and how they are run: hypothesis breaks up the seeds of their corpus."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

CORPUS: Final = Path(__file__).parent / "corpus"
LONGEST_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """A reader of hostile bytes.

    Attributes:
        name: Also that of its directory of seeds.
        feed: Takes the bytes and a scratch file. It swallows the documented refusal; what else it raises is a finding.
        words: Words that a change inserts: the reader has a rule for each.
    """

    name: str
    feed: Callable[[bytes, Path], None]
    words: tuple[bytes, ...]


class FuzzFinding(AssertionError):
    """A target took too long."""


def seeds_of(target: FuzzTarget) -> list[bytes]:
    """The files of its corpus, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / target.name).iterdir())]


def changed(target: FuzzTarget) -> st.SearchStrategy[bytes]:
    """A seed with up to six changes: a stretch becomes random bytes, a word, itself twice or nothing."""
    put = st.one_of(st.binary(max_size=12), st.sampled_from([*target.words, b"", b"\x00", b"\xff"]), st.none())
    change = st.tuples(st.floats(0, 1), st.integers(0, 24), put)
    return st.builds(_change, st.sampled_from([*seeds_of(target), b""]), st.lists(change, max_size=6))


def fuzz(target: FuzzTarget, scratch: Path, *, n_inputs: int, start: int) -> None:
    """Feed a target that many inputs; the same `start` gives the same inputs.

    Raises:
        FuzzFinding: An input took more processor time than `LONGEST_S` seconds.
        Exception: The target raised it, it is no documented refusal, and this is the smallest input that does it.
    """

    @seed(start)
    @settings(
        max_examples=n_inputs,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )
    @given(changed(target))
    def feed(data: bytes) -> None:
        before = time.process_time()
        target.feed(data, scratch)
        took = time.process_time() - before
        if took > LONGEST_S:
            raise FuzzFinding(f"{target.name}: {took:.1f} s for {data[:200]!r}")

    feed()


def _change(data: bytes, changes: list[tuple[float, int, bytes | None]]) -> bytes:
    for where, length, put in changes:
        at = int(where * len(data))
        stretch = data[at : at + length]
        data = data[:at] + (stretch * 2 if put is None else put) + data[at + length :]
    return data
