"""The spoken set of names: what stands where, what counts as wrong, and that its halves share no name."""

import json
from pathlib import Path

import pytest

from benchmarks.spoken_names.alignment import Span, align, errors, heard_for, words_of
from benchmarks.spoken_names.dataset import (
    Heard,
    Sentence,
    SpokenMention,
    SpokenName,
    read_heard,
    read_names,
    read_sentences,
    write_heard,
    write_sentences,
)
from benchmarks.spoken_names.measure import main, measured
from benchmarks.spoken_names.pairs import distinct, wrong_forms
from benchmarks.spoken_names.sentences import (
    Voices,
    glossary_for,
    sentences_with_names,
    sentences_without_names,
    split_of,
    to_be_spoken,
)
from glyphoxa.domain.errors import Corrupt, InvalidInput, NotFound
from glyphoxa.domain.ids import EntityId
from glyphoxa.domain.utterance import Correction
from glyphoxa.speech.correction.corrector import Corrected
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

ONE_VOICE = Voices({"heart": 1})
GAZETTEER = Gazetteer.build(
    [Entry("Grimjaw", EntityId("Grimjaw"), "npc"), Entry("Ironhold", EntityId("Ironhold"), "location")]
)


def sentence(text: str, *names: str) -> Sentence:
    return Sentence(
        "id", "tune", "heart", text, tuple(SpokenMention(n, text.index(n), text.index(n) + len(n)) for n in names)
    )


def heard_in_place_of(name: str, said: str, heard: str) -> str:
    reference, got = words_of(said), words_of(heard)
    first = reference.index(words_of(name)[0])
    place = heard_for(align(reference, got), Span(first, first + len(words_of(name))))
    return " ".join(got[place.first : place.end])


@pytest.mark.parametrize(
    ("name", "said", "heard", "expected"),
    [
        ("Ironhold", "We ride to Ironhold now.", "We ride to Ironhold now.", "ironhold"),
        ("Ironhold", "We ride to Ironhold now.", "We ride to iron hold now.", "iron hold"),
        ("Dawn Bringer", "Ask Dawn Bringer about it.", "Ask Don bring her about it.", "don bring her"),
        ("Dawn Bringer", "Ask Dawn Bringer about it.", "Ask Dawnbringer about it.", "dawnbringer"),
        ("Tower of Ashes", "The Tower of Ashes fell.", "The tower of Asher's fell.", "tower of ashers"),
        ("Eldrinax", "I asked Eldrinax about Bart.", "I asked elder knacks a boat Bart.", "elder knacks"),
        ("Grimjaw", "Grimjaw is here.", "Grim Joe's here.", "grim joes"),
        ("Grimjaw", "Where is Grimjaw?", "Where is?", ""),
        ("Dol Maruun", "By Dol Maruun!", "By Dol, uh, Maruun!", "dol uh maruun"),
    ],
)
def test_a_name_is_given_all_of_its_pieces_and_nothing_of_its_neighbours(
    name: str, said: str, heard: str, expected: str
) -> None:
    assert heard_in_place_of(name, said, heard) == expected


def test_spans_are_in_order_and_never_overlap() -> None:
    spans = align(words_of("one two three four five"), words_of("won too tree and for fife and more"))
    edges = [edge for span in spans for edge in (span.first, span.end)]
    assert edges == sorted(edges)


def test_nothing_heard_and_nothing_said_are_aligned_too() -> None:
    assert align(["hope"], []) == [Span(0, 0)]
    assert align([], ["hope"]) == []


def test_errors_are_counted_where_they_stand() -> None:
    said, heard = words_of("We met Mayor Holt there"), words_of("we met may or halt the re")
    found = errors(said, heard, [Span(2, 4)])
    assert (found.name_words, found.name_errors, found.mentions_right) == (2, 3, 0)
    assert (found.other_words, found.other_errors) == (3, 2)


def test_case_accents_apostrophes_and_hyphens_are_no_errors() -> None:
    found = errors(
        words_of("Vex'ahl left Valdérie for Kazak-Dhur."), words_of("vexahl left Valderie for kazak dhur"), []
    )
    assert found.other_errors == 0


def test_a_compound_heard_as_two_words_is_an_error_of_the_name() -> None:
    found = errors(words_of("to Ironhold"), words_of("to iron hold"), [Span(1, 2)])
    assert (found.name_errors, found.other_errors) == (2, 0)


def test_a_word_added_between_right_ones_is_an_error_of_the_other_words() -> None:
    found = errors(words_of("ask Holt now"), words_of("ask Holt right now"), [Span(1, 2)])
    assert (found.name_errors, found.other_errors) == (0, 1)


def test_a_wrong_form_keeps_the_recognisers_case_and_loses_its_punctuation() -> None:
    said = sentence("Ask Dawn Bringer, please.", "Dawn Bringer")
    assert list(wrong_forms(said, Heard("id", "Ask Don bring her, please."))) == [("Don bring her", "Dawn Bringer")]


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("Ask Grimjaw now.", "Ask grimjaw now."),  # right but for case
        ("Ask Grimjaw now.", "Ask now."),  # not heard
        ("Ask Grimjaw now.", "Ask him now."),  # no trace of the name
        ("Ask Grimjaw now.", "Axe Grim Joe now."),  # where it begins is not sure
        ("Grimjaw's axe.", "Grim Joe's axe."),  # has an ending of its own
    ],
)
def test_what_is_no_clear_wrong_form_is_left_out(text: str, heard: str) -> None:
    assert list(wrong_forms(sentence(text, "Grimjaw"), Heard("id", heard))) == []


def test_a_form_counts_once_and_for_the_name_it_was_heard_for_most() -> None:
    names = [SpokenName("Thrym", "deity", "tune", "srd"), SpokenName("Holt", "npc", "tune", "own")]
    pairs = [
        ("Thrim", "Thrym"),
        ("Thrim", "Thrym"),
        ("Thrim", "Holt"),
        ("holt", "Thrym"),
        ("it", "Holt"),
        ("it", "Thrym"),
    ]
    assert distinct(pairs, names) == [("Thrim", "Thrym")]


def corrected(raw: str, before: str, after: str) -> Corrected:
    start = raw.index(before)
    change = Correction(start, start + len(before), before, after, 0.9, "phonetic", "sounds alike")
    return Corrected(raw.replace(before, after), (change,))


@pytest.mark.parametrize(
    ("heard", "before", "after", "right", "wrong_name", "harmed"),
    [
        ("That is grim jaw's axe.", "grim jaw's", "Grimjaw's", 1, 0, 0),
        ("That is grim jaw's axe.", "grim jaw's", "Ironhold's", 0, 1, 0),
        ("That is Grimjaw's axe.", "Grimjaw's", "Ironhold's", 0, 1, 1),
        ("That is grim jaw's axe.", "axe", "Ironhold", 0, 0, 0),
    ],
)
def test_a_name_is_right_or_harmed_or_another_was_written_over_it(
    heard: str, before: str, after: str, right: int, wrong_name: int, harmed: int
) -> None:
    said = sentence("That is Grimjaw's axe.", "Grimjaw")
    tally = measured(said, Heard("id", heard), corrected(heard, before, after), GAZETTEER)
    assert (tally.corrected.mentions_right, tally.wrong_name, tally.harmed) == (right, wrong_name, harmed)


def test_a_change_in_a_sentence_without_names_is_false() -> None:
    heard = "His grim jaw hurts."
    tally = measured(sentence(heard), Heard("id", heard), corrected(heard, "grim jaw", "Grimjaw"), GAZETTEER)
    assert (tally.nameless_words, tally.false_changes) == (4, 1)


def test_names_and_sentences_fall_into_halves_by_their_text_alone() -> None:
    names = read_names()
    assert all(name.split == split_of(name.name) for name in names)
    assert len({name.name.casefold() for name in names}) == len(names) >= 240
    assert {name.type for name in names} == {"npc", "location", "item", "faction", "creature", "deity"}


def test_the_set_is_large_enough_and_no_name_is_in_both_halves() -> None:
    sentences = read_sentences()
    halves = {name.name: name.split for name in read_names()}
    assert len(sentences) >= 2_000
    assert len({each.voice for each in sentences}) >= 4
    assert len({each.id for each in sentences}) == len(sentences)
    assert 0.3 < sum(not each.mentions for each in sentences) / len(sentences) < 0.4
    assert all(halves[mention.name] == each.split for each in sentences for mention in each.mentions)


def test_a_template_takes_articles_short_forms_and_a_second_name_of_the_same_half() -> None:
    names = [
        SpokenName("Mayor Holt", "npc", "tune", "own", short="Holt"),
        SpokenName("Tower of Ashes", "location", "tune", "own", article="the"),
        SpokenName("Velgrad", "location", "test", "own"),
    ]
    made = sentences_with_names(names, ["{npc:short} fled to {location}.", "{location} is near."], ONE_VOICE)
    assert {each.text for each in made} == {
        "Holt fled to the Tower of Ashes.",
        "The Tower of Ashes is near.",
        "Velgrad is near.",
    }
    first = next(each for each in made if each.text.startswith("Holt"))
    assert [(m.name, first.text[m.start : m.end]) for m in first.mentions] == [
        ("Mayor Holt", "Holt"),
        ("Tower of Ashes", "Tower of Ashes"),
    ]


def test_all_fillings_of_a_line_are_in_the_same_half() -> None:
    made = sentences_without_names(["I eat the [food] now."], {"food": ["apple", "bread", "stew"]}, ONE_VOICE)
    assert len(made) == 3
    assert len({each.split for each in made}) == 1


def test_apostrophes_within_a_name_are_not_spelled_out() -> None:
    assert to_be_spoken(sentence("Vex'ahl's at Widow's Crossing.", "Vex'ahl", "Widow's Crossing")) == (
        "Vexahl's at Widow's Crossing."
    )


def test_a_glossary_holds_the_names_of_a_sentence_or_none_of_them() -> None:
    names = [SpokenName(f"Name{number}", "npc", "tune", "own") for number in range(50)]
    for number in range(20):
        said = Sentence(f"s{number}", "tune", "heart", "Name7!", (SpokenMention("Name7", 0, 5),))
        listed, is_hinted = glossary_for(said, names)
        assert len(set(listed)) == 24
        assert ("Name7" in listed) is is_hinted


def test_the_tables_come_back_as_they_were_written(tmp_path: Path) -> None:
    said = [sentence("Ask Holt.", "Holt"), sentence("Ask.")]
    write_sentences(tmp_path / "sentences.tsv", said)
    assert read_sentences(tmp_path / "sentences.tsv") == said
    heard = Heard("id", "Ask Hall.", True, (98, 31))
    write_heard(tmp_path / "heard.tsv.gz", [heard])
    assert read_heard(tmp_path / "heard.tsv.gz") == {"id": heard}
    assert [(word.start, word.end, word.confidence) for word in heard.heard_words()] == [(0, 3, 0.98), (4, 9, 0.31)]


def test_bad_tables_are_told_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    with pytest.raises(NotFound, match=r"spoken_names\.make"):
        read_names(path)
    path.write_text("name\ttype\tsplit\torigin\tarticle\tshort\nHolt\tnpc\n")
    with pytest.raises(InvalidInput, match="line 2"):
        read_names(path)
    path.write_text("x\n\nHolt\tnpc\tdev\town\t\t\n")
    with pytest.raises(InvalidInput):
        read_names(path)
    broken = tmp_path / "heard.tsv.gz"
    broken.write_bytes(b"no archive")
    with pytest.raises(Corrupt):
        read_heard(broken)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "names.tsv").write_text(
        "name\ttype\tsplit\torigin\tarticle\tshort\nIronhold\tlocation\ttune\town\t\t\n"
    )
    said = [sentence("We ride to Ironhold.", "Ironhold"), Sentence("b", "tune", "heart", "We ride.")]
    write_sentences(tmp_path / "sentences.tsv", said)
    write_heard(tmp_path / "heard-tiny.tsv.gz", [Heard("id", "We ride to iron hold."), Heard("b", "We rode.")])
    return tmp_path


def test_the_last_line_tells_errors_of_names_and_of_other_words_for_each_setting(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data", str(made), "--show", "5"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (figures["name_wer_raw"], figures["name_wer"]) == (200.0, 0.0)
    assert (figures["other_wer_raw"], figures["other_wer"]) == (20.0, 20.0)
    assert figures["false_per_1000_words"] == 0
    assert list(figures["settings"]) == ["tiny"]


def test_what_has_not_been_transcribed_yet_is_not_measured(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_heard(made / "heard-tiny.tsv.gz", [Heard("b", "We rode.")])
    assert main(["--data", str(made)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["mentions"] == 0


def test_an_unknown_setting_is_named_with_those_that_exist(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(made), "--setting", "tinny"]) == 2
    assert "tiny" in capsys.readouterr().err
