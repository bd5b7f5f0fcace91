from __future__ import annotations

import pytest

from glyphoxa.plugins.imports.html_text import html_text


def test_headings_lists_and_tables_become_markdown() -> None:
    page = html_text(
        "<h2>The Siege</h2><p>It lasted <strong>nine</strong> days.<br>Then snow fell.</p>"
        "<ul><li>bread<ul><li>stale</li></ul></li></ul><table><tr><th>Gate</th></tr><tr><td>north</td></tr></table>"
    )
    assert page.visible == (
        "## The Siege\n\nIt lasted **nine** days.\nThen snow fell.\n\n"
        "- bread\n  - stale\n\n| Gate |\n| --- |\n| north |"
    )
    assert page.hidden == ""


@pytest.mark.parametrize(
    "section",
    [
        '<section class="secret" id="secret-1"><p>Mira is a spy.</p></section>',
        '<section class="secret"><p>Mira is a spy.',
        '<section class="secret revealed">Old news.<section class="secret">Mira is a spy.</section></section>',
        '<table><section class="secret">Mira is a spy.</section><tr><td>x</td></tr></table>',
        '<div data-visibility="gm">Mira is a spy.</div>',
        '<p style="color: red; display: none">Mira is a spy.</p>',
        '<section class="secret">Outer.<section class="secret revealed">Mira is a spy.</section></section>',
    ],
)
def test_text_only_the_dm_could_read_is_hidden(section: str) -> None:
    page = html_text(f"<p>Mira sells fish.</p>{section}")
    assert "Mira sells fish." in page.visible
    assert "spy" not in page.visible
    assert "Mira is a spy." in page.hidden


def test_revealed_section_is_visible() -> None:
    page = html_text('<section class="secret revealed"><p>Mira is a spy.</p></section>')
    assert (page.visible, page.hidden) == ("Mira is a spy.", "")


def test_references_become_labels_and_links() -> None:
    page = html_text(
        "<p>@UUID[JournalEntry.a.JournalEntryPage.b#gate]{The keep} of @Actor[q] fell, "
        '<a href="http://journal.roll20.net/handout/-K1">see here</a>.</p>'
        '<section class="secret">Ask @UUID[Actor.boss].</section>',
        name_of=lambda target, hidden: "Boss & co" if hidden else f"({target})",
    )
    assert page.visible == "The keep of (Actor.q) fell, see here."
    assert page.hidden == "Ask Boss & co."
    assert {link.target: link.hidden for link in page.links} == {
        "JournalEntry.a.JournalEntryPage.b": False,
        "Actor.q": False,
        "http://journal.roll20.net/handout/-K1": False,
        "Actor.boss": True,
    }


def test_commands_of_the_rules_leave_only_labels() -> None:
    page = html_text(
        "<p>It burns for [[/r 2d6[fire]]]{a while}[[1d4]], @Check[type:perception|dc:20]then you are "
        "&amp;Reference[condition=prone apply=false].</p><img src='x' alt='map'><script>alert(1)</script><!-- no -->"
    )
    assert page.visible == "It burns for a while, then you are prone."


def test_brackets_in_prose_stay() -> None:
    assert html_text("<p>He wrote [sic] to a@b.de, [[ never closed</p><p>and ]]</p>").visible == (
        "He wrote [sic] to a@b.de, [[ never closed\n\nand ]]"
    )


def test_text_below_many_levels_is_kept() -> None:
    assert html_text("<div>" * 3_000 + "deep" + "</div>" * 3_000).visible == "deep"


def test_characters_no_database_holds_are_replaced() -> None:
    assert html_text("<p>a\ud800b\0c</p>").visible == "a\N{REPLACEMENT CHARACTER}bc"


def test_page_of_too_many_tags_is_hidden_as_plain_text() -> None:
    page = html_text("<p>Mira &amp; co</p>" + "<b>" * 60_000)
    assert (page.visible, page.hidden) == ("", "Mira & co")


def test_many_sections_inside_each_other_are_hidden_once() -> None:
    page = html_text("open" + '<section class="secret">x' * 9_000)
    assert (page.visible, page.hidden.count("x")) == ("open", 9_000)
