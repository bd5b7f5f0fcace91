"""The bot in an in-memory Discord, on a real database: a server with its game master, two players and a stranger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from simcord.actors import MemberActor
from simcord.builders import ChannelHandle
from simcord.env import Env
from simcord.results import InteractionResult

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.config.sections import DiscordSettings
from glyphoxa.config.settings import Settings
from glyphoxa.desk import Desk, DeskSource
from glyphoxa.discord_bot.bot import Bot
from glyphoxa.discord_bot.commands import Services
from glyphoxa.dm.import_review import ImportDesk
from glyphoxa.domain.ids import CampaignId, PlayerId
from tests.support.command_line import SALTMERE
from tests.support.patience import DEADLINE_S

GUILD = 4_200


@dataclass(frozen=True, slots=True)
class DiscordServer:
    env: Env
    bot: Bot
    store: Store
    channel: ChannelHandle
    dm: MemberActor
    tamsin: MemberActor
    stranger: MemberActor

    async def desk(self) -> Desk:
        return await self.bot.services.source.open()

    async def told(self, who: MemberActor, command: str, /, **options: object) -> str:
        """Return the first message that answers a command; it must be for this user's eyes only."""
        result = await who.slash(self.channel, command, **options)
        assert self.is_private(result), result
        return text_of(result)

    def is_private(self, result: InteractionResult) -> bool:
        return all(each.ephemeral for each in messages_of(result))

    async def restart(self) -> Bot:
        """Restart the bot; messages and buttons stay."""
        bot = Bot(self.bot.services, self.bot.door.settings)
        await self.env.restart_bot(bot)
        return bot


def messages_of(result: InteractionResult):  # type: ignore[no-untyped-def]
    return [each for each in (result.response, *result.followups) if each is not None]


def text_of(result: InteractionResult) -> str:
    return messages_of(result)[0].content.replace("\\", "") if messages_of(result) else ""


def everything_in(env: Env) -> str:
    """All that the bot ever sent."""
    return "\n".join(str(each.json) for each in env.http_requests)


@asynccontextmanager
async def a_discord_server(
    dsn: str,
    tmp_path: Path,
    *,
    campaign: CampaignId = SALTMERE,
    player: str = "tamsin",
    file: Path | None = None,
    imports: ImportDesk | None = None,
) -> AsyncIterator[DiscordServer]:
    settings = Settings.model_validate({"campaign": file, "data_dir": tmp_path, "memory": {"postgres_dsn": dsn}})
    async with open_store(dsn, data_dir=tmp_path) as store:
        await store.database.open()

        def link(player: PlayerId | None) -> str:
            return f"https://table.example/join#of_{player}"

        tables = PostgresTableCommands(store.database, store.listener)
        services = Services(DeskSource(store, settings, campaign), tables, imports or ImportDesk(), link)
        bot = Bot(services, DiscordSettings(guild=GUILD))
        env = Env(bot, settle_timeout=DEADLINE_S)
        await env.start()
        try:
            guild = env.create_guild(id=GUILD)
            channel = guild.create_text_channel("table")
            dm, tamsin, stranger = (guild.add_member(env.create_user(name)) for name in ("dm", "tamsin", "stranger"))
            bot.door.settings = DiscordSettings(guild=GUILD, dm=(dm.id,), players={tamsin.id: player})
            yield DiscordServer(env, bot, store, channel, dm, tamsin, stranger)
            env.raise_errors()
        finally:
            await env.shutdown()
