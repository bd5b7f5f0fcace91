"""The load benchmark runs whole: several tables in one process, on one database."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.support.patience import DEADLINE_S

ROOT = Path(__file__).resolve().parents[2]


async def test_two_tables_play_side_by_side(reachable_dir: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.load", "--sessions", "2", "--minutes", "0.05", "--history-entries", "0"),
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(reachable_dir)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    told = json.loads(out.splitlines()[-1])
    keys = {"first_audio_p95_ms", "cpu_percent", "rss_mb", "audio_gaps", "rss_growth_mb_per_hour"}
    assert keys <= told.keys()
    assert told["sessions"] == 2
    assert told["cpu_percent"] > 0
