"""A campaign for other programs: notes in a folder, and a calendar of its sessions."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, timedelta
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from glyphoxa.adapters.postgres.chronicle_log import PostgresChronicleLog
from glyphoxa.adapters.postgres.server.offload import offload
from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection, SessionTalk
from glyphoxa.chronicle.episodes import is_guarded
from glyphoxa.chronicle.talk import KnownEntity, NumberedUtterance
from glyphoxa.desk import Desk, SessionRecaps
from glyphoxa.dm.timeline import is_bookkeeping
from glyphoxa.dm.vault import PlayedSession, VaultContent, notes_of
from glyphoxa.domain.calendar import CampaignTimes
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.domain.ids import CampaignId, SessionId
from glyphoxa.domain.knowledge import DM
from glyphoxa.providers.extras import need
from glyphoxa.recall.days import zone_of_campaign
from glyphoxa.transcript.sessions import episode_of

Readers = Literal["players", "dm"]
_ALL: Final = 10_000_000
_ROWS_A_NOTE: Final = 40
"""A note takes as long to write as so many rows take to read."""
_ROWS_A_CALENDAR: Final = 5_000
"""A calendar does, most of all for its time zone."""


def played(number: int, talk: SessionTalk, times: CampaignTimes, recap: Sequence[str] = ()) -> PlayedSession:
    """
    Args:
        talk: Of a session in which something was said.
    """
    span = times.sessions.get(talk.id)
    days = ""
    if span is not None and times.calendar is not None:
        ends = dict.fromkeys(day for day in (span.first, span.last) if day is not None)
        days = " to ".join(map(times.calendar.in_words, ends))
    ended_ms = talk.started_ms if talk.last_at_ms is None else talk.last_at_ms
    return PlayedSession(talk.id, number, talk.started_ms, ended_ms, days, recap)


async def _talks(inspection: PostgresInspection, campaign: CampaignId) -> dict[int, SessionTalk]:
    """Return the sessions in which something was said, by their numbers."""
    found = await inspection.entries_per_session(campaign)
    return {number: talk for number, talk in enumerate(found, start=1) if talk.n_entries}


# A vault


async def vault_of(store: Store, desk: Desk, *, readers: Readers, with_transcript: bool = False) -> dict[str, str]:
    """Return the text of each note of a vault by its path.

    Raises:
        Unavailable: The database is away.
    """
    recaps = await SessionRecaps.of(store, desk.campaign)
    talks = await _talks(desk.inspection, desk.campaign)
    sessions = [await _session_for(readers, recaps, played(number, talk, desk.days)) for number, talk in talks.items()]
    episodes = {episode_of(session) for session in desk.resolver.sessions}
    facts = await desk.inspection.current(desk.campaign, DM, limit=_ALL)
    content = VaultContent(
        recaps.campaign.name,
        desk.language,
        zone_of_campaign(desk.days.time_zone),
        desk.resolver,
        [(each.entity, each.visibility) for each in desk.seen if each.entity.id not in episodes],
        [each for each in facts if each.claim.subject not in episodes and not is_bookkeeping(each, episodes)],
        sessions,
        with_transcript,
    )
    amount = (len(content.entities) + sum(len(each.said) for each in sessions)) * _ROWS_A_NOTE

    def notes() -> dict[str, str]:
        return notes_of(content if readers == "dm" else content.for_players(recaps.players.guarded))

    return await offload(notes, amount=amount)


async def _session_for(readers: Readers, recaps: SessionRecaps, session: PlayedSession) -> PlayedSession:
    said = await recaps.said(session.id)
    recap = await recaps.told(said, "players")
    for_dm: list[str] = []
    heard = said
    if readers == "dm":
        for_dm = [line for line in await recaps.told(said, "dm") if line not in recap]
    else:
        heard = recaps.players.shown(each for each in said if each.utterance.aside is None)
    return replace(session, recap=recap, dm_recap=for_dm, said=[each.utterance for each in heard])


MANIFEST: Final = ".glyphoxa-vault.json"


class _Manifest(BaseModel):
    """What was written into a vault.

    Attributes:
        notes: Digests of what each note may hold, by its path. Two while a run is under way.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    campaign: str
    readers: Readers
    notes: dict[str, list[str]] = {}


@dataclass(frozen=True, slots=True)
class VaultChanges:
    """What a run did.

    Attributes:
        kept: Paths of notes that somebody else wrote or edited. They are unchanged.
    """

    n_written: int = 0
    n_unchanged: int = 0
    n_removed: int = 0
    kept: Sequence[str] = ()


def write_vault(folder: Path, notes: Mapping[str, str], *, campaign: CampaignId, readers: Readers) -> VaultChanges:
    """Write new and changed notes, and remove those that no longer belong. A note that somebody edited stays. Blocks.

    A run that is killed can be repeated.

    Raises:
        InvalidInput: The folder holds another vault, or cannot be read or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _manifest_in(folder, _Manifest(campaign=campaign, readers=readers))
        return _write_notes(folder, notes, before, mode=0o600 if readers == "dm" else 0o644)
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
        raise InvalidInput(
            f"{folder} holds the vault of campaign {found.campaign!r} for {_for(found)}, "
            f"not of {wanted.campaign!r} for {_for(wanted)}; name another folder"
        )
    return found


def _for(manifest: _Manifest) -> str:
    return "the game master" if manifest.readers == "dm" else "players"


def _write_notes(folder: Path, notes: Mapping[str, str], before: _Manifest, *, mode: int) -> VaultChanges:
    root = folder.resolve()
    found = {path: _digest_in(root, path) for path in {**before.notes, **notes}}
    ours = {path for path, digest in found.items() if digest in before.notes.get(path, ())}
    texts = {path: text.encode("utf-8", "replace") for path, text in notes.items()}
    digests = {path: _digest(text) for path, text in texts.items()}
    unchanged = {path for path, digest in digests.items() if found[path] == digest}
    written = {path for path in texts if path in ours or found[path] == _MISSING} - unchanged
    gone = {path for path in before.notes.keys() - notes.keys() if path in ours}
    kept = sorted(path for path in found.keys() - unchanged - written - gone if found[path] != _MISSING)
    stay = {path: before.notes[path] for path in kept if path in before.notes}
    pending = {path: [*before.notes.get(path, ()), digests[path]] for path in written | unchanged}
    _list(root, before, {**stay, **{path: before.notes[path] for path in gone}, **pending})
    for path in gone:  # first: on some file systems a new name may differ from an old one in its case alone
        (root / path).unlink()
    for path in sorted(written):
        _replace(root / path, texts[path], mode=mode)
    _list(root, before, {**stay, **{path: [digests[path]] for path in written | unchanged}})
    return VaultChanges(len(written), len(unchanged), len(gone), kept)


_MISSING: Final = ""
_FOREIGN: Final = "-"
"""No digest is this."""


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _digest_in(root: Path, path: str) -> str:
    """Return the digest of a note; `_FOREIGN` for anything that is no file inside the folder."""
    try:
        place = root / path
        is_inside = ".." not in PurePosixPath(path).parts and place.parent.resolve().is_relative_to(root)
        if not is_inside or place.is_symlink() or place.parent.is_file() or (place.exists() and not place.is_file()):
            return _FOREIGN
        return _digest(place.read_bytes()) if place.exists() else _MISSING
    except ValueError:  # not a path at all
        return _FOREIGN


def _list(root: Path, before: _Manifest, notes: Mapping[str, Sequence[str]]) -> None:
    listed = before.model_copy(update={"notes": dict(sorted(notes.items()))})
    _replace(root / MANIFEST, json.dumps(listed.model_dump(), indent=1).encode(), mode=0o600)


def _replace(path: Path, content: bytes, *, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


# A calendar

_SHORTEST: Final = timedelta(minutes=1)


def calendar_of(campaign: CampaignId, name: str, sessions: Iterable[PlayedSession], time_zone: str) -> bytes:
    """Return an iCalendar file with an event for each session. The same sessions give the same bytes.

    Args:
        time_zone: IANA name; times are in UTC without one.

    Raises:
        NotInstalled: The extra `exchange` is missing.
    """
    need("icalendar", by="a calendar of sessions", extra="exchange")
    from icalendar import Calendar, Event

    zone = zone_of_campaign(time_zone) or UTC
    calendar = Calendar()
    for key, value in (("prodid", "-//Glyphoxa//Sessions//EN"), ("version", "2.0"), ("x-wr-calname", name)):
        calendar.add(key, value)
    for session in sessions:
        began, ended = session.began(zone), session.ended(zone)
        event = Event()
        event.add("uid", f"{sha256(f'{campaign}/{session.id}'.encode()).hexdigest()[:32]}@glyphoxa")
        event.add("dtstamp", ended.astimezone(UTC))
        event.add("dtstart", began)
        event.add("dtend", max(ended, began + _SHORTEST))
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

    Args:
        within_s: Recaps that are not made by then are left to the next request.
    """

    store: Store
    campaign: CampaignId
    within_s: float = 10.0
    now_s: Callable[[], float] = time.monotonic
    _recaps: dict[SessionId, tuple[str, list[str]]] = field(default_factory=dict)
    _made: tuple[Sequence[KnownEntity], object, bytes] | None = None
    _view: SessionRecaps | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _log: PostgresChronicleLog | None = None

    async def read(self) -> bytes:
        """Return the calendar as it is now.

        Raises:
            NotInstalled: The extra `exchange` is missing.
            Unavailable: The database is away.
        """
        async with self._turn:
            log = self._log = self._log or PostgresChronicleLog(self.store.database, self.store.world)
            known = await log.known(self.campaign)
            stored = await self.store.campaigns.get(self.campaign)
            times = await self.store.times.times(self.campaign)
            talks = await _talks(PostgresInspection(self.store.database), self.campaign)
            state = (stored, times, talks)
            # The log returns the same list until something happens to the world.
            if self._made is not None and self._made[0] is known and self._made[1] == state:
                return self._made[2]
            recaps = self._view
            if recaps is None or (recaps.campaign, recaps.known) != (stored, known):
                recaps = self._view = await SessionRecaps.of(self.store, self.campaign, log=log)
            sessions, is_whole = await self._sessions(recaps, talks, times)
            name, zone = stored.name, times.time_zone
            content = await offload(lambda: calendar_of(self.campaign, name, sessions, zone), amount=_ROWS_A_CALENDAR)
            self._made = (known, state, content) if is_whole else None
            return content

    async def _sessions(
        self, recaps: SessionRecaps, talks: Mapping[int, SessionTalk], times: CampaignTimes
    ) -> tuple[list[PlayedSession], bool]:
        """Return the sessions, and whether all have their recaps. The latest are made first."""
        until_s = self.now_s() + self.within_s
        found: dict[int, PlayedSession] = {}
        guarded = sorted(name for each in recaps.known if is_guarded(each) for name in each.names)
        hidden = repr((guarded, sorted(each.text for each in recaps.campaign.secrets)))
        hidden = _digest(hidden.encode("utf-8", "replace"))
        for number, talk in [*talks.items()][::-1]:
            said = await recaps.said(talk.id)
            recap = await self._recap(recaps, talk.id, said, hidden, until_s=until_s)
            found[number] = played(number, talk, times, recap)
        return [found[number] for number in talks], all(talk.id in self._recaps for talk in talks.values())

    async def _recap(
        self,
        recaps: SessionRecaps,
        session: SessionId,
        said: Sequence[NumberedUtterance],
        hidden: str,
        *,
        until_s: float,
    ) -> Sequence[str]:
        heard = [each.utterance for each in said]
        lines = [(each.speaker_name, each.text, each.raw_text, each.aside, each.npc_id) for each in heard]
        state = _digest(repr((lines, hidden)).encode("utf-8", "replace"))
        kept = self._recaps.get(session)
        if kept is not None and kept[0] == state:
            return kept[1]
        self._recaps.pop(session, None)
        if self.now_s() > until_s:
            return ()
        self._recaps[session] = state, await recaps.told(said, "players")
        return self._recaps[session][1]
