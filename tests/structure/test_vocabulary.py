"""The project's prose uses plain English, without the phrases that `vocabulary.toml` retires."""

from __future__ import annotations

import pytest

from tests.support.vocabulary import all_hits, hits

RETIRED = {
    "Facts wait for your word.": "wait for your word",
    "# A provider that hangs is\n# let be.": "let be",
    "The names are put right.": "put right",
    "It compiles all modules anew.": "anew",
    "The page for who uses no mouse.": "for who",
    "It is learned behind\nthe talk.": "behind the talk",
    "Silence in front of an answer is cut.": "in front of an answer",
    "It resumes behind a crash.": "behind a crash",
    "An NPC that fell is started again.": "npc that fell",
    "Revoked links are void.": "are void",
    "The seat is let go.": "seat is let go",
    "Its name stands in the transcript.": "stands in the transcript",
}
ORDINARY = [
    "Recipes for nginx in front of a table.",
    "`glyphoxa models fetch --anew`",
    "Let go of me!",
    "void main(void)",
    "The man behind the bar.",
    "let it be known",
    "put it right after the comma",
    "That makes good sense.",
    "whom it is for, whoever asks",
    "NPCs fall silent.",
]


def words(text: str, path: str = "page.md") -> list[str]:
    return [hit.found for hit in hits(path, text)]


@pytest.mark.parametrize(("text", "phrase"), RETIRED.items(), ids=RETIRED.values())
def test_retired_phrase_is_found(text: str, phrase: str) -> None:
    assert words(text) == [phrase]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_phrase_is_allowed(text: str) -> None:
    assert words(text) == []


def test_prose_has_no_retired_phrase() -> None:
    assert [str(hit) for hit in all_hits()] == []


def test_python_comments_strings_and_test_names_are_prose() -> None:
    code = 'anew = 1  # anew\n\ndef test_it_reads_anew():\n    """Read\n    anew."""\n    return f"read anew {it}"\n'
    assert [hit.line for hit in hits("module.py", code)] == [1, 3, 5, 6]


def test_sql_comments_are_prose_and_queries_are_not() -> None:
    assert [hit.line for hit in hits("query.sql", "-- read anew\nSELECT anew FROM t\n")] == [1]


def test_left_column_of_the_style_guide_may_quote_retired_phrases() -> None:
    table = "| instead of | write |\n|---|---|\n| anew | again |\n\nIt is read anew.\n"
    assert [hit.line for hit in hits("CONTRIBUTING.md", table)] == [5]
