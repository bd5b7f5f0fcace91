"""That the local recogniser uses the names it is told: the same recordings, with and without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from demo.recordings import read_recording
from demo.script import ScriptLine, read_evening
from glyphoxa.adapters.local.whisper import Whisper
from glyphoxa.adapters.weights.store import WeightStore
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.ids import EntityId
from glyphoxa.names.gazetteer import Gazetteer, entries_of
from glyphoxa.names.keyterms import Hints
from glyphoxa.names.naming import Entry
from tests.support.builders import a_campaign

pytestmark = pytest.mark.models

DEMO = Path(__file__).resolve().parents[2] / "demo"


def is_written(name: str, text: str) -> bool:
    """Whether a text contains the words of a name, ignoring case and possessive endings."""
    of_name, of_text = (
        " ".join(re.findall(r"[^\W_]+", re.sub(r"['\u2019]s", "", each.casefold()))) for each in (name, text)
    )
    return f" {of_name} " in f" {of_text} "


@pytest.fixture(scope="module")
def whisper() -> Whisper:
    return Whisper(WeightStore().path("whisper-tiny.en"))


@pytest.fixture(scope="module")
def hints() -> Hints:
    """Return the hints of a table of the demo's campaign that has just been opened."""
    campaign = read_campaign(DEMO / "campaign.yaml").campaign
    hints = Hints(campaign, Gazetteer.build(entries_of(campaign), language=campaign.language), now_ms=lambda: 0)
    hints.scene_is(campaign.scenes[0])
    return hints


def lines_with_names() -> Iterator[ScriptLine]:
    for session in read_evening(DEMO / "evening.yaml").sessions:
        yield from (line for part in session.parts for line in part.lines if line.names)


@pytest.mark.parametrize("line", lines_with_names(), ids=lambda line: line.id)
def test_names_that_come_out_wrong_by_themselves_come_out_right_when_they_are_expected(
    whisper: Whisper, hints: Hints, line: ScriptLine
) -> None:
    """Measured on the demo's recordings."""
    sound = np.frombuffer(read_recording(DEMO / line.wav).pcm, dtype=np.int16)
    by_itself = whisper.transcribe(sound).text
    told = whisper.transcribe(sound, hints.glossary()).text
    assert not all(is_written(name, by_itself) for name in line.names)
    assert all(is_written(name, told) for name in line.names)


def test_no_name_of_the_glossary_is_cut_off_by_the_recogniser() -> None:
    """A prompt that ends in half a name costs ordinary words."""
    tokenizer = Tokenizer.from_file(str(WeightStore().path("whisper-tiny.en") / "tokenizer.json"))
    made = np.random.default_rng(5)
    syllables = np.array(["xan", "thor", "quil", "zeth", "mra", "ygg", "'vel", "o"])
    for words in (1, 2, 4):
        names = [" ".join("".join(made.choice(syllables, 3)).title() for _ in range(words)) for _ in range(200)]
        gazetteer = Gazetteer.build(Entry(name, EntityId(name), "npc") for name in names)
        hints = Hints(a_campaign(), gazetteer, now_ms=lambda: 0)
        assert len(tokenizer.encode(f" {hints.glossary()}", add_special_tokens=False).ids) <= 200
