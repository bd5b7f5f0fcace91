"""`glyphoxa recall`: what an NPC would recall for a question, and why. Nothing is changed."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, get_args

from glyphoxa.bootstrap.desk import Desk
from glyphoxa.cli.desk import desk_at
from glyphoxa.cli.embedding import embedder_or_words
from glyphoxa.cli.facts_shown import limit
from glyphoxa.cli.lines import show_lines
from glyphoxa.cli.opened import CAMPAIGN, opened_store, settings_with_memory
from glyphoxa.cli.recall_around import answer_around
from glyphoxa.cli.recall_asked import AskedAbout, DeepSearch, ExplainedQuestion
from glyphoxa.cli.recall_shown import listing
from glyphoxa.cli.verb import Verb, argument, in_a_loop, one_of
from glyphoxa.config.recall_settings import RecallMethodName
from glyphoxa.dm.lines import IndentedLine
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.recalled import Recalled, RecalledUtterance
from glyphoxa.recall.api import MOST_CHARACTERS, FactsByName, RecallSettings

_MOST_SHOWN: Final = 10
_PATIENT: Final = RecallSettings(
    deadline_ms=60_000, patient_embed_deadline_ms=10_000, refresh_deadline_ms=10_000, summaries_deadline_ms=10_000
)
"""Nobody waits for an answer at a table."""


VERB = Verb(in_a_loop)


@VERB.itself(
    argument("question", nargs="+", metavar="QUESTION"),
    argument("--npc", required=True, metavar="NPC", help="who is asked"),
    one_of(
        argument("--lexical", help="by words alone, as while somebody still speaks"),
        argument(
            "--method",
            choices=get_args(RecallMethodName),
            help="search talk as the tools of an NPC of tier DEEP can, with the stages of recall.stages",
        ),
    ),
    argument(
        "--around",
        metavar="NAME",
        help="only talk of this person, place or group and of who is related to it, as an NPC of tier DEEP finds it "
        "when it looks for it; not with --method",
    ),
    argument("--explain", help="say of each why it is found, and why this NPC may know it"),
    limit(_MOST_SHOWN),
    *CAMPAIGN,
    text="What an NPC would recall for a question: facts that it asks for by name, and what was said before. "
    "An NPC recalls what it knows and what it heard, and nothing else.",
)
async def _run(options: argparse.Namespace) -> int:
    question = " ".join(" ".join(options.question).split())
    if not question:
        raise InvalidInput('ask something, such as: glyphoxa recall "Who owns the inn?" --npc grimjaw')
    if options.around is not None and options.method is not None:
        raise InvalidInput("--around is a way of searching by itself: leave out --method")
    settings = settings_with_memory(options.config, to_hold="talk or facts")
    async with (
        embedder_or_words(settings, by_words=options.lexical) as embedder,
        opened_store(settings, embedder=embedder, recall=_PATIENT) as store,
    ):
        desk = await desk_at(store, settings, options.campaign)
        if options.around is not None:
            return await answer_around(desk, store.graph_rag, question, options)
        return await _answer(desk, question, store.by_name, options)


@asynccontextmanager
async def _deep(desk: Desk, method: RecallMethodName | None) -> AsyncIterator[DeepSearch | None]:
    if method is None:
        yield None
        return
    # Loaded by who asks for it alone.
    from glyphoxa.bootstrap.deep_recall import load_deep_recall

    async with AsyncExitStack() as stack:
        yield await load_deep_recall(desk.settings, desk.past_talk, stack, method=method)


async def _answer(desk: Desk, question: str, by_name: FactsByName, options: argparse.Namespace) -> int:
    npc = desk.resolver.npc(options.npc)
    who = desk.resolver.person(npc)
    async with _deep(desk, options.method) as deep:
        asking = ExplainedQuestion(desk, npc, question, by_name, deep)
        found = await asking.ask(limit=options.limit, by_words=options.lexical)
    shown = [*found.facts, *found.said]
    if shown:
        listing(shown, explain=options.explain)
    else:
        print(f"{who} recalls nothing: {_why_nothing(desk, npc, who)}")
    if options.explain:
        for part in (*found.left_out, *_also_left_out(desk, npc, question, found, by_words=options.lexical)):
            show_lines([IndentedLine(f"left out: {part}")])
    return 0


def _also_left_out(desk: Desk, npc: NpcId, question: str, found: AskedAbout, *, by_words: bool) -> Iterator[str]:
    with_meaning = not by_words and not any(part.startswith("meaning") for part in found.left_out)
    if not found.said:
        yield f"talk: {_why_nothing(desk, npc, desk.resolver.person(npc))}"
    elif with_meaning and not any(_is_compared(one.recalled) for one in found.said):
        yield "meaning: what was said is not embedded yet; glyphoxa reindex does it"
    if len(question) > MOST_CHARACTERS:
        yield f"all but the last {MOST_CHARACTERS:,} characters of the question, where talk is looked for"


def _is_compared(one: Recalled) -> bool:
    return isinstance(one, RecalledUtterance) and one.similarity is not None


def _why_nothing(desk: Desk, npc: NpcId, who: str) -> str:
    index = desk.past_talk.talk_cache.index(desk.campaign)
    if index is None or not len(index):
        return "nothing was said yet"
    if not index.speakers(npc):
        return f"{who} has heard nothing yet"
    return f"nothing that {who} heard has anything in common with it"
