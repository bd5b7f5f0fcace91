"""Finds retired phrases in the project's prose: `python -m tests.support.vocabulary [PATH ...]`.

Prose is what people read: documents, Python code with the names of tests, comments of other code, and page texts. The
phrases are in `tests/structure/vocabulary.toml`, each with what to write instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PHRASES = ROOT / "tests" / "structure" / "vocabulary.toml"
_LEFT_OUT = (
    "migrations/",  # a database remembers the checksum of each migration, comments included
    "benchmarks/data/",  # speech
    "glyphoxa/language/data/",  # words to recognise, in any wording
    "tests/structure/vocabulary.toml",
    "tests/structure/test_vocabulary.py",
    "docs/reference/",  # generated
)
_WHOLE = {".md", ".html", ".js", ".json", ".css", ".webmanifest", ".j2"}
_HASH_COMMENTS = {".toml", ".yaml", ".yml", ".txt", ".conf", ".env", ""}
_GAP = r"[\s#*/-]+"
"""White space, and what continues a comment on the next line."""


@dataclass(frozen=True, slots=True)
class Phrase:
    find: re.Pattern[str]
    write: str


@dataclass(frozen=True, slots=True)
class Hit:
    path: str
    line: int
    found: str
    write: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}; write: {self.write}"


@cache
def phrases() -> tuple[Phrase, ...]:
    """Return all retired phrases."""
    rows = tomllib.loads(PHRASES.read_text("utf-8"))["phrase"]
    return tuple(Phrase(re.compile(row["find"].replace(" ", _GAP)), row["write"]) for row in rows)


def hits(path: str, text: str) -> list[Hit]:
    """Return the retired phrases of one file's prose, in order of lines."""
    prose = re.sub(r"[ \t]+", " ", _prose(path, text)).lower()
    found = [
        Hit(path, prose.count("\n", 0, match.start()) + 1, re.sub(_GAP, " ", match.group()), phrase.write)
        for phrase in phrases()
        for match in phrase.find.finditer(prose)
    ]
    return sorted(found, key=lambda hit: hit.line)


def all_hits(only: tuple[str, ...] = ()) -> list[Hit]:
    """Return the hits in all tracked files, or in those whose path begins with one of `only`."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[Hit] = []
    for name in dict.fromkeys(listed.stdout.split("\0")):
        if name and not name.startswith(_LEFT_OUT) and (not only or name.startswith(only)) and (ROOT / name).is_file():
            found += hits(name, (ROOT / name).read_text("utf-8", errors="replace"))
    return found


def _prose(path: str, text: str) -> str:
    """Return the text with everything blanked that is not prose; each line keeps its number."""
    suffix = Path(path).suffix
    if path == "CHANGELOG.md":
        return text[: text.find("\n## [", text.find("## [Unreleased]") + 1)] if "\n## [0" in text else text
    if path == "CONTRIBUTING.md":  # its examples quote what not to write
        return re.sub(r"(?ms)^\| instead of.*?\n\n", lambda table: "\n" * table.group().count("\n"), text)
    if suffix == ".py":
        return re.sub(r"(?m)^(?:async )?def test_\w+", lambda name: name.group().replace("_", " "), text)
    if suffix in _WHOLE or path == "Makefile":
        return text
    if suffix == ".sql":
        return re.sub(r"(?m)^(?!.*--).*$|^(?:(?!--).)+", "", text)
    if suffix in _HASH_COMMENTS or path.startswith((".ci/", "deploy/")):
        return re.sub(r"(?m)^(?!.*#).*$|^[^#]+", "", text)
    return ""


if __name__ == "__main__":
    for hit in all_hits(tuple(sys.argv[1:])):
        sys.stdout.write(f"{hit}\n")
