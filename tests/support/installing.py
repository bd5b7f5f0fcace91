"""Ways to come by a program that tests need: tried in order, and each that fails says why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import platformdirs

from glyphoxa.adapters.weights.store import only_one

_WITHIN_S = 600
_LOCK_WITHIN_S = 120


class CannotInstall(Exception):
    """Its message is the reason."""


def first_way(wanted: str, ways: Mapping[str, Callable[[], str]]) -> str:
    """Return the result of the first way that works, such as a path. Print why others did not.

    Raises:
        CannotInstall: None works. Names each with its reason.
    """
    reasons: list[str] = []
    for way, attempt in ways.items():
        if reasons:
            sys.stderr.write(f"{wanted}: {reasons[-1]}; trying {way}\n")
        try:
            return attempt()
        except CannotInstall as failed:
            reasons.append(f"{way}: {failed}")
    raise CannotInstall(f"no {wanted}: {'; '.join(reasons)}")


def apt_install(package: str, *, is_root: bool | None = None) -> None:
    """Install a package of the system.

    Lists that cannot be updated, as those of one broken repository, do not stop it: the package may be in others.

    Raises:
        CannotInstall: Not root, no apt, no such package, no network, or another process holds the lock for too long.
    """
    if not (os.geteuid() == 0 if is_root is None else is_root):
        raise CannotInstall("only root can install packages")
    apt = ["apt-get", "-o", f"DPkg::Lock::Timeout={_LOCK_WITHIN_S}"]
    # Test processes beside each other: apt itself does not wait for the lock of its lists.
    with only_one(platformdirs.user_cache_path("glyphoxa") / "apt.lock", waiting=lambda: None):
        stale = ""
        try:
            run([*apt, "update"])
        except CannotInstall as failed:
            stale = f"{failed}; "
            sys.stderr.write(f"{package}: {failed}; trying the lists that are here\n")
        try:
            run([*apt, "install", "-y", "--no-install-recommends", package])
        except CannotInstall as failed:
            raise CannotInstall(f"{stale}{failed}") from failed


def run(command: Sequence[str], *, cwd: Path | None = None) -> str:
    """Return the output of a command.

    Raises:
        CannotInstall: It is not there, fails, or takes too long.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    what = " ".join(word for word in command[:4] if not word.startswith("-") and "::" not in word)
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise CannotInstall(f"{what}: {getattr(failure, 'strerror', None) or failure}") from failure
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(("W:", "npm warn"))]
        raise CannotInstall(f"{what}: {' '.join(said)[:500] or f'exit code {done.returncode}'}")
    return done.stdout
