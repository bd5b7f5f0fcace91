"""The table that the turn benchmark measures: a campaign of any size, settings, and a long past."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.turn_providers import Addresses
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.bootstrap import local_models
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.embedder import embedder_of
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.provider_sections import (
    EmbeddingsSettings,
    LlmSettings,
    ProvidersSettings,
    SttSettings,
    TtsSettings,
)
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.utterance import Utterance
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.spool import Spool

CAMPAIGN = Path(__file__).resolve().parents[1] / "demo" / "campaign.yaml"
KEY_VARIABLE = "GLYPHOXA_BENCHMARK_KEY"
PAUSE_MS = 200
EAGER_END_OF_TURN_MS = 480
_MORE_NPCS = ("Odrun", "Telvasha", "Brannoch", "Ysolde", "Pergrin", "Wulfgard", "Isaveth", "Corrigan")
_MORE_PLAYERS = ("Merle", "Tamsin", "Piers", "Agnes", "Rowan", "Edda")
_A_SESSION = 100
_HOUR_MS = 3_600_000
_FLUSH_MS = 600_000
_AT_ONCE = 200
_TALK = (
    "Did you hear what {who} did near {where}?",
    "I left my pack at {where} and the rain got into everything.",
    "{who} asked me about {thing} again, and I would not say.",
    "We could ask {who} for rope before we go to {where}.",
    "The road to {where} is worse than it was, my boots are full of mud.",
    "I do not trust {who}, not since {where}.",
    "Somebody should write to {who} about {thing}.",
    "There were wolves behind {where} last night.",
    "I would give ten crowns to know where {thing} is now.",
    "Two ales, please, and bread if you have any.",
    "My brother's lantern was found by the river.",
    "Let us rest until the bell rings.",
)


@contextmanager
def a_directory() -> Iterator[Path]:
    """A new directory that is gone afterwards. The database's account must be able to pass through it."""
    path = Path(tempfile.mkdtemp(prefix="glyphoxa-benchmark-"))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Size:
    npcs: int
    speakers: int
    history_entries: int


def write_campaign(directory: Path, size: Size, *, name: str | None = None) -> Path:
    """The demo's campaign with as many NPCs, all in one scene, and players as are wanted.

    Args:
        name: Another one than the demo's, for another campaign.
    """
    document: dict[str, Any] = yaml.safe_load(CAMPAIGN.read_text("utf-8"))
    if name is not None:
        document["campaign"] |= {"name": name, "id": name.lower().replace(" ", "-")}
    own = document["npcs"]
    for n in range(max(0, size.npcs - len(own))):
        name = _MORE_NPCS[n] if n < len(_MORE_NPCS) else f"Garrow{n}"
        document["entities"].append({"name": name, "type": "npc", "attributes": {"description": f"{name} is a guard."}})
        persona = own[0]["persona"].replace("Korvald", name)
        document["npcs"].append({"entity": name, "voice": own[0]["voice"], "persona": persona})
    document["npcs"] = document["npcs"][: size.npcs]
    here = [npc["entity"] for npc in document["npcs"]]
    document["players"] = document["players"][: size.speakers]
    for n in range(size.speakers - len(document["players"])):
        document["players"].append({"name": _MORE_PLAYERS[n] if n < len(_MORE_PLAYERS) else f"Player{n}"})
    document["scenes"] = [{**document["scenes"][0], "npcs": here}]
    document["secrets"] = [s for s in document["secrets"] if set(s["known_by"]) <= set(here)]
    path = directory / "campaign.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), "utf-8")
    return path


def cloud_settings(campaign: Path, data: Path, addresses: Addresses, *, end_of_turn_ms: int) -> Settings:
    """The product's own clients, pointed at this machine."""
    os.environ[KEY_VARIABLE] = "benchmark"  # the clients refuse to start without one
    return Settings(
        campaign=campaign,
        data_dir=data,
        providers=ProvidersSettings(
            stt=SttSettings(name="deepgram-nova", base_url=addresses.deepgram, api_key_env=KEY_VARIABLE),
            llm=LlmSettings(name="openai-compatible", model="benchmark", base_url=addresses.openai),
            tts=TtsSettings(name="openai", base_url=addresses.openai, api_key_env=KEY_VARIABLE),
            embeddings=EmbeddingsSettings(name="minilm"),
        ),
        turns=TurnsSettings(pause_ms=PAUSE_MS, end_of_turn_ms=end_of_turn_ms),
    )


def local_settings(campaign: Path, data: Path, llm: str) -> Settings:
    """As they are shipped, but for the sound that leads in a slow answer: the first sample is the answer's."""
    return Settings(
        campaign=campaign,
        data_dir=data,
        providers=ProvidersSettings(llm=LlmSettings(name=llm)),
        turns=TurnsSettings(filler_after_ms=0),
    )


async def load_history(settings: Settings, n_entries: int, *, tell: Callable[[str], None]) -> None:
    """Put talk of earlier sessions into memory the way the product does: spool, log, embeddings.

    Raises:
        Unavailable: The database did not take it.
    """
    if not n_entries or settings.campaign is None:
        return
    campaign = read_campaign(settings.campaign).campaign
    only_minilm = settings.model_copy(
        update={
            "providers": ProvidersSettings(
                stt=SttSettings(name="deepgram-nova"), llm=LlmSettings(name="openai"), tts=TtsSettings(name="openai")
            )
        }
    )
    async with AsyncExitStack() as stack:
        models = await local_models.load(only_minilm, stack, slots=1)

        store = await stack.enter_async_context(
            open_store(settings.memory.postgres_dsn, data_dir=settings.data_directory, embedder=embedder_of(models))
        )
        await store.database.open()
        await store.campaigns.load(campaign)

        async def embed_new() -> None:
            n_done = (await store.chunks.fill_missing(campaign.id)).embedded
            done[0] += n_done
            if done[0] % 1_000 < n_done:
                tell(f"{done[0]} of {n_entries} past utterances in memory")

        done = [0]
        journal = Journal(Spool(settings.data_directory / "spool"), store.log, after_append=embed_new)
        try:
            await keep_all(journal.keep, past_talk(campaign, n_entries))
            if not await journal.flush(_FLUSH_MS):
                raise Unavailable("the past could not be written to the database")
        finally:
            await journal.close()


async def keep_all(keep: Callable[[Utterance], Awaitable[None]], utterances: Sequence[Utterance]) -> None:
    for at in range(0, len(utterances), _AT_ONCE):
        await asyncio.gather(*(keep(utterance) for utterance in utterances[at : at + _AT_ONCE]))


def past_talk(campaign: Campaign, n_entries: int, *, seed: int = 7) -> list[Utterance]:
    """Talk of earlier sessions, the same in every run; each heard by some of the NPCs."""
    dice = random.Random(seed)
    people = [entity.name for entity in campaign.entities if entity.type in ("npc", "player")]
    places = [entity.name for entity in campaign.entities if entity.type == "location"]
    things = [entity.name for entity in campaign.entities if entity.type in ("item", "quest", "faction")]
    npcs = [npc.id for npc in campaign.npcs]
    began_ms = now_ms() - (n_entries // _A_SESSION + 1) * 24 * _HOUR_MS
    said: list[Utterance] = []
    for n in range(n_entries):
        text = dice.choice(_TALK).format(who=dice.choice(people), where=dice.choice(places), thing=dice.choice(things))
        speaker = dice.choice(campaign.players)
        session, line = divmod(n, _A_SESSION)
        said.append(
            Utterance(
                id=UtteranceId(f"past-{n:06d}"),
                campaign_id=campaign.id,
                session_id=SessionId(f"past-{session:04d}"),
                speaker_id=SpeakerId(speaker.id),
                speaker_name=speaker.name,
                text=text,
                raw_text=text,
                at_ms=began_ms + session * 24 * _HOUR_MS + line * 20_000,
                duration_ms=2_500,
                witnesses=frozenset(npc for npc in npcs if dice.random() < 0.6),
            )
        )
    return said
