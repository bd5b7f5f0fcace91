"""Load a memory with given utterances as a table does it: spool, transcript log, embeddings."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Final, Literal

from numpy import float32
from numpy.typing import NDArray

from benchmarks.invented import Embeddings
from benchmarks.recall_data import RecallData, campaign_of, utterances_of
from benchmarks.runner import filled_once, tell
from benchmarks.table import write_talk
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.app.models import load_embedder
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.recall.talk_index import TalkIndex
from glyphoxa.recall.vectors import Embed, Embedder, hash_of

EmbeddingsKind = Literal["minilm", "invented", "none"]
_PATIENCE_MS: Final = 60_000
LATER_MS: Final = 7 * 24 * 3_600_000
"""A table meets again a week later."""


@dataclass(slots=True)
class PatientEmbedder:
    """Waits for questions, so that a busy machine does not change the results, and counts those that a turn would miss.

    Attributes:
        embedder: For a store; None: words only.
    """

    embedder: Embedder | None
    deadline_ms: int
    n_late: int = 0

    @classmethod
    def around(cls, embedder: Embedder | None, *, deadline_ms: int) -> PatientEmbedder:
        patient = cls(None, deadline_ms)
        if embedder is not None:
            patient.embedder = replace(
                embedder,
                embed=patient._timed(embedder.embed),
                embed_otherwise=None if embedder.embed_otherwise is None else patient._timed(embedder.embed_otherwise),
            )
        return patient

    def _timed(self, embed: Embed) -> Embed:
        async def timed(texts: list[str]) -> NDArray[float32]:
            began = perf_counter()
            vectors = await embed(texts)
            self.n_late += len(texts) == 1 and 1_000 * (perf_counter() - began) > self.deadline_ms
            return vectors

        return timed


@dataclass(slots=True)
class Clock:
    now_ms: int = 0


@dataclass(frozen=True, slots=True)
class LoadedTalk:
    """
    Attributes:
        past_talk: The store's own recall, with the utterances loaded.
        clock: The time at which a question is asked.
        figures: Measurements of the loading.
    """

    store: Store
    past_talk: Recall
    questions: PatientEmbedder
    data: RecallData
    clock: Clock
    figures: dict[str, Any]

    def index(self, campaign: CampaignId) -> TalkIndex:
        index = self.past_talk.transcript(campaign).index
        if index is None:
            raise Unavailable(f"the transcript of {campaign} was dropped from memory")
        return index

    def recall_with(self, settings: RecallSettings) -> Recall:
        """Return another recall over the same utterances, a week after the last one. It has no cached question."""
        summaries, shared = self.store.summaries, self.past_talk.transcripts
        return Recall(shared, summaries=summaries, settings=patient(settings), now_ms=lambda: self.clock.now_ms)

    def ask_of(self, campaign: CampaignId) -> None:
        """Ask the next questions of this campaign."""
        self.clock.now_ms = self.data.turns[campaign][-1].at_ms + LATER_MS


def patient(settings: RecallSettings) -> RecallSettings:
    """Return the settings without deadlines."""
    deadlines: dict[str, Any] = {
        field.name: _PATIENCE_MS for field in fields(settings) if field.name.endswith("deadline_ms")
    }
    return replace(settings, **deadlines)


def place_for(kept: Path | None, temporary: Path) -> Path:
    """Return a directory to load into. The database's account must be able to pass through it."""
    place = kept or temporary
    place.mkdir(mode=0o711, parents=True, exist_ok=True)
    return place


@asynccontextmanager
async def loaded_talk(
    data: RecallData,
    directory: Path,
    *,
    embeddings: EmbeddingsKind = "minilm",
) -> AsyncIterator[LoadedTalk]:
    """Start an embedded server in `directory`, load all utterances, and read them into memory, for the time of the
    block.

    A directory that contains them already is reused.

    Raises:
        InvalidInput: The directory contains others.
        NotFound: The embedder's weights are not here.
        Unavailable: The database did not store the utterances.
    """
    shipped = RecallSettings()
    embedder = await _embedder(embeddings)
    questions = PatientEmbedder.around(embedder, deadline_ms=shipped.embed_deadline_ms)
    server = EmbeddedPostgres(directory / "postgres")
    async with open_store(server, embedder=questions.embedder, recall=patient(shipped)) as store:
        await store.database.open()
        name = "none" if embedder is None else embedder.name
        figures = await _load(store, data, directory, embeddings=name)
        questions.n_late = 0
        yield LoadedTalk(store, store.past_talk, questions, data, Clock(), {**figures, "embeddings": name})


async def _load(store: Store, data: RecallData, directory: Path, *, embeddings: str) -> dict[str, Any]:
    """Fill the database, unless the directory has been filled before; then only read."""

    async def fill() -> dict[str, Any]:
        began = perf_counter()
        for campaign, turns in data.turns.items():
            await store.campaigns.load(campaign_of(campaign, turns))
        began_talk = perf_counter()
        talk = [one for turns in data.turns.values() for one in utterances_of(turns)]
        await write_talk(store, talk, directory / "spool")
        talk_s = perf_counter() - began_talk
        tell(f"{data.n_turns} turns are in the log, in {talk_s:.1f} s")
        embed_s = await _embed(store, data)
        read_s = await _read(store, data)
        return {
            "turns": data.n_turns,
            "load_s": round(perf_counter() - began, 2),
            "talk_s": round(talk_s, 2),
            "embed_s": round(embed_s, 2),
            "read_s": round(read_s, 2),
        }

    key = hashlib.sha256(repr((embeddings, hash_of(""), sorted(data.turns.items()))).encode()).hexdigest()
    figures, is_new = await filled_once(directory, key, fill)
    return figures if is_new else {**figures, "read_s": round(await _read(store, data), 2)}


async def _read(store: Store, data: RecallData) -> float:
    began = perf_counter()
    for campaign in data.turns:
        await store.past_talk.transcript(campaign).refresh()
    return perf_counter() - began


async def _embed(store: Store, data: RecallData) -> float:
    began = perf_counter()
    for campaign in data.turns:
        await store.chunks.fill_missing(campaign)
        tell(f"the turns of {campaign} are embedded, {perf_counter() - began:.0f} s")
    return perf_counter() - began


async def _embedder(kind: EmbeddingsKind) -> Embedder | None:
    match kind:
        case "none":
            return None
        case "invented":
            return Embeddings.load("invented", seed=7).embedder
        case "minilm":
            return await load_embedder(Settings())
