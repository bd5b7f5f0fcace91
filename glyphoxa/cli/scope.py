"""The scope of a verb: settings, memory, one campaign and one session; and its prompts and messages for the user.

Every verb names them alike:

    --config FILE      settings (YAML); without it, the defaults
    --campaign WHICH   a campaign file, which means the campaign that it declares; or the id of a stored campaign
    --session WHICH    a number as `glyphoxa show sessions` shows it, `last`, or the id of a session

A campaign's id has neither a dot nor a separator of paths: a name that has one is a file. A session whose id looks like
a number, or is `last`, is found by its id first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from glyphoxa.app.scope import Scope
from glyphoxa.cli.verb import Argument, argument
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.dm.entities import NameResolver
from glyphoxa.dm.sessions import LAST, session_named
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, listed, nearest
from glyphoxa.domain.files import PRIVATE, new_version
from glyphoxa.domain.ids import CampaignId, SessionId

if TYPE_CHECKING:
    from glyphoxa.adapters.postgres.store import Store
    from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
    from glyphoxa.app.desk import Desk
    from glyphoxa.domain.campaign import Campaign, Npc
    from glyphoxa.recall.recall import RecallSettings
    from glyphoxa.recall.vectors import Embedder

T = TypeVar("T")

_MOST_LISTED: Final = 12


# Options


def campaign_argument(*names: str, otherwise: str, **how: Any) -> Argument:
    """Declare an option or argument that names a campaign.

    Args:
        otherwise: Help text on what holds without it.
    """
    text = f"a campaign file, or the id of a stored campaign; {otherwise}"
    return argument(*names, metavar="WHICH", help=text, **how)


def session_argument(*names: str, about: str = "", **how: Any) -> Argument:
    """Declare an option or argument that names a session. `in_scope` replaces its value by the id."""
    text = f"its number in `glyphoxa show sessions`, `{LAST}`, or its id"
    return argument(*names, metavar="SESSION", help=f"{about}: {text}" if about else text, **how)


CONFIG: Final = argument(
    "--config", type=Path, metavar="FILE", help="settings file (YAML): where the database is, and which campaign"
)
CAMPAIGN: Final = (
    campaign_argument("--campaign", otherwise="default: that of the settings, or the only one stored"),
    CONFIG,
)
SESSION: Final = session_argument("session")
ONE_SESSION: Final = session_argument("--session", about="only of this one")
YES: Final = argument("--yes", help="do not ask for confirmation")
A_DAY: Final = 'such as "12 Hammer 1492", or 12 where days are only counted'


# Memory


def settings_with_memory(config: Path | None, *, to_hold: str) -> Settings:
    """
    Args:
        to_hold: The object of the verb's search, for the message: "names".

    Raises:
        InvalidInput: The settings want no long-term memory, or cannot be read.
    """
    return with_memory(read_settings(config), to_hold=to_hold)


def with_memory(settings: Settings, *, to_hold: str) -> Settings:
    if not settings.has_memory:
        raise InvalidInput(f"memory.postgres_dsn is none: there is no long-term memory to hold {to_hold}")
    return settings


def need_stored(settings: Settings) -> None:
    """Refuse to create a database only to find nothing in it.

    Raises:
        NotFound: The embedded database was not created yet.
    """
    if settings.memory.postgres_dsn is None and not (settings.data_directory / "postgres").exists():
        raise NotFound(
            f"no campaign is stored in {settings.data_directory} yet; load one: glyphoxa campaign load FILE, "
            "or name another directory with GLYPHOXA_DATA or `data_dir` in the settings"
        )


@asynccontextmanager
async def opened_store(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    any_model: bool = False,
    recall: RecallSettings | None = None,
) -> AsyncIterator[Store]:
    """Open memory, connected and migrated, for the block.

    Args:
        any_model: The database may hold the vectors of another model.

    Raises:
        Unavailable: The server cannot be reached.
    """
    # Also for verbs that may need none: it takes a second to import.
    from glyphoxa.adapters.postgres.store import open_store
    from glyphoxa.app.memory import database_of

    database, auto_accept = database_of(settings, embedder, any_model=any_model), settings.memory.auto_accept
    async with open_store(database, embedder=embedder, recall=recall, auto_accept=auto_accept) as store:
        await store.database.open()
        yield store


@asynccontextmanager
async def embedder_or_words(settings: Settings, *, by_words: bool = False) -> AsyncIterator[Embedder | None]:
    """Load the embeddings model. Yields None where words alone decide; says why unless that was asked for."""
    from glyphoxa.adapters.postgres.server.embedded import check_binaries
    from glyphoxa.app.models import load_embedder

    if by_words or settings.providers.embeddings.name == "none":
        yield None
        return
    if settings.memory.postgres_dsn is None:
        check_binaries()  # an installation with neither a model nor a database lacks one extra: one line says so
    try:
        embedder = await load_embedder(settings)
    except GlyphoxaError as error:
        print(f"glyphoxa: searching by words only: {error}", file=sys.stderr)
        yield None
        return
    async with aclosing(embedder):
        yield embedder


# One campaign


Act = Callable[[T, argparse.Namespace], Awaitable[int]]


def in_scope(
    make: Callable[[Scope], Awaitable[T]], *, to_hold: str, takes_new: bool = False
) -> Callable[[argparse.Namespace, Act[T]], int]:
    """Make a `Call` for a coroutine: open memory as the options of `CAMPAIGN` say, and replace a session's name by its
    id.

    Args:
        make: Makes what the act works on.
        to_hold: See `settings_with_memory`.
        takes_new: Whether the session may be one of which nothing is stored yet.
    """

    async def run(options: argparse.Namespace, act: Act[T]) -> int:
        settings = settings_with_memory(options.config, to_hold=to_hold)
        need_stored(settings)
        async with opened_store(settings) as store:
            campaign = await stored_campaign(store, options.campaign, settings)
            if getattr(options, "session", None) is not None:
                options.session = await stored_session(store, campaign, options.session, takes_new=takes_new)
            return await act(await make(Scope(store, settings, campaign)), options)

    return lambda options, act: asyncio.run(run(options, act))


async def desk_in(scope: Scope) -> Desk:
    from glyphoxa.app.desk import desk_of

    return await desk_of(scope)


async def desk_at(store: Store, settings: Settings, wanted: str | None) -> Desk:
    """Open a desk in an open store.

    Raises:
        GlyphoxaError: See `stored_campaign`.
    """
    return await desk_in(Scope(store, settings, await stored_campaign(store, wanted, settings)))


async def as_it_is(scope: Scope) -> Scope:
    return scope


run_at_desk: Final = in_scope(desk_in, to_hold="talk or facts")
run_in_scope: Final = in_scope(as_it_is, to_hold="talk")


async def stored_campaign(store: Store, wanted: str | None, settings: Settings | None = None) -> CampaignId:
    """Return the campaign that was named; else that of the settings; else the only stored one.

    Raises:
        NotFound: It is not stored, or the file that was named or that the settings name is not there.
        InvalidInput: None was named, and there is not exactly one; or the file cannot be read.
    """
    stored = await store.campaigns.ids()
    file = file_named(wanted) or (settings.campaign if wanted is None and settings is not None else None)
    if file is not None:
        declared = await declared_in(file)
        if declared not in stored:
            raise NotFound(
                f"campaign {declared!r} of {file} is not stored yet; store it with glyphoxa campaign load or serve"
                f" (stored: {listed(stored, _MOST_LISTED)})"
            )
        return declared
    if wanted is not None:
        if wanted not in stored:
            hint = "" if (near := nearest(wanted, stored)) is None else f"did you mean {near!r}? "
            known = f"{hint}stored: {listed(stored, _MOST_LISTED)}{_file(wanted)}"
            raise NotFound(f"no campaign {wanted!r} here: {known}")
        return CampaignId(wanted)
    if len(stored) == 1:
        return stored[0]
    if not stored:
        raise InvalidInput("no campaign is stored; load one: glyphoxa campaign load FILE")
    raise InvalidInput(
        f"{len(stored)} campaigns are stored; name one with --campaign, or with `campaign:` in the settings: "
        f"{', '.join(stored)}"
    )


async def file_or_stored(wanted: str | None, settings: Settings, store: Store | None = None) -> Path | Campaign:
    """Return the campaign file of a table or, without one, the stored campaign.

    An id means the file of the settings if that declares it.

    Args:
        store: One that is open already.

    Raises:
        NotFound: See `stored_campaign`.
        InvalidInput: Likewise; or no table can be opened with what is stored.
    """
    file = settings.campaign if wanted is None else file_named(wanted)
    if file is None and settings.campaign is not None:
        with suppress(NotFound):  # what is stored can be played though its file has gone
            file = settings.campaign if await declared_in(settings.campaign) == wanted else None
    if file is not None:
        return file
    if store is None:
        if wanted is None and not settings.has_memory:
            raise InvalidInput("no campaign is set: name one with --campaign, or add `campaign: FILE` to the settings")
        need_stored(with_memory(settings, to_hold="campaigns"))
        async with opened_store(settings) as opened:
            return await file_or_stored(wanted, settings, opened)
    found = await stored_campaign(store, wanted)
    described = await store.campaigns.described(found)
    if described is None or not described.file.scenes or not described.file.npcs:
        raise InvalidInput(f"campaign {found!r} has no scene or no NPC, so no table can be opened with it")
    return described.file


def file_named(wanted: str | None) -> Path | None:
    """Return the file that was named; None for an id."""
    separators = [each for each in (os.sep, os.altsep, ".") if each]
    return Path(wanted) if wanted is not None and any(each in wanted for each in separators) else None


async def declared_in(file: Path) -> CampaignId:
    """
    Raises:
        NotFound: There is no such file.
        InvalidInput: It is no campaign file.
    """
    return (await asyncio.to_thread(read_campaign, file)).campaign.id


def _file(wanted: str) -> str:
    return f"; for the file of that name: --campaign .{os.sep}{wanted}" if Path(wanted).is_file() else ""


def npc_called(name: str, campaign: Campaign) -> Npc:
    """Raises: NotFound: Nobody under `npcs:` has that name, alias or id."""
    return campaign.npc(NameResolver.of(campaign, campaign.entities).npc(name))


# One session


def inspection_of(store: Store) -> PostgresInspection:
    from glyphoxa.adapters.postgres.world.inspection import PostgresInspection

    return PostgresInspection(store.database)


async def stored_session(store: Store, campaign: CampaignId, wanted: str, *, takes_new: bool = False) -> SessionId:
    """Return the session that was named by number, `last` or id; see `session_named`."""
    return await session_named(wanted, campaign, inspection_of(store), takes_new=takes_new)


# What the user means


async def goes_on(question: str, *, is_sure: bool, otherwise: str = "nothing was changed") -> bool:
    """Ask the user to confirm.

    Args:
        is_sure: `--yes` was given: nothing is asked.
        otherwise: Printed if the user does not confirm.

    Raises:
        InvalidInput: Nobody is there to be asked.
    """
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} Use --yes to skip the question")
    answer = await answer_to(f"{question} Go on? [y/N] ")
    if answer.strip().lower() in ("y", "yes"):
        return True
    print(otherwise)
    return False


async def answer_to(question: str) -> str:
    """Ask on the terminal, "" without an answer. Ctrl-C ends the wait; a thread would wait for the end of the line."""
    print(question, end="", flush=True)
    loop, is_typed = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, is_typed.set)
    try:
        await is_typed.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline()


def say(line: str) -> None:
    """Print a line, unless nobody reads the output."""
    with suppress(OSError):
        print(f"{line[:1].upper()}{line[1:]}", flush=True)


# Files for the user


def write_new_file(path: Path, data: bytes) -> None:
    """Write a new private file, completely or not at all, as `new_file`. Blocks."""
    with new_file(path) as file:
        file.write(data)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A new private file, which is there when the block has succeeded. Blocks.

    Raises:
        InvalidInput: It is there already, or cannot be written.
    """
    try:
        with new_version(path, mode=PRIVATE, replaces=False) as file:
            yield file
    except FileExistsError:
        raise InvalidInput(f"{path} exists already: name a new file") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file, to be read in pieces. Raises: InvalidInput: It is not there, or cannot be read."""
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from None
