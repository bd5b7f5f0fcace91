"""`glyphoxa privacy`: export or erase what is stored about a player or a session; erase old transcripts daily."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from loguru import logger

from glyphoxa.actors.clock import now_ms
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.erasure import ErasedTalk, Meant, PostgresErasure, erase
from glyphoxa.app.scope import Scope
from glyphoxa.cli.scope import CAMPAIGN, YES, goes_on, opened_store, run_in_scope, session_argument, write_new_file
from glyphoxa.cli.verb import Verb, argument, one_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable, counted
from glyphoxa.domain.ids import CampaignId
from glyphoxa.web.access.records import forget, lines_about

DAY_MS: Final = 86_400_000
DAY_S: Final = 86_400.0

_PLAYER: Final = argument("--player", metavar="P", help="what this player said: their id, or their name")
_SESSION: Final = session_argument("--session", about="what anybody said in this session")


VERB = Verb(run_in_scope, common=CAMPAIGN)


@VERB.action(
    "export everything stored about a player or a session to one file (JSON)",
    argument("file", type=Path, help="the file to write; it must not exist"),
    one_of(_PLAYER, _SESSION),
)
async def _export(scope: Scope, options: argparse.Namespace) -> int:
    meant = await _meant(scope, options, but="--player P or --session S")
    erasure = PostgresErasure(scope.store.database)
    found: dict[str, Any] = {"campaign": scope.campaign, "player": meant.player, "session": meant.session}
    found |= await erasure.export(scope.campaign, meant)
    if meant.player is not None:
        found |= await asyncio.to_thread(lines_about, scope.settings.data_directory, scope.campaign, meant.player)
    data = json.dumps(found, ensure_ascii=False, indent=1).encode()
    await asyncio.to_thread(write_new_file, options.file, data)
    print(f"{options.file}: {counted(len(found['utterances']), 'utterance')}, {len(data):,} bytes")
    return 0


@VERB.action(
    "erase what was said, and everything that depends only on it, for good: it cannot be undone",
    one_of(_PLAYER, _SESSION, argument("--all", dest="everything", help="all transcripts of the campaign")),
    YES,
)
async def _erase(scope: Scope, options: argparse.Namespace) -> int:
    return await _erase_meant(
        scope, await _meant(scope, options, but="--player P, --session S or --all"), is_sure=options.yes
    )


@VERB.action(
    "erase what was said more than so many days ago",
    argument("--older-than", dest="age", required=True, metavar="DAYS", help="such as 365d"),
    YES,
)
async def _retain(scope: Scope, options: argparse.Namespace) -> int:
    days = options.age.removesuffix("d")
    if not (days.isascii() and days.isdecimal() and 1 <= int(days) <= 36_500):
        raise InvalidInput(f"--older-than is a number of days from 1 to 36500, such as 365d, not {options.age!r}")
    return await _erase_meant(scope, Meant(before_ms=now_ms() - int(days) * DAY_MS), is_sure=options.yes)


async def _meant(scope: Scope, options: argparse.Namespace, *, but: str) -> Meant:
    if options.player is not None:
        return Meant(player=await PostgresErasure(scope.store.database).player(scope.campaign, options.player))
    if options.session is not None:
        return Meant(session=options.session)
    if getattr(options, "everything", False):
        return Meant()
    raise InvalidInput(f"choose what to export or erase: {but}")


async def _erase_meant(scope: Scope, meant: Meant, *, is_sure: bool) -> int:
    erasure = PostgresErasure(scope.store.database)
    _show("would be erased", await erasure.preview(scope.campaign, meant))
    question = "It cannot be undone; backups and exported files are kept."
    if not await goes_on(question, is_sure=is_sure, otherwise="nothing was erased"):
        return 1
    data_dir = scope.settings.data_directory
    try:
        done, n_records = await erase(erasure, data_dir, scope.campaign, meant, at_ms=now_ms())
    except Unavailable as error:
        raise Unavailable(f"the erasure is incomplete; run the same command again: {error}") from None
    n_lines = 0 if meant.player is None else await asyncio.to_thread(forget, data_dir, scope.campaign, meant.player)
    _show("erased", done)
    print(f"erased: {counted(n_records, 'spool record')}, {counted(n_lines, 'line')} of consents and audit log")
    return 0


def _show(what: str, found: Sequence[ErasedTalk]) -> None:
    for each in found:
        print(
            f"{what}: campaign {each.campaign}: {counted(len(each.utterances), 'utterance')} "
            f"({each.n_replies} of NPCs), {counted(each.n_events, 'event')} that came of them"
        )


# Daily


async def erase_old(store: Store, settings: Settings, only: CampaignId | None, *, at_ms: int) -> int:
    """Erase transcripts older than `privacy.retain_days`, campaign by campaign; log failures. Returns how many
    utterances were erased.

    Args:
        only: None is all campaigns.
        at_ms: Now, milliseconds since the Unix epoch.
    """
    if settings.privacy.retain_days is None:
        return 0
    meant = Meant(before_ms=at_ms - settings.privacy.retain_days * DAY_MS)
    n_erased = 0
    try:
        campaigns = await store.campaigns.ids() if only is None else [only]
        erasure = PostgresErasure(store.database)
        for campaign in campaigns:
            done, _ = await erase(erasure, settings.data_directory, campaign, meant, at_ms=at_ms)
            n_erased += sum(len(each.utterances) for each in done)
    except GlyphoxaError as error:
        logger.warning("some old transcripts are not erased; the next run retries: {}", error)
    if n_erased:
        logger.warning("{} utterances older than {} days were erased", n_erased, settings.privacy.retain_days)
    return n_erased


async def erase_old_before_opening(settings: Settings, campaign: CampaignId) -> None:
    """Erase old talk before a table opens and uses the spool. Without the database, the next opening retries."""
    if settings.privacy.retain_days is None or not settings.has_memory:
        return
    try:
        async with opened_store(settings) as store:
            await erase_old(store, settings, campaign, at_ms=now_ms())
    except GlyphoxaError as error:
        logger.warning("old transcripts were not erased: {}", error)


@asynccontextmanager
async def erasing_daily(
    store: Store,
    settings: Settings,
    only: CampaignId | None,
    *,
    wait_s: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[None]:
    """Run `erase_old` now and once a day during the block, if an age is set."""

    async def run() -> None:
        while True:
            await erase_old(store, settings, only, at_ms=now_ms())
            await wait_s(DAY_S)

    if settings.privacy.retain_days is None:
        yield
        return
    running = asyncio.create_task(run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
