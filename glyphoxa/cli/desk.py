"""What the verbs for a campaign's facts and entities work on."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Final

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.desk import Desk, desk_of
from glyphoxa.cli.opened import opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import argument
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, SessionId

YES: Final = argument("--yes", help="do not ask")
Act = Callable[[Desk, argparse.Namespace], Awaitable[int]]


def run_at_desk(options: argparse.Namespace, act: Act) -> int:
    """Open memory as the options of `CAMPAIGN` say, and act on its campaign."""
    return asyncio.run(_at_desk(options, act))


async def _at_desk(options: argparse.Namespace, act: Act) -> int:
    settings = settings_with_memory(options.config, to_hold="talk or facts")
    async with opened_store(settings) as store:
        return await act(await desk_at(store, settings, options.campaign), options)


async def desk_at(store: Store, settings: Settings, wanted: CampaignId | None) -> Desk:
    """A desk in an open store.

    Raises:
        GlyphoxaError: As `stored_campaign`.
    """
    return await desk_of(store, settings, await stored_campaign(store, wanted, settings))


async def session_of(desk: Desk, wanted: SessionId | None) -> SessionId:
    """
    Args:
        wanted: None is the one in which something was said last.

    Raises:
        NotFound: Nothing was said in such a session.
    """
    if wanted is None:
        talk = await desk.inspection.entries_per_session(desk.campaign)
        if not talk:
            raise NotFound(f"nothing was said in campaign {desk.campaign!r} yet")
        return max(talk, key=lambda each: each.last_at_ms or 0).id
    known = [each.id for each in await desk.inspection.sessions(desk.campaign)]
    if not known:
        raise NotFound(f"no session {wanted!r} in campaign {desk.campaign!r}: nothing was said in it yet")
    if wanted not in known:
        raise NotFound(f"no session {wanted!r} in campaign {desk.campaign!r}: {did_you_mean(wanted, known)}")
    return wanted


async def goes_on(question: str, *, is_sure: bool) -> bool:
    """Whether the DM means it.

    Args:
        is_sure: `--yes` was said: it is not asked.

    Raises:
        InvalidInput: Nobody is there to be asked.
    """
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Say --yes to do it without being asked")
    answer = await asyncio.to_thread(input, f"{question} Go on? [y/N] ")
    return answer.strip().lower() in ("y", "yes")
