"""Sources are opened without trusting them."""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from glyphoxa.dm.source_world import ImportKind, SourceWorld
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.plugins.imports import files as files_module
from glyphoxa.plugins.imports.files import SourceFiles, open_source
from glyphoxa.plugins.imports.readers import READERS, read_source
from glyphoxa.providers.extras import NotInstalled


def zipped(path: Path, contents: dict[str, bytes], *, mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path


def refusal(path: Path, use: Callable[[SourceFiles], object] = lambda files: None) -> str:
    with pytest.raises(InvalidInput) as caught, open_source(path) as files:
        use(files)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def left_temporary() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("glyphoxa-import-*"))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_folder_and_zip_give_the_same_files(kind: str, tmp_path: Path) -> None:
    contents = {"world.json": b"{}", "data/actors.db": b"a\nb", "data/u\u0308ber.md": b"x", "data/deep/c.md": b""}
    source = tmp_path / "source"
    if kind == "zip":
        zipped(source, contents)
    else:
        for name, data in contents.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(data)
    with open_source(source) as files:
        assert files.names == ("data/actors.db", "data/deep/c.md", "data/\u00fcber.md", "world.json")
        assert files.read("data/\u00fcber.md") == b"x"
        assert list(files.lines("data/actors.db")) == [b"a\n", b"b"]
        with files.folder("data") as copy:
            assert {path.name: path.read_bytes() for path in copy.iterdir()} == {
                "actors.db": b"a\nb",
                "\u00fcber.md": b"x",
            }
        assert files.left_out == ()
    assert left_temporary() == []


def test_single_file_and_link_to_it_are_sources(tmp_path: Path) -> None:
    (tmp_path / "world.db").write_bytes(b"{}")
    (tmp_path / "link.db").symlink_to(tmp_path / "world.db")
    for name in ("world.db", "link.db"):
        with open_source(tmp_path / name) as files:
            assert (files.names, files.read(name)) == ((name,), b"{}")


def test_reading_ends_a_little_after_the_most_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_bytes(b"x" * 4 * files_module._PIECE)
    with open_source(tmp_path) as files:
        assert 100 < len(files.read("long.md", most=100)) <= 2 * files_module._PIECE


def test_absent_path_and_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert str(tmp_path / "pipe") in refusal(tmp_path / "pipe")
    with pytest.raises(NotFound, match=r"absent\.zip"), open_source(tmp_path / "absent.zip"):
        pass


@pytest.mark.parametrize("name", ["../out", "a/../../out", "/etc/passwd", "C:/out", "C:\\out", "..\\out", "a/.."])
def test_zip_with_path_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    assert "leads out" in refusal(zipped(tmp_path / "a.zip", {"fine.md": b"x", name: b"x"}))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_in_zip_are_left_out(kind: int, tmp_path: Path) -> None:
    with open_source(zipped(tmp_path / "a.zip", {"secret": b"/etc/passwd"}, mode=kind | 0o777)) as files:
        assert (files.names, files.left_out) == ((), ("secret",))


def test_links_pipes_and_loops_in_folder_are_left_out(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "npcs").mkdir(parents=True)
    (vault / "npcs/Odo.md").write_text("x")
    (tmp_path / "outside.md").write_text("secret")
    (vault / "link.md").symlink_to(tmp_path / "outside.md")
    (vault / "loop").symlink_to(vault)
    (vault / "gone.md").symlink_to(tmp_path / "nothing")
    os.mkfifo(vault / "pipe.md")
    with open_source(vault) as files:
        assert files.names == ("npcs/Odo.md",)
        assert files.left_out == ("gone.md", "link.md", "loop", "pipe.md")


def test_file_replaced_by_link_or_pipe_after_listing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret")
    vault = tmp_path / "vault"
    vault.mkdir()
    for name in ("link.md", "pipe.md", "gone.md"):
        (vault / name).write_text("x")
    with open_source(vault) as files:
        for path in vault.iterdir():
            path.unlink()
        (vault / "link.md").symlink_to(tmp_path / "outside.md")
        os.mkfifo(vault / "pipe.md")
        assert files.read("pipe.md") == b""  # not waited for
        for name in ("link.md", "gone.md"):
            with pytest.raises(InvalidInput, match=name):
                files.read(name)


def test_unreadable_folder_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vault/closed").mkdir(parents=True)
    walk = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return walk(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with open_source(tmp_path / "vault") as files:
        assert files.left_out == ("closed",)


def test_what_is_left_out_is_a_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/link").symlink_to("/etc")
    monkeypatch.setitem(READERS, "markdown", lambda files: SourceWorld("markdown", "v", "v", ()))
    (remark,) = read_source("markdown", tmp_path / "vault").remarks
    assert remark.endswith(": link")


def test_file_that_expands_too_much_is_refused(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "a.zip", {"bomb.json": bytes(40 << 20), "fine.json": bytes(1 << 20)})
    assert "200 times" in refusal(bomb, lambda files: files.read("bomb.json"))
    with open_source(bomb) as files:
        assert len(files.read("fine.json")) == 1 << 20


def test_files_that_expand_to_too_much_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MOST_BYTES", 3 << 20)
    source = zipped(tmp_path / "a.zip", {f"{n}.json": os.urandom(1 << 10) * 1024 for n in range(4)})
    with open_source(source) as files:
        for _again in range(3):
            assert [len(files.read(f"{n}.json")) for n in range(3)] == [1 << 20] * 3
        with pytest.raises(InvalidInput, match=r"more than 3 MB, at '3\.json'"):
            files.read("3.json")


def test_copy_of_bomb_is_refused_and_deleted(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "a.zip", {"data/actors/1.ldb": bytes(40 << 20)})

    def copied(files: SourceFiles) -> None:
        with files.folder("data/actors"):
            raise AssertionError

    assert "1.ldb" in refusal(bomb, copied)
    assert left_temporary() == []


def test_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_MOST_LINE", 1000)
    (tmp_path / "a.db").write_bytes(b"x" * 1000 + b"\n" + b"y" * 1001)
    with open_source(tmp_path / "a.db") as files:
        lines = files.lines("a.db")
        with pytest.raises(InvalidInput, match="line"):
            list(lines)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MOST_FILES", 3)
    assert "more than 3 files" in refusal(zipped(tmp_path / "a.zip", {f"{n}.md": b"" for n in range(4)}))


def test_huge_table_of_contents_is_refused_unread(tmp_path: Path) -> None:
    source = zipped(tmp_path / "a.zip", {"a.md": b"x"})
    end = 65 << 20
    with source.open("r+b") as file:
        file.truncate(end)
        file.seek(end)
        file.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 60_000, 60_000, end, 0, 0))
    assert "table of contents" in refusal(source)


def test_encrypted_zip_says_what_to_do(tmp_path: Path) -> None:
    source = zipped(tmp_path / "a.zip", {"a.md": b"x"})
    data = bytearray(source.read_bytes())
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    source.write_bytes(data)
    assert "encrypted: unpack it" in refusal(source)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compression_is_refused(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("a.md", "x")
    assert "unusual" in refusal(tmp_path / "a.zip")


def test_zip_inside_zip_is_a_file(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", {"../evil": b"x"}).read_bytes()
    with open_source(zipped(tmp_path / "a.zip", {"inner.zip": inner})) as files:
        assert files.names == ("inner.zip",)
        assert files.read("inner.zip") == inner


def test_names_of_old_programs_are_read(tmp_path: Path) -> None:
    source = zipped(tmp_path / "a.zip", {"n_cs\\M__ller.md": b"x", "Z__rich.md": b"y"})
    data = source.read_bytes().replace(b"n_cs\\M__ller", b"n_cs\\M\xc3\xbcller").replace(b"Z__rich", b"Z\x81_rich")
    source.write_bytes(data)
    with open_source(source) as files:
        assert files.names == ("Z\u00fc_rich.md", "n_cs/M\u00fcller.md")


def test_name_that_is_no_text_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    for byte in (b"\xff", b"\xfe"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/vault/" + byte + b".md")).write_text("x")
    with open_source(tmp_path / "vault") as files:
        (name,) = files.names
        assert name.encode() and files.read(name) == b"x"
        assert files.left_out == (name,)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_last_of_several_files_with_the_same_name_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.md", "old")
        archive.writestr("a.md", "new")
        archive.writestr("A.md", "other")
    with open_source(tmp_path / "a.zip") as files:
        assert (files.read("a.md"), files.read("A.md"), files.left_out) == (b"new", b"other", ("a.md",))


def test_progress_counts_what_readers_read(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    source = zipped(tmp_path / "a.zip", {"a.json": bytes(100), "b.json": bytes(200), "map.webp": bytes(9_999)})
    with open_source(source, lambda read, of: told.append((read, of))) as files:
        files.read("a.json")
        assert told == [(100, 300)]
    assert told[-1] == (300, 300)


def test_copies_of_killed_processes_are_deleted(tmp_path: Path) -> None:
    place = Path(tempfile.gettempdir())
    old, new, other = (place / name for name in ("glyphoxa-import-old", "glyphoxa-import-new", "other"))
    for folder in (old, new, other):
        folder.mkdir()
        (folder / "CURRENT").touch()
    long_ago = time.time() - 48 * 3600
    for folder in (old, other):
        os.utime(folder, (long_ago, long_ago))
    with open_source(zipped(tmp_path / "a.zip", {"a": b""})) as files, files.folder(""):
        assert (old.exists(), new.exists(), other.exists()) == (False, True, True)


@pytest.mark.parametrize("kind", ["foundry", "roll20"])
def test_json_of_too_many_values_is_refused(kind: ImportKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "MOST_VALUES", 1_000)
    path = tmp_path / "campaign.json"
    path.write_text('{"characters": [' + "[]," * 1_000 + "[]]}")
    with pytest.raises(InvalidInput, match="more than 1,000 values"):
        read_source(kind, path)


def test_missing_extra_is_named_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glyphoxa.providers.extras.module_is_there", lambda name: name != "selectolax")
    with pytest.raises(NotInstalled, match=r"import markdown needs 'selectolax', .*glyphoxa\[exchange\]"):
        read_source("markdown", Path("nowhere"))


def test_zip_of_many_small_files_that_expands_too_much_is_refused(tmp_path: Path) -> None:
    bomb = zipped(tmp_path / "a.zip", {f"{n}.md": b"[[" * (1 << 19) for n in range(40)})
    refused = refusal(bomb, lambda files: [files.read(name) for name in files.names])
    assert refused == f"{bomb} expands to over 200 times its size: it is no export"


def test_file_too_large_for_one_piece_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_MOST_WHOLE", 1 << 20)
    (tmp_path / "campaign.json").write_bytes(b" " * ((1 << 20) + 1))
    read: list[int] = []
    with pytest.raises(InvalidInput, match="too large"), open_source(tmp_path, lambda n, _: read.append(n)) as files:
        files.read("campaign.json")
    assert read == []


def test_zip_that_does_not_begin_like_one_is_damaged(tmp_path: Path) -> None:
    source = tmp_path / "vault.zip"
    source.write_bytes(b"<html>Please sign in</html>")
    assert refusal(source) == f"{source} is a damaged zip: it does not begin like one"
