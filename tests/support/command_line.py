"""The command line on a database with a campaign, two sessions of talk, and what was learned from it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.cli.main import main
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.heard import Correction, Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, FactId, NpcId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import Claim, Provenance, witnessed_by
from glyphoxa.world.event_kinds import FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import an_utterance

CAMPAIGN_FILE = Path(__file__).parent / "campaign.yaml"
SALTMERE = CampaignId("saltmere")
GRIMJAW, ELOWEN = NpcId("grimjaw"), NpcId("elowen")
FIRST_MS = 4_000_000_000_000
"""2096-10-02 07:06 UTC: behind whatever a DM decides while a test runs, as the campaign was loaded before."""
_DAY_MS = 86_400_000

SCARED = Claim.attribute(EntityId("elowen"), "fears", "the sea")
"""Accepted; Grimjaw was there."""
DEBT = Claim.attribute(EntityId("elowen"), "debt", 40)
"""Pending, 0.4; rests on `SCARED`."""
BAKER = Claim.attribute(EntityId("grimjaw"), "occupation", "baker")
"""Disagrees with the campaign's file."""
WENT = Claim.relation(EntityId("elowen"), "LOCATED_AT", EntityId("the-anvil"))
"""Accepted, in the second session: ends where she was."""


async def run(*arguments: object) -> int:
    """In a thread: the command line has an event loop of its own."""
    return await asyncio.to_thread(main, [str(argument) for argument in arguments])


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The command line on one database, and what it prints.

    Attributes:
        settings: The settings file, which names the database.
    """

    settings: Path
    capsys: pytest.CaptureFixture[str]

    async def run(self, *arguments: object) -> tuple[int, str, str]:
        """Return the exit status, the output, and what stands on standard error."""
        self.capsys.readouterr()
        code = await run(*arguments, "--config", self.settings)
        return (code, *self.capsys.readouterr())

    async def told(self, *arguments: object) -> str:
        """Return the output of a command that succeeds."""
        code, out, err = await self.run(*arguments)
        assert code == 0, err
        return out

    async def problem(self, *arguments: object) -> str:
        """Return the error of a command that fails: one line, and no output."""
        code, out, err = await self.run(*arguments)
        assert (code, out, err.count("\n")) == (1, "", 1), (code, out, err)
        return err


def rows(shown: str) -> list[list[str]]:
    """The cells of a table without its headings; cells are two spaces apart."""
    return [re.split(r" {2,}", line.strip()) for line in shown.splitlines()[1:]]


def a_settings_file(directory: Path, dsn: str) -> Path:
    path = directory / "settings.yaml"
    path.write_text(f"memory:\n  postgres_dsn: {dsn}\n")
    return path


async def the_campaign(dsn: str) -> None:
    """Into a database: the campaign, and nothing said yet."""
    async with open_store(dsn) as store:
        await store.database.open()
        await store.campaigns.load(read_campaign(CAMPAIGN_FILE).campaign)


async def two_evenings(dsn: str) -> None:
    """Into a database: the campaign, what was said, and what was learned from it."""
    await the_campaign(dsn)
    async with open_store(dsn) as store:
        await store.log.append([_said("s1", n, text) for n, text in enumerate(_FIRST_EVENING, start=1)])
        await store.log.append([_said("s2", n, text) for n, text in enumerate(_SECOND_EVENING, start=1)])
        await _learn(store, SCARED, "s1", 1)
        await _learn(store, DEBT, "s1", 2, confidence=0.4, supports=(SCARED.fact_id,))
        await _learn(store, BAKER, "s1", 3)
        await _learn(store, WENT, "s2", 1, source="stated")


_FIRST_EVENING = (
    "Elowen never goes near the water, she fears it.",
    "I heard she owes forty silver.",
    "Grimjaw is a baker, isn't he?",
)
_SECOND_EVENING = ("Elowen has come to the Anvil.", "What a night.")


async def _learn(
    store: Store,
    claim: Claim,
    session: str,
    ordinal: int,
    *,
    confidence: float = 0.9,
    source: Literal["stated", "inferred"] = "inferred",
    supports: tuple[FactId, ...] = (),
) -> None:
    at_ms = _at_ms(session, ordinal)
    place = (SessionId(session), UtteranceId(f"{session}-{ordinal}"), ordinal, at_ms)
    provenance = Provenance(confidence, source, False, "talk", *place)
    visibility = witnessed_by([GRIMJAW], at_ms=at_ms, utterance=place[1])
    stated = FactStated(claim, provenance, visibility, supports=supports)
    await store.world.commit(SALTMERE, [stated], Cause("talk", at_ms, place[0], ordinal, place[1]))


def _said(session: str, ordinal: int, text: str) -> Utterance:
    is_corrected = "Elowen" in text
    raw = text.replace("Elowen", "a lone")
    place: dict[str, Any] = {"campaign_id": SALTMERE, "session_id": SessionId(session)}
    place |= {"at_ms": _at_ms(session, ordinal), "duration_ms": 900, "witnesses": frozenset({GRIMJAW})}
    corrections = (Correction(0, 6, "a lone", "Elowen", 0.9, "phonetic", "sounds alike"),) if is_corrected else ()
    return an_utterance(text, id=f"{session}-{ordinal}", raw_text=raw, corrections=corrections, **place)


def _at_ms(session: str, ordinal: int) -> int:
    return FIRST_MS + (0 if session == "s1" else _DAY_MS) + 60_000 * ordinal
