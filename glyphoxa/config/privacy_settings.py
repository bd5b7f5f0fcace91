from __future__ import annotations

from typing import Annotated

from pydantic import Field

from glyphoxa.config.sections import Section


class PrivacySettings(Section):
    """How long talk is kept.

    Attributes:
        retain_days: What was said longer ago is erased for good when a table opens, and once a day by
            `glyphoxa worker`, with what rests on it alone. Left out: it is kept until somebody erases it.
    """

    retain_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
