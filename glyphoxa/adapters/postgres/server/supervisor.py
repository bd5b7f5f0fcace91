"""Stops an embedded server when its last client is gone.

Run as `python -m glyphoxa.adapters.postgres.server.supervisor DIR`.

Every client holds a shared lock on the lease file while it lives; the kernel releases it however the client ends. This
process waits for the exclusive lock without polling: acquiring it means that no client is left.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from io import TextIOWrapper
from pathlib import Path

import psutil

from glyphoxa.domain.files import lock_nowait

LEASE, SUPERVISOR, START, LAUNCHING = ".lease", ".supervisor", ".start", ".launching"
_STOP_TIMEOUT_S = 60.0
_TAKE_TIMEOUT_S = 2.0
_LAUNCH_TIMEOUT_S = 5.0
_POLL_S = 0.02


def postmaster_pid(data: Path) -> int | None:
    """Process id of the live server of this data directory, or None. Detects reused ids."""
    try:
        pid = int((data / "postmaster.pid").read_text().split(maxsplit=1)[0])
        return pid if _is_server(psutil.Process(pid), data) and is_alive(pid) else None
    except (OSError, ValueError, IndexError, psutil.NoSuchProcess):
        return None


def _is_server(process: psutil.Process, data: Path) -> bool:
    try:
        return bool(process.cwd() == str(data.resolve()))
    except psutil.AccessDenied:
        return bool(process.name() == "postgres")


def is_alive(pid: int) -> bool:
    """Whether a process with this id runs (zombies do not count)."""
    try:
        return psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


def lock(file: TextIOWrapper, how: int, *, give_up: float) -> bool:
    """Lock an open file, `fcntl.LOCK_SH` or `LOCK_EX`.

    Args:
        give_up: Time on the monotonic clock at which False is returned if another process holds it.
    """
    while not lock_nowait(file, how):
        if time.monotonic() > give_up:
            return False
        time.sleep(_POLL_S)
    return True


def stop(data: Path) -> None:
    """Fast shutdown: open transactions are rolled back, committed data are kept."""
    pid = postmaster_pid(data)
    if pid is None:
        return
    give_up = time.monotonic() + _STOP_TIMEOUT_S
    os.kill(pid, signal.SIGINT)
    while postmaster_pid(data) == pid:
        if time.monotonic() > give_up:
            os.kill(pid, signal.SIGQUIT)  # immediate: recovers from its log at the next start
            give_up += _STOP_TIMEOUT_S
        time.sleep(_POLL_S)


def _wait_for_launched(directory: Path) -> None:
    """Wait for a server that the last client was starting when it was killed."""
    launching = directory / LAUNCHING
    give_up = time.monotonic() + _LAUNCH_TIMEOUT_S
    while launching.exists() and postmaster_pid(directory / "pgdata") is None and time.monotonic() < give_up:
        time.sleep(_POLL_S)
    launching.unlink(missing_ok=True)


def supervise(directory: Path) -> None:
    # Open this first, so that the kernel closes it first if we are killed: a client that gets the lease must not
    # see a supervisor that is about to exit.
    with (directory / SUPERVISOR).open("a") as mine:
        # There may be a supervisor, or a client that holds the lock briefly to look for one.
        if not lock(mine, fcntl.LOCK_EX, give_up=time.monotonic() + _TAKE_TIMEOUT_S):
            return
        with (directory / LEASE).open("a") as lease:
            fcntl.flock(lease, fcntl.LOCK_EX)
            _wait_for_launched(directory)
            stop(directory / "pgdata")
            fcntl.flock(mine, fcntl.LOCK_UN)


if __name__ == "__main__":
    supervise(Path(sys.argv[1]))
