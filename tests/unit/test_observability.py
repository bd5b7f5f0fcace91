"""People's words do not get into logs unless somebody asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from loguru import logger

from glyphoxa.observability import LogForm, set_up_logs


@pytest.fixture(autouse=True)
def the_logger_as_it_was() -> Iterator[None]:
    yield
    logger.remove()
    logger.add(lambda _: None)


@pytest.mark.parametrize("with_content", [False, True])
def test_speech_is_logged_only_when_asked_for(with_content: bool, capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(level="DEBUG", with_content=with_content)
    logger.bind(content="my brother is lost").info("an utterance was kept")
    logger.info("the table is open")
    shown = capsys.readouterr().err
    assert ("my brother is lost" in shown) is with_content
    assert "the table is open" in shown


def test_pipecats_prompts_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(level="DEBUG")
    as_pipecat = logger.patch(lambda record: record.update(name="pipecat.services.openai"))
    as_pipecat.debug("Generating LLM response [my brother is lost]")
    as_pipecat.warning("the connection is gone")
    shown = capsys.readouterr().err
    assert "my brother" not in shown
    assert "the connection is gone" in shown


def test_below_the_level_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logs(level="WARNING")
    logger.info("chatter")
    assert capsys.readouterr().err == ""


def test_a_log_for_programs_is_one_object_a_line_without_speech_or_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up_logs(level="DEBUG", form="json")
    logger.bind(content="my brother is lost").info("an utterance was kept")
    logger.bind(npc="grimjaw").warning('a "quoted" line\nand {braces}')
    try:
        raise ValueError("too late")
    except ValueError as error:
        logger.opt(exception=error).error("a reply failed")
    shown = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["message"] for line in shown] == ['a "quoted" line\nand {braces}', "a reply failed"]
    assert (shown[0]["level"], shown[0]["npc"], shown[1]["error"]) == ("WARNING", "grimjaw", "ValueError: too late")


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_was_typed_commands_no_terminal_and_forges_no_record(
    form: LogForm, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_logs(with_content=True, form=form)
    typed = "\x1b[2J\x9b2J\u202egnol\u2028\r\n00:00:00.000 INFO    glyphoxa: the table is open"
    logger.bind(content=typed).info("said: {}", typed)
    shown = capsys.readouterr().err
    assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\r"} & set(shown)
    assert "\\u001b[2J" in shown
    records = [line for line in shown.splitlines() if not line.startswith(" ")]
    assert len(records) == 1
    if form == "json":
        assert json.loads(shown)["message"] == f"said: {typed}"
