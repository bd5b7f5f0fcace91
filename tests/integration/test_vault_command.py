"""`campaign vault` and `show recap --markdown`, as a DM types them: what is written, and what is left as it is."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from glyphoxa.domain.ids import CampaignId
from glyphoxa.plugins import exports
from glyphoxa.plugins.exports import MANIFEST, VaultChanges, write_vault
from glyphoxa.plugins.imports.readers import read_source
from tests.support.command_line import CommandLine

TOWN = CampaignId("town")
NOTES = {"npc/Grimjaw.md": "# Grimjaw\n", "npc/Mirelle.md": "# Mirelle\n", "The town.md": "# The town\n"}


def write(folder: Path, notes: dict[str, str]) -> VaultChanges:
    return write_vault(folder, notes, campaign=TOWN, readers="players")


def held_in(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


# From the database


async def test_vault_follows_the_campaign_and_keeps_edited_notes(cli: CommandLine, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    assert "14 notes written, 0 unchanged, 0 removed" in await cli.told("campaign", "vault", vault)
    first = held_in(vault)
    assert "Elowen never goes near the water" in first["Sessions/Session 1 2096-10-02.md"]
    assert "[[The Anvil]]" in first["npc/Grimjaw.md"]
    assert "0 notes written, 14 unchanged, 0 removed" in await cli.told("campaign", "vault", vault)
    assert held_in(vault) == first

    (vault / "npc/Elowen.md").write_text("My own words.")
    (vault / "item/Vaelith.md").unlink()
    (vault / "My plans.md").write_text("Burn it down.")
    await cli.told("entity", "hide", "Elowen")
    await cli.told("entity", "hide", "The Anvil")
    told = await cli.told("campaign", "vault", vault)
    assert "1 removed" in told
    assert "somebody else wrote or edited it: npc/Elowen.md" in told
    after = held_in(vault)
    assert after["npc/Elowen.md"] == "My own words."
    assert after["My plans.md"] == "Burn it down."
    assert after["item/Vaelith.md"] == first["item/Vaelith.md"]
    assert "location/The Anvil.md" not in after
    ours = " ".join(text for path, text in after.items() if path not in ("npc/Elowen.md", "My plans.md"))
    assert "Anvil" not in ours
    assert "Elowen" not in ours


async def test_dm_vault_has_secrets_in_callouts_and_the_transcript(cli: CommandLine, tmp_path: Path) -> None:
    await cli.told("campaign", "vault", tmp_path / "dm", "--for", "dm", "--transcript")
    await cli.told("campaign", "vault", tmp_path / "players")
    dm, players = held_in(tmp_path / "dm"), held_in(tmp_path / "players")
    assert "> - secret: Grimjaw forged the chain" in dm["npc/Grimjaw.md"]
    assert "forged the chain" not in " ".join(players.values())
    assert "**Tamsin:** What a night." in dm["Sessions/Session 2 2096-10-03.md"]
    assert "What a night" not in " ".join(players.values())
    assert (tmp_path / "dm/npc/Grimjaw.md").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--transcript"], "it needs --for dm"),
        (["--for", "dm"], "holds the vault of 'saltmere' for players, not of 'saltmere' for the game master"),
    ],
    ids=["transcript", "readers"],
)
async def test_secrets_never_enter_a_players_vault(
    cli: CommandLine, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    await cli.told("campaign", "vault", tmp_path / "vault")
    before = held_in(tmp_path / "vault")
    assert problem in await cli.problem("campaign", "vault", tmp_path / "vault", *arguments)
    assert held_in(tmp_path / "vault") == before


async def test_recap_is_written_as_markdown(cli: CommandLine, tmp_path: Path) -> None:
    shown = await cli.told("show", "recap", "1", "--markdown")
    assert shown.startswith("# Session 1\n\n2096-10-02, 07:07 to 07:09.\n\n- Tamsin said: “Elowen never")
    file = tmp_path / "recap.md"
    assert "recap.md: 2 lines" in await cli.told("show", "recap", "1", "--markdown", "-o", file)
    assert file.read_text() == shown
    assert "exists already" in await cli.problem("show", "recap", "1", "-o", file)
    assert file.read_text() == shown


async def test_vault_is_read_again_with_types_aliases_relations_and_secrets(cli: CommandLine, tmp_path: Path) -> None:
    await cli.told("entity", "hide", "Tidewhisper")
    await cli.told("campaign", "vault", tmp_path / "notes", "--for", "dm")
    read = {each.name: each for each in read_source("markdown", tmp_path / "notes").documents}
    smith = read["Grimjaw"]
    assert (smith.type, set(smith.aliases), smith.hidden) == ("npc", {"the smith", "master smith"}, False)
    assert {("npc/Elowen.md", "KNOWS"), ("location/The Anvil.md", "LOCATED_AT")} <= {
        (link.target, link.type) for link in smith.links if not link.hidden
    }
    assert ["forged the chain" in each.text for each in smith.texts if each.hidden] == [True]
    assert not any("forged the chain" in each.text for each in smith.texts if not each.hidden)
    assert read["The Anvil"].type == "location"
    assert read["Tidewhisper"].hidden


# The folder


def test_killed_run_is_finished_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, NOTES)
    newer = {path: f"{text}More.\n" for path, text in NOTES.items() if path != "The town.md"}
    newer["npc/Elowen.md"] = "# Elowen\n"
    replace, n_left = exports.replace_file, 0

    def replace_some(path: Path, content: bytes, **how: Any) -> None:
        nonlocal n_left
        if n_left == 0:
            raise KeyboardInterrupt
        n_left -= 1
        replace(path, content, **how)

    for n in range(4):
        n_left = n
        monkeypatch.setattr(exports, "replace_file", replace_some)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, newer)
        monkeypatch.setattr(exports, "replace_file", replace)
    done = write(tmp_path, newer)
    assert done.kept == []
    assert held_in(tmp_path) == newer


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    vault, outside = tmp_path / "vault", tmp_path / "outside"
    for folder in (vault, outside):
        folder.mkdir()
    (vault / "npc").symlink_to(outside)
    (outside / "target.md").write_text("Mine.")
    (vault / "The town.md").symlink_to(outside / "target.md")
    assert write(vault, NOTES).kept == sorted(NOTES)
    assert held_in(outside) == {"target.md": "Mine."}


@pytest.mark.parametrize(
    "path", ["../mine.md", "/etc/hostname", "a\0b", "npc/../../mine.md", "npc", "fifo", "Mine.md/x.md"]
)
def test_forged_manifest_removes_nothing(tmp_path: Path, path: str) -> None:
    vault, mine = tmp_path / "vault", tmp_path / "mine.md"
    write(vault, NOTES)
    mine.write_text("Mine.")
    (vault / "Mine.md").write_text("Mine.")
    os.mkfifo(vault / "fifo")
    manifest = json.loads((vault / MANIFEST).read_text())
    manifest["notes"][path] = [sha256(b"Mine.").hexdigest(), "-", "", "None"]
    (vault / MANIFEST).write_text(json.dumps(manifest))
    assert write(vault, {}).n_removed == len(NOTES)
    assert mine.read_text() == "Mine."
    assert held_in(vault) == {"Mine.md": "Mine."}


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("{", "lists no notes of a vault"),
        ('{"version": 2, "campaign": "town", "readers": "players", "notes": {}}', "lists no notes of a vault"),
        ('{"campaign": "other", "readers": "players"}', "vault of 'other' for players, not of 'town'"),
    ],
    ids=["broken", "newer", "other"],
)
def test_folder_of_another_vault_is_left_alone(tmp_path: Path, manifest: str, problem: str) -> None:
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(exports.InvalidInput, match=problem):
        write(tmp_path, NOTES)
    assert held_in(tmp_path) == {}


def test_folder_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("Mine.")
    with pytest.raises(exports.InvalidInput, match="file: the vault cannot be written: File exists"):
        write(file, NOTES)
    assert file.read_text() == "Mine."


def test_renamed_note_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    write(tmp_path, NOTES)
    renamed = {path.replace("Grimjaw", "grimjaw"): text for path, text in NOTES.items()}
    assert write(tmp_path, renamed) == VaultChanges(1, 2, 1, [])
    assert held_in(tmp_path) == renamed
