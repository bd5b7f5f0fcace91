from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId
from glyphoxa.names.gazetteer import Gazetteer, entries_of
from glyphoxa.names.naming import Entry
from tests.support.builders import changed_names
from tests.support.proof import n_examples


def entry(name: str, kind: str = "", *, aliases: tuple[str, ...] = (), learned: tuple[str, ...] = ()) -> Entry:
    return Entry(name, EntityId(name), kind, aliases, learned)


def named(text: str, *entries: Entry) -> list[str]:
    return [text[m.start : m.end] for m in Gazetteer.build(entries).mentions(text)]


ORLA = entry("Captain Orla Fennimore", "npc")
BAR = entry("The Eldrin Bar")
KEEP = entry("Grondheim Keep", "location")


@pytest.mark.parametrize(
    ("entries", "text", "found"),
    [
        # Whatever their case, spaces and accents; also in the possessive and the plural.
        ([entry("Ironhold")], "IRON HOLD, ironhold and Irön-Hold", ["IRON HOLD", "ironhold", "Irön-Hold"]),
        ([entry("Grimjaw"), entry("Zhentarim")], "Grimjaw's forge, two Zhentarims", ["Grimjaw's", "Zhentarims"]),
        # The longer name wins; letters inside a word are no name; names do not reach across punctuation.
        (
            [entry("Tower"), entry("Tower of Whispers")],
            "the tower of whispers, a tower",
            ["tower of whispers", "tower"],
        ),
        ([entry("Art"), entry("Part")], "the party started apart", []),
        ([entry("Ironhold")], "he held iron, hold it", []),
        # Titles may be left out where a person bears them; persons are known by one of their names.
        ([entry("Lord Evander Valdren", "npc")], "Evander Valdren", ["Evander Valdren"]),
        ([entry("Lord Evander Valdren", "npc")], "Evander came", ["Evander"]),
        ([entry("Amulet of Nareth", "item")], "Nareth came", []),
        ([entry("Mayor Holt", "npc")], "Holt came", ["Holt"]),
        ([entry("Mayor Holt", "item")], "Holt came", []),
        ([ORLA], "Orla, Fennimore, Orla Fennimore!", ["Orla", "Fennimore", "Orla Fennimore"]),
        ([entry("Mara Stone", "npc")], "a bright stone", []),
        # A leading article may be said or not.
        ([BAR], "to the Eldrin Bar", ["the Eldrin Bar"]),
        ([BAR], "to an Eldrin Bar", ["Eldrin Bar"]),
        ([entry("Eldrin Bar")], "to the Eldrin Bar", ["Eldrin Bar"]),
        # A place goes by its first word where the others only say what it is.
        ([KEEP], "back to Grondheim", ["Grondheim"]),
        ([entry("Grondheim Keep", "item")], "back to Grondheim", []),
        ([entry("Tower of Whispers", "location")], "back to the tower", []),
        # A confirmed wrong form is not a name.
        ([entry("Phandalin", learned=("Finland",))], "Finland is far", []),
        # A stop word is a name only where it is written as one.
        ([entry("It", "npc")], "it was late. It rained, and it was it", []),
        ([entry("It", "npc")], "we all fear It", ["It"]),
        ([entry("Will", "npc")], "will you come? Will you? I will", []),
        ([entry("Will", "npc")], "Will, come here! Ask Will about it.", ["Will", "Will"]),
        ([entry("X", "npc")], "an x and the X there", ["X"]),
        ([entry("Hope", "npc")], "I hope so", ["hope"]),
        # Scripts without spaces.
        ([entry("グリムジョー")], "昨日グリムジョーに会った", ["グリムジョー"]),
        ([entry("張三")], "我昨天見張三了", ["張三"]),
    ],
)
def test_names_are_found_in_text(entries: list[Entry], text: str, found: list[str]) -> None:
    assert named(text, *entries) == found


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


def test_a_short_form_of_two_persons_is_nobodys_but_still_known_by_its_spelling() -> None:
    names = Gazetteer.build([entry("Orla Fennimore", "npc"), entry("Tam Fennimore", "npc")])
    assert names.mentions("Fennimore") == ()
    assert names.by_joined["fennimore"].is_shared
    assert names.mentions("Orla")[0].name.canonical == "Orla Fennimore"
    assert not changed_names(names, remove=EntityId("Tam Fennimore")).by_joined["fennimore"].is_shared


def test_a_short_form_that_is_somebody_elses_own_name_is_that_ones() -> None:
    names = Gazetteer.build([entry("Mayor Holt", "npc"), entry("Holt", "npc")])
    assert names.mentions("Holt")[0].name.entity_id == "Holt"


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


# Names that change while others read them

MAREK = Entry("Marek", EntityId("marek"), "npc")
GRIMJAW = Entry("Grimjaw", EntityId("grimjaw"), "npc")

# Few spellings, so that entries want the same ones; some equal but for case and accents, some with titles.
TEXTS = st.sampled_from(
    ["Marek", "marek", "Márek", "Mayor Holt", "Holt", "Orla Holt", "The Gilded Eel", "Gilded Eel", "It", "X", "😀",
     "Grondheim Keep", "Grondheim", "Grond", "Eldrinax", "Elder Nax", "elder nacks", "Mára the Bold of Whispers", ""]
)  # fmt: skip
ENTRIES = st.builds(
    Entry,
    TEXTS,
    st.sampled_from([EntityId(each) for each in "abcdef"]),
    st.sampled_from(["npc", "location", "item", ""]),
    st.lists(TEXTS, max_size=2).map(tuple),
    st.lists(TEXTS, max_size=2).map(tuple),
)


def observed(gazetteer: Gazetteer) -> tuple[object, ...]:
    """All that a reader can see of a gazetteer."""
    said = "Marek Holt, elder nacks of Grondheim Keep saw It. X, the gilded eel! grond heim"
    looked_up = []
    for heard in ("marek", "elderaks", "grontheim", "gildideel", "orlaholt"):
        codes = gazetteer.coder(heard)
        looked_up.append((gazetteer.alike(heard, codes, limit=4), gazetteer.same_sound(codes)))
    return (
        gazetteer.entries,
        gazetteer.names,
        dict(gazetteer.by_joined),
        dict(gazetteer.by_code),
        gazetteer.widest,
        gazetteer.longest,
        gazetteer.mentions(said),
        looked_up,
    )


@pytest.mark.parametrize("language", ["en", "de", "fr"])
@given(begun_with=st.lists(ENTRIES, max_size=6), later=st.lists(ENTRIES, max_size=6))
@settings(max_examples=n_examples(60), deadline=None)
def test_names_that_changed_are_as_if_built_at_once(language: str, begun_with: list[Entry], later: list[Entry]) -> None:
    before = Gazetteer.build(begun_with, language=language)
    seen = observed(before)
    after = before.having(later)
    assert observed(before) == seen
    assert observed(after) == observed(Gazetteer.build(later, language=language))


def test_a_reader_keeps_the_names_it_took() -> None:
    taken = Gazetteer.build([MAREK])
    current = taken.having([GRIMJAW])
    assert [m.name.text for m in taken.mentions("Marek and Grimjaw")] == ["Marek"]
    assert [m.name.text for m in current.mentions("Marek and Grimjaw")] == ["Grimjaw"]
