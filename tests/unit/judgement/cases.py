"""Sentences of replies from `replies.toml`, with what becomes of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CASES = tomllib.loads(Path(__file__).with_name("replies.toml").read_text("utf-8"))


def wrong_ones(table: str, kind: str, is_right: Callable[..., bool]) -> list[Any]:
    """Return the cases of a kind that are not decided as they must be."""
    cases = _CASES[table][kind]
    return [case for case in cases if not is_right(*(case if isinstance(case, list) else [case]))]
