"""A vault of Markdown notes, with what only the game master may see."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

CACHE_TEXT = "Ysolde keeps the Veiled Cache beneath the mill."
NOTES = {
    "NPCs/Korvald Stane.md": "---\ntype: npc\naliases: [the Quartermaster]\n---\nKorvald Stane keeps the stores.\n",
    "NPCs/Ysolde Marr.md": f"---\ntype: npc\nhidden: true\n---\n{CACHE_TEXT}\n",
    "Places/Gull Tower.md": "---\ntype: location\n---\nGull Tower stands north of the harbour.\n",
    "Places/The Old Mill.md": "---\ntype: location\n---\nThe Old Mill has no wheel.\n",
}


def a_vault(directory: Path) -> Path:
    """Write the vault as a folder called `brinewatch`."""
    vault = directory / "brinewatch"
    for name, text in NOTES.items():
        file = vault / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return vault


def a_zip(vault: Path) -> Path:
    """Write a zip of a folder beside it."""
    path = vault.with_suffix(".zip")
    with ZipFile(path, "w") as file:
        for each in sorted(vault.rglob("*")):
            if each.is_file():
                file.write(each, each.relative_to(vault).as_posix())
    return path
