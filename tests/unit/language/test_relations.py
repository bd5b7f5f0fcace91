"""Relations as sentences: one for every type, in every language, and no type in any."""

import re
from itertools import product

import pytest

from glyphoxa.chronicle.llm_extractor import RELATIONS
from glyphoxa.language.language_data import languages, lexicon
from glyphoxa.language.relations import RelationWords, in_words, known_type, spelled_types

LEARNED = {each["type"] for language in languages() for each in lexicon("chronicle", language).value("relations")}
KNOWN = sorted({*spelled_types(), *RELATIONS, *LEARNED})


@pytest.mark.parametrize(("language", "relation"), list(product(languages(), KNOWN)))
def test_every_known_type_has_a_template_in_each_language(language: str, relation: str) -> None:
    assert known_type(relation) is not None
    sentence = RelationWords(language).sentence(relation, "Rusk", "Pilar")
    assert "Rusk" in sentence and "Pilar" in sentence
    assert not re.search(r"[A-Z]{2}|_|[{}]", sentence)


@pytest.mark.parametrize(
    ("language", "relation", "sentence"),
    [
        ("en", "BROTHER_OF", "Rusk is the brother of Pilar"),
        ("en", "BETRAYED_BY", "Rusk is betrayed by Pilar"),
        ("en", "OWES_MONEY_TO", "Rusk owes money to Pilar"),
        ("en", "FEARS", "Rusk fears Pilar"),
        ("en", "IS_AFRAID_OF", "Rusk is afraid of Pilar"),
        ("en", "NEMESIS_OF", "Rusk is the nemesis of Pilar"),
        ("en", "PRINCESS_OF", "Rusk is princess of Pilar"),
        ("en", "RIVAL", "Rusk and Pilar are rivals"),
        ("en", "HEARTTHROB", "Rusk: heartthrob: Pilar"),
        ("en", "LISTENED_TO", "Rusk: listened to: Pilar"),
        ("en", "located_at", "Rusk is at Pilar"),
        ("de", "BRUDER_VON", "Rusk ist Bruder von Pilar"),
        ("de", "SCHULDET_GELD", "Rusk: schuldet geld: Pilar"),
        ("de", "KNOWS", "Rusk kennt Pilar"),
        ("de-AT", "KNOWS", "Rusk kennt Pilar"),
        ("fr", "KNOWS", "Rusk knows Pilar"),
    ],
)
def test_relation_type_reads_as_a_sentence_of_the_language(language: str, relation: str, sentence: str) -> None:
    assert RelationWords(language).sentence(relation, "Rusk", "Pilar") == sentence


def test_sentence_of_the_campaign_comes_before_any_other() -> None:
    own = {"KNOWS": "{target} was met by {source}"}
    assert RelationWords("en", own).sentence("KNOWS", "Rusk", "Pilar") == "Pilar was met by Rusk"


def test_names_with_braces_stay_as_they_are() -> None:
    assert RelationWords().sentence("KNOWS", "{target}", "{source}") == "{target} knows {source}"


def test_only_an_upper_case_name_is_lowered() -> None:
    assert [in_words(each) for each in ("FEARS", "speaking_style", "Bruder_von")] == [
        "fears",
        "speaking style",
        "Bruder von",
    ]


@pytest.mark.parametrize(
    ("language", "relation", "words"),
    [
        ("en", "LOCATED_AT", "is at"),
        ("en", "RIVAL", "rival"),
        ("en", "BROTHER_OF", "is the brother of"),
        ("en", "MET", "met"),
        ("en", "SHIELDS", "shields"),
        ("de", "KNOWS", "kennt"),
        ("de", "PARTICIPATED_IN", "war dabei"),
    ],
)
def test_words_between_two_names_are_those_of_the_sentence(language: str, relation: str, words: str) -> None:
    own = {"MET": "{target} was met by {source}", "SHIELDS": "A shield of {target} is {source}"}
    assert RelationWords(language, own).between(relation) == words
