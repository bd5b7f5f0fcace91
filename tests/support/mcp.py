"""The SDK's own client against our servers, and a campaign in which everybody has a secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.domain.campaign import Campaign, Entity, Npc, Player, Relationship, Scene, Secret
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId, PlayerId, SceneId, SessionId
from glyphoxa.domain.knowledge import Claim, Provenance, witnessed_by
from glyphoxa.npc.tool_spec import CallableTool
from glyphoxa.plugins.mcp.server import ToolOffer, app_of, guarded, server_of
from glyphoxa.transcript.sessions import EPISODE, episode_of
from glyphoxa.web.serving import Server, bind, url_of
from glyphoxa.world.event_kinds import EntityAdded, FactStated
from glyphoxa.world.event_log import Cause
from tests.support.builders import an_utterance
from tests.support.patience import DEADLINE_MS, DEADLINE_S

NPCS = tuple(NpcId(name) for name in ("ada", "bert", "cora"))
HERE, ELSEWHERE = CampaignId("here"), CampaignId("elsewhere")
_BEGAN_MS = 1_790_000_000_000


@asynccontextmanager
async def a_client(tools: list[CallableTool]) -> AsyncIterator[Client]:
    """Without a transport."""
    offer = ToolOffer(tools, deadline_ms=DEADLINE_MS)
    async with Client(server_of("glyphoxa", offer), read_timeout_seconds=DEADLINE_S) as client:
        yield client


@asynccontextmanager
async def served(tools: Mapping[str, list[CallableTool]]) -> AsyncIterator[str]:
    """Over HTTP on this machine, by token; gives the address."""
    apps = {token: app_of(server_of("glyphoxa", ToolOffer(its)), host="127.0.0.1") for token, its in tools.items()}
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        server = Server(guarded(apps))
        serving = asyncio.create_task(server.listen(listener))
        try:
            yield f"{url_of(listener)}mcp"
        finally:
            server.stop()
            await serving


async def tool_names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def answered(client: Client, tool: str, **arguments: object) -> Mapping[str, Any]:
    """Return the result of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    found: dict[str, Any] = json.loads(text_of(result))
    return found


async def refused(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """The sentence that a call gets which is an error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def word_of(campaign: CampaignId, npc: NpcId, what: str) -> str:
    """A word that stands nowhere but in what this NPC alone may know: "hereadatalk"."""
    return f"{campaign}{npc}{what}"


def words_of(campaign: CampaignId, npc: NpcId) -> list[str]:
    return [word_of(campaign, npc, what) for what in ("secret", "place", "relation", "talk", "summary")]


def hidden_word(campaign: CampaignId) -> str:
    """Return a word that nobody knows until the DM reveals it."""
    return f"{campaign}nobodyssecret"


async def fill_with_secrets(store: Store) -> None:
    """Two campaigns with the same names and ids, in which each NPC has secrets, a place, a relation and talk of its
    own.
    """
    for campaign in (HERE, ELSEWHERE):
        await store.campaigns.load(_full_of_secrets(campaign))
        await store.log.append(
            [
                _said(campaign, "both", 1, "Good evening to the three of you.", *NPCS),
                *(
                    _said(campaign, f"with-{npc}", 1, f"Only you hear this, {word_of(campaign, npc, 'talk')}.", npc)
                    for npc in NPCS
                ),
            ]
        )
        for npc in NPCS:
            await _tell_the_evening(store, campaign, npc)


async def _tell_the_evening(store: Store, campaign: CampaignId, npc: NpcId) -> None:
    session = SessionId(f"with-{npc}")
    episode, scope = episode_of(session), witnessed_by([npc])
    story = f"{npc.title()} heard of {word_of(campaign, npc, 'summary')}."
    await store.world.commit(
        campaign,
        [
            EntityAdded(episode, "event", f"The evening with {npc.title()}", (), scope),
            FactStated(Claim.attribute(episode, "kind", EPISODE), Provenance(), scope),
            FactStated(Claim.attribute(episode, "summary", story), Provenance(), scope),
        ],
        Cause("talk", at_ms=_BEGAN_MS, session_id=session),
    )


def _full_of_secrets(campaign: CampaignId) -> Campaign:
    people = [Entity(EntityId(npc), "npc", npc.title(), (), {"occupation": "sailor"}) for npc in NPCS]
    places = [
        Entity(
            EntityId(f"place-{npc}"),
            "location",
            f"The {word_of(campaign, npc, 'place')}",
            attributes={"description": f"It is the place of {npc.title()}."},
            known_by=(npc,),
        )
        for npc in NPCS
    ]
    town = Entity(EntityId("town"), "location", "Town")
    return Campaign(
        id=campaign,
        name=str(campaign),
        language="en",
        entities=(*people, *places, town),
        relationships=tuple(
            Relationship(EntityId(npc), EntityId("town"), word_of(campaign, npc, "relation").upper(), known_by=(npc,))
            for npc in NPCS
        ),
        npcs=tuple(Npc(npc, EntityId(npc), npc.title(), f"You are {npc.title()}.") for npc in NPCS),
        players=(Player(PlayerId("tamsin"), "Tamsin"),),
        scenes=(Scene(SceneId("town"), EntityId("town"), NPCS),),
        secrets=(
            *(
                Secret(f"{npc.title()} has {word_of(campaign, npc, 'secret')}.", frozenset({npc}), EntityId("town"))
                for npc in NPCS
            ),
            Secret(f"The town is {hidden_word(campaign)}.", frozenset(NPCS), EntityId("town"), hidden=True),
        ),
    )


def _said(campaign: CampaignId, session: str, ordinal: int, text: str, *heard_by: NpcId) -> Utterance:
    place: dict[str, Any] = {"campaign_id": campaign, "session_id": SessionId(session), "at_ms": _BEGAN_MS + ordinal}
    return an_utterance(text, id=f"{session}-{ordinal}", duration_ms=900, witnesses=frozenset(heard_by), **place)
