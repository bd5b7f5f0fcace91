"""`glyphoxa campaign new`: a first campaign file, ready to be played."""

from __future__ import annotations

import argparse
from pathlib import Path

from glyphoxa.cli.scope import CONFIG
from glyphoxa.cli.verb import argument
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.campaign_template import Beginning, template
from glyphoxa.domain.errors import InvalidInput

NEW = (
    argument("file", type=Path, help="the campaign file to begin (YAML)"),
    argument("--name", metavar="NAME", help="of the campaign; default: made of the file's name"),
    argument("--language", default="en", metavar="TAG", help="such as en or de; default en"),
    argument("--npc", default="Marta", metavar="NAME", help="of the first NPC; default Marta"),
    argument("--player", default="Tamsin", metavar="NAME", help="of the first player's character; default Tamsin"),
    CONFIG,
)


async def new(options: argparse.Namespace) -> int:
    """Write the file.

    Raises:
        InvalidInput: There is such a file, or it cannot be written, or a name cannot be one.
    """
    path: Path = options.file
    name = options.name or path.stem.replace("-", " ").replace("_", " ").strip().title() or "My campaign"
    text = template(Beginning(name, options.language, options.npc, options.player))
    read_campaign(path, text)  # what was given may not be a name or a language
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{path} is there already; nothing was written. Another name begins another file") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror}") from None
    config = f" --config {options.config}" if options.config else ""
    print(f"{path} is a campaign with one NPC, {options.npc}, and one player, {options.player}")
    print(f"play it alone on this machine:  glyphoxa serve --open{config} --campaign {path}")
    print("then change it in the desk, on its page Campaign, or with an editor (docs/campaign-file.md)")
    return 0
