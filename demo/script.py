"""Reads the evening's script, `evening.yaml`: who says what, when, and the expected results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from glyphoxa.config.located_yaml import InvalidFile, Problem, YamlPath, read_yaml, validate
from glyphoxa.domain.errors import did_you_mean


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Start(_Block):
    """When a line begins. Give exactly one: after quiet, after another line began, or while an NPC speaks."""

    quiet_ms: int | None = Field(default=None, ge=0)
    line: str | None = None
    after_ms: int = Field(default=0, ge=0)
    npc_speaking_ms: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_rule(self) -> Start:
        if sum(rule is not None for rule in (self.quiet_ms, self.line, self.npc_speaking_ms)) != 1:
            raise ValueError("give exactly one of quiet_ms, line (with after_ms), npc_speaking_ms")
        return self


class ScriptLine(_Block):
    """One recording of one player.

    Attributes:
        text: The reference transcript.
        to: The NPC that must answer; "" for none.
    """

    id: str
    player: str
    wav: str
    text: str
    say: str = ""
    to: str = ""
    names: tuple[str, ...] = ()
    start: Start


class Part(_Block):
    scene: str
    lines: tuple[ScriptLine, ...] = Field(min_length=1)


class SessionScript(_Block):
    number: int = Field(ge=1)
    title: str
    parts: tuple[Part, ...] = Field(min_length=1)

    @property
    def lines(self) -> tuple[ScriptLine, ...]:
        return tuple(line for part in self.parts for line in part.lines)


class MemoryCheck(_Block):
    """The lines that tell something, the NPC that heard it, and the NPC that was absent."""

    told: tuple[str, ...] = Field(min_length=1)
    to: str
    absent: str


class _Document(_Block):
    campaign: str
    memory: MemoryCheck
    sessions: tuple[SessionScript, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Evening:
    """A validated script. Paths are absolute."""

    folder: Path
    campaign: Path
    memory: MemoryCheck
    sessions: tuple[SessionScript, ...]

    def session(self, number: int) -> SessionScript:
        return next(session for session in self.sessions if session.number == number)

    def line(self, line_id: str) -> ScriptLine:
        return next(line for session in self.sessions for line in session.lines if line.id == line_id)

    def wav(self, line: ScriptLine) -> Path:
        return self.folder / line.wav


def read_evening(path: Path) -> Evening:
    """Read a script.

    Raises:
        NotFound: The file does not exist.
        InvalidFile: The script has errors. Each is reported with its line.
    """
    source = read_yaml(path)
    document = validate(source, _Document)
    problems: list[Problem] = []
    seen: set[str] = set()
    for i, session in enumerate(document.sessions):
        here: set[str] = set()
        for j, part in enumerate(session.parts):
            for k, line in enumerate(part.lines):
                at: YamlPath = ("sessions", i, "parts", j, "lines", k)
                if line.id in seen:
                    problems.append(source.problem((*at, "id"), f"duplicate line id {line.id!r}"))
                if line.start.line is not None and line.start.line not in here:
                    hint = did_you_mean(line.start.line, here)
                    problems.append(
                        source.problem(
                            (*at, "start"), f"no line {line.start.line!r} before this one in the session: {hint}"
                        )
                    )
                seen.add(line.id)
                here.add(line.id)
    for n, told in enumerate(document.memory.told):
        if told not in seen:
            problems.append(source.problem(("memory", "told", n), f"no line {told!r}: {did_you_mean(told, seen)}"))
    if problems:
        raise InvalidFile(path, problems)
    folder = path.resolve().parent
    return Evening(folder, folder / document.campaign, document.memory, document.sessions)
