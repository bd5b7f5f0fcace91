"""The command line. An error is one line, never a traceback."""

from __future__ import annotations

import io
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from glyphoxa.plugin import Command, Installed, claims, plugins

if TYPE_CHECKING:
    import argparse

INTERRUPTED = 128 + signal.SIGINT
_WINDOWS: Final = "Glyphoxa runs on Linux and macOS; on Windows, use WSL 2 (docs/first-evening.md has the steps)"

_GROUPS: Final = {
    "play": {
        "serve": ("glyphoxa.cli.table:SERVE", "open a table on a local page, and talk to NPCs in a browser"),
        "table": ("glyphoxa.cli.table:TABLE", "direct an open table: mute, speak as NPCs, stop; links, audit log"),
    },
    "campaign": {
        "campaign": ("glyphoxa.cli.campaign:VERB", "create, check, load, show, copy and export campaigns; calendar"),
        "entity": ("glyphoxa.cli.review:ENTITY", "add, change, merge, hide or remove entities; let people speak"),
        "facts": ("glyphoxa.cli.review:FACTS", "review facts: accept, reject, correct, state, reveal, undo"),
        "transcript": ("glyphoxa.cli.review:TRANSCRIPT", "retract or correct an utterance; summarise a session"),
        "wrap-up": ("glyphoxa.cli.review:WRAP_UP", "decide what to keep of a session that has ended"),
        "names": ("glyphoxa.cli.review:NAMES", "review how names are misheard: accept, reject, undo"),
    },
    "memory": {
        "show": ("glyphoxa.cli.show:VERB", "show what is known and was said, and why NPCs said what they said"),
        "recall": ("glyphoxa.cli.recall:VERB", "show what an NPC would recall for a question, and why"),
        "privacy": ("glyphoxa.cli.upkeep:PRIVACY", "export or erase what is stored about a player or a session"),
    },
    "operation": {
        "doctor": ("glyphoxa.cli.setup:DOCTOR", "check machine, settings, models and database"),
        "config": ("glyphoxa.cli.setup:CONFIG", "check the settings; print all settings"),
        "models": ("glyphoxa.cli.setup:MODELS", "list, fetch, verify and recommend local models; voices"),
        "worker": ("glyphoxa.cli.upkeep:WORKER", "read transcripts in the background; status, retry, reindex"),
    },
}
"""Each verb with its declaration, and its line in the help. Only the verb that is used is imported."""

_EXAMPLES: Final = {
    "serve": "serve --campaign my-campaign.yaml --host 0.0.0.0 --tls-self-signed",
    "table": 'table direct Korvald "be short with them" --turns 2',
    "campaign": "campaign check my-campaign.yaml",
    "entity": 'entity add "Old Bess" npc --occupation ferrywoman',
    "facts": "facts accept 7fb0",
    "transcript": 'transcript correct "the tithe" "They pay the tide."',
    "wrap-up": "wrap-up last --accept 12,20-25 --drop 14",
    "names": 'names accept "core valid" Korvald',
    "show": "show facts --as Korvald",
    "recall": 'recall "Where was Thomas lost?" --npc Korvald --explain',
    "privacy": "privacy export mira.json --player Mira",
    "doctor": "doctor --config glyphoxa.yaml",
    "config": "config check glyphoxa.yaml",
    "models": "models fetch qwen2.5-coder-1.5b-instruct-q4_k_m",
    "worker": "worker read last",
}
"""An example of each verb, for its help."""

_OWN: Final = {
    verb: Command(group, place, text, _EXAMPLES[verb])
    for group, verbs in _GROUPS.items()
    for verb, (place, text) in verbs.items()
}

ENVIRONMENT: Final = """\
The settings file (--config) says where the database is, and which campaign is
meant. Without one, all settings have their defaults.

environment:
  GLYPHOXA_DATA    directory of the embedded database and of what is said before
                   it is stored. `data_dir` in the settings overrides it.
                   Default: the user's data directory; root's is
                   /var/lib/glyphoxa
  GLYPHOXA_MODELS  a directory that is searched before a model is downloaded
  GLYPHOXA_MCP_TOKEN, GLYPHOXA_MCP_DM_TOKEN
                   tokens of `glyphoxa mcp`: for an NPC's memory, and for the DM

`glyphoxa VERB --help` shows more about each verb.
"""


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """
    Args:
        verb: The one whose options are added; None for all. Of the others only the names are there.
    """
    import argparse

    known = {name: (None, command) for name, command in _OWN.items()} if verb in _OWN else commands()

    class Version(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
            from importlib.metadata import version

            print(f"glyphoxa {version('glyphoxa')}")
            parser.exit()

    root = argparse.ArgumentParser(
        prog="glyphoxa",
        description="Voice characters for tabletop role-playing.",
        usage="glyphoxa [-h] [--version] VERB ...",
        epilog=f"{_verbs_in_groups(known)}\n{ENVIRONMENT}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    verbs = root.add_subparsers(dest="verb", metavar="VERB", prog="glyphoxa", help=argparse.SUPPRESS, required=True)
    for name, (plugin, command) in known.items():
        if verb in (name, None):
            from glyphoxa.cli.verb import Verb

            declared = pkgutil.resolve_name(command.verb) if plugin is None else plugin.load(command.verb, kind=Verb)
            for one in plugins():
                if name in one.plugin.actions:
                    one.load(one.plugin.actions[name])  # declares them
            declared.add_to(verbs, name, command.text, example=f"glyphoxa {command.example}")
        else:
            verbs.add_parser(name)
    return root


def commands() -> dict[str, tuple[Installed | None, Command]]:
    """Return all verbs in the order of the help, each with the plug-in that adds it.

    Raises:
        BrokenPlugin: A plug-in cannot be loaded, or two have a verb of the same name.
    """
    found = claims("commands", _OWN)
    groups = list(dict.fromkeys(command.group for _, command in found.values()))
    return dict(sorted(found.items(), key=lambda item: groups.index(item[1][1].group)))


def _verbs_in_groups(known: Mapping[str, tuple[object, Command]]) -> str:
    lines: list[str] = []
    for title, rows in groupby(known.items(), key=lambda item: item[1][1].group):
        lines += [f"{title}:", *(f"  {name:<12}{command.text}" for name, (_, command) in rows), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    with on_any_output():
        if find_spec("fcntl") is None:
            print(f"glyphoxa: {_WINDOWS}", file=sys.stderr)
            return 1
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    with _interrupted_at_once():
        from glyphoxa.adapters.local import machine as native_env
        from glyphoxa.domain.errors import GlyphoxaError

        native_env.prepare()
        try:
            options = _options(sys.argv[1:] if arguments is None else arguments)
        except GlyphoxaError as broken:
            print(f"glyphoxa: {broken}", file=sys.stderr)
            return 1
        from glyphoxa.observability import set_up_logs

        # `serve` sets this up again, from its settings.
        set_up_logs(level="WARNING")
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
    # No option before the verb has a value, and the help of all verbs needs none.
    is_help = arguments and arguments[0] in ("-h", "--help")
    root = parser("" if is_help else next((each for each in arguments if not each.startswith("-")), ""))
    if not arguments:
        root.print_help(sys.stderr)
        raise SystemExit(2)
    options, free = root.parse_known_args(arguments)
    if free and not getattr(options, "takes_any_option", False):
        options.parser.error(f"unrecognized arguments: {' '.join(free)}")
    options.free = free
    return options


@contextmanager
def on_any_output() -> Iterator[None]:
    """Write characters that cannot be shown as `?`, and end quietly when nobody reads the output.

    Raises:
        SystemExit: Output could not be written, and standard error says so; or a file operation failed unexpectedly.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe (`glyphoxa ... | head`).
        _forget_the_rest()
        raise SystemExit(0) from None
    except OSError as error:
        _forget_the_rest()
        with suppress(OSError):
            print(f"glyphoxa: {error.strerror or error}{_place_of(error)}", file=sys.stderr)
        raise SystemExit(1) from None


def _place_of(error: OSError) -> str:
    return f": {error.filename}" if error.filename is not None else " (while writing the output)"


def _forget_the_rest() -> None:
    """Drop unwritten output: the interpreter would write it again at its end, and show a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError), Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """End the process silently on Ctrl-C. During an import the exception would be shown, taken for a failed import, or
    swallowed; nothing is open yet.
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
