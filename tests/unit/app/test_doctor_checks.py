"""Findings about models and databases name each problem with the command or the setting that ends it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from glyphoxa.adapters.postgres.server.database import Condition
from glyphoxa.adapters.weights.store import own_manifest
from glyphoxa.app.doctor import models, told
from glyphoxa.config.check import Finding
from glyphoxa.config.provider_sections import LlmSettings, ProvidersSettings
from glyphoxa.config.settings import ModelsSettings, Settings

MINILM = "minilm-l6-v2-int8"
WELL = Condition("18.6", is_read_only=False, pgvector="0.8.6", has_pgvector=True, n_to_apply=0, ahead_s=0.1)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    return Settings(data_dir=tmp_path / "data", models=ModelsSettings(dir=tmp_path / "models"))


def put(place: Path, name: str, *, n_files: int | None = None) -> None:
    """Files of the right sizes without the right bytes."""
    (place / name).mkdir(parents=True)
    for file in own_manifest()[name].files[:n_files]:
        with (place / name / file.name).open("wb") as made:
            made.truncate(file.size)


def test_missing_models_are_errors_with_size_and_command(settings: Settings) -> None:
    found = list(models(settings))
    assert {each.level for each in found} == {"error"}
    (minilm,) = (each for each in found if MINILM in each.text)
    assert minilm.text.endswith(f"MB): run `glyphoxa models fetch {MINILM}`")


def test_a_model_that_is_here_in_part_or_was_not_hashed_has_its_command(settings: Settings, tmp_path: Path) -> None:
    put(tmp_path / "models", MINILM)
    put(tmp_path / "models", "whisper-tiny.en", n_files=1)
    found = {each.text.partition(" ")[0]: each for each in models(settings)}
    assert found[MINILM].level == "warning"
    assert found[MINILM].text.endswith(f"run `glyphoxa models verify {MINILM}`")
    assert found["whisper-tiny.en"].level == "error"
    assert "is incomplete" in found["whisper-tiny.en"].text
    assert found["whisper-tiny.en"].text.endswith("run `glyphoxa models fetch whisper-tiny.en`")


def test_a_model_file_of_the_users_own_is_there_or_named(settings: Settings, tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    providers = ProvidersSettings(llm=LlmSettings(name="local", model=str(own)))
    settings = settings.model_copy(update={"providers": providers})
    missing = f"{own}: no such file: set providers.llm.model to an existing file"
    assert Finding("error", "models", missing) in list(models(settings))
    own.write_bytes(b"GGUF" * 300)
    assert Finding("ok", "models", f"{own}, 1.2 kB") in list(models(settings))


def test_a_database_that_is_well_is_one_line() -> None:
    text = "PostgreSQL at db/town: version 18.6, pgvector 0.8.6, migrated"
    assert list(told(WELL, "PostgreSQL at db/town")) == [Finding("ok", "database", text)]
    (new,) = told(replace(WELL, pgvector=None, n_to_apply=12), "it")
    assert new.level == "ok"
    assert new.text.endswith("pgvector will be created, 12 migrations will be applied at its next use")


@pytest.mark.parametrize(
    ("condition", "level", "words"),
    [
        (replace(WELL, pgvector=None, has_pgvector=False), "error", "`CREATE EXTENSION vector;`"),
        (replace(WELL, is_read_only=True), "error", "set memory.postgres_dsn to the primary server"),
        (replace(WELL, ahead_s=90.0), "warning", "90 s ahead of this machine's: synchronise both clocks"),
        (replace(WELL, ahead_s=-3600.0), "warning", "3600 s behind this machine's"),
    ],
)
def test_a_database_with_a_problem_says_what_to_do(condition: Condition, level: str, words: str) -> None:
    finding = list(told(condition, "it"))[-1]
    assert finding.level == level
    assert words in finding.text
