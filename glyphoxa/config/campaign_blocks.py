"""The blocks of a campaign file: which keys there are, and what may stand there."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from glyphoxa.domain.calendar import MOST_DAYS
from glyphoxa.domain.campaign import DEFAULT_PRIORITY, BudgetTier, Engine, SlotRule

RELATIONSHIP_TYPES = (
    "KNOWS",
    "LOCATED_AT",
    "OWNS",
    "MEMBER_OF",
    "ALLIED_WITH",
    "HOSTILE_TO",
    "PARTICIPATED_IN",
    "QUEST_GIVER",
    "CHILD_OF",
    "EMPLOYED_BY",
)


def _one_line(name: str) -> str:
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ValueError("a name is one line of text without control characters")
    return name


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[Text, StringConstraints(max_length=200), AfterValidator(_one_line)]
Slug = Annotated[str, StringConstraints(pattern=r"^[^\W_A-Z][^\W_A-Z-]*(-[^\W_A-Z-]+)*$", max_length=64)]


def _language(tag: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", tag):
        raise ValueError(f"{tag[:40]!r} is no tag of a language, such as en, de or en-GB")
    return tag


class _Block(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CampaignBlock(_Block):
    name: Name
    id: Slug | None = None
    language: Annotated[str, AfterValidator(_language)] = "en"
    time_zone: str = ""
    known_in: tuple[Name, ...] = ()
    bible: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    glossary: dict[Name, Text] = Field(default_factory=dict)


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class CalendarBlock(_Block):
    """
    Attributes:
        months: With their days, in order.
        today: The day that the story stands at.
    """

    months: dict[Name, Annotated[int, Field(strict=True, ge=1, le=MOST_DAYS)]] = Field(default_factory=dict)
    weekdays: tuple[Name, ...] = ()
    today: Annotated[str, BeforeValidator(_as_text)] = ""


class EntityBlock(_Block):
    name: Name
    type: Name
    id: Slug | None = None
    aliases: tuple[Name, ...] = ()
    attributes: dict[str, object] = Field(default_factory=dict)
    known_by: tuple[Name, ...] = ()
    known_in: tuple[Name, ...] | None = None
    hidden: bool = False


class RelationshipBlock(_Block):
    source: Name
    type: Name
    target: Name
    attributes: dict[str, object] = Field(default_factory=dict)
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    origin: Literal["stated", "inferred"] = "stated"
    dm_confirmed: bool = True
    known_by: tuple[Name, ...] = ()
    hidden: bool = False


class VoiceBlock(_Block):
    preset: Text = "heart"
    provider_voice: Text | None = None


class ExampleBlock(_Block):
    said: Text
    reply: Text
    facts: str = ""
    remembered: str = ""
    kept: str = ""


def _voice(value: object) -> object:
    return {"preset": value} if isinstance(value, str) else value


class NpcBlock(_Block):
    entity: Name
    persona: Annotated[str, StringConstraints(strip_whitespace=True)] = ""
    id: Slug | None = None
    voice: Annotated[VoiceBlock, BeforeValidator(_voice)] = VoiceBlock()
    examples: tuple[ExampleBlock, ...] = ()
    fillers: tuple[Text, ...] = ()
    engine: Engine = "cascaded"
    budget_tier: BudgetTier = "FAST"
    standing: tuple[Text, ...] = ()
    speaks: tuple[Name, ...] = ()
    priority: Annotated[int, Field(strict=True, ge=0, le=10)] = DEFAULT_PRIORITY
    role: Name | None = None
    address_only: bool = False
    portrait: Name | None = None


class PlayerBlock(_Block):
    name: Name
    id: Slug | None = None
    dm: bool = False


class SceneBlock(_Block):
    location: Name
    npcs: tuple[Name, ...]
    id: Slug | None = None
    time_of_day: str = ""
    description: str = ""
    read_aloud: str = ""


class SecretBlock(_Block):
    text: Text
    known_by: tuple[Name, ...] = ()
    about: Name | None = None
    hidden: bool = False


class CampaignDocument(_Block):
    campaign: CampaignBlock
    calendar: CalendarBlock | None = None
    entity_types: tuple[Name, ...] = ()
    slots: dict[Name, SlotRule] = Field(default_factory=dict)
    entities: tuple[EntityBlock, ...] = ()
    relationships: tuple[RelationshipBlock, ...] = ()
    npcs: tuple[NpcBlock, ...] = ()
    players: tuple[PlayerBlock, ...] = ()
    scenes: tuple[SceneBlock, ...] = ()
    secrets: tuple[SecretBlock, ...] = ()
