"""Who finds what talk tells: the rules, and a language model where the settings want one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from glyphoxa.actors.circuit_breaker import CircuitBreaker
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.local_models import load_llama
from glyphoxa.bootstrap.structured_llm import Slot, open_structured_llm
from glyphoxa.chronicle.chronicler import EXTRACT_MS
from glyphoxa.chronicle.llm.extractor import LlmExtractor, LlmReading
from glyphoxa.chronicle.llm.pace import Pace
from glyphoxa.chronicle.llm.question import QuestionLimits
from glyphoxa.chronicle.ports import Extractor
from glyphoxa.chronicle.rules.extractor import RulesExtractor
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.providers.registry import CHRONICLE, runs_here

_REST_MS: Final = 5_000
"""Of a stretch's time, what all but the model takes, and more."""
_CLOUD_DEADLINE_MS: Final = 30_000
_CLOUD: Final = QuestionLimits(most_chars=40_000)
_CLOUD_TOKENS: Final = 4_000
_LOCAL_DEADLINE_MS: Final = 150_000
_LOCAL: Final = QuestionLimits(most_chars=6_000, most_found=5, longest_text=80)
_LOCAL_TOKENS: Final = 600
_LOCAL_CONTEXT: Final = 4_096
"""Two cores read some 50 tokens a second and write 20: a full stretch takes a minute."""
_GATHER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class TalkReaders:
    """
    Attributes:
        asking: The language model that reads, too; None: rules alone.
    """

    asking: LlmReading | None = None

    def extractor(self, campaign: Campaign) -> Extractor:
        narrators = [player.name for player in campaign.players if player.dm]
        rules = RulesExtractor(campaign.language, narrators=narrators)
        if self.asking is None:
            return rules
        return LlmExtractor(rules, self.asking, campaign.language, narrators=narrators)

    @property
    def extract_ms(self) -> int:
        """What one stretch may take."""
        return EXTRACT_MS if self.asking is None else EXTRACT_MS + self.asking.longest_ms

    @property
    def lease_ms(self) -> int:
        """A reader that is silent for so long is dead."""
        return self.extract_ms + _REST_MS

    @property
    def gather_ms(self) -> int:
        """How long a stretch is waited for: a model is asked once for all of it."""
        return 0 if self.asking is None else _GATHER_MS


RULES: Final = TalkReaders()


async def open_talk_readers(
    settings: Settings, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> TalkReaders:
    """For a process in which nobody plays. Closed by `stack`; nothing is fetched.

    Raises:
        InvalidInput: The model's key is not set, or its package is not installed.
        NotFound: Its weights are not here.
        Corrupt: They are not what they must be.
    """
    if settings.memory.chronicle != "llm" or not runs_here(CHRONICLE, settings.chronicle.llm.name):
        return talk_readers_at_table(settings, stack, environ=environ)
    llama = await load_llama(settings, stack, context_tokens=_LOCAL_CONTEXT)
    llm = open_structured_llm(
        settings.chronicle.llm, stack, kind=CHRONICLE, here=Slot(llama, 0), max_tokens=_LOCAL_TOKENS
    )
    pace = Pace(settings.chronicle.calls_per_minute)
    return TalkReaders(LlmReading(llm, pace, CircuitBreaker(now_ms), _LOCAL_DEADLINE_MS, _LOCAL))


def talk_readers_at_table(
    settings: Settings, stack: AsyncExitStack, *, environ: Mapping[str, str] = os.environ
) -> TalkReaders:
    """For a process in which a table plays: a model that runs here is the NPCs' alone.

    Raises:
        InvalidInput: See `open_talk_readers`.
    """
    if settings.memory.chronicle != "llm" or runs_here(CHRONICLE, settings.chronicle.llm.name):
        return RULES
    llm = open_structured_llm(settings.chronicle.llm, stack, kind=CHRONICLE, environ=environ, max_tokens=_CLOUD_TOKENS)
    pace = Pace(settings.chronicle.calls_per_minute)
    return TalkReaders(LlmReading(llm, pace, CircuitBreaker(now_ms), _CLOUD_DEADLINE_MS, _CLOUD))
