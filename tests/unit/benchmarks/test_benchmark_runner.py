"""The runner of all benchmarks: exit codes, the last line, readers of data, figures."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.runner import (
    STOPPED,
    command,
    filled_once,
    json_lines,
    percent,
    percentile,
    percentiles,
    positive,
    read_rows,
    run,
    sample,
    to_write,
)
from glyphoxa.domain.errors import InvalidInput

OPTIONS = argparse.Namespace()


def test_the_last_line_holds_the_figures_and_the_directory_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    used: list[Path] = []

    async def measure(_: argparse.Namespace, directory: Path) -> Mapping[str, Any]:
        used.append(directory)
        return {"questions": 3}

    assert run(OPTIONS, measure) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"questions": 3}
    assert not used[0].exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("no such arm"), 1),
        (FileNotFoundError("none.tsv"), 1),
        (KeyboardInterrupt(), STOPPED),
        (asyncio.CancelledError(), STOPPED),
    ],
)
def test_an_error_becomes_an_exit_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def measure(_: argparse.Namespace, __: Path) -> Mapping[str, Any]:
        raise error

    assert run(OPTIONS, measure) == code
    assert capsys.readouterr().out == ""


def test_options_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = command("turn", "Latency.")
    parser.add_argument("--turns", type=positive)
    parser.add_argument("--failures", type=to_write)
    assert parser.parse_args(["--failures", str(tmp_path / "new.jsonl")]).failures == tmp_path / "new.jsonl"
    for wrong in (["--turns", "0"], ["--failures", str(tmp_path / "no" / "place")]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "must be 1 or more, not 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('\n{"id": 1}\n{"id"\n', "rows.jsonl:3: no JSON"),
        ("[1]", "rows.jsonl:1: no JSON object"),
        ('{"name": 1}', "rows.jsonl:1: 'id' is missing"),
    ],
)
def test_a_wrong_row_is_refused_with_its_place(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "rows.jsonl").write_text(content)
    with pytest.raises(InvalidInput, match=complaint):
        read_rows(tmp_path / "rows.jsonl", lambda row: row["id"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.jsonl cannot be read"):
        list(json_lines(tmp_path / "none.jsonl"))


async def test_a_kept_directory_is_filled_once_and_with_one_thing_only(tmp_path: Path) -> None:
    async def fill() -> dict[str, Any]:
        return {"load_s": 1.5}

    assert await filled_once(tmp_path, [1, 2], fill) == ({"load_s": 1.5}, True)
    assert await filled_once(tmp_path, [1, 2], fill) == ({"load_s": 1.5}, False)
    with pytest.raises(InvalidInput, match="holds other data"):
        await filled_once(tmp_path, [3], fill)


def test_a_sample_is_the_same_in_every_run_and_in_order() -> None:
    items = [f"q{n}" for n in range(50)]
    chosen = sample(items, 10, seed="any")
    assert chosen == sample(items, 10, seed="any") == sorted(chosen, key=items.index)
    assert sample(items, None, seed="any") == sample(items, 99, seed="any") == items


def test_figures_of_nothing_are_none_or_empty() -> None:
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert percentiles(range(101), 50, 99) == {"p50_ms": 50, "p99_ms": 99}
    assert percent(1, 3) == 33.3
    assert (percentile([], 50), percentiles([], 50), percent(0, 0)) == (None, {}, None)
