"""The wrap-up proposes what is worth keeping of a session, and nothing that was not said in its story."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LineSelection
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.dm.wrap_up import MOST_LINES, FactProposal, WrapUp, chosen
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import EntityId, NpcId
from glyphoxa.domain.knowledge import PUBLIC, Claim, EndedAs, EndedFact, Fact
from glyphoxa.judgement.safety import Judged, TurnJudgement
from glyphoxa.world.event_kinds import EntityAdded
from glyphoxa.world.event_log import Event, WorldEvent, replay
from tests.support.builders import INNKEEPER, SMITH, an_utterance

TAMSIN, WENNA, MILL = EntityId("tamsin"), EntityId("wenna"), EntityId("mill")
ENTITIES = {
    TAMSIN: Entity(TAMSIN, "player", "Tamsin"),
    WENNA: Entity(WENNA, "npc", "Wenna"),
    MILL: Entity(MILL, "location", "Osterley"),
}


def a_wrap_up(language: str = "en") -> WrapUp:
    known = [KnownEntity(each.id, each.type, each.name, each.aliases, PUBLIC) for each in ENTITIES.values()]
    names = names_of(known, language)
    return WrapUp(LineSelection(language, lambda: names), ENTITIES, lambda _: MILL)


def talk(*texts: str, speaker: str = "Tamsin") -> list[NumberedUtterance]:
    return [
        NumberedUtterance(an_utterance(text, id=f"u{n}", speaker=speaker), n) for n, text in enumerate(texts, start=1)
    ]


def kept(said: Sequence[NumberedUtterance]) -> dict[int, Judged]:
    return {each.ordinal: Judged(TurnJudgement(extract_memory=True)) for each in said}


def shown(found: Sequence[FactProposal]) -> list[tuple[str, str]]:
    return [(each.name, each.claim.subject) for each in found]


def a_finding(claim: Claim, proposal: FactProposal, **changes: object) -> Fact:
    statements, cause = replace(proposal, claim=claim).stated()
    added: list[Event] = [EntityAdded(each.id, each.type, each.name) for each in ENTITIES.values()]
    events = [WorldEvent(n, cause, event) for n, event in enumerate([*added, *statements], start=1)]
    return replay(events).facts[claim.fact_id].with_(**changes)


@pytest.mark.parametrize(
    ("language", "own", "other", "quote"),
    [
        (
            "en",
            "I hid the silver bell of the abbey under the third stone bridge.",
            "Wenna sells smuggled lamp oil to the lighthouse keepers every winter.",
            "Tamsin said: “Wenna sells",
        ),
        (
            "de",
            "Ich habe die silberne Glocke der Abtei unter der dritten Brücke versteckt.",
            "Wenna verkauft den Leuchtturmwärtern jeden Winter geschmuggeltes Lampenöl.",
            "Tamsin sagte: „Wenna verkauft",
        ),
    ],
)
def test_line_is_about_whom_it_names_or_its_speaker(language: str, own: str, other: str, quote: str) -> None:
    said = talk(own, other)
    found = {each.name: each for each in a_wrap_up(language).proposals(said, kept(said), [])}
    assert (found["1"].claim.subject, found["2"].claim.subject) == (TAMSIN, WENNA)
    assert str(found["2"].claim.content).startswith(quote)


def test_line_of_the_dm_is_about_a_name_or_the_place() -> None:
    said = talk(
        "Behind the altar stands a rusty iron door with seven locks.",
        "The old ferrywoman Wenna keeps seven black geese in her cellar.",
        speaker="The Game Master",
    )
    assert sorted(shown(a_wrap_up().proposals(said, kept(said), []))) == [("1", MILL), ("2", WENNA)]


def test_somebody_comes_before_a_place_and_a_question_is_no_fact() -> None:
    said = talk(
        "In the old harbour of Osterley, the ferrywoman Wenna was sold to a foreign captain.",
        "Who founded the drowned chapel of Osterley three hundred years ago?",
        speaker="The Game Master",
    )
    assert shown(a_wrap_up().proposals(said, kept(said), [])) == [("1", WENNA)]


def test_what_is_named_and_rare_comes_first() -> None:
    said = talk(
        *("I take a step to the left and swing my axe again." for _ in range(6)),
        "Wenna poisoned the miller of Osterley with hemlock.",
        "My grandmother drowned in the flood of Osterley.",
    )
    names = [each.name for each in a_wrap_up().proposals(said, kept(said), [])]
    assert set(names[:2]) == {"7", "8"}
    assert len([name for name in names if int(name) <= 6]) <= 1


def test_known_broken_off_or_idle_line_is_not_proposed() -> None:
    said = talk(
        "Wenna poisoned the miller with hemlock.",
        "Wenna was walking over the old stone bridge when suddenly--",
        "Good evening.",
        "Wenna hid the ledger of the smugglers in the belfry.",
    )
    judged = {**kept(said), 4: Judged(TurnJudgement(extract_memory=False))}
    known = Fact(Claim.attribute(WENNA, "note", "x").fact_id, Claim.attribute(WENNA, "note", said[0].utterance.text), 1)
    assert a_wrap_up().proposals(said, judged, [known]) == []


@pytest.mark.parametrize(
    ("language", "line", "words"),
    [
        (
            "en",
            "Well then, here we are at last. (laughs) Wenna has been the keeper of the drowned chapel of Osterley for "
            "thirty years. You walk up to the door and knock, and nobody seems to be at home at this hour. So the four "
            "of you are standing there in the rain and looking at each other for a while.",
            "Wenna has been the keeper of the drowned chapel of Osterley for thirty years.",
        ),
        (
            "de",
            "Na gut, da sind wir also. (lacht) Wenna ist seit dreißig Jahren die Hüterin der versunkenen Kapelle von "
            "Osterley. Ihr geht zur Tür und klopft an, aber um diese Stunde scheint niemand zu Hause zu sein. Also "
            "steht ihr zu viert im Regen und seht euch eine Weile gegenseitig an.",
            "Wenna ist seit dreißig Jahren die Hüterin der versunkenen Kapelle von Osterley.",
        ),
    ],
)
def test_quote_is_the_sentence_with_the_fact(language: str, line: str, words: str) -> None:
    said = talk(line, speaker="The Game Master")
    [found] = a_wrap_up(language).proposals(said, kept(said), [])
    assert found.claim.subject == WENNA
    assert str(found.claim.content)[len("The Game Master ") :].split(" ", 1)[1][1:-1] == words


@pytest.mark.parametrize(
    ("language", "fact", "others"),
    [
        (
            "en",
            "Wenna was raised by lighthouse keepers and can read the old harbour charts.",
            (
                "I run over to Wenna and give her a big hug.",
                "As you reach the end of the pier, Wenna leads you down to her boat.",
                "Wenna, can you hand me the lantern, please? I hold on to the rail.",
                "I bet Wenna dances better than you do!",
                "I think Wenna may know something, but I am only guessing.",
            ),
        ),
        (
            "de",
            "Wenna wuchs bei Leuchtturmwärtern auf und kann die alten Hafenkarten lesen.",
            (
                "Ich laufe zu Wenna hinüber und umarme sie ganz fest.",
                "Als ihr das Ende des Stegs erreicht, führt euch Wenna zu ihrem Boot hinunter.",
                "Wenna, kannst du mir bitte die Laterne geben? Ich halte mich am Geländer fest.",
                "Ich wette, Wenna tanzt besser als du!",
                "Ich glaube, Wenna könnte etwas wissen, aber ich rate nur.",
            ),
        ),
    ],
)
@pytest.mark.parametrize("speaker", ["Tamsin", "The Game Master"])
def test_lasting_fact_comes_before_the_moment(language: str, fact: str, others: Sequence[str], speaker: str) -> None:
    said = talk(*others[:3], fact, *others[3:], speaker=speaker)
    about_wenna = [each for each in a_wrap_up(language).proposals(said, kept(said), []) if each.claim.subject == WENNA]
    assert about_wenna[0].name == "4"


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "I have kept the keys of the drowned chapel for thirty years."),
        ("de", "Ich verwahre seit dreißig Jahren die Schlüssel der versunkenen Kapelle."),
    ],
)
def test_dm_speaks_as_whom_the_dm_named_last(language: str, line: str) -> None:
    said = talk("The old ferrywoman Wenna opens the door to her boathouse.", line, speaker="The Game Master")
    assert ("2", WENNA) in shown(a_wrap_up(language).proposals(said, kept(said), []))
    assert shown(a_wrap_up(language).proposals(said[1:], kept(said), [])) == [("2", MILL)]


@pytest.mark.parametrize(
    ("language", "line", "next_line"),
    [
        (
            "en",
            "Whom you are looking for is Wenna. Those people have guarded the northern crossing since the great flood.",
            "The boathouse over there was built by smugglers from the islands.",
        ),
        (
            "de",
            "Die Person, die ihr sucht, ist Wenna. Diese Leute bewachen seit der großen Flut die nördliche Furt.",
            "Das Bootshaus dort drüben wurde von Schmugglern von den Inseln gebaut.",
        ),
    ],
)
def test_line_naming_nobody_is_about_what_was_named_just_before(language: str, line: str, next_line: str) -> None:
    said = talk(line, next_line, speaker="The Game Master")
    found = {each.name: each for each in a_wrap_up(language).proposals(said, kept(said), [])}
    assert (found["1"].claim.subject, found["2"].claim.subject) == (WENNA, WENNA)
    assert line in str(found["1"].claim.content)
    assert shown(a_wrap_up(language).proposals(said[1:], kept(said), [])) == [("2", MILL)]


@pytest.mark.parametrize(
    ("language", "idle", "story", "facts"),
    [
        (
            "en",
            "Okay, so do I roll for that now or do you want me to wait?",
            "The abbey was founded three hundred years ago by the widow of a king.",
            ("Wenna hid the silver bell in the belfry.", "Wenna hid the golden crown in the cellar."),
        ),
        (
            "de",
            "Okay, soll ich jetzt darauf würfeln, oder soll ich noch warten?",
            "Die Abtei wurde vor dreihundert Jahren von der Witwe eines Königs gegründet.",
            ("Wenna versteckte die silberne Glocke im Turm.", "Wenna versteckte die goldene Krone im Keller."),
        ),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_fact_among_story_comes_before_one_among_idle_talk(
    language: str, idle: str, story: str, facts: Sequence[str], turned: bool
) -> None:
    first, second = reversed(facts) if turned else facts
    around = [[text] * 12 for text in (idle, story)]
    said = talk(*around[0], first, *around[0], *around[1], second, *around[1])
    about_wenna = [each for each in a_wrap_up(language).proposals(said, kept(said), []) if each.claim.subject == WENNA]
    assert [each.name for each in about_wenna] == ["38", "13"]


@pytest.mark.parametrize("ended_as", [None, "rejected", "edited", "closed"])
def test_decided_earlier_is_not_proposed_again(ended_as: EndedAs | None) -> None:
    [earlier] = a_wrap_up().proposals(
        said := talk("Wenna hid the ledger of the smugglers in the belfry."), kept(said), []
    )
    fact = a_finding(earlier.claim, earlier, status="accepted")
    fact = replace(fact, provenance=replace(fact.provenance, utterance_id=None))
    again = talk("As I said, Wenna hid the ledger of the smugglers in the old belfry.")
    ended = [] if ended_as is None else [EndedFact(fact, 9, ended_as)]
    found = a_wrap_up().proposals(again, kept(again), [fact] if ended_as is None else [], ended)
    assert bool(found) == (ended_as == "closed")


def test_finding_is_proposed_and_a_decided_line_is_not_again() -> None:
    said = talk("Wenna is a ferrywoman, and she owes the miller of Osterley forty crowns.")
    [line] = a_wrap_up().proposals(said, kept(said), [])
    trade = a_finding(Claim.attribute(WENNA, "occupation", "ferrywoman"), line, seq=5)
    debt = a_finding(Claim.attribute(WENNA, "debt", 40), line, seq=6)
    found = a_wrap_up().proposals(said, kept(said), [debt, trade])
    assert [(each.name, each.claim) for each in found] == [("1", trade.claim), ("1b", debt.claim)]
    rejected = EndedFact(trade, 7, "rejected")
    found = a_wrap_up().proposals(said, kept(said), [debt], [rejected])
    assert [(each.name, each.claim) for each in found] == [("1b", debt.claim)]
    assert a_wrap_up().proposals(said, kept(said), [], [rejected, EndedFact(debt, 8, "rejected")]) == []


def test_number_of_lines_is_limited() -> None:
    said = talk(
        *(f"The miller{n} of Osterley sold sacks{n} of grain{n} to captain{n} for silver{n}." for n in range(60)),
    )
    assert len(a_wrap_up().proposals(said, kept(said), [])) == MOST_LINES


WORDS = ("Wenna", "Osterley", "burned", "hid", "sold", "mill", "bell", "king", "promise", "poison", "ring", "because")


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(WORDS), min_size=1, max_size=12),
            st.sampled_from([None, "whisper", "out_of_character", "plan"]),
            st.booleans(),
            st.sets(st.sampled_from([SMITH, INNKEEPER])),
        ),
        max_size=15,
    )
)
def test_proposals_are_of_the_story_and_for_those_who_heard_it(
    lines: list[tuple[list[str], str | None, bool, set[NpcId]]],
) -> None:
    said = [
        NumberedUtterance(
            replace(
                an_utterance(f"{' '.join(words)} mark{n}.", id=f"u{n}", npc=SMITH if is_npc else None),
                aside=aside,  # type: ignore[arg-type] # any
                witnesses=frozenset(heard),
            ),
            n,
        )
        for n, (words, aside, is_npc, heard) in enumerate(lines, start=1)
    ]
    for each in a_wrap_up().proposals(said, kept(said), []):
        line = each.line.utterance
        assert line.aside is None
        assert line.npc_id is None
        [stated], cause = each.stated()
        assert {knower.npc for knower in stated.visibility.knowers} == line.witnesses
        assert stated.visibility.scope == "witnessed"
        assert (cause.by, cause.utterance_id) == ("talk", line.id)
        assert a_finding(each.claim, each).status == "pending"


@pytest.mark.parametrize("numbers", ["7", "1-", "x", "", "1b", "3-9", "99999999999", "0", "²", "1e3", "-", ","])
def test_unknown_number_is_refused(numbers: str) -> None:
    said = talk("Wenna poisoned the miller with hemlock.", "My grandmother drowned in the flood of Osterley.")
    with pytest.raises(InvalidInput, match=r"open: (1, 2|2, 1)"):
        chosen(numbers, a_wrap_up().proposals(said, kept(said), []))


def test_numbers_ranges_and_all_are_chosen_once() -> None:
    said = talk("Wenna poisoned the miller with hemlock.", "My grandmother drowned in the flood of Osterley.")
    found = a_wrap_up().proposals(said, kept(said), [])
    assert {each.name for each in chosen("1-2, 2", found)} == {"1", "2"}
    assert chosen("all", found) == found
