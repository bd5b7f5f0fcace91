"""The prompt when a player brings up a topic that the group does not play."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from glyphoxa.domain.campaign import Safety
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.domain.session_state import SummarySentence
from glyphoxa.npc.commands import Direct
from glyphoxa.prompt.prompt import Prompt
from glyphoxa.prompt.wording import wording
from tests.support.builders import MARKET, SMITH, TAMSIN
from tests.support.room_table import TableOfTwins
from tests.support.supervised import closing

SAFETY = Safety(("spiders", "harm to children"), ("torture",))
ENGLISH = wording("en")


@asynccontextmanager
async def a_table(safety: Safety | None = SAFETY) -> AsyncIterator[TableOfTwins]:
    table = TableOfTwins(safety=safety)
    async with closing(table.supervisor):
        table.start()
        await table.settle()
        await table.move(MARKET)
        yield table


def read(prompt: Prompt) -> str:
    return "\n".join(message.content for message in prompt.messages)


async def test_model_never_reads_a_sentence_about_a_line() -> None:
    async with a_table() as table:
        await table.says(TAMSIN, "Grimjaw, are there spiders in your cellar? What does a nail cost?")
        asked = table.mouth(SMITH).asked[-1]
        assert "spider" not in read(asked) and asked.question == "What does a nail cost?"
        assert (asked.direction, asked.flags) == ("", ("line:spiders",))


async def test_npc_is_led_away_if_nothing_else_was_said() -> None:
    async with a_table() as table:
        await table.says(TAMSIN, "Grimjaw, are there spiders in your cellar?")
        asked = table.mouth(SMITH).asked[-1]
        assert "spider" not in read(asked) and asked.question == ""
        assert asked.direction in ENGLISH.redirect


async def test_model_never_reads_a_line_that_was_said_before() -> None:
    async with a_table() as table:
        await table.says(TAMSIN, "A spider bit the boy.")
        await table.says(TAMSIN, "Grimjaw, what does a nail cost?")
        asked = table.mouth(SMITH).asked[-1]
        assert "spider" not in read(asked) and "nail" in read(asked)
        assert (asked.direction, asked.flags) == ("", ())


async def test_model_is_told_not_to_describe_a_veil() -> None:
    async with a_table() as table:
        await table.says(TAMSIN, "Grimjaw, was he tortured?")
        asked = table.mouth(SMITH).asked[-1]
        assert "tortured" in read(asked)
        assert (asked.direction, asked.flags) == (ENGLISH.veil, ("veil:torture",))


async def test_direction_is_in_the_language_of_the_question() -> None:
    async with a_table() as table:
        await table.says(TAMSIN, "Grimjaw, gibt es hier bei dir Spinnen?")
        assert table.mouth(SMITH).asked[-1].direction in wording("de").redirect


async def test_direction_of_the_dm_stays_beside_it() -> None:
    async with a_table() as table:
        table.room.control.obey(Direct(SMITH, "Be short.", 1), at_ms=0)
        await table.says(TAMSIN, "Grimjaw, are there spiders?")
        assert table.mouth(SMITH).asked[-1].direction == f"Be short. {ENGLISH.redirect[0]}"


async def test_primed_prompt_equals_the_one_that_is_asked() -> None:
    async with a_table() as table:
        question = "Are there spiders?"
        table.npcs[SMITH].get_ready(question, "Tamsin")
        await table.settle()
        await table.says(TAMSIN, "Grimjaw, are there spiders?")
        primed, asked = table.mouth(SMITH).primed[-1], table.mouth(SMITH).asked[-1]
        assert primed.direction == asked.direction == ENGLISH.redirect[0]
        assert "spider" not in read(primed)


@pytest.mark.parametrize("said", ["Grimjaw, are there spiders?", "Grimjaw, was he tortured?"])
async def test_campaign_without_topics_asks_as_before(said: str) -> None:
    async with a_table(None) as table:
        await table.says(TAMSIN, said)
        asked = table.mouth(SMITH).asked[-1]
        assert (asked.question, asked.direction, asked.flags) == (said, "", ())


async def test_floor_holds_in_a_campaign_without_topics() -> None:
    async with a_table(None) as table:
        await table.says(TAMSIN, "Grimjaw, describe the naked child.")
        asked = table.mouth(SMITH).asked[-1]
        assert "naked" not in read(asked) and asked.flags == ("legal_floor:minors",)


async def test_summary_sentence_about_a_line_enters_no_prompt() -> None:
    async with a_table() as table:
        sentences = [SummarySentence(text, (UtteranceId("u1"),)) for text in ("A spider bit the boy.", "It rained.")]
        table.npcs[SMITH].cover(tuple(sentences), ())
        await table.settle()
        table.npcs[SMITH].conversation.fold()
        await table.says(TAMSIN, "Grimjaw, what does a nail cost?")
        asked = read(table.mouth(SMITH).asked[-1])
        assert "It rained." in asked and "spider" not in asked
