"""Define arms over the memory graph: what it knows beside talk, and each of its stages on top.

"+known" is the shipped ranking of talk together with facts and summaries, "+pedsa" the same followed by that stage,
"+graph" by all documented ones. "talk+pedsa" and "talk+graph" walk the graph of talk alone, and "graphrag" returns the
nearest utterances around the entities that the question names, as the search around an entity does.

Facts come from the rules' extractor over the same utterances, summaries from selected lines. A fact or summary counts
as the lines it rests on, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter, process_time
from typing import Final, get_args

from benchmarks.recall_arms import DEPTH, Ask
from benchmarks.recall_data import WITNESS, Question, turn_id
from benchmarks.recall_world import LoadedTalk
from benchmarks.runner import tell
from glyphoxa.adapters.postgres.chunks import EmbeddingQueue
from glyphoxa.app.background import chronicle_log, chronicler_of, timeline_writer
from glyphoxa.config.memory_graph import MemoryGraphSettings, RecallStage
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import Recalled, RecalledSummary, RecalledUtterance, lines_of
from glyphoxa.plugins.memory_graph.deep_recall import DeepRecall
from glyphoxa.recall.recall import RecallSettings
from glyphoxa.transcript.ports import TalkQuery

_SHORT: Final = {
    "vector_prefilter": "prefilter",
    "diffusion": "pedsa",
    "hybrid_score": "hybrid",
    "topics": "nmf",
    "residual": "fista",
    "diversity": "dpp",
    "per_type_cap": "cap",
}
_NO_STAGE: Final = MemoryGraphSettings()


def graph_arms() -> dict[str, Callable[[LoadedTalk], Ask]]:
    """Return the arms by name."""
    of_graph = get_args(RecallStage)
    stages = {_SHORT.get(stage, stage.replace("_", "-")): MemoryGraphSettings(stages=(stage,)) for stage in of_graph}
    stages |= {"graph": MemoryGraphSettings(stages=of_graph), "known": _NO_STAGE}
    of_talk = {name: stages[name] for name in ("pedsa", "graph")}
    return {
        **{f"+{name}": _arm(settings, knows=True) for name, settings in stages.items()},
        **{f"talk+{name}": _arm(settings, knows=False) for name, settings in of_talk.items()},
        "graphrag": _around,
    }


def _arm(settings: MemoryGraphSettings, *, knows: bool) -> Callable[[LoadedTalk], Ask]:
    def arm(talk: LoadedTalk) -> Ask:
        knowledge = talk.store if knows else None
        deep = DeepRecall(talk.recall_with(RecallSettings()), knowledge=knowledge, settings=settings)

        async def ask(question: Question) -> list[str]:
            await _learn(talk, question.campaign)
            found = await deep.search(question.campaign, WITNESS, TalkQuery(question.text, limit=DEPTH))
            return _lines(talk, question.campaign, found.items)

        return ask

    return arm


def _around(talk: LoadedTalk) -> Ask:
    search = talk.store.around

    async def ask(question: Question) -> list[str]:
        campaign = question.campaign
        await _learn(talk, campaign)
        world = await talk.store.world_memory(campaign).refresh()
        named = [one.known.entity.id for one in world.by_name(WITNESS, question.text) if one.is_named]
        passages = [
            one
            for entity in named
            for one in await search(campaign, WITNESS, question.text, around=entity, limit=DEPTH)
        ]
        passages.sort(key=lambda one: -one.score)
        return list(dict.fromkeys(turn_id(campaign, one.recalled.utterance_id) for one in passages))[:DEPTH]

    return ask


def _lines(talk: LoadedTalk, campaign: CampaignId, found: tuple[Recalled, ...]) -> list[str]:
    """Return the lines of what was found, each once."""
    world = talk.store.world_memory(campaign).world

    def lines() -> Iterator[str]:
        for one in found:
            if isinstance(one, RecalledUtterance):
                yield one.utterance_id
            elif isinstance(one, RecalledSummary):
                yield from one.evidence
            elif world is not None and (fact := world.fact(one.fact_id)) is not None:
                yield from lines_of(fact)

    return list(dict.fromkeys(turn_id(campaign, line) for line in lines()))[:DEPTH]


async def _learn(talk: LoadedTalk, campaign: CampaignId) -> None:
    """Read a campaign's talk once, as the worker does, and accept all findings."""
    world = await talk.store.world_memory(campaign).refresh()
    if world.texts:
        return
    began_s, began_cpu_s = perf_counter(), process_time()
    chronicler = await chronicler_of(talk.store, campaign, chronicle_log(talk.store))
    writer = await timeline_writer(talk.store, campaign)
    for session in dict.fromkeys(SessionId(turn.session) for turn in talk.data.turns[campaign]):
        await replace(chronicler, findings="accept").run(session)
        await writer.write(session, is_over=True)
    while await talk.store.atoms.consolidate(campaign, least=1):
        pass
    for key, took_s in (("chronicle_s", perf_counter() - began_s), ("chronicle_cpu_s", process_time() - began_cpu_s)):
        talk.figures[key] = round(talk.figures.get(key, 0.0) + took_s, 2)
    if talk.questions.embedder is not None:
        queue = EmbeddingQueue(talk.store.database, talk.questions.embedder)
        await queue.survey(campaign)  # with the entities that are known now
    tell(f"{campaign} is read")
