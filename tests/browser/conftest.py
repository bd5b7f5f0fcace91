from __future__ import annotations

from playwright.async_api import expect

from tests.support.patience import DEADLINE_MS

# A machine that does much else at once is slow; waiting longer costs nothing when all is well.
expect.set_options(timeout=DEADLINE_MS)
