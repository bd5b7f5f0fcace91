"""Which names the local recogniser is told of, and when it learns of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from glyphoxa.actors.clock import now_ms
from glyphoxa.domain.heard import TurnEnded
from glyphoxa_processors.whisper_stt import Recogniser, WhisperSTT
from tests.support.pipecat_fakes import ALICE, Listening, Scripted, listening


class Names:
    """A glossary that changes."""

    def __init__(self) -> None:
        self.text = "Names: Eldrinax."

    def __call__(self) -> str:
        return self.text


@asynccontextmanager
async def ear_with(names: Names, scripted: Scripted) -> AsyncIterator[Listening]:
    recogniser = Recogniser(scripted)
    stt = WhisperSTT(ALICE.id, recogniser, glossary=names, clock=now_ms)
    async with listening(scripted, stt=stt) as play:
        yield play
    recogniser.close()


async def test_the_transcripts_of_one_turn_are_made_with_one_glossary() -> None:
    """A name that appears in the middle of a turn makes its final transcript no other than its partials."""
    names, scripted = Names(), Scripted({100: "Who is Vaelith?"})
    async with ear_with(names, scripted) as play:
        play.detect(speech=True)
        play.hear(100, ms=600)
        await play.drained()
        names.text = "Names: Vaelith."
        play.detect(speech=False)
        await play.until(TurnEnded)
    assert {glossary for _, glossary, _ in scripted.calls} == {"Names: Eldrinax."}


async def test_the_next_turn_is_transcribed_with_the_names_of_then() -> None:
    names, scripted = Names(), Scripted({100: "Who is Vaelith?"})
    async with ear_with(names, scripted) as play:
        play.say(100)
        await play.until(TurnEnded)
        await play.drained()
        names.text = "Names: Vaelith."
        play.say(100)
        await play.until(TurnEnded, n=2)
    glossaries = [glossary for _, glossary, _ in scripted.calls]
    assert (glossaries[0], glossaries[-1]) == ("Names: Eldrinax.", "Names: Vaelith.")
