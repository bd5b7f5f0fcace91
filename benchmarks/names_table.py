"""The page of figures in `docs/names-measured.md`, from the commands' own output.

    python -m benchmarks.names_table [--talk TALK.txt] > docs/names-measured.md

Runs `benchmarks.names` on the project's own set and on the test half of the spoken names, with and without what was
learned, `benchmarks.spoken_names`, `benchmarks.names_loop` and `benchmarks.names_speed`, each arm where it has two.
`TALK.txt` is real table talk, one utterance a line, to be damaged by nothing; it is read, and nothing of it is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks import names, names_loop, names_speed
from benchmarks.spoken_names import measure
from benchmarks.spoken_names.dataset import HERE, settings_in

Figures = dict[str, Any]

_ARMS = ("documents", "shipped")
_INTRO = """# Names heard right: what was measured

Made by `python -m benchmarks.names_table`; what the columns mean is in
[benchmarks/README.md](../benchmarks/README.md). `documents` is the rule as it was first written down, kept behind a
switch (`correction.algorithm`); `shipped` is what runs.
"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names_table", description=__doc__.splitlines()[0])
    parser.add_argument("--talk", type=Path, metavar="TALK.txt", help="real table talk, one utterance a line")
    options = parser.parse_args(argv)
    parts = [_INTRO, _isolated(options.talk), _spoken(), _loop(), _speed()]
    print("\n".join(part.strip("\n") + "\n" for part in parts), end="")
    return 0


def _isolated(talk: Path | None) -> str:
    test = ["--names", f"{HERE}/N-test.tsv", "--clean", f"{HERE}/C-test.txt"]
    sets: list[tuple[str, list[str]]] = [
        ("own set", []),
        ("spoken, test half", [*test, "--pairs", f"{HERE}/P-test.tsv"]),
        ("later sessions", [*test, "--pairs", f"{HERE}/P-later-test.tsv"]),
        (
            "later sessions, earlier learned",
            [*test, "--pairs", f"{HERE}/P-later-test.tsv", "--learn", f"{HERE}/L-test.tsv"],
        ),
    ]
    if talk is not None:
        sets.append(("spoken names, real talk", [*test[:2], "--pairs", f"{HERE}/P-test.tsv", "--clean", str(talk)]))
    rows = []
    for title, arguments in sets:
        for arm in _ARMS:
            got = _last_line(names.main, [*arguments, "--arm", arm])
            rows.append(
                f"| {title} | {arm} | {got['names']} | {got['pairs']} | {got['recall']} % | {got['wrong']} % "
                f"| {got['false_per_1000_words']} | {got['clean_words']} |"
            )
    return (
        "## Isolated wrong forms, and clean text (`benchmarks.names`)\n\n"
        "| set | arm | names | forms | right | another name | changed per 1,000 clean words | clean words |\n"
        "|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _spoken() -> str:
    rows = []
    for arm in _ARMS:
        every = _last_line(measure.main, ["--split", "test", "--arm", arm])
        for setting, got in [*((each, every["settings"][each]) for each in settings_in()), ("all", every)]:
            rows.append(
                f"| {setting} | {arm} | {got['name_wer_raw']} → {got['name_wer']} % "
                f"| {got['other_wer_raw']} → {got['other_wer']} % "
                f"| {got['nameless_wer_raw']} → {got['nameless_wer']} % | {got['wer_raw']} → {got['wer']} % "
                f"| {got['names_right_raw']} → {got['names_right']} % | {got['wrong_name']} % |"
            )
    return (
        "\n## Spoken sentences, test half, before → after (`benchmarks.spoken_names`)\n\n"
        "| recogniser | arm | word errors in names | in other words | in sentences without a name | in all "
        "| names right | another name |\n|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _loop() -> str:
    files = ["--names", f"{HERE}/N-test.tsv", "--pairs", f"{HERE}/P-test.tsv", "--clean", f"{HERE}/C-test.txt"]
    rows = []
    for draw in ("8x60", "8x100"):
        got = _last_line(names_loop.main, [*files, "--draw", draw])
        seen = got["seen_before"]
        rows.append(
            f"| {draw} | {min(seen[1:])}-{max(seen[1:])} % | {got['later_recall_without']} % | {got['later_recall']} % "
            f"| {got['false_per_1000_words_without']} → {got['false_per_1000_words']} |"
        )
    return (
        "\n## The loop: the DM confirms after each session (`benchmarks.names_loop`)\n\n"
        "| sessions x mentions | heard so before | right without learning | right with it "
        "| changed per 1,000 clean words |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _speed() -> str:
    got = _last_line(names_speed.main, [])
    rows = [
        f"| {n} | {each['p50_us']} / {each['p99_us']} µs | {each['update_p50_ms']} / {each['update_p99_ms']} ms "
        f"| {each['follow_p50_ms']} / {each['follow_p99_ms']} ms "
        f"| {each['build_ms']} ms |"
        for n, each in got.items()
    ]
    return (
        "\n## Time, p50 / p99 (`benchmarks.names_speed`)\n\n"
        "| names | a sentence of 21 words | one name changed | until the table goes by it | all names indexed |\n"
        "|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _last_line(command: Callable[[Sequence[str] | None], int], arguments: Sequence[str]) -> Figures:
    printed = StringIO()
    with redirect_stdout(printed):
        code = command(arguments)
    if code != 0:
        raise SystemExit(f"{command.__module__} {' '.join(arguments)} ended with {code}")
    figures: Figures = json.loads(printed.getvalue().splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
