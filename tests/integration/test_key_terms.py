"""That a provider is told which names to expect, that it helps, and that no word is lost when it takes them badly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from pipecat.frames.frames import (
    InputAudioRawFrame,
    SystemFrame,
    TranscriptionFrame,
    VADUserStoppedSpeakingFrame,
)

from benchmarks.servers.deepgram import DeepgramServer, OnConfigure, Word
from glyphoxa.actors.clock import now_ms
from glyphoxa.app.engines import EarSpec
from glyphoxa.app.models import LocalModels
from glyphoxa.config.provider_sections import ProvidersSettings, SttSettings
from glyphoxa.config.sections import TurnsSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign, Entity, Scene
from glyphoxa.domain.events import SceneChanged
from glyphoxa.domain.heard import EarEvent, TurnEnded
from glyphoxa.domain.ids import CampaignId, EntityId, SceneId
from glyphoxa.names.corrector import Corrected
from glyphoxa.names.gazetteer import Gazetteer, entries_of
from glyphoxa.names.keyterms import Hints
from glyphoxa_pipelines.ear import open_ear
from glyphoxa_pipelines.host import PipelineHost
from glyphoxa_processors.cloud import deepgram_stt
from glyphoxa_processors.frames import KeytermsFrame
from tests.support.counting import COUNTING, say, sound, spoken, starts, stops, transcript
from tests.support.graph import RunningGraph
from tests.support.pipecat_fakes import ALICE, Scripted, listening
from tests.support.provider import KEYS, ProviderNamed, make_stt


class _SoundSent(SystemFrame):
    """Comes out behind the sound sent before it, which itself goes no further than the recogniser."""


BOTH = pytest.mark.parametrize("name", ["deepgram-nova", "deepgram-flux"])
NAMES = {1: Word("Who"), 2: Word("is"), 3: Word("Vaelith?", 0.5, unexpected="veil if?")}


@BOTH
@pytest.mark.parametrize(("keyterms", "heard"), [([], "Who is veil if?"), (["Vaelith"], "Who is Vaelith?")])
async def test_the_same_sound_is_heard_right_by_a_recogniser_that_was_told_the_name(
    name: str, keyterms: list[str], heard: str
) -> None:
    async with DeepgramServer(voices=NAMES) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=keyterms, environ=KEYS)
        async with RunningGraph(stt) as graph:
            await say(graph, 1, 2, 3)
    assert transcript(graph) == heard


@BOTH
async def test_a_name_that_comes_up_while_it_listens_is_heard_right_from_then_on(name: str) -> None:
    async with DeepgramServer(voices=NAMES) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=["Grimjaw"], environ=KEYS)
        async with RunningGraph(stt) as graph:
            await say(graph, 3)
            await graph.send(KeytermsFrame(["Vaelith"]))
            await server.wait_until(lambda: server.connections[0].keyterms == ["Vaelith"])
            await say(graph, 3)
    assert transcript(graph) == "veil if? Vaelith?"
    assert len(server.connections) == 1


@pytest.mark.parametrize("on_configure", ["refused", "hangs_up"])
async def test_an_endpoint_that_takes_no_new_names_is_reconnected_at_a_pause_and_no_word_is_lost(
    on_configure: OnConfigure,
) -> None:
    """Regional endpoints."""
    async with DeepgramServer(voices=COUNTING, on_configure=on_configure) as server:
        stt = make_stt(ProviderNamed("deepgram-nova", server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            await graph.send(starts(), *spoken(1, 2))
            await graph.send(KeytermsFrame(["Vaelith"]))
            await server.wait_until(lambda: any(m["type"] == "Configure" for m in server.connections[0].messages))
            await graph.send(*spoken(3, 4), *sound(0, 200), stops())
            for n in range(5, 11):
                await graph.send(*sound(0, 40), starts(), *spoken(n), *sound(0, 200), stops())
            await graph.send(*sound(0, 100))
            await graph.wait_until(lambda: "ten" in transcript(graph))
            await server.wait_until(lambda: len(server.connections) == 2)
    assert transcript(graph) == "one two three four five six seven eight nine ten"
    assert server.connections[1].keyterms == ["Vaelith"]


async def test_an_endpoint_that_does_not_answer_is_reconnected_with_the_new_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deepgram_stt, "ACKNOWLEDGED_WITHIN_S", 0.05)
    async with DeepgramServer(voices=NAMES, on_configure="ignored") as server:
        stt = make_stt(ProviderNamed("deepgram-nova", server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            await say(graph, 3)
            await graph.send(KeytermsFrame(["Vaelith"]))
            await server.wait_until(lambda: len(server.connections) == 2)
            await say(graph, 3)
    assert transcript(graph) == "veil if? Vaelith?"


async def test_nobody_is_cut_off_in_the_middle_of_speech_for_the_sake_of_new_names() -> None:
    async with DeepgramServer(voices=COUNTING, on_configure="refused") as server:
        stt = make_stt(ProviderNamed("deepgram-nova", server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            await graph.send(starts(), *spoken(1))
            await graph.send(KeytermsFrame(["Vaelith"]))
            await server.wait_until(lambda: bool(server.connections[0].messages))
            await graph.send(*spoken(2, 3, 4))
            await server.wait_until(lambda: server.connections[0].heard_ms == 400)
            assert len(server.connections) == 1
            await graph.send(*sound(0, 200), stops())
            await graph.wait_for(TranscriptionFrame)
            await server.wait_until(lambda: len(server.connections) == 2)
    assert transcript(graph) == "one two three four"


@BOTH
async def test_a_connection_that_is_lost_in_the_middle_of_a_sentence_loses_no_word(name: str) -> None:
    async with DeepgramServer(voices=COUNTING, hangs_up_after_ms=330) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=["Vaelith"], environ=KEYS)
        async with RunningGraph(stt) as graph:
            await graph.send(starts(), *spoken(1, 2, 3, 4))
            await server.wait_until(lambda: server.connections[0].heard_ms >= 330)
            await graph.send(*spoken(5, 6))
            # The pause comes while there is no connection.
            await graph.send(*sound(0, 200), stops())
            await server.wait_until(lambda: len(server.connections) == 2)
            await graph.send(*sound(0, 100))
            await graph.wait_until(lambda: transcript(graph).endswith("six"))
    assert transcript(graph) == "one two three four five six"


@BOTH
async def test_a_pause_gets_through_though_the_recogniser_takes_no_more_sound_and_the_next_words_are_heard(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the pause comes more sound than there is room for on the way to a server that reads nothing."""
    monkeypatch.setattr(deepgram_stt, "ACCEPTED_WITHIN_S", 0.1)
    async with DeepgramServer(voices=COUNTING, stops_reading_after_ms=200) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), environ=KEYS)
        async with RunningGraph(stt) as graph:
            await graph.send(starts(), *spoken(1, 2))
            await server.wait_until(lambda: server.connections[0].heard_ms == 200)
            for _ in range(20):
                await graph.send(InputAudioRawFrame(bytes(1_000_000), 16_000, 1))
            await graph.send(stops())
            await graph.wait_for(VADUserStoppedSpeakingFrame)
            while len(server.connections) < 2:
                await graph.send(*sound(0, 20), _SoundSent())
                await graph.wait_for(_SoundSent, n=len(graph.of(_SoundSent)) + 1)
            await graph.send(starts(), *spoken(3), *sound(0, 200), stops())
            await graph.wait_until(lambda: transcript(graph).endswith("three"))


@BOTH
async def test_a_list_that_is_too_long_for_the_provider_is_halved_and_the_session_goes_on(name: str) -> None:
    names = [f"Npc{n}" for n in range(40)]
    async with DeepgramServer(voices=COUNTING, max_keyterms=30) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=names, environ=KEYS)
        async with RunningGraph(stt) as graph:
            await say(graph, 1, 2)
            await graph.send(KeytermsFrame(["Vaelith", *names]))
            await server.wait_until(lambda: server.connections[0].keyterms[:1] == ["Vaelith"])
        assert graph.errors == []
    assert server.refused == [names]
    assert server.connections[0].query["keyterm"] == names[:20]
    assert server.connections[0].keyterms == ["Vaelith", *names[:19]]
    assert transcript(graph) == "one two"


@BOTH
async def test_a_provider_that_takes_no_names_at_all_is_used_without(name: str) -> None:
    async with DeepgramServer(voices=COUNTING, max_keyterms=0) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=["Vaelith", "Skarn"], environ=KEYS)
        async with RunningGraph(stt) as graph:
            await say(graph, 1)
        assert graph.errors == []
    assert server.refused == [["Vaelith", "Skarn"], ["Vaelith"]]
    assert transcript(graph) == "one"


@BOTH
async def test_a_request_that_is_refused_whatever_its_names_is_an_error(name: str) -> None:
    async with DeepgramServer(refuse_with=400) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=["Vaelith"], environ=KEYS)
        async with RunningGraph(stt) as graph:
            assert "400" in await graph.wait_for_error()


@dataclass
class TableNames:
    """Key terms of a table, and their listeners."""

    names: Sequence[str]
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(changed)
        return lambda: self.listeners.remove(changed)

    def keyterms(self) -> Sequence[str]:
        return self.names

    def become(self, *names: str) -> None:
        self.names = names
        for listener in self.listeners:
            listener()


async def test_an_ear_expects_the_names_of_the_scene_that_the_table_moves_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the table's events to the wire."""
    others = tuple(
        Entity(EntityId(f"e{n}"), "npc", f"Zorvath{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(200)
    )
    keep = Entity(EntityId("keep"), "location", "Vaelith")
    scene = Scene(SceneId("keep"), keep.id, ())
    campaign = Campaign(CampaignId("c"), "C", "en", (*others, keep), (), (), (ALICE,), (scene,))
    hints = Hints(campaign, Gazetteer.build(entries_of(campaign)), now_ms=now_ms)
    monkeypatch.setenv("GLYPHOXA_TEST_KEY", "secret-1234")
    events: list[EarEvent] = []
    async with DeepgramServer(voices=NAMES) as server:
        stt = SttSettings(name="deepgram-nova", base_url=server.http_url, api_key_env="GLYPHOXA_TEST_KEY")
        host = PipelineHost()
        ear = await open_ear(
            EarSpec(
                player=ALICE,
                language="en",
                settings=Settings(providers=ProvidersSettings(stt=stt)),
                local=LocalModels(),
                host=host,
                correct=lambda text, **_: Corrected(text, ()),
                hints=hints,
                on_partial=lambda player, text: None,
                listener=events.append,
                now_ms=now_ms,
            )
        )
        await ear.start()
        assert "Vaelith" not in server.connections[0].keyterms
        hints.on(SceneChanged(scene, now_ms()))
        await server.wait_until(lambda: "Vaelith" in server.connections[0].keyterms[:2])
        await ear.close()
        await host.close()


@BOTH
async def test_an_ear_tells_its_recogniser_of_a_burst_of_changes_once(name: str) -> None:
    names = TableNames(("Grimjaw",))
    async with DeepgramServer(voices=NAMES) as server:
        stt = make_stt(ProviderNamed(name, server.http_url), keyterms=names.keyterms(), environ=KEYS)
        told, turns = names.keyterms(), TurnsSettings(complete_ms=220, end_of_turn_ms=220)
        async with listening(
            Scripted({}), stt=stt, hints=names, keyterms=told, settle_ms=50, turns=turns, final_within_ms=3_000
        ) as play:
            for n in range(9):
                names.become(f"Npc{n}")
            names.become("Vaelith", "Grimjaw")
            await server.wait_until(lambda: server.connections[0].keyterms == ["Vaelith", "Grimjaw"])
            names.become("Grimjaw", "Vaelith")  # the same in another order
            play.detect(speech=True)
            for voice in (1, 2, 3):
                play.hear(voice, ms=100)
            play.hear(0, ms=200)
            play.detect(speech=False)
            assert (await play.until(TurnEnded)).draft.text == "Who is Vaelith?"
        assert names.listeners == []
        [connection] = server.connections
        assert [m["type"] for m in connection.messages].count("Configure") == 1
