"""What the persona benchmark is given: campaigns with personas only, lines to their NPCs, and what tells a secret."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Campaign, Npc
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, did_you_mean

CAMPAIGN: Final = "campaign.yaml"
TOLD: Final = "told.jsonl"
HALVES: Final = ("tune", "test")
KINDS: Final = (
    "greeting",
    "self",
    "trade",
    "price",
    "place",
    "other",
    "secret",
    "smalltalk",
    "provocation",
    "assistant",
    "language",
)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Line:
    """
    Attributes:
        kind: One of `KINDS`.
        language: That it is said in: `en` or `de`.
        told_by: Words that tell the NPC's secret, in whatever answer.
        guess: It says the secret itself: a yes tells it.
    """

    id: str
    npc: Npc
    kind: str
    language: str
    text: str
    told_by: tuple[str, ...]
    guess: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """One campaign, and what is said in it, in order."""

    campaign: Campaign
    lines: tuple[Line, ...]


def read_all(directory: Path, half: str) -> list[Asked]:
    """Of each folder that holds a campaign, by name.

    Raises:
        GlyphoxaError: There is none, or a line cannot be used.
    """
    found = [read(path.parent, half) for path in sorted(directory.glob(f"*/{CAMPAIGN}"))]
    if not found:
        raise InvalidInput(f"{directory}: no folder in it holds {CAMPAIGN}")
    return found


def read(directory: Path, half: str) -> Asked:
    """
    Raises:
        GlyphoxaError: A file is not there, or a line of it cannot be used.
    """
    campaign = read_campaign(directory / CAMPAIGN).campaign
    npcs = {npc.name: npc for npc in campaign.npcs}
    told = dict(_each(directory / TOLD, lambda row: (row["npc"], tuple(row["told_by"]))))

    def line(row: Mapping[str, Any]) -> Line:
        name, kind = row["npc"], row["kind"]
        if name not in npcs:
            raise InvalidInput(f"no NPC {name!r} in the campaign: {did_you_mean(name, npcs)}")
        if kind not in KINDS:
            raise InvalidInput(f"no kind {kind!r}: {did_you_mean(kind, KINDS)}")
        guess = bool(row.get("guess"))
        return Line(row["id"], npcs[name], kind, row["language"], row["line"], told.get(name, ()), guess)

    return Asked(campaign, tuple(_each(directory / f"{half}.jsonl", line)))


def _each(path: Path, make: Callable[[Mapping[str, Any]], _T]) -> list[_T]:
    try:
        rows = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    made = []
    for number, row in enumerate(rows, start=1):
        try:
            made.append(make(json.loads(row)))
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}:{number}: no JSON: {error.msg}") from error
        except KeyError as error:
            raise InvalidInput(f"{path}:{number}: {error.args[0]!r} is missing") from error
        except GlyphoxaError as error:
            raise InvalidInput(f"{path}:{number}: {error}") from error
    return made
