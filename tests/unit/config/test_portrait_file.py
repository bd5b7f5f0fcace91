"""A picture of an NPC: which are taken, and that nothing but the picture is."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.portrait_file import MOST_BYTES, picture_of, read_portrait
from glyphoxa.domain.errors import InvalidInput
from tests.support.live_table import write_campaign
from tests.support.pictures import AUTHOR, a_picture

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_the_picture_is_kept_and_who_made_it_is_not(tmp_path: Path, kind: str) -> None:
    whole = a_picture(kind)
    assert AUTHOR.encode() in whole
    (tmp_path / "korvald.any").write_bytes(whole)
    portrait = read_portrait(tmp_path, "./korvald.any")
    assert portrait.content_type == f"image/{kind.lower()}"
    assert AUTHOR.encode() not in portrait.content
    with Image.open(BytesIO(portrait.content)) as shown, Image.open(BytesIO(whole)) as before:
        assert shown.size == (32, 24)
        assert not shown.getexif()
        assert shown.convert("RGB").tobytes() == before.convert("RGB").tobytes()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (SVG, "no PNG, JPEG or WebP"),
        (a_picture("GIF"), "no PNG, JPEG or WebP"),
        (b"", "no PNG, JPEG or WebP"),
        (a_picture("PNG")[:60], "damaged"),
        (a_picture("JPEG")[:60], "damaged"),
        (a_picture("WEBP")[:30], "damaged"),
        (a_picture("PNG", 2_049, 1), "2049 x 1 pixels"),
        (a_picture("WEBP", 1, 2_049), "1 x 2049 pixels"),
        (a_picture("PNG") + bytes(MOST_BYTES), "more than 2,000 kB"),
    ],
)
def test_what_is_no_picture_or_too_large_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "korvald.png").write_bytes(content)
    with pytest.raises(InvalidInput, match=why):
        read_portrait(tmp_path, "korvald.png")


@given(st.sampled_from(["PNG", "JPEG", "WEBP"]), st.data())
def test_damage_is_refused_or_harmless_and_never_anything_else(kind: str, data: st.DataObject) -> None:
    content = bytearray(a_picture(kind))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        picture_of("korvald.png", bytes(content))
    except InvalidInput:
        return


def test_only_files_of_the_campaigns_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    folder.mkdir()
    (tmp_path / "outside.png").write_bytes(a_picture("PNG"))
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    for name in ("../outside.png", str(tmp_path / "outside.png"), "link.png", "../not there"):
        with pytest.raises(InvalidInput, match="outside of the campaign file's folder"):
            read_portrait(folder, name)
    for name in ("nothing.png", ".", "a\0b"):
        with pytest.raises(InvalidInput, match=r"there is no file|is no name of a file"):
            read_portrait(folder, name)


def test_a_campaign_file_names_it_and_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    path = write_campaign(tmp_path)
    text = path.read_text("utf-8").replace("  engine: cascaded", "  portrait: ./grimjaw.png\n  engine: cascaded", 1)
    path.write_text(text, "utf-8")
    line = 1 + text[: text.index("portrait:")].count("\n")
    with pytest.raises(InvalidFile, match=rf"{line}: .*there is no file './grimjaw.png'"):
        read_campaign(path)
    (tmp_path / "grimjaw.png").write_bytes(a_picture("PNG"))
    portrait = read_campaign(path).campaign.npcs[0].portrait
    assert portrait is not None
    assert portrait.content_type == "image/png"
