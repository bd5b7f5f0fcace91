"""Whether a measurement is a regression. Only ratios of two things measured in the same run are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glyphoxa.domain.errors import Corrupt, NotFound

UPDATE = "python -m benchmarks.gate --update"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a ratio was when it was accepted, and how much more of it is still noise.

    Attributes:
        ratio: The accepted value.
        tolerance: Added to it; what is above both is a regression.
    """

    ratio: float
    tolerance: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Verdict:
    name: str
    measured: float
    limit: Limit

    @property
    def is_regression(self) -> bool:
        return self.measured > self.limit.ratio + self.limit.tolerance

    def __str__(self) -> str:
        """One line: what was measured, against what."""
        # A share may have been nothing when it was accepted.
        change = f"; {100 * (self.measured / self.limit.ratio - 1):+.0f} %" if self.limit.ratio else ""
        line = (
            f"{self.name}: {self.measured:.3f} (accepted {self.limit.ratio:.3f} + {self.limit.tolerance:.3f}{change}), "
            f"{self.limit.meaning}"
        )
        return f"REGRESSION {line}. If this is meant: {UPDATE}" if self.is_regression else f"ok {line}"


def verdicts(measured: Mapping[str, float], limits: Mapping[str, Limit]) -> list[Verdict]:
    """Raises:
    NotFound: A limit has no measurement, or the other way round.
    """
    if set(measured) != set(limits):
        odd = ", ".join(sorted(set(measured) ^ set(limits)))
        raise NotFound(f"the baseline and the measurement are not about the same things: {odd}; {UPDATE}")
    return [Verdict(name, measured[name], limit) for name, limit in limits.items()]


def fastest_ratio(ours: Sequence[float | None], bare: Sequence[float | None]) -> float | None:
    """Compare the fastest turn of each arm: what else the machine does only ever adds to a turn.

    None when fewer than half of the pairs are whole.
    """
    pairs = [(a, b) for a, b in zip(ours, bare, strict=True) if a is not None and b is not None and b > 0]
    if 2 * len(pairs) < len(ours) or not pairs:
        return None
    return min(a for a, _ in pairs) / min(b for _, b in pairs)


def stalled_share(ours: Sequence[float | None], bare: Sequence[float | None], *, stall_ms: float) -> float:
    """Of the pairs whose other arm was answered, those in which ours came so much later, or not at all.

    The fastest turn does not show them.
    """
    pairs = [(a, b) for a, b in zip(ours, bare, strict=True) if b is not None]
    return sum(a is None or a > b + stall_ms for a, b in pairs) / len(pairs) if pairs else 0.0


def read_limits(path: Path) -> dict[str, Limit]:
    """Raises:
    NotFound: There is no such file.
    Corrupt: It holds something else.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        return {name: Limit(**entry) for name, entry in document.items()}
    except FileNotFoundError:
        raise NotFound(f"no baseline {path}; make one: {UPDATE}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise Corrupt(f"{path} is not a baseline of the gate ({error}); make a new one: {UPDATE}") from None


def write_limits(path: Path, measured: Mapping[str, float], known: Mapping[str, Limit]) -> None:
    """Accept what was measured. Tolerances stay as they are."""
    document = {
        name: {"ratio": round(measured[name], 3), "tolerance": limit.tolerance, "meaning": limit.meaning}
        for name, limit in known.items()
    }
    path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
