"""The page of figures in `docs/recall-measured.md`, from what the commands printed.

    python -m benchmarks.recall_table --set "LoCoMo, five conversations" loco.json --set "..." crd3.json
        [--tune tune.json] [--prefetch NAME FILE] [--precision GATE LIVE] [--speed FILE] > docs/recall-measured.md

Each file holds the output of a command, whose last line is its JSON object: `--set` of `benchmarks.recall --arm all`,
and so on. The sets themselves are not ours to ship. What follows on that page was written by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from glyphoxa.domain.errors import Corrupt, GlyphoxaError, NotFound

Figures = Mapping[str, Any]

_INTRO: Final = """# Recall: what was measured

Made by `python -m benchmarks.recall_table` from the commands' own output, but for the last two sections; what the
arms and columns mean is in [benchmarks/README.md](../benchmarks/README.md), what the signals are in
[recall.md](recall.md). R@k: share of a question's evidence among the first k turns; MRR: one by the place of the first
evidence; both in percent, in the mean over all questions. "against" is the difference to what is shipped, with the 95 %
interval of a paired bootstrap: where it holds 0, nothing is shown. A stage of the memory graph (`+...`) is on by
default only if it wins.
"""
_BASELINES: Final = ("and", "or", "bm25", "dense", "rrf", "convex", "lexical")


def main(argv: Sequence[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        sets = {name: last_line(Path(file)) for name, file in options.set}
        parts = [_INTRO]
        parts += [part for name, got in sets.items() for part in (_arms(name, got), _categories(name, got))]
        if options.tune is not None:
            parts.append(_tune(last_line(options.tune)))
        if options.prefetch:
            parts.append(_prefetch({name: last_line(Path(file)) for name, file in options.prefetch}))
        if options.precision is not None:
            parts.append(_precision(*map(last_line, options.precision)))
        parts.append(_times(sets, None if options.speed is None else last_line(options.speed)))
    except GlyphoxaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(part.strip("\n") + "\n" for part in parts if part), end="")
    return 0


def last_line(file: Path) -> Figures:
    """What a command printed last.

    Raises:
        NotFound: There is no such file.
        Corrupt: Its last line is no JSON object.
    """
    try:
        figures = json.loads(file.read_text("utf-8").splitlines()[-1])
    except FileNotFoundError:
        raise NotFound(f"no output of a command at {file}") from None
    except (ValueError, IndexError) as error:
        raise Corrupt(f"the last line of {file} is no JSON object: {error}") from None
    if not isinstance(figures, dict):
        raise Corrupt(f"the last line of {file} is no JSON object")
    return figures


def _arms(name: str, got: Figures) -> str:
    arms: Mapping[str, Figures] = got["arms"]
    without = [arm for arm in arms if arm.startswith("no-")]
    stages = [arm for arm in arms if arm.startswith("+")]
    order = [arm for arm in (*_BASELINES, *without, *stages) if arm in arms]
    rows = [_row("**shipped**", got, None), *(_row(f"`{arm}`", arms[arm], arms[arm].get("vs_full")) for arm in order)]
    return (
        f"\n## {name}: {got['questions']} questions over {got['turns']} turns (`benchmarks.recall`)\n\n"
        "| arm | R@5 | R@10 | R@20 | MRR | hit@10 | R@10 against | MRR against |\n|---|---|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _row(name: str, got: Figures, against: Figures | None) -> str:
    figures = " | ".join(f"{got[key]:.1f}" for key in ("r5", "r10", "r20", "mrr", "hit10"))
    if against is None:
        return f"| {name} | {figures} | | |"
    return f"| {name} | {figures} | {_difference(against)} | {_difference(against.get('mrr'))} |"


def _difference(of: Figures | None) -> str:
    return "" if of is None else f"{of['diff']:+.1f} [{of['low']:+.1f}, {of['high']:+.1f}]"


def _categories(name: str, got: Figures) -> str:
    if len(got["by_category"]) < 2:
        return ""
    lexical = got["arms"].get("lexical", {}).get("by_category", {})
    rows = [
        f"| {category} | {of['r5']:.1f} | {of['r10']:.1f} | {of['r20']:.1f} | {of['mrr']:.1f} "
        f"| {lexical.get(category, {}).get('r10', float('nan')):.1f} |"
        for category, of in got["by_category"].items()
    ]
    return (
        f"\n### {name}, by category\n\n"
        "| category | R@5 | R@10 | R@20 | MRR | R@10 by words alone |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _tune(got: Figures) -> str:
    rows = []
    for kind in ("lexical", "hybrid"):
        of = got[kind]
        held, shipped = of["held_out"], of["shipped"]
        rows.append(
            f"| {kind} | {held['r10']:.1f} / {held['mrr']:.1f} | {shipped['r10']:.1f} / {shipped['mrr']:.1f} "
            f"| {_difference(of.get('held_out_vs_shipped'))} | {_multi_hop(of.get('held_out_by_category'))} |"
        )
    return (
        "\n## Nothing learnt from what it is measured on (`benchmarks.recall_tune`)\n\n"
        "Weights learnt anew for each conversation from the others (and, besides, from the second set) rank its "
        "questions.\n\n"
        "| | held out R@10 / MRR | shipped R@10 / MRR | R@10, held out against shipped | multi-hop R@10, held out |\n"
        "|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _multi_hop(categories: Mapping[str, Any] | None) -> str:
    return f"{categories['multi-hop']['r10']:.1f}" if categories and "multi-hop" in categories else ""


def _prefetch(sets: Mapping[str, Figures]) -> str:
    rows = []
    for name, got in sets.items():
        for mode, of in got["modes"].items():
            rows.append(
                f"| {name} | {mode} | {of['coverage']:.1f} % | {of['tokens_mean']:.0f} "
                f"| {of.get('small_talk_tokens_mean', 0.0):.0f} | {of.get('extra_trips', 0)} |"
            )
        rows += [
            f"| {name} | hybrid, {tokens} tokens | {of['coverage']:.1f} % | {of['tokens_mean']:.0f} | | 0 |"
            for tokens, of in got["other_budgets"].items()
        ]
    return (
        "\n## In the prompt when the question ends (`benchmarks.prefetch`, 1,500 tokens)\n\n"
        "Questions with some evidence among what is injected. `prewoven` puts the nearest chunks and all that is "
        "known\nof whoever is named into every prompt, `tools_only` nothing until the model asks: a second pass.\n\n"
        "| set | way | covered | tokens | tokens in small talk | more passes |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _precision(gate: Figures, live: Figures) -> str:
    rows = [
        f"| {name} | {got['passed']} of {got['cases']} | {got['session_passed']} of {got['session_cases']} "
        f"| {got['p50_ms']:.3f} / {got['p95_ms']:.3f} ms |"
        for name, got in (("the gate alone", gate), ("a turn, with a database (`--arm live`)", live))
    ]
    return (
        "\n## Exactly what is named (`benchmarks.precision`)\n\n"
        "| PrecisionMemBench over | cases | turns of sessions | p50 / p95 |\n|---|---|---|---|\n"
    ) + "\n".join(rows)


def _times(sets: Mapping[str, Figures], speed: Figures | None) -> str:
    rows = [
        f"| {got['turns']} ({name}) | {got['lexical_p50_ms']:.2f} / {got['lexical_p95_ms']:.2f} ms "
        f"| {got['p50_ms']:.1f} / {got['p95_ms']:.1f} ms | {got['talk_mb']} MB | {got['read_s']:.1f} s |"
        for name, got in sets.items()
    ]
    for turns, of in (speed or {"turns": {}})["turns"].items():
        lexical, hybrid = of["lexical"], of["hybrid"]
        rows.append(
            f"| {turns} (invented) | {lexical['p50_ms']:.2f} / {lexical['p95_ms']:.2f} ms "
            f"| {hybrid['p50_ms']:.1f} / {hybrid['p95_ms']:.1f} ms | {of['talk_mb']} MB | {of['load_s']:.1f} s |"
        )
    return (
        "\n## Time of one recall, p50 / p95 (`benchmarks.recall`, `benchmarks.recall_speed`)\n\n"
        "On two shared cores, the question's embedding by the local model included.\n\n"
        "| turns | by words | by words and meaning | memory | until it is read |\n|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall_table", description="docs/recall-measured.md.")
    parser.add_argument("--set", nargs=2, action="append", required=True, metavar=("NAME", "FILE"))
    parser.add_argument("--tune", type=Path, metavar="FILE")
    parser.add_argument("--prefetch", nargs=2, action="append", default=[], metavar=("NAME", "FILE"))
    parser.add_argument("--precision", nargs=2, type=Path, metavar=("GATE", "LIVE"))
    parser.add_argument("--speed", type=Path, metavar="FILE")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
