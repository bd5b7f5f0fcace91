"""How the settings want names put right: the stage by sound, and who looks again behind the talk."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial

from glyphoxa.adapters.postgres.names.learned import NameChanges, PostgresLearnedNames
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.chronicle import Slot, open_structured_llm
from glyphoxa.app.models import LocalModels
from glyphoxa.config.provider_sections import CorrectionSettings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.events import UtteranceRevised
from glyphoxa.domain.ids import NpcId, UtteranceId
from glyphoxa.names.corrector import Corrector
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.table_names import NamesOfGraph, TableNames
from glyphoxa.providers.building import NONE, SECOND_LOOK, runs_here
from glyphoxa.transcript.journal import Journal
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.reviser import Asking, Reviser

LOCAL_NAMES = 16
LOCAL_DEADLINE_MS = 60_000
CLOUD_DEADLINE_MS = 10_000
"""The local model reads some 50 tokens a second and writes 20; a cloud model that takes so long has a bad day."""


def make_names(
    campaign: Campaign,
    settings: CorrectionSettings,
    store: Store | None,
    *,
    now_ms: Callable[[], int],
    wait_until_logged: Callable[[UtteranceId], Awaitable[bool]],
) -> TableNames:
    """
    Args:
        now_ms: Unix epoch.
        wait_until_logged: See `glyphoxa.names.learning.Learner`.
    """
    graph = None
    if store is not None:
        graph = NamesOfGraph(PostgresLearnedNames(store.database), NameChanges(store.listener))
    return TableNames(
        campaign,
        now_ms=now_ms,
        corrector=partial(corrector_of, settings=settings) if settings.phonetic else None,
        graph=graph,
        wait_until_logged=wait_until_logged,
    )


def corrector_of(names: Gazetteer, settings: CorrectionSettings) -> Corrector:
    if settings.algorithm == "shipped":
        return Corrector(names, caution=settings.caution)
    # Loaded by who asks for it alone.
    from glyphoxa.names.documents import documents_corrector

    return documents_corrector(
        names, phonetic_threshold=settings.phonetic_threshold, fuzzy_threshold=settings.fuzzy_threshold
    )


def transcribed(campaign: Campaign) -> frozenset[NpcId]:
    """NPCs whose words are what a speech-to-speech provider wrote down of its own voice."""
    return frozenset(npc.id for npc in campaign.npcs if npc.engine == "s2s")


async def open_asking(
    settings: CorrectionSettings,
    stack: AsyncExitStack,
    *,
    local: LocalModels,
    environ: Mapping[str, str] = os.environ,
) -> Asking | None:
    """The language model that looks again; None without one. Closed by `stack`.

    Raises:
        InvalidInput: Its key is not set, or its package is not installed.
    """
    chosen = settings.llm
    if chosen.name == NONE:
        return None
    llama = local.llama
    here = None if llama is None else Slot(llama, llama.slots - 1)
    llm = open_structured_llm(chosen, stack, kind=SECOND_LOOK, here=here, environ=environ)
    if runs_here(SECOND_LOOK, chosen.name):
        return Asking(
            llm,
            deadline_ms=LOCAL_DEADLINE_MS,
            low_confidence=settings.low_confidence,
            most_names=LOCAL_NAMES,
            gives_way=True,
        )
    return Asking(llm, deadline_ms=CLOUD_DEADLINE_MS, low_confidence=settings.low_confidence)


def make_reviser(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
    campaign: Campaign,
    names: TableNames,
    *,
    asking: Asking | None,
    tell: Callable[[UtteranceRevised], None],
    log: TranscriptLog | None,
    journal: Journal,
    wait_until_quiet: Callable[[], Awaitable[None]],
    after_revise: Callable[[], Awaitable[None]],
) -> Reviser | None:
    """None when there is nothing that could be looked at."""
    heard_by_provider = transcribed(campaign)
    if asking is None and not heard_by_provider:
        return None
    return Reviser(
        lambda: names.current,
        correct=names.correct,
        tell=tell,
        log=log,
        wait_until_logged=journal.delivery.wait_until_logged,
        asking=asking,
        transcribed=heard_by_provider,
        nearby=names.nearby,
        wait_until_quiet=wait_until_quiet,
        on_proof=names.proved,
        after_revise=after_revise,
    )
