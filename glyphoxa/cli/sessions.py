"""`glyphoxa sessions`: the evenings of a campaign, and what happened in each, in the DM's words."""

from __future__ import annotations

import argparse

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.scope import CAMPAIGN, SESSION, run_at_desk
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, one_of
from glyphoxa.dm.lines import plain
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.domain.ids import NpcId, SessionId
from glyphoxa.transcript.api import TalkFilter
from glyphoxa.world.api import moment, visibility_in_words

VERB = Verb(run_at_desk, common=CAMPAIGN)


@VERB.itself(words=[], known_by=None, public=False)
@VERB.action("all of them, each with its summary; so without an action")
async def _list(desk: Desk, options: argparse.Namespace) -> int:
    sessions = await desk.inspection.entries_per_session(desk.campaign)
    if not sessions:
        print("nothing was said yet")
        return 0
    table = a_table("no.", "session", "began", "utterances", "summary")
    for number, each in enumerate(sessions, start=1):
        kept = await _sessions(desk).summary(each.id)
        summary = "" if kept is None else kept.text
        table.add_row(str(number), each.id, moment(each.started_ms), str(each.n_entries), summary)
    show(table)
    return 0


@VERB.action(
    "what happened in a session: without WORDS what is kept; with them, what NPCs recall of it from now on",
    SESSION,
    argument("words", nargs="*", metavar="WORDS", help="in the third person: They found the seal and lost the boat."),
    one_of(
        argument("--known-by", nargs="+", metavar="NPC", help="who recalls it; else who heard any of the session"),
        argument("--public", help="everybody does"),
    ),
)
async def _summary(desk: Desk, options: argparse.Namespace) -> int:
    session: SessionId = options.session
    sessions, text = _sessions(desk), " ".join(options.words)
    if options.words:
        known_by = None if options.public else await _knowers(desk, session, options.known_by)
        await sessions.summarise(session, text, known_by)
    kept = await sessions.summary(session)
    if kept is None:
        print(f"session {session} has no summary")
        return 0
    print(plain(kept.text))
    print(visibility_in_words(kept.visibility, desk.resolver))
    return 0


async def _knowers(desk: Desk, session: SessionId, named: list[str] | None) -> list[NpcId]:
    if named is not None:
        return [desk.resolver.npc(name) for name in named]
    heard = TalkFilter("", session=session, limit=1)
    npcs = [npc.id for npc in desk.resolver.npcs]
    return [npc for npc in npcs if await desk.talk.search(desk.campaign, npc, heard)]


def _sessions(desk: Desk) -> SessionDesk:
    return SessionDesk(desk.campaign, desk.facts.world, desk.inspection, desk.facts.now_ms)
