"""The plug-in of docs/building.md, installed as a package and used; and plug-ins that cannot be used."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.test_serve_ends import a_table, ended, said_at, settings_file
from tests.support.forked import forked_command
from tests.support.patience import DEADLINE_S
from tests.support.proof import IS_PROOF

PAGE = (Path(__file__).parents[2] / "docs" / "building.md").read_text("utf-8")
SECTION = PAGE.partition("\n## Your own plug-in\n")[2].partition("\n## ")[0]
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL))


class Done(NamedTuple):
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def glyphoxa(site: Path, *arguments: object) -> Done:
    """Run the command line with the packages in a directory, besides those of this installation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site))
        patch.setenv("GLYPHOXA_DATA", str(site / "data"))
        if not IS_PROOF:
            return Done(*forked_command(*arguments))
        command = [Path(sys.executable).with_name("glyphoxa"), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the package of the page is installed: by pip in `make proof`, else without building it."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name, text in FILES.items():
        for directory in (source,) if IS_PROOF else (source, site):
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text, "utf-8")
    if IS_PROOF:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target"]
        subprocess.run([*pip, site, source], check=True, timeout=DEADLINE_S)
    else:
        project = tomllib.loads(FILES["pyproject.toml"])["project"]
        [(name, value)] = project["entry-points"]["glyphoxa.plugins"].items()
        declared(site, project["name"], project["version"], f"{name} = {value}")
    return site


def test_command_of_a_plugin_reads_its_section(site: Path, tmp_path: Path) -> None:
    settings = tmp_path / "glyphoxa.yaml"
    settings.write_text("bell: {sound: dong}\n")
    assert glyphoxa(site, "bell").stdout == "ding\n"
    assert glyphoxa(site, "bell", "--config", settings).stdout == "dong\n"
    assert re.search(r"^  bell +ring the bell of the tavern$", glyphoxa(site, "--help").stdout, re.MULTILINE)


def test_observer_follows_an_open_table_though_another_raises(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{tmp_path}")
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(observers=['gong:o'])\ndef o(_): raise RuntimeError('cracked')")
    settings = settings_file(tmp_path)
    settings.write_text(f"{settings.read_text()}bell: {{rings: true}}\n")
    with a_table("", settings) as process:
        said_at(process, "Grimjaw, are you there?")
        process.send_signal(signal.SIGTERM)
        code, errors = ended(process)
    assert (code, "ding" in errors.splitlines()) == (0, True)
    assert "plug-in 'gong' of gong 2.0 cannot be used: gong:o: RuntimeError: cracked" in errors


def test_observers_are_told_the_lag_though_one_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(observers=['gong_follows:Cracked', 'gong_follows:Whole'])")
    (tmp_path / "gong_follows.py").write_text(
        "import os, signal\nfrom glyphoxa.observability import Observer\n"
        "class Cracked(Observer):\n    def __init__(self, _): ...\n"
        "    def lagged(self, late_s): raise RuntimeError('cracked')\n"
        "class Whole(Cracked):\n    n = 0\n    def lagged(self, late_s):\n        self.n += 1\n"
        "        if self.n == 2: os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    with a_table("", settings_file(tmp_path)) as process:
        code, errors = ended(process)
    assert (code, "will not be restarted" in errors, "cracked" in errors) == (0, False, True)


@pytest.mark.parametrize("part", ["tools", "pages"])
def test_part_that_raises_when_a_table_opens_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    a_distribution(tmp_path, "gong", f"PLUGIN = Plugin({part}=['gong:o'])\ndef o(*_): raise RuntimeError('cracked')")
    with a_table("", settings_file(tmp_path)) as process:
        code, errors = ended(process)
    why = "gong:o: RuntimeError: cracked; repair or uninstall it"
    assert (code, errors) == (1, f"glyphoxa: plug-in 'gong' of gong 2.0 cannot be used: {why}\n")


def test_check_that_raises_is_one_line_and_hides_no_other(tmp_path: Path) -> None:
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(checks=['gong:c'])\ndef c(*_): raise RuntimeError('sk-secret')")
    done = glyphoxa(tmp_path, "config", "check")
    told = " ".join(done.stdout.split())
    assert "error plug-in plug-in 'gong' of gong 2.0: gong:c raised RuntimeError" in told
    assert (done.returncode, "ok llm" in told, "sk-secret" in told) == (1, True, False)


def test_mistake_in_a_section_of_a_plugin_is_reported_at_its_line(site: Path, tmp_path: Path) -> None:
    settings = tmp_path / "glyphoxa.yaml"
    settings.write_text("bell:\n  sond: dong\n")
    assert (
        f"{settings}:2: unknown key 'sond', did you mean 'sound'?"
        in glyphoxa(site, "bell", "--config", settings).stderr
    )


def test_settings_page_has_the_section_of_a_plugin(site: Path) -> None:
    shown = glyphoxa(site, "config", "reference").stdout
    assert "## bell\n\nThe bell of the tavern.\n" in shown
    assert "| `sound` | text | `ding` |  | What the bell says. |" in shown


def a_distribution(site: Path, name: str, declaration: str) -> None:
    """Install a package of one module, which declares a plug-in."""
    (site / f"{name}.py").write_text(f"from glyphoxa.plugin import Command, Plugin\n{declaration}\n")
    declared(site, name, "2.0", f"{name} = {name}:PLUGIN")


def declared(site: Path, name: str, version: str, plugin: str = "") -> None:
    """Write the metadata of an installed package and of the plug-in that it declares."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if plugin:
        (info / "entry_points.txt").write_text(f"[glyphoxa.plugins]\n{plugin}\n")


@pytest.mark.parametrize(
    ("declaration", "why"),
    [
        ("raise OSError('no bell')", "gong:PLUGIN: OSError: no bell"),
        ("import nowhere_at_all", "gong:PLUGIN: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("PLUGIN = 1", "gong:PLUGIN: TypeError: it is no glyphoxa.plugin.Plugin"),
        ("PLUGIN = Plugin(colour='red')", "gong:PLUGIN: TypeError: "),
        ("PLUGIN = Plugin(observers='gong:o')", "gong:PLUGIN: TypeError: observers must be a list of 'module:name'"),
        ("PLUGIN = Plugin(commands={'gong': 'gong:V'})", "gong:PLUGIN: TypeError: commands must be a dict of names"),
    ],
)
def test_broken_declaration_is_one_line_with_its_package(tmp_path: Path, declaration: str, why: str) -> None:
    a_distribution(tmp_path, "gong", declaration)
    for arguments in ("--help", "gong"):
        done = glyphoxa(tmp_path, arguments)
        assert done.returncode == 1
        assert done.stderr.startswith(f"glyphoxa: plug-in 'gong' of gong 2.0 cannot be used: {why}")
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["gong.missing:VERB", "gong:PLUGIN"])
def test_verb_that_cannot_be_imported_is_named_in_one_line(tmp_path: Path, verb: str) -> None:
    command = f"Command('play', '{verb}', 'strike', 'gong')"
    a_distribution(tmp_path, "gong", f"PLUGIN = Plugin(commands={{'gong': {command}}})")
    done = glyphoxa(tmp_path, "gong")
    assert done.stderr.startswith(f"glyphoxa: plug-in 'gong' of gong 2.0 cannot be used: {verb}: ")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ("class S: ...", "TypeError: it is no subclass of glyphoxa.config.sections.Section"),
        ("from pydantic import BaseModel as S", "TypeError: it is no subclass of glyphoxa.config.sections.Section"),
        (
            "from glyphoxa.config.sections import Section\nclass S(Section):\n    a: int",
            "ValidationError: 1 validation",
        ),
    ],
)
def test_section_that_cannot_be_used_is_one_line(tmp_path: Path, section: str, why: str) -> None:
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(settings={'gong': 'gong_section:S'})")
    (tmp_path / "gong_section.py").write_text(section)
    (tmp_path / "glyphoxa.yaml").write_text("campaign: c.yaml\n")
    done = glyphoxa(tmp_path, "config", "check", tmp_path / "glyphoxa.yaml")
    assert done.stderr.startswith(f"glyphoxa: plug-in 'gong' of gong 2.0 cannot be used: gong_section:S: {why}")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    ("declaration", "what"),
    [
        ("commands={'strike': Command('play', 'gong:VERB', 'strike', 'strike')}", "'strike' in their commands"),
        ("settings={'strike': 'gong:Strike'}", "'strike' in their settings"),
    ],
)
def test_name_that_two_plugins_have_names_both(tmp_path: Path, declaration: str, what: str) -> None:
    for name in ("gong", "bell"):
        a_distribution(tmp_path, name, f"PLUGIN = Plugin({declaration})")
    settings = tmp_path / "glyphoxa.yaml"
    settings.write_text("campaign: c.yaml\n")
    done = glyphoxa(tmp_path, "strike" if "commands" in declaration else "config", "check", settings)
    both = "plug-in 'bell' of bell 2.0 and plug-in 'gong' of gong 2.0 both have"
    assert done.stderr == f"glyphoxa: {both} {what}: uninstall one of them\n"


def test_plugin_cannot_take_a_name_of_glyphoxas_own(tmp_path: Path) -> None:
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(commands={'serve': Command('play', 'gong:V', 'serve', 'serve')})")
    done = glyphoxa(tmp_path, "--help")
    assert done.stderr == (
        "glyphoxa: Glyphoxa and plug-in 'gong' of gong 2.0 both have 'serve' in their commands: uninstall one of them\n"
    )


def test_section_cannot_have_the_name_of_an_attribute_of_the_settings(tmp_path: Path) -> None:
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(settings={'chain': 'gong:Chain'})")
    (tmp_path / "glyphoxa.yaml").write_text("campaign: c.yaml\n")
    assert glyphoxa(tmp_path, "config", "check", tmp_path / "glyphoxa.yaml").stderr == (
        "glyphoxa: Glyphoxa and plug-in 'gong' of gong 2.0 both have 'chain' in their settings: uninstall one of them\n"
    )


def test_installation_without_entry_points_says_what_to_do(tmp_path: Path) -> None:
    declared(tmp_path, "glyphoxa", "0.1.0")
    done = glyphoxa(tmp_path, "serve", "--campaign", Path(__file__).parents[2] / "demo" / "campaign.yaml")
    assert "no engine is installed: reinstall glyphoxa" in done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_plugin_cannot_take_an_action_that_is_there(tmp_path: Path) -> None:
    a_distribution(tmp_path, "gong", "PLUGIN = Plugin(actions={'campaign': 'gong_verb:OUT'})")
    (tmp_path / "gong_verb.py").write_text(
        "from glyphoxa.cli.campaign import VERB\nfrom glyphoxa.cli.verb import Verb, at_once\n"
        "OUT = Verb(at_once, of=VERB)\n@OUT.action('strike', name='vault')\ndef _vault(_): ...\n"
    )
    why = "gong_verb:OUT: ValueError: there already is an action 'vault'; repair or uninstall it"
    assert glyphoxa(tmp_path, "campaign").stderr == f"glyphoxa: plug-in 'gong' of gong 2.0 cannot be used: {why}\n"
