"""`glyphoxa privacy`: what is kept of a player or a session is written out, or erased for good."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.erasure import ErasedTalk, Meant, PostgresErasure
from glyphoxa.bootstrap.clock import now_ms
from glyphoxa.bootstrap.privacy import erase
from glyphoxa.cli.new_file import write_new_file
from glyphoxa.cli.retention import DAY_MS
from glyphoxa.cli.scope import CAMPAIGN, YES, Scope, goes_on, in_scope, session_argument
from glyphoxa.cli.verb import Verb, argument, one_of
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.web.access.records import forget, lines_about


@dataclass(frozen=True, slots=True)
class _Kept:
    store: Store
    campaign: CampaignId
    erasure: PostgresErasure
    settings: Settings


_PLAYER: Final = argument("--player", metavar="P", help="what this player said: their id, or their name")
_SESSION: Final = session_argument("--session", about="what anybody said in this session")


async def _kept(scope: Scope) -> _Kept:
    return _Kept(scope.store, scope.campaign, PostgresErasure(scope.store.database), scope.settings)


VERB = Verb(in_scope(_kept, to_hold="talk"), common=CAMPAIGN)


@VERB.action(
    "write all that is kept of a player or of a session into one file (JSON)",
    argument("file", type=Path, help="is written; it must not be there yet"),
    one_of(_PLAYER, _SESSION),
)
async def _export(kept: _Kept, options: argparse.Namespace) -> int:
    meant = await _meant(kept, options, but="--player P or --session S")
    found: dict[str, Any] = {"campaign": kept.campaign, "player": meant.player, "session": meant.session}
    found |= await kept.erasure.export(kept.campaign, meant)
    if meant.player is not None:
        found |= await asyncio.to_thread(lines_about, kept.settings.data_directory, kept.campaign, meant.player)
    data = json.dumps(found, ensure_ascii=False, indent=1).encode()
    await asyncio.to_thread(write_new_file, options.file, data)
    print(f"{options.file}: {len(found['utterances'])} utterances, {len(data):,} bytes")
    return 0


@VERB.action(
    "what was said, and all that rests on it alone, is gone for good: nothing takes it back",
    one_of(_PLAYER, _SESSION, argument("--all", dest="everything", help="all talk of the campaign")),
    YES,
)
async def _erase(kept: _Kept, options: argparse.Namespace) -> int:
    return await _erase_meant(
        kept, await _meant(kept, options, but="--player P, --session S or --all"), is_sure=options.yes
    )


@VERB.action(
    "erase what was said longer ago",
    argument("--older-than", dest="age", required=True, metavar="DAYS", help="365d: what is older than so many days"),
    YES,
)
async def _retain(kept: _Kept, options: argparse.Namespace) -> int:
    days = options.age.removesuffix("d")
    if not (days.isascii() and days.isdecimal() and 1 <= int(days) <= 36_500):
        raise InvalidInput(f"--older-than is a number of days from 1 to 36500, such as 365d, not {options.age!r}")
    return await _erase_meant(kept, Meant(before_ms=now_ms() - int(days) * DAY_MS), is_sure=options.yes)


async def _meant(kept: _Kept, options: argparse.Namespace, *, but: str) -> Meant:
    if options.player is not None:
        return Meant(player=await kept.erasure.player(kept.campaign, options.player))
    if options.session is not None:
        return Meant(session=options.session)
    if getattr(options, "everything", False):
        return Meant()
    raise InvalidInput(f"say whose talk is meant: {but}")


async def _erase_meant(kept: _Kept, meant: Meant, *, is_sure: bool) -> int:
    _show("would be erased", await kept.erasure.preview(kept.campaign, meant))
    if not await goes_on("It is gone for good; backups and exported files stay.", is_sure=is_sure):
        print("nothing was erased")
        return 1
    data_dir = kept.settings.data_directory
    try:
        done, n_records = await erase(kept.erasure, data_dir, kept.campaign, meant, at_ms=now_ms())
    except Unavailable as error:
        raise Unavailable(f"not all is erased yet; the same command again finishes: {error}") from None
    n_lines = 0 if meant.player is None else await asyncio.to_thread(forget, data_dir, kept.campaign, meant.player)
    _show("erased", done)
    print(f"erased: {n_records} records of the spool, {n_lines} lines of consents and audit")
    return 0


def _show(what: str, found: Sequence[ErasedTalk]) -> None:
    for each in found:
        print(
            f"{what}: campaign {each.campaign}: {len(each.utterances)} utterances ({each.n_replies} of NPCs), "
            f"{each.n_events} events of what was learned from them"
        )
