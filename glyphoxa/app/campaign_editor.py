"""Checks, extends and saves the campaign file of an open table, and drafts an NPC for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import yaml
from pydantic import TypeAdapter

from glyphoxa.actors.limits import offload
from glyphoxa.adapters.local.hibari_voice import PRESETS
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.app.desk import Desk
from glyphoxa.app.engines import read_playable
from glyphoxa.app.scope import Scope
from glyphoxa.config.campaign_edit import AtomicFile, additions, insert, stamp_of
from glyphoxa.config.located_yaml import InvalidFile, Problem
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.domain.campaign import Campaign, Exchange, Npc
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import NpcId, SceneId
from glyphoxa.domain.knowledge import PUBLIC
from glyphoxa.prompt.identity import examples_draft, persona_draft
from glyphoxa.transcript.sessions import LastSessions
from glyphoxa.world.graph import Known

MOST_CHARACTERS: Final = 1_000_000
"""Longer files are changed with an editor and `glyphoxa campaign load`."""


@dataclass(frozen=True, slots=True)
class CampaignDraft:
    """A new text for the campaign file, before it is saved.

    Attributes:
        base: The stamp of the file's text on which this one is based.
        problems: Mistakes because of which no table can be opened. Without any, `campaign` and `changes` are set.
        changes: The effect of saving on the stored campaign.
    """

    text: str
    base: str
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    campaign: Campaign | None = None
    changes: CampaignChanges | None = None

    @property
    def is_changed(self) -> bool:
        """Whether it differs from the file's text."""
        return stamp_of(self.text) != self.base

    @property
    def shown(self) -> str:
        """The stamp of the preview, which includes the effect of saving."""
        changes = self.changes or CampaignChanges()
        return stamp_of(repr((self.text, changes.added, changes.changed, changes.removed, changes.remarks)))


class CampaignEditor:
    """Checks, extends and saves the campaign file of an open table."""

    def __init__(self, scope: Scope) -> None:
        """Raises: InvalidInput: The settings name no campaign file."""
        settings = scope.settings
        if settings.campaign is None:
            raise InvalidInput("this table was opened without a campaign file")
        self.file: Final = AtomicFile(settings.campaign)
        self._settings = settings
        self._store = scope.store
        self._campaign = scope.campaign

    async def begin(self) -> CampaignDraft:
        """Begin with the current text. Raises: InvalidInput: It cannot be read. Unavailable: The database is away."""
        text = self.file.read()
        return await self.check(text, base=stamp_of(text))

    async def check(self, text: str, *, base: str) -> CampaignDraft:
        """Find the mistakes in a text, or the changes that it makes. Nothing is saved.

        Raises:
            InvalidInput: It is too long for the desk.
            Unavailable: The database is away.
        """
        text = text.replace("\r\n", "\n")
        if len(text) > MOST_CHARACTERS:
            raise InvalidInput(
                f"the text has {len(text):,} characters; at most {MOST_CHARACTERS:,} can be changed here. Change the "
                "file with an editor, then run: glyphoxa campaign load"
            )
        try:
            # Reading a portrait takes a tenth of a second.
            amount = len(text) // 50 + 10_000 * text.count("portrait:")
            found = await offload(lambda: read_playable(self.file.path, self._settings, text), amount=amount)
        except InvalidFile as error:
            return CampaignDraft(text, base, error.problems)
        if found.campaign.id != self._campaign:
            where = found.source.problem(("campaign", "id"), "")
            what = f"this text has the campaign id {found.campaign.id!r}; the one that is open is {self._campaign!r}"
            return CampaignDraft(text, base, (Problem(where.line, what),))
        changes = await self._store.campaigns.changes(found.campaign)
        warnings = tuple(each.removeprefix(f"{self.file.path}:") for each in found.warnings)
        return CampaignDraft(text, base, (), warnings, found.campaign, changes)

    async def add(self, draft: CampaignDraft, form: Mapping[str, str]) -> CampaignDraft:
        """Return the draft with the items that a form describes. Nothing is saved.

        Raises:
            InvalidInput: The form is incomplete, or the text has no place for it.
            Unavailable: The database is away.
        """
        text = insert(draft.text, *additions(form, draft.campaign))
        return await self.check(text, base=draft.base)

    async def save(self, draft: CampaignDraft, *, shown: str) -> CampaignChanges:
        """Write the file and apply its changes to the stored campaign: both, or nothing.

        Args:
            shown: The stamp of the preview that the DM saw (`CampaignDraft.shown`).

        Raises:
            InvalidInput: The draft has mistakes, its preview is outdated, or the file was changed.
            Unavailable: The database is away.
        """
        if draft.campaign is None or draft.changes is None:
            raise InvalidInput("a campaign with mistakes cannot be saved")
        if draft.shown != shown:
            raise InvalidInput("this is not what you were shown; nothing was saved, check it again")
        before = self.file.read()
        self.file.replace(draft.text, base=draft.base)
        try:
            return await self._store.campaigns.load(draft.campaign, only_if=draft.changes)
        except GlyphoxaError:
            self.file.replace(before, base=stamp_of(draft.text))
            raise


async def npc_form(desk: Desk, name: str, campaign: Campaign, *, scene: SceneId | None = None) -> dict[str, str]:
    """Draft the form that adds a person of the world to the campaign file, as an NPC that speaks.

    Args:
        name: The entity's name, alias or id.
        campaign: The content of the campaign file.
        scene: The NPC's scene; None, or one that is not in the file: the scene where a table would open.

    Raises:
        NotFound: There is no such entity.
        InvalidInput: The name is ambiguous, or this entity is no person or already speaks.
        Unavailable: The database is away.
    """
    entity = desk.resolver.entity(name)
    if any(npc.entity_id == entity.id for npc in campaign.npcs):
        raise InvalidInput(f"{entity.name} already speaks: the campaign file lists it under `npcs:`")
    if entity.type != "npc":
        hint = f"only a person of type 'npc' can speak (glyphoxa entity change {entity.id} --type npc)"
        raise InvalidInput(f"{entity.name} is an entity of type {entity.type!r}: {hint}")
    others = [each.entity for each in desk.seen if each.visibility != PUBLIC and each.entity.id != entity.id]
    merged, _ = await PostgresChronicleLog(desk.store.database, desk.store.world).guarded(desk.campaign)
    secret_names = [name for other in others for name in other.names]
    secret_names += [name for other in merged for name in other.names]
    # Of a person that not everybody may know of, the draft has only the name.
    is_public = desk.resolver.visibility_of(entity.id) == PUBLIC
    memory = desk.store.world_memory(desk.campaign)
    known = (await memory.refresh()).known(NpcId(entity.id), entity.id) if is_public else None
    # What is hidden about a person whom everybody knows is not for its NPC either.
    documents = [one.document for one in await desk.imports.documents_of(entity.id)] if is_public else []
    of_npc = [text for one in documents if not one.hidden for text in one.texts]
    written = "\n".join(text.text for text in of_npc if text.for_npc == "persona")
    said = [text.text for text in of_npc if text.for_npc == "example"]
    npc = Npc(NpcId(entity.id), entity.id, entity.name, persona="")
    drafted = examples_draft(campaign, npc, said, secrets=secret_names)
    examples = TypeAdapter(list[Exchange]).dump_python(drafted, exclude_defaults=True)
    last = LastSessions(desk.settings.data_directory).of(desk.campaign)
    scenes = [each.id for each in campaign.scenes]
    wanted = (scene, last.scene if last is not None else None, *scenes)
    used = Counter(npc.voice.preset for npc in campaign.npcs)
    return {
        "entity": entity.id,
        "name": entity.name,
        "aliases": ", ".join(entity.aliases) if is_public else "",
        "voice": min(PRESETS, key=lambda preset: used[preset]),
        "scene": next((each for each in wanted if each in scenes), ""),
        "persona": persona_draft(campaign, known or Known(entity), secret_names=secret_names, written=written),
        "examples": yaml.safe_dump(examples, sort_keys=False, allow_unicode=True) if examples else "",
    }
