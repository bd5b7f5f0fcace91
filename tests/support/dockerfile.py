"""Reads the Dockerfile and .dockerignore of this project: as much of their languages as these use.

An instruction, a flag, a variable or a pattern of another kind is an error.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            image, _, name = rest.partition(" AS ")
            stages.append(Stage(image, name))
        else:
            _read(stages[-1], line, instruction, rest.strip())
    return stages


def _lines(text: str) -> Iterator[str]:
    """Instructions, each in one line; comments are taken out, also between the lines of one instruction."""
    kept = "\n".join(line.strip() for line in text.splitlines() if not line.strip().startswith("#"))
    yield from filter(None, kept.replace("\\\n", "").splitlines())


def _read(stage: Stage, line: str, instruction: str, rest: str) -> None:
    here = stage.setting
    if instruction not in ("RUN", "HEALTHCHECK") and "$" in rest:
        raise NotSupported(f"variables are not supported: {line}")
    match instruction:
        case "RUN" if not rest.startswith(("--", "[")) and "<<" not in rest:
            stage.steps.append(Run(rest, here))
        case "COPY":
            words = shlex.split(rest)
            origin = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
            *sources, to = words
            stage.steps.append(Copy(origin, tuple(sources), to, here))
        case "ENV":
            added = dict(word.split("=", 1) for word in shlex.split(rest))
            stage.setting = replace(here, environment=tuple({**dict(here.environment), **added}.items()))
        case "USER":
            stage.setting = replace(here, user=rest)
        case "WORKDIR" if rest.startswith("/"):
            stage.setting = replace(here, directory=rest)
        case "VOLUME":
            stage.volumes += json.loads(rest)
        case "EXPOSE":
            stage.ports += map(int, rest.split())
        case "HEALTHCHECK":
            stage.health = json.loads(rest.partition("CMD")[2])
        case "ENTRYPOINT":
            stage.entrypoint, stage.command = json.loads(rest), []
        case "CMD":
            stage.command = json.loads(rest)
        case _:
            raise NotSupported(f"not a known instruction: {line}")


def context_files(root: Path) -> list[PurePosixPath]:
    """List the files that `docker build` is sent of a directory: what its .dockerignore leaves."""
    rules = [line for line in (root / ".dockerignore").read_text("utf-8").splitlines() if line and line[0] != "#"]
    if any(re.search(r"[?\[\\]", rule) or "**" in rule.lstrip("!").removeprefix("**/") for rule in rules):
        raise NotSupported(".dockerignore: not a known form of pattern")
    found: list[PurePosixPath] = []
    for top in (top for top in root.iterdir() if _is_sent(PurePosixPath(top.name), rules)):
        for path in [top] if top.is_file() else top.rglob("*"):
            inside = PurePosixPath(path.relative_to(root).as_posix())
            if path.is_file() and _is_sent(inside, rules):
                found.append(inside)
    return sorted(found)


def _is_sent(path: PurePosixPath, rules: list[str]) -> bool:
    """Whether the last rule that matches a path, or a folder above it, lets it through, as in Docker."""
    above = [each for each in (path, *path.parents) if each.parts]
    matching = [rule for rule in rules if any(_matches(each, rule.lstrip("!").strip("/")) for each in above)]
    return not matching or matching[-1].startswith("!")


def _matches(path: PurePosixPath, pattern: str) -> bool:
    """A pattern is a path from the root with `*` in its parts, or `**/` and one part, which matches at any depth."""
    if pattern.startswith("**/"):
        return fnmatchcase(path.name, pattern.removeprefix("**/"))
    parts = pattern.split("/")
    return len(parts) == len(path.parts) and all(map(fnmatchcase, path.parts, parts))
