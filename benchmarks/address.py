"""Who is meant: the product's decision on each case of a file.

    python -m benchmarks.address FILE [--failures FILE] [--kind KIND ...]

A case is a line of JSON: the NPCs and players of a table, what was said before, and what somebody says now. The names
are found and the decision is made by the parts that a table is opened with. What went before is told to them as a
table tells it: who had an answer from an NPC is in talk with it; whether words were meant for another player, the
product finds out by itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import perf_counter_ns

from benchmarks.address_cases import Case, campaign_of, read_cases
from glyphoxa.bootstrap.correction import make_names
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.turns.address import Addressed, Addressing
from glyphoxa.turns.cast import cast_of
from glyphoxa.turns.questions import Questions

NOW_MS = 10_000_000


def decided(case: Case) -> tuple[Addressed, float]:
    """What the product decides, and how long the decision on the last words took, in milliseconds."""
    campaign = campaign_of(case)
    names = make_names(campaign, CorrectionSettings(), None, now_ms=lambda: NOW_MS, wait_until_logged=_never_logged)
    questions = Questions(names.mentions, {npc.id: npc.name for npc in campaign.npcs}, Addressing(cast_of(campaign)))
    questions.move([NpcId(npc.id) for npc in case.npcs if npc.present])
    npcs, players = {npc.id for npc in case.npcs}, {player.id for player in case.players}
    for said in sorted(case.before, key=lambda said: -said.seconds_ago):
        at_ms = NOW_MS - round(said.seconds_ago * 1_000)
        if said.speaker in npcs:
            if said.to in players:
                questions.remember(PlayerId(str(said.to)), NpcId(said.speaker), at_ms=at_ms)
        elif said.to in npcs:
            questions.remember(PlayerId(said.speaker), NpcId(str(said.to)), at_ms=at_ms)
        else:
            player = PlayerId(said.speaker)
            questions.passed(player, questions.decide(player, said.text, at_ms=at_ms), at_ms=at_ms)
    began_ns = perf_counter_ns()
    addressed = questions.decide(PlayerId(case.speaker), case.text, at_ms=NOW_MS)
    return addressed, (perf_counter_ns() - began_ns) / 1e6


async def _never_logged(_: object) -> bool:
    return False


def verdict(case: Case, addressed: Addressed) -> str:
    """right, false_answer, missed or wrong_npc: of the lead alone."""
    lead = case.expected[0] if case.expected else None
    if addressed.npc == lead:
        return "right"
    if lead is None:
        return "false_answer"
    return "missed" if addressed.npc is None else "wrong_npc"


def figures(judged: Iterable[tuple[Case, Addressed]]) -> dict[str, float | int | None]:
    """Shares in percent; None where there is nothing to have a share of."""
    verdicts: Counter[str] = Counter()
    for_nobody, seconds, seconds_right = 0, 0, 0
    for case, addressed in judged:
        verdicts[verdict(case, addressed)] += 1
        for_nobody += not case.expected
        if len(case.expected) > 1:
            seconds += 1
            seconds_right += addressed.second == case.expected[1]
    n = sum(verdicts.values())
    return {
        "cases": n,
        "accuracy": _share(verdicts["right"], n),
        "false_answers": _share(verdicts["false_answer"], for_nobody),
        "missed": _share(verdicts["missed"], n - for_nobody),
        "wrong_npc": _share(verdicts["wrong_npc"], n - for_nobody),
        "second_right": _share(seconds_right, seconds),
    }


def _share(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.address", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--kind", action="append", metavar="KIND", help="only cases of this kind; may be repeated")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write each case that is decided wrongly")
    options = parser.parse_args(argv)
    try:
        cases = [case for case in read_cases(options.file) if not options.kind or case.kind in options.kind]
    except GlyphoxaError as error:
        parser.exit(2, f"{error}\n")
    judged: list[tuple[Case, Addressed]] = []
    took_ms: list[float] = []
    for case in cases:
        addressed, ms = decided(case)
        judged.append((case, addressed))
        took_ms.append(ms)
    if options.failures is not None:
        wrong = (pair for pair in judged if verdict(*pair) != "right")
        options.failures.write_text("".join(_row(case, addressed) for case, addressed in wrong), "utf-8")
    took_ms.sort()
    print(
        json.dumps(
            {
                **figures(judged),
                "by_language": _by(judged, [case.language for case in cases]),
                "by_kind": _by(judged, [case.kind or "-" for case in cases]),
                "p50_ms": round(took_ms[len(took_ms) // 2], 3) if took_ms else None,
                "p99_ms": round(took_ms[len(took_ms) * 99 // 100], 3) if took_ms else None,
            }
        )
    )
    return 0


def _by(judged: Sequence[tuple[Case, Addressed]], groups: Sequence[str]) -> dict[str, dict[str, float | int | None]]:
    grouped: dict[str, list[tuple[Case, Addressed]]] = defaultdict(list)
    for pair, group in zip(judged, groups, strict=True):
        grouped[group].append(pair)
    return {group: figures(pairs) for group, pairs in sorted(grouped.items())}


def _row(case: Case, addressed: Addressed) -> str:
    told = {"id": case.id, "kind": case.kind, "text": case.text, "expected": case.expected}
    return json.dumps({**told, "npc": addressed.npc, "reason": addressed.reason}, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
