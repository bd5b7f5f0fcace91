"""The model by which talk is found, for verbs that can do without it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from glyphoxa.adapters.postgres.server.binaries import check_binaries
from glyphoxa.bootstrap.embedder import load_embedder
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.recall.api import Embedder


@asynccontextmanager
async def embedder_or_words(settings: Settings, *, by_words: bool = False) -> AsyncIterator[Embedder | None]:
    """None where words alone decide, and why is said if nobody wanted it."""
    if by_words or settings.providers.embeddings.name == "none":
        yield None
        return
    if settings.memory.postgres_dsn is None:
        check_binaries()  # an installation with neither a model nor a database lacks one extra: one line says so
    try:
        embedder = await load_embedder(settings)
    except GlyphoxaError as error:
        print(f"glyphoxa: by words alone: {error}", file=sys.stderr)
        yield None
        return
    async with aclosing(embedder):
        yield embedder
