"""Random talk: an aside leaves nothing anywhere, and an NPC's line is never the only evidence of anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.chronicle.effects import Effects, effects_of
from glyphoxa.chronicle.llm_task import visible_lines
from glyphoxa.chronicle.rules_extractor import RulesExtractor
from glyphoxa.chronicle.summaries import LineSelection, heard_by
from glyphoxa.chronicle.talk import (
    ExtractedEntity,
    ExtractedFact,
    ExtractedRelation,
    Extraction,
    KnownEntity,
    NumberedUtterance,
    SceneTalk,
)
from glyphoxa.chronicle.utterance_nodes import Grafter
from glyphoxa.dm.handouts import PlayersView
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.turn_record import Unaddressed
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from tests.support.builders import CAMPAIGN, INNKEEPER, SESSION, SMITH, a_campaign, a_known_party, an_utterance
from tests.support.proof import n_examples

TOWN = a_known_party()
KNOWN = [KnownEntity(each.id, each.type, each.name, each.aliases) for each in TOWN.entities]
GRAFTER = Grafter("en", {npc.id: npc.entity_id for npc in TOWN.npcs}, TOWN.scenes)
NAMES = ("Ysmay Corrin", "Harth Hollow", "Baron Osric", "Wenna Thistlebrook", "Kestrel Vane", "Dunharrow")
SAYINGS = (
    "My sister {name} lives here.",
    "I promise to bring {name} the copper bell before the harvest.",
    "I found a letter of {name} in the old well.",
    "{name} serves the king.",
    "Who is {name}?",
    "We decided to leave for {name} at dawn.",
    "I am a healer, and my father is {name}.",
)
ASIDES = (Unaddressed.WHISPER, Unaddressed.PLANNING, Unaddressed.OUT_OF_CHARACTER)
LINE = st.tuples(
    st.sampled_from(SAYINGS),
    st.sampled_from(NAMES),
    st.sampled_from(["player", "player", "npc", "aside"]),
    st.sampled_from(ASIDES),
    st.sets(st.sampled_from([SMITH, INNKEEPER]), min_size=1),
)


@st.composite
def talks(draw: st.DrawFn) -> SceneTalk:
    """A stretch of up to twelve lines, each of a player, an NPC, or aside, some as context only. Each has a mark."""
    said: list[NumberedUtterance] = []
    for n, (text, name, of, aside, heard) in enumerate(draw(st.lists(LINE, min_size=1, max_size=12)), start=1):
        one = an_utterance(f"{text.format(name=name)} Mark{n}.", id=f"u{n}", npc=SMITH if of == "npc" else None)
        is_aside = of == "aside"
        one = replace(one, at_ms=n, witnesses=frozenset() if is_aside else frozenset(heard))
        said.append(NumberedUtterance(replace(one, aside=aside) if is_aside else one, n))
    cut = draw(st.integers(0, len(said) - 1))
    context = draw(st.sets(st.sampled_from([each.utterance.id for each in said[cut:]])))
    return SceneTalk(CAMPAIGN, SESSION, "en", tuple(said[cut:]), tuple(said[:cut]), frozenset(context))


def all_of(talk: SceneTalk) -> list[NumberedUtterance]:
    return [*talk.before, *talk.said]


@st.composite
def findings(draw: st.DrawFn, talk: SceneTalk) -> Extraction:
    """Draw findings that a model might claim, with any lines as evidence."""
    evidence = st.lists(
        st.sampled_from([each.utterance.id for each in all_of(talk)]), min_size=1, max_size=3, unique=True
    ).map(tuple)
    entities = tuple(ExtractedEntity(name, name, "npc", draw(evidence), 0.9) for name in NAMES)
    keys = st.sampled_from(NAMES)
    relations = tuple(
        ExtractedRelation(draw(keys), "KNOWS", draw(keys), draw(evidence), 0.9) for _ in range(draw(st.integers(0, 4)))
    )
    facts = tuple(
        ExtractedFact(draw(keys), "promise", "a bell", draw(evidence), 0.9) for _ in range(draw(st.integers(0, 4)))
    )
    return Extraction(entities, relations, facts)


def is_of_story(said: NumberedUtterance) -> bool:
    return said.utterance.npc_id is None and said.utterance.aside is None


def of_players(talk: SceneTalk) -> dict[UtteranceId, NumberedUtterance]:
    return {each.utterance.id: each for each in all_of(talk) if is_of_story(each)}


def check(effects: Effects, talk: SceneTalk) -> None:
    stated = of_players(talk)
    asides = {each.utterance.id for each in all_of(talk) if each.utterance.aside is not None}
    for effect in effects.of:
        assert effect.cause.utterance_id in stated
        for event in effect.events:
            if isinstance(event, FactStated):
                evidence = {*event.attributes.get("evidence", ()), event.provenance.utterance_id}
                assert evidence.isdisjoint(asides)
                assert not evidence.isdisjoint(stated)
                assert not event.provenance.is_enough
            if isinstance(event, EntityAdded):
                assert any(event.name in each.utterance.text for each in stated.values())


@settings(max_examples=n_examples(400), deadline=None)
@given(talks(), st.data())
def test_findings_rest_on_a_players_line_whatever_a_model_claims(talk: SceneTalk, data: st.DataObject) -> None:
    found = data.draw(findings(talk))
    check(effects_of(found, talk, KNOWN), talk)
    check(effects_of(found.learned_from(talk), talk, KNOWN), talk)


@settings(max_examples=n_examples(300), deadline=None)
@given(talks())
def test_rules_learn_nothing_from_asides_and_npcs(talk: SceneTalk) -> None:
    found = RulesExtractor("en").find(talk, KNOWN).learned_from(talk)
    effects = effects_of(found, talk, KNOWN)
    check(effects, talk)
    kept = {each.utterance.id for each in all_of(talk)}
    atoms = GRAFTER.atoms_of(talk, found, effects.ids, KNOWN, kept=kept)
    assert {atom.utterance for atom in atoms} <= set(of_players(talk)) - talk.context
    assert no_marks([f"{atom.title} {atom.summary}" for atom in atoms], talk)


@settings(max_examples=n_examples(300), deadline=None)
@given(talks())
def test_recaps_summaries_and_models_contain_no_aside(talk: SceneTalk) -> None:
    said, selection = all_of(talk), LineSelection("en", tokens=2_000)
    heard = [said, PlayersView(KNOWN, a_campaign()).shown(said), *(heard_by(npc, said) for npc in (SMITH, INNKEEPER))]
    for lines in heard:
        told = selection.select([each.utterance for each in lines])
        assert no_marks([sentence.text for sentence in told], talk)
        assert {each for sentence in told for each in sentence.evidence} <= set(of_players(talk))
    assert {each.utterance.aside for each in visible_lines(all_of(talk))} <= {None}


def no_marks(texts: Iterable[str], talk: SceneTalk) -> bool:
    """Whether no text contains the mark of a line of an NPC or aside."""
    marks = [f"Mark{each.ordinal}." for each in all_of(talk) if not is_of_story(each)]
    return not any(mark in text for text in texts for mark in marks)
