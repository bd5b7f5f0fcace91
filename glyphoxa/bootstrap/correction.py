"""How the settings want names put right: the stage by sound, and who looks again behind the talk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Container, Mapping
from contextlib import AsyncExitStack

from glyphoxa.bootstrap.local_models import LocalModels
from glyphoxa.bootstrap.structured_llm import Slot, open_structured_llm
from glyphoxa.config.settings import CorrectionSettings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.events import TableEvent, UtteranceRevised
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.npc.actor import GetReady, NpcActor, Revise
from glyphoxa.providers.registry import NONE, SECOND_LOOK, runs_here
from glyphoxa.speech.correction.corrector import Corrected
from glyphoxa.speech.names.gazetteer import Gazetteer
from glyphoxa.transcript.ports import TranscriptLog
from glyphoxa.transcript.recorder import Recorder
from glyphoxa.transcript.reviser import Asking, OnProof, Reviser

LOCAL_NAMES = 16
LOCAL_DEADLINE_MS = 60_000
CLOUD_DEADLINE_MS = 10_000
"""The local model reads some 50 tokens a second and writes 20; a cloud model that takes so long has a bad day."""


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


def open_second_look(
    campaign: Campaign,
    *,
    asking: Asking | None,
    gazetteer: Callable[[], Gazetteer],
    correct: Callable[[str], Corrected] | None,
    tell: Callable[[TableEvent], None],
    log: TranscriptLog | None,
    recorder: Recorder,
    npcs: Mapping[NpcId, NpcActor],
    somebody: Callable[[], str],
    nearby: Callable[[], Container[EntityId]],
    wait_until_quiet: Callable[[], Awaitable[None]],
    on_proof: OnProof,
    after_revise: Callable[[], Awaitable[None]],
) -> SecondLook | None:
    """None when there is nothing that could be looked at. See `Reviser`.

    Args:
        somebody: Who will probably speak next.
    """
    heard_by_provider = transcribed(campaign)
    if asking is None and not heard_by_provider:
        return None
    reviser = Reviser(
        gazetteer,
        correct=correct,
        tell=tell,
        log=log,
        wait_until_logged=recorder.wait_until_logged,
        asking=asking,
        transcribed=heard_by_provider,
        nearby=nearby,
        wait_until_quiet=wait_until_quiet,
        on_proof=on_proof,
        after_revise=after_revise,
    )
    return SecondLook(reviser, recorder, npcs, somebody, wait_until_quiet)


class SecondLook:
    """The reviser at one table, and the way of better words into the NPCs' talk.

    Protocol of use as of `Reviser`: subscribe `on`, run `run`, `finish` at the end of the session. Their talk changes
    while nobody speaks: a prompt that changes is read anew, and that must not be in a turn.
    """

    def __init__(
        self,
        reviser: Reviser,
        recorder: Recorder,
        npcs: Mapping[NpcId, NpcActor],
        somebody: Callable[[], str],
        wait_until_quiet: Callable[[], Awaitable[None]],
    ) -> None:
        self._reviser = reviser
        self._recorder = recorder
        self._npcs = npcs
        self._somebody = somebody
        self._wait_until_quiet = wait_until_quiet
        self._revised: list[UtteranceRevised] = []
        self._work = asyncio.Event()

    def on(self, event: TableEvent) -> None:
        """Take what happened at the table. Returns at once."""
        self._reviser.on(event)
        if isinstance(event, UtteranceRevised):
            self._recorder.revised(event.utterance)
            self._revised.append(event)
            self._work.set()

    async def run(self) -> None:
        """The actor's body."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reviser.run())
            group.create_task(self._spread())

    async def finish(self, deadline_ms: int) -> bool:
        """See `Reviser.finish`."""
        return await self._reviser.finish(deadline_ms)

    async def _spread(self) -> None:
        while True:
            if not self._revised:
                self._work.clear()
                await self._work.wait()
            await self._wait_until_quiet()
            revised, self._revised = self._revised, []
            concerned: dict[NpcId, None] = {}
            for event in revised:
                for npc in sorted(event.utterance.witnesses & self._npcs.keys()):
                    concerned[npc] = None
                    self._npcs[npc].mailbox.post(Revise(event.utterance, event.was.text))
            for npc in concerned:
                self._npcs[npc].mailbox.post(GetReady("", self._somebody()))
