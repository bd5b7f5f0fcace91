"""What a prompt consists of, as `glyphoxa show context` and `glyphoxa show turns` show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from glyphoxa.context.composition import ComposedPrompt
from glyphoxa.context.wording import recalled_line
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


def composed_shown(composed: ComposedPrompt) -> Iterator[IndentedLine]:
    """Its parts, what the NPC has in mind and why, and what was left out and why."""
    hot = composed.hot
    yield from parts_shown(composed.parts)
    if hot.recalled:
        yield IndentedLine("what it has in mind, and why:")
    for one in hot.recalled:
        yield IndentedLine(f"{recalled_line(one)} ({one.reason or 'nobody noted why'})", 1)
    if hot.omitted or hot.rejected:
        yield IndentedLine("left out:")
    for part in hot.omitted:
        yield IndentedLine(part, 1)
    for each in hot.rejected:
        yield IndentedLine(f"{recalled_line(each.recalled)} ({each.why})", 1)
