"""Plays the whole evening, each session in its own process, and writes one report.

A new process for each session proves that "the next evening" uses stored memory only. Each run uses a new campaign id,
so nothing is remembered from an earlier run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Final

from demo.console import ConsoleReport
from demo.page import page
from demo.play import RATE_HZ, check
from demo.played import SessionPlayed, read_played, session_json, session_wav
from demo.recordings import read_recording
from demo.report import DemoCheck, Figures, evening_json, figures
from demo.script import Evening, read_evening
from glyphoxa.adapters.local.machine import write_wav
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import read_settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId

BETWEEN_SESSIONS = bytes(2 * RATE_HZ)
"""One second of silence."""
STOPPED = 128 + signal.SIGINT
LOCAL = "demo.play:open_local"
"""Opens a table that stores its memory in this machine's database."""
MAX_REASONS_SHOWN = 2
"""Reasons printed for each failed check."""
OWN_CAMPAIGN = "my-campaign.yaml"
CLOSING_S = 30.0
"""Time for a stopped session to store what was said and stop its database."""


@dataclass(frozen=True, slots=True)
class Run:
    """The script to play, where to write it, and the function that opens the table ("module:function")."""

    script: Path
    out: Path
    config: Path
    opener: str


def run_evening(run: Run) -> int:
    """Play all sessions and write `evening.wav`, `evening.html` and `evening.json`. Returns the exit code.

    Raises:
        InvalidInput: The script, the campaign or a recording is invalid. Nothing was started.
    """
    evening = read_evening(run.script)
    campaign = read_campaign(evening.campaign).campaign
    check(evening, campaign)
    for session in evening.sessions:
        for line in session.lines:
            read_recording(evening.wav(line))
    _clear(run.out, evening)
    campaign_file = copy_campaign(evening.campaign, campaign, run.out)
    code = 0
    for session in evening.sessions:
        code = _run_session(run, session.number, campaign_file)
        if code:
            break
        if run.opener == LOCAL and session is not evening.sessions[-1]:
            stored = read_campaign(campaign_file).campaign
            show_recaps(run.config.resolve(), stored.id, f"{stored.id}-{session.number}", ConsoleReport(stored).note)
    played = [p for session in evening.sessions if (p := read_played(run.out, session.number)) is not None]
    if not played:
        return code
    found = write_evening(run.out, evening, campaign, played)
    if code:
        return code
    code = report_checks(found.checks)
    if run.opener == LOCAL:
        print_next_steps(run, campaign_file)
    return code


def report_checks(checks: Sequence[DemoCheck]) -> int:
    """Print one line for each failed check. Returns the exit code: 1 if a check failed, else 0."""
    failed = [each for each in checks if not each.holds]
    print(flush=True)
    for each in failed:
        n_more = len(each.wrong) - MAX_REASONS_SHOWN
        more = f"; {n_more} more in evening.json" if n_more > 0 else ""
        print(f"  FAILED: {each.what}: {'; '.join(each.wrong[:MAX_REASONS_SHOWN])}{more}", flush=True)
    if not failed:
        print(f"  All {len(checks)} checks passed.", flush=True)
    return 1 if failed else 0


def print_next_steps(run: Run, campaign_file: Path) -> None:
    """Print four commands to try next. They work on this evening's data in the local database."""
    port = read_settings(run.config).server.port
    glyphoxa = _short(Path(sys.executable).parent / "glyphoxa")
    of_evening = ["--config", _short(run.config.resolve()), "--campaign", _short(campaign_file)]
    # One line for each command, so that it can be copied from a narrow terminal.
    print(
        "",
        "  1. Play in the demo town yourself:",
        "     make serve",
        "",
        f"  2. See this evening as its game master. Run this, then open http://localhost:{port}/desk/sessions:",
        f"     {shlex.join([glyphoxa, 'serve', '--open', '--new', *of_evening])}",
        "",
        "  3. Decide what the NPCs keep of the last session:",
        f"     {shlex.join([glyphoxa, 'wrap-up', *of_evening])}",
        "",
        "  4. Start your own campaign:",
        f"     {shlex.join([glyphoxa, 'campaign', 'new', OWN_CAMPAIGN])}",
        f"     {shlex.join([glyphoxa, 'serve', '--open', '--campaign', OWN_CAMPAIGN])}",
        sep="\n",
        flush=True,
    )


def _short(path: Path) -> str:
    """Return the path as you would type it in the current directory."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def copy_campaign(file: Path, campaign: Campaign, out: Path) -> Path:
    """Copy the campaign file with an id of this run."""
    stamped = f"{campaign.id}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    text, n_found = re.subn(
        r"(?m)^(campaign:\n(?:[ #].*\n)*?  id:) .*$", rf"\1 {stamped}", file.read_text("utf-8"), count=1
    )
    if not n_found:
        raise InvalidInput(f"{file}: the demo needs `id:` under `campaign:`, each on a line of its own")
    copied = out / "campaign.yaml"
    copied.write_text(text, "utf-8")
    return copied


def write_evening(out: Path, evening: Evening, campaign: Campaign, played: list[SessionPlayed]) -> Figures:
    """Write the three output files and print the summary."""
    sound = {p.number: read_recording(session_wav(out, p.number), rate_hz=RATE_HZ).pcm for p in played}
    found = figures(evening, campaign, played)
    write_wav(out / "evening.wav", BETWEEN_SESSIONS.join(sound.values()), rate_hz=RATE_HZ)
    (out / "evening.json").write_text(json.dumps(evening_json(found, played), indent=1, ensure_ascii=False), "utf-8")
    titles = {session.number: session.title for session in evening.sessions}
    (out / "evening.html").write_text(page(campaign, found, played, sound, titles=titles), "utf-8")
    programme = ConsoleReport(campaign)
    programme.summary(found, played)
    for name in ("evening.html", "evening.wav", "evening.json"):
        programme.note(f"  {out / name}")
    return found


def _clear(out: Path, evening: Evening) -> None:
    """Delete the output of an earlier run, so that its sessions are not mistaken for new ones."""
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in ("evening.wav", "evening.html", "evening.json"):
        (out / name).unlink(missing_ok=True)
    for session in evening.sessions:
        session_json(out, session.number).unlink(missing_ok=True)
        session_wav(out, session.number).unlink(missing_ok=True)


def _run_session(run: Run, number: int, campaign_file: Path) -> int:
    """Run a session's process until it ends. On Ctrl-C, close its standard input, so that it shuts down in order.

    The process has its own process group. Otherwise the terminal's Ctrl-C would reach it a second time.
    """
    command = [sys.executable, "-m", "demo", "--script", str(run.script), "--out", str(run.out), "--opener", run.opener]
    command += ["--config", str(run.config.resolve())]
    command += ["session", "--number", str(number), "--campaign", str(campaign_file)]
    root = str(Path(__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)
    with _interruptible():
        try:
            return process.wait()
        except KeyboardInterrupt:
            assert process.stdin is not None
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(timeout=CLOSING_S)
            return STOPPED
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM end an evening as Ctrl-C does."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_WITHIN_S: Final = 60.0
_ASKED: Final = (
    ("A recap for the players", ("show", "recap", "{session}")),
    ("A recap for the game master", ("show", "recap", "{session}", "--dm", "--tokens", "300")),
    ("Facts that need review", ("facts", "review")),
)


def show_recaps(config: Path, campaign: CampaignId, session: str, note: Callable[[str], None]) -> None:
    """Run each command and print its output. A command that fails is reported and does not stop the evening."""
    for title, words in _ASKED:
        asked = [word.format(session=session) for word in words]
        note("")
        note(f"{title}: glyphoxa {' '.join(asked)}")
        command = [sys.executable, "-m", "glyphoxa.cli.main", *asked, "--campaign", campaign, "--config", str(config)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
        except subprocess.TimeoutExpired:
            note("  no answer within one minute")
            continue
        for line in (done.stdout if done.returncode == 0 else done.stderr).splitlines():
            note(f"  {line}")
