"""Run nodes as actors of a Ray cluster: Ray starts them on its machines, and starts them again when they end.

Ray is imported here alone, and only for `glyphoxa cluster up` and what runs on its machines.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Mapping
from typing import Any, Final

import ray
from aiohttp import web
from loguru import logger
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from glyphoxa.actors.deadline import ClosingStack
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, Unavailable
from glyphoxa.domain.ids import CampaignId
from glyphoxa.observability import set_up_logs
from glyphoxa.plugins.cluster.door import Door
from glyphoxa.plugins.cluster.node import TableHost
from glyphoxa.plugins.cluster.placement import Node
from glyphoxa.plugins.cluster.reading import late_campaigns, read_campaigns
from glyphoxa.plugins.cluster.settings import ClusterSettings

RESOURCE: Final = "glyphoxa_tables"
"""Custom resource of a Ray machine: the tables that it can hold. `ray start --resources '{"glyphoxa_tables": 6}'`."""
READERS: Final = "glyphoxa_readers"
"""Custom resource of a Ray machine: the processes that may read there."""
NAMESPACE: Final = "glyphoxa"
_PREFIX: Final = "glyphoxa-node-"
_READER: Final = "glyphoxa-reader-"
_ASK_S: Final = 1.0
_RESTART_S: Final = 5.0


class RayNode:
    """The actor: one process with its tables, which also answers at the door.

    Args:
        slot: Its name in Ray, which stays when Ray starts it again. The directory gets a new name each time: a table of
            an earlier process is another holder's.
    """

    def __init__(self, settings: Settings, slot: str, capacity: int, door: str) -> None:
        address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        # Ray starts a lost process again, and calls nothing there: the node starts itself.
        ray.get_runtime_context().current_actor.start.remote()
        name = f"{slot}-{secrets.token_hex(2)}"
        self._settings, self._slot = settings, slot
        self._host = TableHost(settings, Node(name, f"http://{address}/", capacity), door=door, ask_peer=self._ask)
        self._peers: dict[str, Any] = {}
        self._running: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    async def start(self) -> str:
        """Start the node, if it does not run yet; return its name once it takes tables."""
        if self._running is None:
            shown = self._settings.logging
            set_up_logs(level=shown.level, with_content=shown.content, form=shown.form)
            self._running = asyncio.create_task(self._run())
            self._running.add_done_callback(_end_process)
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait((self._running, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._running.done():
            self._running.result()
        return self._host.node.name

    async def reaches_directory(self) -> bool:
        return self._host.reaches_directory

    async def invitations(self, campaign: str) -> list[str]:
        return await asyncio.to_thread(self._host.invitations, CampaignId(campaign))

    async def stop(self) -> None:
        """Close all tables, and end."""
        await self._host.close()
        if self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        async with ClosingStack() as stack:
            await self._host.open(stack)
            await self._open_door(stack)
            self._ready.set()
            await self._host.run()

    async def _open_door(self, stack: ClosingStack) -> None:
        runner = web.AppRunner(Door(self._host.find).app(), access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        settings = self._settings
        port = settings.section(ClusterSettings).door_port
        try:
            # All nodes of a machine share the port, so the door stays when one of them is lost.
            await web.TCPSite(runner, settings.server.host, port, reuse_port=True).start()
        except OSError as error:
            logger.warning("no door at port {}: {}", port, error.strerror)

    async def _ask(self, name: str) -> bool:
        """Ask another node whether it reaches the directory. Raises: Unavailable: It does not answer."""
        slot = name.rpartition("-")[0]
        try:
            async with asyncio.timeout(_ASK_S):
                if slot not in self._peers:
                    self._peers[slot] = await asyncio.to_thread(ray.get_actor, slot, NAMESPACE)
                return bool(await self._peers[slot].reaches_directory.remote())
        except (TimeoutError, ValueError, ray.exceptions.RayError) as error:
            raise Unavailable(f"node {name} does not answer: {type(error).__name__}") from None


class RayReader:
    """The actor of a reader. The first one stays, and starts others when campaigns wait; they end when none waits."""

    def __init__(self, settings: Settings, n: int) -> None:
        ray.get_runtime_context().current_actor.start.remote()
        self._settings, self._n = settings, n
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start reading, if it does not yet. The process ends with it."""
        if self._running is None:
            set_up_logs(level=self._settings.logging.level, form=self._settings.logging.form)
            self._running = asyncio.create_task(self._run())
            self._running.add_done_callback(_end_process)

    async def _run(self) -> None:
        if self._n:
            await read_campaigns(self._settings, stays=False)
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(read_campaigns(self._settings))
            async for late in late_campaigns(self._settings):
                if late > 1:
                    try:
                        await asyncio.to_thread(start_readers, self._settings, wanted=late)
                    except (GlyphoxaError, ray.exceptions.RayError) as error:
                        logger.warning("no more readers are started: {}", error)


def start_readers(settings: Settings, *, wanted: int = 1) -> None:
    """Start up to `wanted` readers, at most as many as the settings allow; those that run stay.

    Raises:
        InvalidInput: No machine has the resource.
    """
    most = settings.section(ClusterSettings).readers
    if most and not ray.cluster_resources().get(READERS):  # type: ignore[no-untyped-call]
        raise InvalidInput(
            f"cluster.readers is {most}, but no machine of the Ray cluster has the resource {READERS!r}; start one "
            f"with the number of readers that it can run: ray start --resources '{{\"{READERS}\": 2}}'"
        )
    for n in range(min(most, wanted)):
        _detached(RayReader, f"{_READER}{n}", {READERS: 1}, max_restarts=0 if n else -1).remote(settings, n)


def _detached(kind: type, name: str, resources: Mapping[str, int], **options: Any) -> Any:
    """Return what creates an actor that outlives this process; if it runs already, it stays as it is."""
    return ray.remote(kind).options(
        name=name, get_if_exists=True, lifetime="detached", num_cpus=0, resources=resources, **options
    )


def _end_process(running: asyncio.Task[None]) -> None:
    """End the process of a node that has failed a little later, so that Ray starts it again."""
    if not running.cancelled():
        failed = running.exception() is not None
        running.get_loop().call_later(_RESTART_S if failed else 0, os._exit, int(failed))


def connect(address: str) -> None:
    """Connect to a Ray cluster.

    Raises:
        Unavailable: There is none at this address.
    """
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise Unavailable(
            f"no Ray cluster at {address!r}: {error}; start one: ray start --head --resources '{{\"{RESOURCE}\": 6}}'"
        ) from None


def start_nodes(settings: Settings, *, door: str) -> list[str]:
    """Start the nodes that are missing, on all machines with the resource; return the names of all.

    Raises:
        InvalidInput: No machine has the resource.
        GlyphoxaError: A node does not start; the text says why.
    """
    most = settings.section(ClusterSettings).tables_per_node
    starting: list[tuple[Any, Any]] = []
    for machine in ray.nodes():  # type: ignore[no-untyped-call]
        tables = int(machine["Resources"].get(RESOURCE, 0)) if machine["Alive"] else 0
        for n, capacity in enumerate(_shares(tables, most)):
            slot = f"{_PREFIX}{machine['NodeID'][:8]}-{n}"
            here = NodeAffinitySchedulingStrategy(machine["NodeID"], soft=False)
            actor = _detached(
                RayNode, slot, {RESOURCE: capacity}, max_restarts=-1, max_concurrency=100, scheduling_strategy=here
            ).remote(settings, slot, capacity, door)
            starting.append((actor, actor.start.remote()))
    if not starting:
        raise InvalidInput(
            f"no machine of the Ray cluster has the resource {RESOURCE!r}; start each with the number of tables that "
            f"it can hold: ray start --resources '{{\"{RESOURCE}\": 6}}'"
        )
    names: list[str] = []
    failure: GlyphoxaError | None = None
    for actor, started in starting:
        try:
            names.append(ray.get(started))
        except ray.exceptions.RayError as error:
            ray.kill(actor)  # Ray would start it again with the same settings
            cause = getattr(error, "cause", error)
            failure = cause if isinstance(cause, GlyphoxaError) else Unavailable(str(cause))
    if failure is not None:
        raise failure
    return names


def _shares(tables: int, most: int) -> list[int]:
    """Return how many tables each process of a machine holds: as few processes as hold all, equally full."""
    n = -(-tables // most)
    return [tables // n + (1 if each < tables % n else 0) for each in range(n)]


def stop_nodes() -> int:
    """Close all tables and end all nodes and readers; return how many nodes there were."""
    # The first reader comes first: it would start the others again.
    for reader in sorted(_named(_READER)):
        with contextlib.suppress(ValueError):  # it has ended by itself
            ray.kill(ray.get_actor(reader, NAMESPACE))
    actors = [ray.get_actor(name, NAMESPACE) for name in _named(_PREFIX)]
    for actor in actors:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get(actor.stop.remote(), timeout=60)
        ray.kill(actor)
    return len(actors)


def _named(prefix: str) -> list[str]:
    found = ray.util.list_named_actors(all_namespaces=True)
    return [each["name"] for each in found if each["namespace"] == NAMESPACE and each["name"].startswith(prefix)]


def invitations(node: str, campaign: CampaignId) -> list[str]:
    """Return lines with the links of everybody at a table.

    Raises:
        Unavailable: The node does not answer.
    """
    try:
        actor = ray.get_actor(node.rpartition("-")[0], NAMESPACE)
        return list(ray.get(actor.invitations.remote(campaign), timeout=10))
    except (ValueError, ray.exceptions.RayError) as error:
        raise Unavailable(f"node {node} does not answer: {type(error).__name__}") from None
