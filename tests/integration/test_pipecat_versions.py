"""The oldest and the newest version of pipecat that the project accepts: all protocols of providers work with each."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.structure.product import PROJECT
from tests.support.proof import proof_only

SUITE = (
    "tests/structure/test_pipecat_names.py",
    *(
        f"tests/integration/test_{name}.py"
        for name in (
            "cloud_llm",
            "cloud_tts",
            "cloud_turn",
            "deepgram_wire",
            "ear",
            "key_terms",
            "mouth",
            "openai_promptness",
            "pipecat_hazards",
            "s2s",
            "s2s_providers",
            "voice_wire",
        )
    ),
)


def accepted() -> Requirement:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    requirements = {
        str(each.specifier): each
        for extra in extras.values()
        for each in map(Requirement, extra)
        if each.name == "pipecat-ai"
    }
    [one] = requirements.values()
    return one


def oldest() -> str:
    [version] = [each.version for each in accepted().specifier if each.operator == ">="]
    return f"pipecat-ai=={version}"


def newest() -> str:
    return f"pipecat-ai{accepted().specifier}"


def test_one_range_holds_for_all_extras_and_has_both_ends() -> None:
    assert {each.operator for each in accepted().specifier} == {">=", "<"}


@proof_only
@pytest.mark.parametrize("requirement", [oldest(), newest()])
def test_protocols_of_providers_work_with_pipecat(requirement: str, tmp_path: Path) -> None:
    """An environment that sees this one's packages, with another pipecat before them."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True)
    python = tmp_path / "bin" / "python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    (Path(packages) / "these.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", requirement], check=True)
    path = os.pathsep.join(str(PROJECT / folder) for folder in ("", "processors", "pipelines"))
    environ = {name: value for name, value in os.environ.items() if name != "GLYPHOXA_PROOF"} | {"PYTHONPATH": path}
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITE],
        cwd=PROJECT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
