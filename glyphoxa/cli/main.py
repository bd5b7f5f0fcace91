"""The command line. One module a verb; errors are one line, never a traceback."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 128 + signal.SIGINT


_VERBS = {
    "serve": ("serve", "open a table on a local page: talk to the NPCs in a browser"),
    "invite": ("invite", "the links by which players and the game master come to a table: show, renew, revoke"),
    "audit": ("audit", "who came to a table, was refused, moved it or left"),
    "table": ("table", "the DM at an open table: mute, speak as and direct NPCs, stop them, whisper to a player"),
    "voices": ("voices", "the voices for `voice:` in a campaign file; with a name, how it sounds"),
    "campaign": ("campaign", "check, load, show and fork campaigns"),
    "calendar": ("calendar", "which day it is in the story, and on which each session was played"),
    "facts": ("facts", "what is known and why: review, change, take back"),
    "entity": ("entity", "the people, places and things of a campaign"),
    "privacy": ("privacy", "what is kept of a player or a session: write it out, erase it"),
    "said": ("said_changed", "what was said last; retract or correct one utterance"),
    "sessions": ("sessions", "the evenings of a campaign, and what happened in each"),
    "chronicle": ("chronicle", "what became knowledge of what was said: see, go on, try again"),
    "worker": ("worker", "turn what is said into knowledge in the background, in a process of its own"),
    "inspect": ("inspect", "look into memory: what was said, what is known, what is embedded"),
    "recall": ("recall", "what an NPC would recall for a question, and why"),
    "context": ("context", "the prompt that an NPC's model would be sent for a line, and what it is made of"),
    "turns": ("turns", "why an NPC said what it said: the latest turns, or all of one"),
    "names": ("names", "wrong forms of names: see, confirm, reject and undo what was learned"),
    "mcp": ("mcp", "an NPC's memory, or the DM's view, for another program over MCP"),
    "reindex": ("reindex", "embed the talk that is missing; all of it after another embeddings model was set"),
    "config": ("config", "look at the settings"),
    "doctor": ("doctor", "check machine, settings, models and database; says what to do about each problem"),
    "models": ("models", "the weights of the local models: list, fetch, verify"),
}
"""Each with its module and what its help says of it: only the module of the verb that was asked for is imported."""

_EPILOG = """\
Where the database is, and which campaign is meant, stands in the settings file
given with --config; without one, all settings have their defaults.

environment:
  GLYPHOXA_DATA    directory of the embedded database and of what is said before
                   it gets there. `data_dir` in the settings comes first; without
                   both it is the user's data directory, root's /var/lib/glyphoxa
  GLYPHOXA_MODELS  a directory that is looked in before a model is fetched
  GLYPHOXA_MCP_TOKEN, GLYPHOXA_MCP_DM_TOKEN
                   who may call `glyphoxa mcp`: in an NPC's name, and as the DM

`glyphoxa VERB --help` says more of each.
"""


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """
    Args:
        verb: The one whose options are wanted; None for all of them. Of the others only their names are there.
    """
    import argparse

    class Version(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
            from importlib.metadata import version

            print(f"glyphoxa {version('glyphoxa')}")
            parser.exit()

    root = argparse.ArgumentParser(
        prog="glyphoxa",
        description="Voice characters for tabletop role-playing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    verbs = root.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)
    for name, (module, text) in _VERBS.items():
        if verb in (name, None):
            importlib.import_module(f"glyphoxa.cli.{module}").VERB.add_to(verbs, name, text)
        else:
            verbs.add_parser(name, help=text)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    with on_any_output():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    with _interrupted_at_once():
        from glyphoxa.adapters.local import native_env
        from glyphoxa.domain.errors import GlyphoxaError

        native_env.prepare()
        options = _options(sys.argv[1:] if arguments is None else arguments)
        from glyphoxa.observability import log

        # A verb answers; how a table is doing is logged by the one that opens it, as its settings want.
        log.set_up(level="WARNING")
    try:
        return int(options.run(options))
    except GlyphoxaError as error:
        print(f"glyphoxa: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        from glyphoxa.providers.extras import not_installed

        missing = not_installed(error, by=f"`glyphoxa {options.verb}`")
        if missing is None:
            raise
        print(f"glyphoxa: {missing}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    # No option that stands before the verb has a value.
    root = parser(next((each for each in arguments if not each.startswith("-")), ""))
    options, free = root.parse_known_args(arguments)
    if free and not getattr(options, "takes_any_option", False):
        root.error(f"unrecognized arguments: {' '.join(free)}")
    options.free = free
    return options


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
