"""The content of an import: documents of another tool, and the DM's decisions about them.

Every reader of a plug-in returns a `SourceWorld`. Nothing of it enters the campaign before the DM accepts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from glyphoxa.domain.ids import EntityId, plain_name

ImportKind = Literal["foundry", "roll20", "markdown", "csv", "card"]
Decision = Literal["waiting", "accepted", "skipped"]
LOCATED_AT: Final = "LOCATED_AT"
NEW_ENTITY = EntityId("")
"""A value of `DocumentEdit.same_as`: the document is an entity of its own, whatever its name."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text of a document, as Markdown without images or HTML.

    Attributes:
        hidden: Only the DM could read it in the other tool.
        page: Where it stands in its document ("GM notes", "page 2: The Siege"); "" for the document itself.
        for_npc: It is part of the persona of this person, or an example: a player's line, and the answer on the next.
            It becomes no fact. The draft of the person as an NPC contains it.
        why: The marks that hide it; "" if it is not hidden, or as its document.
    """

    text: str
    hidden: bool
    page: str = ""
    for_npc: Literal["", "persona", "example"] = ""
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SourceLink:
    """A relation to another document of the same source.

    Attributes:
        target: Its key.
        type: A relation type, such as LOCATED_AT.
    """

    target: str
    type: str
    hidden: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of another tool that may become an entity.

    Attributes:
        key: Identifies it in its source, also in a later version of it.
        type: One of `ENTITY_TYPES`, or another word that the source uses ("deity").
        kind: The tool's word for it: "Actor (npc)", "handout", "note".
        file: Its path inside the source.
        folders: Names of the folders it is in, outermost first.
        attributes: Data besides its texts; statistics of the rules are not read.
        hidden: Only the DM could see it in the other tool, or nobody can tell.
        portrait: Path of its picture inside the source; "" for none.
        why: The mark that hides it; "" if it is not hidden.
        doubts: Words in its visible part that often tell a secret. They hide nothing.
    """

    key: str
    name: str
    type: str
    kind: str
    file: str
    folders: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = True
    texts: tuple[SourceText, ...] = ()
    links: tuple[SourceLink, ...] = ()
    portrait: str = ""
    why: str = field(default="", compare=False)
    doubts: tuple[str, ...] = field(default=(), compare=False)

    @property
    def marks(self) -> str:
        """The marks that hide it or some of its texts; "" if nothing is hidden."""
        found = [self.why] if self.hidden else [text.why for text in self.texts if text.hidden]
        return "; ".join(dict.fromkeys(filter(None, found)))


@dataclass(frozen=True, slots=True)
class SourceWorld:
    """A world as another tool wrote it.

    Attributes:
        id: Identifies the source in a later import: the id of a Foundry world, the name of a vault.
        remarks: For the DM: what was left out and why, what the tool's terms allow.
    """

    kind: ImportKind
    id: str
    name: str
    documents: tuple[SourceDocument, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """The DM's changes to a document before accepting it; None: no change. Survives later imports.

    Attributes:
        same_as: The entity that it is; `NEW_ENTITY` for one of its own.
    """

    name: str | None = None
    type: str | None = None
    hidden: bool | None = None
    same_as: EntityId | None = None


NO_EDIT: Final = DocumentEdit()


@dataclass(frozen=True, slots=True)
class DocumentSelection:
    """Which waiting documents are meant: those that match every given part. Without any part: all.

    Attributes:
        keys: Keys of single documents.
        source: A `SourceWorld`, as `kind:id`.
        folder: Name of a folder that it is in, at any depth; "/Name": of the outermost one; "/": it is in none.
    """

    keys: tuple[str, ...] = ()
    source: str = ""
    type: str = ""
    kind: str = ""
    folder: str = ""


EVERYTHING: Final = DocumentSelection()

LONGEST_NAME: Final = 200


def name_of(text: str) -> str:
    """Return a text as a name that can be stored; "" if nothing of it can."""
    return plain_name("".join(each if each.isprintable() else " " for each in text))[:LONGEST_NAME].strip()


def united(documents: Sequence[SourceDocument]) -> SourceDocument:
    """Return one document of those with the same name and type. What only the DM knew of any stays hidden."""
    hidden = all(each.hidden for each in documents)
    texts: dict[tuple[str, bool], SourceText] = {}
    links: dict[tuple[str, str], bool] = {}
    for each in documents:
        for text in each.texts:
            texts.setdefault((text.text, text.hidden), text)
        for link in each.links:
            links[link.target, link.type] = links.get((link.target, link.type), True) and link.hidden
    known = [each for each in documents if each.hidden == hidden]
    return replace(
        documents[0],
        aliases=tuple(dict.fromkeys(alias for each in known for alias in each.aliases)),
        attributes={name: value for each in reversed(known) for name, value in each.attributes.items()},
        hidden=hidden,
        texts=tuple(texts.values()),
        links=tuple(SourceLink(target, type_, is_secret) for (target, type_), is_secret in links.items()),
        portrait=next((each.portrait for each in known if each.portrait), ""),
        why=documents[0].why if hidden else "",
    )


def told_apart(documents: Iterable[SourceDocument]) -> list[SourceDocument]:
    """Add the name of its folder, or its file, to each document that shares its name and type with another one."""
    made = list(documents)
    for by_folder in (True, False):
        count = Counter((each.name.casefold(), each.type) for each in made)
        for n, each in enumerate(made):
            more = "".join(each.folders[-1:]) if by_folder else each.file
            if more and count[each.name.casefold(), each.type] > 1:
                made[n] = replace(each, name=f"{each.name} ({more})")
    return made
