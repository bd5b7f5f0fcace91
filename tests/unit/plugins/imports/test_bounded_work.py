"""A file that somebody made to be slow is read in a time that grows with its size, or only as hidden plain text."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import pytest

from glyphoxa.dm.source_world import ImportKind, SourceWorld
from glyphoxa.plugins.imports import markdown_folder
from glyphoxa.plugins.imports.html_text import html_text
from glyphoxa.plugins.imports.markdown_text import note_text
from glyphoxa.plugins.imports.readers import read_source
from tests.support.proof import IS_PROOF

SIZE = 1_500
"""Characters of the smaller of two texts."""
MOST_GROWTH = 2.8
"""Times the calls for a text that is twice as long. Work that grows with the square takes 4 times as many."""
NOTES = (
    "[[", "[[a|", "[[a\n", "[[a]]", "[[]]", "![[a.png]]", "[a](", "![a](", "![", "[a][b", "[a]: ", "[a]: b\n", "](",
    "_*", "*a ", "**a ", "a**b", "*_**__", "~~a ", "`", "`a``", "<a ", "<a>", "<!--", "<!-- -->", "%%a%% ", "> ",
    "> a\n\n", "> [!secret]\n> a\n\n", "- ", "- a\n", "- Secret: a\n", "1. ", "# ", "# a\n", "# GM\n\na\n\n", "|a",
    "|a|\n|-|\n|b|\n\n", ":::secret\n", ":::secret\na\n:::\n", "```\n", "```secret\na\n```\n", "&", "&amp;",
    "http://a ", "\\[", "a:: [[b]]\n", "a:b\n", "a\n", "\n", "#tag ", "<div>\n\n",
    "<details><summary>secret</summary>", "@UUID[", "@UUID[a]{", "{{", "a\n==\n", "a\0", "\u0301",
)  # fmt: skip
PAGES = (
    "<div>", "<p>a", "<ul><li>", "<b>a", "<a href=x>y</a>", "<table><tr><td>a", "<section class=secret>a", "<!--",
    "<br>", "&amp;", "@UUID[a]{b} ", "@UUID[", "@a[[", "[[/r 1d6]] ", "[[", "<details><summary>gm</summary>",
    "<span style='display:none'>", "<div></x>", "<div><object></div>", "<svg><p>",
)  # fmt: skip


def n_calls(work: Callable[[], object]) -> int:
    """Count the calls of functions that some work takes, which no other work on this machine changes."""
    n = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal n
        n += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return n


def growth(work: Callable[[int], object]) -> float:
    """Return how much more work the double size takes; what the first size needs besides is not counted."""
    for n in (2 * SIZE, 10):
        work(n)  # what is cached is so for all
    least = n_calls(lambda: work(10))
    return (n_calls(lambda: work(2 * SIZE)) - least) / max(n_calls(lambda: work(SIZE)) - least, 200)


def repeated(text: str, n: int) -> str:
    return (text * (n // len(text) + 1))[:n]


@pytest.mark.parametrize("text", NOTES[:: None if IS_PROOF else 3])
def test_work_of_a_note_grows_with_its_length(text: str) -> None:
    assert growth(lambda n: note_text(repeated(text, n))) < MOST_GROWTH


@pytest.mark.parametrize("text", PAGES)
def test_work_of_a_page_grows_with_its_length(text: str) -> None:
    assert growth(lambda n: html_text(repeated(text, n))) < MOST_GROWTH


TABLES: Mapping[str, Callable[[int], str]] = {
    "own types": lambda n: "name,type\n" + "".join(f"n{i},t{i}\n" for i in range(n)),
    "one type": lambda n: "name,type\n" + "".join(f"n{i},npc\n" for i in range(n)),
    "own relations": lambda n: "source,type,target\n" + "".join(f"a,K{i},b{i}\n" for i in range(n)),
    "columns": lambda n: "name,type," + ",".join(f"c{i}" for i in range(n)) + "\na,npc" + ",x" * n + "\n",
    "aliases": lambda n: "name,type,aliases\na,npc," + ";".join(f"b{i}" for i in range(n)) + "\n",
    "names that nobody knows": lambda n: "name,type,known_by\n" + "".join(f"a{i},npc,b{i}\n" for i in range(n)),
}


@pytest.mark.parametrize("table", TABLES)
def test_work_of_a_table_grows_with_its_rows(table: str, tmp_path: Path) -> None:
    def read(n: int) -> None:
        file = tmp_path / f"{n}.csv"
        file.write_text(TABLES[table](n // 3), "utf-8")
        read_source("csv", file)

    assert growth(read) < MOST_GROWTH


FRONTS: Mapping[str, Callable[[int], str]] = {
    "keys": lambda n: "".join(f"a{i}: b\n" for i in range(n)),
    "secrets": lambda n: "".join(f"gm {i}: b\n" for i in range(n)),
    "aliases": lambda n: "aliases:\n" + "".join(f"  - b{i}\n" for i in range(n)),
    "links": lambda n: f'a: "{"[[" * n}"\n',
    "values": lambda n: "a:\n" + "  - 'b, c'\n" * n,
    "comments": lambda n: "#a\n" * n,
}


@pytest.mark.parametrize("front", FRONTS)
def test_work_of_front_matter_grows_with_its_length(front: str, tmp_path: Path) -> None:
    def read(n: int) -> None:
        (tmp_path / "a.md").write_text(f"---\n{FRONTS[front](n // 10)}---\na", "utf-8")
        read_source("markdown", tmp_path / "a.md")

    assert growth(read) < MOST_GROWTH


@pytest.mark.parametrize("link", ["[[x{}/index]]", "[[index]]", "![[x{}/index.png]]", "location:: [[d{}/index]]"])
def test_work_of_links_grows_with_notes_of_one_name(link: str, tmp_path: Path) -> None:
    def read(n: int) -> None:
        file = tmp_path / f"{n}.zip"
        with zipfile.ZipFile(file, "w") as archive:
            for i in range(n // 20 + 1):
                archive.writestr(f"d{i}/index.md", f"{link.format(i)}\n\n{link.format(-i)}")
                archive.writestr(f"d{i}/index.png", b"")
        read_source("markdown", file)

    assert growth(read) < MOST_GROWTH


# What is over a limit


def in_folder(folder: Path, notes: Mapping[str, str]) -> SourceWorld:
    for name, text in notes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return read_source("markdown", folder)


def test_note_with_too_many_marks_is_hidden_as_plain_text_and_named(tmp_path: Path) -> None:
    dense = "The cellar is empty. " + "[[" * 80_000
    world = in_folder(
        tmp_path / "v", {"Cellar.md": dense, "Mira.md": "Mira brews.", "Bo.md": "Bo owns the [[Cellar]]."}
    )
    by_name = {each.name: each for each in world.documents}
    assert by_name["Cellar"].hidden and by_name["Cellar"].texts[0].hidden
    assert by_name["Cellar"].texts[0].text == dense
    assert not by_name["Mira"].hidden
    assert all(text.hidden for text in by_name["Bo"].texts), "a paragraph that links to a hidden note is hidden"
    assert any("marks of Markdown" in each and each.endswith("(1): Cellar.md") for each in world.remarks)


def test_notes_after_too_many_marks_are_hidden_as_plain_text_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown_folder, "_MOST_MARKS_IN_ALL", 100)
    world = in_folder(tmp_path / "v", {f"N{n}.md": "*a* " * 20 for n in range(4)} | {"Z.md": "Mira brews."})
    assert [each.hidden for each in world.documents] == [False, False, True, True, False]
    assert any(each.endswith("(2): N2.md, N3.md") for each in world.remarks)


def test_page_of_tags_too_deep_is_hidden_as_plain_text() -> None:
    page = html_text("<p>Mira &amp; co</p>" + "<div>" * 12_000)
    assert (page.visible, page.hidden) == ("", "Mira & co")
    assert html_text("<p>Mira</p>" * 12_000).visible.count("Mira") == 12_000


# Names


@pytest.mark.parametrize("kind", ["markdown", "csv"])
@pytest.mark.parametrize("place", [".", "../Thornwick", "deeper/.."])
def test_source_named_by_dots_has_the_name_of_its_folder(
    kind: ImportKind, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "Thornwick"
    (folder / "deeper").mkdir(parents=True)
    (folder / "Mira.md").write_text("Mira knows [[Nobody]]. [[Mr. Nobody]]", "utf-8")
    (folder / "entities.csv").write_text("name,type\nMira,npc\n", "utf-8")
    (folder / "relationships.csv").write_text("source,type,target\nMira,KNOWS,J. Thorne\n", "utf-8")
    named = read_source(kind, folder)
    monkeypatch.chdir(folder)
    assert read_source(kind, Path(place)) == named
    assert named.name == "Thornwick"
    assert any(". " in each or "`hidden: true`" in each for each in named.remarks)
