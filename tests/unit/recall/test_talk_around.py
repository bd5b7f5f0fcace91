"""An NPC that looks for talk around somebody: the graph knows who belongs to whom, the talk what they did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId
from glyphoxa.domain.knowledge import Viewer
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.recall.recall import RecallAround
from glyphoxa.recall.vectors import Embedder, QuestionVectors
from glyphoxa.world.graph import Neighbourhood, Passage, TalkAround
from tests.support.memory_twins import GRIMJAW, REAVERS, SALTMERE, SMITH, WARDENS, Talk, a_world
from tests.support.recalled import heard

ELSEWHERE = heard("Somebody was at the mine.", session="s9")


def passage(utterance: str, score: float, depth: int, *entities: EntityId) -> Passage:
    return Passage(heard(utterance), score, entities, depth)


SAID = (
    passage("near, and of something else", 0.2, 1, SMITH.id),
    passage("near", 0.5, 1, SMITH.id, WARDENS.id),
    passage("far", 0.5, 2, REAVERS.id),
    passage("far, and just that", 0.9, 2, REAVERS.id),
)


@dataclass
class RagTwin:
    """A `GraphRag`."""

    said: tuple[Passage, ...] = SAID
    asked: list[tuple[str, int]] = field(default_factory=list)
    is_away: bool = False

    async def query_with_context(
        self, campaign: CampaignId, viewer: Viewer, question: str, *, around: Neighbourhood, limit: int = 10
    ) -> list[Passage]:
        return self._found("words", around.depth, limit)

    async def query_with_embedding(
        self,
        campaign: CampaignId,
        viewer: Viewer,
        embedding: NDArray[float32],
        *,
        around: Neighbourhood,
        limit: int = 10,
    ) -> list[Passage]:
        return self._found("meaning", around.depth, limit)

    def _found(self, by: str, depth: int, limit: int) -> list[Passage]:
        if self.is_away:
            raise Unavailable("the database is away")
        self.asked.append((by, depth))
        within = [one for one in self.said if one.depth <= depth]
        return sorted(within, key=lambda one: -one.score)[:limit]


async def embed(texts: list[str]) -> NDArray[float32]:
    return np.ones((len(texts), 2), dtype=np.float32)


def asking(rag: RagTwin, *, embeds: bool = True) -> TalkAround:
    return RecallAround(rag, QuestionVectors(Embedder("m", 2, embed) if embeds else None))


async def found_by(rag: RagTwin, *, embeds: bool = True, limit: int = 5) -> list[str]:
    found = await asking(rag, embeds=embeds)(SALTMERE, GRIMJAW, "Who was at the mine?", around=WARDENS.id, limit=limit)
    return [one.recalled.text for one in found]


def tools(around: TalkAround | None, *, tier: BudgetTier = "DEEP") -> Toolbox:
    return Toolbox(NpcMemory(SALTMERE, GRIMJAW, a_world(), Talk((ELSEWHERE,)), around=around), tier=tier)


def shown(answer: dict[str, object]) -> list[object]:
    return [one["said"] for one in answer["found"]]  # type: ignore[attr-defined]


ASK = {"query": "Who was at the mine?", "around": "the Wardens of the Tide"}


async def test_what_bears_on_the_question_comes_first_and_of_equals_what_is_nearer() -> None:
    assert await found_by(RagTwin()) == ["far, and just that", "near", "far", "near, and of something else"]


async def test_what_is_near_is_not_lost_among_much_that_is_further_away() -> None:
    crowd = tuple(passage(f"far {n}", 0.5, 2, REAVERS.id) for n in range(50))
    assert await found_by(RagTwin((*crowd, *SAID)), limit=2) == ["far, and just that", "near"]


async def test_what_is_not_about_the_question_at_all_is_left_out() -> None:
    unlike = replace(SAID[1], recalled=replace(SAID[1].recalled, similarity=0.1))
    assert await found_by(RagTwin((unlike, SAID[2]))) == ["far"]


async def test_without_a_vector_words_decide() -> None:
    by_meaning, by_words = RagTwin(), RagTwin()
    assert await found_by(by_words, embeds=False) == await found_by(by_meaning)
    assert {by for by, _ in by_words.asked} == {"words"}
    assert {by for by, _ in by_meaning.asked} == {"meaning"}


async def test_without_a_search_around_an_entity_its_argument_is_not_shown() -> None:
    """Nor does it do harm."""
    without = tools(None)
    assert all("around" not in spec.parameters for spec in without.declared)
    assert shown(await without.call("memory_search_sessions", ASK)) == [recalled_line(ELSEWHERE)]


async def test_who_may_look_long_finds_what_was_said_of_a_groups_people_and_how_they_belong_to_it() -> None:
    around = asking(RagTwin())
    [spec] = [spec for spec in tools(around).declared if spec.name == "memory.search_sessions"]
    assert "around" in spec.parameters
    assert "around" not in spec.required
    found: Any = (await tools(around).call("memory_search_sessions", ASK))["found"]
    first, second = found[:2]
    assert (first["speaks of"], first["relations away"]) == (["Reavers of Skarn"], 2)
    assert (second["said"], second["speaks of"]) == ("Tamsin said: near", ["Grimjaw", "Wardens of the Tide"])


async def test_who_must_be_quick_searches_all_talk() -> None:
    rag = RagTwin()
    quick = tools(asking(rag), tier="STANDARD")
    assert all("around" not in spec.parameters for spec in quick.declared)
    assert shown(await quick.call("memory_search_sessions", ASK)) == [recalled_line(ELSEWHERE)]
    assert rag.asked == []


async def test_where_nothing_is_found_around_somebody_all_talk_is_searched_and_the_model_is_told() -> None:
    silent = tools(asking(RagTwin(said=())))
    answer = await silent.call("memory_search_sessions", ASK)
    assert shown(answer) == [recalled_line(ELSEWHERE)]
    assert answer["note"] == "nothing found around 'Wardens of the Tide'; results are not limited to it"
    answer = await tools(asking(RagTwin())).call("memory_search_sessions", {**ASK, "around": "The Drowned Cult"})
    assert shown(answer) == [recalled_line(ELSEWHERE)]
    assert "nothing called 'The Drowned Cult' is known; results are not limited to it" in str(answer["note"])
