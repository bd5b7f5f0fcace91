"""`glyphoxa chronicle`: how far talk has become knowledge, and making it so now."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from glyphoxa.adapters.postgres.chronicle.log import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.chronicle import chronicle_log, chronicler_of, episode_writer
from glyphoxa.bootstrap.recap import Audience, recap_of
from glyphoxa.bootstrap.talk_readers import TalkReaders, open_talk_readers
from glyphoxa.chronicle.chronicler import PAGE
from glyphoxa.chronicle.ports import SessionProgress
from glyphoxa.chronicle.rules.extractor import names_of
from glyphoxa.chronicle.rules.salience import SalienceJudge
from glyphoxa.chronicle.rules.summaries import TOKENS
from glyphoxa.cli.scope import CAMPAIGN, SESSION, Scope, in_scope, session_argument
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, one_of
from glyphoxa.config.settings import Settings
from glyphoxa.dm.lines import plain
from glyphoxa.dm.reading_told import reading_in_words
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId, NpcId, SessionId


@dataclass(frozen=True, slots=True)
class _Opened:
    store: Store
    campaign: CampaignId
    log: PostgresChronicleLog
    settings: Settings


async def _opened(scope: Scope) -> _Opened:
    log = PostgresChronicleLog(scope.store.database, scope.store.world)
    return _Opened(scope.store, scope.campaign, log, scope.settings)


VERB = Verb(in_scope(_opened, to_hold="talk"), common=CAMPAIGN)


@VERB.itself(session=None, dm=False, viewer=None, all=False, again=False)
@VERB.action("how far each session was read, and what stands in the way; so without an action")
async def _status(opened: _Opened, options: argparse.Namespace) -> int:
    sessions = await opened.log.progress(opened.campaign)
    if not sessions:
        print("nothing was said yet")
        return 0
    table = a_table("no.", "session", "said", "read", "changed since", "state")
    for number, each in enumerate(sessions, start=1):
        table.add_row(
            str(number),
            each.session,
            str(each.last_ordinal),
            str(each.read_ordinal),
            str(each.n_rereads),
            reading_in_words(each),
        )
    show(table)
    return 0


@VERB.action(
    "read now what was said and not read yet: of a session, or of all of them",
    session_argument("session", nargs="?", about="left out: all of them"),
    argument("--again", help="also what was read before: what it told goes, and is read anew"),
)
async def _run(opened: _Opened, options: argparse.Namespace) -> int:
    if options.again:
        for each in await _chosen(opened, options.session):
            await opened.log.read_again(opened.campaign, each.session)
    return await _read(opened, options.session)


async def _read(opened: _Opened, session: SessionId | None) -> int:
    async with AsyncExitStack() as stack:
        readers = await open_talk_readers(opened.settings, stack)
        return await _read_by(opened, session, readers)


async def _read_by(opened: _Opened, session: SessionId | None, readers: TalkReaders) -> int:
    log = chronicle_log(opened.store, readers)
    chronicler = await chronicler_of(opened.store, opened.campaign, log, readers)
    sessions = await _chosen(opened, session)
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    n_read = n_events = 0
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        for each in sessions:
            if not each.has_news:
                continue
            task = bar.add_task(each.session, total=each.last_ordinal, completed=each.read_ordinal)
            done = await chronicler.run(
                each.session,
                told=lambda reached, task=task: bar.update(task, completed=reached),  # type: ignore[misc]
            )
            if done is None:
                print(f"session {each.session} is being read by another worker")
                continue
            n_read, n_events = n_read + done.n_read, n_events + done.n_events
            await (await episode_writer(opened.store, opened.campaign)).write(each.session)
    print(f"{n_read} utterances were read, {n_events} things were learned" if n_read else "nothing was left to read")
    return 0


@VERB.action(
    "try again what failed: a session, or all of them",
    session_argument("session", nargs="?", about="left out: all of them"),
)
async def _retry(opened: _Opened, options: argparse.Namespace) -> int:
    revived = await opened.log.revive(opened.campaign, options.session)
    if not revived:
        print("nothing has failed")
        return 0
    print(f"to be read again: {', '.join(revived)}")
    return await _read(opened, options.session)


@VERB.action(
    "what each NPC recalls of a session in later ones: its most salient lines; a summary of yours stands",
    session_argument("session", nargs="?", about="left out: all of them"),
)
async def _summarise(opened: _Opened, options: argparse.Namespace) -> int:
    writer = await episode_writer(opened.store, opened.campaign)
    names = {npc.id: npc.name for npc in (await opened.store.campaigns.get(opened.campaign)).npcs}
    for each in await _chosen(opened, options.session):
        told = await writer.write(each.session)
        if told is None:
            print(f"{each.session}: you have said what happened (glyphoxa sessions summary {each.session})")
            continue
        print(f"{each.session}:" if told else f"{each.session}: nothing of it is worth recalling")
        for npc, text in told.items():
            print(plain(f"  {names.get(npc, npc)}: {text}"))
    return 0


@VERB.action(
    "what happened in a session: lines that players may be read aloud; or all that you, or an NPC, may know",
    SESSION,
    one_of(
        argument("--dm", help="of all that was said, with the names as they are"),
        argument("--as", dest="viewer", metavar="NPC", help="only what this NPC heard"),
    ),
    argument("--tokens", type=int, default=TOKENS, metavar="N", help="how much there is room for; about 3 words are 4"),
)
async def _recap(opened: _Opened, options: argparse.Namespace) -> int:
    audience: Audience = "dm" if options.dm else "players"
    if options.viewer is not None:
        audience = _npc_of(await opened.store.campaigns.get(opened.campaign), options.viewer)
    lines = await recap_of(opened.store, opened.campaign, options.session, audience, tokens=options.tokens)
    for line in lines:
        print(plain(line))
    if not lines:
        print("nothing of it is worth recalling")
    return 0


def _npc_of(campaign: Campaign, wanted: str) -> NpcId:
    by_name = {name.casefold(): npc.id for npc in campaign.npcs for name in (npc.id, npc.name, *npc.aliases)}
    if wanted.casefold() not in by_name:
        raise NotFound(f"no NPC {wanted!r}: {did_you_mean(wanted, (npc.name for npc in campaign.npcs))}")
    return by_name[wanted.casefold()]


@VERB.action(
    "which lines of a session are worth keeping for a later one, and why; a line is shown with what speaks for it",
    SESSION,
    argument("--all", help="also the lines that are not, with what speaks against them"),
)
async def _worth(opened: _Opened, options: argparse.Namespace) -> int:
    known = await opened.log.known(opened.campaign)
    language = (await opened.store.campaigns.get(opened.campaign)).language
    judge = SalienceJudge(language, names_of(known, language))
    table = a_table("line", "who", "said", "score", "why")
    after = 0
    while (page := await opened.log.unread(opened.campaign, options.session, after=after, limit=PAGE)) is not None:
        after = page.up_to
        for each in page.said:
            judged = judge.judge(each.utterance.text)
            if judged.is_kept or options.all:
                why = "asked to be forgotten" if judged.asks_to_forget else ", ".join(judged.why)
                said = (each.utterance.speaker_name, each.utterance.text)
                table.add_row(str(each.ordinal), *said, f"{judged.score:.2f}", why)
    show(table)
    return 0


async def _chosen(opened: _Opened, wanted: SessionId | None) -> Sequence[SessionProgress]:
    return [each for each in await opened.log.progress(opened.campaign) if wanted in (None, each.session)]
