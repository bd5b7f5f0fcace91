"""Whether Python and the packages are what Glyphoxa requires, told from what is installed in a directory."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from glyphoxa.config.check import Finding
from glyphoxa.config.installation import OLDEST, packages, python

ROOT = Path(__file__).parents[3]


def install(place: Path, name: str, version: str, *requires: str, extras: Sequence[str] = ()) -> None:
    """As far as a package tells of itself."""
    folder = place / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    told = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    told += [f"Provides-Extra: {each}" for each in extras] + [f"Requires-Dist: {each}" for each in requires]
    (folder / "METADATA").write_text("\n".join(told) + "\n", "utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Glyphoxa with two packages that it needs, and an extra that is installed; another is not."""
    site = tmp_path / "site"
    site.mkdir()
    needs = [
        "numpy>=2.0",
        "ears>=1",
        "mouth[tongue]>=3; extra == 'voice'",
        "sky>=1; extra == 'far'",
        "old; python_version<'3'",
    ]
    install(site, "glyphoxa", "0.1.0", *needs, extras=("voice", "far"))
    install(site, "numpy", "2.1")
    install(site, "ears", "1.5")
    install(site, "mouth", "3.1", "tongue-tip>=1; extra == 'tongue'", extras=("tongue",))
    install(site, "tongue-tip", "1.0")
    return site


def found(site: Path, *, lock: str | None = None) -> list[Finding]:
    file = site.parent / "app.txt"
    if lock is not None:
        file.write_text(lock, "utf-8")
    return list(packages([str(site)], lock=file))


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ((3, 10, 9), "error", "is too old: install Python 3.11 to 3.14"),
        ((3, 11, 0), "ok", "3.11.0 in /venv"),
        ((3, 14, 2), "ok", "3.14.2 in /venv"),
        ((3, 15, 0), "warning", "newer than what is supported: if something fails"),
    ],
)
def test_a_version_of_python_is_supported_or_said_with_those_that_are(
    version: tuple[int, ...], level: str, words: str
) -> None:
    (finding,) = python(version, place="/venv")
    assert (finding.level, finding.subject) == (level, "python")
    assert words in finding.text


def test_the_oldest_python_is_the_one_that_the_package_asks_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert declared == f">={'.'.join(map(str, OLDEST))}"


def test_packages_that_are_all_there_are_counted_with_the_extras(site: Path) -> None:
    assert found(site) == [Finding("ok", "packages", "glyphoxa[voice] 0.1.0, with 4 packages")]


def test_a_missing_package_and_one_too_old_are_errors_with_the_command(site: Path) -> None:
    (site / "ears-1.5.dist-info").rename(site.parent / "gone")
    (site / "numpy-2.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.26\n")
    (finding,) = found(site)
    assert finding.level == "error"
    assert "ears>=1, which is not installed; numpy>=2.0, and 1.26 is installed" in finding.text
    assert "run `pip install -U 'glyphoxa[voice]'`" in finding.text


def test_an_extra_that_lacks_a_package_of_its_own_is_not_installed(site: Path) -> None:
    (site / "tongue_tip-1.0.dist-info").rename(site.parent / "gone")
    assert found(site) == [Finding("ok", "packages", "glyphoxa 0.1.0, with 2 packages")]


def test_what_packages_require_of_each_other_is_a_warning(site: Path) -> None:
    (site / "tongue_tip-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tongue-tip\nVersion: 0.9\n"
    )
    (finding,) = found(site)
    assert finding.level == "warning"
    assert "mouth needs tongue-tip>=1, and 0.9 is installed" in finding.text


def test_in_a_checkout_versions_are_compared_with_the_lock(site: Path) -> None:
    hashed = "numpy==2.1 \\\n    --hash=sha256:00\n    # via glyphoxa\n"
    lock = f"{hashed}ears==1.5\nsky==9\nmouth==3.1; sys_platform != 'nowhere'\n"
    (well,) = found(site, lock=lock)
    assert well.level == "ok" and well.text.endswith(f", as {site.parent / 'app.txt'} has them")
    (other,) = found(site, lock=lock.replace("ears==1.5", "ears==1.6"))
    assert other.level == "warning"
    assert "ears 1.5 (locked==1.6): run `pip install --no-deps --require-hashes -r " in other.text


def test_a_program_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    (finding,) = packages([str(tmp_path)], lock=tmp_path / "none")
    assert finding.level == "error"
    assert "run `pip install glyphoxa`" in finding.text
