"""Define what a campaign file can contain: its blocks, and the rules that hold between them.

A rule yields the path of a value in the file and what is wrong with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from glyphoxa.config.located_yaml import SENTENCE_ENDS, LocatedYaml, Wrong, YamlPath, short, written_as
from glyphoxa.domain.budgets import PERSONA_TOKENS
from glyphoxa.domain.calendar import MAX_DAYS, StoryCalendar, name_words, read_zone
from glyphoxa.domain.campaign import (
    BIDIRECTIONAL_RELATIONS,
    DEFAULT_PRIORITY,
    SLOT_RULES,
    BudgetTier,
    Engine,
    Entity,
    Findings,
    Npc,
    Player,
    SlotRule,
)
from glyphoxa.domain.errors import InvalidInput, nearest
from glyphoxa.domain.ids import plain_name
from glyphoxa.domain.turn_record import Asked, Character
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.language.language_data import primary_language
from glyphoxa.language.prompt_quotes import SAYS
from glyphoxa.language.relations import RelationWords, spelled_types
from glyphoxa.language.sentences import characters_in


def _one_line(name: str) -> str:
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ValueError("a name must be one line of text without control characters")
    return name


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[Text, StringConstraints(max_length=200), AfterValidator(_one_line), AfterValidator(plain_name)]
"""Checked for control characters before white space becomes single spaces."""
Slug = Annotated[
    str,
    StringConstraints(max_length=64),
    written_as(r"^[^\W_A-Z][^\W_A-Z-]*(-[^\W_A-Z-]+)*$", "old-mill: lower-case words joined by `-`"),
]


def _language(tag: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", tag):
        raise ValueError(f"{tag[:40]!r} is not a language tag such as en, de or en-GB")
    return tag


def _sentence(text: str) -> str:
    if sorted(re.findall(r"\{([^{}]*)\}", text)) != ["source", "target"]:
        raise ValueError("a sentence for a relation names {source} and {target}, each once")
    return text.rstrip(".")


RelationSentence = Annotated[Text, AfterValidator(_sentence)]


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
    units: dict[Name, tuple[Text, Text]] = Field(default_factory=dict)
    findings: Findings = "review"
    memory_interval: Annotated[int, Field(strict=True, ge=0, le=50)] = 0


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class CalendarBlock(_Block):
    """
    Attributes:
        months: With their days, in order.
        today: The day that the story stands at.
    """

    months: dict[Name, Annotated[int, Field(strict=True, ge=1, le=MAX_DAYS)]] = Field(default_factory=dict)
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
    name: Name = ""
    id: Slug | None = None
    dm: bool = False
    table: bool = False


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


class SafetyBlock(_Block):
    lines: tuple[Name, ...] = ()
    veils: tuple[Name, ...] = ()


_Count = Annotated[int, Field(strict=True, ge=1, le=1_000)]


class CompressionBlock(_Block):
    threshold: _Count = 5
    fan_in: Annotated[int, Field(strict=True, ge=2, le=20)] = 3
    max_depth: Annotated[int, Field(strict=True, ge=1, le=10)] = 10
    keep_recent: Annotated[int, Field(strict=True, ge=0, le=1_000)] = 3
    by: Literal["both", "automatic", "curator"] = "both"


def _or_none(value: object) -> object:
    """Accept the text "none"."""
    if value is None or (isinstance(value, str) and value != "none"):
        raise ValueError("compression is none, or a block of its settings")
    return None if value == "none" else value


class NodeTypeBlock(_Block):
    """A type of entity: see `NodeType`. What is not given is as in the default type or the template of this name."""

    fields: tuple[Name, ...] | None = None
    appends: bool | None = None
    always_inject: bool | None = None
    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] | None = None
    every: _Count | None = None
    active: bool | None = None
    compression: Annotated[CompressionBlock | None, BeforeValidator(_or_none)] = None


def _by_name(value: object) -> object:
    """Accept a list of names, of types without settings of their own."""
    if not isinstance(value, list):
        return (
            {name: {} if block is None else block for name, block in value.items()}
            if isinstance(value, dict)
            else value
        )
    if not all(isinstance(name, str) for name in value):
        raise ValueError("entity types are a list of names, or names with their settings")
    return {name: {} for name in value}


class CampaignDocument(_Block):
    campaign: CampaignBlock
    calendar: CalendarBlock | None = None
    safety: SafetyBlock = SafetyBlock()
    entity_types: Annotated[dict[Name, NodeTypeBlock], BeforeValidator(_by_name)] = Field(default_factory=dict)
    slots: dict[Name, SlotRule] = Field(default_factory=dict)
    relation_types: dict[Name, RelationSentence] = Field(default_factory=dict)
    entities: tuple[EntityBlock, ...] = ()
    relationships: tuple[RelationshipBlock, ...] = ()
    npcs: tuple[NpcBlock, ...] = ()
    players: tuple[PlayerBlock, ...] = ()
    scenes: tuple[SceneBlock, ...] = ()
    secrets: tuple[SecretBlock, ...] = ()


def touched_topics(value: object, topics: SafetyTopics, path: YamlPath = ()) -> Wrong:
    """Find texts of a campaign file about a topic that its group does not play. NPCs do not speak of it."""
    if isinstance(value, str) and topics.forbids(value):
        touched = ", ".join(topics.flags(value))
        yield path, f"{short(value)!r} touches {touched}: no NPC says it, and it is not recalled as a fact"
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if path or name != "safety":
            yield from touched_topics(part, topics, (*path, name))


# Names of attributes and relations, in campaign files and in tables.

_MAX_NAME: Final = 200
_DEEPEST: Final = 20
_MOST_WORDS: Final = 6
_REMEDY: Final = "put text with a comma or a colon in quotes, or on its own line"


def wrong_attribute(name: str, value: object = "") -> str | None:
    """Return why nothing can have such an attribute; None if it can."""
    if _is_deeper(value, _DEEPEST):
        return f"{name!r} is nested more than {_DEEPEST} levels deep"
    if not name.strip():
        return "an attribute needs a name"
    if len(name) > _MAX_NAME:
        return f"the name of an attribute can have {_MAX_NAME} characters, not {len(name)}"
    if name.casefold() == "secret":
        return "everybody would know an attribute 'secret'; list it under `secrets:` with `known_by:`"
    if name.casefold() in ("known_by", "known_in", "hidden"):
        return f"{name!r} has no effect as an attribute; in a campaign file, write it beside `attributes:`"
    return None


def by_case(types: Iterable[str]) -> dict[str, str]:
    """Return types of entities by their case-folded form, so that one is known whatever its capitals."""
    return {known.casefold(): known for known in sorted(types, reverse=True)}


def lost_text(value: object, path: YamlPath) -> Wrong:
    """Find where YAML took a part of a text in an attribute for a key, or a value is missing."""
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        at = (*path, name)
        if isinstance(name, str) and _is_text(name):
            yield at, f"{short(name)!r} looks like text, not like the name of an attribute; {_REMEDY}"
        elif part is None:
            yield at, f"{short(str(name))!r} has no value: write one, or remove it; {_REMEDY}"
        else:
            yield from lost_text(part, at)


def _is_text(name: str) -> bool:
    return len(name.split()) > _MOST_WORDS or (name.endswith(SENTENCE_ENDS) and " " in name.strip())


_CLOSE: Final = 0.91
"""Similarity of two spellings, from 0 to 1: REMEMBERS_OF is not meant to be MEMBER_OF."""


def hint_for(relation: str, words: RelationWords) -> str | None:
    """Return a remark on a custom relationship type; None for one that has a sentence."""
    if words.knows(relation):
        return None
    near = nearest(relation, spelled_types(), least=_CLOSE)
    meant = "that is fine" if near is None else f"did you mean {near!r}?"
    return f"relationship type {relation!r} is a custom type, shown as {words.sentence(relation, 'A', 'B')!r}; {meant}"


def edge_name(source: str, relation: str, target: str) -> str:
    """Name an edge; a relation that holds both ways has one name."""
    if relation in BIDIRECTIONAL_RELATIONS and target.casefold() < source.casefold():
        source, target = target, source
    return f"{source} {relation} {target}"


def _is_deeper(value: object, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(levels == 0 or _is_deeper(part, levels - 1) for part in parts)


# Time: the table's time zone, and the calendar of the story.


def wrong_zone(name: str) -> Wrong:
    """Check the name of a time zone."""
    try:
        read_zone(name)
    except InvalidInput as error:
        yield ("campaign", "time_zone"), f"campaign.time_zone: {error}"


def read_calendar(
    source: LocatedYaml, block: CalendarBlock | None
) -> tuple[StoryCalendar | None, str, list[tuple[YamlPath, str]]]:
    """Return the calendar, the day of the story as the calendar writes it, and what is wrong with them."""
    if block is None:
        return None, "", []
    calendar = StoryCalendar(tuple(block.months.items()), block.weekdays)
    problems = list(_wrong_names(source, calendar))
    if not block.today.strip() or problems:
        return calendar, "", problems
    try:
        calendar = calendar.settled(block.today)
        return calendar, calendar.in_words(calendar.day_named(block.today)), []
    except InvalidInput as error:
        return calendar, "", [(("calendar", "today"), f"calendar.today: {error}")]


def _wrong_names(source: LocatedYaml, calendar: StoryCalendar) -> Wrong:
    """Check that each name means one thing, and differs from a number."""
    months: Iterable[tuple[str, YamlPath]] = ((name, ("calendar", "months", name)) for name, _ in calendar.months)
    weekdays = ((name, ("calendar", "weekdays", nth)) for nth, name in enumerate(calendar.weekdays))
    seen: dict[tuple[str, ...], YamlPath] = {}
    for name, path in (*months, *weekdays):
        words = name_words(name)
        if not words or any(word[0].isdigit() for word in words):
            yield path, f"{path[1]}: {name!r} is not a name made of letters, such as Hammer"
        elif words in seen:
            first = source.line(seen[words])
            yield path, f"{path[1]}: {name!r} is in the calendar twice, first on line {first}"
        else:
            seen[words] = path


# Ids: each means one person or thing, so that words of one speaker never count as another's.

RESERVED: Final = {"dm": "the game master"}


def wrong_ids(entities: Iterable[Entity], npcs: Sequence[Npc], players: Sequence[Player]) -> Wrong:
    """Find ids of speakers that mean something else as well.

    Args:
        entities: With those that were made of the players.
        npcs, players: All of the file, in its order.
    """
    by_id: dict[str, Entity] = {entity.id: entity for entity in entities}
    speakers: dict[str, str] = {}
    for at, speaker in (*_numbered("npcs", npcs), *_numbered("players", players)):
        what = f"{'NPC' if isinstance(speaker, Npc) else 'player'} {speaker.name!r}"
        other = by_id.get(speaker.id)
        if speaker.id in RESERVED:
            yield at, f"the id {speaker.id!r} of {what} is reserved for {RESERVED[speaker.id]}; write another `id`"
        elif speaker.id in speakers:
            yield at, f"{what} has the id {speaker.id!r}, which {speakers[speaker.id]} has; write another `id`"
        elif other is not None and other.name.casefold() != speaker.name.casefold():
            text = f"{what} has the id {speaker.id!r}, which is that of the entity {other.name!r}"
            yield at, f"{text}; write another `id`"
        speakers.setdefault(speaker.id, what)


def _numbered(part: str, speakers: Sequence[Npc | Player]) -> Iterator[tuple[YamlPath, Npc | Player]]:
    for n, speaker in enumerate(speakers):
        yield (part, n), speaker


# Slots: relationships of which one can hold at a time, such as where somebody lives.


def filled_twice(source: LocatedYaml, document: CampaignDocument, words: RelationWords) -> Wrong:
    """Find functional relationships that stand twice: only the last would hold, and nobody would know why."""
    first: dict[tuple[str, str], int] = {}
    for i, block in enumerate(document.relationships):
        kind = words.spelled(block.type)
        rule = document.slots.get(kind) or SLOT_RULES.get(kind)
        if rule not in ("functional", "functional_object"):
            continue
        end, many = (block.source, "target") if rule == "functional" else (block.target, "source")
        line = source.line(("relationships", first.setdefault((kind, end.casefold()), i)))
        if first[kind, end.casefold()] != i:
            yield (
                ("relationships", i),
                f"{end!r} can have only one {many} of {kind}, and line {line} has it already "
                f"(to allow several, write `slots: {{{kind}: many}}`)",
            )


# Remarks: what is no mistake in an NPC, and makes it play badly.

_SECOND_PERSON: Final = {
    "en": re.compile(r"\byou(?:r|rs|rself|['’]\w+)?\b", re.IGNORECASE),
    "de": re.compile(r"\b(?:du|dich|dir|dein\w*|ihr|euch|euer|eure\w*)\b", re.IGNORECASE),
}
_SHOWN: Final = 40


def remarks_on(block: NpcBlock, *, name: str, language: str) -> Wrong:
    """Yield each remark with its path in the block."""
    yield from _of_persona(block.persona, name=name, language=primary_language(language))
    if not block.examples:
        text = (
            f"{name!r} has no `examples`: default ones for any time and place are used, with its name, occupation and "
            f"place (show them: glyphoxa campaign prompt FILE --npc {name!r})"
        )
        yield ("entity",), text
    for n, example in enumerate(block.examples):
        yield from _of_example(example, ("examples", n), name)


def remark_on_secret(block: SecretBlock, *, called: Sequence[str] = (), language: str) -> str:
    """Return a remark on a secret whose form does not fit those that know it; "" if nothing is wrong.

    Args:
        called: The name and aliases of the NPC, if one alone knows it.
    """
    second_person = _SECOND_PERSON.get(primary_language(language))
    if second_person is None:
        return ""
    says_you = second_person.search(block.text) is not None
    if says_you and len(block.known_by) != 1:
        return 'a secret says "you" only if one NPC knows it: write the name instead'
    named = next((name for name in called if re.search(rf"\b{re.escape(name)}\b", block.text)), None)
    if says_you or named is None:
        return ""
    you = "Du ..." if primary_language(language) == "de" else "You ..."
    return f"only {called[0]!r} knows this secret: write it to the NPC ({you!r}), without {named!r}"


def _of_persona(persona: str, *, name: str, language: str) -> Wrong:
    you_are = f"You are {name}, ..." if language != "de" else f"Du bist {name}, ..."
    if not persona:
        yield ("entity",), f"{name!r} has no `persona`: say who it is and how it speaks ({you_are!r})"
        return
    second_person = _SECOND_PERSON.get(language)
    if second_person is not None and not second_person.search(persona):
        begins = persona if len(persona) <= _SHOWN else f"{persona[:_SHOWN].rstrip()}..."
        text = f"the persona of {name!r} is not in the second person ({begins!r}): write {you_are!r}"
        yield ("persona",), text
    if len(persona) > characters_in(PERSONA_TOKENS):
        text = (
            f"the persona of {name!r} has {len(persona):,} characters: more than {characters_in(PERSONA_TOKENS):,} "
            "leave too little room for the conversation in a small model; move facts to its entity's `attributes:`"
        )
        yield ("persona",), text


def _of_example(example: ExampleBlock, at: YamlPath, name: str) -> Wrong:
    if (says := SAYS.match(example.said)) is not None:
        text = (
            f"`said` already names the speaker ({says.group().strip()!r}): write only the words; the speaker is added"
        )
        yield (*at, "said"), text
    if re.match(r"(?:facts|fakten)\s*:", example.facts, re.IGNORECASE):
        yield (*at, "facts"), "`facts` begins with its label: write only the facts; the label is added"
    if re.match(r"remembered\s*:", example.remembered, re.IGNORECASE):
        yield (*at, "remembered"), "`remembered` begins with its label: write only what was said; the label is added"
    if ReplyCheck(Character(name), Asked()).clean(example.reply).text != " ".join(example.reply.split()):
        text = (
            f"{example.reply!r} is not what {name!r} would say aloud: write in the first person, "
            "without stage directions, a name before the words, or markup"
        )
        yield (*at, "reply"), text


# The role of an NPC, from its persona.

_ARTICLE: Final = r"(?:the|an?|der|die|das|ein|eine)"
_BEGINS: Final = rf"\s*(You are|Du bist)\s+%s(?:,?\s+{_ARTICLE}\s+|,\s+)([^.!?;:]+)"
_UNTIL: Final = re.compile(
    r"[()–—]|,\s+(?:the|an?|and|but|der|die|das|ein|eine|und|aber)\s|\s(?:of|in|at|on|from|for|with|by|to|near|who|whose"
    r"|that|von|vom|des|im|in|am|an|auf|aus|bei|beim|mit|zu|zum|zur|für|unter|über)\s",
    re.IGNORECASE,
)
_ROLE_WORDS: Final = 3


def role_in(persona: str, *, name: str) -> str:
    """Return the role that the first sentence of a persona states after the name; "" if it states none.

        You are Oskar, the blacksmith of Drumkeld.          blacksmith
        You are Sella, a calm, careful healer who listens.  careful healer
        Du bist Berta, die gute Wirtin im Goldenen Hirsch.  Wirtin

    The role ends at the next small word ("of", "in", "who") or the next article. Of several adjectives the last are
    kept. In German, where nouns have capitals, the first noun is the role.

    Args:
        name: The NPC's name, which comes first: nothing is taken from "You are the mother of a smith".
    """
    found = re.match(_BEGINS % re.escape(name), persona, re.IGNORECASE)
    if found is None:
        return ""
    role = _UNTIL.split(f"{found[2]} ", maxsplit=1)[0]
    if found[1].casefold() == "du bist":
        return next((word.strip(",") for word in role.split() if word[0].isupper()), "")
    words = re.split(r",\s+|\s+and\s+", role.strip(" ,"))[-1].split()
    return " ".join(words[-_ROLE_WORDS:])
