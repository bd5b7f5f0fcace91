"""Which files a model consists of, which bytes they must be, and who may give them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Annotated, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from glyphoxa.domain.errors import InvalidInput

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""One plain path component: a manifest cannot write elsewhere."""

ArtefactName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]
"""Plain path components: what is fetched goes into a directory of that name."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubFile(_Strict):
    """A file in its publisher's repository on the model hub."""

    repo: str
    file: str
    revision: str = "main"


class PackagePart(_Strict):
    """A stretch of a file: one member of a package's wheel in the package index, and its size in bytes."""

    package: FileName
    version: FileName
    member: str
    size: int = Field(gt=0)


class WeightFile(_Strict):
    """A file and who may give its bytes. `packages` hold it in order, to be joined."""

    name: FileName
    size: int = Field(gt=0)
    sha256: Sha256
    hub: HubFile | None = None
    packages: tuple[PackagePart, ...] = ()

    @model_validator(mode="after")
    def _packages_make_up_the_file(self) -> Self:
        if self.packages and (joined := sum(piece.size for piece in self.packages)) != self.size:
            raise ValueError(f"the packages of {self.name} hold {joined} bytes, and it has {self.size}")
        return self


class Artefact(_Strict):
    """Weights that belong together, under the name that the settings use."""

    what: str
    licence: str
    publisher: str
    files: tuple[WeightFile, ...] = Field(min_length=1)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class Manifest(_Strict):
    artefacts: Mapping[ArtefactName, Artefact]


def read_manifest(text: str, *, where: str) -> Manifest:
    """The artefacts that a manifest names.

    Raises:
        InvalidInput: It is not a manifest; `where` it came from is part of the message.
    """
    try:
        return Manifest.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise InvalidInput(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def own_manifest() -> Manifest:
    """The manifest that comes with the program."""
    name = "manifest.yaml"
    return read_manifest(resources.files("glyphoxa.adapters.weights").joinpath(name).read_text("utf-8"), where=name)
