"""`glyphoxa worker` and `glyphoxa privacy`: the upkeep of transcripts: read, embed, sum up, export and erase them.

The worker and an opening table erase old transcripts, too, if the settings say after how many days.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from loguru import logger
from rich.console import Console
from rich.progress import MofNCompleteColumn

from glyphoxa.actors.clock import now_ms
from glyphoxa.actors.deadline import end_tasks
from glyphoxa.adapters.postgres.chunks import Reindexed, reindex
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.erasure import ErasedTalk, Meant, PostgresErasure, erase
from glyphoxa.app.background import chronicle_log, chronicle_worker, chronicler_of, open_talk_readers, timeline_writer
from glyphoxa.app.models import fetch_embedder
from glyphoxa.app.scope import Scope
from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.cli.render import progress_bar, show_rows
from glyphoxa.cli.scope import (
    CAMPAIGN,
    CONFIG,
    YES,
    campaign_argument,
    goes_on,
    opened_store,
    run_in_scope,
    session_argument,
    settings_with_memory,
    stored_campaign,
    write_new_file,
)
from glyphoxa.cli.verb import Verb, argument, in_a_loop, one_of
from glyphoxa.config.settings import Settings
from glyphoxa.dm.wording import plain, reading_in_words
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable, counted
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.web.access.records import forget, lines_about

_OF_ALL = (campaign_argument("--campaign", otherwise="default: all campaigns"), CONFIG)
_ONE_OR_ALL = session_argument("session", nargs="?", about="default: all of them")

WORKER = Verb(in_a_loop, common=_OF_ALL)


@WORKER.itself(
    text="Without an action: turn what is said into knowledge as soon as it is stored, until stopped. Any number of "
    "workers can run, on any machine that reaches the database. One worker leases a session at a time, and each "
    "utterance is read once. Deletes old transcripts daily, if privacy.retain_days is set.",
)
async def _run(options: argparse.Namespace) -> int:
    settings = settings_with_memory(options.config, to_hold="talk")
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings))
        readers = await open_talk_readers(settings, stack)
        campaign = None if options.campaign is None else await stored_campaign(store, options.campaign)
        print("reading what is said; Ctrl-C ends it", flush=True)
        async with erasing_daily(store, settings, campaign):
            only = None if campaign is None else [campaign]
            await chronicle_worker(store, readers=readers, only=only).run()
    return 0


@WORKER.action(
    "embed the transcripts that are not embedded yet; all of them after another embeddings model was set",
    argument("--full", help="embed everything again, even what is up to date"),
    epilog="With another model or --full, all vectors are deleted first: transcripts are found by words until they are "
    "embedded again. It can be stopped at any time; without --full it continues where it stopped.",
)
async def _reindex(options: argparse.Namespace) -> int:
    settings = settings_with_memory(options.config, to_hold="talk")
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    embedder = await fetch_embedder(settings)
    async with (
        aclosing(embedder),
        opened_store(settings, embedder=embedder, any_model=True) as store,
    ):
        campaign = None if options.campaign is None else await stored_campaign(store, options.campaign)
        done = await reindex(store.database, embedder, campaign=campaign, full=options.full, tell=console.print)
    Console(highlight=False, markup=False, soft_wrap=True).print(_summary(done, embedder.name))
    return 0


def _summary(done: Reindexed, model: str) -> str:
    embedded, failed = done.filled.embedded, done.filled.failed
    if done.is_full:
        text = f"transcripts are now searched with {model}; embedded {counted(embedded, 'utterance')}"
    else:
        text = f"embedded {counted(embedded, 'utterance')}" if embedded else "nothing was missing"
    return f"{text}; {failed} failed, see the log" if failed else text


# Reading now


_READING = Verb(run_in_scope, common=CAMPAIGN, of=WORKER)


@_READING.action("show how much of each session was read, and what failed")
async def _status(scope: Scope, options: argparse.Namespace) -> int:
    rows = (
        (
            str(number),
            each.session,
            str(each.last_ordinal),
            str(each.read_ordinal),
            str(each.n_rereads),
            reading_in_words(each),
        )
        for number, each in enumerate(await chronicle_log(scope.store).progress(scope.campaign), start=1)
    )
    headings = ("no.", "session", "said", "read", "changed since", "state")
    return show_rows(headings, rows, nothing="nothing was said yet")


@_READING.action(
    "read now what was not read yet: of a session, or of all",
    _ONE_OR_ALL,
    argument("--again", help="read everything again; what was learned from it before is replaced"),
)
async def _read(scope: Scope, options: argparse.Namespace) -> int:
    if options.again:
        for each in await _chosen(scope, options.session):
            await chronicle_log(scope.store).read_again(scope.campaign, each.session)
    return await _read_now(scope, options.session)


async def _read_now(scope: Scope, session: SessionId | None) -> int:
    async with AsyncExitStack() as stack:
        readers = await open_talk_readers(scope.settings, stack)
        log = chronicle_log(scope.store, readers)
        chronicler = await chronicler_of(scope.store, scope.campaign, log, readers)
        bar = stack.enter_context(progress_bar(MofNCompleteColumn()))
        n_read = n_events = 0
        for each in await _chosen(scope, session):
            if not each.has_news:
                continue
            task = bar.add_task(each.session, total=each.last_ordinal, completed=each.read_ordinal)
            done = await chronicler.run(
                each.session,
                on_progress=lambda reached, task=task: bar.update(task, completed=reached),  # type: ignore[misc]
                then=(await timeline_writer(scope.store, scope.campaign, readers)).sum_up,
            )
            if done is None:
                print(f"session {each.session} is being read by another worker")
                continue
            n_read, n_events = n_read + done.n_read, n_events + done.n_events
        while await scope.store.atoms.consolidate(scope.campaign, least=1):
            pass
    told = f"read {counted(n_read, 'utterance')}, recorded {counted(n_events, 'event')}"
    print(told if n_read else "nothing was left to read")
    return 0


@_READING.action("retry what failed: a session, or all", _ONE_OR_ALL)
async def _retry(scope: Scope, options: argparse.Namespace) -> int:
    revived = await chronicle_log(scope.store).revive(scope.campaign, options.session)
    if not revived:
        print("nothing has failed")
        return 0
    print(f"retrying: {', '.join(revived)}")
    return await _read_now(scope, options.session)


@_READING.action(
    "write what each NPC recalls of a session later: its most salient lines; a summary of yours is kept", _ONE_OR_ALL
)
async def _summarise(scope: Scope, options: argparse.Namespace) -> int:
    names = {npc.id: npc.name for npc in (await scope.store.campaigns.get(scope.campaign)).npcs}
    for each in await _chosen(scope, options.session):
        told = await (await timeline_writer(scope.store, scope.campaign)).sum_up(each.session)
        if told is None:
            print(f"{each.session}: your own summary is kept (glyphoxa transcript summary {each.session})")
            continue
        print(f"{each.session}:" if told else f"{each.session}: it has no lines worth recalling")
        for npc, text in told.items():
            print(plain(f"  {names.get(npc, npc)}: {text}"))
    return 0


async def _chosen(scope: Scope, wanted: SessionId | None) -> Sequence[SessionProgress]:
    return [
        each for each in await chronicle_log(scope.store).progress(scope.campaign) if wanted in (None, each.session)
    ]


# Exporting and erasing

DAY_MS: Final = 86_400_000
DAY_S: Final = 86_400.0

_PLAYER: Final = argument("--player", metavar="P", help="what this player said: their id, or their name")
_SESSION: Final = session_argument("--session", about="what anybody said in this session")


PRIVACY = Verb(run_in_scope, common=CAMPAIGN)


@PRIVACY.action(
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


@PRIVACY.action(
    "erase what was said, and everything that depends only on it, for good: it cannot be undone",
    one_of(_PLAYER, _SESSION, argument("--all", dest="everything", help="all transcripts of the campaign")),
    YES,
)
async def _erase(scope: Scope, options: argparse.Namespace) -> int:
    return await _erase_meant(
        scope, await _meant(scope, options, but="--player P, --session S or --all"), is_sure=options.yes
    )


@PRIVACY.action(
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
    of_session = "" if meant.session is None else f" of session {meant.session}"
    _show(f"would be erased{of_session}", await erasure.preview(scope.campaign, meant))
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


# Erasing daily


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
        await end_tasks(running)
