"""How NPCs of tier DEEP search their memory, as the settings want it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from glyphoxa.app.chronicle import Slot, open_structured_llm, slot_of
from glyphoxa.app.models import load_llama
from glyphoxa.config.settings import Settings
from glyphoxa.domain.ids import NpcId
from glyphoxa.memory_graph.deep_recall import DeepRecall, DeepTalk
from glyphoxa.memory_graph.methods import Reranker
from glyphoxa.memory_graph.settings import RecallMethod
from glyphoxa.npc.budget import DEFAULT_RULES
from glyphoxa.providers.building import LLM, NONE, RECALL, RERANK, build, runs_here
from glyphoxa.recall.recall import Recall
from glyphoxa.transcript.ports import PastTalk

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.openai_models import HttpReranker

_LOCAL: Final = {"llm_lines": 16, "llm_rounds": 2}
"""A place in the local model holds 2,048 tokens, and it reads some 50 of them a second."""
_REST_OF_A_CALL_MS: Final = 1_000
"""Of a tool's time, what looking for facts beside talk takes, and more."""


def open_deep_recall(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
    settings: Settings,
    recall: Recall,
    stack: AsyncExitStack,
    *,
    method: RecallMethod,
    llama: LlamaServer | None = None,
    environ: Mapping[str, str] = os.environ,
) -> DeepRecall:
    """Recall with the stages that the settings name, and with whom the method asks. Closed by `stack`.

    Args:
        method: What it is opened for.
        llama: The model that runs here, if one does.

    Raises:
        InvalidInput: See `open_structured_llm`; or the method asks what cannot be had.
    """
    chosen = settings.recall.model_copy(update={"method": method})
    llm = None
    if chosen.asks_a_model:
        here = None if llama is None else Slot(llama, slot_of(RECALL, settings, slots=llama.slots))
        llm = open_structured_llm(chosen.llm, stack, kind=RECALL, here=here, environ=environ)
        if runs_here(RECALL, chosen.llm.name):
            unset = {name: value for name, value in _LOCAL.items() if name not in settings.recall.model_fields_set}
            chosen = chosen.model_copy(update=unset)
    reranker = _open_reranker(settings, stack, environ) if method == "hybrid_rerank" else None
    deep = DeepRecall(recall, settings=chosen, llm=llm, reranker=reranker)
    stack.push_async_callback(deep.close)
    return deep


async def load_deep_recall(
    settings: Settings,
    recall: Recall,
    stack: AsyncExitStack,
    *,
    method: RecallMethod,
    environ: Mapping[str, str] = os.environ,
) -> DeepRecall:
    """As `open_deep_recall`, for verbs that need no table: a model that runs here is loaded if it is asked. Nothing is
    fetched.

    Raises:
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    llama = None
    both_here = all(runs_here(each, settings.chosen(each).name) for each in (RECALL, LLM))
    if both_here and settings.recall.model_copy(update={"method": method}).asks_a_model:
        llama = await load_llama(settings, stack)
    return open_deep_recall(settings, recall, stack, method=method, llama=llama, environ=environ)


def open_deep_talk(  # noqa: PLR0913 - parts that have nothing to do with each other, given once
    settings: Settings,
    recall: Recall,
    stack: AsyncExitStack,
    *,
    talk: PastTalk,
    recent: Callable[[NpcId], Sequence[str]],
    world: Callable[[NpcId], str],
    llama: LlamaServer | None = None,
    environ: Mapping[str, str] = os.environ,
) -> PastTalk:
    """What the tools of an NPC of tier DEEP ask, where the settings want more than `talk`.

    Args:
        recall: Whose talk it is.
        talk: What the tools of others ask.
        recent: What an NPC heard last.
        world: What stands in every prompt of an NPC.

    Raises:
        InvalidInput: See `open_deep_recall`.
    """
    method = settings.recall.searches_by
    deep = open_deep_recall(settings, recall, stack, method=method, llama=llama, environ=environ)
    deadline_ms = DEFAULT_RULES["DEEP"].ceiling_ms - _REST_OF_A_CALL_MS
    return DeepTalk(talk, deep, deadline_ms=deadline_ms, recent=recent, world=world)


def _open_reranker(settings: Settings, stack: AsyncExitStack, environ: Mapping[str, str]) -> Reranker | None:
    chosen = settings.recall.rerank
    if chosen.name == NONE:
        return None
    reranker: HttpReranker = build(chosen, section=RERANK, environ=environ)
    stack.push_async_callback(reranker.close)
    return reranker
