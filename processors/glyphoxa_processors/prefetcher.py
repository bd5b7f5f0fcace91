"""Lets recall start while the player still speaks."""

from __future__ import annotations

from collections.abc import Callable

from pipecat.frames.frames import Frame, InterimTranscriptionFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from glyphoxa.domain.ids import PlayerId

OnPartial = Callable[[PlayerId, str], None]
"""Takes a corrected partial transcript. Returns at once and starts what it likes."""


class KeywordPrefetcher(FrameProcessor):
    """Hands each partial transcript to `on_partial`. Stands behind the corrector, so names are names by then."""

    def __init__(self, player: PlayerId, on_partial: OnPartial) -> None:
        super().__init__()
        self._player = player
        self._on_partial = on_partial

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InterimTranscriptionFrame):
            try:
                self._on_partial(self._player, frame.text)
            except Exception as error:  # pre-fetch is a bonus: it must never cost the player their turn
                await self.push_error(f"pre-fetch failed: {error}", exception=error)
        await self.push_frame(frame, direction)
