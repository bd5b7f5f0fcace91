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
    from pipecat.processors.frame_processor import FrameProcessor


def make_stt(
    provider: Choice,
    *,
    keyterms: Sequence[str] = (),
    sample_rate: int = 16_000,
    language: str = "en",
    environ: Mapping[str, str] = os.environ,
) -> FrameProcessor:
    """Create a recogniser for one ear.

    `keyterms` must already fit the provider's limits (`glyphoxa.names.keyterms`). Update them with a `KeytermsFrame`.

    Raises:
        InvalidInput: See `build`.
    """
    made: FrameProcessor = build(
        provider, section=STT, environ=environ, keyterms=keyterms, sample_rate=sample_rate, language=language
    )
    return made
