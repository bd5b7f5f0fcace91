"""An example MCP server for NPCs: one tool that rolls dice."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from typing import Final

from glyphoxa.domain.errors import InvalidInput
from glyphoxa.mcp_server.offered import OfferedTool
from glyphoxa.npc.tool_spec import ToolSpec

_DICE: Final = re.compile(r"([0-9]{0,3})\s*[dwDW]\s*([0-9]{1,4}|%)\s*(?:([+-])\s*([0-9]{1,4}))?")
_MAX_DICE: Final = 100
_MAX_SIDES: Final = 1_000

ROLL: Final = ToolSpec(
    "roll",
    "Roll dice and get the result. Use it whenever a roll is asked for; never make up a result.",
    {"dice": {"type": "string", "description": "Which dice: d20, 2d6, 3d8+4 or d100"}},
    ("dice",),
    50,
)


def roll(dice: str, *, die: Callable[[int], int]) -> dict[str, object]:
    """
    Args:
        die: Rolls one die with so many sides: a number from 1.

    Raises:
        InvalidInput: The text is not dice notation.
    """
    read = _DICE.fullmatch(dice.strip())
    if read is None:
        raise InvalidInput(f"{dice[:80]!r} is not dice notation; valid: d20, 2d6, 3d8+4 or d100")
    n_dice = int(read[1] or 1)
    n_sides = 100 if read[2] == "%" else int(read[2])
    if not 1 <= n_dice <= _MAX_DICE or not 2 <= n_sides <= _MAX_SIDES:
        raise InvalidInput(f"{dice[:80]!r}: 1 to {_MAX_DICE} dice with 2 to {_MAX_SIDES:,} sides can be rolled")
    rolled = [die(n_sides) for _ in range(n_dice)]
    added = int(f"{read[3]}{read[4]}") if read[3] else 0
    return {"found": [{"dice": dice.strip(), "rolled": rolled, "total": sum(rolled) + added}]}


def dice_tools() -> list[OfferedTool]:
    chance = random.SystemRandom()

    async def ask(arguments: Mapping[str, object]) -> Mapping[str, object]:
        return roll(str(arguments["dice"]), die=lambda sides: chance.randint(1, sides))

    return [OfferedTool(ROLL, ask)]
