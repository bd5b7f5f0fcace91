"""Cloud speech recognition for an ear. The local voice activity detector finds the pauses.

Each pause is answered by one closing transcript: Nova is asked to finalise, Flux to end its turn. The ear's end-of-turn
rules therefore hold for all services, and none of them decides when an NPC may answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from glyphoxa.providers.building import STT, Choice, build

if TYPE_CHECKING:
    from pipecat.frames.frames import Frame
    from pipecat.services.stt_service import STTService


def make_stt(
    provider: Choice,
    *,
    keyterms: Sequence[str] = (),
    sample_rate: int = 16_000,
    language: str = "en",
    environ: Mapping[str, str] = os.environ,
) -> STTService:
    """Create a recogniser for one ear.

    `keyterms` must already fit the provider's limits (`glyphoxa.names.hints`). Update them with `keyterms_frame`.

    Raises:
        InvalidInput: As `build`; or the language is unknown.
    """
    made: STTService = build(
        provider, section=STT, environ=environ, keyterms=keyterms, sample_rate=sample_rate, language=language
    )
    return made


def unknown_to_nova(language: str) -> str:
    """Return why Nova does not support this language tag; "" if it does."""
    from pipecat.transcriptions.language import Language

    return "" if language in set(Language) else f"does not support language {language!r} (campaign.language)"


def keyterms_frame(keyterms: Sequence[str], *, stt: STTService) -> Frame:
    """Return the frame that sends new names to a recogniser of `make_stt`."""
    from glyphoxa_processors import deepgram_stt

    return deepgram_stt.keyterms_frame(keyterms, stt=stt)
