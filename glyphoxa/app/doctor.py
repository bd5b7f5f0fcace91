"""`glyphoxa doctor`, and the list of checks on the desk: checks of settings, machine, installation and database.

A check is a function that gives findings (see `glyphoxa.config.check`): each is `ok`, or a problem with its remedy.
Checks run side by side, with deadlines.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path
from socket import gethostname
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psutil
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from rich.filesize import decimal

from glyphoxa.adapters.certificates import good_until
from glyphoxa.adapters.local.machine import is_busy
from glyphoxa.adapters.postgres.server.database import Condition, condition_of
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.app.engines import campaign_of, installed, language_findings, read_playable, settings_for
from glyphoxa.app.models import named, weights_for, with_local_llm
from glyphoxa.chat.models import CHAT_MODELS, OTHERS_BYTES, ChatModel, Machine, is_a_path, judged
from glyphoxa.config.check import Finding, Level, check, chosen_providers, place_of_memory, ports
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.sections import ServerSettings
from glyphoxa.config.settings import HERE, Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError, NotFound, Unavailable, counted, listed, shown
from glyphoxa.providers.extras import PAGE_MODULES, module_is_there, need
from glyphoxa.providers.registry import KINDS, LLM, NO_KEY, Choice, build, key_of, runs_here, weights_of

WITHIN_S: Final = 20.0
AT_THE_DESK_WITHIN_S: Final = 6.0
"""A page of the desk has ten seconds."""
SLOW_WITHIN_S: Final = 60.0
"""To start a database, and to measure a model."""
ANSWERED_WITHIN_S: Final = 20.0
"""For a remote provider. A large model may have to be loaded."""
_ASKED_WITHIN_S: Final = 25.0
_CONNECT_WITHIN_S: Final = 5.0
_UNWIND_S: Final = 2.0
_CLOCKS_APART_S: Final = 5.0
_N_NPCS: Final = 3
"""A usual number, where no campaign is named."""
_PROGRAM_BYTES: Final = 600_000_000
"""Memory for program and database, where no model runs here."""
_OPEN_TABLE_BYTES: Final = 300_000_000
"""Memory of an open table: models are loaded by then."""
_ROOMY: Final = Machine(free_bytes=1 << 62)
"""Whether memory is there for a model is told by another check than its speed."""
_SLOW_NAMES: Final = "set server.host to an address instead of a name"
_BUSY_DISK: Final = "the disk does not respond: set data_dir and models.dir to another disk"

RELEASED: Final = datetime(2026, 11, 1, tzinfo=UTC)
"""No clock that is right shows an earlier time to this version."""
_YEARS: Final = 30
"""A clock that is so far behind `RELEASED` is wrong, too."""
_A_ZONE: Final = "Europe/Berlin"
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
_LEAST_FREE: Final = 300_000_000
"""Bytes: with less, a database soon takes no more writes."""
_WELL_FREE: Final = 2_000_000_000
"""Bytes: a database's write-ahead log may take this much for a time."""


def before_a_table(settings: Settings, *, is_quick: bool) -> list[Finding]:
    """Return the findings before a table is opened. Blocks: mostly for a few seconds, at most for two minutes.

    Args:
        is_quick: No database is started, and no model is measured.
    """
    campaign = campaign_of(settings)
    settings = settings_for(settings, campaign)
    found = examined(
        [
            *_of_machine(),
            Check("campaign", partial(_campaign, settings), _BUSY_DISK),
            *_of_settings(settings, campaign, needed=partial(_needed_memory, settings), starts=not is_quick),
            Check("port", partial(ports, settings.ports()), _SLOW_NAMES),
            Check("microphone", partial(https, settings.server), "look at server.tls_cert and server.tls_key"),
        ],
        within_s=WITHIN_S,
    )
    if not is_quick:  # nothing may run beside a measurement
        busy = "this machine is slow or busy: set a smaller model, or try again when it is idle"
        found += examined([Check("speed", partial(_speed, settings), busy)], within_s=SLOW_WITHIN_S)
    return found


def at_open_table(settings: Settings, campaign: Campaign, *, players_url: str | None) -> list[Finding]:
    """The same for a table that is being played: no port is tried, no model measured. Blocks for some seconds.

    Args:
        players_url: Where players open it; None: on this machine only.
    """
    settings = settings_for(settings, campaign)
    url = players_url or "http://localhost"
    return examined(
        [
            *_of_machine(),
            *_of_settings(settings, campaign, needed=lambda: _OPEN_TABLE_BYTES, starts=False),
            Check("port", partial(ports, settings.server.ports(), is_serving=True)),
            Check("microphone", lambda: [microphone(url)]),
        ],
        within_s=AT_THE_DESK_WITHIN_S,
    )


def of_settings(settings: Settings) -> list[Finding]:
    """Return what these settings will use and what they lack, without looking at the machine any further."""
    campaign = campaign_of(settings)
    settings = settings_for(settings, campaign)
    return examined(
        [
            Check("campaign", partial(_campaign, settings), _BUSY_DISK),
            Check("memory", lambda: [place_of_memory(settings)]),
            Check("providers", partial(_providers, settings, campaign)),
            Check("models", partial(models, settings), _BUSY_DISK),
            Check("port", partial(ports, settings.server.ports()), _SLOW_NAMES),
        ],
        within_s=WITHIN_S,
    )


def ask_providers(settings: Settings, *, but_not: Collection[str] = ()) -> list[Finding]:
    """Ask each remote provider of these settings one short question. Blocks for `ANSWERED_WITHIN_S` at the most.

    Args:
        but_not: Subjects of `check` that have errors.
    """
    checks = []
    for subject, section, choice in chosen_providers(settings):
        if subject not in but_not:
            look = partial(_asked_live, f"{subject}, live", section, choice, settings)
            checks.append(Check(f"{subject}, live", look))
    return examined(checks, within_s=_ASKED_WITHIN_S)


def _asked_live(subject: str, section: str, choice: Choice, settings: Settings) -> Iterator[Finding]:
    if runs_here(section, choice.name):
        yield Finding("ok", subject, f"{choice.name} runs on this machine and was not asked")
        return
    level: Level = "error"
    try:
        level, text = "ok", asyncio.run(_answer_of(section, choice, settings))
    except TimeoutError:
        text = f"no answer within {ANSWERED_WITHIN_S:g} s"
    except GlyphoxaError as error:
        text = str(error)
    except Exception as error:  # of a provider's client: its message, or that of its cause, is the reason
        text = f"{choice.name} did not answer: {str(error.__cause__ or error) or type(error).__name__}"
    key = key_of(choice, section=section)
    yield Finding(level, subject, shown(text if key == NO_KEY else text.replace(key, "…")))


async def _answer_of(section: str, choice: Choice, settings: Settings) -> str:
    began_s = time.monotonic()
    async with asyncio.timeout(ANSWERED_WITHIN_S), AsyncExitStack() as stack:
        kind = KINDS[section]
        if kind in ("llm", "stt", "tts", "s2s"):
            answer: str = await installed("live_check").ask(section, choice)
            return answer
        options: dict[str, Any] = {"dimensions": settings.memory.embedding_dimensions} if kind == "embeddings" else {}
        client = build(choice, section=section, **options)
        stack.push_async_callback(client.close)
        if kind == "embeddings":
            vectors = await client.embed_questions(["Good morning."])
            what = f"{vectors.shape[1]} dimensions"
        elif kind == "reranker":
            await client.rerank("Good morning.", ["Good evening.", "Good day."])
            what = "scores"
        else:
            await client.complete('Answer with the JSON {"colour": "..."}.', "What colour is the sky?", _COLOUR)
            what = "structured answer"
        return f"{what} after {round((time.monotonic() - began_s) * 1_000)} ms"


_COLOUR: Final = {
    "title": "sky",
    "type": "object",
    "properties": {"colour": {"type": "string"}},
    "required": ["colour"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Check:
    """
    Attributes:
        look: May block, and may raise: see `examined`.
        if_late: Advice for when it does not return in time.
        within_s: Its own deadline, where the one of all is too short.
    """

    subject: str
    look: Callable[[], Iterable[Finding]]
    if_late: str = "try again"
    within_s: float | None = None


def examined(checks: Sequence[Check], *, within_s: float) -> list[Finding]:
    """Run checks side by side, each in its own thread, and return what they find, in their order.

    A check that raises, or does not return in time, is one finding of its own, and the others are not disturbed. What
    does not return is left behind, and does not keep the process from ending.
    """
    began_s = time.monotonic()
    running = [(each, _begun(each)) for each in checks]
    found: list[Finding] = []
    for each, answer in running:
        deadline_s = within_s if each.within_s is None else each.within_s
        try:
            found += answer.get(timeout=max(0.0, began_s + deadline_s - time.monotonic()))
        except queue.Empty:
            text = f"not checked: no answer within {deadline_s:g} s: {each.if_late}"
            found.append(Finding("error", each.subject, text))
    return found


def _begun(check: Check) -> queue.SimpleQueue[list[Finding]]:
    answer: queue.SimpleQueue[list[Finding]] = queue.SimpleQueue()
    threading.Thread(target=lambda: answer.put(_looked(check)), name=f"check-{check.subject}", daemon=True).start()
    return answer


def _looked(check: Check) -> list[Finding]:
    try:
        return list(check.look())
    except GlyphoxaError as error:
        return [Finding("error", check.subject, str(error))]
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        return [Finding("error", check.subject, f"not checked: {error.strerror or type(error).__name__}{place}")]
    except Exception as error:  # one check that breaks must not keep the others from being told
        # Not its message: that may hold what nobody shall read.
        text = f"not checked: {type(error).__name__}, a bug in Glyphoxa: please report it"
        return [Finding("error", check.subject, text)]


def without_settings() -> list[Finding]:
    """Return the findings that need no settings."""
    return examined(_of_machine(), within_s=WITHIN_S)


def _of_machine() -> list[Check]:
    return [
        Check("python", python),
        Check("packages", _packages, "try again when this machine is less busy"),
        Check("clock", clock),
    ]


def _of_settings(
    settings: Settings, campaign: Campaign | None, *, needed: Callable[[], int], starts: bool
) -> list[Check]:
    database = partial(_database, settings, starts=starts)
    return [
        Check("page", _page),
        Check("providers", partial(_providers, settings, campaign), "run `glyphoxa config check`"),
        Check("models", partial(models, settings), _BUSY_DISK),
        Check("disk", partial(_disk, settings), _BUSY_DISK),
        Check("memory", partial(_memory, needed), _BUSY_DISK),
        Check("database", database, "look at its server.log", SLOW_WITHIN_S)
        if starts
        else Check("database", database, "check that its server responds"),
    ]


def _page() -> list[Finding]:
    need(*PAGE_MODULES, by="the page", extra="voice")
    return []


def _providers(settings: Settings, campaign: Campaign | None) -> list[Finding]:
    return [*check(settings), *language_findings(settings, campaign)]


def _campaign(settings: Settings) -> Iterator[Finding]:
    path = settings.campaign
    if path is None:
        text = "none set: set `campaign`, or use `glyphoxa serve --campaign FILE`"
        yield Finding("warning", "campaign", text)
        return
    try:
        campaign = read_playable(path, settings).campaign
    except InvalidFile as wrong:
        text = (
            f"{path} cannot be played, {counted(len(wrong.problems), 'mistake')}: run `glyphoxa campaign check {path}`"
        )
        yield Finding("error", "campaign", text)
    else:
        yield Finding("ok", "campaign", f"{campaign.name} in {path}, with {counted(len(campaign.npcs), 'NPC')}")


def models(settings: Settings) -> Iterator[Finding]:
    """Whether the weights that these settings name are here, told without reading them."""
    weights = weights_for(settings)
    statuses = {each.name: each for each in weights.status()}
    n_here = n_bytes = 0
    for name in dict.fromkeys(named(settings)):
        if is_a_path(name):
            if weights.has(name):
                size = decimal(Path(name).expanduser().stat().st_size)
                yield Finding("ok", "models", f"{name}, {size}")
            else:
                yield Finding("error", "models", f"{name}: no such file: set providers.llm.model to an existing file")
            continue
        status, fetch = statuses.get(name), f"run `glyphoxa models fetch {name}`"
        if status is None or status.state == "missing":
            size = "" if status is None else f" ({decimal(status.artefact.size)})"
            yield Finding("error", "models", f"{name} is not on this machine{size}: {fetch}")
        elif status.state == "partial":
            part = f"{decimal(status.have)} of {decimal(status.artefact.size)}"
            yield Finding("error", "models", f"{name} is incomplete, {part}: {fetch}")
        elif status.state == "unverified":
            remedy = f"run `glyphoxa models verify {name}`"
            yield Finding(
                "warning", "models", f"{name} has the right size, but its checksum was not compared: {remedy}"
            )
        else:
            n_here, n_bytes = n_here + 1, n_bytes + status.have
    if n_here:
        yield Finding("ok", "models", f"{n_here} present, {decimal(n_bytes)}, with the right checksums")
    elif not named(settings):
        yield Finding("ok", "models", "none runs on this machine")


@dataclass(frozen=True, slots=True)
class DiskNeed:
    """The space that a file or folder will need.

    Attributes:
        directory: It need not be there yet.
        setting: The setting that names another directory.
        n_bytes: The least that will be written.
    """

    what: str
    directory: Path
    setting: str
    n_bytes: int = 0


def disk(rooms: Sequence[DiskNeed]) -> Iterator[Finding]:
    """Check that each directory can be written to, and that its disk has room for all that comes there."""
    # Of a directory that does not exist, the nearest one above that does.
    places = {at: next(filter(os.path.exists, (at, *at.absolute().parents))) for at in (r.directory for r in rooms)}
    coming: dict[int, int] = {}
    for room in rooms:
        device = places[room.directory].stat().st_dev
        coming[device] = coming.get(device, 0) + room.n_bytes
    for room in rooms:
        place = places[room.directory]
        try:
            tempfile.TemporaryFile(dir=place).close()  # it never has a name: nothing is left there
        except OSError as error:
            fault = f"{room.directory} cannot be written to ({place}: {error.strerror})"
            remedy = f"let this user write there, or set {room.setting} to another directory"
            yield Finding("error", "disk", f"{room.what}: {fault}: {remedy}")
            continue
        free, wanted = shutil.disk_usage(place).free, coming[place.stat().st_dev]
        text = f"{room.what}: {decimal(free)} free for {room.directory}"
        text += f", {decimal(wanted)} of models to download" if wanted else ""
        remedy = f"free some space, or set {room.setting} to a directory on another disk"
        if free < wanted + _LEAST_FREE:
            yield Finding("error", "disk", f"{text}, which is too little: {remedy}")
        elif free < wanted + _WELL_FREE:
            yield Finding("warning", "disk", f"{text}, which is low: {remedy}")
        else:
            yield Finding("ok", "disk", text)


def _disk(settings: Settings) -> Iterator[Finding]:
    store, names = weights_for(settings), named(settings)
    wanted = [each for each in store.status() if each.name in names and each.state in ("missing", "partial")]
    to_come = sum(each.artefact.size - each.have for each in wanted)
    rooms = [DiskNeed("data", settings.data_directory, "data_dir (or GLYPHOXA_DATA)")]
    if to_come:
        rooms.append(DiskNeed("models", store.directory, "models.dir", to_come))
    return disk(rooms)


def _memory(needed: Callable[[], int]) -> Iterator[Finding]:
    now = psutil.virtual_memory()
    return memory(free=now.available, of=now.total, needed=needed())


def memory(*, free: int, of: int, needed: int) -> Iterator[Finding]:
    """Check that the models have room in this machine's memory.

    Args:
        free, of, needed: Bytes: that a program can have, of the machine, and that models and program take.
    """
    room = f"{decimal(free)} of {decimal(of)} free, {decimal(needed)} needed"
    if needed > of:
        text = f"{room}: set a smaller model (see `glyphoxa models recommend`), or a cloud provider"
        yield Finding("error", "memory", text)
    elif needed > free:
        yield Finding("warning", "memory", f"{room}: end other programs, or set a smaller model")
    else:
        yield Finding("ok", "memory", room)


def _needed_memory(settings: Settings) -> int:
    """Bytes for program, database and models, as far as can be told without loading them."""
    if not named(settings):
        return _PROGRAM_BYTES
    here = with_local_llm(settings)
    if here is None:
        return OTHERS_BYTES
    weights, needed = weights_for(settings), OTHERS_BYTES
    for name in weights_of(LLM, here.providers.llm):
        known = next((each for each in CHAT_MODELS if each.name == name), None)
        if known is not None:
            campaign = campaign_of(settings)
            n_npcs = len(campaign.npcs) if campaign else _N_NPCS
            needed += known.bytes + known.cache_bytes * here.context_tokens * n_npcs
        elif weights.has(name):
            path = Path(name).expanduser() if is_a_path(name) else weights.find(name).path
            needed += path.stat().st_size
    return needed


def _database(settings: Settings, *, starts: bool) -> Iterator[Finding]:
    """Yield the findings about the database.

    Args:
        starts: Start an embedded one that has data, as every verb that needs it does.
    """
    dsn, place = settings.memory.postgres_dsn, place_of_memory(settings)
    if dsn == "none":
        yield replace(place, subject="database")
        return
    if dsn is not None:
        yield from _asked(settings, dsn, place.text)
        return
    server = EmbeddedPostgres(settings.data_directory / "postgres", timeout_s=SLOW_WITHIN_S)
    if server.pid() is None:
        major, has_data = server.check()
        if not (starts and has_data):
            state = "is not running" if has_data else "will be created at its first use"
            yield Finding("ok", "database", f"embedded PostgreSQL {major} in {server.directory} {state}")
            return
    if starts:
        server.start()
    try:
        yield from _asked(settings, server.dsn(), place.text)
    finally:
        server.release()


def _asked(settings: Settings, dsn: str, what: str) -> Iterator[Finding]:
    dimensions = settings.memory.embedding_dimensions
    try:
        condition = condition_of(dsn, embedding_dimensions=dimensions, deadline_s=_CONNECT_WITHIN_S)
    except Unavailable as error:
        yield Finding("error", "database", f"{error}: start its server, or set memory.postgres_dsn to another")
    else:
        yield from told(condition, what)


def told(condition: Condition, what: str) -> Iterator[Finding]:
    """Whether a database can hold memory.

    Args:
        what: How it is called.
    """
    fault = ""
    if not condition.has_pgvector and condition.pgvector is None:
        fault = "has no pgvector: install it on that server (as postgresql-18-pgvector), then run "
        fault += "`CREATE EXTENSION vector;` in this database as an administrator"
    elif condition.is_read_only:
        fault = "rejects writes: set memory.postgres_dsn to the primary server, or there "
        fault += "`ALTER SYSTEM SET default_transaction_read_only = off`"
    if fault:
        yield Finding("error", "database", f"{what} {fault}")
        return
    n = condition.n_to_apply
    schema = f"{n} migrations will be applied at its next use" if n else "migrated"
    vector = f"pgvector {condition.pgvector}" if condition.pgvector else "pgvector will be created"
    yield Finding("ok", "database", f"{what}: version {condition.version}, {vector}, {schema}")
    if abs(condition.ahead_s) > _CLOCKS_APART_S:
        apart = f"{abs(condition.ahead_s):.0f} s {'ahead of' if condition.ahead_s > 0 else 'behind'} this machine's"
        remedy = "synchronise both clocks, for example with `timedatectl set-ntp true`"
        yield Finding("warning", "clock", f"the database's clock is {apart}: {remedy}")


def clock(now: datetime | None = None) -> Iterator[Finding]:
    """Check that this machine's time can be right, and that it knows time zones."""
    now = now or datetime.now(UTC)
    here = f"{now:%Y-%m-%d %H:%M} UTC"
    if not RELEASED <= now < RELEASED.replace(year=RELEASED.year + _YEARS):
        yield Finding(
            "error", "clock", f"it shows {here}, which is wrong: set it, for example with `timedatectl set-ntp true`"
        )
    else:
        yield Finding("ok", "clock", here)
    try:
        ZoneInfo.no_cache(_A_ZONE)
    except (ZoneInfoNotFoundError, OSError):
        yield Finding("error", "clock", "this system has no time zone data: run `pip install tzdata`")


def microphone(url: str, *, is_self_signed: bool = False) -> Finding:
    """Check that browsers give the microphone to a page at that address: only to https, and to this machine itself."""
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if parts.scheme == "https":
        warned = "; browsers warn about its certificate once" if is_self_signed else ""
        return Finding("ok", "microphone", f"players open {shown}, and browsers allow it on https{warned}")
    if parts.hostname in HERE:
        return Finding("ok", "microphone", f"the table is open to this machine only, at {shown}")
    return Finding(
        "warning",
        "microphone",
        f"players open {shown}, and browsers allow it only on https and localhost: set server.tls_self_signed, "
        "server.tls_cert and server.tls_key, or server.public_url to an https address",
    )


def https(settings: ServerSettings) -> Iterator[Finding]:
    """Check the certificate of the settings, and what their address means for the microphone.

    Raises:
        GlyphoxaError: The certificate cannot be read.
    """
    until = good_until(settings.tls_cert, settings.tls_key)
    if until is not None and until < datetime.now(UTC):
        text = f"{settings.tls_cert} expired on {until:%Y-%m-%d}: renew it, and set server.tls_cert to the new one"
        yield Finding("error", "microphone", text)
        return
    is_secure = until is not None or settings.tls_self_signed
    host = gethostname() if settings.host in _EVERYWHERE else settings.host
    host = f"[{host}]" if ":" in host else host
    here = f"{'https' if is_secure else 'http'}://{host}" + (f":{settings.port}" if settings.port else "")
    yield microphone(settings.public_url or here, is_self_signed=until is None and not settings.public_url)


def _speed(settings: Settings) -> Iterator[Finding]:
    """Measure the model of these settings like `glyphoxa models recommend`."""
    here = with_local_llm(settings)
    if here is None:
        yield Finding("ok", "speed", "not measured: no language model runs on this machine")
        return
    if not all(map(module_is_there, ("httpx", "xllamacpp"))):
        yield Finding("warning", "speed", "not measured: run `pip install 'glyphoxa[local]'`")
        return
    from glyphoxa.adapters.local.llama import measure

    (name,) = weights_of(LLM, here.providers.llm)
    try:
        path = weights_for(here).find(name).path
    except NotFound as missing:
        yield Finding("warning", "speed", f"not measured: {missing}")
        return
    measured = measure(path, deadline_s=SLOW_WITHIN_S - _UNWIND_S)
    model = ChatModel(name, measured.billions, measured.bytes, cache_bytes=0, licence="")
    reckoned = judged(model, measured, _ROOMY)
    text = f"{path.name} reads {measured.reads_per_s:.0f} tokens per second and generates {measured.speaks_per_s:.0f}"
    if is_busy():
        text += " while other programs are busy"
    if reckoned.against:
        remedy = "run `glyphoxa models recommend`, and set a model that it lists"
        yield Finding("warning", "speed", f"{text}: {'; '.join(reckoned.against)}: {remedy}")
    else:
        yield Finding("ok", "speed", f"{text}: first words after {reckoned.first_clause_s:.1f} s")


# The installation: Python's version, and the packages that Glyphoxa requires.

OLDEST: Final = (3, 11)
NEWEST: Final = (3, 14)
"""Versions of Python that Glyphoxa supports, both included."""
LOCK: Final = Path(__file__).parents[2] / "requirements" / "app.txt"
"""The lock file of a checkout; an installed package has none."""
_NAME: Final = "glyphoxa"
_NAMED: Final = 5
"""Packages in one line; of more their number is given."""


def python(version: Sequence[int] = sys.version_info[:3], *, place: str = sys.prefix) -> Iterator[Finding]:
    """Check that this version of Python is supported."""
    here, oldest, newest = (".".join(map(str, each)) for each in (version, OLDEST, NEWEST))
    supported = f"{oldest} to {newest}"
    if tuple(version[:2]) < OLDEST:
        remedy = f"install Python {supported} and create a new virtual environment with it"
        yield Finding("error", "python", f"{here} in {place} is too old: {remedy}")
    elif tuple(version[:2]) > NEWEST:
        remedy = f"if something fails, create a virtual environment with Python {supported}"
        yield Finding("warning", "python", f"{here} in {place} is newer than the supported versions: {remedy}")
    else:
        yield Finding("ok", "python", f"{here} in {place}")


def packages(path: Sequence[str] | None = None, *, lock: Path = LOCK) -> Iterator[Finding]:
    """Check that all packages are installed which Glyphoxa and its installed extras require, in a checkout as locked.

    Args:
        path: Directories with packages; None is where Python looks for them.
    """
    places = sys.path if path is None else [*path]
    find = cache(lambda name: next((each.metadata for each in distributions(name=name, path=places)), None))
    own = find(_NAME)
    if own is None:
        yield Finding("error", "packages", f"{_NAME} itself is not installed: run `pip install {_NAME}`, or `make`")
        return
    extras = [each for each in own.get_all("Provides-Extra") or () if _is_complete(each, own, find)]
    named = ("all",) if "all" in extras else extras
    wanted = f"{_NAME}[{','.join(named)}]" if named else _NAME
    is_checkout = lock.is_file()
    remedy = f"`pip install --no-deps --require-hashes -r {lock}`" if is_checkout else f"`pip install -U '{wanted}'`"
    n_needed, unmet = _walked(own, find, extras)
    several = partial(listed, most=_NAMED, between="; ")
    for parent, texts in sorted(unmet.items()):
        # What others require of each other is often stricter than what they need.
        level: Level = "error" if parent == _NAME else "warning"
        yield Finding(level, "packages", f"{parent} needs {several(sorted(texts))}: run {remedy}")
    differing = _differing(find, lock) if is_checkout else []
    if differing:
        yield Finding("warning", "packages", f"different from {lock}: {several(differing)}: run {remedy}")
    if not unmet and not differing:
        locked = f", as in {lock}" if is_checkout else ""
        yield Finding("ok", "packages", f"{wanted} {own['Version']}, with {counted(n_needed, 'package')}{locked}")


_Find = Callable[[str], PackageMetadata | None]
"""Finds an installed package. Reading one takes milliseconds."""


def _required(package: PackageMetadata, *extras: str) -> list[Requirement]:
    """Return what is required on this machine with these extras. A requirement that cannot be read is left out."""
    required = []
    for text in package.get_all("Requires-Dist") or ():
        with contextlib.suppress(InvalidRequirement):
            required.append(Requirement(text))
    return [each for each in required if _applies(each, "", *extras)]


def _is_complete(extra: str, own: PackageMetadata, find: _Find) -> bool:
    """Return whether all packages that an extra adds are installed, in any version."""
    added = [each for each in _required(own, extra) if not _applies(each, "")]
    for each in added:
        package = find(each.name)
        if package is None or not all(find(one.name) for one in _required(package, *each.extras)):
            return False
    return bool(added)


def _walked(own: PackageMetadata, find: _Find, extras: Iterable[str]) -> tuple[int, dict[str, set[str]]]:
    """Return the number of packages that are needed, and by each package what is wrong with those that it requires."""
    unmet: dict[str, set[str]] = {}
    todo = [(_NAME, own, frozenset(extras))]
    for name, package, wanted in todo:  # it grows
        for each in _required(package, *wanted):
            found = find(each.name)
            if found is None:
                fault = ", which is not installed"
            elif not each.specifier.contains(found["Version"], prereleases=True):
                fault = f", and {found['Version']} is installed"
            else:
                met = (canonicalize_name(each.name), found, frozenset(each.extras))
                if met not in todo:
                    todo.append(met)
                continue
            unmet.setdefault(name, set()).add(f"{each.name}{each.specifier}{fault}")
    return len({name for name, *_ in todo}) - 1, unmet


def _applies(requirement: Requirement, *extras: str) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": each}) for each in extras)


def _differing(find: _Find, lock: Path) -> list[str]:
    """Return packages whose version is not the locked one. What is not installed belongs to another extra."""
    differing = []
    for line in lock.read_text("utf-8").splitlines():
        if "==" not in line or line.startswith((" ", "#")):
            continue
        locked = Requirement(line.rstrip(" \\"))
        found = find(locked.name) if _applies(locked, "") else None
        if found is not None and not locked.specifier.contains(found["Version"], prereleases=True):
            differing.append(f"{locked.name} {found['Version']} (locked{locked.specifier})")
    return sorted(differing)


@cache
def _packages() -> Iterable[Finding]:
    """Read once: a process goes on with the packages that it began with."""
    return tuple(packages())
