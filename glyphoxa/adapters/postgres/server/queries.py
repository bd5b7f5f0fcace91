from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources


@cache
def load_queries(file: str) -> Mapping[str, str]:
    """The queries of `<file>.sql` in this package ("world/graph") by name. A query begins with a line `-- name --`."""
    text = resources.files("glyphoxa.adapters.postgres").joinpath(f"{file}.sql").read_text("utf-8")
    parts = re.split(r"^-- (\w+) --$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (body.strip() for body in parts[2::2]), strict=True))
