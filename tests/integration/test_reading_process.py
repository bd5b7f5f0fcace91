"""The process that reads transcripts beside open tables: it survives crashes, and never outlives the tables."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from glyphoxa.app import transcript_reader
from glyphoxa.config.settings import Settings
from tests.integration.test_live_chronicle import PROMISE, is_found
from tests.support.live_table import an_evening, settings_for, with_chronicle, write_campaign
from tests.support.patience import DEADLINE_S

READER = (sys.executable, "-m", "glyphoxa.app.transcript_reader")


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    return with_chronicle(settings_for(write_campaign(tmp_path), dsn, tmp_path))


def reading_processes() -> list[psutil.Process]:
    found = psutil.Process().children()
    return [each for each in found if READER[-1] in each.cmdline()]


async def running() -> psutil.Process:
    async with asyncio.timeout(DEADLINE_S):
        while not (found := reading_processes()):  # noqa: ASYNC110 - no table tells that a process was started
            await asyncio.sleep(0.05)
    return found[0]


async def test_killed_reading_process_restarts_and_reads_everything(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_reader, "_RESTART_S", 0.01)
    async with an_evening(settings, monkeypatch) as evening:
        first = await running()
        first.kill()
        await evening.asked(PROMISE)
        await is_found(dsn, "promise")
        [second] = reading_processes()
        assert second.pid != first.pid
        assert second.nice() == 19
    assert reading_processes() == []


async def test_reading_process_ends_with_its_input(settings: Settings) -> None:
    process = await asyncio.create_subprocess_exec(
        *READER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{settings.model_dump_json()}\nread town\nbusy\n".encode())
    async with asyncio.timeout(DEADLINE_S):
        assert await process.stdout.readline() == b"ready\n"
        process.stdin.close()  # as when the tables' process is killed
        assert await process.wait() == 0


async def test_reading_process_without_settings_ends_at_once() -> None:
    process = await asyncio.create_subprocess_exec(
        *READER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        assert await process.communicate(b"") == (b"", None)
    assert process.returncode == 0


async def test_table_without_chronicle_and_embeddings_starts_no_reading_process(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings_for(write_campaign(tmp_path), dsn, tmp_path), monkeypatch) as evening:
        await evening.asked("Grimjaw, good evening.")
        assert reading_processes() == []
