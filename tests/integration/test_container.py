"""The Dockerfile and compose.yaml, without a container engine: their instructions are read and performed by tests.

`make container`, and `make proof`, perform every instruction as it stands, in roots of Debian bookworm that
`debootstrap` makes: packages from Debian's mirror, the whole lock, the wheel, `pip check`. Then the container is
started with its own CMD, the campaign of the demo, the local models of this machine and the embedded database, until
its health check succeeds, and is stopped with SIGTERM. It takes minutes. The wheels of the lock are fetched outside
and lent to the build. No image is pulled, and the container has a loopback alone: what Docker's network does is not
shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import platformdirs
import pytest
import yaml

from glyphoxa.adapters.weights.store import default_directory
from glyphoxa.cli.main import parser
from glyphoxa.config.settings import read_settings
from glyphoxa.plugins.monitoring.settings import ObservabilitySettings
from glyphoxa.providers.registry import rows
from tests.support.container import Build, Lent, Root, bare_debian, need_overlays, open_place, send_context, started
from tests.support.dockerfile import Copy, Run, Stage, context_files, read_stages
from tests.support.proof import IS_PROOF

ROOT = Path(__file__).parents[2]
IS_COMPLETE = IS_PROOF or "GLYPHOXA_CONTAINER" in os.environ
BOOKWORM_PYTHON = (3, 11)
WHEELS = "/opt/wheels"
KEYS = {row.key_env for row in rows() if row.key_env}


@pytest.fixture
def stages() -> list[Stage]:
    return read_stages((ROOT / "Dockerfile").read_text("utf-8"))


@pytest.fixture
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    return document


@pytest.mark.skipif(not IS_COMPLETE, reason="takes minutes: `make container`")
def test_image_is_built_and_serves_on_bare_debian(stages: list[Stage], tmp_path: Path) -> None:
    kept = platformdirs.user_cache_path("glyphoxa") / "test-container"
    kept.mkdir(parents=True, exist_ok=True)
    with open_place(kept) as place:
        need_overlays(place)
        bookworm = bare_debian(kept, "bookworm")
        lent = [Lent(wheels_of_the_lock(kept), WHEELS)]
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": WHEELS}
        build = Build(place, send_context(context_files(ROOT), ROOT, place), bookworm, lent, offline)
        for stage in stages:
            build.stage(stage)
        tools = {"pip", "hatchling", "setuptools", "editables"}
        (packages,) = (place / "final/upper/opt/glyphoxa/lib").glob("python3.*/site-packages")
        assert tools.isdisjoint(path.name for path in packages.iterdir())
        shutil.copytree(ROOT / "demo", tmp_path / "campaign")
        root, final = Root(bookworm, build.roots["final"].place), stages[-1]
        volumes = [Lent(tmp_path / "campaign", "/campaign"), Lent(default_directory(), "/models")]
        environment = {"GLYPHOXA_MODELS": "/models"}
        with started(root, final, command=final.command, environment=environment, volumes=volumes) as container:
            container.wait_until_healthy(within_s=1_800)  # real models read real prompts
            assert container.owner() != 0
            assert container.end() == 0, container.said()
            assert "is open at" in container.said()
            assert "Traceback" not in container.said()
        data = root.place / "upper/data"
        assert list(data.iterdir()), "what is kept is kept in the volume"
        assert {path.stat().st_uid for path in data.rglob("*")} == {data.stat().st_uid} != {0}


def wheels_of_the_lock(kept: Path) -> Path:
    """Fetched by the pip of this machine, which knows the way to its registry; what is there is not fetched again."""
    if sys.version_info[:2] != BOOKWORM_PYTHON:
        pytest.skip("needs Python 3.11, as bookworm has: wheels are fetched for the version that runs the test")
    wheels = kept / "wheels"
    for lock in ("build", "app"):
        fetching = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
        kept_here = ["--find-links", str(wheels), "-d", str(wheels)]
        locked = ["--require-hashes", "-r", str(ROOT / f"requirements/{lock}.txt")]
        if subprocess.run([*fetching, "--no-index", *kept_here, *locked], capture_output=True, check=False).returncode:
            subprocess.run([*fetching, *kept_here, *locked], check=True)
    return wheels


def test_last_stage_runs_as_ordinary_user_with_locked_packages_only(stages: list[Stage]) -> None:
    builder, final = stages
    assert final.setting.user not in ("root", "0")
    assert final.ports == [7860]
    assert [step.sources for step in final.steps if isinstance(step, Copy)] == [("/opt/glyphoxa",)]
    lines = [step.line for step in builder.steps if isinstance(step, Run)]
    for lock in ("build", "app"):
        (line,) = (line for line in lines if f"requirements/{lock}.txt" in line)
        assert "--no-deps --no-build-isolation --require-hashes" in line
    assert lines[-1].endswith("check")
    environment = dict(final.setting.environment)
    assert final.volumes == [environment["GLYPHOXA_DATA"], f"{environment['XDG_CACHE_HOME']}/glyphoxa"]


def test_context_holds_the_program_and_nothing_that_is_made_or_private(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".dockerignore", tmp_path)
    for name in (".env", ".git/HEAD", "glyphoxa/a.py", "glyphoxa/__pycache__/a.pyc", "tests/t.py", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path) for path in context_files(tmp_path)] == ["README.md", "glyphoxa/a.py"]


def test_compose_starts_table_after_healthy_database(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {name for name, each in services.items() if "profiles" not in each} == {"table", "memory"}
    assert all(each["profiles"] == ["monitoring"] for name, each in services.items() if name not in ("table", "memory"))
    assert services["table"]["depends_on"] == {"memory": {"condition": "service_healthy"}}
    assert services["memory"]["healthcheck"]["test"]
    assert services["table"]["build"] == "."


def test_compose_publishes_ports_to_this_machine_only(compose: dict[str, Any], stages: list[Stage]) -> None:
    ports = [port for each in compose["services"].values() for port in each.get("ports", ())]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert [port.rpartition(":")[2] for port in compose["services"]["table"]["ports"]] == [str(stages[-1].ports[0])]


def test_compose_passes_the_keys_that_settings_know(compose: dict[str, Any]) -> None:
    passed = set(compose["services"]["table"]["environment"])
    assert passed == KEYS | {"PGPASSWORD"}  # the database's client reads that one


def test_compose_variables_are_those_of_the_example_file() -> None:
    text = (ROOT / "compose.yaml").read_text("utf-8")
    example = (ROOT / "deploy/example.env").read_text("utf-8")
    named = set(re.findall(r"^#?([A-Z_]+)=", example, re.MULTILINE))
    assert named == set(re.findall(r"\$\{([A-Z_]+)", text)) | KEYS


def test_compose_and_image_commands_are_valid(compose: dict[str, Any], stages: list[Stage]) -> None:
    for command in (compose["services"]["table"]["command"], stages[-1].command):
        options = parser("serve").parse_args(command)
        assert options.host == "0.0.0.0"


def test_compose_volumes_are_where_the_image_keeps_data(compose: dict[str, Any], stages: list[Stage]) -> None:
    mounts = [volume.split("}")[-1].split(":") for volume in compose["services"]["table"]["volumes"]]
    at = {mount[1]: mount[0] for mount in mounts}
    assert {place: name for place, name in at.items() if name} == {"/data": "data", "/var/cache/glyphoxa": "models"}
    assert set(stages[-1].volumes) < set(at)
    assert {"data", "models"} <= set(compose["volumes"])


def test_settings_of_compose_name_its_database_and_campaign(compose: dict[str, Any]) -> None:
    settings = read_settings(ROOT / "deploy/settings.yaml")
    database = compose["services"]["memory"]["environment"]
    dsn = f"postgresql://{database['POSTGRES_USER']}@memory/{database['POSTGRES_DB']}"
    assert settings.memory.postgres_dsn == dsn
    assert settings.campaign == Path("/campaign/campaign.yaml")
    targets = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text("utf-8"))["scrape_configs"][0]["static_configs"]
    assert f"table:{settings.section(ObservabilitySettings).metrics_port}" in targets[0]["targets"]
