"""A refusal whose words hold values: a page has words of its own for it, in its reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from glyphoxa.domain.errors import InvalidInput


class Refusal(InvalidInput):
    """
    Args:
        values: What the page's words for it name: see `error.` in `glyphoxa/web/static/words`.
    """

    def __init__(self, message: str, **values: str | int) -> None:
        super().__init__(message)
        self.values = values


def values_of(error: Exception) -> Mapping[str, str | int]:
    return error.values if isinstance(error, Refusal) else {}
