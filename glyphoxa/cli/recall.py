"""`glyphoxa recall`: what an NPC would recall for a question, and why. Nothing is changed, and no deadline applies.

Recall and selection work as in a turn: `glyphoxa.prompt.gather` decides.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, get_args

from glyphoxa.app.desk import Desk
from glyphoxa.cli.render import cut, show_lines, show_rows
from glyphoxa.cli.scope import CAMPAIGN, desk_at, embedder_or_words, opened_store, settings_with_memory
from glyphoxa.cli.verb import Verb, argument, in_a_loop, limit, one_of
from glyphoxa.config.memory_graph import RecallMethod
from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.turns import RecalledThen, found_by
from glyphoxa.dm.wording import IndentedLine
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import NpcId
from glyphoxa.domain.knowledge import Recalled, RecalledFact, RecalledUtterance
from glyphoxa.domain.turn import Rejected
from glyphoxa.language.facts import moment
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.known_world import KnownWorld
from glyphoxa.prompt.prefetch import Prefetch
from glyphoxa.prompt.select import IN_EVERY_PROMPT
from glyphoxa.recall.recall import RecallResult, RecallSettings
from glyphoxa.recall.time_reader import MOST_CHARACTERS
from glyphoxa.recall.vectors import LONGEST_MS
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.graph import Passage

_MOST_SHOWN: Final = 10
_SHOWN_OF_A_LINE: Final = 200
"""Characters. A longer line would make every row as wide or as high as itself; `--explain` shows it whole."""
_PATIENT: Final = RecallSettings(
    deadline_ms=60_000, patient_embed_deadline_ms=10_000, refresh_deadline_ms=10_000, summaries_deadline_ms=10_000
)
"""Nobody waits for an answer at a table."""
_SAME_WORDS: Final = "the prompt already contains the same words"
_NOT_ASKED_FOR: Final = "more than a turn asks for"
_SEARCHED: Final = "only a search finds it (tier DEEP)"
_SELECTED = "if it searches (tier DEEP)"


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
    who = desk.resolver.person(npc)
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
        asking = ExplainedQuestion(desk, npc, question, contexts, search)
        found = await asking.ask(limit=options.limit, by_words=options.lexical)
    shown = [*found.facts, *found.said]
    if shown:
        _listing(desk, shown, explain=options.explain)
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
        yield "meaning: transcripts are not embedded yet; run glyphoxa worker reindex"
    if len(question) > MOST_CHARACTERS:
        yield f"the question except its last {MOST_CHARACTERS:,} characters, for searching transcripts"


def _is_compared(one: Recalled) -> bool:
    return isinstance(one, RecalledUtterance) and one.similarity is not None


def _why_nothing(desk: Desk, npc: NpcId, who: str) -> str:
    index = desk.store.past_talk.transcript(desk.campaign).index
    if index is None or not len(index):
        return "nothing was said yet"
    if not index.speakers(npc):
        return f"{who} has heard nothing yet"
    return f"nothing that {who} heard is related to the question"


# What is asked


Search = Callable[[TalkQuery], Awaitable[RecallResult[Recalled]]]
"""Searches what an NPC heard."""


@dataclass(frozen=True, slots=True)
class AskedAbout:
    """
    Attributes:
        facts: Facts about entities that the question names.
        said: Earlier utterances, best first.
        left_out: Omitted parts, each with the reason.
    """

    facts: Sequence[RecalledThen]
    said: Sequence[RecalledThen]
    left_out: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExplainedQuestion:
    """One question, in the name of one NPC.

    Attributes:
        contexts: Makes hot contexts as in a turn, without what repairs a small model.
        search: The search of a turn, or that of the tools of an NPC of tier DEEP.
    """

    desk: Desk
    npc: NpcId
    question: str
    contexts: HotContexts
    search: Search

    async def ask(self, *, limit: int, by_words: bool) -> AskedAbout:
        """
        Args:
            limit: Most utterances.
            by_words: Ignore the question's meaning.

        Raises:
            Unavailable: The database cannot be reached.
        """
        most, known = self.desk.settings.budgets.max_recalled, self.contexts.prefetch.world
        if not by_words:
            await known.understand(self.npc, self.question, deadline_ms=LONGEST_MS)
        asked = known.asked(self.npc, self.question) or self.question
        found = await self.search(TalkQuery(asked, limit=max(limit, most)))
        # A turn chooses among so many.
        talk = [one for one in found.items if not isinstance(one, RecalledFact)]
        hot = self.contexts.recalled(self.npc, self.question, talk[:most])
        chosen = [one for one in hot.recalled if recalled_line(one) in (*hot.facts, *hot.remembered)]
        told = [Rejected(one, "") for one in chosen] + [*hot.rejected]
        facts = [(one.recalled, one.why) for one in told if isinstance(one.recalled, RecalledFact)]
        left_out = [f"{fact.text!r}: {why}" for fact, why in facts if why == IN_EVERY_PROMPT]
        own, world = self.contexts.known(self.npc), known.current
        named = () if world is None else world.by_name(self.npc, asked)
        if own is not None and any(one.known.entity.id == own.entity.id for one in named):
            left_out.insert(0, f"what {self.desk.resolver.person(self.npc)} knows of itself: {IN_EVERY_PROMPT}")
        recalled: list[RecalledThen] = []
        for fact, why in facts:
            if why != IN_EVERY_PROMPT:
                held = None if world is None else world.fact(fact.fact_id)
                then = RecalledThen(fact, why_rejected=why)
                if held is not None:
                    is_inferred = held.provenance.source == "inferred" and not fact.is_summary
                    then = replace(then, validity=held.validity, is_inferred=is_inferred)
                recalled.append(then)
        said: list[RecalledThen] = []
        for rank, item in enumerate(found.items):
            why = next((one.why for one in told if one.recalled == item), _SAME_WORDS)
            if isinstance(item, RecalledFact):
                why = _SEARCHED
            said.append(RecalledThen(item, why_rejected=_NOT_ASKED_FOR if rank >= most else why))
        return AskedAbout(recalled, said[:limit], [*left_out, *found.left_out])


# Around somebody


async def _answer_around(desk: Desk, question: str, options: argparse.Namespace) -> int:
    """Print utterances about an entity and those related to it.

    Raises:
        NotFound: There is no such NPC or entity.
    """
    npc, entity = desk.resolver.npc(options.npc), desk.resolver.entity(options.around)
    found = await desk.store.around(desk.campaign, npc, question, around=entity.id, limit=options.limit)
    if found:
        paths = [_path(one, entity, desk.resolver) for one in found]
        _listing(desk, [RecalledThen(one.recalled) for one in found], explain=options.explain, paths=paths)
    else:
        print(f"{desk.resolver.person(npc)} has heard nothing relevant about {entity.name} or related entities")
    return 0


def _path(passage: Passage, around: Entity, resolver: NameResolver) -> str:
    """Say how a passage was reached, as "names Joren, 1 relation from the Watch"."""
    names = ", ".join(resolver.called(entity) for entity in passage.entity_ids)
    if not passage.depth:
        return f"names {names}"
    return f"names {names}, {passage.depth} relation{'s' if passage.depth > 1 else ''} from {around.name}"


# What is shown


def _listing(desk: Desk, found: Sequence[RecalledThen], *, explain: bool, paths: Sequence[str] | None = None) -> None:
    """Show one row per result, in the given order.

    Args:
        paths: How each was found by its relations, which only an NPC that searches does; None: as in every turn.
    """
    more = ("score", "cosine", "found by", "known because", "holds") if explain else ()
    rows = []
    for rank, one in enumerate(found):
        recalled = one.recalled
        when = "" if recalled.session_id is None else moment(recalled.at_ms)
        line = recalled_line(recalled)
        path = found_by(recalled) if paths is None else paths[rank]
        selected = _SELECTED if paths is not None else f"no: {one.why_rejected}" if one.why_rejected else "yes"
        row = [str(rank + 1), line if explain else cut(line, _SHOWN_OF_A_LINE), recalled.session_id or "", when]
        if explain:
            similarity = recalled.similarity if isinstance(recalled, RecalledUtterance) else None
            cosine = "" if similarity is None else f"{similarity:.3f}"
            holds = one.holds(desk.days.calendar)
            row += [f"{recalled.score:.2f}", cosine, path, one.reason(desk.resolver), holds]
        rows.append([*row, selected if explain else selected.partition(":")[0]])
    show_rows(("rank", "what", "session", "when", *more, "in the prompt"), rows)
