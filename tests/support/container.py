"""Performs the stages of a Dockerfile without a container engine: in roots made of overlays, by chroot.

Each command has namespaces of its own for mounts and processes (`unshare`), so that what it mounts and starts ends with
it, however it ends. The container's process is process 1, as it is in Docker, and has a network of its own.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.support.dockerfile import Copy, Run, Setting, Stage
from tests.support.patience import DEADLINE_S
from tests.support.programs import environ_with_system_programs, program

_UNSHARE: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_SENT: Final = ".context"
"""Where the context is beside the stages."""


def need_overlays(place: Path) -> None:
    """Skip the test if this process may not make namespaces, or not mount overlays that are kept in `place`."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts, and changes roots")
    needed = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "chroot": "coreutils"}
    for name, package in needed.items():
        program(name, package=package)
    script = "\n".join(["set -e", *Root(Path("/"), place / "tried").mounting(), "ip link set lo up"])
    trying = [*_UNSHARE, "--net", "sh", "-c", script]
    if subprocess.run(trying, env=environ_with_system_programs(), capture_output=True, check=False).returncode:
        pytest.skip(
            f"needs the right to mount (CAP_SYS_ADMIN), and a file system in {place} that overlays can be kept in"
        )


def bare_debian(kept: Path, suite: str) -> Path:
    """Return the root of a Debian base image of `suite`; made once, in `kept`."""
    making = program("debootstrap", package="debootstrap")
    done, begun = kept / suite, kept / f"{suite}.begun"
    if not done.is_dir():
        shutil.rmtree(begun, ignore_errors=True)
        command = [making, "--variant=minbase", suite, str(begun)]
        subprocess.run(command, env=environ_with_system_programs(), check=True, stdout=subprocess.DEVNULL)
        begun.rename(done)
    return done


@contextmanager
def open_place(beside: Path | None) -> Iterator[Path]:
    """A new directory that every account may pass."""
    place = Path(tempfile.mkdtemp(prefix="glyphoxa-container-", dir=beside))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Lent:
    """A mount in the root of a command: `source` of this machine at `at`."""

    source: Path
    at: str


@dataclass
class Root:
    """The file system of one stage: an overlay on its image. `place` is on a file system that can be written over."""

    image: Path
    place: Path
    lent: Sequence[Lent] = ()

    def __post_init__(self) -> None:
        for name in ("upper", "work", "root"):
            (self.place / name).mkdir(parents=True, exist_ok=True)
        for each in self.lent:
            inside = self.place / "upper" / each.at.lstrip("/")
            if each.source.is_dir():
                inside.mkdir(parents=True, exist_ok=True)
            else:
                inside.parent.mkdir(parents=True, exist_ok=True)
                inside.touch()

    @property
    def path(self) -> Path:
        """Where it is mounted in the namespace of a command."""
        return self.place / "root"

    def mounting(self) -> list[str]:
        """Lines of a shell that mount it."""
        at = shlex.quote(str(self.path))
        options = f"lowerdir={self.image},upperdir={self.place}/upper,workdir={self.place}/work"
        lines = [
            f"mount -t overlay overlay -o {shlex.quote(options)} {at}",
            f"mount -t proc proc {at}/proc",
            f"mount --rbind /dev {at}/dev",
            f"touch {at}/etc/resolv.conf && mount --bind /etc/resolv.conf {at}/etc/resolv.conf",
        ]
        lent = (f"mount --rbind {shlex.quote(str(each.source))} {at}{shlex.quote(each.at)}" for each in self.lent)
        return [*lines, *lent]


@dataclass
class Build:
    """The stages of a Dockerfile, performed one after the other.

    Args:
        place: For what is written: it needs as much room as the images that come of it.
        context: The directory of the files, which were chosen by .dockerignore.
        lent: To each stage.
        environment: Variables of RUN besides those of the file, as a builder passes on its user's network settings.
    """

    place: Path
    context: Path
    image: Path
    lent: Sequence[Lent] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    roots: dict[str, Root] = field(default_factory=dict)

    def stage(self, stage: Stage) -> Root:
        """Perform its steps, in a new root unless `roots` has one by this name."""
        name = stage.name or "final"
        root = self.roots.setdefault(name, Root(self.image, self.place / name, self.lent))
        for step in stage.steps:
            match step:
                case Run():
                    command = in_root(root, step.setting, ["/bin/sh", "-c", step.line], self.environment)
                    perform([*root.mounting(), f"mkdir -p {root.path}{step.setting.directory}"], command)
                case Copy():
                    self._copy(step, root)
        return root

    def _copy(self, step: Copy, root: Root) -> None:
        """Copy like Docker: the contents of a directory, and everything belongs to root."""
        script = root.mounting()
        origin = self.context
        if step.stage:
            script += self.roots[step.stage].mounting()
            origin = self.roots[step.stage].path
        to = root.path / os.path.normpath(f"{step.setting.directory}/{step.to}").lstrip("/")
        for source in step.sources:
            path = os.path.normpath(f"{origin}/{source}")
            if step.stage or Path(path).is_dir():  # of a stage, directories alone: anything else fails
                path, is_into = f"{path}/.", True
            else:
                is_into = step.to.endswith("/")
            script += [
                f"mkdir -p {shlex.quote(str(to if is_into else to.parent))}",
                f"cp -a --no-preserve=ownership {shlex.quote(path)} {shlex.quote(f'{to}/' if is_into else str(to))}",
            ]
        perform(script, ["true"])


def in_root(root: Root, setting: Setting, command: Sequence[str], more: Mapping[str, str]) -> list[str]:
    """The command, in the root, as the user and with the environment of where it stands, and nothing of ours."""
    home = {"HOME": "/root" if setting.user == "root" else f"/home/{setting.user}"}
    variables = home | dict(setting.environment) | dict(more)
    pairs = [f"{name}={value}" for name, value in variables.items()]
    changed = ["chroot", f"--userspec={setting.user}:{setting.user}", str(root.path)]
    return [*changed, "/usr/bin/env", "-i", "-C", setting.directory, *pairs, *command]


def perform(mounts: Sequence[str], command: Sequence[str]) -> None:
    """Run a command after these lines of a shell.

    Raises:
        AssertionError: It failed. The message contains the end of its output.
    """
    # The shell stays: it ends with `unshare` and ends all others, while a command that became another user would go on.
    script = "\n".join(["set -e", *mounts, '"$@"', "exit"])
    done = subprocess.run(
        [*_UNSHARE, "sh", "-c", script, "sh", *command],
        env=environ_with_system_programs(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(command)}\nended with {done.returncode}:\n{done.stdout[-20_000:]}"


@dataclass
class Running:
    """A container that was started.

    Attributes:
        process: `unshare`, which ends with the code of the container's process.
    """

    root: Root
    stage: Stage
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]
    log: Path

    def wait_until_healthy(self, *, within_s: int = DEADLINE_S) -> None:
        """Perform the health check again and again, as its user, in the container.

        Args:
            within_s: Between the checks; only there to end a hang.
        """
        waited_s = 0
        while not self._is_healthy():
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)
            waited_s += 1
            assert self.process.poll() is None, f"it ended with {self.process.returncode}: {self.said()}"
            assert waited_s < within_s, f"it is not healthy: {self.said()}"

    def end(self) -> int:
        """SIGTERM, as `docker stop` sends it. Returns the code that the container's process ends with."""
        first = self._first()
        assert first is not None, f"it ended with {self.process.poll()}: {self.said()}"
        first.terminate()
        return self.process.wait(timeout=DEADLINE_S)

    def kill(self) -> None:
        """End all of it: --kill-child forgets a child that has become another user."""
        first = self._first()
        if first is not None:
            with suppress(psutil.NoSuchProcess):
                first.kill()
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def owner(self) -> int:
        """The user, by number, of the container's process."""
        first = self._first()
        assert first is not None
        return first.uids().real

    def _first(self) -> psutil.Process | None:
        with suppress(psutil.NoSuchProcess):
            return next(iter(psutil.Process(self.process.pid).children()), None)
        return None

    def _is_healthy(self) -> bool:
        first = self._first()
        if first is None:
            return False
        uid, gid = self._account()
        entering = ["nsenter", f"--target={first.pid}", "--mount", "--pid", "--net", "--root"]
        pairs = [f"{name}={value}" for name, value in (*self.stage.setting.environment, *self.environment.items())]
        command = [*entering, f"--setuid={uid}", f"--setgid={gid}", "/usr/bin/env", "-i", *pairs, *self.stage.health]
        done = subprocess.run(
            command, env=environ_with_system_programs(), capture_output=True, check=False, timeout=DEADLINE_S
        )
        return done.returncode == 0

    def _account(self) -> tuple[str, str]:
        for line in (self.root.place / "upper/etc/passwd").read_text("utf-8").splitlines():
            name, _, uid, gid, *_ = line.split(":")
            if name == self.stage.setting.user:
                return uid, gid
        raise AssertionError(f"the image has no user {self.stage.setting.user!r}")


@contextmanager
def started(
    root: Root, stage: Stage, *, command: Sequence[str], environment: Mapping[str, str], volumes: Sequence[Lent]
) -> Iterator[Running]:
    """A container of this stage.

    Args:
        command: After the entry point.
        environment: Besides what the file sets.
        volumes: Directories that are mounted into it, as they are.
    """
    mounted = Root(root.image, root.place, [*root.lent, *volumes])
    whole = in_root(mounted, stage.setting, [*stage.entrypoint, *command], environment)
    script = "\n".join(["set -e", "ip link set lo up", *mounted.mounting(), 'exec "$@"'])
    log = root.place / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*_UNSHARE, "--net", "sh", "-c", script, "sh", *whole],
            env=environ_with_system_programs(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    running = Running(mounted, stage, environment, process, log)
    try:
        yield running
    finally:
        running.kill()


def send_context(files: Sequence[object], source: Path, place: Path) -> Path:
    """Copy the files of a context. Returns where they are."""
    context = place / _SENT
    for file in files:
        (context / str(file)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / str(file), context / str(file))
    return context
