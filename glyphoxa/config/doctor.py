"""Check the machine and the installation that a table is to be opened on. Checks run side by side, with deadlines.

A check is a function that gives findings (see `glyphoxa.config.check`): each is `ok`, or a problem with its remedy.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from socket import gethostname
from typing import Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from rich.filesize import decimal

from glyphoxa.config.check import Finding, Level
from glyphoxa.config.recipients import HERE
from glyphoxa.config.sections import ServerSettings
from glyphoxa.domain.errors import GlyphoxaError, counted

RELEASED: Final = datetime(2026, 11, 1, tzinfo=UTC)
"""No clock that is right shows an earlier time to this version."""
_YEARS: Final = 30
"""A clock that is so far behind `RELEASED` is wrong, too."""
_A_ZONE: Final = "Europe/Berlin"
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
_LEAST_FREE: Final = 300_000_000
"""Bytes: with less, a database soon takes no more writes."""
_WELL_FREE: Final = 2_000_000_000
"""Bytes: a database's write-ahead log may take this much for a time."""


@dataclass(frozen=True, slots=True)
class Check:
    """
    Attributes:
        look: May block, and may raise: see `examined`.
        if_late: Advice for when it does not return in time.
    """

    subject: str
    look: Callable[[], Iterable[Finding]]
    if_late: str
    within_s: float


def examined(checks: Sequence[Check]) -> list[Finding]:
    """Run checks side by side, each in its own thread, and return what they find, in their order.

    A check that raises, or does not return in time, is one finding of its own, and the others are not disturbed. What
    does not return is left behind, and does not keep the process from ending.
    """
    began_s = time.monotonic()
    running = [(check, _begun(check)) for check in checks]
    found: list[Finding] = []
    for check, answer in running:
        try:
            found += answer.get(timeout=max(0.0, began_s + check.within_s - time.monotonic()))
        except queue.Empty:
            text = f"not checked: no answer within {check.within_s:g} s: {check.if_late}"
            found.append(Finding("error", check.subject, text))
    return found


def _begun(check: Check) -> queue.SimpleQueue[list[Finding]]:
    answer: queue.SimpleQueue[list[Finding]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answer.put(_looked(check)), name=f"check-{check.subject}", daemon=True).start()
    return answer


def _looked(check: Check) -> list[Finding]:
    try:
        return list(check.look())
    except GlyphoxaError as error:
        return [Finding("error", check.subject, str(error))]
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return [Finding("error", check.subject, f"not checked: {error.strerror or type(error).__name__}{place}")]
    except Exception as error:  # one check that breaks must not keep the others from being told
        # Not its message: that may hold what nobody shall read.
        text = f"not checked: {type(error).__name__}, a bug in Glyphoxa: please report it"
        return [Finding("error", check.subject, text)]


def clock(now: datetime | None = None) -> Iterator[Finding]:
    """Check that this machine's time can be right, and that it knows time zones."""
    now = now or datetime.now(UTC)
    here = f"{now:%Y-%m-%d %H:%M} UTC"
    if not RELEASED <= now < RELEASED.replace(year=RELEASED.year + _YEARS):
        yield Finding(
            "error", "clock", f"it shows {here}, which is wrong: set it, for example with `timedatectl set-ntp true`"
        )
    elif not time.get_clock_info("monotonic").monotonic:
        yield Finding("error", "clock", "this system's monotonic clock goes backwards: use another system")
    else:
        yield Finding("ok", "clock", here)
    try:
        ZoneInfo.no_cache(_A_ZONE)
    except (ZoneInfoNotFoundError, OSError):
        yield Finding("error", "clock", "this system has no time zone data: run `pip install tzdata`")


def microphone(url: str, *, is_self_signed: bool = False) -> Finding:
    """Check that browsers give the microphone to a page at that address: only to https, and to this machine itself."""
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if parts.scheme == "https":
        warned = "; browsers warn about its certificate once" if is_self_signed else ""
        return Finding("ok", "microphone", f"players open {shown}, and browsers allow it on https{warned}")
    if parts.hostname in HERE:
        return Finding("ok", "microphone", f"the table is open to this machine only, at {shown}")
    return Finding(
        "warning",
        "microphone",
        f"players open {shown}, and browsers allow it only on https and localhost: set server.tls_self_signed, "
        "server.tls_cert and server.tls_key, or server.public_url to an https address",
    )


def https(
    settings: ServerSettings, *, certificate_until: Callable[[Path | None, Path | None], datetime | None]
) -> Iterator[Finding]:
    """Check the certificate of the settings, and what their address means for the microphone.

    Args:
        certificate_until: Reads a certificate with its key: until when it is good; None where there is none.

    Raises:
        GlyphoxaError: See `certificate_until`.
    """
    until = certificate_until(settings.tls_cert, settings.tls_key)
    if until is not None and until < datetime.now(UTC):
        text = f"{settings.tls_cert} expired on {until:%Y-%m-%d}: renew it, and set server.tls_cert to the new one"
        yield Finding("error", "microphone", text)
        return
    is_secure = until is not None or settings.tls_self_signed
    host = gethostname() if settings.host in _EVERYWHERE else settings.host
    host = f"[{host}]" if ":" in host else host
    here = f"{'https' if is_secure else 'http'}://{host}" + (f":{settings.port}" if settings.port else "")
    yield microphone(settings.public_url or here, is_self_signed=until is None and not settings.public_url)


@dataclass(frozen=True, slots=True)
class DiskNeed:
    """The space that a file or folder will need.

    Attributes:
        directory: It need not be there yet.
        setting: The setting that names another directory.
        n_bytes: The least that will be written.
    """

    what: str
    directory: Path
    setting: str
    n_bytes: int = 0


def disk(rooms: Sequence[DiskNeed]) -> Iterator[Finding]:
    """Check that each directory can be written to, and that its disk has room for all that comes there."""
    places = {room.directory: _existing(room.directory) for room in rooms}
    coming: dict[int, int] = {}
    for room in rooms:
        device = places[room.directory].stat().st_dev
        coming[device] = coming.get(device, 0) + room.n_bytes
    for room in rooms:
        place = places[room.directory]
        try:
            tempfile.TemporaryFile(dir=place).close()  # it never has a name: nothing is left there
        except OSError as error:
            fault = f"{room.directory} cannot be written to ({place}: {error.strerror})"
            remedy = f"let this user write there, or set {room.setting} to another directory"
            yield Finding("error", "disk", f"{room.what}: {fault}: {remedy}")
            continue
        free, wanted = shutil.disk_usage(place).free, coming[place.stat().st_dev]
        text = f"{room.what}: {decimal(free)} free for {room.directory}"
        text += f", {decimal(wanted)} of models to download" if wanted else ""
        remedy = f"free some space, or set {room.setting} to a directory on another disk"
        if free < wanted + _LEAST_FREE:
            yield Finding("error", "disk", f"{text}, which is too little: {remedy}")
        elif free < wanted + _WELL_FREE:
            yield Finding("warning", "disk", f"{text}, which is low: {remedy}")
        else:
            yield Finding("ok", "disk", text)


def _existing(path: Path) -> Path:
    """Return the path, or the nearest directory above that exists."""
    for each in (path, *path.absolute().parents):
        with contextlib.suppress(OSError):
            if each.exists():
                return each
    return Path("/")


def memory(*, free: int, of: int, needed: int) -> Iterator[Finding]:
    """Check that the models have room in this machine's memory.

    Args:
        free, of, needed: Bytes: that a program can have, of the machine, and that models and program take.
    """
    room = f"{decimal(free)} of {decimal(of)} free, {decimal(needed)} needed"
    if needed > of:
        text = f"{room}: set a smaller model (see `glyphoxa models recommend`), or a cloud provider"
        yield Finding("error", "memory", text)
    elif needed > free:
        yield Finding("warning", "memory", f"{room}: end other programs, or set a smaller model")
    else:
        yield Finding("ok", "memory", room)


# The installation: Python's version, and the packages that Glyphoxa requires.

OLDEST: Final = (3, 11)
NEWEST: Final = (3, 14)
"""Versions of Python that Glyphoxa supports, both included."""
LOCK: Final = Path(__file__).parents[2] / "requirements" / "app.txt"
"""The lock file of a checkout; an installed package has none."""
_NAME: Final = "glyphoxa"
_NAMED: Final = 5
"""Packages in one line; of more their number is given."""


def python(version: Sequence[int] = sys.version_info[:3], *, place: str = sys.prefix) -> Iterator[Finding]:
    """Check that this version of Python is supported."""
    here = ".".join(map(str, version))
    supported = f"{_dotted(OLDEST)} to {_dotted(NEWEST)}"
    if tuple(version[:2]) < OLDEST:
        remedy = f"install Python {supported} and create a new virtual environment with it"
        yield Finding("error", "python", f"{here} in {place} is too old: {remedy}")
    elif tuple(version[:2]) > NEWEST:
        remedy = f"if something fails, create a virtual environment with Python {supported}"
        yield Finding("warning", "python", f"{here} in {place} is newer than the supported versions: {remedy}")
    else:
        yield Finding("ok", "python", f"{here} in {place}")


def packages(path: Sequence[str] | None = None, *, lock: Path = LOCK) -> Iterator[Finding]:
    """Check that all packages are installed which Glyphoxa and its installed extras require, in a checkout as locked.

    Args:
        path: Directories with packages; None is where Python looks for them.
    """
    installed = _Installed(sys.path if path is None else path)
    own = installed.find(_NAME)
    if own is None:
        yield Finding("error", "packages", f"{_NAME} itself is not installed: run `pip install {_NAME}`, or `make`")
        return
    extras = tuple(_extras(own, installed))
    named = ("all",) if "all" in extras else extras
    wanted = f"{_NAME}[{','.join(named)}]" if named else _NAME
    is_checkout = lock.is_file()
    remedy = f"`pip install --no-deps --require-hashes -r {lock}`" if is_checkout else f"`pip install -U '{wanted}'`"
    needed, unmet = _walked(installed, extras)
    for parent in sorted({parent for parent, _ in unmet}):
        texts = sorted({text for each, text in unmet if each == parent})
        # What others require of each other is often stricter than what they need.
        level: Level = "error" if parent == _NAME else "warning"
        yield Finding(level, "packages", f"{parent} needs {_listed(texts)}: run {remedy}")
    differing = _differing(installed, lock) if is_checkout else []
    if differing:
        yield Finding("warning", "packages", f"different from {lock}: {_listed(differing)}: run {remedy}")
    if not unmet and not differing:
        locked = f", as in {lock}" if is_checkout else ""
        yield Finding("ok", "packages", f"{wanted} {own.version}, with {counted(len(needed), 'package')}{locked}")


@dataclass(frozen=True, slots=True)
class _Package:
    version: str
    extras: tuple[str, ...]
    requirements: tuple[Requirement, ...]

    def required(self, extras: AbstractSet[str]) -> list[Requirement]:
        """Return what is required on this machine with these extras."""
        return [each for each in self.requirements if _applies(each, {"", *extras})]


class _Installed:
    """Packages by their name, read once each: that takes milliseconds."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = list(path)
        self._found: dict[str, _Package | None] = {}

    def find(self, name: str) -> _Package | None:
        name = canonicalize_name(name)
        if name not in self._found:
            first = next(iter(distributions(name=name, path=self._path)), None)
            self._found[name] = None if first is None else _read(first)
        return self._found[name]

    def has(self, wanted: Requirement) -> bool:
        """Return whether it is installed with its extras, in any version."""
        found = self.find(wanted.name)
        return found is not None and all(self.find(each.name) for each in found.required(wanted.extras))

    def fault(self, wanted: Requirement) -> str:
        """Return what is wrong with the installed version; empty if nothing is."""
        found = self.find(wanted.name)
        if found is None:
            return f"{wanted.name}{wanted.specifier}, which is not installed"
        if not wanted.specifier.contains(found.version, prereleases=True):
            return f"{wanted.name}{wanted.specifier}, and {found.version} is installed"
        return ""


def _extras(own: _Package, installed: _Installed) -> Iterator[str]:
    """Yield the extras whose packages are all installed, in any version."""
    always = own.required(frozenset())
    for extra in own.extras:
        added = [each for each in own.required({extra}) if each not in always]
        is_sum = any(canonicalize_name(each.name) == _NAME for each in added)  # of other extras
        if added and not is_sum and all(installed.has(each) for each in added):
            yield extra


def _walked(installed: _Installed, extras: Sequence[str]) -> tuple[set[str], set[tuple[str, str]]]:
    """Return every required package, and pairs of a package and what is wrong with one that it requires."""
    needed: set[str] = set()
    unmet: set[tuple[str, str]] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(_NAME, frozenset(extras))]
    while todo:
        name, wanted_extras = todo.pop()
        package = installed.find(name)
        if package is None or (name, wanted_extras) in seen:
            continue
        seen.add((name, wanted_extras))
        for each in package.required(wanted_extras):
            if fault := installed.fault(each):
                unmet.add((name, fault))
            else:
                needed.add(canonicalize_name(each.name))
                todo.append((canonicalize_name(each.name), frozenset(each.extras)))
    return needed - {_NAME}, unmet


def _read(distribution: Distribution) -> _Package:
    """Read a package. A requirement that cannot be read is left out."""
    told = distribution.metadata
    requirements = []
    for text in told.get_all("Requires-Dist") or ():
        try:
            requirements.append(Requirement(text))
        except InvalidRequirement:
            continue
    return _Package(told["Version"], tuple(told.get_all("Provides-Extra") or ()), tuple(requirements))


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in extras)


def _differing(installed: _Installed, lock: Path) -> list[str]:
    """Return packages whose version is not the locked one. What is not installed belongs to another extra."""
    differing = []
    for line in lock.read_text("utf-8").splitlines():
        if "==" not in line or line.startswith((" ", "#")):
            continue
        locked = Requirement(line.rstrip(" \\"))
        found = installed.find(locked.name) if _applies(locked, {""}) else None
        if found is not None and not locked.specifier.contains(found.version, prereleases=True):
            differing.append(f"{locked.name} {found.version} (locked{locked.specifier})")
    return sorted(differing)


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
