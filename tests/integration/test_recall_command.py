"""`glyphoxa recall` on a real database: what an NPC would recall, and why."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.recall.vectors import Embedder
from tests.support.command_line import SALTMERE, CommandLine

DEBT = "Tamsin said: I heard she owes forty silver."


async def recalled(cli: CommandLine, question: str, npc: str, *options: str) -> str:
    """Return the output for a question that is answered by words."""
    return await cli.told("recall", question, "--npc", npc, "--lexical", *options)


async def test_what_is_recalled_is_listed_with_evidence_only_if_that_is_to_be_explained(cli: CommandLine) -> None:
    plain = await recalled(cli, "What does she owe in silver?", "Grimjaw")
    assert re.match(rf"in its prompt: \d, of \d that it recalled\n(  .*\n)*  {re.escape(DEBT)}\n", plain), plain
    explained = await recalled(cli, "What does she owe in silver?", "Grimjaw", "--explain")
    shown = [line for line in explained.splitlines() if not line.startswith("    ")]
    assert shown[: len(plain.splitlines())] == plain.splitlines(), explained
    known = r"    known because: witnessed in session 1, line \d+, 2096-10-02 07:08\n"
    assert re.search(rf"  {re.escape(DEBT)}\n{known}    found by: .*words \d.* \(score 1\.00\)\n", explained)
    assert re.search(r"isn't he\?\n    left out: it is a question\n", explained)


async def test_what_is_asked_for_by_name_comes_first_and_alone(cli: CommandLine) -> None:
    lines = (await recalled(cli, "Where is Elowen?", "the smith", "--explain")).splitlines()
    assert lines[1].strip() == "Elowen is at The Anvil."
    assert lines[2].startswith("    known because: witnessed in session 2")
    assert lines[3].startswith("    found by: named 'Elowen', asks for 'located at'")
    assert not [line for line in lines if "fears" in line and "Tamsin said" not in line]


async def test_an_npc_that_was_not_there_is_reminded_of_nothing(cli: CommandLine) -> None:
    assert await recalled(cli, "silver?", "Elowen") == ("Elowen recalls nothing: Elowen has heard nothing yet\n")


async def test_what_is_asked_stands_beside_the_question(cli: CommandLine) -> None:
    shown = await recalled(cli, "Who owns Vaelith?", "Grimjaw", "--explain")
    assert "asks for 'owns'" in shown.partition("left out:")[0]
    assert "Grimjaw owns Vaelith." in await recalled(cli, "Who owns Vaelith?", "Elowen")


@pytest.mark.parametrize("question", ["What is it to you?", "Wer hat das getan?", "?!", "word " * 2_000])
async def test_whatever_is_asked_there_is_an_answer_in_one_line(cli: CommandLine, question: str) -> None:
    assert await recalled(cli, question, "Grimjaw") == (
        "Grimjaw recalls nothing: nothing that Grimjaw heard is related to the question\n"
    )


async def test_without_the_models_weights_words_alone_decide_and_that_is_said(cli: CommandLine, tmp_path: Path) -> None:
    with cli.settings.open("a") as file:
        file.write(f"models: {{dir: {tmp_path / 'no weights'}}}\n")
    code, shown, warned = await cli.run("recall", "Who owes silver?", "--npc", "Grimjaw", "--explain")
    assert (code, DEBT in shown) == (0, True)
    assert "late or failed:\n  meaning: no embeddings model is set" in shown
    assert [line for line in warned.splitlines() if line.startswith("glyphoxa: searching by words only: ")]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("silver", "--npc", "Grimjow"), "no NPC 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("silver", "--npc", "Tamsin"), "no NPC 'Tamsin' in campaign 'saltmere': valid: "),
        (("  ", "--npc", "Grimjaw"), "ask something"),
        (("silver", "--npc", "Grimjaw", "--campaign", "x"), "no campaign 'x' here"),
    ],
)
async def test_who_asks_wrongly_hears_what_is_right(cli: CommandLine, arguments: tuple[str, ...], problem: str) -> None:
    code, shown, said = await cli.run("recall", *arguments)
    assert (code, shown, problem in said) == (1, "", True)


# Around somebody


AROUND = ("recall", "Who keeps from the water?", "--lexical", "--around", "The Anvil", "--npc")


async def test_lines_about_people_at_a_place_are_found_by_the_place(cli: CommandLine, evenings_dsn: str) -> None:
    async def embed(texts: list[str]) -> NDArray[float32]:
        return np.eye(len(texts), 384, dtype=np.float32)

    async with open_store(evenings_dsn, embedder=Embedder("m", 384, embed)) as store:
        await store.chunks.fill_missing(SALTMERE)
    shown = await cli.told(*AROUND, "Grimjaw", "--explain")
    assert "Elowen never goes near the water" in shown
    assert "names Elowen, 1 relation from The Anvil" in shown
    assert "forty silver" not in shown


async def test_who_heard_nothing_is_reminded_of_nothing(cli: CommandLine) -> None:
    told = "Elowen has heard nothing relevant about The Anvil or related entities\n"
    assert await cli.told(*AROUND, "Elowen") == told


async def test_around_whom_nobody_is_called_is_an_error_with_the_names_that_are(cli: CommandLine) -> None:
    asked = ("recall", "Who?", "--npc", "Grimjaw", "--around")
    assert "The Anvil" in await cli.problem(*asked, "The Anvill", "--lexical")
    assert "cannot be combined with --method" in await cli.problem(*asked, "The Anvil", "--method", "llm")
