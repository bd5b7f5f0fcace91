"""Logs of a running table, the times of its services, the lag of its event loop, and its observers.

Speech appears only in log records marked as content, which are hidden by default.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loguru import logger

from glyphoxa.domain.events import TableEvent

if TYPE_CHECKING:
    from loguru import Record

# Observers

Measure = Literal["ttfb", "ttfa", "ttfat", "processing", "aggregation"]
"""Time to the first byte, to the first audible sound, to the first token of the answer; total time of a request; and
time from the first token to the first sentence.
"""


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """
    Attributes:
        graph: Where the service runs: "ear-hanna", "mouth-korvald".
        service: "OpenAILLMService".
        at_ms: When it was reported, Unix epoch.
    """

    graph: str
    service: str
    measure: Measure
    took_s: float
    at_ms: int


class Observer:
    """Follows an open table. Each method does nothing unless it is overridden, and has to return at once."""

    def on(self, event: TableEvent) -> None:
        """Take an event of the table."""

    def measured(self, time: ServiceTime) -> None:
        """Take the time that a service took."""

    def lagged(self, late_s: float) -> None:
        """Take how late a timer of the event loop was. Called twice a second."""

    async def close(self) -> None:
        """End with the table."""


EVERY_S = 0.5


async def measure_lag(report: Callable[[float], None], *, every_s: float = EVERY_S) -> None:
    """Measure until cancelled how late a timer is: whatever blocks the loop stops all voices at the table.

    Args:
        report: Receives the seconds by which a timer was late.
    """
    loop = asyncio.get_running_loop()
    while True:
        due_s = loop.time() + every_s
        await asyncio.sleep(every_s)
        report(max(0.0, loop.time() - due_s))


# Logs

LogForm = Literal["text", "json"]

_INDENT = " " * 4
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters: terminal commands, text direction changes and line breaks."""


def set_up_logs(*, level: str = "INFO", with_content: bool = False, form: LogForm = "text") -> None:
    """Send logs to standard error.

    Args:
        level: Lowest level shown.
        with_content: Also show records bound with `content=` (transcripts, prompts, replies).
        form: "text" for people, "json" for programs: one object a line.
    """

    def is_shown(record: Record) -> bool:
        if with_content:
            return True
        # pipecat puts transcripts and prompts into its messages below WARNING.
        is_chatty = (record["name"] or "").startswith("pipecat") and record["level"].no < logger.level("WARNING").no
        return "content" not in record["extra"] and not is_chatty

    def layout(record: Record) -> str:
        # Text from players or providers may contain a line that imitates a log record.
        record["message"] = _indent_continuation(record["message"])
        if "content" in record["extra"]:
            record["extra"]["content"] = _indent_continuation(str(record["extra"]["content"]))
        content = " | {extra[content]}" if "content" in record["extra"] else ""
        return "{time:HH:mm:ss.SSS} {level: <7} {name}: {message}" + content + "\n{exception}"

    def as_object(record: Record) -> str:
        record["extra"]["line"] = _as_json(record)
        return "{extra[line]}\n"

    # Warnings of libraries are meant for developers.
    warnings.showwarning = _to_log  # type: ignore[assignment]  # accepts and ignores the output file
    logger.remove()
    logger.add(
        _to_stderr,
        level=level,
        format=as_object if form == "json" else layout,
        filter=is_shown,
        backtrace=False,
        diagnose=False,
    )


def _as_json(record: Record) -> str:
    """Return one JSON object. `error` holds type and message, without a traceback."""
    line: dict[str, object] = {
        "time": record["time"].isoformat(timespec="milliseconds"),
        "level": record["level"].name,
        "logger": record["name"],
        "message": record["message"],
        **{key: str(value) for key, value in record["extra"].items() if key != "line"},
    }
    if (raised := record["exception"]) is not None and raised.type is not None:
        line["error"] = f"{raised.type.__name__}: {raised.value}"
    return json.dumps(line, ensure_ascii=False)


def _indent_continuation(text: str) -> str:
    """Indent all lines after the first, so that none looks like the start of a record."""
    return text.replace("\n", f"\n{_INDENT}")


def _to_stderr(line: str) -> None:
    """Write to the current `sys.stderr`, even if it was replaced. Escape control characters as JSON does."""
    sys.stderr.write(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line))


def _to_log(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    logger.debug("{}:{}: {}: {}", filename, lineno, category.__name__, message)
