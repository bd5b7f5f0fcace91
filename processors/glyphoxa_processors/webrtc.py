from __future__ import annotations

from collections.abc import Callable

from pipecat.frames.frames import Frame, InputAudioRawFrame
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor


class BrowserMicrophone(FrameProcessor):
    """Passes one browser's sound to its seat. The sound goes no further, so players do not hear themselves."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        super().__init__()
        self._hear = hear

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            self._hear(frame.audio)
        else:
            await self.push_frame(frame, direction)
