"""Cloud speech recognition for an ear, which finds pauses itself.

Every pause that the local voice activity detector reports is answered by one closing transcript, whatever the
service: Nova is asked to finalise, Flux to end its turn. So the ear's own end of turn holds for all of them, and
none of them decides when an NPC may answer.
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
    """A recogniser for one ear.

    `keyterms` must already be packed to what the provider takes (`glyphoxa.names.hints`). They change later
    with `keyterms_frame`.

    Raises:
        InvalidInput: As `build`; or the language is not known.
    """
    made: STTService = build(
        provider, section=STT, environ=environ, keyterms=keyterms, sample_rate=sample_rate, language=language
    )
    return made


def unknown_to_nova(language: str) -> str:
    """Why it cannot hear the language of this tag; "" if it can."""
    from pipecat.transcriptions.language import Language

    return "" if language in set(Language) else f"knows no language {language!r} (campaign.language)"


def keyterms_frame(keyterms: Sequence[str], *, stt: STTService) -> Frame:
    """Tells a recogniser of `make_stt` which names to expect from now on."""
    from glyphoxa_processors import deepgram_stt

    return deepgram_stt.keyterms_frame(keyterms, stt=stt)
