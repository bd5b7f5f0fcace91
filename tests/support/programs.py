"""Servers of others that ours has to get along with: found, or installed in CI, or a skip that says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

_ALSO = ("/usr/sbin", "/usr/local/sbin", "/sbin")
_INSTALL_WITHIN_S = 600


def program(name: str, *, package: str) -> str:
    """The path of a program.

    It is installed from the system's packages for root in CI. Elsewhere it may start as a service, which is for its
    owner to decide: the test is skipped.
    """
    found = _found(name)
    if found is None and "CI" in os.environ and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(package)
        found = _found(name)
    if found is None:
        pytest.skip(f"needs {name}: apt-get install {package}")
    return found


def _found(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *_ALSO)))


def _install(package: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    waiting = ["apt-get", "-o", f"DPkg::Lock::Timeout={_INSTALL_WITHIN_S}"]
    for command in ([*waiting, "update"], [*waiting, "install", "-y", "--no-install-recommends", package]):
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_INSTALL_WITHIN_S, check=False)
        if done.returncode:
            return
