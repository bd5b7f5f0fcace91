"""The bill of materials: what an installation is made of, as CycloneDX 1.6 (JSON). The same locks make the same bytes.

The known generator for Python would bring 28 packages, and reads from locks neither licences nor models.
"""

from __future__ import annotations

import json
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from glyphoxa.adapters.weights.download import Artefact, WeightFile, own_manifest
from tests.support.supply.licences import BUNDLED, licence_of, terms_of
from tests.support.supply.locks import PROJECT, ROOT, LockedPackage, locked

Json = dict[str, Any]

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "glyphoxa.sbom")


def bill() -> str:
    """The whole document, with a newline at its end."""
    packages, models = locked(), own_manifest().artefacts
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    root = f"pkg:pypi/{PROJECT}@{version}"
    parts = [*map(_package, packages), *(_model(name, models[name]) for name in sorted(models))]
    document: Json = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": PROJECT,
                "version": version,
                "licenses": _licences("Apache-2.0"),
                "purl": root,
            }
        },
        "components": sorted(parts, key=lambda part: part["bom-ref"]),
        "dependencies": _dependencies(root, packages, models=sorted(models)),
    }
    # Of the contents: two bills with one number are the same bill.
    number = uuid.uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return json.dumps({**document, "serialNumber": f"urn:uuid:{number}"}, indent=2, sort_keys=True) + "\n"


def _package(package: LockedPackage) -> Json:
    told = {"glyphoxa:lock": f"requirements/{package.lock}.txt", "glyphoxa:marker": package.marker}
    told["glyphoxa:bundled"] = BUNDLED.get(package.name, "")
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "scope": "required" if package.lock == "app" else "excluded",
        "hashes": _hashes(package.sha256),
        "licenses": _licences(licence_of(package.name)),
        "properties": _properties(told),
    }


def _model(name: str, model: Artefact) -> Json:
    """One without a revision of its hub has no version: its files' hashes tell which one it is."""
    revisions = {file.hub.revision for file in model.files if file.hub is not None}
    version = {"version": ", ".join(sorted(revisions))} if revisions - {"main"} else {}
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{name}",
        "name": name,
        **version,
        "publisher": model.publisher,
        "description": model.what,
        "scope": "optional",
        "licenses": _licences(model.licence),
        "components": [_file(name, file) for file in sorted(model.files, key=lambda file: file.name)],
    }


def _file(model: str, file: WeightFile) -> Json:
    hub = f"{file.hub.repo}@{file.hub.revision}:{file.hub.file}" if file.hub is not None else ""
    return {
        "type": "file",
        "bom-ref": f"model:{model}/{file.name}",
        "name": file.name,
        "hashes": _hashes([file.sha256]),
        "properties": _properties({"glyphoxa:bytes": str(file.size), "glyphoxa:hub": hub}),
    }


def _hashes(sha256: Iterable[str]) -> list[Json]:
    return [{"alg": "SHA-256", "content": each} for each in sha256]


def _licences(expression: str) -> list[Json]:
    """A single SPDX id as such; anything longer as an expression, which CycloneDX keeps apart."""
    if not expression:
        return []
    terms = [term for choice in terms_of(expression) for term in choice]
    return [{"license": {"id": expression}}] if terms == [expression] else [{"expression": expression}]


def _properties(told: dict[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in sorted(told.items()) if value]


def _dependencies(root: str, packages: Sequence[LockedPackage], *, models: Sequence[str]) -> list[Json]:
    """Each with what it needs. A name of two versions, for two Pythons, stands for both."""
    refs: dict[str, list[str]] = {PROJECT: [root]}
    for package in packages:
        refs.setdefault(package.name, []).append(package.purl)
    needs: dict[str, set[str]] = {ref: set() for each in refs.values() for ref in each}
    for package in packages:
        for wanting in package.wanted_by:
            for ref in refs[wanting]:
                needs[ref].add(package.purl)
    needs[root] |= {f"model:{name}" for name in models}
    needs |= {f"model:{name}": set() for name in models}
    return [{"ref": ref, "dependsOn": sorted(needs[ref] - {ref})} for ref in sorted(needs)]
