"""Documents name files, modules and sections that are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("[bdt]*/README.md")])
"""Documents for readers who did not write them."""
ROOMS = "benchmarks|demo|docs|glyphoxa|migrations|pipelines|processors|tests"
NAMED = re.compile(rf"`((?:{ROOMS})/[^`\s:]*)")
MADE = "demo/out/"
"""The folder of a run's results: they are named too, and are not there before it."""
RUN = re.compile(r"python -m ((?:benchmarks|tests)[\w.]*)|`((?:benchmarks)\.[a-z_]+)`")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as Markdown viewers make them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_and_module_that_a_document_names_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    paths = {name for name in NAMED.findall(text) if not name.startswith(MADE)}
    modules = {either or other for either, other in RUN.findall(text)}
    missing = [name for name in sorted(paths) if not (ROOT / name).exists()]
    missing += [
        name
        for name in sorted(modules)
        if not (ROOT / f"{name.replace('.', '/')}.py").exists() and not (ROOT / name.replace(".", "/")).is_dir()
    ]
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_somewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    broken = []
    for target, anchor in LINK.findall(text):
        if target.startswith(("http:", "https:")):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_empty_line_divides_a_table(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\n\n(\|.*\n)(?!\|[ :|-]+\|\n)", text) == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached = {ROOT / "README.md"}
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        for target, _ in LINK.findall(page.read_text("utf-8")):
            linked = (page.parent / target).resolve() if target and "://" not in target else page
            if linked.suffix == ".md" and linked.exists() and linked not in reached:
                reached.add(linked)
                waiting.append(linked)
    assert [str(page.relative_to(ROOT)) for page in sorted({*ROOT.glob("docs/**/*.md")} - reached)] == []


def test_the_changelog_keeps_the_form_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "[Unreleased]"
    current = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert versions[1].startswith(f"[{current}] - ")
    assert [each for each in versions[1:] if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", each)] == []
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= kinds


def test_commands_are_written_in_one_form_which_the_readme_explains() -> None:
    said = {str(path.relative_to(ROOT)): path.read_text("utf-8").count(".venv/bin/glyphoxa") for path in DOCUMENTS}
    assert {name: n for name, n in said.items() if n} == {"README.md": 1}
