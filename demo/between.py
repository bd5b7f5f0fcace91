"""Between two evenings: what the game master asks `glyphoxa` for, and what it answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from glyphoxa.domain.ids import CampaignId

_WITHIN_S: Final = 60.0
_ASKED: Final = (
    ("Previously on, for the players", ("show", "recap", "{session}")),
    ("The same for the game master", ("show", "recap", "{session}", "--dm", "--tokens", "300")),
    ("Facts that need review", ("facts", "review")),
)


def between(config: Path, campaign: CampaignId, session: str, note: Callable[[str], None]) -> None:
    """Ask, and show each question with its answer. What is not answered is told, and spoils no evening."""
    for title, words in _ASKED:
        asked = [word.format(session=session) for word in words]
        note("")
        note(f"{title}: glyphoxa {' '.join(asked)}")
        command = [sys.executable, "-m", "glyphoxa.cli.main", *asked, "--campaign", campaign, "--config", str(config)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
        except subprocess.TimeoutExpired:
            note("  no answer within a minute")
            continue
        for line in (done.stdout if done.returncode == 0 else done.stderr).splitlines():
            note(f"  {line}")
