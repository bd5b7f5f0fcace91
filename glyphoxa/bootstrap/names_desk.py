"""What a DM sees and says of a campaign's names: over the command line and in the browser alike."""

from __future__ import annotations

from dataclasses import dataclass

from glyphoxa.adapters.postgres.names.learned import PostgresLearnedNames
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.domain.errors import InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import CampaignId
from glyphoxa.names.followed import with_stored
from glyphoxa.names.learned import NameLearning
from glyphoxa.speech.language.words import fold
from glyphoxa.speech.names.campaign_entries import cast_of, entries_of
from glyphoxa.speech.names.gazetteer import Entry, Gazetteer

_ROWS_A_NAME = 40
"""A name takes as long to index as so many rows take to read."""


@dataclass(frozen=True, slots=True)
class NamesDesk:
    """One campaign with its names.

    Attributes:
        entries: With the names that were stored since the campaign's file was read.
        names: Made of these.
        kept: What was misheard, and what became of it.
    """

    campaign: CampaignId
    entries: list[Entry]
    names: Gazetteer
    kept: PostgresLearnedNames
    learning: NameLearning

    def entity(self, name: str) -> Entry:
        """The entry that goes by this name or alias, in any case.

        Raises:
            NotFound: None does.
            InvalidInput: Several do.
        """
        wanted = fold(name)
        found = [each for each in self.entries if wanted and fold(each.name) == wanted]
        found = found or [each for each in self.entries if wanted and wanted in map(fold, each.aliases)]
        if not found:
            known = [each.name for each in self.entries]
            raise NotFound(f"no name {name!r} in campaign {self.campaign!r}: {did_you_mean(name, known)}")
        if len(found) > 1:
            several = ", ".join(f"{each.name} ({each.entity_type})" for each in found)
            raise InvalidInput(f"{name!r} may be several names: {several}")
        return found[0]


async def names_desk_of(store: Store, campaign: CampaignId) -> NamesDesk:
    """
    Args:
        campaign: One that is stored.

    Raises:
        Unavailable: The database is away.
    """
    loaded = await store.campaigns.get(campaign)
    kept = PostgresLearnedNames(store.database)
    entries = with_stored(entries_of(loaded), await kept.entries(campaign), cast_of(loaded))
    names = await offload(
        lambda: Gazetteer.build(entries, language=loaded.language), amount=len(entries) * _ROWS_A_NAME
    )
    return NamesDesk(campaign, entries, names, kept, NameLearning(campaign, kept, now_ms=now_ms))
