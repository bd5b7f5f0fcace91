"""Everything that is locked, and every model, has a licence that is known and may be used; the bill names all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support import supply
from tests.support.supply import LOCKS, ROOT, Licensed, locked

ALL = supply.everything()


def test_every_package_and_model_has_a_licence_that_may_be_used() -> None:
    assert supply.wrong_with(ALL) == []


@pytest.mark.parametrize(
    ("licence", "says"),
    [
        ("", "not known"),
        ("AGPL-3.0-only", "refused"),
        ("GPL-3.0-or-later", "refused"),
        ("MIT AND GPL-2.0-only", "refused"),
        ("SSPL-1.0", "refused"),
        ("CC-BY-NC-4.0", "refused"),
        ("LGPL-3.0-only", "REASONS"),
        ("Ours-1.0", "REASONS"),
        ("GPL-2.0-only OR MIT", ""),
        ("MIT AND (BSD-3-Clause OR GPL-3.0-only)", ""),
    ],
)
def test_forbidden_licence_is_reported_with_its_package(licence: str, says: str) -> None:
    told = supply.wrong_with([*ALL, Licensed("newcomer", "1.0", "program", licence)])
    assert [bool(re.match("newcomer: ", line)) and says in line for line in told] == ([True] if says else [])


def test_bill_lists_pins_and_models_with_hashes_and_licences() -> None:
    text = supply.bill()
    assert text == supply.bill()
    told = json.loads(text)
    assert (told["bomFormat"], told["specVersion"], "timestamp" in text) == ("CycloneDX", "1.6", False)
    parts = {part["bom-ref"]: part for part in told["components"]}
    for package in locked():
        part = parts[package.purl]
        assert [each["content"] for each in part["hashes"]] == package.sha256 != []
        assert part["licenses"]
    models = [part for part in parts.values() if part["type"] == "machine-learning-model"]
    assert len(models) == sum(1 for one in ALL if one.kind == "model") > 0
    assert all(file["hashes"] for model in models for file in model["components"])
    known = {told["metadata"]["component"]["bom-ref"], *parts}
    assert {ref for each in told["dependencies"] for ref in (each["ref"], *each["dependsOn"])} == known


def test_a_lock_line_without_a_form_is_refused(tmp_path: Path) -> None:
    for lock in LOCKS:
        (tmp_path / f"{lock}.txt").write_text("--index-url https://index.example/\n", "utf-8")
    with pytest.raises(ValueError, match=r"app\.txt:1"):
        locked(tmp_path)


def test_every_pin_of_the_locks_is_read() -> None:
    names = {
        (name.replace("_", "-").replace(".", "-").lower(), version)
        for path in (ROOT / "requirements").glob("*.txt")
        for name, version in re.findall(r"^([\w.-]+)(?:\[.*\])?==([^\s;]+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert {(one.name, one.version) for one in locked()} == names
