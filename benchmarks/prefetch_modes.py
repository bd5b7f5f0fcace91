"""The two ways to give an NPC its memory that were rejected, so that the choice can be measured.

- `prewoven`: every prompt gets all three levels: the latest talk, the nearest chunks of older talk, all that the NPC
  knows of those who are named and of itself. No further trip, many tokens, whatever is said.
- `tools_only`: a prompt has the latest talk alone; the model asks for more. What its tools find is there after a second
  inference pass, put at about 800 ms; that it asks, and in the question's own words, is taken for granted.

What of the latest talk is in every prompt in all modes, `hybrid` too, is not counted to any of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final

import numpy as np

from benchmarks.chunk_search import nearest_chunks
from benchmarks.recall_asking import embedded
from benchmarks.recall_data import WITNESS, Question, campaign_of, turn_id
from benchmarks.recall_world import LoadedTalk
from glyphoxa.context.knowledge import sentences_of
from glyphoxa.context.tokens import tokens_of
from glyphoxa.domain.ids import EntityId, SessionId
from glyphoxa.npc.budget import SEARCH_SESSIONS
from glyphoxa.npc.look_ups import MemoryOf
from glyphoxa.npc.tools import MemoryTools
from glyphoxa.recall.recall import Recall, RecallSettings
from glyphoxa.speech.names.campaign_entries import entries_of
from glyphoxa.speech.names.gazetteer import Gazetteer
from glyphoxa.world.api import Known

SECOND_PASS_MS: Final = 800
"""What asking a tool is taken to cost: the model is run a second time with what the tool found."""
_LATEST: Final = 30
_CHUNKS: Final = 20


@dataclass(frozen=True, slots=True)
class Injected:
    """
    Attributes:
        covers: Some of the evidence is in it.
        tokens: Of 4 characters.
        ms: What it took.
    """

    covers: bool = False
    tokens: int = 0
    ms: float = 0.0


def summary(injected: Sequence[Injected]) -> dict[str, float]:
    """Coverage in percent."""
    if not injected:
        return {}
    p50, p95 = np.percentile([one.ms for one in injected], [50, 95])
    return {
        "coverage": round(100 * float(np.mean([one.covers for one in injected])), 2),
        "tokens_mean": round(float(np.mean([one.tokens for one in injected])), 1),
        "p50_ms": round(float(p50), 3),
        "p95_ms": round(float(p95), 3),
    }


class Modes:
    """Both, asked the same questions."""

    def __init__(self, talk: LoadedTalk) -> None:
        self._talk = talk
        self._past: Recall = talk.recall_with(RecallSettings())
        self._campaigns: dict[str, _Campaign] = {}
        self._prewoven: list[Injected] = []
        self._tools: list[Injected] = []
        self._chat: list[Injected] = []

    async def ask(self, question: Question) -> None:
        campaign = self._campaign(question)
        self._prewoven.append(await campaign.prewoven(question))
        self._tools.append(await campaign.tools_only(question))

    async def chat(self, question: Question, lines: Iterable[str]) -> None:
        """Say what needs no memory, in the campaign of a question. No model asks its tools for that."""
        for line in lines:
            said = replace(question, text=line, evidence=())
            self._chat.append(await self._campaign(question).prewoven(said))

    def figures(self) -> dict[str, Any]:
        tools = summary(self._tools)
        return {
            "prewoven": {
                **summary(self._prewoven),
                "small_talk_tokens_mean": summary(self._chat).get("tokens_mean", 0.0),
                "extra_trips": 0,
            },
            "tools_only": {
                **tools,
                "small_talk_tokens_mean": 0.0,
                "coverage_before_tools": 0.0,
                "tokens_before_tools": 0.0,
                "extra_trips": 1,
                "extra_ms": round(SECOND_PASS_MS + tools.get("p50_ms", 0.0), 1),
            },
        }

    def _campaign(self, question: Question) -> _Campaign:
        if question.campaign not in self._campaigns:
            self._campaigns[question.campaign] = _Campaign(self._talk, self._past, question)
        return self._campaigns[question.campaign]


class _Campaign:
    def __init__(self, talk: LoadedTalk, past: Recall, question: Question) -> None:
        turns = talk.data.turns[question.campaign]
        campaign = campaign_of(question.campaign, turns)
        memory = MemoryOf(campaign.id, WITNESS, talk.store.graph, past, talk.store.summaries)
        self._talk = talk
        self._id = campaign.id
        self._itself = campaign.npc(WITNESS).entity_id
        self._last_session = SessionId(turns[-1].session)
        self._texts = {turn.id: turn.text for turn in turns}
        self._names = Gazetteer.build(entries_of(campaign), language=campaign.language)
        self._tools = MemoryTools(memory, tier="STANDARD")

    async def prewoven(self, question: Question) -> Injected:
        began = perf_counter()
        latest = await self._talk.store.log.recent(self._id, self._last_session, since_ms=0, limit=_LATEST)
        lines = {said.id: f"{said.speaker_name} said: {said.text}" for said in latest}
        n_known = len(lines)
        vector = await embedded(self._talk, question.text)
        if vector is not None:
            for utterance, content in await nearest_chunks(self._talk.store, self._id, WITNESS, vector, limit=_CHUNKS):
                lines.setdefault(utterance, content)
        known = [await self._known(entity) for entity in (self._itself, *self._names.entities_in(question.text))]
        took_ms = 1_000 * (perf_counter() - began)
        told = [sentence.text for one in known if one is not None for sentence in sentences_of(one)]
        added = [*list(lines.values())[n_known:], *told]
        found = {turn_id(self._id, said) for said in lines}
        return Injected(not found.isdisjoint(question.evidence), sum(map(tokens_of, added)), took_ms)

    async def tools_only(self, question: Question) -> Injected:
        began = perf_counter()
        answer = await self._tools.call(SEARCH_SESSIONS, {"query": question.text})
        took_ms = 1_000 * (perf_counter() - began)
        found = answer["found"]
        assert isinstance(found, list)
        told = [str(one["said"]).partition(" said: ")[2] for one in found]
        covers = any(self._texts[id_] in told for id_ in question.evidence)
        return Injected(covers, tokens_of(json.dumps(answer, ensure_ascii=False)), took_ms)

    async def _known(self, entity: EntityId) -> Known | None:
        return await self._talk.store.graph.known(self._id, WITNESS, entity)
