"""What the desk shows of the table itself: what it uses, how its memory is, how fast it answered."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles
from typing import Final

from glyphoxa.bootstrap.desk import Desk, DeskSource
from glyphoxa.dm import turn_told
from glyphoxa.dm.reading_told import reading_in_words
from glyphoxa.domain.events import MemoryHealth
from glyphoxa.domain.turn import TurnRecord
from glyphoxa.npc.table import Table
from glyphoxa.web.desk.views import Shown
from glyphoxa.world.api import moment

MOST_TURNS: Final = 200
"""Of this session, the latest."""
_HEIGHT: Final = 120
_BAR: Final = 5
_MIB: Final = 1024 * 1024


async def table(source: DeskSource, desk: Desk, at: Table, players_url: str | None) -> Shown:
    """
    Args:
        players_url: Where players open the table; None: on this machine only.
    """
    turns = await desk.turns.latest(session=at.session, limit=MOST_TURNS)
    return {
        "scene": at.scene.id,
        "is_paused": at.is_paused,
        "memory": memory_in_words(at.health),
        "checks": await source.checked(players_url=players_url),
        "models": [
            {
                "name": each.name,
                "state": each.state,
                "size": f"{each.artefact.size / _MIB:,.0f} MiB",
                "licence": each.artefact.licence,
                "what": each.artefact.what,
            }
            for each in await source.models()
            if each.state != "missing"
        ],
        "reading": [
            {
                "session": each.session,
                "said": each.last_ordinal,
                "read": each.read_ordinal,
                "state": reading_in_words(each),
            }
            for each in await source.progress()
        ],
        "pace": pace(list(reversed(turns))),
    }


def memory_in_words(health: MemoryHealth) -> str:
    """How long-term memory is, as a sentence."""
    match health.state:
        case "ok":
            return f"Everything said is in the database; {health.waiting} utterances are on their way there."
        case "degraded":
            since = "" if health.since_ms is None else f" since {moment(health.since_ms)}"
            return f"The database is away{since}: {health.why}. {health.waiting} utterances wait on disk; none is lost."
        case "off":
            return "There is no long-term memory."


def pace(turns: Sequence[TurnRecord]) -> Shown:
    """From the end of speech to the first word of the answer, turn by turn.

    Args:
        turns: The oldest first.
    """
    timed = [(each, ms) for each in turns if (ms := each.first_audio_ms) is not None]
    times = sorted(ms for _, ms in timed)
    outcomes: dict[str, int] = {}
    for each in turns:
        outcomes[turn_told.outcome(each)] = outcomes.get(turn_told.outcome(each), 0) + 1
    longest = max(times, default=1) or 1
    return {
        "n": len(turns),
        "n_timed": len(timed),
        "median": _seconds(_quantile(times, 50)),
        "most": _seconds(_quantile(times, 95)),
        "outcomes": sorted(outcomes.items(), key=lambda each: -each[1]),
        "width": max(1, len(timed)) * (_BAR + 1),
        "height": _HEIGHT,
        "bars": [
            {
                "x": n * (_BAR + 1),
                "y": _HEIGHT - round(_HEIGHT * ms / longest),
                "width": _BAR,
                "height": max(1, round(_HEIGHT * ms / longest)),
                "id": each.id,
                "what": f"{each.speaker_name}: {_seconds(ms)}",
            }
            for n, (each, ms) in enumerate(timed)
        ],
        "longest": _seconds(longest),
    }


def _quantile(ordered: Sequence[int], percent: int) -> float | None:
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    return quantiles(ordered, n=100, method="inclusive")[percent - 1]


def _seconds(ms: float | None) -> str:
    return "not known yet" if ms is None else f"{ms / 1000:.2f} s"
