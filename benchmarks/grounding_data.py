"""What the grounding benchmark is given: a campaign, what was said in earlier evenings, and questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.campaign import Campaign, Npc, Player, Scene
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, did_you_mean

CAMPAIGN: Final = "campaign.yaml"
EVENING: Final = "evening.jsonl"
QUESTIONS: Final = "questions.jsonl"
KINDS: Final = ("fact", "talk", "secret", "absent", "invented", "smalltalk")


@dataclass(frozen=True, slots=True)
class Said:
    """A line of an earlier evening; who is in its scene witnesses it.

    Attributes:
        to: Whom it was said to, if anybody.
    """

    session: str
    scene: Scene
    speaker: Npc | Player
    text: str
    to: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """
    Attributes:
        knows: Whether the NPC can know the answer.
        any_of: Words of which one stands in a right answer.
        none_of: Words of which none may stand in the answer.
        kind: What is asked for: one of `KINDS`.
    """

    id: str
    scene: Scene
    npc: Npc
    speaker: Player
    text: str
    knows: bool
    any_of: tuple[str, ...]
    none_of: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Asked:
    """All that one directory holds."""

    campaign: Campaign
    evenings: tuple[Said, ...]
    questions: tuple[Question, ...]


def read(directory: Path) -> Asked:
    """
    Raises:
        GlyphoxaError: A file is not there, or a line of it cannot be used.
    """
    campaign = read_campaign(directory / CAMPAIGN).campaign
    find = _Names(campaign)
    evenings = tuple(_each(directory / EVENING, find.said))
    questions = tuple(_each(directory / QUESTIONS, find.question))
    return Asked(campaign, evenings, questions)


def _each(path: Path, make: Any) -> list[Any]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    made = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            made.append(make(json.loads(line)))
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}:{number}: no JSON: {error.msg}") from error
        except KeyError as error:
            raise InvalidInput(f"{path}:{number}: {error.args[0]!r} is missing") from error
        except GlyphoxaError as error:
            raise InvalidInput(f"{path}:{number}: {error}") from error
    return made


class _Names:
    """Finds by name or id what a line speaks of."""

    def __init__(self, campaign: Campaign) -> None:
        self._npcs = {key: npc for npc in campaign.npcs for key in (npc.id, npc.name)}
        self._players = {key: player for player in campaign.players for key in (player.id, player.name)}
        self._scenes: dict[str, Scene] = {scene.id: scene for scene in campaign.scenes}

    def said(self, row: Mapping[str, Any]) -> Said:
        speaker = _found("speaker", row["speaker"], {**self._npcs, **self._players})
        scene = _found("scene", row["scene"], self._scenes)
        return Said(str(row["session"]), scene, speaker, row["text"], row.get("to") or "")

    def question(self, row: Mapping[str, Any]) -> Question:
        kind = row["kind"]
        if kind not in KINDS:
            raise InvalidInput(f"no kind {kind!r}: {did_you_mean(kind, KINDS)}")
        return Question(
            id=str(row["id"]),
            scene=_found("scene", row["scene"], self._scenes),
            npc=_found("npc", row["npc"], self._npcs),
            speaker=_found("speaker", row["speaker"], self._players),
            text=row["question"],
            knows=bool(row["knows"]),
            any_of=tuple(row.get("any_of") or ()),
            none_of=tuple(row.get("none_of") or ()),
            kind=kind,
        )


def _found(what: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise InvalidInput(f"no {what} {name!r} in the campaign: {did_you_mean(name, known)}")
    return known[name]
