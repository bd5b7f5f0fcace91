"""`glyphoxa models voices`, as a DM types it: real voices here, and a cloud's through its own client."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from benchmarks.servers.local import tone
from benchmarks.servers.openai import OpenAiServer
from demo.recordings import read_recording
from glyphoxa.adapters.local.hibari_voice import PRESETS
from glyphoxa.cli.main import main
from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ


async def run(*arguments: object) -> int:
    """The command line, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(main, ["models", "voices", *(str(argument) for argument in arguments)])


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the programs of this machine are: none that plays."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def a_player(folder: Path, name: str, does: str) -> None:
    program = folder / name
    program.write_text(f"#!{shutil.which('sh', path=os.defpath)}\n{does}\n")
    program.chmod(0o755)


async def test_every_preset_is_listed_with_what_it_is_like(capsys: pytest.CaptureFixture[str]) -> None:
    assert await run() == 0
    lines = capsys.readouterr().out.splitlines()
    for name, preset in PRESETS.items():
        assert preset.about
        assert any(line.split(maxsplit=2) == [name, "en", preset.about] for line in lines)


async def test_where_nothing_plays_a_sample_is_written_and_its_place_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await run("gruff_smith", "--text", "Mind the sparks.") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'voice-gruff_smith.wav'}\n"
    found = read_recording(tmp_path / "voice-gruff_smith.wav", rate_hz=OUTPUT_RATE_HZ)
    assert found.duration_ms > 400 and any(found.pcm)


async def test_it_is_played_where_something_plays(
    tmp_path: Path, programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_player(programs, "paplay", "exit 1")  # there, and without a device
    a_player(programs, "aplay", f'while read -r line; do :; done < "$2"; echo "$2" > {tmp_path / "played"}')
    assert await run("whisper", "--text", "Hush.") == 0
    assert (tmp_path / "played").read_text().strip().endswith("voice.wav")
    assert capsys.readouterr().out == "" and not (tmp_path / "voice-whisper.wav").exists()


async def test_a_file_that_is_named_is_written_and_nothing_is_played(tmp_path: Path, programs: Path) -> None:
    a_player(programs, "aplay", f"echo > {tmp_path / 'played'}")
    assert await run("ogre", "--text", "Hm.", "--out", tmp_path / "ogre.wav") == 0
    assert (
        read_recording(tmp_path / "ogre.wav", rate_hz=OUTPUT_RATE_HZ).duration_ms > 0
        and not (tmp_path / "played").exists()
    )


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        (("ogr",), "no voice preset 'ogr', did you mean 'ogre'?"),
        (("ogre", "--text", " "), "--text has 1 characters; valid: 1 to 1000"),
        (("ogre", "--text", "?!"), "nothing in --text has a sound"),
        (("ogre", "--text", "Hm.", "--out", "nowhere/x.wav"), "nowhere/x.wav cannot be written"),
    ],
)
async def test_a_mistake_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], mistake: str
) -> None:
    assert await run(*arguments) == 1
    told = capsys.readouterr().err
    assert mistake in told and told.count("\n") == 1


async def test_a_voice_of_a_cloud_is_heard_through_the_service_that_a_table_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with OpenAiServer(key="secret-1234") as server:
        settings = tmp_path / "cloud.yaml"
        settings.write_text(f"providers:\n  tts: {{name: openai, base_url: '{server.base_url}', voice: onyx}}\n")
        monkeypatch.setenv("OPENAI_API_KEY", "secret-1234")
        assert await run("--config", settings) == 0
        assert "Default: onyx" in capsys.readouterr().out
        assert await run("onyx", "--config", settings, "--text", "Well met.") == 0
        found = read_recording(tmp_path / "voice-onyx.wav", rate_hz=OUTPUT_RATE_HZ)
        assert found.pcm == tone("Well met.", rate_hz=OUTPUT_RATE_HZ)
        monkeypatch.setenv("OPENAI_API_KEY", "another-5678")
        assert await run("onyx", "--config", settings, "--text", "Well met.") == 1
        told = capsys.readouterr().err
        assert "the voice failed" in told and "another-5678" not in told
        monkeypatch.delenv("OPENAI_API_KEY")
        assert await run("onyx", "--config", settings) == 1
        assert "environment variable OPENAI_API_KEY is not set" in capsys.readouterr().err
