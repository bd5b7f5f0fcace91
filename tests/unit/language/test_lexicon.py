"""Words and patterns of languages, and the files that hold them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import glyphoxa.language
from glyphoxa.language.language_data import Lexicon, languages, lexicon, texts

DATA = Path(glyphoxa.language.__file__).parent / "data"
FILES = sorted(DATA.glob("*/*.toml"))
PATTERNS = [file for file in FILES if file.stem not in ("prompt", "tasks")]
"""Files of patterns. The others hold texts."""
TOPICS = sorted({file.stem for file in FILES})
PLACE = re.compile(r"\{([a-z]\w*)\}")


def test_words_stand_between_commas_over_several_lines() -> None:
    assert Lexicon([{"titles": "\nold,\nmaster of\nships\n"}]).words("titles") == {"old", "master of ships"}


def test_pattern_matches_the_alternatives_of_all_languages() -> None:
    known = Lexicon([{"order": "stop, wait"}, {"order": "halt"}])
    pattern = known.compile(r"^{order}\b")
    assert [bool(pattern.search(text)) for text in ("wait here", "halt", "halts")] == [True, True, False]


def test_place_in_a_file_stands_for_another_key_of_the_file_or_a_macro() -> None:
    known = Lexicon([{"plan": ["^{opening}we {act}$"], "act": "go, run"}, {"act": "gehen"}])
    pattern = known.pattern("plan", opening="(?:so )?")
    assert pattern.search("so we run") and not pattern.search("we gehen")


@pytest.mark.parametrize("language", ["fr", "fr-FR", "../en"])
def test_language_without_data_matches_nothing(language: str) -> None:
    known = lexicon("asking", language)
    assert not known and not known.words("titles") and known.pattern("memory").search("do you remember") is None


def test_region_of_a_language_tag_does_not_matter() -> None:
    assert lexicon("asking", "de-AT") and lexicon("asking", "de-AT").words("titles") == lexicon("asking", "de").words(
        "titles"
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_every_language_has_a_file_for_the_topic(topic: str) -> None:
    assert {file.parent.name for file in FILES if file.stem == topic} == set(languages())


@pytest.mark.parametrize("file", PATTERNS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_alternative_of_a_file_is_a_pattern(file: Path) -> None:
    text = file.read_text("utf-8")
    content = tomllib.loads(text)
    known, macros = Lexicon([content]), dict.fromkeys(set(PLACE.findall(text)) - set(content), "")
    for value in content.values():
        alternatives = [value] if isinstance(value, str) else value
        if isinstance(alternatives, list) and all(isinstance(each, str) for each in alternatives):
            for each in alternatives:
                known.compile(each, **macros)


@pytest.mark.parametrize(("language", "word"), [("de-AT", "Mitschrift"), ("en", "Transcript"), ("fr", "Transcript")])
def test_prompt_is_english_where_a_language_has_none(language: str, word: str) -> None:
    assert texts("tasks", language).value("second_look")["transcript"].startswith(word)


@pytest.mark.parametrize("language", languages())
def test_prompts_of_tasks_have_the_same_parts_and_places_in_all_languages(language: str) -> None:
    def shape(part: object) -> object:
        if isinstance(part, dict):
            return {key: shape(inner) for key, inner in part.items()}
        return sorted(re.findall(r"\{\w+\}", str(part)))

    read = [tomllib.loads((DATA / tag / "tasks.toml").read_text("utf-8")) for tag in (language, "en")]
    assert shape(read[0]) == shape(read[1])


@pytest.mark.parametrize("file", [file for file in FILES if file.stem in ("prompt", "tasks")], ids=str)
def test_prompt_assumes_no_kind_of_setting(file: Path) -> None:
    setting = re.compile(
        r"fantas|magi[ce]|medieval|mittelalter|dragon|drache|dungeon|\belves|\belfen|\borcs?\b|zwerg", re.IGNORECASE
    )
    assert not setting.search(file.read_text("utf-8"))
