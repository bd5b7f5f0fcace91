"""The data directory of an embedded server: a database cluster, in PostgreSQL's words."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

from glyphoxa.adapters.postgres.server.binaries import Account, Binaries
from glyphoxa.domain.errors import InvalidInput, Unavailable

ELSEWHERE: Final = "choose another data directory (GLYPHOXA_DATA or data_dir in the settings)"


def create_cluster(data: Path, binaries: Binaries, *, is_synced: bool) -> None:
    """Make the data directory, or check the one that is there. It is initialised beside its place, so that a half-made
    one is never taken for data.

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
    """Whether the data directory is there. Nothing is written.

    Raises:
        InvalidInput: As `create_cluster`.
    """
    version = data / "PG_VERSION"
    if version.exists():
        stored = version.read_text().strip()
        if stored != binaries.major:
            raise InvalidInput(
                f"{data} was written by PostgreSQL {stored}; the programs here are {binaries.major}: "
                f"set PG_BIN to programs of version {stored}, or dump and restore"
            )
        _check_owner(data, binaries.account)
        return True
    if data.exists() and any(data.iterdir()):
        raise InvalidInput(f"{data} holds files that are not PostgreSQL's; {ELSEWHERE}")
    return False


def give(path: Path, account: Account) -> None:
    """Make the server's account its owner."""
    if account.uid is not None and account.gid is not None:
        os.chown(path, account.uid, account.gid)


def server_environment() -> dict[str, str]:
    """What the user has set for other servers (PG...) is not for this one."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def telling_line(output: str) -> str:
    """The last line that speaks of an error, else the last."""
    lines = [line for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search("FATAL|PANIC|error|could not", line)]
    return (telling or lines or ["it says nothing"])[-1].strip()


def _check_owner(data: Path, account: Account) -> None:
    """A copy that root made is root's, and PostgreSQL does not run as root."""
    if account.uid is not None and data.stat().st_uid != account.uid:
        raise InvalidInput(
            f"{data} belongs to root, and PostgreSQL does not run as root but as {account.name!r}: "
            f"`chown -R {account.name} {shlex.quote(str(data))}`, or copy it with `cp -a`"
        )
