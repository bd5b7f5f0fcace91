"""The command line. One module a verb; errors are one line, never a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 128 + signal.SIGINT


def parser() -> argparse.ArgumentParser:
    import argparse
    from importlib.metadata import version

    from glyphoxa.cli import (
        calendar,
        campaign,
        config,
        entity,
        facts,
        inspect,
        models,
        names,
        recall,
        reindex,
        said_changed,
        serve,
        turns,
        voices,
    )

    root = argparse.ArgumentParser(prog="glyphoxa", description="Voice characters for tabletop role-playing.")
    root.add_argument("--version", action="version", version=f"glyphoxa {version('glyphoxa')}")
    verbs = root.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in (
        serve,
        campaign,
        calendar,
        facts,
        entity,
        said_changed,
        inspect,
        recall,
        turns,
        names,
        reindex,
        config,
        models,
        voices,
    ):
        verb.add_parser(verbs)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    with _interrupted_at_once():
        from glyphoxa.adapters.local import native_env
        from glyphoxa.domain.errors import GlyphoxaError
        from glyphoxa.observability import log

        native_env.prepare()
        options = _options(arguments)
        # A verb answers; how a table is doing is logged by the one that opens it, as its settings want.
        log.set_up(level="WARNING")
    try:
        return int(options.run(options))
    except GlyphoxaError as error:
        print(f"glyphoxa: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough (`glyphoxa ... | head`).
        sys.stderr.close()
        return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    root = parser()
    options, free = root.parse_known_args(arguments)
    if free and not getattr(options, "takes_attributes", False):
        root.error(f"unrecognized arguments: {' '.join(free)}")
    options.free = free
    return options


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Ctrl-C ends the process without a word. As an exception in the middle of an import it would be shown, taken for
    the failure of that import, or swallowed; and nothing is open yet.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
