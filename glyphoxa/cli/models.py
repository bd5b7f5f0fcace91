"""`glyphoxa models`: the weights of local models are listed, fetched, verified and recommended."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.filesize import decimal

from glyphoxa.adapters.local.machine import busy_with, free_memory
from glyphoxa.adapters.weights.download import ShownProgress
from glyphoxa.adapters.weights.store import ModelFile, ModelWeights, WeightStore
from glyphoxa.bootstrap.local_models import weights_for
from glyphoxa.cli.scope import CONFIG
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Argument, Verb, argument, at_once
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import NotFound
from glyphoxa.providers.chat_models import CHAT_MODELS, WITHIN_S, Machine, Measured, Reckoned, best, hub_name, judged
from glyphoxa.providers.registry import LLM, weights_of
from glyphoxa.providers.rows import ROWS

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
    with ShownProgress(out) as progress:
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
    from glyphoxa.adapters.local.speed import measure

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


# Recommending


def model_to_measure(settings: Settings, weights: ModelWeights) -> tuple[str, ModelFile]:
    """That of the settings if it runs here and is here, else one of the shipped that is.

    Raises:
        NotFound: No language model is here.
        Corrupt: It is not what it must be.
    """
    shipped = [name for row in ROWS if row.kind == "llm" for name in row.weights]
    for name in (*weights_of(LLM, settings.providers.llm), *shipped):
        if weights.has(name):
            return name, weights.find(name)
    raise NotFound(f"no language model is here to measure with; bring one in with `glyphoxa models fetch {shipped[0]}`")


def told(name: str, measured: Measured, machine: Machine, verdicts: Sequence[Reckoned], out: TextIO) -> None:
    """Says it."""
    print(
        f"{Path(name).name} reads {measured.reads_per_s:.0f} tokens a second here and speaks"
        f" {measured.speaks_per_s:.0f}. {decimal(machine.free_bytes)} of memory are free."
        f" Reckoned from that, for {machine.n_npcs} NPCs:\n",
        file=out,
    )
    table = a_table(
        "model", "parameters", "licence", "file", "memory", "reads an NPC", "first words", "speaks", "holds a table"
    )
    for one in verdicts:
        model = one.model
        table.add_row(
            model.name.rpartition("/")[2],
            f"{model.billions:.1f} B {model.quantisation}",
            model.licence,
            decimal(model.bytes),
            decimal(one.bytes),
            f"{one.opens_s:.0f} s",
            f"{one.first_clause_s:.1f} s",
            f"{one.speaks_per_s:.0f}/s",
            "no: " + "; ".join(one.against) if one.against else "yes",
        )
    show(table, out)
    found = best(verdicts)
    if found is None:
        print(f"\nNone answers within {WITHIN_S:g} s here: let a server think (`ollama`, `openai` ...).", file=out)
        return
    print(f"\nThe largest that holds a table: {found.model.name}", file=out)
    print(f"  glyphoxa models fetch {found.model.name}", file=out)
    print(f"  providers: {{llm: {_llm(found.model.name)}}}", file=out)


def _llm(name: str) -> str:
    shipped = next((row.name for row in ROWS if row.kind == "llm" and name in row.weights), None)
    return f"{{name: {shipped}}}" if hub_name(name) is None else f"{{name: local, model: {name}}}"
