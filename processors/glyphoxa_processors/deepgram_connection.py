"""What both of Deepgram's recognisers need to keep a conversation going from one connection to the next."""

from __future__ import annotations

from deepgram.core.api_error import ApiError
from pipecat.services.stt_service import STTService
from websockets.exceptions import InvalidStatus

LONGEST_REPEATED_S = 20
ONSET_S = 1.0
"""Between turns: speech that the detector has not reported yet may be in the last second."""


def bytes_per_s(stt: STTService) -> int:
    return 2 * (stt.sample_rate or 16_000)


def is_refusal_of_the_request(error: Exception | None) -> bool:
    """HTTP 400 at the handshake. What it was that the provider did not like does not reach us."""
    match error:
        case ApiError(status_code=400):
            return True
        case InvalidStatus(response=response):
            return response.status_code == 400
        case _:
            return False
