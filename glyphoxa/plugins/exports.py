"""A campaign for other programs: notes in a folder (an Obsidian vault), and a calendar of its sessions."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from glyphoxa.actors.limits import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.desk import Desk, SessionRecaps, played_sessions
from glyphoxa.app.scope import Scope
from glyphoxa.cli.campaign import VERB
from glyphoxa.cli.scope import CAMPAIGN, desk_in, run_in_scope, write_new_file
from glyphoxa.cli.verb import Verb, argument
from glyphoxa.dm.handouts import PlayedSession, VaultContent, notes_of
from glyphoxa.dm.timeline import is_bookkeeping
from glyphoxa.dm.wording import plain
from glyphoxa.domain.errors import InvalidInput, counted
from glyphoxa.domain.files import PRIVATE, replace_file
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import DM
from glyphoxa.providers.extras import need
from glyphoxa.transcript.sessions import episode_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from glyphoxa.web.desk.frame import ServedTable

_Readers = Literal["players", "dm"]
_ALL: Final = 10_000_000
_ROWS_A_NOTE: Final = 40
"""A note takes as long to make as so many rows take to read."""
_ROWS_A_CALENDAR: Final = 5_000
"""A calendar does, most of all for its time zone."""


# A vault


async def vault_of(store: Store, desk: Desk, *, readers: _Readers, with_transcript: bool = False) -> dict[str, str]:
    """Return the text of each note of a vault by its path. Raises: Unavailable: The database is away."""
    recaps = await SessionRecaps.of(store, desk.campaign)
    sessions = [
        await _session_for(readers, recaps, each)
        for each in await played_sessions(desk.inspection, desk.campaign, desk.days)
    ]
    episodes = {episode_of(session) for session in desk.resolver.sessions}
    facts = await desk.inspection.current(desk.campaign, DM, limit=_ALL)
    content = VaultContent(
        recaps.campaign.name,
        recaps.campaign.language,
        desk.resolver,
        [(each.entity, each.visibility) for each in desk.seen if each.entity.id not in episodes],
        [each for each in facts if each.claim.subject not in episodes and not is_bookkeeping(each, episodes)],
        sessions,
        with_transcript,
    )

    def notes() -> dict[str, str]:
        return notes_of(content if readers == "dm" else content.for_players(recaps.players))

    return await offload(notes, amount=len(content.entities) * _ROWS_A_NOTE)


async def _session_for(readers: _Readers, recaps: SessionRecaps, session: PlayedSession) -> PlayedSession:
    said = await recaps.said(session.id)
    recap, for_dm, heard = await recaps.told(said, "players"), list[str](), said
    if readers == "dm":
        for_dm = [line for line in await recaps.told(said, "dm") if line not in recap]
    else:
        heard = recaps.players.shown(each for each in said if each.utterance.aside is None)
    return replace(session, recap=recap, dm_recap=for_dm, said=[each.utterance for each in heard])


MANIFEST: Final = ".glyphoxa-vault.json"


class _Manifest(BaseModel):
    """The digests of what each note in a vault may hold, by its path: two while a run is under way."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    campaign: str
    readers: _Readers
    notes: dict[str, list[str]] = {}

    def __str__(self) -> str:
        return f"of {self.campaign!r} for {'the game master' if self.readers == 'dm' else 'players'}"


@dataclass(frozen=True, slots=True)
class VaultChanges:
    """The result of a run; `kept` are paths of notes that somebody else wrote or edited. They are unchanged."""

    n_written: int = 0
    n_unchanged: int = 0
    n_removed: int = 0
    kept: Sequence[str] = ()


def write_vault(folder: Path, notes: Mapping[str, str], *, campaign: CampaignId, readers: _Readers) -> VaultChanges:
    """Write new and changed notes, and remove those that no longer belong. A note that somebody edited stays. Blocks.

    A run that is killed can be repeated.

    Raises:
        InvalidInput: The folder holds another vault, or cannot be read or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _manifest_in(folder, _Manifest(campaign=campaign, readers=readers))
        return _write_notes(folder.resolve(), notes, before)
    except OSError as error:
        where = error.filename if error.filename is not None else folder
        raise InvalidInput(f"{where}: the vault cannot be written: {error.strerror or error}") from None


def _manifest_in(folder: Path, wanted: _Manifest) -> _Manifest:
    try:
        found = _Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return wanted
    except ValidationError:
        raise InvalidInput(f"{folder / MANIFEST} lists no notes of a vault; name another folder") from None
    if (found.campaign, found.readers) != (wanted.campaign, wanted.readers):
        raise InvalidInput(f"{folder} holds the vault {found}, not {wanted}; name another folder")
    return found


def _write_notes(root: Path, notes: Mapping[str, str], before: _Manifest) -> VaultChanges:
    texts = {path: text.encode("utf-8", "replace") for path, text in notes.items()}
    new = {path: sha256(text).hexdigest() for path, text in texts.items()}
    found = {path: _digest_in(root, path) for path in {**before.notes, **new}}
    ours = {path for path, digest in found.items() if digest in ("", new.get(path, ""), *before.notes.get(path, ()))}
    gone = [path for path, digest in found.items() if path in ours and path not in new and digest != ""]
    written = [path for path in new if path in ours and found[path] != new[path]]
    kept = sorted(found.keys() - ours)
    now = {path: [new[path]] for path in new if path in ours}
    mode = PRIVATE if before.readers == "dm" else 0o644

    def write_manifest(listed: Mapping[str, Sequence[str]]) -> None:
        manifest = before.model_copy(update={"notes": listed})
        replace_file(root / MANIFEST, manifest.model_dump_json(indent=1).encode(), mode=PRIVATE)

    write_manifest({**before.notes, **{path: [*before.notes.get(path, ()), *now[path]] for path in now}})
    for path in gone:  # first: on some file systems a new name may differ from an old one in its case alone
        (root / path).unlink()
    for path in written:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        replace_file(root / path, texts[path], mode=mode, is_synced=False)
    write_manifest({**{path: before.notes[path] for path in kept if path in before.notes}, **now})
    return VaultChanges(len(written), len(now) - len(written), len(gone), kept)


def _digest_in(root: Path, path: str) -> str | None:
    """Return the digest of a note; "" if there is none, None for anything that is no file inside the folder."""
    try:
        place = root / path
        is_inside = ".." not in PurePosixPath(path).parts and place.parent.resolve().is_relative_to(root)
        if not is_inside or place.is_symlink() or place.parent.is_file() or (place.exists() and not place.is_file()):
            return None
        return sha256(place.read_bytes()).hexdigest() if place.exists() else ""
    except ValueError:  # not a path at all
        return None


# A calendar


def calendar_of(campaign: CampaignId, name: str, sessions: Iterable[PlayedSession]) -> bytes:
    """Return an iCalendar file with an event for each session. The same sessions give the same bytes."""
    need("icalendar", by="a calendar of sessions", extra="exchange")
    from icalendar import Calendar, Event

    calendar = Calendar()
    for key, value in (("prodid", "-//Glyphoxa//Sessions//EN"), ("version", "2.0"), ("x-wr-calname", name)):
        calendar.add(key, value)
    for session in sessions:
        event = Event()
        event.add("uid", f"{sha256(f'{campaign}/{session.id}'.encode()).hexdigest()[:32]}@glyphoxa")
        event.add("dtstamp", session.ended.astimezone(UTC))
        event.add("dtstart", session.began)
        event.add("dtend", max(session.ended, session.began + timedelta(minutes=1)))
        event.add("summary", f"{name}: Session {session.number}")
        if told := [*([session.days] if session.days else []), *session.recap]:
            event.add("description", "\n".join(told))
        calendar.add_component(event)
    calendar.add_missing_timezones()
    return bytes(calendar.to_ical())


@dataclass(slots=True)
class CalendarFeed:
    """The calendar of a campaign, with recaps for players. A recap is made again only if its session or what players
    may not know has changed.
    """

    store: Store
    campaign: CampaignId
    _view: SessionRecaps | None = None
    _recaps: dict[SessionId, tuple[int, list[str]]] = field(default_factory=dict)
    _made: tuple[object, object, bytes] = (None, None, b"")
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> bytes:
        """Return the calendar as it is now. Raises: Unavailable: The database is away."""
        async with self._turn:
            view = self._view or await SessionRecaps.of(self.store, self.campaign)
            known, stored = await view.log.known(self.campaign), await self.store.campaigns.get(self.campaign)
            if view.known is not known or view.campaign != stored:
                view = await SessionRecaps.of(self.store, self.campaign, log=view.log)
            self._view, times = view, await self.store.times.times(self.campaign)
            sessions = await played_sessions(PostgresInspection(self.store.database), self.campaign, times)
            # The log returns the same list until something happens to the world.
            if self._made[0] is not known or self._made[1] != (stored, sessions):
                told = [replace(each, recap=await self._recap(view, each.id)) for each in sessions]
                work = partial(calendar_of, self.campaign, stored.name, told)
                self._made = known, (stored, sessions), await offload(work, amount=_ROWS_A_CALENDAR)
            return self._made[2]

    async def _recap(self, view: SessionRecaps, session: SessionId) -> list[str]:
        said = await view.said(session)
        hidden = (*view.players.guarded.entries, *view.players.secrets, view.campaign.safety)
        state = hash((*said, *hidden))
        if self._recaps.get(session, (None,))[0] != state:
            self._recaps[session] = state, await view.told(said, "players")
        return self._recaps[session][1]


# Commands and page

OUT: Final = Verb(run_in_scope, common=CAMPAIGN, of=VERB)


@OUT.action(
    "write sessions and world as an Obsidian vault, or bring one up to date; a note that you edited stays as it is",
    argument("folder", type=Path, metavar="FOLDER", help="of the vault; created if it does not exist"),
    argument(
        "--for",
        dest="readers",
        choices=("players", "dm"),
        default="players",
        help="players: only what they may know; dm: everything, with secrets marked. Default: players",
    ),
    argument("--transcript", help="include all that was said; only with --for dm"),
)
async def _vault(scope: Scope, options: argparse.Namespace) -> int:
    if options.transcript and options.readers != "dm":
        raise InvalidInput("--transcript includes asides and hidden names: it needs --for dm")
    desk = await desk_in(scope)
    notes = await vault_of(scope.store, desk, readers=options.readers, with_transcript=options.transcript)
    done = write_vault(options.folder, notes, campaign=scope.campaign, readers=options.readers)
    n_written = counted(done.n_written, "note")
    print(f"{options.folder}: {n_written} written, {done.n_unchanged:,} unchanged, {done.n_removed:,} removed")
    for path in done.kept:
        print(f"not changed, because somebody else wrote or edited it: {plain(path)}")
    return 0


@OUT.action(
    "write a calendar of the sessions, with recaps for players (iCalendar)",
    argument("file", type=Path, metavar="FILE", help="the file to write (.ics); it must not exist"),
)
async def _ical(scope: Scope, options: argparse.Namespace) -> int:
    content = await CalendarFeed(scope.store, scope.campaign).read()
    write_new_file(options.file, content)
    print(f"{options.file}: {counted(content.count(b'BEGIN:VEVENT'), 'session')}")
    return 0


def add_calendar(served: ServedTable) -> None:
    """Add the calendar to a served table. Calendar programs have no cookies: the address carries a token."""
    from starlette.responses import Response
    from starlette.routing import Route

    from glyphoxa.web.access.links import BadInvitation
    from glyphoxa.web.access.records import AuditKind
    from glyphoxa.web.access.roles import Grant, Role
    from glyphoxa.web.page_socket import SeatLimits

    limits: dict[Grant, SeatLimits] = {}
    entrance = served.desk.entrance
    feed = None if served.store is None else CalendarFeed(served.store, served.desk.table.campaign.id)

    async def calendar(request: Request) -> Response:
        try:
            token, links = request.query_params.get("token", ""), entrance.links
            reader = Grant(Role.DM) if links is None else links.calendar_reader(token)
        except BadInvitation:
            entrance.visitor(request).record(AuditKind.REFUSED, what="an invalid calendar address")
            raise
        limits.setdefault(reader, SeatLimits()).need_request("requests for the calendar")
        if feed is None:
            raise InvalidInput("this table has no long-term memory")
        return Response(await feed.read(), media_type="text/calendar")

    served.app.router.routes.append(Route("/calendar.ics", calendar, methods=["GET"]))
