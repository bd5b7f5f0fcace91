"""`glyphoxa models recommend`: which chat models this machine can hold a table with. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.filesize import decimal

from glyphoxa.adapters.weights.chat_models import ModelFile, ModelWeights
from glyphoxa.cli.tables import a_table, show
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import NotFound
from glyphoxa.providers.gguf_names import hub_name
from glyphoxa.providers.recommending import WITHIN_S, Machine, Measured, Reckoned, best
from glyphoxa.providers.registry import LLM, weights_of
from glyphoxa.providers.rows import ROWS


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
