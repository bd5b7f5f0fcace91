"""`python -m demo` plays a recorded evening with NPCs and writes a report with its sound."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from demo.console import ConsoleReport
from demo.evening import LOCAL, STOPPED, Run, run_evening
from demo.play import OpenTable, play_session
from demo.script import read_evening
from glyphoxa.adapters.local import machine as native_env
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.observability import set_up_logs

HERE = Path(__file__).resolve().parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=HERE / "out", help="directory for the recording and the report")
    parser.add_argument("--script", type=Path, default=HERE / "evening.yaml", help="script: who says what, and when")
    parser.add_argument("--config", type=Path, default=HERE / "settings.yaml", help="settings: models and database")
    parser.add_argument("--opener", default=LOCAL, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Play the evening. Exit codes: 0 checks passed, 1 a check failed or the run broke off, 2 bad input, 130 stop."""
    try:
        return run_evening(Run(arguments.script, arguments.out.resolve(), arguments.config, arguments.opener))
    except GlyphoxaError as error:
        return failed(error)
    except KeyboardInterrupt:
        return STOPPED


def failed(error: GlyphoxaError) -> int:
    print(f"demo: {error}", file=sys.stderr)
    return 2 if isinstance(error, InvalidInput) else 1


def run_session(arguments: argparse.Namespace) -> int:
    """Play one session in this process. Closing its standard input ends it early, with an orderly shutdown."""
    native_env.prepare()
    set_up_logs(level="WARNING")
    try:
        return asyncio.run(_session(arguments))
    except GlyphoxaError as error:
        return failed(error)
    except KeyboardInterrupt:
        return STOPPED


async def _session(arguments: argparse.Namespace) -> int:
    evening = read_evening(arguments.script)
    script = evening.session(arguments.number)
    campaign = read_campaign(arguments.campaign).campaign
    programme = ConsoleReport(campaign)
    programme.open(script.number, script.title)
    open_table = _opener(arguments.opener)

    async def play() -> None:
        table = await open_table(
            arguments.campaign,
            session=f"{campaign.id}-{script.number}",
            config=arguments.config,
            tell=lambda text: programme.note(f"  {text} ..."),
        )
        await play_session(evening, script, table, out=arguments.out, tell=programme.told)

    playing = asyncio.create_task(play())
    with _Stop(playing):
        await asyncio.wait([playing])
    if playing.cancelled():
        return STOPPED
    playing.result()
    return 0


class _Stop:
    """Cancels a task once, on SIGINT, SIGTERM or end of standard input. Ignores later signals."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task
        self._stopped = False
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._stop)
        if not sys.stdin.isatty():
            self._loop.add_reader(sys.stdin.fileno(), self._on_input)

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)
        self._loop.remove_reader(sys.stdin.fileno())

    def _on_input(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            self._loop.remove_reader(sys.stdin.fileno())
            self._stop()

    def _stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._task.cancel()


def _opener(name: str) -> OpenTable:
    module, _, function = name.partition(":")
    found: OpenTable = getattr(import_module(module), function)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description="Play the recorded demo evening.")
    add_arguments(parser)
    parser.set_defaults(run=run)
    session = parser.add_subparsers().add_parser("session", help="play one session in this process")
    session.add_argument("--number", type=int, required=True)
    session.add_argument("--campaign", type=Path, required=True)
    session.set_defaults(run=run_session)
    arguments = parser.parse_args()
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
