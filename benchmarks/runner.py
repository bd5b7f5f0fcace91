"""Run a benchmark: options, a directory of its own, figures as one JSON object in the last line, exit codes.

A benchmark builds a parser with `command`, and passes its options and the measuring function to `run`.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import inspect
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from glyphoxa.adapters.local import machine as native_env
from glyphoxa.adapters.local.minilm import MiniLm
from glyphoxa.adapters.postgres.server.supervisor import SUPERVISOR
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.observability import set_up_logs
from glyphoxa.providers.registry import EMBEDDINGS, find

T = TypeVar("T")
Figures: TypeAlias = Mapping[str, Any]
Measure: TypeAlias = Callable[[argparse.Namespace, Path], Figures | Awaitable[Figures]]
"""Takes the options and an empty directory, which is removed afterwards."""

STOPPED = 128 + signal.SIGINT
MINILM = find(EMBEDDINGS, "minilm").weights[0]
_NOTE = "loaded.json"
_STOP_TIMEOUT_S = 60.0
_POLL_S = 0.02


# -- the command


def command(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a parser for `python -m benchmarks.NAME`, with the module's docstring as its help."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def run(options: argparse.Namespace, measure: Measure) -> int:
    """Print the figures as the last line. Return the exit code: 0, 1 for bad input or a failure, 130 when stopped."""
    set_up()
    try:
        with a_directory() as directory:
            figures = measure(options, directory)
            print(json.dumps(asyncio.run(stoppable(figures)) if inspect.isawaitable(figures) else figures))
    except (GlyphoxaError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return STOPPED
    return 0


def set_up(level: str = "WARNING") -> None:
    native_env.prepare()
    set_up_logs(level=level)


async def stoppable(work: Awaitable[T]) -> T:
    """Await `work`; SIGTERM cancels it as Ctrl-C does, so that everything is closed."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


@contextmanager
def a_directory() -> Iterator[Path]:
    """Create a new directory, removed afterwards. The database's account can pass through it."""
    path = Path(tempfile.mkdtemp(prefix="glyphoxa-benchmark-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        _wait_for_databases(path)
        shutil.rmtree(path, ignore_errors=True)


def _wait_for_databases(path: Path) -> None:
    """Wait until no embedded server below `path` runs: it stops after its last client, and writes files until then."""
    give_up = time.monotonic() + _STOP_TIMEOUT_S
    for directory, _, files in os.walk(path):
        if SUPERVISOR not in files:
            continue
        with Path(directory, SUPERVISOR).open("a") as supervisor:
            while time.monotonic() < give_up:
                with suppress(BlockingIOError):
                    fcntl.flock(supervisor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    break
                time.sleep(_POLL_S)


def tell(text: str) -> None:
    """Report progress to people on standard error."""
    print(text, file=sys.stderr, flush=True)


def local_embeddings() -> MiniLm:
    """Return the shipped model of embeddings.

    Raises:
        NotFound: It is not on this machine.
    """
    return MiniLm(WeightStore(Settings().models.dir).path(MINILM))


# -- types of arguments


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def not_negative(text: str) -> float:
    number = float(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, not {text}")
    return number


def not_negative_count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, not {number}")
    return number


def above_zero(text: str) -> float:
    number = float(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, not {text}")
    return number


def to_write(text: str) -> Path:
    """Return the path of a file to write later: its directory must exist now."""
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no file can be written there")
    return path


# -- data


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of a JSON-lines file, and its place ("FILE:LINE") for messages. Skips empty lines.

    Raises:
        InvalidInput: The file cannot be read, or a line is not a JSON object.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InvalidInput(f"{where}: no JSON: {error}") from None
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: no JSON object")
        yield where, value


def read_rows(path: Path, make: Callable[[dict[str, Any]], T]) -> list[T]:
    """Return what `make` makes of each line of a JSON-lines file.

    Raises:
        InvalidInput: A line is invalid; the message has its place.
    """
    made = []
    for where, row in json_lines(path):
        try:
            made.append(make(row))
        except KeyError as error:
            raise InvalidInput(f"{where}: {error.args[0]!r} is missing") from error
        except (GlyphoxaError, ValueError, TypeError) as error:
            raise InvalidInput(f"{where}: {error}") from error
    return made


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def sample(items: Sequence[T], limit: int | None, *, seed: str) -> list[T]:
    """Return at most `limit` items, the same in every run, in their order."""
    if limit is None or limit >= len(items):
        return list(items)
    return [items[at] for at in sorted(random.Random(seed).sample(range(len(items)), limit))]


async def filled_once(
    directory: Path, key: object, fill: Callable[[], Awaitable[dict[str, Any]]]
) -> tuple[dict[str, Any], bool]:
    """Fill a reusable directory once. Return the figures of filling it, and whether that happened now.

    Args:
        key: A description of the content, as JSON.

    Raises:
        InvalidInput: It has been filled with something else.
    """
    noted = _read_note(directory)
    if noted is None:
        figures = await fill()
        (directory / _NOTE).write_text(json.dumps({"key": key, "figures": figures}))
        return figures, True
    if noted["key"] != key:
        raise InvalidInput(f"{directory} holds other data: empty it, or name another --data-dir")
    return noted["figures"], False


def _read_note(directory: Path) -> dict[str, Any] | None:
    path = directory / _NOTE
    return dict(json.loads(path.read_text())) if path.exists() else None


# -- figures


def percentile(values: Iterable[float], percent: float, *, digits: int = 1) -> float | None:
    """Return None without values."""
    taken = np.fromiter(values, np.float64)
    return round(float(np.percentile(taken, percent)), digits) if len(taken) else None


def percentiles(values: Iterable[float], *percents: int, form: str = "p{}_ms", digits: int = 3) -> dict[str, float]:
    """Return each percentile under a key such as `p50_ms`; empty without values."""
    taken = np.fromiter(values, np.float64)
    if not len(taken):
        return {}
    found = np.percentile(taken, percents)
    return {form.format(percent): round(float(at), digits) for percent, at in zip(percents, found, strict=True)}


def percent(part: float, whole: float, *, digits: int = 1) -> float | None:
    """Return None if there is no whole."""
    return round(100 * part / whole, digits) if whole else None


def rss_mb() -> float:
    """Return the memory of this process: the present one if the system reports it, otherwise the peak."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
        return round(int(line.split()[1]) / 1024, 1)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
