from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId
from glyphoxa.names.gazetteer import Entry, Gazetteer, entries_of
from tests.support.builders import changed_names


def entry(name: str, kind: str = "", *, aliases: tuple[str, ...] = (), learned: tuple[str, ...] = ()) -> Entry:
    return Entry(name, EntityId(name), kind, aliases, learned)


def named(text: str, *entries: Entry) -> list[str]:
    return [text[m.start : m.end] for m in Gazetteer.build(entries).mentions(text)]


def test_names_are_found_whatever_their_case_spaces_and_accents() -> None:
    assert named("IRON HOLD, ironhold and Irön-Hold", entry("Ironhold")) == ["IRON HOLD", "ironhold", "Irön-Hold"]


def test_a_possessive_and_a_plural_name_too() -> None:
    assert named("Grimjaw's forge, two Zhentarims", entry("Grimjaw"), entry("Zhentarim")) == ["Grimjaw's", "Zhentarims"]


def test_the_longer_name_wins_over_the_one_within_it() -> None:
    entries = (entry("Tower"), entry("Tower of Whispers"))
    assert named("the tower of whispers, a tower", *entries) == ["tower of whispers", "tower"]


def test_letters_inside_a_word_are_no_name() -> None:
    assert named("the party started apart", entry("Art"), entry("Part")) == []


def test_names_do_not_reach_across_punctuation() -> None:
    assert named("he held iron, hold it", entry("Ironhold")) == []


def test_named_entities_come_once_in_the_order_of_speech() -> None:
    names = Gazetteer.build([entry("Eldrinax"), entry("Ironhold", aliases=("the old hold",))])
    said = "ironhold! Did Eldrinax's men leave Iron Hold, the old hold"
    assert names.entities_in(said) == ("Ironhold", "Eldrinax")


def test_a_sentence_that_grows_keeps_the_entities_that_it_named() -> None:
    names = Gazetteer.build([entry("Eldrinax"), entry("Ironhold")])
    said = "do you remember what Eldrinax said in Ironhold"
    found = [names.entities_in(said[:end]) for end in range(len(said) + 1) if said[end : end + 1] in ("", " ")]
    assert all(after[: len(before)] == before for before, after in pairwise(found))
    assert found[-1] == ("Eldrinax", "Ironhold")


def test_an_alias_leads_to_its_entity() -> None:
    mention = Gazetteer.build([entry("Grimjaw", "npc", aliases=("the smith",))]).mentions("Ask the smith!")[0]
    assert (mention.name.canonical, mention.name.kind) == ("Grimjaw", "alias")


def test_titles_may_be_left_out_and_persons_are_known_by_their_first_name() -> None:
    entries = (entry("Lord Evander Valdren", "npc"), entry("Amulet of Nareth", "item"))
    assert named("Evander Valdren", *entries) == ["Evander Valdren"]
    assert named("Evander came", *entries) == ["Evander"]
    assert named("Nareth came", *entries) == []


def test_an_ordinary_word_is_no_short_form() -> None:
    assert named("a bright stone", entry("Mara Stone", "npc")) == []


def test_of_two_equal_names_the_first_counts() -> None:
    gazetteer = Gazetteer.build([Entry("Marek", EntityId("smith")), Entry("marek", EntityId("other"))])
    assert gazetteer.mentions("Marek")[0].name.entity_id == "smith"


def test_a_confirmed_wrong_form_is_not_a_name() -> None:
    assert named("Finland is far", entry("Phandalin", learned=("Finland",))) == []


@pytest.mark.parametrize("name", ["", "  ", "'", "😀", "—"])
def test_a_name_without_letters_is_left_out(name: str) -> None:
    assert Gazetteer.build([entry(name)]).names == ()


def test_windows_are_wider_than_the_longest_name() -> None:
    """A name of one word may be heard as two or three."""
    assert Gazetteer.build([entry("Eldrinax")]).widest == 3
    assert Gazetteer.build([entry("Cult of the Sunken Eye")]).widest == 6


def test_a_campaign_gives_its_npcs_first_then_its_players() -> None:
    campaign = Campaign(
        id=CampaignId("c"),
        name="C",
        language="en",
        entities=(
            Entity(EntityId("ironhold"), "location", "Ironhold"),
            Entity(EntityId("grimjaw"), "npc", "Grimjaw"),
        ),
        relationships=(),
        npcs=(Npc(NpcId("grimjaw"), EntityId("grimjaw"), "Grimjaw", "You are Grimjaw.", aliases=("the smith",)),),
        players=(Player(PlayerId("kira"), "Kira"),),
        scenes=(),
    )
    entries = entries_of(campaign)
    assert [each.name for each in entries] == ["Grimjaw", "Kira", "Ironhold"]
    assert "the smith" in entries[0].aliases


def test_a_title_may_be_left_out_only_where_a_person_bears_it() -> None:
    assert named("Holt came", entry("Mayor Holt", "npc")) == ["Holt"]
    assert named("Holt came", entry("Mayor Holt", "item")) == []
    assert named("Orla, Fennimore, Orla Fennimore!", entry("Captain Orla Fennimore", "npc")) == [
        "Orla",
        "Fennimore",
        "Orla Fennimore",
    ]


def test_a_short_form_of_two_persons_is_nobodys_but_still_known_by_its_spelling() -> None:
    names = Gazetteer.build([entry("Orla Fennimore", "npc"), entry("Tam Fennimore", "npc")])
    assert names.mentions("Fennimore") == ()
    assert names.by_joined["fennimore"].is_shared
    assert names.mentions("Orla")[0].name.canonical == "Orla Fennimore"
    assert not changed_names(names, remove=EntityId("Tam Fennimore")).by_joined["fennimore"].is_shared


def test_a_short_form_that_is_somebody_elses_own_name_is_that_ones() -> None:
    names = Gazetteer.build([entry("Mayor Holt", "npc"), entry("Holt", "npc")])
    assert names.mentions("Holt")[0].name.entity_id == "Holt"


def test_a_leading_article_may_be_said_or_not() -> None:
    assert named("to the Eldrin Bar", entry("The Eldrin Bar")) == ["the Eldrin Bar"]
    assert named("to an Eldrin Bar", entry("The Eldrin Bar")) == ["Eldrin Bar"]
    assert named("to the Eldrin Bar", entry("Eldrin Bar")) == ["Eldrin Bar"]


def test_a_place_goes_by_its_first_word_where_the_others_only_say_what_it_is() -> None:
    assert named("back to Grondheim", entry("Grondheim Keep", "location")) == ["Grondheim"]
    assert named("back to the tower", entry("Tower of Whispers", "location")) == []
    assert named("back to Grondheim", entry("Grondheim Keep", "item")) == []


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("It", "it was late. It rained, and it was it", []),
        ("It", "we all fear It", ["It"]),
        ("Will", "will you come? Will you? I will", []),
        ("Will", "Will, come here! Ask Will about it.", ["Will", "Will"]),
        ("X", "an x and the X there", ["X"]),
        ("Hope", "I hope so", ["hope"]),
    ],
)
def test_a_stop_word_is_a_name_only_where_it_is_written_as_one(name: str, text: str, found: list[str]) -> None:
    assert named(text, entry(name, "npc")) == found


def test_names_that_differ_in_case_or_accents_are_one_and_the_first_counts() -> None:
    names = Gazetteer.build(
        [Entry("Éowyn", EntityId("1")), Entry("EOWYN", EntityId("2")), Entry("eowyn", EntityId("3"))]
    )
    assert [name.entity_id for name in names.names] == ["1"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Vex'ahlia", "Vexahlia"),
        ("Caer-Dathyl", "caer dathyl"),
        ("J. R. Thorne", "J.R. Thorne"),
        ("St. Cuthbert", "St. Cuthbert"),
        ("Straße der Ahnen", "STRASSE DER AHNEN"),
        ("Владимир", "владимир"),
        ("グリムジョー", "グリムジョー"),
        ("張三", "張三"),
        ("まどか", "まどか"),
        ("שלום", "שָׁלוֹם"),
        ("محمد", "مُحَمَّد"),
        ("हिन्दी", "हिन्दी"),
        ("Dragon 🐉 Lord", "dragon lord"),
        ("👑 Baroness Ylva", "Baroness Ylva"),
    ],
)
def test_a_name_is_found_in_any_script(name: str, text: str) -> None:
    assert named(f"({text})", entry(name, "npc")) == [text]


def test_a_name_is_found_in_a_sentence_without_spaces() -> None:
    assert named("昨日グリムジョーに会った", entry("グリムジョー")) == ["グリムジョー"]
    assert named("我昨天見張三了", entry("張三")) == ["張三"]


def test_a_name_of_ten_thousand_letters_is_a_name() -> None:
    long = "Grimjaw of " * 900 + "X"
    names = Gazetteer.build([entry("x" * 10_000), entry(long, "npc"), entry("Ironhold")])
    assert [m.name.text for m in names.mentions("iron hold " + "x" * 10_000)] == ["Ironhold", "x" * 10_000]
    assert changed_names(names, remove=EntityId(long)).widest == 3


@given(st.lists(st.text(max_size=12), max_size=6), st.text(max_size=60))
def test_mentions_of_any_names_in_any_text_are_in_order_and_apart(names: list[str], text: str) -> None:
    end = 0
    for mention in Gazetteer.build([entry(name) for name in names]).mentions(text):
        assert end <= mention.start < mention.end <= len(text)
        end = mention.end
