"""The command line. One module a verb; errors are one line, never a traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from glyphoxa.adapters.local import native_env
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.observability import log


def parser() -> argparse.ArgumentParser:
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
        serve,
        turns,
    )

    root = argparse.ArgumentParser(prog="glyphoxa", description="Voice characters for tabletop role-playing.")
    root.add_argument("--version", action="version", version=f"glyphoxa {version('glyphoxa')}")
    verbs = root.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in (serve, campaign, calendar, facts, entity, inspect, recall, turns, names, reindex, config, models):
        verb.add_parser(verbs)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    native_env.prepare()
    root = parser()
    options, free = root.parse_known_args(arguments)
    if free and not getattr(options, "takes_attributes", False):
        root.error(f"unrecognized arguments: {' '.join(free)}")
    options.free = free
    # A verb answers; how a table is doing is logged by the one that opens it, as its settings want.
    log.set_up(level="WARNING")
    try:
        return int(options.run(options))
    except GlyphoxaError as error:
        print(f"glyphoxa: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough (`glyphoxa ... | head`).
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
