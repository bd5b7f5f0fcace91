"""`glyphoxa context`: the prompt that an NPC's model would be sent for a line. Nothing is changed, no model is asked.

What is put together here is what a table puts together: the same objects, made the same way.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.bootstrap.memory import SAID_BEFORE
from glyphoxa.bootstrap.playable import read_playable
from glyphoxa.bootstrap.rehearsal import Rehearsal, rehearsal_of
from glyphoxa.cli.campaign_prompt import npc_called
from glyphoxa.cli.scope import (
    CAMPAIGN,
    embedder_or_words,
    file_or_stored,
    inspection_of,
    opened_store,
    session_argument,
    stored_session,
)
from glyphoxa.cli.tables import show_lines
from glyphoxa.cli.verb import Verb, argument, in_a_loop
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.context.composition import ComposedPrompt
from glyphoxa.dm.lines import printable
from glyphoxa.dm.prompt_told import composed_shown
from glyphoxa.domain.campaign import Campaign, Player
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.domain.ids import CampaignId, PlayerId, SceneId, SessionId
from glyphoxa.domain.recalled import Recalled
from glyphoxa.domain.utterance import Utterance

_GUEST = PlayerId("guest")
_NEW = SessionId("")
"""A session that begins has no talk, and its name stands in no prompt."""

VERB = Verb(in_a_loop)


@VERB.itself(
    argument("--npc", required=True, metavar="NPC", help="who answers"),
    argument("--say", required=True, metavar="TEXT", help="what is said to it"),
    argument("--player", metavar="NAME", help="who says it; else the campaign's first player"),
    argument("--scene", type=SceneId, metavar="ID", help="where; else where a table would open that has this NPC"),
    session_argument("--session", about="go on with its talk; else a session that begins"),
    argument("--json", help="everything, as JSON"),
    *CAMPAIGN,
    text="The whole prompt that an NPC's model would be sent for a line that is typed, word for word; then what it "
    "consists of, each part with where it is from, how many tokens it has and how long it took, and what was left out "
    "and why. No model is loaded but the one that embeds talk, and nothing is changed. `glyphoxa turns` shows the same "
    "of a turn that was played.",
)
async def _run(options: argparse.Namespace) -> int:
    if not options.say.strip():
        raise InvalidInput('say something, such as: glyphoxa context --npc grimjaw --say "Who owns the inn?"')
    settings = read_settings(options.config)
    async with AsyncExitStack() as stack:
        store = await _memory(settings, stack)
        asking = await _asking(settings, store, options)
        composed = await asking.ask(options.say)
    if options.json:
        print(json.dumps(_json_of(asking, composed), ensure_ascii=False, indent=2))
    else:
        print(f"{printable(composed.text)}\n")
        show_lines(composed_shown(composed))
    return 0


async def _memory(settings: Settings, stack: AsyncExitStack) -> Store | None:
    if not settings.has_memory:
        return None
    embedder = await stack.enter_async_context(embedder_or_words(settings))
    if embedder is not None:
        await embedder.embed_questions(["Good morning."])  # its first text takes longer, and a table's is not its first
    return await stack.enter_async_context(opened_store(settings, embedder=embedder))


def _json_of(asking: Rehearsal, composed: ComposedPrompt) -> dict[str, Any]:
    hot = composed.hot
    return {
        "npc": asking.npc.id,
        "player": asking.player.name,
        "scene": asking.mind.state.scene.id,
        "question": composed.prompt.question,
        "messages": [asdict(message) for message in composed.prompt.messages],
        "parts": [asdict(part) for part in composed.parts],
        "recalled": [_as_json(one) for one in hot.recalled],
        "rejected": [{**_as_json(one.recalled), "why": one.why} for one in hot.rejected],
        "omitted": list(hot.omitted),
    }


async def _asking(settings: Settings, store: Store | None, options: argparse.Namespace) -> Rehearsal:
    campaign = await _campaign(settings, store, options.campaign)
    npc = npc_called(options.npc, campaign)
    if store is not None and campaign.id not in await store.campaigns.ids():
        print("glyphoxa: the campaign is not stored yet: its file tells what is known", file=sys.stderr)
        store = None
    elif store is not None and not (await store.campaigns.changes(campaign)).is_empty:
        print("glyphoxa: the file says otherwise than what is stored; a table stores it first", file=sys.stderr)
    session, said = await _said(store, campaign.id, options.session)
    scene = None if options.scene is None else campaign.scene(options.scene)
    return rehearsal_of(settings, store, campaign, (npc, _player(campaign, options.player)), (session, scene, said))


async def _campaign(settings: Settings, store: Store | None, wanted: str | None) -> Campaign:
    found = await file_or_stored(wanted, settings, store)
    return read_playable(found, settings).campaign if isinstance(found, Path) else found


async def _said(store: Store | None, campaign: CampaignId, wanted: str | None) -> tuple[SessionId, Sequence[Utterance]]:
    """The session that is named, and what was said in it."""
    if wanted is None:
        return _NEW, []
    if store is None:
        raise NotFound(f"no session {wanted!r} in campaign {campaign!r}: nothing of it is stored")
    session = await stored_session(inspection_of(store), campaign, wanted)
    return session, await store.log.recent(campaign, session, since_ms=0, limit=SAID_BEFORE)


def _player(campaign: Campaign, wanted: str | None) -> Player:
    """Anybody may sit down at a table."""
    if wanted is None:
        return campaign.players[0] if campaign.players else Player(_GUEST, "Somebody")
    known = (player for player in campaign.players if wanted.casefold() in (player.id, player.name.casefold()))
    return next(known, Player(_GUEST, wanted))


def _as_json(one: Recalled) -> dict[str, Any]:
    return {"source": one.source, **asdict(one)}
