from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.filesize import decimal

from glyphoxa.adapters.weights.chat_models import ModelWeights
from glyphoxa.adapters.weights.progress import progress_to
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.bootstrap.local_models import weights_for
from glyphoxa.cli.recommended import model_to_measure, told
from glyphoxa.cli.scope import CONFIG
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Argument, Verb, argument, at_once
from glyphoxa.config.settings import read_settings
from glyphoxa.providers.recommending import CHAT_MODELS, Machine, judged

DEFAULT_NAMES = ("whisper-tiny.en", "minilm-l6-v2-int8", "qwen2.5-coder-1.5b-instruct-q4_k_m")
"""What a table without any key needs; the voices come with their package."""


def list_models(store: WeightStore, out: TextIO) -> int:
    """A table of the artefacts. Nothing is read or fetched."""
    table = a_table("artefact", "state", "size", "licence", "what", right=["size"])
    for status in store.status():
        artefact = status.artefact
        state = status.state if status.state != "partial" else f"{100 * status.have // artefact.size} %"
        table.add_row(status.name, state, decimal(artefact.size), artefact.licence, artefact.what)
    show(table, out)
    print(f"kept in {store.directory}", file=out)
    return 0


def fetch(
    weights: ModelWeights,
    names: Sequence[str] | None,
    out: TextIO,
    *,
    copy_from: Path | None = None,
    anew: bool = False,
) -> int:
    """Bring the artefacts in (`None`: what the local stack needs), showing progress.

    Raises:
        NotFound, Corrupt, Unavailable: As `ModelWeights.ensure`.
    """
    with progress_to(out) as progress:
        wanted = DEFAULT_NAMES if names is None else names
        paths = weights.ensure(wanted, progress, copy_from=copy_from, anew=anew)
    for name, path in paths.items():
        print(f"{name}: {path}", file=out)
    return 0


def verify(store: WeightStore, names: Sequence[str] | None, out: TextIO) -> int:
    """Hash the artefacts (`None`: all that are here) and say of each file that it is right.

    Raises:
        NotFound: An artefact is unknown, or named and not here.
        Corrupt: A file differs.
    """
    here = [status.name for status in store.status() if status.state in ("ready", "unverified")]
    for name, path in store.verify(here if names is None else names):
        print(f"{name}: {path.name} is right", file=out, flush=True)
    return 0


_BUSY = 0.7
"""Programs that want a core, for each core: beside so many a model reads and speaks at a fraction of its speed."""

VERB = Verb(at_once, common=[CONFIG])
_ALL = argument("--all", help="every artefact of the manifest")


def _named(otherwise: str) -> Argument:
    return argument(
        "names",
        nargs="*",
        metavar="ARTEFACT",
        help=f"names as `models list` shows them, or OWNER/REPO/FILE.gguf of the hub; {otherwise}",
    )


@VERB.action("what there is, what is here, under which licence")
def _list(options: argparse.Namespace) -> int:
    return list_models(_weights(options).store, sys.stdout)


@VERB.action(
    "bring in what is missing; goes on where it was interrupted",
    _named("by default what the local stack needs"),
    _ALL,
    argument("--anew", help="take what the hub declares of its files now in the place of what was fetched first"),
    argument("--from", dest="copy_from", type=Path, metavar="PATH", help="a file or directory to try first"),
)
def _fetch(options: argparse.Namespace) -> int:
    weights = _weights(options)
    return fetch(weights, _names(options, weights), sys.stderr, copy_from=options.copy_from, anew=options.anew)


@VERB.action(
    "read every byte and compare; a file that differs is removed", _named("by default all that are here"), _ALL
)
def _verify(options: argparse.Namespace) -> int:
    weights = _weights(options)
    return verify(weights.store, _names(options, weights), sys.stdout)


@VERB.action(
    "measure this machine for a few seconds, and say which chat models it can hold a table with",
    argument(
        "--npcs",
        type=int,
        choices=range(1, 33),
        default=3,
        metavar="N",
        help="how many NPCs the table has (default: 3)",
    ),
)
def _recommend(options: argparse.Namespace) -> int:
    from glyphoxa.adapters.local.speed import busy_with, free_memory, measure

    settings = read_settings(options.config)
    name, file = model_to_measure(settings, _weights(options))
    machine = Machine(free_memory(), n_npcs=options.npcs)
    print(f"measuring with {file.path.name} ...", file=sys.stderr, flush=True)
    if busy_with() > _BUSY:
        print(
            "other programs use this machine: it will seem slower than it is; measure again when it is quiet",
            file=sys.stderr,
            flush=True,
        )
    measured = asyncio.run(measure(file.path))
    told(name, measured, machine, [judged(each, measured, machine) for each in CHAT_MODELS], sys.stdout)
    return 0


def _weights(options: argparse.Namespace) -> ModelWeights:
    return weights_for(read_settings(options.config))


def _names(options: argparse.Namespace, weights: ModelWeights) -> list[str] | None:
    if options.all:
        return weights.store.names()
    return list(options.names) or None
