"""How long a test waits for what must come."""

from __future__ import annotations

DEADLINE_S = 120
"""Only there to end a hang: a machine that does much else at once is slow, and no test may fail by that."""
DEADLINE_MS = 1_000 * DEADLINE_S
