"""Review what an import brings: compare it with the campaign, decide, and let in what was accepted."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, pairwise
from operator import itemgetter
from typing import Any, Final

from glyphoxa.dm.campaign_diff import Tables
from glyphoxa.dm.source_world import (
    LONGEST_NAME,
    NO_EDIT,
    Decision,
    DocumentEdit,
    SourceDocument,
    SourceText,
    SourceWorld,
    name_of,
)
from glyphoxa.domain.campaign import ENTITY_TYPES, Entity, Relationship, Secret
from glyphoxa.domain.errors import InvalidInput, did_you_mean
from glyphoxa.domain.ids import EntityId, plain_name, slug
from glyphoxa.domain.knowledge import Claim
from glyphoxa.language.sentences import shortened
from glyphoxa.names.naming import Resolver


@dataclass(frozen=True, slots=True)
class Arrival:
    """The documents of a source, in numbers.

    Attributes:
        source: `kind:id`, as in `DocumentSelection.source`.
        n_changed: They changed since they were accepted, and wait.
        gone: Names of accepted documents that the source no longer has; their entities stay.
    """

    source: str
    n_new: int = 0
    n_changed: int = 0
    n_unchanged: int = 0
    n_skipped: int = 0
    gone: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A document that waits for the DM.

    Attributes:
        document: With the DM's edits.
        same_as: The entity of the campaign that it becomes part of; None: it becomes an entity.
        like: Entities with a similar name, which it may be.
        changes: Descriptions of what changed since it was accepted.
    """

    document: SourceDocument
    source: str
    same_as: Entity | None = None
    like: tuple[Entity, ...] = ()
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Waiting documents of one kind and type; `folder` is the outermost one, "" for none."""

    source: str
    kind: str
    type: str
    folder: str
    n: int


@dataclass(frozen=True, slots=True)
class DocumentReference:
    """The accepted document that an entity comes from, and its page if known."""

    source: str
    document: SourceDocument
    page: str = ""

    @property
    def words(self) -> str:
        """Return the reference in words: "foundry Actor (npc) Berta, GM notes (data/actors.db, Actor.x1)"."""
        one, page = self.document, f", {self.page}" if self.page else ""
        place = ", ".join(dict.fromkeys((one.file, one.key)))
        return f"{self.source.partition(':')[0]} {one.kind} {one.name}{page} ({place})"


# What a source brought, compared with what it brought before.


def cleaned(world: SourceWorld) -> SourceWorld:
    """Return a world whose documents can be stored: names in one line, no key twice, no attribute that is a secret."""
    kept: dict[str, SourceDocument] = {}
    remarks = list(world.remarks)
    for document in world.documents:
        clean = _cleaned(document)
        if not clean.name or not clean.type:
            remarks.append(f"{clean.file}: {clean.kind} {clean.key!r} has no name or type, so it was left out")
        elif clean.key in kept:
            remarks.append(f"{clean.file}: {clean.name}: {clean.key!r} occurs twice; only the first was read")
        else:
            kept[clean.key] = clean
    return replace(world, documents=tuple(kept.values()), remarks=tuple(remarks))


def _cleaned(document: SourceDocument) -> SourceDocument:
    attributes: dict[str, str] = {}
    texts = list(document.texts)
    for name, value in document.attributes.items():
        key = name_of(name)
        if key.casefold() == "secret":
            texts.append(SourceText(value, hidden=True, page=key))
        elif key and value.strip() and key.casefold() not in ("known_by", "known_in", "hidden"):
            attributes[key] = value.strip()
    name = name_of(document.name)
    aliases = dict.fromkeys(map(name_of, document.aliases))
    return replace(
        document,
        name=name,
        type=name_of(document.type),
        aliases=tuple(alias for alias in aliases if alias and alias.casefold() != name.casefold()),
        attributes=attributes,
        texts=tuple(text for text in texts if text.text.strip()),
    )


def digest_of(document: SourceDocument) -> str:
    """Return a digest of what becomes part of the campaign; not of where it stands in its source."""
    parts = (
        document.name,
        document.type,
        document.hidden,
        sorted(document.aliases),
        sorted(document.attributes.items()),
        [(text.page, text.hidden, text.text) for text in document.texts],
        sorted((link.target, link.type, link.hidden, *sorted(link.attributes.items())) for link in document.links),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Seen:
    """A document as it was in the last import; `accepted_digest`: as it was when it was accepted, None: never."""

    name: str
    digest: str
    decision: Decision
    accepted_digest: str | None = None

    def decision_about(self, digest: str) -> Decision:
        """Return the decision about the document as it is now.

        A skipped document stays skipped. An accepted one waits when it changed, and again when it changes after the DM
        skipped a change.
        """
        if digest == self.accepted_digest:
            return "accepted"
        return self.decision if digest == self.digest or self.accepted_digest is None else "waiting"


def arrival_of(source: str, world: SourceWorld, digests: Mapping[str, str], seen: Mapping[str, Seen]) -> Arrival:
    """Count what a source brought; `digests` and what was `seen` of it earlier are by key."""
    n: Counter[str] = Counter()
    for key, digest in digests.items():
        before = seen.get(key)
        decision = "waiting" if before is None else before.decision_about(digest)
        if decision == "waiting" and (before is None or before.digest != digest):
            n["new" if before is None or before.accepted_digest is None else "changed"] += 1
        elif decision == "skipped":
            n[decision] += 1
    gone = tuple(sorted(each.name for key, each in seen.items() if each.accepted_digest and key not in digests))
    return Arrival(source, n["new"], n["changed"], len(digests) - n.total(), n["skipped"], gone, world.remarks)


# Documents and the entities that they are, or may be.


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the source has it, and as it was accepted, with its texts as they are in the campaign.

    Attributes:
        entity: The entity that it is part of, since it was accepted.
        is_own: The entity exists because of it.
    """

    source: str
    document: SourceDocument
    edit: DocumentEdit = NO_EDIT
    accepted: SourceDocument | None = None
    entity: EntityId | None = None
    is_own: bool = False

    @property
    def edited(self) -> SourceDocument:
        """The document with the DM's edits."""
        edited: dict[str, Any] = {"name": self.edit.name, "type": self.edit.type, "hidden": self.edit.hidden}
        return replace(self.document, **{part: value for part, value in edited.items() if value is not None})


_LIKE: Final = 85
"""Similarity of two names, in percent, from which they may be one."""
_MOST_LIKE: Final = 3


def _same_as(document: SourceDocument, known: Resolver[Entity]) -> Entity | None:
    """Return the only entity of that type that has the document's name, or one of its aliases for its name."""
    # A page, which is a concept, may be about anything.
    types = {"concept", document.type} | ({"npc", "player"} if document.type in ("npc", "player") else set())
    for found in _called(document, known):
        fits = [each for each in found.values() if each.type in types or document.type == "concept"]
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


def _like(document: SourceDocument, known: Resolver[Entity]) -> tuple[Entity, ...]:
    """Return entities with the same or a similar name, the most similar first."""
    same = [each for found in _called(document, known) for each in found.values()]
    near = known.like(document.name, least=_LIKE, limit=_MOST_LIKE)
    return tuple({each.id: each for each in (*same, *near)}.values())[:_MOST_LIKE]


def _called(document: SourceDocument, known: Resolver[Entity]) -> Iterator[Mapping[str, Entity]]:
    yield from known.tiers(document.name)
    yield {each.id: each for alias in document.aliases for each in known.tiers(alias)[0].values()}


def _part_of(stored: StoredDocument, known: Resolver[Entity]) -> Entity | None:
    """Return the entity that a document is, or will be, part of: as the DM says, or by its name."""
    chosen = stored.edit.same_as if stored.entity is None else stored.entity
    return _same_as(stored.edited, known) if chosen is None else known.by_id.get(chosen)


def proposal_of(stored: StoredDocument, known: Resolver[Entity], names: Mapping[str, str]) -> Proposal:
    """Return what the DM decides about."""
    document, same = stored.edited, _part_of(stored, known)
    is_open = stored.entity is None and stored.edit.same_as is None
    like = _like(document, known) if is_open and same is None else ()
    changes = () if stored.accepted is None else differences(stored.accepted, document, names)
    return Proposal(document, stored.source, same, like, changes)


def differences(before: SourceDocument, after: SourceDocument, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return how a document changed, in words. The texts `before` are as they are in the campaign.

    Args:
        names: Names of other documents, by key.
    """
    found = [
        f"{part}: {old} is now {new}"
        for part, old, new in (("name", before.name, after.name), ("type", before.type, after.type))
        if old != new
    ]
    if before.hidden != after.hidden:
        found.append("hidden from players" if after.hidden else "visible to players")
    parts = zip(_said(before, before.texts, names), _said(after, _in_short(after), names), strict=True)
    for old, new in parts:
        found += [f"removed: {_shown(name, value)}" for name, value in old.items() if name not in new]
        for name, value in new.items():
            if old.get(name) != value:
                found.append(f"{'changed' if name in old else 'new'}: {_shown(name, value)}")
    return tuple(found or ["changed: the end of a long text"])


def _said(document: SourceDocument, texts: Iterable[SourceText], names: Mapping[str, str]) -> Iterable[dict[str, str]]:
    """Yield what a document says, with a name for each part: aliases, attributes, texts, relations."""
    yield {f"alias {alias}": "" for alias in document.aliases}
    yield dict(document.attributes)
    yield {f"{each.page or 'text'}{' (hidden)' * each.hidden}": each.text for each in texts}
    yield {
        f"relation {each.type} {names.get(each.target, each.target)}": "; ".join(
            map(": ".join, each.attributes.items())
        )
        for each in document.links
    }


def _shown(name: str, value: str) -> str:
    return name + (f" {shortened(value, 80)!r}" if value else "")


# From accepted documents to content of the campaign.


_MOST_CHARACTERS: Final = 500
"""Limit of a text in the campaign; the whole text stays with its document."""


def placed(
    documents: Iterable[StoredDocument], known: Resolver[Entity], is_taken: Callable[[EntityId], bool]
) -> list[StoredDocument]:
    """Return documents as they are once accepted: each is a new entity or part of one. `known` is extended.

    Raises:
        InvalidInput: The entity that one shall be part of no longer exists.
    """
    made: list[StoredDocument] = []
    for each in sorted(documents, key=lambda each: each.edited.type == "concept"):  # a page may be about another one
        document, entity, is_own = each.edited, each.entity, each.is_own
        if entity is None:
            same = _part_of(each, known)
            if (chosen := each.edit.same_as) and same is None:
                raise InvalidInput(f"{document.name}: the entity {chosen!r} no longer exists; edit the document")
            is_own = same is None
            entity = same.id if same else _new_id(document, lambda wanted: wanted in known.by_id or is_taken(wanted))
            if is_own:
                known.add(Entity(entity, document.type, document.name, document.aliases))
        kept = replace(document, texts=_in_short(document))
        made.append(replace(each, accepted=kept, entity=entity, is_own=is_own))
    return made


def _new_id(document: SourceDocument, is_taken: Callable[[EntityId], bool]) -> EntityId:
    """Return a new id. A hidden name is no part of it: the entity may be shown one day, by another name."""
    kind, key = slug(document.type), hashlib.sha256(document.key.encode()).hexdigest()[:8]
    name = "" if document.hidden else slug(document.name)
    wanted = (name, f"{name}-{kind}") if name else (f"{kind}-{key}",)
    numbered = (f"{wanted[-1]}-{n}" for n in count(2))
    return next(EntityId(each) for each in chain(wanted, numbered) if not is_taken(EntityId(each)))


def tables_of(accepted: Iterable[StoredDocument], known: Resolver[Entity]) -> Tables:
    """Return what the accepted documents of one source state together about the entities that they are part of.

    An entity that exists only because of documents hidden from players is hidden. The content of a hidden document
    about an entity that exists anyway becomes hidden secrets.
    """
    by_entity: dict[EntityId, list[tuple[bool, SourceDocument]]] = {}
    entity_of: dict[str, EntityId] = {}
    for each in accepted:
        if each.entity is not None and each.accepted is not None:
            by_entity.setdefault(each.entity, []).append((not each.is_own, each.accepted))
            entity_of[each.document.key] = each.entity
    found = [_statements(entity, documents, known, entity_of) for entity, documents in by_entity.items()]
    edges = {(edge.source, edge.target, edge.type): edge for _, of, _ in found for edge in reversed(of)}
    return Tables(
        tuple(entity for entity, _, _ in found),
        tuple(edges.values()),
        tuple(secret for _, _, secrets in found for secret in secrets),
    )


def _statements(
    id: EntityId,  # noqa: A002 - the entity's word
    by_owning: Sequence[tuple[bool, SourceDocument]],
    known: Resolver[Entity],
    entity_of: Mapping[str, EntityId],
) -> tuple[Entity, list[Relationship], list[Secret]]:
    """Return what documents state about one entity; each comes with whether the entity exists without it."""
    documents = [document for _, document in sorted(by_owning, key=itemgetter(0))]
    is_own = not all(exists for exists, _ in by_owning)
    is_hidden = is_own and all(document.hidden for document in documents)
    held: Entity | SourceDocument | None = None if is_own else known.by_id.get(id)
    if held is None:  # a hidden name must not become that of an entity that players know
        held = next((document for document in documents if not document.hidden), documents[0])
    aliases: dict[str, str] = {}
    attributes: dict[str, object] = {}
    notes: dict[str, None] = {}
    secrets: dict[str, None] = {}
    edges: list[Relationship] = []
    for document in documents:
        is_secret = document.hidden and not is_hidden
        names = [one for one in (document.name, *document.aliases) if one.casefold() != held.name.casefold()]
        if is_secret:
            secrets |= dict.fromkeys([f"alias: {', '.join(names)}"] if names else [])
            secrets |= dict.fromkeys(f"{name}: {value}" for name, value in document.attributes.items())
        else:
            aliases = {**{alias.casefold(): alias for alias in names}, **aliases}
            attributes = {**document.attributes, **attributes}
        for text in (each for each in document.texts if not each.for_npc):
            if text.hidden or is_secret:
                secrets[text.text] = None
            elif is_own and "description" not in attributes:
                attributes["description"] = text.text
            elif text.text != attributes.get("description"):  # of a note that was moved
                notes[text.text] = None
        edges += _edges(id, document, entity_of, is_own=is_own, is_hidden=is_secret)
    if notes:
        attributes["note"] = [*([attributes["note"]] if "note" in attributes else []), *notes]
    return (
        Entity(id, held.type, held.name, tuple(aliases.values()), attributes, hidden=is_hidden),
        edges,
        [Secret(text, frozenset(), about=id, hidden=True) for text in secrets],
    )


def _edges(
    entity: EntityId, document: SourceDocument, entity_of: Mapping[str, EntityId], *, is_own: bool, is_hidden: bool
) -> Iterable[Relationship]:
    """Yield its relations to accepted documents. It can be in one place; where else it is, is a mere relation.

    Where an entity that exists anyway is, the DM decides.
    """
    is_placed = False
    for link in document.links:
        target = entity_of.get(link.target)
        if target is None or target == entity:
            continue
        kind = link.type if link.type != "LOCATED_AT" or not is_placed else "LINKED_TO"
        is_placed |= kind == "LOCATED_AT"
        edge = Relationship(entity, target, kind, link.attributes, hidden=link.hidden or is_hidden)
        if kind == "LOCATED_AT" and not is_own:
            edge = replace(edge, confidence=0.5, origin="inferred", dm_confirmed=False)
        yield edge


def in_short(text: str) -> str:
    """Return the beginning of a Markdown text without its headings and tables: at most 500 characters.

    >>> in_short(chr(10).join(("# Moor", "", "In the **far south**", "", "- Lights", "- Peat")))
    'In the far south. Lights. Peat'
    """
    text = text.replace("**", "").replace("__", "").replace("`", "").replace("::", ":")
    lines = [line.strip("> ") for line in text.splitlines()]
    prose = ""
    for above, line in pairwise(["", *lines]):
        if line and not line.startswith(("#", "|", "---")) and len(prose) < 2 * _MOST_CHARACTERS:
            is_item = line.startswith(("* ", "- ", "+ "))
            prose += ". " if (is_item or not above) and prose[-1:].isalnum() else " "
            prose += line[2:].lstrip() if is_item else line
    plain = (prose or " ".join(lines)).strip()
    return shortened(plain[: 2 * _MOST_CHARACTERS], _MOST_CHARACTERS)


def _in_short(document: SourceDocument) -> tuple[SourceText, ...]:
    return tuple(each if each.for_npc else replace(each, text=in_short(each.text)) for each in document.texts)


def where_stated(source: str, document: SourceDocument, claim: Claim) -> DocumentReference | None:
    """Return where an accepted document states a claim about its entity; None: it does not."""
    if claim.object is not None:
        found = [""] if any(link.type == claim.predicate for link in document.links) else []
    else:
        value = claim.content
        found = [text.page for text in document.texts if text.text == value]
        found += ["" for name, said in document.attributes.items() if value in (said, f"{name}: {said}")]
    return DocumentReference(source, document, found[0]) if found else None


def checked_edit(
    edit: DocumentEdit, documents: Sequence[StoredDocument], types: Mapping[EntityId, str], own: Iterable[str] = ()
) -> DocumentEdit:
    """Return an edit as it is stored; `own` are the campaign's types. Raises: InvalidInput: It does not fit them."""
    if (one := edit.name or edit.same_as) and len(documents) > 1:
        raise InvalidInput(f"{len(documents)} documents cannot all be {one!r}; name one of them")
    if edit.name is not None:
        name = plain_name(edit.name)
        if not name or name != name_of(name):
            valid_name = f"it must have 1 to {LONGEST_NAME} characters in one line"
            raise InvalidInput(f"the name {name[:40]!r} is invalid: {valid_name}")
        edit = replace(edit, name=name)
    if edit.type is not None:
        valid = {*ENTITY_TYPES, *own, *types.values(), *(each.document.type for each in documents)}
        wanted = edit.type.strip().casefold()
        chosen = next((each for each in sorted(valid) if each.casefold() == wanted), None)
        if chosen is None:
            raise InvalidInput(f"unknown entity type {edit.type!r}, {did_you_mean(edit.type, valid)}")
        edit = replace(edit, type=chosen)
    if edit.same_as is not None:
        if edit.same_as and edit.same_as not in types:
            raise InvalidInput(f"no entity {edit.same_as!r} in this campaign: {did_you_mean(edit.same_as, types)}")
        for each in (each for each in documents if each.entity is not None):
            what = f"{each.edited.name}: it is already part of the entity {each.entity!r}"
            raise InvalidInput(f"{what}; merge the entities instead")
    return edit
