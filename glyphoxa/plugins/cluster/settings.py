"""The settings of a cluster."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field

from glyphoxa.config.sections import Section
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import InvalidInput


class DatabaseSettings(Section):
    """Another database that holds campaigns.

    Attributes:
        name: Its name for `cluster move`.
        dsn_env: The environment variable with its DSN.
    """

    name: str
    dsn_env: str


class ClusterSettings(Section):
    """Tables on several machines, with `glyphoxa cluster`.

    Attributes:
        tables_per_node: Tables that one process holds. `benchmarks.load` measures how many it can hold without a gap.
        lease_ms: A node that does not report for so long has lost its tables: other nodes reopen them. Milliseconds.
        table_ports: First and last port of a node's tables; by default any free ports.
        servers: Other databases that hold campaigns. Those that `cluster move` has not moved are in the database of
            `memory.postgres_dsn`.
        door_port: Port of the address at which players knock, on each node.
        readers: The most processes that read and embed for all tables, on machines with the Ray resource
            `glyphoxa_readers`. There are as many as the waiting campaigns need. 0: each node has one of its own.
    """

    tables_per_node: Annotated[int, Field(ge=1, le=200)] = 3
    lease_ms: Annotated[int, Field(ge=1_000, le=60_000)] = 4_000
    table_ports: tuple[Annotated[int, Field(ge=1, le=65_535)], Annotated[int, Field(ge=1, le=65_535)]] | None = None
    servers: tuple[DatabaseSettings, ...] = ()
    door_port: Annotated[int, Field(ge=0, le=65_535)] = 7_880
    readers: Annotated[int, Field(ge=0, le=1_000)] = 0


def settings_of(settings: Settings, server: str) -> Settings:
    """Return the settings for campaigns of one of the databases.

    Raises:
        InvalidInput: Its environment variable is not set.
    """
    if not server:
        return settings
    variable = next(each.dsn_env for each in settings.section(ClusterSettings).servers if each.name == server)
    dsn = os.environ.get(variable)
    if not dsn:
        raise InvalidInput(f"cluster.servers.{server}: {variable} is not set; set it to the DSN of that database")
    return settings.model_copy(update={"memory": settings.memory.model_copy(update={"postgres_dsn": dsn})})


def database_names(settings: Settings) -> list[str]:
    """Return the names of all databases; "" is the directory's own."""
    return ["", *(each.name for each in settings.section(ClusterSettings).servers)]
