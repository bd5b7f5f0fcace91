"""How NPCs that may look long search their memory: the section `recall` of the settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from glyphoxa.config.located_yaml import LocatedYaml, Problem
from glyphoxa.config.sections import NameOf, ProviderSettings, empty_section
from glyphoxa.memory_graph.settings import MemoryGraphSettings, RecallMethod
from glyphoxa.providers.registry import LLM, NONE, RECALL, runs_here


class RecallLlmSettings(ProviderSettings):
    """Who picks memories, where a search asks a language model.

    `local` is the NPCs' own model, in a place of its own in its prompt cache. Two cores take 7 to 12 s to read what it
    picks from, and a tool has 3: it serves `glyphoxa recall`, at a table another is needed. `openai-compatible` needs
    a `base_url`.
    """

    name: Annotated[str, NameOf("structured")] = "local"


class RerankSettings(ProviderSettings):
    """Who gives a second opinion on the order, where a search asks for one: `cohere-compatible` is a server that
    answers `POST /rerank` as Cohere does. It needs a `base_url` and a `model`.
    """

    name: Annotated[str, NameOf("reranker", or_none=True)] = "none"


class DeepRecallSettings(MemoryGraphSettings):
    """How an NPC of budget tier DEEP searches its memory with its tools. What it recalls in a turn by itself,
    and what NPCs of other tiers find, is `hybrid` with no stage on, whatever is set here: somebody waits.
    """

    llm: Annotated[RecallLlmSettings, BeforeValidator(empty_section)] = RecallLlmSettings()
    rerank: Annotated[RerankSettings, BeforeValidator(empty_section)] = RerankSettings()

    @property
    def searches_by(self) -> RecallMethod:
        """The method. Where none is set, who is named is asked: a language model that is not the one
        that runs here, else a reranker.
        """
        if self.method is not None:
            return self.method
        if not runs_here(RECALL, self.llm.name):
            return "llm"
        return "hybrid" if self.rerank.name == NONE else "hybrid_rerank"

    @property
    def is_plain(self) -> bool:
        """Whether all NPCs search alike."""
        return self.searches_by == "hybrid" and not self.stages


def recall_contradictions(source: LocatedYaml, recall: DeepRecallSettings, *, thinks_with: str) -> list[Problem]:
    """Values that are fine alone and wrong together.

    Args:
        thinks_with: The name in providers.llm, whose model `local` is.
    """
    if recall.method == "hybrid_rerank" and recall.rerank.name == NONE:
        text = "recall.method hybrid_rerank asks recall.rerank, which is none; valid: cohere-compatible"
        return [source.problem(("recall", "method"), text)]
    is_local = runs_here(RECALL, recall.llm.name)
    if recall.asks_a_model and is_local and (text := not_here(thinks_with)):
        return [source.problem(("recall", "method"), f"recall.method {recall.method} asks recall.llm: {text}")]
    return []


def not_here(thinks_with: str) -> str:
    """Why `local` cannot be the model of this name in providers.llm; "" if it can."""
    if runs_here(LLM, thinks_with):
        return ""
    return f"local is the model of providers.llm, which is {thinks_with}: not one that runs here"
