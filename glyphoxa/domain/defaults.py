"""Default values of settings that the objects behind them use, too."""

from __future__ import annotations

from typing import Final

GAP_MS: Final = 300
"""Silence between the replies of two NPCs."""
BARGE_IN_MS: Final = 250
"""How long a player must speak to interrupt an NPC."""
SUMMARY_TOKENS: Final = 200
"""Length of a summary."""
CHECK_EVERY: Final = 20
"""Utterances after which the chronicle judges them again."""
CHECK_MINUTES: Final = 30
"""Time between two comparisons of the spool with the transcript log."""
