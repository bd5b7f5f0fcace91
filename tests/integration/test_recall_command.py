"""`glyphoxa recall` on a real database: what an NPC would recall, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command_line import a_settings_file, run

Capture = pytest.CaptureFixture[str]
DEBT = "Tamsin said: I heard she owes forty silver."


@pytest.fixture
def settings_file(tmp_path: Path, evenings_dsn: str) -> Path:
    return a_settings_file(tmp_path, evenings_dsn)


async def recalled(capsys: Capture, settings_file: Path, question: str, npc: str, *options: str) -> str:
    """What a question that is answered by words prints."""
    capsys.readouterr()
    asked = ("recall", question, "--npc", npc, "--lexical", *options, "--config", settings_file)
    assert await run(*asked) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def rows(shown: str) -> list[list[str]]:
    """Cells of a table, without its headings; cells are two spaces apart."""
    return [re.split(r" {2,}", line.strip()) for line in shown.splitlines()[1:]]


async def test_what_was_said_is_told_with_when_and_whether_it_comes_into_a_prompt(
    settings_file: Path, capsys: Capture
) -> None:
    shown = await recalled(capsys, settings_file, "What does she owe in silver?", "Grimjaw")
    assert rows(shown)[0] == ["1", DEBT, "s1", "2096-10-02 07:08", "yes"]


async def test_what_is_asked_for_by_name_comes_first_and_alone(settings_file: Path, capsys: Capture) -> None:
    shown = await recalled(capsys, settings_file, "Where is Elowen?", "the smith", "--explain")
    place = rows(shown)[0]
    assert place[1] == "Elowen is at The Anvil."
    assert "named 'Elowen', asks for LOCATED_AT" in place
    assert "witnessed in session s2" in place
    assert "fears" not in shown.split("Tamsin said")[0]


async def test_of_each_it_is_said_why_it_is_found_and_why_this_npc_may_know_it(
    settings_file: Path, capsys: Capture
) -> None:
    shown = await recalled(capsys, settings_file, "What does she owe in silver?", "Grimjaw", "--explain")
    headings = re.split(r" {2,}", shown.splitlines()[0])
    assert headings == [
        *("rank", "what", "session", "when", "score", "cosine", "found by", "known because", "holds", "in the prompt")
    ]
    assert re.search(r"owes forty silver\. .*1\.00 .*words \d.*witnessed in session s1 .*yes$", shown, re.MULTILINE)
    assert re.search(r"isn't he\? .*no: not near enough to the question$", shown, re.MULTILINE)


async def test_an_npc_that_was_not_there_is_reminded_of_nothing(settings_file: Path, capsys: Capture) -> None:
    assert await recalled(capsys, settings_file, "silver?", "Elowen") == (
        "Elowen recalls nothing: Elowen has heard nothing yet\n"
    )


async def test_what_is_in_every_prompt_is_not_recalled_as_well(settings_file: Path, capsys: Capture) -> None:
    shown = await recalled(capsys, settings_file, "Who owns Vaelith?", "Grimjaw", "--explain")
    assert "left out: 'Grimjaw owns Vaelith.': it stands in every prompt" in shown
    assert "Grimjaw owns Vaelith." in await recalled(capsys, settings_file, "Who owns Vaelith?", "Elowen")


@pytest.mark.parametrize("question", ["What is it to you?", "Wer hat das getan?", "?!", "word " * 2_000])
async def test_whatever_is_asked_there_is_an_answer_in_one_line(
    settings_file: Path, capsys: Capture, question: str
) -> None:
    assert await recalled(capsys, settings_file, question, "Grimjaw") == (
        "Grimjaw recalls nothing: nothing that Grimjaw heard has anything in common with it\n"
    )


async def test_without_the_models_weights_words_alone_decide_and_that_is_said(
    settings_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    with settings_file.open("a") as file:
        file.write(f"models: {{dir: {tmp_path / 'no weights'}}}\n")
    capsys.readouterr()
    asked = ("recall", "Who owes silver?", "--npc", "Grimjaw", "--explain", "--config", settings_file)
    assert await run(*asked) == 0
    shown = capsys.readouterr()
    assert DEBT in shown.out
    assert "left out: meaning: no embeddings model is set" in shown.out
    assert [line for line in shown.err.splitlines() if line.startswith("glyphoxa: by words alone: ")]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("silver", "--npc", "Grimjow"), "no NPC 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("silver", "--npc", "Tamsin"), "no NPC 'Tamsin' in campaign 'saltmere': valid: "),
        (("  ", "--npc", "Grimjaw"), "ask something"),
        (("silver", "--npc", "Grimjaw", "--campaign", "x"), "no campaign 'x' here"),
    ],
)
async def test_who_asks_wrongly_hears_what_is_right(
    settings_file: Path, capsys: Capture, arguments: tuple[str, ...], problem: str
) -> None:
    capsys.readouterr()
    assert await run("recall", *arguments, "--config", settings_file) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert problem in shown.err
