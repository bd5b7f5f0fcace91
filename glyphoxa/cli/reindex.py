"""`glyphoxa reindex`: bring what is found by its meaning up to date, or over to another embeddings model."""

from __future__ import annotations

import argparse
from contextlib import aclosing

from rich.console import Console

from glyphoxa.adapters.postgres.chunks.reindex import Reindexed, reindex
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.bootstrap.embedder import fetch_embedder
from glyphoxa.cli.scope import CONFIG, campaign_argument, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import Verb, argument, in_a_loop

VERB = Verb(in_a_loop)


@VERB.itself(
    campaign_argument("--campaign", otherwise="else the talk of all"),
    argument("--full", help="embed everything anew, even what is up to date"),
    CONFIG,
    text="Embeds what talk is missing from recall by meaning, and all of it when the embeddings model or its "
    "dimensions are others than the database's. What is there serves until the new is complete. It may be stopped at "
    "any time, and goes on where it was.",
)
async def _run(options: argparse.Namespace) -> int:
    settings = settings_with_memory(options.config, to_hold="talk")
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    embedder = await fetch_embedder(settings)
    async with (
        aclosing(embedder),
        open_store(
            settings.memory.postgres_dsn,
            data_dir=settings.data_directory,
            embedding_dimensions=settings.memory.embedding_dimensions,
            embedder=embedder,
            any_model=True,
        ) as store,
    ):
        campaign = None if options.campaign is None else await stored_campaign(store, options.campaign)
        done = await reindex(store.database, embedder, campaign=campaign, full=options.full, tell=console.print)
    Console(highlight=False, markup=False, soft_wrap=True).print(_summary(done, embedder.name))
    return 0


def _summary(done: Reindexed, model: str) -> str:
    embedded, failed = done.filled.embedded, done.filled.failed
    if done.swapped:
        text = f"all talk is found by the vectors of {model} now; {embedded} utterances were embedded"
    else:
        text = f"{embedded} utterances were embedded" if embedded else "nothing was missing"
    return f"{text}; {failed} could not be, see the log" if failed else text
