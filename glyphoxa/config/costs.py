"""Estimate what the providers of the settings charge for an evening, from counted usage and dated prices.

Both are data, in `prices.yaml` beside this module. What cannot be estimated is named, and the rest is added up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from glyphoxa.config.located_yaml import read_yaml, validate
from glyphoxa.config.recipients import HERE, PROVIDERS, host_of
from glyphoxa.config.sections import Price, Section
from glyphoxa.config.settings import Settings
from glyphoxa.providers.building import NONE, S2S, Choice, find

PRICES: Final = Path(__file__).with_name("prices.yaml")
_PRICED_AMOUNT: Final = {"input": 1e6, "cached_input": 1e6, "output": 1e6, "minute": 1, "characters": 1e3}
"""The amount of each unit that a price is for."""

_Amount = Annotated[float, Field(ge=0, le=1e9)]


class ListPrice(Price):
    as_of: date
    source: str


class PriceList(Section):
    """An evening, its usage by setting, as in `glyphoxa.config.recipients.PROVIDERS`, and prices by model."""

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
        elif lacking := used.keys() - rates_of(price).keys():
            found.missing.append(f"price of {model} unknown: add {' and '.join(sorted(lacking))} to `prices.{model}`")
        else:
            found.usd[setting] = charged(price, used)
            found.dates |= {price.as_of} if isinstance(price, ListPrice) else set()
    return found


def rates_of(price: Price) -> dict[str, float]:
    """Return USD by unit, for the units that have a price."""
    rates: dict[str, float] = {unit: rate for unit, rate in price if unit in _PRICED_AMOUNT and rate is not None}
    return {"cached_input": rates.get("input", 0.0), **rates}


def charged(price: Price, used: Mapping[str, float]) -> float:
    """Return USD for these amounts. The price has all their units."""
    return sum(amount / _PRICED_AMOUNT[unit] * rates_of(price)[unit] for unit, amount in used.items())


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
