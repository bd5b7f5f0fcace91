"""`glyphoxa recall`: what an NPC would recall for a question, and why. Nothing is changed, and no deadline applies.

Recall and selection work as in a turn: `glyphoxa.prompt.gather` decides.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Final, get_args

from glyphoxa.app.desk import Desk
from glyphoxa.cli.render import show_lines
from glyphoxa.cli.scope import CAMPAIGN, desk_at, embedder_or_words, opened_store, settings_with_memory
from glyphoxa.cli.verb import Verb, argument, in_a_loop, limit, one_of
from glyphoxa.config.provider_sections import RecallMethod
from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.turns import ExplainedPrompt, RecalledThen
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledUtterance
from glyphoxa.domain.turn_record import NO_PROMPT, AssembledPrompt, Rejected
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.recall.recall import RecallResult, RecallSettings
from glyphoxa.recall.time_reader import MOST_CHARACTERS
from glyphoxa.recall.vectors import LONGEST_MS
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.graph import Passage

_MOST_SHOWN: Final = 10
_EVIDENCE: Final = 2
"""Depth of the lines that only an explanation shows."""
_PATIENT: Final = RecallSettings(
    deadline_ms=60_000, patient_embed_deadline_ms=10_000, refresh_deadline_ms=10_000, summaries_deadline_ms=10_000
)
"""Nobody waits for an answer at a table."""
_SAME_WORDS: Final = "the prompt already contains the same words"
_NOT_ASKED_FOR: Final = "more than a turn asks for"
_SEARCHED: Final = "only a search finds it (tier DEEP)"

VERB = Verb(in_a_loop)


@VERB.itself(
    argument("question", nargs="+", metavar="QUESTION", help="what the NPC is asked"),
    argument("--npc", required=True, metavar="NPC", help="the NPC that is asked"),
    one_of(
        argument("--lexical", help="by words only, as while a player is still speaking"),
        argument(
            "--method",
            choices=get_args(RecallMethod),
            help="search as the tools of an NPC of tier DEEP do, with the stages of recall.stages",
        ),
    ),
    argument(
        "--around",
        metavar="NAME",
        help="only utterances about this entity and those related to it, as the tools of an NPC of tier DEEP find "
        "them; not with --method",
    ),
    argument("--explain", help="explain why each is found, and why this NPC may know it"),
    limit(_MOST_SHOWN),
    *CAMPAIGN,
    text="Show what an NPC would recall for a question: facts about the names in it, and what was said before. "
    "An NPC recalls only what it knows and what it heard.",
)
async def _run(options: argparse.Namespace) -> int:
    question = " ".join(" ".join(options.question).split())
    if not question:
        raise InvalidInput('ask something, such as: glyphoxa recall "Who owns the inn?" --npc grimjaw')
    if options.around is not None and options.method is not None:
        raise InvalidInput("--around cannot be combined with --method")
    settings = settings_with_memory(options.config, to_hold="talk or facts")
    async with (
        embedder_or_words(settings, by_words=options.lexical) as embedder,
        opened_store(settings, embedder=embedder, recall=_PATIENT) as store,
    ):
        desk = await desk_at(store, settings, options.campaign)
        if options.around is not None:
            return await _answer_around(desk, question, options)
        campaign = await store.campaigns.get(desk.campaign)
        world = KnownWorld(campaign, store.world_memory(campaign.id))
        contexts = HotContexts(Prefetch(world, talk=None, present=dict), budgets=settings.budgets, repairs=False)
        await world.refresh()
        if not options.lexical:
            await store.meanings.wait_until_learned()
        return await _answer(desk, question, contexts, options)


async def _answer(desk: Desk, question: str, contexts: HotContexts, options: argparse.Namespace) -> int:
    npc = desk.resolver.npc(options.npc)
    search: Search = partial(desk.store.past_talk.search, desk.campaign, npc, by_words=options.lexical, patient=True)
    async with AsyncExitStack() as stack:
        if options.method is not None:
            from glyphoxa.app.background import deep_recall

            campaign = await desk.store.campaigns.get(desk.campaign)
            method = desk.settings.recall.model_copy(update={"method": options.method})
            deep = await deep_recall()(
                desk.settings.model_copy(update={"recall": method}),
                *(desk.store, campaign, stack),
                world=lambda npc: "\n".join(contexts.standing(npc)),
            )
            search = partial(deep.search, desk.campaign, npc)
        if not options.lexical:
            await contexts.prefetch.world.understand(npc, question, deadline_ms=LONGEST_MS)
        found = await would_recall(contexts, npc, question, search, limit=options.limit)
    missing = (*found.omitted, *_also_missing(desk, npc, question, found, by_words=options.lexical))
    explained = await desk.turns.explain_prompt(replace(found, omitted=missing if options.explain else ()), npc)
    if not explained.memories:
        print(f"{desk.resolver.person(npc)} recalls nothing: {_why_nothing(desk, npc)}")
    return _shown(explained, is_explained=options.explain)


def _shown(found: ExplainedPrompt, *, is_explained: bool) -> int:
    """Show what was recalled; with the evidence of each, if that is to be explained."""
    show_lines(line for line in found.told() if is_explained or line.depth < _EVIDENCE)
    return 0


def _also_missing(desk: Desk, npc: NpcId, question: str, found: AssembledPrompt, *, by_words: bool) -> Iterator[str]:
    talk = [one for one in (*found.recalled, *(each.recalled for each in found.rejected)) if not _is_fact(one)]
    with_meaning = not by_words and not any(part.startswith("meaning") for part in found.omitted)
    if not talk:
        yield f"talk: {_why_nothing(desk, npc)}"
    elif with_meaning and not any(isinstance(one, RecalledUtterance) and one.similarity is not None for one in talk):
        yield "meaning: transcripts are not embedded yet; run glyphoxa worker reindex"
    if len(question) > MOST_CHARACTERS:
        yield f"the question except its last {MOST_CHARACTERS:,} characters, for searching transcripts"


def _why_nothing(desk: Desk, npc: NpcId) -> str:
    who, index = desk.resolver.person(npc), desk.store.past_talk.transcript(desk.campaign).index
    if index is None or not len(index):
        return "nothing was said yet"
    if not index.speakers(npc):
        return f"{who} has heard nothing yet"
    return f"nothing that {who} heard is related to the question"


# What is asked


Search = Callable[[TalkQuery], Awaitable[RecallResult[Recalled]]]
"""Searches what an NPC heard: the search of a turn, or that of the tools of an NPC of tier DEEP."""


async def would_recall(
    contexts: HotContexts, npc: NpcId, question: str, search: Search, *, limit: int
) -> AssembledPrompt:
    """Return what a turn would recall for a question, and what it would leave out and why.

    Args:
        contexts: Makes hot contexts as in a turn, without what repairs a small model.
        limit: Most utterances.

    Raises:
        Unavailable: The database cannot be reached.
    """
    most = contexts.budgets.max_recalled
    asked = contexts.prefetch.world.asked(npc, question) or question
    found = await search(TalkQuery(asked, limit=max(limit, most)))
    # A turn chooses among so many.
    hot = contexts.recalled(npc, question, [one for one in found.items if not isinstance(one, RecalledFact)][:most])
    shown = found.items[:limit]
    rejected = [each for each in hot.rejected if _is_fact(each.recalled) or each.recalled in shown]
    judged = [*hot.recalled, *(each.recalled for each in rejected)]
    for rank, one in enumerate(shown):
        if one not in judged:
            why = _SEARCHED if isinstance(one, RecalledFact) else _SAME_WORDS
            rejected.append(Rejected(one, _NOT_ASKED_FOR if rank >= most else why))
    recalled = [one for one in hot.recalled if _is_fact(one) or one in shown]
    return AssembledPrompt(recalled=(*recalled,), rejected=(*rejected,), omitted=found.left_out)


def _is_fact(one: Recalled) -> bool:
    return isinstance(one, RecalledFact)


# Around somebody


async def _answer_around(desk: Desk, question: str, options: argparse.Namespace) -> int:
    """Print utterances about an entity and those related to it.

    Raises:
        NotFound: There is no such NPC or entity.
    """
    npc, entity = desk.resolver.npc(options.npc), desk.resolver.entity(options.around)
    found = await desk.store.around(desk.campaign, npc, question, around=entity.id, limit=options.limit)
    if not found:
        print(f"{desk.resolver.person(npc)} has heard nothing relevant about {entity.name} or related entities")
    memories = (
        RecalledThen(one.recalled, why_rejected=_SEARCHED, path=_path(one, entity, desk.resolver)) for one in found
    )
    explained = ExplainedPrompt(NO_PROMPT, tuple(memories), desk.resolver, desk.days.calendar)
    return _shown(explained, is_explained=options.explain)


def _path(passage: Passage, around: Entity, resolver: NameResolver) -> str:
    """Say how a passage was reached, as "names Joren, 1 relation from the Watch"."""
    names = ", ".join(resolver.called(entity) for entity in passage.entity_ids)
    if not passage.depth:
        return f"names {names}"
    return f"names {names}, {passage.depth} relation{'s' if passage.depth > 1 else ''} from {around.name}"
