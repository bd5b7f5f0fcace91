"""Which words of the talk become terms of the campaign, and which meaning is proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chat.questions import Unparseable
from glyphoxa.chronicle.coined_terms import CoinedTerms
from glyphoxa.chronicle.effects import effects_of
from glyphoxa.chronicle.talk import ExtractedFact, KnownEntity
from glyphoxa.domain.campaign import Player
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, NpcId, PlayerId, SessionId
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from tests.support.builders import INNKEEPER, SMITH, a_campaign
from tests.support.model_twin import ModelTwin
from tests.support.talk import TranscriptTwin, numbered

EVENING = SessionId("evening")
DM_PLAYER = Player(PlayerId("dm"), "Ansel", dm=True)
CAMPAIGN = replace(a_campaign(), players=(*a_campaign().players, DM_PLAYER), glossary={"the Sundering": "a war"})


class Transcript(TranscriptTwin):
    """Texts of Tamsin that the smith heard; or speaker, text and listeners."""

    def __init__(self, *lines: str | tuple[str, str, set[NpcId]], known: Sequence[KnownEntity] = ()) -> None:
        whole = (("Tamsin", line, {SMITH}) if isinstance(line, str) else line for line in lines)
        said = (
            numbered(n, (text, heard), speaker=speaker, npc=SMITH if speaker == "Grimjaw" else None)
            for n, (speaker, text, heard) in enumerate(whole, start=1)
        )
        super().__init__(*said, known=known)


async def proposed(transcript: Any, asking: ModelAsker | None = None) -> dict[str, str]:
    terms = CoinedTerms(CAMPAIGN, transcript, asking=asking)
    due = [found async for _, found in terms.due(EVENING, up_to=len(transcript.lines))]
    return {found.entities[0].name: found.facts[0].value if found.facts else "" for found in due}


async def meanings(transcript: Any, asking: ModelAsker) -> list[ExtractedFact]:
    terms = CoinedTerms(CAMPAIGN, transcript, asking=asking)
    return [fact async for _, found in terms.due(EVENING, up_to=len(transcript.lines)) for fact in found.facts]


async def test_term_used_twice_is_proposed_with_the_sentence_about_it() -> None:
    first = "The Geometers built this hall."
    talk = Transcript(first, "What a hall.", "I wonder what the Geometers wanted here.")
    assert await proposed(talk) == {"Geometers": first}


async def test_capitals_and_inner_capitals_are_terms() -> None:
    talk = Transcript("You may ask ORACLE.", "Then ORACLE answered us.", "It talks by GeoNet.", "What is GeoNet?")
    assert set(await proposed(talk)) == {"ORACLE", "GeoNet"}


async def test_one_use_by_the_dm_is_enough_but_none_by_an_npc() -> None:
    dm = Transcript(("Ansel", "You find a note about the Geometers.", {SMITH}))
    assert set(await proposed(dm)) == {"Geometers"}
    npc = ("Grimjaw", "I fear the Geometers.", {SMITH})
    assert await proposed(Transcript(npc, npc, npc)) == {}


async def test_what_is_no_term_is_not_proposed() -> None:
    shouted = "STOP THAT NOW YOU FOOL"
    assert await proposed(Transcript(shouted, shouted)) == {}
    assert await proposed(Transcript("McAllister waits.", "Ask McAllister again.")) == {}
    assert await proposed(Transcript("I met Balgorn.", "Is the Balgorn here?", "Look, Balgorn again.")) == {}
    assert await proposed(Transcript("We fled the Sundering.", "I hate the Sundering.")) == {}
    assert await proposed(Transcript("(OOC: what is ORACLE?)", "You may ask ORACLE.")) == {}
    geometers = KnownEntity(EntityId("g"), "faction", "Geometers")
    assert await proposed(Transcript("The Geometers!", "I saw the Geometers.", known=[geometers])) == {}


async def test_term_with_a_proposed_meaning_is_not_proposed_again() -> None:
    lines = ("The Geometers built this hall.", "Who are the Geometers?")
    term = KnownEntity(EntityId("geometers"), "concept", "Geometers", origin="talk")
    assert set(await proposed(Transcript(*lines, known=[term]))) == {"Geometers"}
    assert await proposed(Transcript(*lines, known=[replace(term, is_defined=True)])) == {}


async def test_term_that_no_short_sentence_is_about_is_proposed_once_without_a_meaning() -> None:
    long = "The Geometers are said to have built this hall when the river still ran north of it."
    lines = ("I saw the Geometers.", "Are the Geometers here?", long, "If the Geometers come, run.")
    assert await proposed(Transcript(*lines)) == {"Geometers": ""}
    term = KnownEntity(EntityId("geometers"), "concept", "Geometers", origin="talk")
    assert await proposed(Transcript(*lines, known=[term])) == {}


async def test_corrected_and_retracted_lines_are_counted_again() -> None:
    talk = Transcript("The Geometers built this.", "What a hall.", "I fear the Geometers.", "The Sorters rule here.")
    terms = CoinedTerms(CAMPAIGN, talk)  # type: ignore[arg-type] # what it reads of a log
    assert [found.entities[0].name async for _, found in terms.due(EVENING, up_to=4)] == ["Geometers"]
    talk.lines[2] = replace(talk.lines[2], utterance=replace(talk.lines[2].utterance, text="I fear the Sorters."))
    assert [found.entities[0].name async for _, found in terms.due(EVENING, up_to=4)] == ["Sorters"]
    talk.retracted.add(4)
    assert [found async for _, found in terms.due(EVENING, up_to=4)] == []


async def test_model_is_asked_again_about_a_term_only_with_other_lines() -> None:
    talk = Transcript("I saw the Geometers.", "Are the Geometers here?", "Look, the Geometers.")
    model = ModelTwin({"meaning": "", "lines": []})
    terms = CoinedTerms(CAMPAIGN, talk, asking=model.asking)  # type: ignore[arg-type] # what it reads of a log
    for up_to, n_asked in ((2, 1), (2, 1), (3, 2)):
        assert [found.facts async for _, found in terms.due(EVENING, up_to=up_to)] == [()]
        assert len(model.asked) == n_asked


async def test_meaning_is_pending_and_known_to_those_who_heard_its_lines() -> None:
    talk = Transcript(
        ("Tamsin", "The Geometers built this hall.", {SMITH}), ("Tamsin", "I saw the Geometers.", {INNKEEPER})
    )
    terms = CoinedTerms(CAMPAIGN, talk)  # type: ignore[arg-type] # what it reads of a log
    [(scene, found)] = [each async for each in terms.due(EVENING, up_to=2)]
    events = [event for effect in effects_of(found, scene, ()).of for event in effect.events]
    [added] = {event.visibility for event in events if isinstance(event, EntityAdded)}
    [stated] = [event for event in events if isinstance(event, FactStated)]
    assert added.is_visible_to(SMITH) and added.is_visible_to(INNKEEPER)
    assert stated.visibility.is_visible_to(SMITH) and not stated.visibility.is_visible_to(INNKEEPER)
    assert stated.provenance.confidence < AUTO_ACCEPT


HALL = ("The Geometers are builders who measure the stars.", "I saw the Geometers.")


async def test_model_defines_a_term_from_its_lines() -> None:
    model = ModelTwin({"meaning": "builders who measure the stars", "lines": [1]})
    assert await proposed(Transcript(*HALL), model.asking) == {"Geometers": "builders who measure the stars"}
    assert [fact.is_inferred for fact in await meanings(Transcript(*HALL), model.asking)] == [True]
    assert model.asked[0].splitlines() == ["Term: Geometers", *(f"{n} Tamsin: {one}" for n, one in enumerate(HALL, 1))]


async def test_model_is_not_shown_a_line_withheld_after_it_was_counted() -> None:
    model = ModelTwin({"meaning": "builders who measure the stars", "lines": [1]})
    talk = Transcript("The Geometers took my ring.", *HALL)
    terms = CoinedTerms(CAMPAIGN, talk, asking=model.asking)  # type: ignore[arg-type] # what it reads of a log
    assert [found async for found in terms.due(EVENING, up_to=1)] == []
    talk.retracted.add(1)
    assert [found async for found in terms.due(EVENING, up_to=2)] == []
    assert model.asked == []
    [(scene, _)] = [found async for found in terms.due(EVENING, up_to=3)]
    assert [each.ordinal for each in scene.said] == [2, 3]
    assert "ring" not in str(model.asked)


async def test_model_is_not_asked_about_a_new_term_without_statement() -> None:
    model = ModelTwin({"meaning": "builders who measure the stars", "lines": [1]})
    asked_about = ("Who are the Geometers? They are builders who measure the stars.", "Are the Geometers here?")
    assert await proposed(Transcript(*asked_about), model.asking) == {}
    assert len(model.asked) == 0
    term = KnownEntity(EntityId("geometers"), "concept", "Geometers", origin="talk")
    assert set(await proposed(Transcript(*asked_about, known=[term]), model.asking)) == {"Geometers"}


async def test_unsupported_meaning_is_replaced_by_the_sentence_about_the_term() -> None:
    for answer in (
        {"meaning": "a cult that drinks blood at midnight", "lines": [1]},
        {"meaning": "builders who measure the stars", "lines": []},
        {"meaning": "builders " * 11, "lines": [1]},
        {"meaning": f"builders who measure {'x' * 1_000}", "lines": [1]},
        {"meaning": "", "lines": []},
        {"meaning": "Geometers", "lines": [1]},
        Unparseable("no object"),
    ):
        [meaning] = await meanings(Transcript(*HALL), ModelTwin(answer).asking)
        assert (meaning.value, meaning.is_inferred) == (HALL[0], False)


async def test_term_waits_while_the_model_is_away() -> None:
    assert await proposed(Transcript(*HALL), ModelTwin(Unavailable("away")).asking) == {}
