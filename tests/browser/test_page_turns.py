"""The chat shows a turn whose answer nobody heard, or not yet."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from glyphoxa.domain.events import (
    NpcSilent,
    NpcSpeaks,
    NpcThinks,
    PauseChanged,
    SessionEnds,
    TurnFinished,
    UtteranceKept,
    Whispered,
)
from glyphoxa.domain.ids import TurnId, UtteranceId
from glyphoxa.domain.turn_record import Outcome, Unaddressed
from tests.support.browser import Open, say, sit
from tests.support.builders import a_turn_record, an_utterance
from tests.support.web_table import GRIMJAW, ODWINA, TAMSIN, TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TURN = TurnId("t77")


def over(outcome: Outcome, **more: Any) -> TurnFinished:
    return TurnFinished(a_turn_record(outcome, id=TURN, **more))


def nobody(why: Unaddressed, *, utterance: UtteranceId | None = None) -> TurnFinished:
    return over(Outcome.NOT_ADDRESSED, unaddressed=why, utterance_id=utterance)


async def test_only_the_speaker_sees_that_nobody_was_addressed(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page, opened(url) as other:
        await sit(page, "tamsin")
        await sit(other, "bran")
        # The turn ends before its words are on disk.
        table.tell(nobody(Unaddressed.NO_NAME, utterance=UtteranceId("late-1")))
        table.tell(UtteranceKept(an_utterance("Hello?", id="late-1", speaker="Tamsin")))
        await expect(page.locator("#said > li")).to_have_count(2)
        note = page.locator("#said > li").last
        await expect(note).to_have_text("Nobody was addressed. Say a name, such as Grimjaw or Odwina Vell.")
        table.tell(nobody(Unaddressed.ABSENT))
        await expect(page.locator(".note").last).to_contain_text("The character you named is not here.")
        await expect(other.locator("#said > li")).to_have_count(1)
        await page.reload()
        await expect(page.locator(".note")).to_have_count(2)


async def test_whisper_shows_on_one_page_only_and_survives_reload(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page, opened(url) as other:
        await sit(page, "tamsin")
        await sit(other, "bran")
        table.tell(Whispered(TAMSIN.id, "The <b>cup</b> is poisoned.", 1))
        table.tell(nobody(Unaddressed.MUTED))
        whisper, muted = page.locator(".whisper"), page.locator(".note").last
        await expect(whisper).to_have_text("The game master whispers to you: The <b>cup</b> is poisoned.")
        await expect(muted).to_have_text("The game master has muted the character you spoke to.")
        table.tell(UtteranceKept(an_utterance("Hello?", id="after-1", speaker="Tamsin")))
        await expect(other.locator("#said > li")).to_have_count(1)
        await page.reload()
        await other.reload()
        await expect(whisper).to_have_count(1)
        await expect(other.locator("#said > li")).to_have_count(1)


async def test_page_shows_pause_and_end_of_session(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        paused = page.locator('.notice[data-topic="paused"]')
        table.is_paused = True
        table.tell(PauseChanged(True, 1))
        await expect(paused).to_contain_text("The game master has paused the table.")
        await page.reload()
        await expect(paused).to_contain_text("Nothing you say is heard, answered or stored.")
        table.is_paused = False
        table.tell(PauseChanged(False, 2))
        await expect(paused).to_have_count(0)
        table.tell(SessionEnds(3))
        await expect(page.locator('.notice[data-topic="seat"]')).to_contain_text("The session is over.")
        await expect(page.locator("#lobby")).to_be_visible()


async def test_thinking_npc_is_shown_until_first_sound_or_end_of_turn(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        thinking = page.get_by_role("status").filter(has_text="thinking")
        table.tell(NpcThinks(GRIMJAW.id, GRIMJAW.name, TURN, TAMSIN.id, 1))
        await expect(thinking).to_have_text("Grimjaw is thinking…")
        table.tell(NpcThinks(ODWINA.id, ODWINA.name, TurnId("t78"), TAMSIN.id, 1))
        await expect(thinking).to_have_text("Grimjaw and Odwina Vell are thinking…")
        await page.reload()
        await expect(thinking).to_have_text("Grimjaw and Odwina Vell are thinking…")
        table.tell(NpcSpeaks(ODWINA.id, ODWINA.name, TurnId("t78"), "Yes.", 1))
        await expect(page.locator("#thinking")).to_have_text("Grimjaw is waiting for Odwina Vell to finish…")
        table.tell(NpcSilent(ODWINA.id, TurnId("t78"), 2))
        await expect(thinking).to_have_text("Grimjaw is thinking…")
        table.tell(over(Outcome.TIMED_OUT))
        await expect(thinking).to_have_count(0)
        await expect(page.locator(".note")).to_have_text("Grimjaw took too long to answer you. Ask again.")


MISSING = (
    (
        Outcome.FAILED,
        "401 Unauthorized from api.example",
        "Grimjaw could not answer you because of an error. Ask again.",
    ),
    (Outcome.WITHHELD, "", "Grimjaw's answer to you was withheld, because it may not be said."),
    (Outcome.SUPERSEDED, "", "Grimjaw did not get to answer you. Ask again if it still matters."),
    (Outcome.ANSWERED, "connection reset by 10.0.0.7", "Grimjaw's answer was cut off by an error."),
)


async def test_missing_answer_is_explained_to_the_player(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        for outcome, error, told in MISSING:
            table.tell(over(outcome, error=error))
            await expect(page.locator(".note").last).to_have_text(told)


async def test_page_loaded_during_an_answer_shows_its_beginning(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        table.tell(NpcSpeaks(GRIMJAW.id, GRIMJAW.name, TURN, "Aye, it is done.", 1))
        await page.reload()
        bubble = page.locator(".said.npc.speaking .words")
        await expect(bubble).to_have_text("Aye, it is done.")
        await expect(page.locator(".person.speaking")).to_have_attribute("data-id", "grimjaw")
        table.tell(NpcSpeaks(GRIMJAW.id, GRIMJAW.name, TURN, "And sharp.", 1))
        await expect(bubble).to_have_text("Aye, it is done. And sharp.")
        # Nothing of it was heard, it turns out: no bubble stays.
        table.tell(NpcSilent(GRIMJAW.id, TURN, 1))
        table.tell(over(Outcome.INTERRUPTED))
        await expect(page.locator(".said.npc")).to_have_count(0)


async def test_too_long_line_is_counted_refused_and_stays_in_the_box(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        box, count, told = page.locator("#say-text"), page.locator("#say-count"), page.locator("#say-told")
        await box.fill("a" * 519)
        await expect(count).to_be_hidden()
        await box.fill("🐉" * 590)  # a character is one, however many units it takes
        await expect(count).to_have_text("10 left")
        await box.fill("Grimjaw, " + "a" * 604)
        await expect(count).to_contain_text("13 too many")
        await expect(box).to_have_attribute("aria-invalid", "true")
        await box.press("Enter")
        await expect(told).to_have_text(
            "Not sent: 13 characters too many. Your text is still here. Shorten it, or send it in two parts."
        )
        await expect(box).to_have_value("Grimjaw, " + "a" * 604)
        await say(page, "Grimjaw, " + "a" * 591)
        await expect(page.locator(".said.mine .words")).to_have_text("Grimjaw, " + "a" * 591)
        await expect(page.locator(".said.pending")).to_have_count(0)
        assert [text for _, text in table.said] == ["Grimjaw, " + "a" * 591]
        await expect(box).to_have_value("")
