"""Texts as messages of Discord."""

from __future__ import annotations

from glyphoxa.plugins.discord.bot import written


def test_text_is_shown_without_markup() -> None:
    assert written(("**b** [link](https://a.example/x_y) <@1>",))["content"] == (
        r"\*\*b\*\* \[link](https://a.example/x_y) <@1>"
    )


def test_line_with_thousands_of_brackets_is_escaped() -> None:
    # discord.py alone would need hours for it.
    content = written(("[a](" * 2_000,))["content"]
    assert content.startswith(r"\[a](\[a](")
