"""`glyphoxa demo`: an evening at the table, played from recordings. It lives in the repository, not in the wheel."""

from __future__ import annotations

import argparse
import importlib.util

from glyphoxa.domain.errors import Unavailable


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("demo", help="play an evening with two recorded players, to be seen and heard")
    if importlib.util.find_spec("demo.__main__") is None:
        parser.set_defaults(run=_missing)
        return
    from demo.__main__ import add_arguments, run

    add_arguments(parser)
    parser.set_defaults(run=run)


def _missing(_: argparse.Namespace) -> int:
    raise Unavailable("the demo is part of the repository, not of the installed package: run it in a clone")
