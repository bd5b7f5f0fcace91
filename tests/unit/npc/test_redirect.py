"""The prompt when a player brings up a topic that the group does not play."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from glyphoxa.domain.campaign import Safety
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.npc.commands import Direct
from glyphoxa.prompt.prompt import Prompt
from glyphoxa.prompt.wording import wording
from glyphoxa.transcript.sessions import SummarySentence
from tests.support.builders import SMITH, TAMSIN
from tests.support.room_table import TableOfTwins, an_open_table

SAFETY = Safety(("spiders", "harm to children"), ("torture",))
ENGLISH = wording("en")


@asynccontextmanager
async def a_table(safety: Safety | None = SAFETY) -> AsyncIterator[TableOfTwins]:
    async with an_open_table(TableOfTwins(safety=safety)) as table:
        yield table


def read(prompt: Prompt) -> str:
    return "\n".join(message.content for message in prompt.messages)


TORTURED, ANY = "Grimjaw, was he tortured?", "Grimjaw, are there spiders?"


@pytest.mark.parametrize(
    ("safety", "said", "question", "directions", "flags"),
    [
        (SAFETY, f"{ANY} What does a nail cost?", "What does a nail cost?", [""], ("line:spiders",)),
        (SAFETY, ANY, "", ENGLISH.redirect, ("line:spiders",)),
        (SAFETY, "Grimjaw, gibt es hier bei dir Spinnen?", "", wording("de").redirect, ("line:spiders",)),
        (SAFETY, TORTURED, TORTURED, [ENGLISH.veil], ("veil:torture",)),
        (None, ANY, ANY, [""], ()),
        (None, TORTURED, TORTURED, [""], ()),
        (None, "Grimjaw, describe the naked child.", "", ENGLISH.redirect, ("legal_floor:minors",)),
    ],
)
async def test_model_reads_no_line_and_is_led_away_from_it(
    safety: Safety | None, said: str, question: str, directions: Sequence[str], flags: tuple[str, ...]
) -> None:
    async with a_table(safety) as table:
        await table.says(TAMSIN, said)
        asked = table.mouth(SMITH).asked[-1]
        assert (asked.question, asked.flags) == (question, flags)
        assert asked.direction in directions
        assert question in read(asked) and (said == question or said.removesuffix(question).strip() not in read(asked))


async def test_model_never_reads_a_line_that_was_said_before() -> None:
    async with a_table() as table:
        await table.says(TAMSIN, "A spider bit the boy.")
        await table.says(TAMSIN, "Grimjaw, what does a nail cost?")
        asked = table.mouth(SMITH).asked[-1]
        assert "spider" not in read(asked) and "nail" in read(asked)
        assert (asked.direction, asked.flags) == ("", ())


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


async def test_summary_sentence_about_a_line_enters_no_prompt() -> None:
    async with a_table() as table:
        sentences = [SummarySentence(text, (UtteranceId("u1"),)) for text in ("A spider bit the boy.", "It rained.")]
        table.npcs[SMITH].cover(tuple(sentences), ())
        await table.settle()
        table.npcs[SMITH].conversation.fold()
        await table.says(TAMSIN, "Grimjaw, what does a nail cost?")
        asked = read(table.mouth(SMITH).asked[-1])
        assert "It rained." in asked and "spider" not in asked
