"""Opens a table: makes its parts, starts them, and hands over what closes them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from loguru import logger

from glyphoxa.bootstrap import engines, local_models
from glyphoxa.bootstrap.chronicle import local_slots
from glyphoxa.bootstrap.closing import STEP_MS, ClosingStack
from glyphoxa.bootstrap.desk import DeskSource
from glyphoxa.bootstrap.memory import SaidBefore, open_store_for
from glyphoxa.bootstrap.playable import read_playable
from glyphoxa.bootstrap.table_parts import NOBODY, Observers, Opening, Wired, open_outside_tools, wire
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import SessionId
from glyphoxa.npc.live_table import LiveTable, SessionEnd, enter
from glyphoxa.observability.loop_lag import measure_lag


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """
    Attributes:
        desk: For its game master; None without long-term memory. It closes with the table.
    """

    table: LiveTable
    desk: DeskSource | None


async def open_table(
    settings: Settings,
    *,
    campaign: Campaign | None = None,
    session_name: str | None = None,
    tell: Callable[[str], None] = logger.info,
    observers: Observers = NOBODY,
) -> LiveTable:
    """As `open_with_desk`, without the desk."""
    opened = await open_with_desk(
        settings, campaign=campaign, session_name=session_name, tell=tell, observers=observers
    )
    return opened.table


async def open_with_desk(
    settings: Settings,
    *,
    campaign: Campaign | None = None,
    session_name: str | None = None,
    tell: Callable[[str], None] = logger.info,
    observers: Observers = NOBODY,
) -> OpenedTable:
    """Open a session of the campaign that the settings name. Everything slow happens here, before anybody speaks.

    Args:
        campaign: The campaign to play, for who has read it already; else the settings' file is read.
        session_name: The session's id; by default one made of the campaign and the time.
        tell: Takes lines for the user about what takes long.
        observers: Told of all that happens. Whoever made them closes them.

    Raises:
        InvalidInput: The settings or the campaign file cannot be used.
        Unavailable: A model or a database cannot be reached.
    """
    if campaign is None:
        if settings.campaign is None:
            raise InvalidInput("no campaign is set: add `campaign: FILE` to the settings, or name a file")
        campaign = read_playable(settings.campaign, settings).campaign
    mouths = {npc.engine: engines.find_mouth(npc.engine, files=settings.engines) for npc in campaign.npcs}
    name = session_name or f"{campaign.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with ClosingStack() as stack:
        local = await local_models.load(settings, stack, slots=local_slots(settings, campaign), tell=tell)
        store = await open_store_for(settings, local, stack)
        outside = await open_outside_tools(settings.mcp, campaign, stack)
        opening = Opening(
            settings=settings,
            campaign=campaign,
            session=SessionId(name),
            local=local,
            store=store,
            mouths=mouths,
            outside=outside,
            observers=observers,
        )
        table = await open_with(opening, stack, tell=tell)
        table.adopt(stack.pop_all())
    tell("the table is ready")
    return OpenedTable(table, None if store is None else DeskSource(store, settings, campaign.id))


async def open_with(opening: Opening, stack: ClosingStack, *, tell: Callable[[str], None] = logger.info) -> LiveTable:
    """Open a table with models and a store that are there already. `stack` closes what was opened for it: give it to
    the table (`LiveTable.adopt`).
    """
    table = await _start(await wire(opening, stack), stack, tell=tell)
    _spare_what_stays(stack)
    return table


async def _start(wired: Wired, stack: ClosingStack, *, tell: Callable[[str], None]) -> LiveTable:
    """Open every engine and start the actors. Closed in reverse order."""
    parts, memory, supervisor = wired.parts, wired.memory, wired.supervision.supervisor
    state = parts.state
    tell("opening memory")
    await memory.open()
    await parts.names.open()
    before = await memory.said_before(state.session)
    _remember(before, wired)
    if before.shown:
        tell(f"session {state.session} goes on: its last {len(before.shown)} utterances are known")
    await enter(state.scene, state, parts.context)
    if wired.dm is not None:
        await wired.dm.open()
    await parts.preparation.open_scene(tell)
    memory.start(supervisor)
    supervisor.start("journal", parts.journal.run)
    stack.push_step("what the session leaves", SessionEnd.within_ms + STEP_MS, parts.end.write_down)
    supervisor.start("room", parts.room.run)
    wired.supervision.start_npcs()
    parts.names.start(supervisor)
    if wired.followed_talk is not None:
        supervisor.start("talk", wired.followed_talk.run)
    if wired.reviser is not None:
        supervisor.start("second look", wired.reviser.run)
        supervisor.start("revisions", wired.revisions.run)
    table = LiveTable(parts, earlier=before.shown)
    await table.move(state.scene.id)
    parts.room.remember(before.remembered)  # a scene that is entered makes who speaks with whom forgotten
    if wired.dm is not None:
        wired.dm.start(supervisor, table)
    supervisor.start("preparation", parts.preparation.run)
    if wired.idle is not None:
        supervisor.start("idle close", wired.idle.run)
    if (metrics := wired.observers.metrics) is not None:
        supervisor.start("event loop lag", lambda: measure_lag(metrics.lagged))
    return table


def _remember(before: SaidBefore, wired: Wired) -> None:
    """After a restart within a session the NPCs go on where they were, and the page shows what it showed."""
    wired.parts.state.remember(before.remembered)
    wired.memory.journal.recent.remember(before.remembered)
    wired.typed.kept(before.shown)


def _spare_what_stays(stack: ClosingStack) -> None:
    """Names, models' tables and the rest stay until the end: collecting garbage among them would stop the sound for
    as long as a syllable (10,000 names: 70 ms).
    """
    gc.collect()
    gc.freeze()
    stack.callback(gc.unfreeze)
