"""Servers of others that ours has to get along with: found, or installed in CI, or a skip that says what to do."""

from __future__ import annotations

import os
import shutil
from functools import cache

import pytest

from tests.support.installing import CannotInstall, apt_install, first_way

_ALSO = ("/usr/sbin", "/usr/local/sbin", "/sbin")


def program(name: str, *, package: str) -> str:
    """The path of a program.

    It is installed from the system's packages for root in CI. Elsewhere it may start as a service, which is for its
    owner to decide: the test is skipped.
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
    places = os.pathsep.join((os.environ.get("PATH", ""), *_ALSO))
    if (found := shutil.which(name, path=places)) is None:
        raise CannotInstall(f"there is no {name} in {places}")
    return found
