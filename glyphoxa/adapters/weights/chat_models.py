"""Chat models of the user's choice: any GGUF file, by its path or by its name on the hub.

A file of the hub is pinned when it is fetched for the first time: what the hub declares then (size and SHA-256) is
what the name stands for, until the user asks to pin it anew. A file by its path is what it is; its hash tells it from
every other, so that nothing that was kept for one model is used for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from glyphoxa.adapters.weights.declared import declared
from glyphoxa.adapters.weights.files import Stamps, naming_disk_troubles
from glyphoxa.adapters.weights.hub import ModelHub
from glyphoxa.adapters.weights.manifest import Artefact, HubFile, Manifest, WeightFile, own_manifest
from glyphoxa.adapters.weights.pins import Pins
from glyphoxa.adapters.weights.progress import Progress
from glyphoxa.adapters.weights.store import WeightStore, default_directory
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound
from glyphoxa.providers.gguf_names import hub_name, is_a_path, wrong_gguf_name

PINS: Final = "models.json"
"""In the data directory."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """
    Attributes:
        sha256: Of its bytes, as they were when they were read last; empty for what is several files.
    """

    path: Path
    sha256: str


class ModelWeights:
    """Every model of this machine: those of the manifest, those of the hub that are pinned, and files by their path.

    Args:
        data_directory: Keeps what is pinned.
        directory: As `WeightStore`.
        manifest, hub: As `WeightStore`.
    """

    def __init__(
        self,
        data_directory: Path,
        directory: Path | None = None,
        *,
        manifest: Manifest | None = None,
        hub: ModelHub | None = None,
    ) -> None:
        self._pins = Pins(data_directory / PINS)
        self._directory = directory
        self._hub = hub or ModelHub()
        self._own = manifest or own_manifest()

    @property
    def store(self) -> WeightStore:
        """What has a name, the hub's included as far as they are pinned by now.

        Raises:
            Corrupt: What is kept of the pinned ones cannot be read.
        """
        pinned = {name: _artefact(name, file) for name, file in self._pins.all().items()}
        artefacts = {**self._own.artefacts, **pinned}
        return WeightStore(self._directory, manifest=Manifest(artefacts=artefacts), hub=self._hub)

    def ensure(
        self,
        names: Iterable[str],
        progress: Progress | None = None,
        *,
        copy_from: Path | None = None,
        anew: bool = False,
    ) -> dict[str, Path]:
        """As `WeightStore.ensure`, also for names of the hub.

        Args:
            anew: What the hub declares of its own now replaces what was pinned.

        Raises:
            Corrupt: Besides: the hub declares another file than it did.
        """
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if hub_name(name) is not None and (anew or not self._is_here(name)):
                self._pin(name, anew=anew)
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
        if name in self._own.artefacts:
            return self._named(name)
        if wrong := wrong_gguf_name(name):
            raise InvalidInput(f"model {wrong}")
        if hub_name(name) is None:
            return self._by_path(Path(name).expanduser())
        if self._pins.of(name) is None:
            raise NotFound(f"{name}: the model is not here; fetch it with `glyphoxa models fetch {name}`")
        return self._named(name)

    def has(self, name: str) -> bool:
        """Whether it is here, told without reading it."""
        if is_a_path(name):
            return Path(name).expanduser().is_file()
        states = {status.name: status.state for status in self.store.status()}
        return states.get(name) in ("ready", "unverified")

    def _named(self, name: str) -> ModelFile:
        store = self.store
        files = store.artefact(name).files
        return ModelFile(store.path(name), files[0].sha256 if len(files) == 1 else "")

    def _by_path(self, path: Path) -> ModelFile:
        if not path.is_file():
            raise NotFound(f"{path}: no such model file")
        stamps = Stamps((self._directory or default_directory()) / ".verified")
        with naming_disk_troubles(path):
            return ModelFile(path, stamps.sha256_of(path))

    def _is_here(self, name: str) -> bool:
        return self._pins.of(name) is not None and self.store.is_here(name)

    def _pin(self, name: str, *, anew: bool) -> None:
        repo, file = hub_name(name) or ("", "")
        if wrong := wrong_gguf_name(name):
            raise InvalidInput(f"model {wrong}")
        pinned = self._pins.of(name)
        now = declared(self._hub.address, HubFile(repo=repo, file=file), name=name)
        if pinned is not None and now.sha256 != pinned.sha256 and not anew:
            raise Corrupt(
                f"{name}: the hub declares another file than before: SHA-256 {now.sha256}, and {pinned.sha256} is"
                f" pinned; if its publisher meant that, take the new one with `glyphoxa models fetch --anew {name}`"
            )
        self._pins.put(name, now)


def _artefact(name: str, file: WeightFile) -> Artefact:
    return Artefact(
        what="language model of the hub", licence="see the hub", publisher=name.partition("/")[0], files=(file,)
    )
