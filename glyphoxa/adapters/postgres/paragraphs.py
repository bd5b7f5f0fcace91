from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources


def load_paragraphs(file: str) -> Mapping[str, str]:
    """The queries of `sql/<file>.sql` by name. A paragraph begins with a line `-- name --`."""
    text = resources.files("glyphoxa.adapters.postgres").joinpath("sql", f"{file}.sql").read_text("utf-8")
    parts = re.split(r"^-- (\w+) --$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (body.strip() for body in parts[2::2]), strict=True))
