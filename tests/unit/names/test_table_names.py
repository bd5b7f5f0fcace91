"""The names of one table: what its ears hear with, who can be called, and what is near."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.campaign import Entity, Player
from glyphoxa.domain.events import SceneChanged, UtteranceKept
from glyphoxa.domain.heard import NothingSaid, SpeechStarted, TurnEnded
from glyphoxa.domain.ids import CampaignId, EntityId, PlayerId
from glyphoxa.names.naming import Entry
from glyphoxa.names.table_names import TableNames
from glyphoxa.names.wrong_forms import LearnedName
from tests.support.builders import BRAN, SMITH, TAMSIN, a_campaign, a_draft, an_utterance, changed_names
from tests.support.proof import n_examples

SAID = "so we asked quibble worth and iron jaw"
NAMES = ("Quibbleworth", "Ironjaw", "Eldrinax")


def names_of_the_town() -> TableNames:
    return TableNames(a_campaign(), now_ms=lambda: 2_000)


TABLE = PlayerId("table")


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("This is Tamsin. Grimjaw, is my sword done?", TAMSIN),
        ("Hey, this is Tamsin!", TAMSIN),
        ("This is Captain Tamsin.", TAMSIN),
        ("Grimjaw! This is Bran speaking.", BRAN),
        ("Bran here: Grimjaw, how much?", BRAN),
        ("Bran here, Grimjaw, and mine?", BRAN),
        ("tamsin here", TAMSIN),
        ("Hier spricht Tamsin. Grimjaw, ist es fertig?", TAMSIN),
        ("Hier ist Bran.", BRAN),
        ("Tamsin hier, Grimjaw, was kostet das?", TAMSIN),
        ("This is Tamsin, my sister.", TABLE),
        ("This is Tamsin's sword.", TABLE),
        ("Tamsin here needs a sword.", TABLE),
        ("Grimjaw, this is Tamsin.", TABLE),
        ("Is this Tamsin?", TABLE),
        ("This is Grimjaw.", TABLE),
        ("This is Dana. Grimjaw, be quiet.", TABLE),
        ("Tamsin, what do you think?", TABLE),
    ],
)
def test_speaker_at_a_shared_microphone_is_the_player_who_says_so(text: str, speaker: PlayerId) -> None:
    town = a_campaign()
    more = Player(TABLE, "somebody at the table", table=True), Player(PlayerId("dana"), "Dana", dm=True)
    names = TableNames(replace(town, players=(*town.players, *more)), now_ms=lambda: 2_000)
    assert names.speaker_of(TABLE, text) == speaker
    assert names.speaker_of(BRAN, text) == BRAN
    assert "somebody at the table" not in {entry.name for entry in names.current.entries}


def change(names: TableNames, *, put: Entry | None = None, remove: EntityId | None = None) -> None:
    names._followed.replace(changed_names(names.current, put=put, remove=remove))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("name"), st.sampled_from(NAMES)),
        st.tuples(st.just("unname"), st.sampled_from(NAMES)),
        st.tuples(st.just("say"), st.sampled_from(("Eldrinax is here.", "Mirelle!", "rain"))),
        st.tuples(st.just("scene"), st.sampled_from(("market", "forge"))),
        st.tuples(st.just("start"), st.sampled_from((TAMSIN, BRAN))),
        st.tuples(st.just("end"), st.sampled_from((TAMSIN, BRAN))),
        st.tuples(st.just("nothing"), st.sampled_from((TAMSIN, BRAN))),
    ),
    max_size=30,
)


@given(STEPS)
def test_whatever_happens_a_turn_is_heard_to_its_end_as_it_began(steps: list[tuple[str, str]]) -> None:
    names = names_of_the_town()
    campaign = a_campaign()
    began: dict[str, object] = {}
    for kind, what in steps:
        match kind:
            case "name":
                change(names, put=Entry(what, EntityId(what), "npc"))
            case "unname":
                change(names, remove=EntityId(what))
            case "say":
                names.on(UtteranceKept(an_utterance(what)))
            case "scene":
                names.on(SceneChanged(next(scene for scene in campaign.scenes if scene.id == what), 0))
            case "start":
                player = TAMSIN if what == TAMSIN else BRAN
                names.on(SpeechStarted(player, 0))
                began.setdefault(player, (names.correct(SAID, player=player), names._turns[player].nearby))
            case _:
                player = TAMSIN if what == TAMSIN else BRAN
                names.on(TurnEnded(a_draft(player, SAID), 0) if kind == "end" else NothingSaid(player, 0))
                began.pop(player, None)
        assert names._turns.keys() == began.keys()
        for player in (TAMSIN, BRAN):
            if player in began:
                assert (names.correct(SAID, player=player), names._turns[player].nearby) == began[player]
            else:
                assert names.correct(SAID, player=player) == names.correct(SAID)
        assert names.current is names._followed.current


def test_words_are_found_again_by_whoever_asks_once_a_name_is_known() -> None:
    names = names_of_the_town()
    assert names.correct(SAID).text == SAID
    change(names, put=Entry("Quibbleworth", EntityId("q"), "npc"))
    assert names.correct(SAID).text == "so we asked Quibbleworth and iron jaw"
    assert [mention.name.entity_id for mention in names.current.mentions("Where is Quibbleworth?")] == ["q"]
    assert "Quibbleworth" in names.hints.keyterms()


def test_a_text_is_understood_once() -> None:
    names = TableNames(a_campaign(), now_ms=lambda: 0)
    assert names.understand("Grimjaw, come here.") is names.understand("Grimjaw, come here.")


def test_npcs_that_play_and_players_can_be_called_and_of_others_it_is_known_that_nobody_plays_them() -> None:
    names = names_of_the_town()
    assert [mention.npc for mention in names.understand("Grimjaw, come here.").mentions] == [SMITH]
    [called] = names.understand("Tamsin, come here.").mentions
    assert (called.npc, called.name, called.is_called) == (None, "Tamsin", True)
    [called] = names.understand("Eldrinax, come here.").mentions
    assert (called.npc, called.player, called.name) == (None, None, "Eldrinax")
    assert names.understand("Eldrinax came here.").mentions == ()


def test_who_is_part_of_a_place_s_name_is_not_called() -> None:
    names = names_of_the_town()
    change(names, put=Entry("Grimjaw Rock", EntityId("rock"), "location"))
    assert names.understand("Grimjaw Rock, what a place.").mentions == ()
    assert [mention.name for mention in names.understand("Grimjaw, what a place.").mentions] == ["Grimjaw"]


def test_a_word_that_is_a_name_calls_nobody_whose_name_sounds_so() -> None:
    names = names_of_the_town()
    assert [mention.name for mention in names.understand("brawn, come here.").mentions] == ["Bran"]
    assert [mention.name for mention in names.understand("Grimjaw! brawn, come here.").mentions] == ["Grimjaw"]
    change(names, put=Entry("Brawn", EntityId("b"), "item"))
    assert names.understand("brawn, come here.").mentions == ()


@pytest.mark.parametrize("text", ["", "?", "a" * 10_000])
def test_without_the_stage_by_sound_every_text_stays_as_it_is(text: str) -> None:
    names = TableNames(a_campaign(), now_ms=lambda: 0, corrector=None)
    assert names.correct(text) == names.correct(text, player=TAMSIN)
    assert (names.correct(text).text, names.correct(text).corrections) == (text, ())


SYLLABLES = (
    "zor",
    "vath",
    "quib",
    "drel",
    "mog",
    "thran",
    "fey",
    "kul",
    "ras",
    "wem",
    "bryx",
    "olm",
    "ghar",
    "pell",
    "iss",
)


async def test_fifty_thousand_names_are_heard_and_changed_like_a_few() -> None:
    """Ten thousand in `make test`."""
    crowd = tuple(
        Entity(EntityId(f"n{n}"), "item", "".join(parts).title())
        for n, parts in enumerate(islice(product(SYLLABLES, repeat=4), n_examples(50_000, one_of=5)))
    )
    campaign = replace(a_campaign(), entities=(*a_campaign().entities, *crowd))
    names = TableNames(campaign, now_ms=lambda: 2_000)
    held = {entry.entity_id: entry for entry in names.current.entries}

    class Graph:
        async def entries(self, campaign: CampaignId, entities: Collection[EntityId] | None = None) -> list[Entry]:
            return [held[each] for each in (held if entities is None else entities) if each in held]

        async def statuses(self, campaign: CampaignId) -> list[LearnedName]:
            return []

    graph: Any = Graph()
    await names.take(graph, None)
    assert len(names.current.entries) > len(crowd)

    assert names.correct("We asked grim jaw about the quib drel mogfey.").text == (
        "We asked Grimjaw about the Quibdrelmogfey."
    )
    changed = replace(held[crowd[-1_000].id], name="Xanthippax")
    held[changed.entity_id] = changed
    await names.take(graph, frozenset({changed.entity_id}))
    assert names.correct("and xanthip pax").text == "and Xanthippax"
    names.on(UtteranceKept(an_utterance("Where is Xanthippax?")))
    assert names.hints.keyterms()[0] == "Xanthippax" and len(names.hints.keyterms()) > 50
