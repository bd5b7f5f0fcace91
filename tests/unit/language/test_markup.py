from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.language.plain_text import PlainText, plain_text


def streamed(text: str, chunk: int) -> str:
    stream = PlainText(char="Mira", user="Tamsin")
    parts = [stream.push(text[at : at + chunk]) for at in range(0, len(text), chunk)]
    return "".join(parts) + stream.flush()


CASES = {
    "Bread &amp; ale": "Bread & ale",
    "Bread &amp;amp; ale": "Bread & ale",
    "15&nbsp;gp": "15\u00a0gp",
    "&quot;Stop!&quot; It&#39;s &#x27;mine&#x27; &mdash; now": "\"Stop!\" It's 'mine' — now",
    "5 &lt; 7 and 3 < 4": "5 < 7 and 3 < 4",
    "Fish & chips &unknown; AT&T": "Fish & chips &unknown; AT&T",
    "The bridge is out.<br>Go round.": "The bridge is out.\nGo round.",
    "The bridge is out<br/>Go round": "The bridge is out.\nGo round",
    "<p>One</p>\n<P class='a'>Two</P>": "\nOne.\n\n\nTwo.\n",
    '<b>Never</b> go <span style="x">there</span>': "Never go there",
    "<!-- note to self -->Go": "Go",
    "<think>Hm.</think>Go": "<think>Hm.</think>Go",
    "{{user}}, {{ Char }} and {{USER}}": "Tamsin, Mira and Tamsin",
    "{user} and <BOT>": "Tamsin and Mira",
    "a {set} of {{macros}}": "a {set} of {{macros}}",
    "Meet @UUID[Actor.x1]{Old Rusk} at @Compendium[dnd5e.places.Mill]": "Meet Old Rusk at Mill",
    "The [[Old Mill]], [[Inn#rooms|the inn]], [[/r 2d6]]": "The Old Mill, the inn, 2d6",
    "[a](b) and [c]": "[a](b) and [c]",
    "no\u00adw\u200b \ufeffhere": "now here",
}


@pytest.mark.parametrize(("text", "plain"), CASES.items(), ids=list(CASES))
def test_markup_becomes_the_text_it_shows(text: str, plain: str) -> None:
    assert plain_text(text, char="Mira", user="Tamsin") == plain
    for chunk in (1, 2, 3, 7):
        assert streamed(text, chunk) == plain


MARKED = st.lists(st.sampled_from([*CASES, "&", "<", "[[", "{{", "@", "]]", "}", ";", ">", " ", "x", "\n"]), max_size=6)


@given(MARKED.map("".join), st.integers(1, 9))
def test_plain_text_does_not_depend_on_how_tokens_are_cut(text: str, chunk: int) -> None:
    assert streamed(text, chunk) == streamed(text, len(text) or 1)


def test_only_unfinished_markup_waits_for_the_next_token() -> None:
    stream = PlainText()
    assert [stream.push(token) for token in ("Salt ", "&am", "p;", " pepper, ", "5 < ", "7 <", "br", ">Go")] == [
        "Salt ",
        "",
        "",
        "& pepper, ",
        "5 < ",
        "7 ",
        "",
        ".\nGo",
    ]


def test_placeholder_without_a_name_vanishes_with_its_comma() -> None:
    assert plain_text("{{user}}, the bridge is out.") == "the bridge is out."
