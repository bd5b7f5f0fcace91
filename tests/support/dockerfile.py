"""Reads the Dockerfile and .dockerignore of this project: as much of their languages as these use.

What is not known is an error, never skipped: an instruction, a flag, a variable, a form, a pattern.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of a container whose image sets none."""


class NotSupported(ValueError):
    """The file says something that this reader does not know."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The state at an instruction.

    Attributes:
        user: A name that the root's /etc/passwd has.
    """

    user: str = "root"
    directory: str = "/"
    environment: tuple[tuple[str, str], ...] = (("PATH", USUAL_PATH),)


@dataclass(frozen=True, slots=True)
class Run:
    """A line for `/bin/sh -c`."""

    line: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class Copy:
    """
    Attributes:
        stage: The name of the stage that it copies from; empty is the context.
        to: Ends with `/` where it is a directory; it may start from `setting.directory`.
    """

    stage: str
    sources: tuple[str, ...]
    to: str
    setting: Setting


Step: TypeAlias = Run | Copy


@dataclass(slots=True)
class Stage:
    """
    Attributes:
        name: Empty where it has none.
        setting: The state at its end: for the container's process and its health check.
        health: The command that is successful while the container is healthy.
    """

    image: str
    name: str
    steps: list[Step] = field(default_factory=list)
    setting: Setting = Setting()
    volumes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def read_stages(text: str) -> list[Stage]:
    """
    Raises:
        NotSupported: With the line that is not known.
    """
    stages: list[Stage] = []
    for line in _lines(text):
        word, _, rest = line.partition(" ")
        instruction, rest = word.upper(), rest.strip()
        if instruction == "FROM":
            stages.append(_from(line, rest, {stage.name for stage in stages}))
        elif not stages:
            raise NotSupported(f"a Dockerfile begins with FROM, not with: {line}")
        else:
            _read(stages[-1], line, instruction, rest)
    names = [""]
    for stage in stages:
        for step in stage.steps:
            if isinstance(step, Copy) and step.stage not in names:
                raise NotSupported(f"COPY --from={step.stage}: no earlier stage has this name")
        names.append(stage.name)
    return stages


def _lines(text: str) -> Iterator[str]:
    """Instructions, each in one line; comments are taken out, also between the lines of one instruction."""
    begun = ""
    for n, raw in enumerate(text.splitlines()):
        line = raw.strip()
        if line.startswith("#"):
            if not n and re.match(r"#\s*\w+\s*=", line):
                raise NotSupported(f"directives are not supported: {line}")
            continue
        begun += line.removesuffix("\\")
        if not line.endswith("\\") and begun:
            yield begun
            begun = ""
    if begun:
        raise NotSupported(f"the last line goes on: {begun}")


def _from(line: str, rest: str, names: set[str]) -> Stage:
    form = re.fullmatch(r"(?P<image>[\w./:-]+)(?: AS (?P<name>\w+))?", rest, re.IGNORECASE)
    if form is None or form["image"] in names:
        raise NotSupported(f"FROM takes an image and a name: {line}")
    return Stage(form["image"], form["name"] or "")


def _read(stage: Stage, line: str, instruction: str, rest: str) -> None:
    here = stage.setting
    if instruction != "RUN" and instruction != "HEALTHCHECK" and "$" in rest:
        raise NotSupported(f"variables are not supported: {line}")
    match instruction:
        case "RUN":
            if rest.startswith(("--", "[", "<<")) or "<<" in rest:
                raise NotSupported(f"RUN takes a line for the shell, without flags: {line}")
            stage.steps.append(Run(rest, here))
        case "COPY":
            stage.steps.append(_copy(line, rest, here))
        case "ENV":
            pairs = [word.partition("=") for word in shlex.split(rest)]
            if not all(equals for _, equals, _ in pairs):
                raise NotSupported(f"ENV takes NAME=VALUE: {line}")
            environment = dict(here.environment) | {name: value for name, _, value in pairs}
            stage.setting = Setting(here.user, here.directory, tuple(environment.items()))
        case "USER":
            if not re.fullmatch(r"[a-z]\w*", rest):
                raise NotSupported(f"USER takes a name: {line}")
            stage.setting = Setting(rest, here.directory, here.environment)
        case "WORKDIR":
            if not rest.startswith("/"):
                raise NotSupported(f"WORKDIR takes a whole path: {line}")
            stage.setting = Setting(here.user, rest, here.environment)
        case "VOLUME":
            stage.volumes += _words(line, rest)
        case "EXPOSE":
            stage.ports += [int(port) for port in rest.split()]
        case "HEALTHCHECK":
            form = re.fullmatch(r"(?:--(?:interval|timeout|start-period|retries)=\w+\s+)*CMD\s+(?P<words>.*)", rest)
            if form is None:
                raise NotSupported(f"HEALTHCHECK takes times and CMD: {line}")
            stage.health = _words(line, form["words"])
        case "ENTRYPOINT":
            stage.entrypoint, stage.command = _words(line, rest), []
        case "CMD":
            stage.command = _words(line, rest)
        case _:
            raise NotSupported(f"not a known instruction: {line}")


def _copy(line: str, rest: str, here: Setting) -> Copy:
    words = shlex.split(rest)
    stage = words.pop(0).removeprefix("--from=") if words and words[0].startswith("--from=") else ""
    if len(words) < 2 or any(re.search(r"^--|^\[|[*?]|\.\.", word) for word in words):
        raise NotSupported(f"COPY takes paths, the last of which is where to: {line}")
    *sources, to = words
    if len(sources) > 1 and not to.endswith("/"):
        raise NotSupported(f"COPY of several needs a directory that ends with /: {line}")
    return Copy(stage, tuple(sources), to, here)


def _words(line: str, rest: str) -> list[str]:
    try:
        words = json.loads(rest)
    except ValueError:
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise NotSupported(f"it takes a list of strings, as JSON: {line}")
    return words


class Ignored:
    """Paths that a .dockerignore keeps out of the context. The last pattern that matches decides, as in Docker.

    A pattern is a path from the root with `*` in its parts, or `**/` and one part, which matches at any depth. What it
    matches it matches with all that is below.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[bool, str]] = []
        for line in filter(None, (line.strip() for line in text.splitlines())):
            if line.startswith("#"):
                continue
            pattern = line.removeprefix("!").strip("/")
            if re.search(r"[?\[\\]", pattern) or "**" in pattern.removeprefix("**/"):
                raise NotSupported(f".dockerignore: not a known form of pattern: {line}")
            self._rules.append((not line.startswith("!"), pattern))

    def __contains__(self, path: PurePosixPath) -> bool:
        above = [each for each in (path, *path.parents) if each.parts]
        is_out = False
        for keeps_out, pattern in self._rules:
            if any(self._matches(each, pattern) for each in above):
                is_out = keeps_out
        return is_out

    @staticmethod
    def _matches(path: PurePosixPath, pattern: str) -> bool:
        if pattern.startswith("**/"):
            return fnmatchcase(path.name, pattern.removeprefix("**/"))
        parts = pattern.split("/")
        return len(parts) == len(path.parts) and all(map(fnmatchcase, path.parts, parts))


def context_files(root: Path) -> list[PurePosixPath]:
    """The files that `docker build` is sent of a directory: what its .dockerignore leaves."""
    ignored = Ignored((root / ".dockerignore").read_text("utf-8"))
    found: list[PurePosixPath] = []
    tops = [each for each in root.iterdir() if PurePosixPath(each.name) not in ignored]
    for top in tops:
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            inside = PurePosixPath(path.relative_to(root).as_posix())
            if path.is_file() and inside not in ignored:
                found.append(inside)
    return sorted(found)
