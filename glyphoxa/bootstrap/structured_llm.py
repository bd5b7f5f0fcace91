"""The language models that work behind the talk, as the settings name them: who looks again at names, who recalls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.llm.structured import StructuredLlm
from glyphoxa.providers.building import build, maker_of
from glyphoxa.providers.registry import RECALL, SECOND_LOOK, Choice, find, runs_here

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the prompt cache of the model that runs here."""

    llama: LlamaServer
    number: int


class _Closing(StructuredLlm, Protocol):
    async def close(self) -> None: ...


def local_slots(settings: Settings, campaign: Campaign) -> int:
    """Places in the local model's prompt cache: one for each NPC, and one for each who works behind the talk, so that
    they push no NPC's prompt out.
    """
    return max(1, len(campaign.npcs)) + len(_local_kinds(settings))


def slot_of(kind: str, settings: Settings, *, slots: int) -> int:
    """The place of one who works behind the talk: they have the last ones.

    Args:
        slots: All there are; if there are too few, the first is shared.
    """
    kinds = _local_kinds(settings)
    return max(0, slots - len(kinds) + kinds.index(kind)) if kind in kinds else 0


def open_structured_llm(
    chosen: Choice,
    stack: AsyncExitStack,
    *,
    kind: str,
    here: Slot | None = None,
    environ: Mapping[str, str] = os.environ,
    **options: int,
) -> StructuredLlm:
    """Closed by `stack`.

    Args:
        kind: Where it is set, `SECOND_LOOK`, `RECALL` or `CHRONICLE`.
        here: What "local" means; None if no model runs here.
        options: For the maker of what asks.

    Raises:
        InvalidInput: Its key is not set, its package is not installed, or no model runs here.
    """
    row = find(kind, chosen.name)
    llm: _Closing
    if not row.runs_here:
        llm = build(chosen, section=kind, environ=environ, **options)
    elif here is None:
        raise InvalidInput(f"{kind} {row.name} needs a providers.llm that runs here, such as qwen-1.5b")
    else:
        llm = maker_of(row, section=kind)(here.llama, slot=here.number, **options)
    stack.push_async_callback(llm.close)
    return llm


def _local_kinds(settings: Settings) -> list[str]:
    """Who works behind the talk with the local model."""
    recalls = settings.has_memory and settings.recall.asks_a_model and runs_here(RECALL, settings.recall.llm.name)
    looks = runs_here(SECOND_LOOK, settings.correction.llm.name)
    return [kind for kind, is_local in ((RECALL, recalls), (SECOND_LOOK, looks)) if is_local]
