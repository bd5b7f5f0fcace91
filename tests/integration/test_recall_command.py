"""`glyphoxa recall` on a real database: what an NPC would recall, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, a_settings_file, rows

Capture = pytest.CaptureFixture[str]
DEBT = "Tamsin said: I heard she owes forty silver."


@pytest.fixture
def cli(tmp_path: Path, evenings_dsn: str, capsys: Capture) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, evenings_dsn), capsys)


async def recalled(cli: CommandLine, question: str, npc: str, *options: str) -> str:
    """Return the output for a question that is answered by words."""
    return await cli.told("recall", question, "--npc", npc, "--lexical", *options)


async def test_what_was_said_is_told_with_when_and_whether_it_comes_into_a_prompt(cli: CommandLine) -> None:
    shown = await recalled(cli, "What does she owe in silver?", "Grimjaw")
    assert rows(shown)[0] == ["1", DEBT, "s1", "2096-10-02 07:08", "yes"]


async def test_what_is_asked_for_by_name_comes_first_and_alone(cli: CommandLine) -> None:
    shown = await recalled(cli, "Where is Elowen?", "the smith", "--explain")
    place = rows(shown)[0]
    assert place[1] == "Elowen is at The Anvil."
    assert "named 'Elowen', asks for 'located at'" in place
    assert "witnessed in session 2" in place
    assert "fears" not in shown.split("Tamsin said")[0]


async def test_of_each_it_is_said_why_it_is_found_and_why_this_npc_may_know_it(cli: CommandLine) -> None:
    shown = await recalled(cli, "What does she owe in silver?", "Grimjaw", "--explain")
    headings = re.split(r" {2,}", shown.splitlines()[0])
    assert headings == [
        *("rank", "what", "session", "when", "score", "cosine", "found by", "known because", "holds", "in the prompt")
    ]
    assert re.search(r"owes forty silver\. .*1\.00 .*words \d.*witnessed in session 1 .*yes$", shown, re.MULTILINE)
    assert re.search(r"isn't he\? .*no: it is a question$", shown, re.MULTILINE)


async def test_an_npc_that_was_not_there_is_reminded_of_nothing(cli: CommandLine) -> None:
    assert await recalled(cli, "silver?", "Elowen") == ("Elowen recalls nothing: Elowen has heard nothing yet\n")


async def test_what_is_asked_stands_beside_the_question(cli: CommandLine) -> None:
    shown = await recalled(cli, "Who owns Vaelith?", "Grimjaw", "--explain")
    assert re.search(r"asks for 'owns' .* yes$", shown, re.MULTILINE)
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
    assert "left out: meaning: no embeddings model is set" in shown
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
