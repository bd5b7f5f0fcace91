"""Review what an import brings: compare it with the campaign, decide, and let in what was accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.dm.imported import EVERYTHING, NO_EDIT, Decision, Edit, Selection, SourceDocument, SourceWorld
from glyphoxa.domain.campaign import Entity
from glyphoxa.domain.ids import EntityId


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a source brought, in numbers of documents.

    Attributes:
        source: `kind:id`, as in `Selection.source`.
        n_new: They wait for the DM.
        n_changed: They changed since they were accepted, and wait.
        n_skipped: The DM skipped them, now or in an earlier import.
        gone: Names of those accepted documents that the source no longer has; their entities stay.
        remarks: As in `SourceWorld`.
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
        document: As it would be let in, with the DM's edits.
        source: `kind:id`.
        same_as: The entity of the campaign that it becomes part of; None: it becomes an entity.
        like: Entities with a similar name, which it may be.
        changes: What changed since it was accepted, in words; empty for a new one.
        edit: What the DM changed.
    """

    document: SourceDocument
    source: str
    same_as: Entity | None = None
    like: tuple[Entity, ...] = ()
    changes: tuple[str, ...] = ()
    edit: Edit = NO_EDIT


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
    """Where an entity comes from: a document that was accepted.

    Attributes:
        source: `kind:id`.
        name: As the document names it.
    """

    source: str
    file: str
    key: str
    kind: str
    name: str


class ImportDesk:
    """The DM's decisions about imports of one campaign.

    Every call may raise `Unavailable` when the database is away; then nothing of it happened.
    """

    async def take_in(self, world: SourceWorld) -> Arrival:
        """Store what a source brought, so that the DM can review it. The campaign does not change.

        Raises:
            InvalidInput: The same source is being imported now.
        """
        raise NotImplementedError

    async def groups(self) -> Sequence[Group]:
        """Return all waiting documents in groups, the largest first."""
        raise NotImplementedError

    async def waiting(
        self, selection: Selection = EVERYTHING, *, offset: int = 0, limit: int = 100, decision: Decision = "waiting"
    ) -> tuple[int, Sequence[Proposal]]:
        """Return how many documents wait, and some of them: by source, type and name.

        Args:
            decision: "skipped": those that the DM skipped, instead.
        """
        raise NotImplementedError

    async def edit(self, selection: Selection, edit: Edit) -> int:
        """Change waiting documents; what `edit` leaves at None stays. Returns their number.

        Raises:
            NotFound: None waits.
            InvalidInput: Several would get the same name or entity, or the type or name is invalid.
        """
        raise NotImplementedError

    async def preview(self, selection: Selection) -> CampaignChanges:
        """Return what accepting these would change."""
        raise NotImplementedError

    async def accept(self, selection: Selection) -> CampaignChanges:
        """Let waiting documents into the campaign, all or none.

        Claims found in their texts wait for review as facts do, with the page as their source.

        Raises:
            NotFound: None waits.
            InvalidInput: They do not fit the campaign; nothing was let in.
        """
        raise NotImplementedError

    async def skip(self, selection: Selection) -> int:
        """Leave waiting documents out, now and in later imports. Returns their number. Raises: NotFound."""
        raise NotImplementedError

    async def restore(self, selection: Selection) -> int:
        """Let skipped documents wait again. Returns their number. Raises: NotFound."""
        raise NotImplementedError

    async def documents_of(self, entity: EntityId) -> Sequence[DocumentReference]:
        """Return the accepted documents that an entity comes from."""
        raise NotImplementedError
