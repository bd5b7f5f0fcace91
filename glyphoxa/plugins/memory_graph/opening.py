"""Opens deep recall: how NPCs of tier DEEP search their memory, as configured."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.app.background import open_asker
from glyphoxa.app.models import load_llama
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.relations import RelationWords
from glyphoxa.plugins.memory_graph.deep_recall import DeepRecall
from glyphoxa.providers.building import LLM, NONE, RECALL, RERANK, build, runs_here

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer
    from glyphoxa.adapters.openai_models import HttpReranker

_LOCAL_RECALL: Final = {"llm_lines": 16, "llm_rounds": 2}
"""A slot of the local model holds 2,048 tokens, and it reads about 50 a second."""


async def open_deep_recall(
    settings: Settings,
    store: Store,
    campaign: Campaign,
    stack: AsyncExitStack,
    *,
    llama: LlamaServer | None = None,
    **asked: Any,
) -> DeepRecall:
    """Open recall with the configured stages and language model. `stack` closes it; nothing is downloaded.

    Args:
        llama: The model that runs here. None: it is loaded if the method needs it.
        asked: `deadline_ms`, `recent` and `world` of `DeepRecall`.

    Raises:
        InvalidInput: See `open_asker`; or the method needs something unavailable.
        NotFound: The local model's weights are missing.
        Corrupt: They are damaged.
    """
    chosen = settings.recall.model_copy(update={"method": settings.recall.searches_by})
    llm: ModelAsker | None = None
    if chosen.asks_a_model:
        is_local = runs_here(RECALL, chosen.llm.name)
        if llama is None and is_local and runs_here(LLM, settings.providers.llm.name):
            llama = await load_llama(settings, stack)
        llm = replace(open_asker(settings, stack, kind=RECALL, llama=llama), forbids=topics_of(campaign).forbids)
        if is_local:
            unset = {
                name: value for name, value in _LOCAL_RECALL.items() if name not in settings.recall.model_fields_set
            }
            chosen = chosen.model_copy(update=unset)
    reranker: HttpReranker | None = None
    if chosen.method == "hybrid_rerank" and chosen.rerank.name != NONE:
        reranker = build(chosen.rerank, section=RERANK)
        stack.push_async_callback(reranker.close)
    deep = DeepRecall(
        store.past_talk,
        knowledge=store,
        words=RelationWords.of(campaign),
        always_injected=campaign.schema.always_injected(),
        settings=chosen,
        llm=llm,
        reranker=reranker,
        **asked,
    )
    stack.push_async_callback(deep.close)
    return deep
