"""`glyphoxa worker`: what is done with the transcript in the background: reading it, summaries, embeddings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing

from rich.console import Console
from rich.progress import MofNCompleteColumn

from glyphoxa.adapters.postgres.chunks import Reindexed, reindex
from glyphoxa.app.background import (
    chronicle_log,
    chronicle_worker,
    chronicler_of,
    open_talk_readers,
    timeline_writer,
)
from glyphoxa.app.models import fetch_embedder
from glyphoxa.app.scope import Scope
from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.cli.privacy import erasing_daily
from glyphoxa.cli.render import progress_bar, show_rows
from glyphoxa.cli.scope import (
    CAMPAIGN,
    CONFIG,
    campaign_argument,
    opened_store,
    run_in_scope,
    session_argument,
    settings_with_memory,
    stored_campaign,
)
from glyphoxa.cli.verb import Verb, argument, in_a_loop
from glyphoxa.dm.wording import plain, reading_in_words
from glyphoxa.domain.errors import counted
from glyphoxa.domain.ids import SessionId

_OF_ALL = (campaign_argument("--campaign", otherwise="default: all campaigns"), CONFIG)
_SESSION = session_argument("session", nargs="?", about="default: all of them")

VERB = Verb(in_a_loop, common=_OF_ALL)


@VERB.itself(
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


@VERB.action(
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
    if done.is_anew:
        text = f"transcripts are now searched with {model}; embedded {counted(embedded, 'utterance')}"
    else:
        text = f"embedded {counted(embedded, 'utterance')}" if embedded else "nothing was missing"
    return f"{text}; {failed} failed, see the log" if failed else text


# Reading now


_READING = Verb(run_in_scope, common=CAMPAIGN, of=VERB)


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
    _SESSION,
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


@_READING.action("retry what failed: a session, or all", _SESSION)
async def _retry(scope: Scope, options: argparse.Namespace) -> int:
    revived = await chronicle_log(scope.store).revive(scope.campaign, options.session)
    if not revived:
        print("nothing has failed")
        return 0
    print(f"retrying: {', '.join(revived)}")
    return await _read_now(scope, options.session)


@_READING.action(
    "write what each NPC recalls of a session later: its most salient lines; a summary of yours is kept", _SESSION
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
