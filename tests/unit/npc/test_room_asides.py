"""Random talk at a table: no NPC's prompt contains a line that is stored as an aside."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.domain.ids import PlayerId
from tests.support.builders import BRAN, FORGE, MARKET, TAMSIN
from tests.support.proof import n_examples
from tests.support.room_table import TableOfTwins, an_open_table
from tests.support.supervised import closing

APART = ("brb, {mark}", "ooc: {mark}", "(ooc {mark})", "(ooc) {mark}", "[offplay] {mark}", "(({mark}))", "// {mark}")
OTHER = (
    "Grimjaw, what of {mark}?",
    "Mirelle, I promise you {mark}.",
    "We should burn {mark} tonight.",
    "And what of {mark}?",
    "I walk over to {mark}.",
)
STEP = st.tuples(
    st.sampled_from([TAMSIN, BRAN]), st.sampled_from([*APART, *OTHER]), st.sampled_from(["ends", "talks", "waits"])
)


@settings(max_examples=n_examples(100), deadline=None)
@given(st.lists(STEP, min_size=1, max_size=8), st.sampled_from([MARKET, FORGE]))
def test_no_prompt_contains_an_aside(steps: list[tuple[PlayerId, str, str]], scene: str) -> None:
    async def play() -> None:
        table = TableOfTwins()
        async with closing(table.supervisor):
            table.start()
            await table.settle()
            await table.move(MARKET if scene == MARKET else FORGE)
            for n, (player, text, then) in enumerate(steps):
                await table.says(player, text.format(mark=f"mark{n}."))
                if then == "waits":
                    await table.pass_time(40_000)
                for mouths in table.mouths.values():
                    if then != "talks" and mouths and mouths[-1].turn is not None and mouths[-1].is_heard:
                        mouths[-1].end()
                await table.settle()
            look(table, steps)

    asyncio.run(play())


def look(table: TableOfTwins, steps: list[tuple[PlayerId, str, str]]) -> None:
    kept = {said.text: said for said in table.spool.utterances.values() if said.npc_id is None}
    asides = [n for n, (_, text, _) in enumerate(steps) if kept[text.format(mark=f"mark{n}.")].aside is not None]
    assert {n for n, (_, text, _) in enumerate(steps) if text in APART} <= set(asides)
    assert all(bool(said.witnesses) == (said.aside is None) for said in kept.values())
    prompts = [
        prompt.messages for mouths in table.mouths.values() for m in mouths for prompt in (*m.asked, *m.primed)
    ] + [npc.conversation.prompt("", "x").messages for npc in table.npcs.values()]
    for messages in prompts:
        assert not [n for n in asides if any(f"mark{n}." in message.content for message in messages)]


DECIDED = {
    "We agreed to meet the smuggler at dawn.": True,
    "It's settled, let's leave at dawn.": True,
    "Wir haben beschlossen, morgen zu gehen.": True,
    "We should burn the boat tonight.": False,
    "If we agreed to help, we could ask for gold.": False,
    "Wir haben noch nicht entschieden, wir sollten warten.": False,
}


def test_npcs_hear_what_players_decided_but_not_their_plans() -> None:
    async def play() -> dict[str, bool]:
        async with an_open_table(TableOfTwins()) as table:
            for text in DECIDED:
                await table.says(TAMSIN, text)
                await table.pass_time(40_000)
                await table.settle()
        return {said.text: bool(said.witnesses) for said in table.spool.utterances.values() if said.npc_id is None}

    assert asyncio.run(play()) == DECIDED
