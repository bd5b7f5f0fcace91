"""Processes of the command line that have their modules from the start.

Each is a fork of one process, which imports them once: a table of its own would spend four seconds on them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from tests.support.patience import DEADLINE_S

_MODULES = (
    "tests.support.stubborn",
    "glyphoxa.cli.table_server",
    "glyphoxa_processors.cloud.deepgram_stt",
    "glyphoxa_pipelines.cascaded",
    "glyphoxa_pipelines.webrtc",
)


class ForkedProcess:
    """Its pipes and its end, as `subprocess.Popen` has them. Its environment is that of the moment it is made.

    Args:
        what: A way of `tests.support.stubborn` to serve; None for the command line as it is.

    Attributes:
        returncode: None before `communicate` has returned; minus the number of the signal that ended it.
    """

    def __init__(self, what: str | None, arguments: list[str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(_MODULES))
        (out, told_out), (err, told_err) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(told_out, told_err, dict(os.environ), what, arguments))
        self._process.start()
        told_out.close()
        told_err.close()
        self.stdout, self.stderr = (os.fdopen(os.dup(pipe.fileno()), encoding="utf-8") for pipe in (out, err))
        self.returncode: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.is_alive():
            assert self._process.pid is not None
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float = DEADLINE_S) -> tuple[str, str]:
        """Read both pipes to their ends, and wait until the process has ended.

        Raises:
            TimeoutError: It has not.
        """
        with ThreadPoolExecutor(2) as threads:
            ends = [threads.submit(_rest_of, pipe) for pipe in (self.stdout, self.stderr)]
            try:
                out, err = (end.result(timeout) for end in ends)
            except TimeoutError:
                self.kill()
                raise
        self._process.join(timeout)
        self.returncode = self._process.exitcode
        return out, err


@contextmanager
def a_forked_table(what: str, *arguments: object) -> Iterator[ForkedProcess]:
    """`python -m tests.support.stubborn WHAT ARGUMENTS`, without the time that its imports take."""
    with _forked(what, arguments) as process:
        yield process


def forked_command(*arguments: object) -> tuple[int, str, str]:
    """Run `glyphoxa ARGUMENTS`; return its exit status, its output and its errors."""
    with _forked(None, arguments) as process:
        out, errors = process.communicate()
    assert process.returncode is not None
    return process.returncode, out, errors


@contextmanager
def _forked(what: str | None, arguments: Sequence[object]) -> Iterator[ForkedProcess]:
    process = ForkedProcess(what, [str(argument) for argument in arguments])
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        process.stdout.close()
        process.stderr.close()


def _rest_of(pipe: object) -> str:
    return "" if pipe.closed else str(pipe.read())  # type: ignore[attr-defined]


def _run(out: Connection, err: Connection, environ: dict[str, str], what: str | None, arguments: list[str]) -> None:
    from glyphoxa.cli.main import main
    from glyphoxa.config.settings import settings_type
    from glyphoxa.plugin import plugins
    from glyphoxa.providers.registry import rows
    from tests.support.stubborn import serve_stubbornly

    os.chdir(Path(__file__).parents[2])
    os.environ.clear()
    os.environ.update(environ)
    sys.path[:0] = filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))
    for of_other_packages in (plugins, settings_type, rows):
        of_other_packages.cache_clear()
    for pipe, number in ((out, 1), (err, 2)):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    sys.exit(main(arguments) if what is None else serve_stubbornly(what, arguments))
