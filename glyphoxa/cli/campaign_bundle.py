"""`glyphoxa campaign export` and `import`: a whole campaign as one file."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Final

from glyphoxa.adapters.postgres.world.bundle import export_campaign, import_campaign
from glyphoxa.cli.new_file import write_new_file
from glyphoxa.cli.scope import CAMPAIGN, CONFIG, opened_store, settings_with_memory, stored_campaign
from glyphoxa.cli.verb import argument
from glyphoxa.dm.campaign_bundle import MOST_BYTES, CampaignBundle, check_new_id, read_bundle
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId

EXPORT: Final = (
    argument("file", type=Path, help="is written (JSON); it must not be there yet"),
    *CAMPAIGN,
    argument("--without-talk", help="the world as it is known, without what was said: for another table"),
    argument("--with-secrets", help="also when the campaign has secrets; the file then tells them"),
)
IMPORT: Final = (
    argument("file", type=Path, help="as `campaign export` wrote it"),
    argument("--as", dest="new", type=CampaignId, metavar="NEWID", help="the id it gets here (default: its own)"),
    CONFIG,
)


async def export(options: argparse.Namespace) -> int:
    """
    Raises:
        InvalidInput: The file is there already or cannot be written; or the campaign has secrets, and nobody said that
            the file may tell them.
    """
    settings = settings_with_memory(options.config, to_hold="campaigns")
    async with opened_store(settings) as store:
        bundle = await export_campaign(store.database, await stored_campaign(store, options.campaign, settings))
    if options.without_talk:
        bundle = bundle.without_talk()
    if not options.with_secrets and (secrets := list(bundle.secrets())):
        raise InvalidInput(
            f"campaign {bundle.id!r} has secrets, or had ({len(secrets)} places, the first is {secrets[0]}), and a "
            "bundle holds the whole campaign; nothing was written. To write a file that tells them: --with-secrets"
        )
    n_bytes = await asyncio.to_thread(_write, options.file, bundle)
    print(f"{options.file}: {bundle.name} ({bundle.id}), {_held(bundle)}, {n_bytes:,} bytes")
    return 0


async def import_(options: argparse.Namespace) -> int:
    """
    Raises:
        InvalidInput: The file is no bundle, or there is such a campaign already; nothing was stored.
    """
    if options.new is not None:
        check_new_id(options.new)
    settings = settings_with_memory(options.config, to_hold="campaigns")
    text = await asyncio.to_thread(_read, options.file)
    try:
        bundle = read_bundle(text)
        into = options.new or bundle.id
        async with opened_store(settings) as store:
            await import_campaign(store.database, bundle, into=into)
    except InvalidInput as error:
        raise InvalidInput(f"{options.file}: {error}; nothing was imported") from None
    print(f"{bundle.name} ({into}): {_held(bundle)}; its talk is embedded when the table is next served, or by reindex")
    return 0


def _held(bundle: CampaignBundle) -> str:
    n = {table: len(rows) for table, rows in bundle.tables.items()}
    return (
        f"{n['sessions']:,} sessions, {n['session_entries']:,} utterances, {n['entities']:,} entities, "
        f"{n['world_events']:,} events"
    )


def _write(path: Path, bundle: CampaignBundle) -> int:
    """All of it or no file, which only its owner may read."""
    data = bundle.text().encode("utf-8")
    if len(data) > MOST_BYTES:
        raise InvalidInput(f"campaign {bundle.id!r} has {len(data):,} bytes: a bundle has at most {MOST_BYTES:,}")
    write_new_file(path, data)
    return len(data)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidInput(f"{path} has {path.stat().st_size:,} bytes: a bundle has at most {MOST_BYTES:,}")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is no UTF-8 text from byte {error.start} on: a bundle is") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
