"""Weights are data: pinned, verified, and refused when a byte differs."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest

from glyphoxa.adapters.weights.download import (
    Artefact,
    ModelHub,
    PartFile,
    ShownProgress,
    WeightFile,
    naming_disk_errors,
    part_of,
)
from glyphoxa.adapters.weights.store import HashCache, WeightStore, own_manifest
from glyphoxa.app.models import needed
from glyphoxa.cli import setup
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import Corrupt, NotFound, Unavailable

MODEL = bytes(range(256)) * 40
WORDS = b"hello\nworld\n" * 30
NOWHERE = ModelHub("http://127.0.0.1:9")


def weight(name: str, content: bytes) -> WeightFile:
    return WeightFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


def manifest(**artefacts: tuple[WeightFile, ...]) -> dict[str, Artefact]:
    return {
        name: Artefact(what="a test", licence="CC0-1.0", publisher="us", files=files)
        for name, files in artefacts.items()
    }


EARS = manifest(ears=(weight("model.bin", MODEL), weight("words.txt", WORDS)), voice=(weight("voice.bin", WORDS),))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightStore:
    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    return WeightStore(tmp_path / "my cache", manifest=EARS, hub=NOWHERE)


def put(directory: Path, **contents: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (directory / name.replace("_", ".")).write_bytes(content)
    return directory


def states(store: WeightStore) -> dict[str, str]:
    return {status.name: status.state for status in store.status()}


def test_the_own_manifest_pins_every_file_and_names_its_licence_and_a_source() -> None:
    artefacts = own_manifest()
    assert set(needed(Settings())) <= set(artefacts)
    for artefact in artefacts.values():
        assert artefact.languages
        assert artefact.licence in {"Apache-2.0", "MIT"}
        for file in artefact.files:
            assert sum(piece.size for piece in file.packages) == file.size, "its packages make up the file"


def test_the_own_manifest_names_no_package_index() -> None:
    where = Path(setup.__file__).parents[1] / "adapters" / "weights"
    assert not [path for path in where.iterdir() if path.suffix in {".py", ".yaml"} and "pypi" in path.read_text()]


@pytest.mark.parametrize(
    ("name", "package", "problem"),
    [
        ("a", {"package": "../p"}, "pattern"),
        ("a", {"version": "-r"}, "pattern"),
        ("../../evil.bin", {}, "pattern"),
    ],
)
def test_file_that_a_manifest_may_not_name_is_refused(name: str, package: dict[str, object], problem: str) -> None:
    part = {"package": "p", "version": "1", "member": "m", "size": 4, **package}
    with pytest.raises(ValueError, match=problem):
        WeightFile.model_validate({"name": name, "size": 4, "sha256": "0" * 64, "packages": [part]})


def test_an_unknown_artefact_is_answered_with_the_nearest_name(store: WeightStore) -> None:
    with pytest.raises(NotFound, match="did you mean 'ears'"):
        store.path("eers")


def test_a_missing_file_says_how_to_get_it(store: WeightStore) -> None:
    with pytest.raises(NotFound, match="glyphoxa models fetch ears"):
        store.path("ears")


def test_an_artefact_of_one_file_is_that_file_and_of_several_their_directory(store: WeightStore) -> None:
    put(store.directory / "ears", model_bin=MODEL, words_txt=WORDS)
    put(store.directory / "voice", voice_bin=WORDS)
    assert store.path("ears") == store.directory / "ears"
    assert store.path("voice") == store.directory / "voice" / "voice.bin"


def test_a_file_counts_as_ready_once_it_was_hashed(store: WeightStore) -> None:
    put(store.directory / "voice", voice_bin=WORDS)
    assert states(store) == {"ears": "missing", "voice": "unverified"}
    store.path("voice")
    assert states(store)["voice"] == "ready"


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"J" + WORDS[1:], r"voice\.bin: its SHA-256 is .*removed"), (WORDS[:-1], "359 bytes instead of 360")],
    ids=["a changed byte", "truncated"],
)
def test_a_wrong_file_is_refused_and_removed(store: WeightStore, content: bytes, problem: str) -> None:
    file = put(store.directory / "voice", voice_bin=WORDS) / "voice.bin"
    store.path("voice")
    file.write_bytes(content)
    with pytest.raises(Corrupt, match=problem):
        store.path("voice")
    assert not file.exists()


def test_verify_finds_what_a_cached_hash_hides(store: WeightStore) -> None:
    file = put(store.directory / "voice", voice_bin=WORDS) / "voice.bin"
    store.path("voice")
    file.write_bytes(b"J" + WORDS[1:])
    HashCache(store.directory / ".verified").put(file, EARS["voice"].files[0].sha256)
    store.path("voice")
    with pytest.raises(Corrupt):
        list(store.verify(["voice"]))


@pytest.mark.parametrize("folder", ["ears", "."])
def test_a_given_directory_is_used_in_place(
    tmp_path: Path, store: WeightStore, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = put(tmp_path / "given" / folder, model_bin=MODEL, words_txt=WORDS)
    monkeypatch.setenv("GLYPHOXA_MODELS", str(tmp_path / "given"))
    mine = WeightStore(store.directory, manifest=EARS, hub=NOWHERE)
    assert mine.ensure(["ears"])["ears"].resolve() == given.resolve()
    assert not (store.directory / "ears").exists()


def test_a_wrong_file_in_a_given_directory_is_refused_but_left_alone(tmp_path: Path, store: WeightStore) -> None:
    given = put(tmp_path / "given", voice_bin=WORDS[::-1])
    with pytest.raises(Corrupt, match="replace or remove it"):
        WeightStore(store.directory, given=given, manifest=EARS, hub=NOWHERE).ensure(["voice"])
    assert (given / "voice.bin").read_bytes() == WORDS[::-1]


def test_files_can_be_copied_from_a_directory_or_a_single_file(tmp_path: Path, store: WeightStore) -> None:
    elsewhere = put(tmp_path / "stick", model_bin=MODEL, words_txt=WORDS, voice_bin=WORDS)
    store.ensure(["ears"], copy_from=elsewhere)
    store.ensure(["voice"], copy_from=elsewhere / "voice.bin")
    assert states(store) == {"ears": "ready", "voice": "ready"}


def test_a_wrong_copy_is_refused_and_nothing_is_left_of_it(tmp_path: Path, store: WeightStore) -> None:
    with pytest.raises(Corrupt, match="the received file is wrong"):
        store.ensure(["voice"], copy_from=put(tmp_path / "stick", voice_bin=WORDS.upper()))
    assert list((store.directory / "voice").iterdir()) == []


def test_without_any_source_the_error_says_what_to_do(store: WeightStore) -> None:
    with pytest.raises(
        Unavailable, match=r"^voice: no source delivered voice\.bin: there is none\nPut voice\.bin into a directory"
    ):
        store.ensure(["voice"])


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = WeightFile(name="huge.bin", size=10**18, sha256="0" * 64)
    with pytest.raises(Unavailable, match="this disk needs"):
        WeightStore(tmp_path, manifest=manifest(huge=(huge,)), hub=NOWHERE).ensure(["huge"])


def test_a_disk_that_fills_up_meanwhile_gives_one_clear_error(store: WeightStore) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    directory = store.directory / "voice"
    directory.mkdir(parents=True)
    part_of(directory / "voice.bin").symlink_to("/dev/full")
    part = PartFile(directory / "voice.bin", weight("voice.bin", WORDS), ShownProgress(io.StringIO()))
    with pytest.raises(Unavailable, match="the disk is full"), naming_disk_errors(directory):
        part.append(iter([WORDS]))


def test_a_directory_that_cannot_be_written_gives_one_clear_error(store: WeightStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unavailable, match=r"file.*: Not a directory; .* set models.dir to another directory"):
        WeightStore(tmp_path / "file" / "below", manifest=EARS, hub=NOWHERE).ensure(["voice"])


def test_verified_weights_are_used_from_a_read_only_directory(store: WeightStore) -> None:
    put(store.directory / "voice", voice_bin=WORDS)
    store.path("voice")
    places = [store.directory, *store.directory.iterdir()]
    for place in places:
        place.chmod(0o555)
    try:
        assert store.ensure(["voice"]) == {"voice": store.directory / "voice" / "voice.bin"}
    finally:
        for place in places:
            place.chmod(0o755)


def test_cached_hash_does_not_outlive_a_change(tmp_path: Path) -> None:
    file = put(tmp_path, voice_bin=WORDS) / "voice.bin"
    hashes = HashCache(tmp_path / "hashes")
    assert hashes.known(file) == ""
    assert hashes.sha256_of(file) == hashes.known(file) == EARS["voice"].files[0].sha256
    os.utime(file, ns=(0, 0))
    assert hashes.known(file) == ""


def test_progress_in_a_pipe_is_a_line_every_five_seconds_and_one_at_the_end() -> None:
    out, now_s = io.StringIO(), 0.0
    with ShownProgress(out, now_s=lambda: now_s) as progress:
        for megabytes in range(13):  # one each second, of two files of 6 MB
            progress.at(Path("model.bin"), megabytes * 1_000_000, of=12_000_000)
            now_s += 1.0
    assert out.getvalue().splitlines() == [
        "models: 0 %, 0.0 of 12.0 MB, 12.0 MB remain",
        "models: 41 %, 5.0 of 12.0 MB, 7.0 MB and 0:00:07 remain",
        "models: 83 %, 10.0 of 12.0 MB, 2.0 MB and 0:00:02 remain",
        "models: 100 %, 12.0 of 12.0 MB, 0.0 MB remain",
    ]


def test_progress_says_nothing_when_nothing_is_missing(store: WeightStore) -> None:
    put(store.directory / "voice", voice_bin=WORDS)
    out = io.StringIO()
    with ShownProgress(out) as progress:
        store.ensure(["voice"], progress)
    assert out.getvalue() == ""


def test_progress_on_a_terminal_is_one_bar_over_all_files(store: WeightStore, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    with ShownProgress(screen) as progress:
        store.ensure(["ears", "voice"], progress, copy_from=stick_of_all(tmp_path))
    bars = [line for line in screen.getvalue().splitlines() if "models" in line]
    assert "11.0/11.0 kB" in bars[-1]
    assert {line.count("models") for line in bars} == {1}


def test_progress_counts_all_files_and_what_is_here_of_them(store: WeightStore, tmp_path: Path) -> None:
    put(store.directory / "ears", model_bin=MODEL)
    (store.directory / "ears" / "words.txt.part").write_bytes(WORDS[:60])
    out = io.StringIO()
    with ShownProgress(out, now_s=lambda: 0.0) as progress:
        store.ensure(["ears", "voice"], progress, copy_from=stick_of_all(tmp_path))
    assert out.getvalue().splitlines() == [
        "models: 8 %, 0.0 of 0.0 MB, 0.0 MB remain",
        "models: 100 %, 0.0 of 0.0 MB, 0.0 MB remain",
    ]


def stick_of_all(tmp_path: Path) -> Path:
    return put(tmp_path / "stick", model_bin=MODEL, words_txt=WORDS, voice_bin=WORDS)
