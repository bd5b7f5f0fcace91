"""How misheard names are put right: the section `correction` of the settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from glyphoxa.config.sections import NameOf, ProviderSettings, Section, empty_section
from glyphoxa.domain.utterance import UNSURE


class SecondLookSettings(ProviderSettings):
    """A language model that looks again at words the recogniser was unsure of, behind the talk. Off by default.

    `local` is the NPCs' own model: it is asked while the table is quiet. `openai-compatible` needs a `base_url`.
    """

    name: Annotated[str, NameOf("structured", or_none=True)] = "none"


class CorrectionSettings(Section):
    """How misheard names are put right. Each stage can be left out.

    Attributes:
        phonetic: The stage by sound and spelling, on every transcript.
        algorithm: `documents` is the rule as it was first written down; it rewrites ordinary speech, and is there to
            be compared with.
        caution: Evidence, in log-odds, asked for beyond an even chance before words are replaced: 1 for a table that
            would rather see a garble than a wrong name, -1 for one that would not.
        phonetic_threshold: Of `documents`: least similarity of spellings that sound alike.
        fuzzy_threshold: Of `documents`: the same where nothing sounds alike.
        low_confidence: Words of which the recogniser is less sure are looked at again.
        llm: Who looks again.
    """

    phonetic: bool = True
    algorithm: Literal["shipped", "documents"] = "shipped"
    caution: Annotated[float, Field(ge=-5.0, le=5.0)] = 0.0
    phonetic_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.70
    fuzzy_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.85
    low_confidence: Annotated[float, Field(ge=0.0, le=1.0)] = UNSURE
    llm: Annotated[SecondLookSettings, BeforeValidator(empty_section)] = SecondLookSettings()
