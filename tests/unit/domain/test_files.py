"""Files that are written completely or not at all."""

from pathlib import Path

import pytest

from glyphoxa.domain.files import PRIVATE, new_version, replace_file


class Broken(Exception):
    pass


def test_replaced_file_holds_the_new_content_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("what was there before")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_failed_block_leaves_the_old_version_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(Broken), new_version(path) as file:
        file.write(b"half of it")
        raise Broken
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_old_version_is_there_while_the_block_runs(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with new_version(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_private_file_is_for_its_user_alone_whatever_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    replace_file(path, b"new", mode=PRIVATE)
    assert path.stat().st_mode & 0o777 == PRIVATE


def test_existing_file_is_not_replaced_if_it_must_not_be(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(FileExistsError), new_version(path, replaces=False):
        raise AssertionError("the block does not begin")
    assert path.read_text() == "old"


def test_file_that_appears_during_the_block_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileExistsError), new_version(path, replaces=False) as file:
        file.write(b"new")
        path.write_text("of somebody else")
    assert path.read_text() == "of somebody else"
    assert list(tmp_path.iterdir()) == [path]
