"""Read a campaign file, as a DM writes it in YAML, into a `Campaign`.

Everything refers to everything by name. All mistakes of a file are reported together, each with its line and
the nearest valid value. `docs/writing-a-campaign.md` shows the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Final, TypeVar

from glyphoxa.config.campaign_schema import (
    CampaignDocument,
    by_case,
    edge_name,
    filled_twice,
    hint_for,
    lost_text,
    read_calendar,
    remark_on_secret,
    remarks_on,
    role_in,
    touched_topics,
    wrong_attribute,
    wrong_ids,
    wrong_zone,
)
from glyphoxa.config.campaign_text import read_as_meant, with_plain_spaces
from glyphoxa.config.located_yaml import (
    MOST_TOLD,
    InvalidFile,
    LocatedYaml,
    Problem,
    Wrong,
    YamlPath,
    read_yaml,
    text_of,
    validate_in_part,
)
from glyphoxa.config.sections import not_a_name
from glyphoxa.domain.campaign import (
    DEFAULT_SCHEMA,
    Campaign,
    Compression,
    Entity,
    Exchange,
    NodeType,
    Npc,
    Player,
    Portrait,
    Relationship,
    Safety,
    Scene,
    Schema,
    Secret,
    VoiceSpec,
)
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.events import reached_from
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId, slug
from glyphoxa.judgement.safety import SafetyTopics
from glyphoxa.language.language_data import texts
from glyphoxa.language.relations import RelationWords


@dataclass(frozen=True, slots=True)
class CampaignFile:
    """A campaign, and remarks for its author (`file:line: what`).

    Attributes:
        source: Where everything stands.
    """

    campaign: Campaign
    warnings: tuple[str, ...]
    source: LocatedYaml = field(compare=False, repr=False)


def read_campaign(
    path: Path, text: str | None = None, *, also: Callable[[CampaignDocument], Wrong] | None = None
) -> CampaignFile:
    """Read a campaign file.

    Args:
        text: Content to read instead of the file's own.
        also: Further checks, whose mistakes are reported together with all others.

    Raises:
        NotFound: There is no such file.
        InvalidFile: With every mistake in it, each at its line.
    """
    text, spaces = with_plain_spaces(text_of(path) if text is None else text)
    source = read_yaml(path, text)
    remarks, quoted = read_as_meant(source)
    document, wrong = validate_in_part(source, CampaignDocument, needed=_NEEDED)
    reading = _Reading(
        source, document, {_block_of(path) for path in wrong.paths if path[0] in _KNOWN} if wrong else set()
    )
    reading.problems += wrong.problems if wrong else ()
    reading.warnings += [*spaces, *remarks, *quoted]
    reading.suspects += quoted
    return reading.result(also)


def _block_of(path: YamlPath) -> YamlPath:
    return path[:2] if len(path) > 1 and isinstance(path[1], int) else path[:1]


_Known = TypeVar("_Known", Entity, Npc)
_KNOWN: Final = frozenset({"campaign", "calendar", "entities", "relationships", "secrets"})
"""Sections whose blocks say who knows what: without a part of one, it would seem to have another mistake."""
_NEEDED: Final = frozenset({"id", "name", "entity", "type", "source", "target", "location"})
"""Without one of these, the rest of the file cannot be checked."""


@dataclass(slots=True)
class _Reading:
    """
    Attributes:
        broken: Paths of blocks of which a part could not be read. Nothing more is reported about them.
        suspects: Remarks that may explain an unknown name.
        by_name: Entities by their case-folded names; `npcs` likewise.
    """

    source: LocatedYaml
    document: CampaignDocument
    broken: Set[YamlPath]
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    suspects: list[Problem] = field(default_factory=list)
    by_name: dict[str, Entity] = field(default_factory=dict)
    npcs: dict[str, Npc] = field(default_factory=dict)

    @property
    def node_types(self) -> dict[str, NodeType]:
        """Return the declared types, each completed by the default type or template of its name."""
        made: dict[str, NodeType] = {}
        for name, block in self.document.entity_types.items():
            given = {key: value for key, value in block if value is not None}
            if "compression" in block.model_fields_set:
                given["compression"] = block.compression and Compression(**block.compression.model_dump())
            made[name] = replace(DEFAULT_SCHEMA.named(name), **given)
        return made

    def result(self, also: Callable[[CampaignDocument], Wrong] | None) -> CampaignFile:
        entities = self._entities()
        self.by_name |= {entity.name.casefold(): entity for entity in entities}
        npcs = self._npcs()
        self.npcs |= {npc.name.casefold(): npc for npc in npcs}
        block = self.document.campaign
        self._wrong_all(wrong_zone(block.time_zone))
        relationships = self._relationships()
        entities = self._scoped(entities, relationships)
        calendar, story_day, problems = read_calendar(self.source, self.document.calendar)
        self._wrong_all(problems)
        campaign = Campaign(
            id=CampaignId(self._id(block.id, block.name, ("campaign", "name"))),
            name=block.name,
            language=block.language,
            entities=entities,
            relationships=relationships,
            npcs=npcs,
            players=self._players(),
            scenes=self._scenes(),
            secrets=self._secrets(),
            slots=self.document.slots,
            time_zone=block.time_zone,
            calendar=calendar,
            story_day=story_day,
            bible=block.bible,
            glossary=block.glossary,
            units=block.units,
            memory_interval=block.memory_interval,
            relation_types=self.document.relation_types,
            findings=block.findings,
            safety=self._safety(),
            node_types=self.node_types,
        )
        for name, node in campaign.node_types.items():
            if node.compression is not None and not node.appends:
                self._wrong(
                    ("entity_types", name, "compression"),
                    f"{name!r} must also have `appends: true`: nodes that are merged stay few",
                )
        if also is not None:
            self._wrong_all(also(self.document))
        if not self.problems:
            # Speakers are complete only where all else is right.
            self._wrong_all(wrong_ids(campaign.entities, campaign.npcs, campaign.players))
        if self.problems:
            raise InvalidFile(self.source.path, [*self.problems, *self.suspects])
        ordered = sorted((*self.source.remarks, *self.warnings), key=lambda p: p.line)
        return CampaignFile(campaign, tuple(f"{self.source.path}:{p.line}: {p.text}" for p in ordered), self.source)

    def _wrong(self, path: YamlPath, text: str) -> None:
        if path[:1] not in self.broken and path[:2] not in self.broken:
            self.problems.append(self.source.problem(path, text))

    def _wrong_all(self, found: Iterable[tuple[YamlPath, str]]) -> None:
        for path, text in found:
            self._wrong(path, text)

    def _warn(self, path: YamlPath, text: str) -> None:
        self.warnings.append(self.source.problem(path, text))

    def _id(self, given: str | None, name: str, path: YamlPath) -> str:
        made = given or slug(name)
        if not made:
            self._wrong(path, f"{name!r} has no letter or digit to make an id from; write an `id`")
        return made

    def _unique(self, what: str, values: Iterable[tuple[str, YamlPath]]) -> None:
        seen: dict[str, YamlPath] = {}
        for value, path in values:
            key = value.casefold()
            if key in seen:
                self._wrong(path, f"{what} {value!r} is here twice, first on line {self.source.line(seen[key])}")
            else:
                seen[key] = path

    def _entities(self) -> tuple[Entity, ...]:
        types = set(Schema(self.node_types).entity_types)
        cased = by_case(types)
        made: list[Entity] = []
        for i, block in enumerate(self.document.entities):
            at: YamlPath = ("entities", i)
            kind = cased.get(block.type.casefold(), block.type)
            if kind not in types:
                hint = did_you_mean(block.type, types) if len(self.problems) < MOST_TOLD else ""
                self._wrong(
                    (*at, "type"),
                    f"unknown entity type {block.type!r}, {hint} (list your own types under `entity_types:`)",
                )
            self._check_attributes(block.attributes, at)
            made.append(
                Entity(
                    id=EntityId(self._id(block.id, block.name, (*at, "name"))),
                    type=kind,
                    name=block.name,
                    aliases=block.aliases,
                    attributes=block.attributes,
                )
            )
        at_line: list[YamlPath] = [("entities", i) for i in range(len(made))]
        self._unique("entity", ((e.name, (*at, "name")) for e, at in zip(made, at_line, strict=True)))
        distinct = {e.name.casefold(): (e, at) for e, at in zip(made, at_line, strict=True)}.values()
        self._unique("entity id", ((e.id, at) for e, at in distinct))
        self._check_aliases(made)
        # A player's character belongs to the graph whether or not the author described it there.
        known = {e.name.casefold(): e for e in made}
        taken = {e.id: e.name for e in made}
        for i, player in enumerate(self.document.players):
            entity = known.get(player.name.casefold())
            if entity is None and player.name and not player.table:
                made_id = EntityId(slug(player.name))
                if (other := taken.get(made_id)) is not None:
                    self._wrong(
                        ("players", i, "name"),
                        f"{player.name!r} gives the id {made_id!r}, which entity {other!r} has; rename one of them",
                    )
                made.append(Entity(made_id, "player", player.name))
            elif entity is not None and entity.type != "player":
                self._wrong(
                    ("players", i, "name"), f"{player.name!r} is an entity of type {entity.type!r}, not 'player'"
                )
        return tuple(made)

    def _check_attributes(self, attributes: Mapping[str, object], at: YamlPath) -> None:
        for name, value in attributes.items():
            if problem := wrong_attribute(name, value):
                self._wrong((*at, "attributes", name), problem)
        self._wrong_all(lost_text(attributes, (*at, "attributes")))

    def _scoped(self, entities: tuple[Entity, ...], relationships: tuple[Relationship, ...]) -> tuple[Entity, ...]:
        """Add who may know of each entity: itself, `known_by:`, and NPCs with a path to a place of `known_in:`."""
        own = {npc.entity_id: npc for npc in self.npcs.values()}
        of_all = self._places(self.document.campaign.known_in, ("campaign", "known_in"))
        reached: dict[frozenset[EntityId], list[NpcId]] = {}
        unreached: set[frozenset[EntityId]] = set()
        made = list(entities)
        for i, block in enumerate(self.document.entities):
            at: YamlPath = ("entities", i)
            entity, npc = entities[i], own.get(entities[i].id)
            known_by = self._knowers(block.known_by, at)
            if npc is not None and block.hidden:
                self._wrong(
                    (*at, "hidden"),
                    f"{npc.name!r} is listed under `npcs:`, and an NPC cannot be hidden from itself; "
                    f"write `known_by: [{npc.name}]`",
                )
            places: tuple[Entity, ...] = ()
            if block.known_in is not None:
                at = (*at, "known_in")
                places = self._places(block.known_in, at)
            elif not block.known_by and not block.hidden and entity.type != "player":
                places = of_all
            own_id = () if npc is None else (npc.id,)
            if known_by and not {*own_id} <= {*known_by}:
                known_by = (*own_id, *known_by)
            if places:
                ids = frozenset(place.id for place in places)
                if ids not in reached:
                    reached[ids] = reached_from(ids, self.npcs.values(), relationships)
                known_by = tuple(dict.fromkeys((*own_id, *known_by, *reached[ids])))
                if not known_by and not block.hidden and ids not in unreached:
                    unreached.add(ids)
                    listed = ", ".join(place.name for place in places)
                    self._wrong(
                        at,
                        f"no NPC has a path to {listed}, so nobody would know {entity.name!r}: add a relationship "
                        "LOCATED_AT or KNOWS that leads there, or write `known_by:` or `hidden: true`",
                    )
                # Known to all of them is known to everybody, players and their captions too.
                if len(known_by) == len(self.npcs) and not block.hidden:
                    known_by = ()
            made[i] = replace(entity, known_by=known_by, hidden=block.hidden)
        return tuple(made)

    def _places(self, names: tuple[str, ...], at: YamlPath) -> tuple[Entity, ...]:
        """Return the places that a `known_in:` lists; none if one is unknown."""
        found = [self._entity(name, (*at, j)) for j, name in enumerate(names)]
        return tuple(place for place in found if place is not None) if None not in found else ()

    def _knowers(self, names: tuple[str, ...], at: YamlPath) -> tuple[NpcId, ...]:
        found = (self._npc(name, (*at, "known_by", j)) for j, name in enumerate(names))
        return tuple(dict.fromkeys(npc for npc in found if npc is not None))

    def _check_aliases(self, entities: list[Entity]) -> None:
        owner = {entity.name.casefold(): entity.name for entity in entities}
        for i, entity in enumerate(entities):
            for j, alias in enumerate(entity.aliases):
                other = owner.setdefault(alias.casefold(), entity.name)
                if other != entity.name:
                    self._warn(("entities", i, "aliases", j), f"{alias!r} may mean {other!r} or {entity.name!r}")

    def _entity(self, name: str, path: YamlPath) -> Entity | None:
        return self._named(name, self.by_name, path, f"unknown entity {name!r}")

    def _npc(self, name: str, path: YamlPath) -> NpcId | None:
        npc = self._named(name, self.npcs, path, f"{name!r} is not listed under `npcs:`")
        return None if npc is None else npc.id

    def _named(self, name: str, known: Mapping[str, _Known], path: YamlPath, fault: str) -> _Known | None:
        """Return what has this name; if nothing has it, report the name that an alias stands for, or the nearest."""
        found = known.get(name.casefold())
        if found is not None:
            return found
        owners = [each.name for each in known.values() if name.casefold() in map(str.casefold, each.aliases)]
        if len(owners) == 1:
            fault = f"{name!r} is an alias of {owners[0]!r}: write that name"
        elif len(self.problems) < MOST_TOLD:  # each hint compares thousands of names
            fault = f"{fault}, {did_you_mean(name, (each.name for each in known.values()))}"
        self._wrong(path, fault)
        return None

    def _relationships(self) -> tuple[Relationship, ...]:
        made: list[Relationship] = []
        edges: list[tuple[str, YamlPath]] = []
        words = RelationWords(self.document.campaign.language, self.document.relation_types)
        for i, block in enumerate(self.document.relationships):
            at: YamlPath = ("relationships", i)
            kind = words.spelled(block.type)
            edges.append((edge_name(block.source, kind, block.target), at))
            source = self._entity(block.source, (*at, "source"))
            target = self._entity(block.target, (*at, "target"))
            if hint := hint_for(block.type, words):
                self._warn((*at, "type"), hint)
            self._check_attributes(block.attributes, at)
            known_by = self._knowers(block.known_by, at)
            if source is None or target is None:
                continue
            if source.id == target.id:
                self._wrong(at, f"{source.name!r} cannot be related to itself")
            made.append(
                Relationship(
                    source=source.id,
                    target=target.id,
                    type=kind,
                    attributes=block.attributes,
                    confidence=block.confidence,
                    origin=block.origin,
                    dm_confirmed=block.dm_confirmed,
                    known_by=known_by,
                    hidden=block.hidden,
                )
            )
        self._unique("relationship", edges)
        self._wrong_all(filled_twice(self.source, self.document, words))
        return tuple(made)

    def _npcs(self) -> tuple[Npc, ...]:
        made: list[Npc] = []
        for i, block in enumerate(self.document.npcs):
            at: YamlPath = ("npcs", i, "entity")
            entity = self._entity(block.entity, at)
            if entity is None:
                continue
            if entity.type != "npc":
                self._wrong(at, f"{entity.name!r} is an entity of type {entity.type!r}, not 'npc'")
            if problem := not_a_name(block.engine):
                self._wrong(("npcs", i, "engine"), problem)
            made.append(
                Npc(
                    id=NpcId(block.id or entity.id),
                    entity_id=entity.id,
                    name=entity.name,
                    persona=block.persona,
                    voice=VoiceSpec(block.voice.preset, block.voice.provider_voice),
                    examples=tuple(Exchange(**example.model_dump()) for example in block.examples),
                    fillers=block.fillers,
                    aliases=entity.aliases,
                    engine=block.engine,
                    budget_tier=block.budget_tier,
                    standing=block.standing,
                    speaks=block.speaks,
                    priority=block.priority,
                    role=block.role or role_in(block.persona, name=entity.name),
                    address_only=block.address_only,
                    portrait=self._portrait(i, block.portrait),
                )
            )
            for path, text in remarks_on(block, name=entity.name, language=self.document.campaign.language):
                self._warn(("npcs", i, *path), text)
        self._unique("NPC", ((b.entity, ("npcs", i, "entity")) for i, b in enumerate(self.document.npcs)))
        return tuple(made)

    def _portrait(self, i: int, name: str | None) -> Portrait | None:
        try:
            return read_portrait(self.source.path.parent, name) if name is not None else None
        except InvalidInput as error:
            self._wrong(("npcs", i, "portrait"), str(error))
            return None

    def _players(self) -> tuple[Player, ...]:
        made: list[Player] = []
        words = texts("calls", self.document.campaign.language)
        for i, block in enumerate(self.document.players):
            at: YamlPath = ("players", i)
            if block.table and block.dm:
                self._wrong((*at, "table"), "a seat is `dm` or `table`, not both: the whole room could command NPCs")
            if not block.table and not block.name:
                self._wrong(at, "a player needs a `name`; only a seat with `table: true` has one without it")
            name = block.name or words.value("unknown_speaker")
            own_id = block.id or ("table" if block.table else None)
            made.append(Player(PlayerId(self._id(own_id, name, (*at, "name"))), name, block.dm, block.table))
        self._unique("player", ((player.name, ("players", i, "name")) for i, player in enumerate(made)))
        return tuple(made)

    def _scenes(self) -> tuple[Scene, ...]:
        made: list[Scene] = []
        for i, block in enumerate(self.document.scenes):
            location = self._entity(block.location, ("scenes", i, "location"))
            present = [self._npc(name, ("scenes", i, "npcs", j)) for j, name in enumerate(block.npcs)]
            if location is None:
                continue
            scene_id = self._id(block.id, block.location, ("scenes", i, "location"))
            there = tuple(npc for npc in present if npc is not None)
            made.append(
                Scene(SceneId(scene_id), location.id, there, block.time_of_day, block.description, block.read_aloud)
            )
        named = [(b.id or slug(b.location), ("scenes", i)) for i, b in enumerate(self.document.scenes)]
        self._unique("scene", named)
        return tuple(made)

    def _safety(self) -> Safety:
        block, language = self.document.safety, self.document.campaign.language
        declared = (("lines", block.lines), ("veils", block.veils))
        self._unique("topic", ((each, ("safety", part, i)) for part, said in declared for i, each in enumerate(said)))
        safety = Safety(block.lines, block.veils)
        if block.lines:
            for path, text in touched_topics(self.source.value, SafetyTopics(safety, language)):
                self._warn(path, text)
        return safety

    def _secrets(self) -> tuple[Secret, ...]:
        made: list[Secret] = []
        own = {npc.id: npc.entity_id for npc in self.npcs.values()}
        for i, block in enumerate(self.document.secrets):
            at: YamlPath = ("secrets", i)
            knowing = self._knowers(block.known_by, at)
            if block.about is not None:
                subject = self._entity(block.about, (*at, "about"))
                about = None if subject is None else subject.id
            else:
                about = own[knowing[0]] if knowing else None
            if not block.known_by and not (block.hidden and block.about is not None):
                self._wrong(
                    at,
                    "a secret needs `known_by:` with the NPCs that know it; if nobody knows it, write `hidden: true` "
                    "and `about:`",
                )
            alone = [npc for npc in self.npcs.values() if (npc.id,) == knowing]
            called = [name for npc in alone for name in (npc.name, *npc.aliases, npc.name.split()[-1])]
            if remark := remark_on_secret(block, called=called, language=self.document.campaign.language):
                self._warn((*at, "text"), remark)
            made.append(Secret(block.text, frozenset(knowing), about, block.hidden))
        return tuple(made)


# Portraits: pictures of NPCs in files beside the campaign file.

MOST_BYTES: Final = 2_000_000
MOST_PIXELS: Final = 2_048
"""Limit of a picture's width and height."""
_SHOWN_PIXELS: Final = 512
"""Pages show a portrait in a circle a few millimetres wide."""


def read_portrait(folder: Path, name: str) -> Portrait:
    """Read a portrait as it is served.

    Args:
        folder: Folder of the campaign file.
        name: Path of the picture, relative to that folder.

    Raises:
        InvalidInput: It is outside of the folder, is not there, is too large, or is no picture that can be read.
    """
    where = folder.resolve()
    try:
        path = (where / name).resolve()
    except (OSError, ValueError):
        raise InvalidInput(f"{name!r} is no name of a file") from None
    if not path.is_relative_to(where):
        raise InvalidInput(f"{name!r} is outside of the campaign file's folder; put the picture into it")
    try:
        if not path.is_file():
            raise InvalidInput(f"there is no file {name!r} beside the campaign file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{name!r} cannot be read: {error.strerror}") from error
    return redrawn(name, content)


def redrawn(name: str, content: bytes, *, most_bytes: int = MOST_BYTES) -> Portrait:
    """Draw a picture again, upright and at most 512 pixels wide and high.

    The new file holds pixels alone: no EXIF, no comment, no colour profile, and nothing that stood after its end.

    Raises:
        InvalidInput: It is too large, is damaged, or is no PNG, JPEG or WebP.
    """
    if len(content) > most_bytes:
        raise InvalidInput(f"{name!r} has more than {most_bytes // 1_000:,} kB; save it smaller")
    from PIL import Image, ImageOps  # most campaigns have no portrait, and it takes a tenth of a second

    made = BytesIO()
    try:
        with Image.open(BytesIO(content), formats=("PNG", "JPEG", "WEBP")) as picture:
            width, height = picture.size
            kind = "JPEG" if picture.format == "MPO" else str(picture.format)  # a phone's JPEG that holds several
            if max(width, height) <= MOST_PIXELS:
                picture.thumbnail((_SHOWN_PIXELS, _SHOWN_PIXELS))
                upright = ImageOps.exif_transpose(picture)
                drawn = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
                drawn.info.clear()
                drawn.save(made, kind, quality=90)
    except Exception as error:  # what a decoder raises for a damaged picture is not documented
        raise InvalidInput(f"{name!r} is damaged, or is no PNG, JPEG or WebP") from error
    if max(width, height) > MOST_PIXELS:
        raise InvalidInput(f"{name!r} has {width} x {height} pixels; at most {MOST_PIXELS} x {MOST_PIXELS} are served")
    return Portrait(f"image/{kind.lower()}", made.getvalue())
