"""The test of a microphone: what it says, and that no sound of it leaves the browser."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.support.axe import violations
from tests.support.browser import Open, sit
from tests.support.web_table import TwinTable, served

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# A microphone that hears a tone of this loudness; it counts what is open of it, and every connection for sound.
TONE = """() => {
  window.gain = 0;
  window.tracks = [];
  window.connections = 0;
  navigator.mediaDevices.getUserMedia = async () => {
    if (window.refuses) throw new DOMException("", window.refuses);
    const context = new AudioContext();
    const tone = new OscillatorNode(context), loudness = new GainNode(context, {gain: window.gain});
    const sound = new MediaStreamAudioDestinationNode(context);
    tone.connect(loudness).connect(sound);
    tone.start();
    window.tracks.push(...sound.stream.getTracks());
    return sound.stream;
  };
  const Real = RTCPeerConnection;
  window.RTCPeerConnection = function (...given) { window.connections++; return new Real(...given); };
}"""
UNTIL_CLOSED = """async () => {
  while (window.tracks.some((track) => track.readyState === 'live')) await new Promise((done) => setTimeout(done, 40));
}"""
JUDGED = """async () => {
  const { Verdict } = await import("/static/js/verdict.js");
  const levels = (n, rms, peak) => Array.from({ length: n }, () => ({ rms, peak }));
  const found = (...parts) => {
    const verdict = new Verdict();
    return parts.flat().map((level, i) => verdict.take(level, i * 66)).at(-1);
  };
  return [
    found(levels(30, 0, 0)), found(levels(70, 0, 0)), found(levels(70, 0.002, 0.01)), found(levels(6, 0.05, 0.2)),
    found(levels(70, 0, 0), levels(6, 0.05, 0.2)), found(levels(6, 0.05, 0.2), levels(70, 0, 0)),
    found(levels(4, 0.5, 1)), found(levels(4, 0.5, 1), levels(45, 0.05, 0.2)),
  ];
}"""


async def test_what_is_found_follows_from_how_loud_it_was(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        assert await page.evaluate(JUDGED) == ["speak", "silent", "quiet", "good", "good", "good", "loud", "good"]


async def test_before_one_sits_down_the_microphone_is_tested_by_keyboard_and_nothing_is_sent(
    table: TwinTable, opened: Open
) -> None:
    async with served(table) as url, opened(url, width=390, height=844) as page:
        await page.evaluate(TONE)
        told, button = page.locator("#test-told"), page.get_by_role("button", name="Test the microphone")
        await expect(button).to_be_visible()  # the page has loaded all that it needs
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.removeprefix(url)))
        await page.evaluate("window.refuses = 'NotAllowedError'")
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(told).to_contain_text("The microphone was not allowed.")
        assert await violations(page) == []
        await page.evaluate("window.refuses = 'NotFoundError'")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(told).to_contain_text("No microphone was found.")
        await page.evaluate("window.refuses = ''; window.gain = 0.3")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(told).to_contain_text("Your microphone works")
        await expect(page.get_by_role("meter", name="How loud you are")).not_to_have_attribute("aria-valuenow", "0")
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert await violations(page) == []
        await page.keyboard.press("Escape")
        await expect(page.locator("#test-dialog")).to_be_hidden()
        await expect(button).to_be_focused()
        await page.evaluate(UNTIL_CLOSED)
        await page.evaluate("window.gain = 2")
        await page.keyboard.press("Enter")
        await expect(told).to_contain_text("You are too loud")
        await page.keyboard.press("Escape")
        assert await page.evaluate("window.connections") == 0
        assert set(asked) <= {"/api/table"}
        assert table.seats == {}


async def test_a_test_at_the_table_closes_talk_first(table: TwinTable, opened: Open) -> None:
    async with served(table) as url, opened(url) as page:
        await sit(page, "tamsin")
        await page.click("#talk")
        await expect(page.locator("#talk")).to_have_accessible_name("Mute")
        await page.evaluate(TONE)
        await page.get_by_role("button", name="Test the microphone").click()
        await expect(page.locator("#test-told")).to_have_attribute("data-state", re.compile("speak|silent"))
        assert await page.locator("#talk-label").text_content() == "Talk"
        assert await page.evaluate("window.connections") == 0
