"""The campaign file of an open table, looked at and changed in the desk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.playable import read_playable
from glyphoxa.config.campaign_edit import KeptFile, additions, insert_all, stamp_of
from glyphoxa.config.located_yaml import InvalidFile, Problem
from glyphoxa.config.settings import Settings
from glyphoxa.dm.campaign_diff import CampaignChanges
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput
from glyphoxa.domain.ids import CampaignId

MOST_CHARACTERS: Final = 1_000_000
"""A longer file is changed with an editor and `glyphoxa campaign load`."""


@dataclass(frozen=True, slots=True)
class CampaignDraft:
    """A text that the campaign file may hold one day.

    Attributes:
        instead_of: The stamp of what the file held when the text was begun.
        problems: Why no table can be opened with it. Otherwise there are `campaign` and `changes`.
        changes: What keeping it does to the stored campaign.
    """

    text: str
    instead_of: str
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    campaign: Campaign | None = None
    changes: CampaignChanges | None = None

    @property
    def is_changed(self) -> bool:
        """Whether it differs from what the file held."""
        return stamp_of(self.text) != self.instead_of

    @property
    def shown(self) -> str:
        """A stamp of what the game master is shown of its effect."""
        changes = self.changes or CampaignChanges()
        return stamp_of(repr((self.text, changes.added, changes.changed, changes.removed, changes.remarks)))


class CampaignEditor:
    """
    Attributes:
        file: The campaign file.
    """

    def __init__(self, settings: Settings, store: Store, campaign: CampaignId) -> None:
        """Raises: InvalidInput: The settings name no campaign file."""
        if settings.campaign is None:
            raise InvalidInput("this table was opened without a campaign file")
        self.file: Final = KeptFile(settings.campaign)
        self._settings = settings
        self._store = store
        self._campaign = campaign

    async def begin(self) -> CampaignDraft:
        """As the file is now.

        Raises:
            InvalidInput: It cannot be read.
            Unavailable: The database is away.
        """
        text = self.file.read()
        return await self.look(text, instead_of=stamp_of(text))

    async def look(self, text: str, *, instead_of: str) -> CampaignDraft:
        """What is wrong with a text, or what it changes. Nothing is kept.

        Raises:
            InvalidInput: It is too long to be changed here.
            Unavailable: The database is away.
        """
        text = text.replace("\r\n", "\n")
        if len(text) > MOST_CHARACTERS:
            raise InvalidInput(
                f"the text has {len(text):,} characters, and {MOST_CHARACTERS:,} can be changed here: change the file "
                "with an editor, then: glyphoxa campaign load"
            )
        try:
            # A picture takes a tenth of a second.
            amount = len(text) // 50 + 10_000 * text.count("portrait:")
            found = await offload(lambda: read_playable(self.file.path, self._settings, text), amount=amount)
        except InvalidFile as error:
            return CampaignDraft(text, instead_of, error.problems)
        if found.campaign.id != self._campaign:
            where = found.source.problem(("campaign", "id"), "")
            what = f"the campaign's id is {found.campaign.id!r} here: the one that is open is {self._campaign!r}"
            return CampaignDraft(text, instead_of, (Problem(where.line, what),))
        changes = await self._store.campaigns.changes(found.campaign)
        warnings = tuple(each.removeprefix(f"{self.file.path}:") for each in found.warnings)
        return CampaignDraft(text, instead_of, (), warnings, found.campaign, changes)

    async def add(self, draft: CampaignDraft, form: Mapping[str, str]) -> CampaignDraft:
        """The draft with what a form adds to it. Nothing is kept.

        Raises:
            InvalidInput: The form is incomplete, or the text has no place for it.
            Unavailable: The database is away.
        """
        text = insert_all(draft.text, additions(form, draft.campaign))
        return await self.look(text, instead_of=draft.instead_of)

    async def keep(self, draft: CampaignDraft, *, shown: str) -> CampaignChanges:
        """Write the file, and bring what it changes into the stored campaign: both, or nothing.

        Args:
            shown: What the game master was shown of its effect (`CampaignDraft.shown`).

        Raises:
            InvalidInput: The draft has mistakes, or does something else by now, or the file is not what it was.
            Unavailable: The database is away.
        """
        if draft.campaign is None or draft.changes is None:
            raise InvalidInput("a campaign with mistakes cannot be kept")
        if draft.shown != shown:
            raise InvalidInput("this is not what you were shown; nothing was kept, look at it again")
        before = self.file.read()
        self.file.replace(draft.text, instead_of=draft.instead_of)
        try:
            return await self._store.campaigns.load(draft.campaign, only_if=draft.changes)
        except GlyphoxaError:
            self.file.replace(before, instead_of=stamp_of(draft.text))
            raise
