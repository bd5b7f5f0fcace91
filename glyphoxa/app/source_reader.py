"""Reads sources in a process of its own, so that no open table waits for them.

The process has the lowest priority. It ends when its caller no longer waits for the source, or crashes: its standard
input is open for as long.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Final, cast

from glyphoxa.dm.source_world import ImportKind, SourceWorld
from glyphoxa.domain.errors import InvalidInput, Unavailable, did_you_mean
from glyphoxa.plugin import claims

_LOWEST_PRIORITY: Final = 19
_MOST_CPU_S: Final = 900
_REFUSED: Final = 3
"""Exit code if the source cannot be read; the output says why."""


class AlreadyReading(InvalidInput):
    """Another source is being read."""


class SourceReader:
    """Reads one source at a time."""

    def __init__(self) -> None:
        self._reading = asyncio.Lock()

    async def read(self, kind: ImportKind, path: Path) -> SourceWorld:
        """Read a world, which may take minutes; cancelling ends the process. Its private copies lie beside the file.

        Raises:
            AlreadyReading: The reader reads another source.
            InvalidInput: The source cannot be read; the message names the file inside it and what would be valid.
            Unavailable: The process crashed, or took too long.
        """
        if self._reading.locked():
            raise AlreadyReading("another import is being read now; try again when it has ended")
        async with self._reading:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "glyphoxa.app.source_reader", kind, str(path)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "TMPDIR": str(path.parent)},
                start_new_session=True,  # Ctrl-C in a terminal is for the tables, which end it
            )
            try:
                output, _ = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        if process.returncode == _REFUSED:
            raise InvalidInput(output.decode())
        if process.returncode:
            why = f"it needs more memory than there is, or over {_MOST_CPU_S} s"
            raise Unavailable(f"{path.name} was not read to its end (exit code {process.returncode}): {why}")
        return await asyncio.to_thread(_unpickled, BytesIO(output))


def _unpickled(file: BytesIO) -> SourceWorld:
    """Return the world. Its documents are unpickled one by one: each stops the tables for as long as it takes."""
    world: SourceWorld
    world, n = pickle.load(file)  # noqa: S301 - written below
    return replace(world, documents=tuple([pickle.load(file) for _ in range(n)]))  # noqa: S301


def _reader_of(kind: str) -> Callable[[ImportKind, Path], SourceWorld]:
    found = claims("readers", dict[str, str]())
    plugin, reference = found.get(kind, (None, ""))
    if plugin is None:
        raise InvalidInput(f"no plug-in reads files of the tool {kind!r}: {did_you_mean(kind, found)}")
    reader: Callable[[ImportKind, Path], SourceWorld] = plugin.load(reference)
    return reader


def main() -> int:
    """Read the source that the arguments name, and write it to standard output."""
    os.setpriority(os.PRIO_PROCESS, 0, _LOWEST_PRIORITY)
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    Thread(target=lambda: os.read(0, 1) or os._exit(1), daemon=True).start()
    kind = cast(ImportKind, sys.argv[1])
    try:
        with redirect_stdout(sys.stderr):
            world = _reader_of(kind)(kind, Path(sys.argv[2]))
    except InvalidInput as error:
        sys.stdout.buffer.write(str(error).encode(errors="replace"))
        return _REFUSED
    for each in ((replace(world, documents=()), len(world.documents)), *world.documents):
        pickle.dump(each, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
