"""`glyphoxa doctor`, and the list of checks on the desk: which checks these settings need. See `config.doctor`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from rich.filesize import decimal

from glyphoxa.adapters.local.machine import all_memory, busy_with, free_memory
from glyphoxa.adapters.postgres.server.database import Condition, condition_of
from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres
from glyphoxa.adapters.weights.store import Status
from glyphoxa.app.engines import find_host, read_playable
from glyphoxa.app.languages import campaign_of, for_campaign, language_findings
from glyphoxa.app.models import named, weights_for
from glyphoxa.config import doctor
from glyphoxa.config.check import Finding, Level, check, chosen_providers, ports
from glyphoxa.config.doctor import Check, DiskNeed, examined
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import GlyphoxaError, NotFound, Unavailable, counted, shown
from glyphoxa.providers import building
from glyphoxa.providers.building import KINDS, LLM, NO_KEY, Choice, key_of, runs_here, weights_of
from glyphoxa.providers.chat_models import CHAT_MODELS, OTHERS_BYTES, ChatModel, Machine, is_a_path, judged
from glyphoxa.providers.extras import PAGE_MODULES, NotInstalled, module_is_there

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
_BUSY: Final = 0.7
_PROGRAM_BYTES: Final = 600_000_000
"""Memory for program and database, where no model runs here."""
_OPEN_TABLE_BYTES: Final = 300_000_000
"""Memory of an open table: models are loaded by then."""
_ROOMY: Final = Machine(free_bytes=1 << 62)
"""Whether memory is there for a model is told by another check than its speed."""
_COVERED: Final = ("campaign", "memory", "port")
"""Subjects of `check` that are looked at more closely here."""
_BUSY_DISK: Final = "the disk does not respond: set data_dir and models.dir to another disk"

CertificateUntil = Callable[[Path | None, Path | None], datetime | None]


def before_a_table(settings: Settings, *, certificate_until: CertificateUntil, is_quick: bool) -> list[Finding]:
    """Return the findings before a table is opened. Blocks: mostly for a few seconds, at most for two minutes.

    Args:
        certificate_until: See `config.doctor.https`.
        is_quick: No database is started, and no model is measured.
    """
    campaign = campaign_of(settings)
    settings = for_campaign(settings, campaign)
    served, watched = settings.server, settings.observability
    listening = {
        "server.port": (served.host, served.port),
        "observability.metrics_port": (watched.metrics_host, watched.metrics_port),
    }
    found = examined(
        [
            *_of_machine(WITHIN_S),
            Check("campaign", partial(_campaign, settings), _BUSY_DISK, WITHIN_S),
            *_of_settings(settings, campaign, WITHIN_S),
            Check("memory", partial(_memory, settings), _BUSY_DISK, WITHIN_S),
            Check("database", partial(_database, settings), "check that its server responds", WITHIN_S)
            if is_quick
            else Check("database", partial(_started_database, settings), "look at its server.log", SLOW_WITHIN_S),
            Check("port", partial(ports, listening), "set server.host to an address instead of a name", WITHIN_S),
            Check(
                "microphone",
                partial(doctor.https, served, certificate_until=certificate_until),
                "look at server.tls_cert and server.tls_key",
                WITHIN_S,
            ),
        ]
    )
    if not is_quick:  # nothing may run beside a measurement
        busy = "this machine is slow or busy: set a smaller model, or try again when it is idle"
        found += examined([Check("speed", partial(_speed, settings), busy, SLOW_WITHIN_S)])
    return found


def at_open_table(settings: Settings, campaign: Campaign, *, players_url: str | None) -> list[Finding]:
    """The same for a table that is being played: no port is tried, no model measured. Blocks for some seconds.

    Args:
        players_url: Where players open it; None: on this machine only.
    """
    within_s, settings = AT_THE_DESK_WITHIN_S, for_campaign(settings, campaign)
    port = {"server.port": (settings.server.host, settings.server.port)}
    url = players_url or "http://localhost"
    free = partial(doctor.memory, free=free_memory(), of=all_memory(), needed=_OPEN_TABLE_BYTES)
    return examined(
        [
            *_of_machine(within_s),
            *_of_settings(settings, campaign, within_s),
            Check("memory", free, "try again", within_s),
            Check("database", partial(_database, settings), "check that its server responds", within_s),
            Check("port", partial(ports, port, is_serving=True), "try again", within_s),
            Check("microphone", lambda: [doctor.microphone(url)], "try again", within_s),
        ]
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
            checks.append(Check(f"{subject}, live", look, "try again", _ASKED_WITHIN_S))
    return examined(checks)


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
            host = find_host()()
            stack.push_async_callback(host.close)
            return await host.ask(section, choice)
        options: dict[str, Any] = {"dimensions": settings.memory.embedding_dimensions} if kind == "embeddings" else {}
        client = building.build(choice, section=section, **options)
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


def without_settings() -> list[Finding]:
    """Return the findings that need no settings."""
    return examined(_of_machine(WITHIN_S))


def _of_machine(within_s: float) -> list[Check]:
    return [
        Check("python", doctor.python, "try again", within_s),
        Check("packages", _packages, "try again when this machine is less busy", within_s),
        Check("clock", doctor.clock, "try again", within_s),
    ]


def _of_settings(settings: Settings, campaign: Campaign | None, within_s: float) -> list[Check]:
    return [
        Check("providers", partial(_providers, settings, campaign), "run `glyphoxa config check`", within_s),
        Check("models", partial(models, settings), _BUSY_DISK, within_s),
        Check("disk", partial(_disk, settings), _BUSY_DISK, within_s),
    ]


@cache
def _packages() -> Iterable[Finding]:
    """Read once: a process goes on with the packages that it began with."""
    return tuple(doctor.packages())


def _providers(settings: Settings, campaign: Campaign | None) -> list[Finding]:
    # Whether weights are here is told once, by `models`.
    found = check(settings, has_weights=lambda _: True)
    missing = [each for each in PAGE_MODULES if not module_is_there(each)]
    page = [Finding("error", "page", str(NotInstalled("the page", missing, extra="voice")))] if missing else []
    return [*page, *(each for each in found if each.subject not in _COVERED), *language_findings(settings, campaign)]


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
    weights, statuses = weights_for(settings), _statuses(settings)
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


def _statuses(settings: Settings) -> dict[str, Status]:
    return {each.name: each for each in weights_for(settings).store.status()}


def _disk(settings: Settings) -> Iterator[Finding]:
    statuses = _statuses(settings)
    wanted = [statuses[name] for name in dict.fromkeys(named(settings)) if name in statuses]
    to_come = sum(each.artefact.size - each.have for each in wanted if each.state in ("missing", "partial"))
    rooms = [DiskNeed("data", settings.data_directory, "data_dir (or GLYPHOXA_DATA)")]
    if to_come:
        rooms.append(DiskNeed("models", weights_for(settings).store.directory, "models.dir", to_come))
    return doctor.disk(rooms)


def _memory(settings: Settings) -> Iterator[Finding]:
    return doctor.memory(free=free_memory(), of=all_memory(), needed=_needed_memory(settings))


def _needed_memory(settings: Settings) -> int:
    """Bytes for program, database and models, as far as can be told without loading them."""
    if not named(settings):
        return _PROGRAM_BYTES
    here = _with_llm_here(settings)
    if here is None:
        return OTHERS_BYTES
    weights, needed = weights_for(settings), OTHERS_BYTES
    for name in weights_of(LLM, here.providers.llm):
        known = next((each for each in CHAT_MODELS if each.name == name), None)
        if known is not None:
            needed += known.bytes + known.cache_bytes * here.context_tokens * _n_npcs(settings)
        elif weights.has(name):
            path = Path(name).expanduser() if is_a_path(name) else weights.find(name).path
            needed += path.stat().st_size
    return needed


def _with_llm_here(settings: Settings) -> Settings | None:
    """These settings with the language model in front that runs on this machine, if one does."""
    return next((each for each in settings.in_turn if runs_here(LLM, each.providers.llm.name)), None)


def _n_npcs(settings: Settings) -> int:
    """Return the NPCs of the campaign; a usual number without one."""
    return len(campaign.npcs) if (campaign := campaign_of(settings)) else _N_NPCS


def _embedded(settings: Settings) -> EmbeddedPostgres:
    return EmbeddedPostgres(settings.data_directory / "postgres", timeout_s=SLOW_WITHIN_S)


def _database(settings: Settings) -> list[Finding]:
    """Return the findings about the database without starting one."""
    dsn = settings.memory.postgres_dsn
    if dsn == "none":
        text = f"none: utterances stay in {settings.data_directory / 'spool'}"
        return [Finding("ok", "database", text)]
    if dsn is not None:
        return list(_asked(settings, dsn, f"PostgreSQL at {Dsn.read(dsn)}"))
    server = _embedded(settings)
    if server.pid() is not None:
        return list(_asked(settings, server.dsn(), f"embedded PostgreSQL in {server.directory}"))
    major, has_data = server.check()
    state = "is not running" if has_data else "will be created at its first use"
    return [Finding("ok", "database", f"embedded PostgreSQL {major} in {server.directory} {state}")]


def _started_database(settings: Settings) -> list[Finding]:
    """Return the findings of `_database`; start an embedded one that has data, as every verb that needs it does."""
    server = _embedded(settings)
    if settings.memory.postgres_dsn is not None or (server.pid() is None and not server.check()[1]):
        return _database(settings)
    server.start()
    try:
        return _database(settings)
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
    if not condition.has_pgvector and condition.pgvector is None:
        yield Finding(
            "error",
            "database",
            f"{what} has no pgvector: install it on that server (as postgresql-18-pgvector), then run "
            "`CREATE EXTENSION vector;` in this database as an administrator",
        )
        return
    if condition.is_read_only:
        yield Finding(
            "error",
            "database",
            f"{what} rejects writes: set memory.postgres_dsn to the primary server, or there "
            "`ALTER SYSTEM SET default_transaction_read_only = off`",
        )
        return
    n = condition.n_to_apply
    schema = f"{n} migrations will be applied at its next use" if n else "migrated"
    vector = f"pgvector {condition.pgvector}" if condition.pgvector else "pgvector will be created"
    yield Finding("ok", "database", f"{what}: version {condition.version}, {vector}, {schema}")
    if abs(condition.ahead_s) > _CLOCKS_APART_S:
        apart = f"{abs(condition.ahead_s):.0f} s {'ahead of' if condition.ahead_s > 0 else 'behind'} this machine's"
        remedy = "synchronise both clocks, for example with `timedatectl set-ntp true`"
        yield Finding("warning", "clock", f"the database's clock is {apart}: {remedy}")


def _speed(settings: Settings) -> Iterator[Finding]:
    """Measure the model of these settings like `glyphoxa models recommend`."""
    here = _with_llm_here(settings)
    if here is None:
        yield Finding("ok", "speed", "not measured: no language model runs on this machine")
        return
    if not all(map(module_is_there, ("httpx", "xllamacpp"))):
        yield Finding("warning", "speed", "not measured: run `pip install 'glyphoxa[local]'`")
        return
    from glyphoxa.adapters.local.llama import measure_within

    (name,) = weights_of(LLM, here.providers.llm)
    try:
        path = weights_for(here).find(name).path
    except NotFound as missing:
        yield Finding("warning", "speed", f"not measured: {missing}")
        return
    measured = measure_within(path, deadline_s=SLOW_WITHIN_S - _UNWIND_S)
    model = ChatModel(name, measured.billions, measured.bytes, cache_bytes=0, licence="")
    reckoned = judged(model, measured, _ROOMY)
    text = f"{path.name} reads {measured.reads_per_s:.0f} tokens per second and generates {measured.speaks_per_s:.0f}"
    if busy_with() > _BUSY:
        text += " while other programs are busy"
    if reckoned.against:
        remedy = "run `glyphoxa models recommend`, and set a model that it lists"
        yield Finding("warning", "speed", f"{text}: {'; '.join(reckoned.against)}: {remedy}")
    else:
        yield Finding("ok", "speed", f"{text}: first words after {reckoned.first_clause_s:.1f} s")
