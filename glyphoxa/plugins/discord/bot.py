"""The bot: a client of Discord without voice, which admits callers and answers commands, suggestions and buttons.

Each interaction is answered with a result or with one sentence that says why not. No answer contains a traceback.
"""

from __future__ import annotations

import functools
import io
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp
import discord
from discord import app_commands
from loguru import logger

from glyphoxa.dm.wording import plain
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.plugins.discord.access import Asked, Caller, DiscordSettings, Door, Refused
from glyphoxa.plugins.discord.commands import COMMANDS, Act, Answer, Card, DiscordCall, Services, decide

_ROOM: Final = 1_900
"""Characters; Discord allows 2,000 in a message."""
_AWAY: Final = "Something that the table needs cannot be reached now. Try again later."
_BROKEN: Final = "That failed because of a bug in Glyphoxa; its log says more."
_NOT_SENT: Final = (discord.DiscordException, aiohttp.ClientError, OSError)
_STYLES: Final = {
    "accept": discord.ButtonStyle.success,
    "reject": discord.ButtonStyle.danger,
    "hide": discord.ButtonStyle.secondary,
    "confirm": discord.ButtonStyle.danger,
}


class Bot(discord.Client):
    """Serves one campaign in one server."""

    def __init__(self, services: Services, settings: DiscordSettings) -> None:
        super().__init__(
            intents=discord.Intents(guilds=True), allowed_mentions=discord.AllowedMentions.none(), max_messages=None
        )
        self.services = services
        self.door = Door(settings)
        self.tree = _Tree(self)
        self.guild = discord.Object(settings.guild or 0)
        self._to_confirm: dict[int, tuple[str, Act]] = {}

    async def setup_hook(self) -> None:
        """Declare the commands in the server. Raises: discord.HTTPException: The bot may not."""
        groups: dict[str, app_commands.Group] = {}
        for name, text, run in COMMANDS:
            *group, word = name.split()
            command = app_commands.Command[Any, ..., None](name=word, description=text, callback=run)
            for of in group:
                made = app_commands.Group(name=of, description=f"Commands: {of}")
                groups.setdefault(of, made).add_command(command)
            if not group:
                self.tree.add_command(command, guild=self.guild)
        for each in groups.values():
            self.tree.add_command(each, guild=self.guild)
        self.add_dynamic_items(_Button)
        await self.tree.sync(guild=self.guild)

    def admit(self, interaction: discord.Interaction, *, asked: Asked) -> Caller:
        """Raises: Refused."""
        at_ms = time.monotonic_ns() // 1_000_000
        return self.door.admit(interaction.user.id, interaction.guild_id, asked=asked, at_ms=at_ms)

    async def answer(
        self, interaction: discord.Interaction, ask: Callable[[], Awaitable[Answer]], *, is_public: bool
    ) -> None:
        """Answer a command. Never raises."""
        try:
            # Discord waits for three seconds, unless it is told to wait longer.
            await interaction.response.defer(ephemeral=not is_public, thinking=True)
            caller = interaction.extras["call"].caller
            answer, _ = await self._result(ask, tells_why=caller.is_dm and not is_public)
            send = functools.partial(interaction.followup.send, ephemeral=not is_public, suppress_embeds=True)
            await send(**written(answer.lines), **self._confirming(interaction.user.id, answer))
            for card in answer.cards:
                await send(**written(card.lines), view=_view(card))
        except _NOT_SENT as error:
            logger.warning("Discord did not take an answer: {}", _reason(error))

    async def click(self, interaction: discord.Interaction, do: str, what: str) -> None:
        """Do what a button says, if it may still be done. Never raises."""
        try:
            caller = self.admit(interaction, asked="command")
            caller.need_dm()
            await interaction.response.defer()
            answer, is_done = await self._result(lambda: self._clicked(caller, do, what), tells_why=True)
            if is_done:
                await interaction.edit_original_response(**written(answer.lines, is_edit=True), view=None)
            else:
                await interaction.followup.send(**written(answer.lines), ephemeral=True, suppress_embeds=True)
        except Refused as refused:
            await _refuse(interaction, refused)
        except _NOT_SENT as error:
            logger.warning("Discord did not take an answer: {}", _reason(error))

    async def _clicked(self, caller: Caller, do: str, what: str) -> Answer:
        if do != "confirm":
            return await decide(DiscordCall(caller, self.services), do, what)
        token, act = self._to_confirm.get(caller.user, ("", None))
        if act is None or token != what:
            raise InvalidInput("this can no longer be confirmed; give the command again")
        del self._to_confirm[caller.user]  # a second click does nothing
        return await act()

    def _confirming(self, user: int, answer: Answer) -> dict[str, Any]:
        """Return a button for what needs confirmation. Only the latest of each user can be confirmed."""
        if answer.act is None:
            return {}
        token = secrets.token_hex(8)
        self._to_confirm[user] = (token, answer.act)
        return {"view": discord.ui.View(timeout=None).add_item(_Button("confirm", token))}

    async def _result(self, ask: Callable[[], Awaitable[Answer]], *, tells_why: bool) -> tuple[Answer, bool]:
        """Return the answer and True; or what prevented it, and False: in full only if the caller may read it."""
        try:
            return await ask(), True
        except InvalidInput as wrong:
            return Answer(tuple(str(wrong).splitlines())), False
        except Unavailable as away:
            logger.warning("Discord: {}", away)
            return Answer((str(away) if tells_why else _AWAY,)), False
        except GlyphoxaError as failed:
            logger.error("Discord: {}", failed)
        except _NOT_SENT as error:
            logger.warning("Discord did not give the file: {}", _reason(error))
            return Answer(("Discord did not give the file; upload it again.",)), False
        except Exception as broken:
            # The boundary between commands and their callers: a bug costs this answer, never the bot.
            logger.opt(exception=broken).error("a Discord command crashed")
        return Answer((_BROKEN,)), False


class _Tree(app_commands.CommandTree[Bot]):
    """Admits the callers of commands and suggestions, before anything of them is read."""

    async def interaction_check(self, interaction: discord.Interaction[Bot], /) -> bool:
        bot = interaction.client
        try:
            caller = bot.admit(interaction, asked="suggestion" if _is_typing(interaction) else "command")
        except Refused as refused:
            await _refuse(interaction, refused)
            return False
        interaction.extras["call"] = DiscordCall(caller, bot.services)
        return True

    async def on_error(self, interaction: discord.Interaction[Bot], error: app_commands.AppCommandError, /) -> None:
        """Answer a command that this bot does not have, or not so: Discord still shows that of another version."""
        logger.warning("Discord sent a command that does not fit: {}", _reason(error))
        await _refuse(interaction, Refused("This command has changed; reload Discord and try again."))


class _Button(
    discord.ui.DynamicItem[discord.ui.Button[discord.ui.View]],
    template=r"glyphoxa:(?P<do>accept|reject|hide|confirm):(?P<what>[0-9a-f:-]{1,80})",
):
    """A button that says in its id what it does, so that it works after a restart, too."""

    def __init__(self, do: str, what: str) -> None:
        super().__init__(discord.ui.Button(label=do.capitalize(), style=_STYLES[do], custom_id=f"glyphoxa:{do}:{what}"))
        self._do = do
        self._what = what

    @classmethod
    async def from_custom_id(cls, _interaction: Any, _item: Any, match: Any, /) -> _Button:
        return cls(match["do"], match["what"])

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        await interaction.client.click(interaction, self._do, self._what)


def _view(card: Card) -> discord.ui.View:
    view = discord.ui.View(timeout=None)
    for do in ("accept", "reject", "hide"):
        view.add_item(_Button(do, card.shown))
    return view


def _is_typing(interaction: discord.Interaction[Any]) -> bool:
    return interaction.type is discord.InteractionType.autocomplete


async def _refuse(interaction: discord.Interaction[Any], refused: Refused) -> None:
    try:
        if _is_typing(interaction):
            await interaction.response.autocomplete([])
        elif str(refused):
            await interaction.response.send_message(str(refused), ephemeral=True)
    except _NOT_SENT as error:
        logger.debug("Discord did not take a refusal: {}", _reason(error))


def written(lines: tuple[str, ...], *, is_edit: bool = False) -> dict[str, Any]:
    """Return a message that shows the lines as they are: no mark-up, no mentions. What does not fit is a file."""
    text = "\n".join(map(plain, lines))
    # In pieces: discord.py looks for links from each bracket, which takes minutes for a line with many of them.
    shown = "\\[".join(map(discord.utils.escape_markdown, text.split("[")))
    if len(shown) <= _ROOM:
        return {"content": shown}
    whole = discord.File(io.BytesIO(text.encode("utf-8", "replace")), "answer.txt")
    cut = f"{shown[:_ROOM].rpartition(chr(10))[0] or shown[:_ROOM]}\n… the file has all of it"
    return {"content": cut, "attachments" if is_edit else "files": [whole]}


def _reason(error: BaseException) -> str:
    return plain(f"{type(error).__name__}: {error}")


# Running


class _OneLine(logging.Handler):
    """Passes what discord.py reports to the log, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "WARNING" if record.levelno >= logging.WARNING else "DEBUG"
        error = record.exc_info[1] if record.exc_info else None
        logger.log(level, "Discord: {}{}", record.getMessage(), "" if error is None else f" ({_reason(error)})")


async def serve(bot: Bot, token: str) -> None:
    """Serve until the bot is closed. Reconnects by itself.

    Raises:
        InvalidInput: Discord refuses the token, or the bot is not in the server.
        Unavailable: Discord cannot be reached when the bot starts.
    """
    library = logging.getLogger("discord")
    library.propagate = False
    library.addHandler(handler := _OneLine())
    try:
        async with bot:
            await bot.start(token)
    except discord.LoginFailure:
        raise InvalidInput("Discord refused the bot's token; copy it again from the Developer Portal") from None
    except (discord.Forbidden, discord.NotFound):
        raise InvalidInput(
            f"the bot may not add commands in server {bot.guild.id}: invite it there with the scopes bot and "
            "applications.commands"
        ) from None
    except _NOT_SENT as error:
        raise Unavailable(f"Discord cannot be reached: {_reason(error)}") from None
    except AttributeError:
        if getattr(bot, "ws", None) is not None:
            raise
        # discord.py 2.7 reads the connection that its first attempt did not get.
        raise Unavailable("Discord's gateway cannot be reached; start the bot again later") from None
    finally:
        library.removeHandler(handler)
