"""What a prompt consists of, as `glyphoxa context` and `glyphoxa turns` show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glyphoxa.dm.lines import IndentedLine
from glyphoxa.domain.turn import PromptPart


def parts_shown(parts: Sequence[PromptPart], *, depth: int = 0) -> Iterator[IndentedLine]:
    """Each part with its tokens, where it is from, and how long it took."""
    if not parts:
        return
    yield IndentedLine(f"its prompt: about {sum(part.tokens for part in parts)} tokens", depth)
    for part in parts:
        took = "" if part.took_us is None else f", {part.took_us / 1_000:.1f} ms"
        yield IndentedLine(f"{part.name}: {part.tokens or 'nothing'}, {part.source}{took}", depth + 1)
