"""Which language model reads talk: the section `chronicle` of the settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from glyphoxa.config.sections import NameOf, ProviderSettings, Section, empty_section


class ChronicleLlmSettings(ProviderSettings):
    """Who reads talk beside the rules, with `memory.chronicle: llm`.

    `local` is the NPCs' own model, which `glyphoxa worker read` and `glyphoxa worker` load for themselves: have it
    read when nobody plays. `openai-compatible` needs a `base_url`.
    """

    name: Annotated[str, NameOf("structured")] = "local"


class ChronicleSettings(Section):
    """How talk is read with a language model.

    Attributes:
        calls_per_minute: The model is asked no more often, by each process that reads: once for a stretch of up to 40
            lines.
        llm: Who is asked.
    """

    calls_per_minute: Annotated[int, Field(ge=1, le=600)] = 20
    llm: Annotated[ChronicleLlmSettings, BeforeValidator(empty_section)] = ChronicleLlmSettings()
