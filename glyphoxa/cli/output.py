"""What a verb writes to, whatever that is: a terminal that knows few characters, a disk that is full, a pipe that is
read no further.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def on_any_output() -> Iterator[None]:
    """A character that cannot be shown is written as `?`; output that nobody reads is no fault.

    Raises:
        SystemExit: What was to be written could not be, and standard error says so; or a file could not be used in a
            way that nobody foresaw.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started us
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`glyphoxa ... | head`).
        _forget_the_rest()
        raise SystemExit(0) from None
    except OSError as error:
        _forget_the_rest()
        with suppress(OSError):
            print(f"glyphoxa: {error.strerror or error}{_place_of(error)}", file=sys.stderr)
        raise SystemExit(1) from None


def _place_of(error: OSError) -> str:
    return f": {error.filename}" if error.filename is not None else " (while the answer was written)"


def _forget_the_rest() -> None:
    """Or the interpreter would try once more at its end, and show a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError), Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
