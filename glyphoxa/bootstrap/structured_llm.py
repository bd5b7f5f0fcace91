"""The language models that work behind the talk, as the settings name them: who looks again at names, who recalls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from glyphoxa.config.check import Choice
from glyphoxa.config.provider_keys import key_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.llm.structured import StructuredLlm

if TYPE_CHECKING:
    from glyphoxa.adapters.local.llama import LlamaServer

SECOND_LOOK: Final = "correction.llm"
RECALL: Final = "recall.llm"
_DEFAULT_MODELS: Final = {"openai": "gpt-4.1-mini", "google": "gemini-3.6-flash", "openai-compatible": "default"}


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
    llama: LlamaServer | None,
    slot: int = 0,
    environ: Mapping[str, str] = os.environ,
) -> StructuredLlm:
    """Closed by `stack`.

    Args:
        kind: Where it is set, `SECOND_LOOK` or `RECALL`.
        llama: The model that "local" means.
        slot: Its place there.

    Raises:
        InvalidInput: Its key is not set, its package is not installed, or no model runs here.
    """
    try:
        return _open(chosen, stack, kind=kind, llama=llama, slot=slot, environ=environ)
    except ModuleNotFoundError as error:
        extra = "google" if chosen.name == "google" else "openai"
        raise InvalidInput(
            f"{kind} {chosen.name!r} needs {error.name!r}, which is not installed: pip install 'glyphoxa[{extra}]'"
        ) from error


def _open(
    chosen: Choice,
    stack: AsyncExitStack,
    *,
    kind: str,
    llama: LlamaServer | None,
    slot: int,
    environ: Mapping[str, str],
) -> StructuredLlm:
    model = chosen.model or _DEFAULT_MODELS.get(chosen.name, "")
    if chosen.name == "local":
        from glyphoxa.adapters.llm.local import LocalStructuredLlm

        if llama is None:
            raise InvalidInput(f"{kind} local needs a providers.llm that runs here, such as qwen-1.5b")
        here = LocalStructuredLlm(llama, slot=slot)
        stack.push_async_callback(here.close)
        return here
    key = key_of(chosen, kind=kind, environ=environ)
    if chosen.name == "google":
        from glyphoxa.adapters.llm.google import GoogleStructuredLlm

        google = GoogleStructuredLlm(model=model, api_key=key, base_url=chosen.base_url)
        stack.push_async_callback(google.close)
        return google
    from glyphoxa.adapters.llm.openai import OpenAiStructuredLlm

    openai = OpenAiStructuredLlm(model=model, api_key=key, base_url=chosen.base_url)
    stack.push_async_callback(openai.close)
    return openai


def _local_kinds(settings: Settings) -> list[str]:
    """Who works behind the talk with the local model."""
    recalls = settings.has_memory and settings.recall.asks_a_model and settings.recall.llm.name == "local"
    looks = settings.correction.llm.name == "local"
    return [kind for kind, is_local in ((RECALL, recalls), (SECOND_LOOK, looks)) if is_local]
