"""Imports in memory, for pages and commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.dm.import_review import Arrival, DocumentReference, Group, ImportDesk, Proposal
from glyphoxa.dm.imported import EVERYTHING, Decision, Edit, Selection, SourceWorld
from glyphoxa.domain.errors import NotFound
from glyphoxa.domain.ids import EntityId, slug


class ImportTwin(ImportDesk):
    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[Decision, Proposal]] = {}

    def _of(self, selection: Selection, decision: Decision) -> list[Proposal]:
        return [
            one
            for is_, one in self.found.values()
            if is_ == decision
            and (not selection.keys or one.document.key in selection.keys)
            and selection.source in ("", one.source)
            and selection.type in ("", one.document.type)
            and selection.kind in ("", one.document.kind)
            and (not selection.folder or selection.folder in one.document.folders)
        ]

    def _decide(self, selection: Selection, was: Decision, now: Decision) -> int:
        meant = self._of(selection, was)
        if not meant:
            raise NotFound("no such document needs review")
        for each in meant:
            self.found[each.source, each.document.key] = (now, each)
        return len(meant)

    async def take_in(self, world: SourceWorld) -> Arrival:
        source = f"{world.kind}:{world.id}"
        new = [each for each in world.documents if (source, each.key) not in self.found]
        for each in new:
            self.found[source, each.key] = ("waiting", Proposal(each, source))
        return Arrival(source, n_new=len(new), n_unchanged=len(world.documents) - len(new), remarks=world.remarks)

    async def groups(self) -> Sequence[Group]:
        counts = Counter(
            (one.source, one.document.kind, one.document.type, next(iter(one.document.folders), ""))
            for one in self._of(EVERYTHING, "waiting")
        )
        return [Group(*each, n) for each, n in counts.most_common()]

    async def waiting(
        self, selection: Selection = EVERYTHING, *, offset: int = 0, limit: int = 100, decision: Decision = "waiting"
    ) -> tuple[int, Sequence[Proposal]]:
        found = sorted(self._of(selection, decision), key=lambda each: (each.document.type, each.document.name))
        return len(found), found[offset : offset + limit]

    async def edit(self, selection: Selection, edit: Edit) -> int:
        for each in self._of(selection, "waiting"):
            one = each.document
            changed = replace(
                one,
                name=edit.name or one.name,
                type=edit.type or one.type,
                hidden=one.hidden if edit.hidden is None else edit.hidden,
            )
            self.found[each.source, one.key] = ("waiting", replace(each, document=changed, edit=edit))
        return len(self._of(selection, "waiting"))

    async def preview(self, selection: Selection) -> CampaignChanges:
        return CampaignChanges(added=tuple(each.document.name for each in self._of(selection, "waiting")))

    async def accept(self, selection: Selection) -> CampaignChanges:
        changes = await self.preview(selection)
        self._decide(selection, "waiting", "accepted")
        return changes

    async def skip(self, selection: Selection) -> int:
        return self._decide(selection, "waiting", "skipped")

    async def restore(self, selection: Selection) -> int:
        return self._decide(selection, "skipped", "waiting")

    async def documents_of(self, entity: EntityId) -> Sequence[DocumentReference]:
        return [
            DocumentReference(one.source, one.document.file, one.document.key, one.document.kind, one.document.name)
            for is_, one in self.found.values()
            if is_ == "accepted" and slug(one.document.name) == entity
        ]
