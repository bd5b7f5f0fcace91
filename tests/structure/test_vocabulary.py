"""The project's prose uses plain English, without the phrases that `vocabulary.toml` retires."""

from __future__ import annotations

import pytest

from tests.support.vocabulary import all_hits, hits


def test_prose_has_no_retired_phrase() -> None:
    assert [str(hit) for hit in all_hits()] == []


def test_python_code_and_the_words_of_test_names_are_prose() -> None:
    code = 'anew = 1  # anew\n\ndef test_it_reads_anew():\n    """Read\n    anew."""\n    return f"read anew {it}"\n'
    assert [hit.line for hit in hits("module.py", code)] == [1, 1, 3, 5, 6]


def test_sql_comments_are_prose_and_queries_are_not() -> None:
    assert [hit.line for hit in hits("query.sql", "-- read anew\nSELECT anew FROM t\n")] == [1]


def test_left_column_of_the_style_guide_may_quote_retired_phrases() -> None:
    table = "| instead of | write |\n|---|---|\n| anew | again |\n\nIt is read anew.\n"
    assert [hit.line for hit in hits("CONTRIBUTING.md", table)] == [5]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Facts wait for your word.", ["wait for your word"]),
        ("# A provider that hangs is\n# let be.", ["let be"]),
        ("Silence in front of an answer is cut.", ["in front of an answer"]),
        ("Recipes for nginx in front of a table.", []),
        ("let it be known, or put it right after the comma", []),
    ],
)
def test_phrase_is_found_across_lines_and_in_its_sense_only(text: str, found: list[str]) -> None:
    assert [hit.found for hit in hits("page.md", text)] == found
