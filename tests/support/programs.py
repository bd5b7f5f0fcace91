"""Programs of the system that tests start: found, or installed in CI, or a skip that says what to do."""

from __future__ import annotations

import os
import shutil
from functools import cache

import pytest

from tests.support.installing import CannotInstall, apt_install, first_way

_ALSO = ("/usr/sbin", "/usr/local/sbin", "/sbin")


def environ_with_system_programs() -> dict[str, str]:
    """This process's environment. Its PATH has the directories of system programs, which users often lack."""
    return {**os.environ, "PATH": os.pathsep.join((os.environ.get("PATH", os.defpath), *_ALSO))}


def program(name: str, *, package: str) -> str:
    """The path of a program.

    For root in CI it is installed from the system's packages. Elsewhere the test is skipped: a package may start a
    service, and the machine's owner decides that.
    """
    found = _sought(name, package)
    if isinstance(found, CannotInstall):
        pytest.skip(f"{found}; to run this test: apt-get install {package}")
    return found


@cache
def _sought(name: str, package: str) -> str | CannotInstall:
    def installed() -> str:
        if "CI" not in os.environ:
            raise CannotInstall("done in CI only, as it may start as a service")
        apt_install(package)
        return _found(name)

    try:
        return first_way(name, {"installed before": lambda: _found(name), "apt-get": installed})
    except CannotInstall as failed:
        return failed


def _found(name: str) -> str:
    places = environ_with_system_programs()["PATH"]
    if (found := shutil.which(name, path=places)) is None:
        raise CannotInstall(f"there is no {name} in {places}")
    return found
