from __future__ import annotations

import os
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def test_workflow_runs_the_ci_script() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert runs == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_file_that_the_workflow_names_is_there() -> None:
    text = WORKFLOW.read_text("utf-8")
    assert "glyphoxa/adapters/weights/manifest.yaml" in text
    assert (ROOT / "glyphoxa" / "adapters" / "weights" / "manifest.yaml").exists()
    assert "requirements/*.txt" in text and list((ROOT / "requirements").glob("*.txt"))
