"""Cloud speech recognition for an ear, which finds pauses itself.

Every pause that the local voice activity detector reports is answered by one closing transcript, whatever the
service: Nova is asked to finalise, Flux to end its turn. So the ear's own end of turn holds for all of them, and
none of them decides when an NPC may answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from glyphoxa.domain.errors import InvalidInput
from glyphoxa_processors.cloud import Provider, choose, key_of

if TYPE_CHECKING:
    from pipecat.frames.frames import Frame
    from pipecat.services.stt_service import STTService

KEY_VARIABLE = "DEEPGRAM_API_KEY"


def make_stt(
    provider: Provider,
    *,
    keyterms: Sequence[str] = (),
    sample_rate: int = 16_000,
    language: str = "en",
    environ: Mapping[str, str] = os.environ,
) -> STTService:
    """A recogniser for one ear. Names: `deepgram-nova`, `deepgram-flux`.

    `keyterms` must already be packed to what the provider takes (`glyphoxa.speech.names.keyterms`). They change later
    with `keyterms_frame`.

    Raises:
        InvalidInput: The name is unknown, its extra is not installed, the key is not set, or the language is not known.
    """
    key = partial(key_of, provider, kind="stt", default_env=KEY_VARIABLE, environ=environ)

    def nova() -> STTService:
        from pipecat.transcriptions.language import Language

        from glyphoxa_processors.deepgram_stt import make_nova

        try:
            spoken = Language(language)
        except ValueError:
            raise InvalidInput(
                f"stt provider 'deepgram-nova' knows no language {language!r} (campaign.language)"
            ) from None
        return make_nova(provider, key=key(), keyterms=keyterms, sample_rate=sample_rate, language=spoken)

    def flux() -> STTService:
        from glyphoxa_processors.deepgram_stt import make_flux

        return make_flux(provider, key=key(), keyterms=keyterms, sample_rate=sample_rate)

    return choose(provider, {"deepgram-nova": nova, "deepgram-flux": flux}, kind="stt")


def keyterms_frame(keyterms: Sequence[str], *, stt: STTService) -> Frame:
    """Tells a recogniser of `make_stt` which names to expect from now on."""
    from glyphoxa_processors import deepgram_stt

    return deepgram_stt.keyterms_frame(keyterms, stt=stt)
