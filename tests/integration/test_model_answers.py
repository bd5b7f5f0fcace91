"""Answers of a model that nobody can use: each background task keeps what it has without a model.

The real clients ask a server that speaks the provider's protocol. No reason for a refusal quotes the transcript.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.servers.google import GeminiServer
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.app.background import open_asker
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chronicle.coined_terms import CoinedTerms
from glyphoxa.chronicle.curator import Curating, Curator
from glyphoxa.chronicle.judge import LlmJudge, RulesJudge
from glyphoxa.chronicle.llm_extractor import LlmExtractor
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.summaries import LlmSummariser
from glyphoxa.chronicle.talk import Extraction, KnownEntity, NumberedUtterance, SceneTalk
from glyphoxa.config.provider_sections import MemoryGraphSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.heard import HeardWord
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId
from glyphoxa.language.words import words
from glyphoxa.names.gazetteer import Gazetteer
from glyphoxa.names.naming import Entry
from glyphoxa.npc.transcript_revision import Asking, Doubted, SecondLook
from glyphoxa.plugins.memory_graph.graph import MemoryGraph
from glyphoxa.plugins.memory_graph.pipeline import GraphQuestion
from glyphoxa.plugins.memory_graph.recall_methods import GraphRecall
from glyphoxa.providers.registry import CHRONICLE
from tests.support.builders import SMITH, an_utterance
from tests.unit.chronicle.test_coined_terms import CAMPAIGN, EVENING, Transcript

SPOKEN: Final = {
    "en": ("Odo tended the lighthouse before the flood.", "I promise to bring you six crowns.", "Is the ferry late?"),
    "de": ("Odo hat vor der Flut den Leuchtturm gehütet.", "Ich verspreche dir sechs Kronen.", "Kommt die Fähre?"),
}
ODO: Final = KnownEntity(EntityId("odo"), "npc", "Odo Fennimore", ("Odo",))
ELSEWHERE: Final = "Queen Ysmerelda of Thrannor"
HALL: Final = ("The Geometers are builders who measure the stars.", "I saw the Geometers.")
DOUBTED: Final = "did elder nacks come"
NO_JSON: Final = ("Odo is a smith.", "[]", '{"facts": [{"subject": "Od', "[" * 100_000, "x" * 200_000, "")


def a_talk(language: str) -> SceneTalk:
    lines = (replace(an_utterance(text, id=f"u{n}"), witnesses=frozenset({SMITH})) for n, text in said(language))
    numbered = tuple(NumberedUtterance(each, n) for n, each in enumerate(lines, start=1))
    return SceneTalk(CampaignId("town"), SessionId("s"), language, numbered)


def said(language: str) -> list[tuple[int, str]]:
    return list(enumerate(SPOKEN[language], start=1))


@dataclass(frozen=True)
class Task:
    """A background task.

    Attributes:
        does: Returns what the task has in the end, and the reasons for what it refused.
        answer: Returns an answer of the form: about a name, of a type, with the number of a line.
    """

    does: Callable[[ModelAsker | None, str], Awaitable[tuple[object, tuple[str, ...]]]]
    answer: Callable[[str, str, int], Mapping[str, Any]]


def of(found: Extraction) -> tuple[object, tuple[str, ...]]:
    return (found.entities, found.relations, found.facts), found.refused


async def extraction(asker: ModelAsker | None, language: str) -> tuple[object, tuple[str, ...]]:
    rules = RulesExtractor(language)
    return of(await (rules if asker is None else LlmExtractor(rules, asker)).extract(a_talk(language), [ODO]))


async def nothing_found(*_: object) -> Mapping[str, Any]:
    return {"found": []}


async def curator(asker: ModelAsker | None, language: str) -> tuple[object, tuple[str, ...]]:
    rules = RulesExtractor(language)
    if asker is None:
        return of(await rules.extract(a_talk(language), [ODO]))
    curating = Curating(asker, 60_000, 900)
    return of(await Curator(rules, curating, {"look": "Look."}, nothing_found).extract(a_talk(language), [ODO]))


async def judge(asker: ModelAsker | None, language: str) -> tuple[object, tuple[str, ...]]:
    rules = RulesJudge(language, RulesExtractor(language).index)
    judged = await (rules if asker is None else LlmJudge(rules, asker, ("line:spiders",))).judge(a_talk(language), [])
    return [each.judged.judgement for each in judged], tuple(each.judged.reason for each in judged)


async def summary(asker: ModelAsker | None, language: str) -> tuple[object, tuple[str, ...]]:
    try:
        lines = [each.utterance for each in a_talk(language).said]
        return [] if asker is None else await LlmSummariser(asker, language).summarise(lines), ()
    except GlyphoxaError as error:
        return [], (str(error),)


async def glossary(asker: ModelAsker | None, _: str) -> tuple[object, tuple[str, ...]]:
    log: Any = Transcript(*HALL)
    return [found async for _, found in CoinedTerms(CAMPAIGN, log, asking=asker).due(EVENING, up_to=2)], ()


async def second_look(asker: ModelAsker | None, _: str) -> tuple[object, tuple[str, ...]]:
    if asker is None:
        return None, ()
    names = Gazetteer.build([Entry(name, EntityId(name)) for name in ("Eldrinax", "Ironhold")])
    heard = tuple(HeardWord(each.start, each.end, 0.2) for each in words(DOUBTED))
    look, utterance = SecondLook(Asking(asker), lambda: names), replace(an_utterance(DOUBTED), words=heard)
    return await look.at(Doubted(utterance, look.doubtful(utterance), ()), is_wanted=lambda: True), ()


async def recall(asker: ModelAsker | None, _: str) -> tuple[object, tuple[str, ...]]:
    graph = MemoryGraph(["feast", "death"], ["event"] * 2, [(0, 1, "mentions")], turns=np.array([0, 100]))
    settings = MemoryGraphSettings(method="hybrid" if asker is None else "hybrid_llm")
    asked = GraphQuestion(np.array([1.0, 0.5]), np.zeros(2), np.zeros(2))
    found = await GraphRecall(graph, ("A feast.", "A death.").__getitem__, settings, llm=asker).recall(asked, "Who?")
    return [hit.id for hit in found.hits], found.left_out


def findings(name: str, type_: str, line: int) -> dict[str, Any]:
    sure = {"lines": [line], "confidence": "certain"}
    return {
        "entities": [{"name": name, "type": type_}],
        "relationships": [{"source": name, "type": "SERVES", "target": ELSEWHERE} | sure],
        "facts": [{"subject": name, "about": "past", "value": "ruled the seven isles"} | sure],
    }


def replacement(name: str) -> dict[str, Any]:
    corrections = [{"original": "elder nacks", "corrected": name, "reason": "sounds alike"}]
    return {"corrections": corrections, "corrected_text": f"did {name} come"}


TASKS: Final = {
    "extraction": Task(extraction, findings),
    "curator": Task(curator, lambda *about: {"tool": "done", "query": "", **findings(*about)}),
    "judge": Task(
        judge,
        lambda name, type_, _: {"mode": type_, "risk": "low", "flags": [name], "note": name, "extract_memory": True},
    ),
    "summary": Task(summary, lambda name, _, line: {"sentences": [{"lines": [line], "text": f"{name} fell."}]}),
    "glossary": Task(glossary, lambda name, _, line: {"meaning": f"servants of {name}", "lines": [line]}),
    "second_look": Task(second_look, lambda name, *_: replacement(name)),
    "recall": Task(recall, lambda _name, _type, _line: {"chosen": [77], "open": []}),
}
MADE_UP: Final = {
    "unknown type": ("Odo", "dragonoid", 1),
    "line that does not exist": (ELSEWHERE, "npc", 77),
    "negative line": (ELSEWHERE, "npc", -1),
    "names of another campaign": (ELSEWHERE, "npc", 1),
    "no end": ("y" * 100_000 + " z" * 50_000, "npc", 1),
}
ANSWERS: Final = [
    *((task, reply, True, "openai", "en") for task in TASKS for reply in NO_JSON),
    *(("extraction", reply, True, "google", "en") for reply in NO_JSON),
    *(
        (task, json.dumps(TASKS[task].answer(*about)), False, "openai", language)
        for task in TASKS
        for about in MADE_UP.values()
        for language in (SPOKEN if task == "extraction" else ("en",))
    ),
]
SILENT: Final = ("glossary", "second_look")
"""Tasks that log why they refused a part of an answer."""


@pytest.mark.parametrize(
    ("task", "reply", "is_asked_again", "name", "language"), ANSWERS, ids=lambda value: str(value)[:30]
)
async def test_useless_answer_costs_nothing_but_itself(
    task: str, reply: str, is_asked_again: bool, name: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(variable, "k")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            OpenAiServer([Reply(reply)]) if name == "openai" else GeminiServer([Reply(reply)])
        )
        address = server.base_url if isinstance(server, OpenAiServer) else server.http_url
        settings = Settings.model_validate({"chronicle": {"llm": {"name": name, "base_url": address}}})
        found, refused = await TASKS[task].does(open_asker(settings, stack, kind=CHRONICLE), language)
        asked = server.completions if isinstance(server, OpenAiServer) else server.requests
    alone, _ = await TASKS[task].does(None, language)
    assert found == alone
    n_questions = sum(text[-1] != "?" for text in SPOKEN[language]) if task == "judge" else 1
    assert len(asked) >= (2 if is_asked_again else 1) * n_questions
    reasons = " ".join(refused)
    assert reasons or task in SILENT
    assert not any(text[:20] in reasons for text in (*SPOKEN[language], *HALL, DOUBTED, ELSEWHERE))
