"""A scene is entered as a whole, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from glyphoxa.context.conversation import Conversation
from glyphoxa.domain.campaign import Scene
from glyphoxa.domain.errors import Unavailable
from glyphoxa.npc.session import enter
from glyphoxa.npc.table import TableState
from tests.support.builders import FORGE, INNKEEPER, MARKET, SESSION, SMITH, a_campaign


class Context:
    """Knows nothing of anybody; cannot be asked while it is away."""

    is_away = False

    async def enter(self, scene: Scene) -> None:
        if self.is_away:
            raise Unavailable("what the NPCs know cannot be read")

    def known(self, npc: object) -> None:
        return None


def a_table() -> TableState:
    campaign = a_campaign()
    conversations = {npc.id: Conversation(npc) for npc in campaign.npcs}
    return TableState(campaign, SESSION, campaign.scene(MARKET), conversations)


async def test_a_scene_that_cannot_be_entered_leaves_the_table_where_it_was() -> None:
    state, context = a_table(), Context()
    context.is_away = True
    forge: Any = state.campaign.scene(FORGE)
    with pytest.raises(Unavailable):
        await enter(forge, state, context)  # type: ignore[arg-type]
    assert state.scene.id == MARKET
    assert state.present() == (SMITH, INNKEEPER)


async def test_a_scene_that_was_entered_says_who_is_present() -> None:
    state = a_table()
    await enter(state.campaign.scene(FORGE), state, Context())  # type: ignore[arg-type]
    assert state.scene.id == FORGE
    assert state.present_names() == {SMITH: "Grimjaw"}
