"""Summaries select what was said; they make nothing up, and hold nothing that their reader did not hear."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.chronicle.summaries import LineSelection, heard_by
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance, tellable
from glyphoxa.dm.handouts import PlayersView
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import HIDDEN, witnessed_by
from glyphoxa.domain.turn_record import Unaddressed
from tests.support.builders import INNKEEPER, SMITH, a_campaign, an_utterance
from tests.support.talk import numbered

NPCS = (SMITH, INNKEEPER)
WORDS = (
    *("I", "promise", "take", "found", "gave", "map", "crown", "letter", "king", "tomorrow", "tower", "ring"),
    *("because", "we", "hm", "okay", "the", "a", "roll", "12"),
)
LINES = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS), min_size=1, max_size=14), st.sets(st.sampled_from(NPCS))), max_size=30
)


def talk(lines: list[tuple[list[str], set[NpcId]]]) -> list[NumberedUtterance]:
    return [numbered(n, (f"{' '.join(words)} mark{n}.", heard)) for n, (words, heard) in enumerate(lines, start=1)]


@given(LINES, st.integers(1, 120))
def test_a_summary_holds_what_its_reader_heard_in_order_and_no_more_than_there_is_room_for(
    lines: list[tuple[list[str], set[NpcId]]], tokens: int
) -> None:
    said = talk(lines)
    for npc in NPCS:
        heard = [each.utterance for each in heard_by(npc, said)]
        chosen = LineSelection("en", tokens=tokens).select(heard)
        places = [[each.id for each in heard].index(line.evidence[0]) for line in chosen]
        assert places == sorted(set(places))
        for place, line in zip(places, chosen, strict=True):
            assert heard[place].text in line.text
        text = " ".join(line.text for line in chosen)
        assert len(text) <= 4 * tokens
        for unheard in (each for each in said if npc not in each.utterance.witnesses):
            assert f"mark{unheard.ordinal}." not in text.split()


def test_what_was_said_twice_is_told_once_where_it_was_said_last() -> None:
    line = "I promise to bring you the silver ring and the map before the feast."
    said = [an_utterance(line, id=f"u{n}") for n in (1, 2)]
    assert [each.evidence for each in LineSelection("en").select(said)] == [("u2",)]


def test_evening_without_salient_lines_is_told_by_its_best_ones() -> None:
    talk = (
        "Good evening.",
        "Pass the salt.",
        "The bridge fell into the river.",
        "It will come.",
        "A new priest arrived.",
    )
    said = [an_utterance(text, id=f"u{n}") for n, text in enumerate(talk)]
    selection = LineSelection("en")
    assert not selection.select(said)
    assert [each.evidence for each in selection.salient(said, fewest=2)] == [("u2",), ("u4",)]
    assert not selection.salient([an_utterance("Good evening."), an_utterance("Well, well.")], fewest=2)


def test_wish_to_be_forgotten_is_not_told_though_the_evening_has_nothing_else() -> None:
    said = [an_utterance("Forget that I mentioned the bridge, that is off the record.")]
    assert not LineSelection("en").salient(said, fewest=2)


def test_a_long_line_is_cut_at_the_end_of_a_sentence() -> None:
    text = "I take the map and the crown out of the chest. " + "And then we found the king and the letter. " * 8
    [line] = LineSelection("en").select([an_utterance(text)])
    assert len(line.text) <= 240 + len("Tamsin said: “”")
    assert line.text.endswith(".”")


def test_german_lines_are_quoted_as_german_ones() -> None:
    said = [an_utterance("Ich verspreche dir die Karte, die Krone und den Ring bis morgen.")]
    assert LineSelection("de").select(said)[0].text.startswith("Tamsin sagte: „Ich verspreche")


def test_players_are_told_no_name_that_they_may_not_know() -> None:
    known = [KnownEntity(EntityId("v"), "npc", "Vorlath", visibility=HIDDEN)]
    put_right = an_utterance("Vorlath has the map.", raw_text="For laugh has the map.")
    said_so = an_utterance("I know that Vorlath has the map.")
    shown = PlayersView(known, a_campaign()).shown([NumberedUtterance(put_right, 1), NumberedUtterance(said_so, 2)])
    assert [each.utterance.text for each in shown] == ["For laugh has the map."]


def test_recap_leaves_out_a_name_of_talk_that_the_dm_hid_later() -> None:
    line = [NumberedUtterance(an_utterance("Vorlath has the map."), 1)]
    named = KnownEntity(EntityId("v"), "npc", "Vorlath", visibility=witnessed_by({SMITH}), origin="talk")
    assert len(PlayersView([named], a_campaign()).shown(line)) == 1
    assert PlayersView([replace(named, visibility=HIDDEN)], a_campaign()).shown(line) == []


def test_players_are_read_no_line_of_a_speaker_they_may_not_know() -> None:
    known = [KnownEntity(EntityId("v"), "npc", "Vorlath", visibility=HIDDEN)]
    speaks = an_utterance("I promise you the map.", speaker="Vorlath")
    assert PlayersView(known, a_campaign()).shown([NumberedUtterance(speaks, 1)]) == []


@pytest.mark.parametrize("text", ["Who dug the tunnel under the mill?", "They dug a tunnel, I am sure of it."])
def test_players_are_read_no_line_that_touches_a_secret(text: str) -> None:
    lines = [NumberedUtterance(an_utterance(text), 1), NumberedUtterance(an_utterance("We crossed the lake."), 2)]
    secrets = ["Odo dug a tunnel under the mill by night."]
    assert [each.ordinal for each in PlayersView([], a_campaign(), secrets).shown(lines)] == [2]


@pytest.mark.parametrize(
    "left_out",
    [
        an_utterance("I promise you the map.", aside=Unaddressed.WHISPER),
        an_utterance("I promise you the map.", npc=SMITH),
        an_utterance("Who has the map? Do you know him"),
        an_utterance("ooc: I take the map home."),
        an_utterance("I roll for stealth and take the map."),
    ],
)
def test_only_what_players_state_in_the_story_is_told(left_out: Utterance) -> None:
    told = an_utterance("Who has the map? I took it.")
    assert tellable([left_out, told]) == [told]
