"""Names change while others read them; what they see then."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import EntityId
from glyphoxa.names.gazetteer import Entry, Gazetteer, ObservableGazetteer
from tests.support.builders import changed_names
from tests.support.proof import n_examples

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
        codes = gazetteer.coder(heard) if gazetteer.coder else ()
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


def test_when_the_first_of_equal_names_goes_the_next_one_takes_its_place() -> None:
    names = Gazetteer.build([MAREK, Entry("márek", EntityId("innkeeper"), "npc")])
    assert names.by_joined["marek"].entity_id == "marek"
    assert changed_names(names, remove=EntityId("marek")).by_joined["marek"].text == "márek"


def test_a_reader_keeps_the_names_it_took() -> None:
    book = ObservableGazetteer(Gazetteer.build([MAREK]))
    taken = book.current
    book.replace(taken.having([GRIMJAW]))
    assert [m.name.text for m in taken.mentions("Marek and Grimjaw")] == ["Marek"]
    assert [m.name.text for m in book.current.mentions("Marek and Grimjaw")] == ["Grimjaw"]


def test_names_that_did_not_change_are_not_prepared_again() -> None:
    before = Gazetteer.build([MAREK, GRIMJAW])
    after = before.having([MAREK, Entry("Eldrinax", EntityId("eldrinax"))])
    assert after.by_joined["marek"] is before.by_joined["marek"]


def test_listeners_are_told_after_a_change_until_they_have_enough() -> None:
    book = ObservableGazetteer(Gazetteer.build([MAREK]))
    told: list[Gazetteer] = []
    stop = book.subscribe(told.append)
    book.replace(book.current.having([MAREK, GRIMJAW]))
    assert told == [book.current]
    stop()
    stop()
    book.replace(book.current.having([GRIMJAW]))
    assert len(told) == 1


def test_nobody_is_told_of_a_change_that_changes_nothing() -> None:
    book = ObservableGazetteer(Gazetteer.build([MAREK]))
    told: list[Gazetteer] = []
    book.subscribe(told.append)
    book.replace(book.current.having([MAREK]))
    assert told == []


def test_a_listener_that_fails_keeps_nobody_else_from_the_new_names() -> None:
    book = ObservableGazetteer(Gazetteer.build([MAREK]))
    told: list[Gazetteer] = []

    def failing(_names: Gazetteer) -> None:
        raise RuntimeError("no room")

    book.subscribe(failing)
    book.subscribe(told.append)
    with pytest.raises(ExceptionGroup) as raised:
        book.replace(book.current.having([MAREK, GRIMJAW]))
    assert told == [book.current] and "Grimjaw" in {name.text for name in told[0].names}
    assert [str(error) for error in raised.value.exceptions] == ["no room"]


def test_wrong_forms_are_learned_and_taken_back_with_their_entry() -> None:
    names = Gazetteer.build([GRIMJAW]).having([replace(GRIMJAW, learned=("Grim Joe",))])
    assert names.by_joined["grimjoe"].kind == "learned"
    assert "grimjoe" not in names.having([GRIMJAW]).by_joined
