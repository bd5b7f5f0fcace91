"""The bot in an in-memory Discord, on a real database: a server with its game master, two players and a stranger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simcord.actors import MemberActor
from simcord.builders import ChannelHandle
from simcord.env import Env
from simcord.results import InteractionResult

from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.transcript.table_commands import PostgresTableCommands
from glyphoxa.app.desk import Desk, desk_of
from glyphoxa.app.scope import Scope
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.domain.ids import CampaignId, PlayerId
from glyphoxa.plugins.discord.access import Asked, Caller, DiscordSettings, Door
from glyphoxa.plugins.discord.bot import Bot
from glyphoxa.plugins.discord.commands import Services
from tests.support.command_line import SALTMERE
from tests.support.patience import DEADLINE_S

GUILD = 4_200


class OutsideTables(PostgresTableCommands):
    """Sends commands from a task of the test: in the simulated Discord no deadline of the bot's own passes."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.database, store.listener)
        self._asked: asyncio.Queue[tuple[tuple[Any, ...], asyncio.Future[str]]] = asyncio.Queue()

    async def command(self, *told: Any, **_: Any) -> str:
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((told, answered))
        return await answered

    async def run(self) -> None:
        while True:
            told, answered = await self._asked.get()
            try:
                answered.set_result(await super().command(*told, within_s=self.within_s))
            except GlyphoxaError as error:
                answered.set_exception(error)

    within_s = DEADLINE_S


class OpenDoor(Door):
    """Admits at any rate."""

    def admit(self, user: int, guild: int | None, *, asked: Asked, at_ms: int) -> Caller:
        self._limits.clear()
        return super().admit(user, guild, asked=asked, at_ms=at_ms)


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
        return await desk_of(self.bot.services.source)

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
) -> AsyncIterator[DiscordServer]:
    settings = Settings.model_validate({"campaign": file, "data_dir": tmp_path, "memory": {"postgres_dsn": dsn}})
    async with open_store(dsn) as store:
        await store.database.open()

        def link(player: PlayerId | None) -> str:
            return f"https://table.example/join#of_{player}"

        tables = OutsideTables(store)
        asking = asyncio.create_task(tables.run())
        services = Services(Scope(store, settings, campaign), tables, link)
        bot = Bot(services, DiscordSettings(guild=GUILD))
        env = Env(bot, settle_timeout=DEADLINE_S)
        await env.start()
        try:
            guild = env.create_guild(id=GUILD)
            channel = guild.create_text_channel("table")
            dm, tamsin, stranger = (guild.add_member(env.create_user(name)) for name in ("dm", "tamsin", "stranger"))
            bot.door.settings = DiscordSettings(guild=GUILD, dm=(dm.id,), players={tamsin.id: player})
            yield DiscordServer(env, bot, store, channel, dm, tamsin, stranger)
            env._raise_errors_since(env._errors_acknowledged)
        finally:
            asking.cancel()
            await env.shutdown()
