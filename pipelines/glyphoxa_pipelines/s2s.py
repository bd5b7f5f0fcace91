"""A speech-to-speech mouth: memory, then a speech-to-speech session.

Such a model takes no list of names. Its input is text from the players' ears, whose recognisers do take names; see
`glyphoxa.names.keyterms`.
"""

from __future__ import annotations

from pipecat.processors.frame_processor import FrameProcessor

from glyphoxa.app.engines import MouthSpec
from glyphoxa.npc.mouth import Finished
from glyphoxa_pipelines.cascaded import GraphMouth
from glyphoxa_processors.hot_context import HotContextInjector
from glyphoxa_processors.s2s_session import Endpoint
from glyphoxa_processors.s2s_voice import STALLED_AFTER_MS, HeardFrame, SpeechToSpeechVoice
from glyphoxa_processors.speaker import Speaker
from glyphoxa_processors.spoken_text import ReplyRules


def stages(
    spec: MouthSpec,
    speaker: Speaker,
    *,
    endpoint: Endpoint,
    rules: ReplyRules,
    stalled_after_ms: int = STALLED_AFTER_MS,
) -> list[FrameProcessor]:
    voice = SpeechToSpeechVoice(
        endpoint,
        speaker,
        tools=spec.tools,
        new_splitter=rules.new_splitter,
        new_check=rules.new_check,
        stalled_after_ms=stalled_after_ms,
    )
    return [HotContextInjector(spec.context, speaker), voice, speaker]


class S2sMouth(GraphMouth):
    """A mouth whose session keeps the conversation, so it reports what was heard of each reply.

    It supports no fillers and no given words, because the session has the only voice and chooses its own words.
    """

    renders_fillers = False
    says_given_words = False

    def _note_heard(self, event: Finished) -> None:
        if self._line is not None:
            self._line.send(HeardFrame(event.heard, event.audio_ms))
