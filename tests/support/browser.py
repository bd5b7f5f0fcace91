"""A real Chromium for the tests: found, or installed, or a failure that says what to do. Never a silent skip."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright, expect

from tests.support.installing import CannotInstall, apt_install, first_way, run
from tests.support.patience import DEADLINE_MS, DEADLINE_S

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
NPM_PACKAGE = "@sparticuz/chromium@147"

# A machine that does much else at once is slow; waiting longer costs nothing when all is well.
expect.set_options(timeout=DEADLINE_MS)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
)


@cache
def chromium_path() -> str:
    """A browser that is there, else the system's package when root, else the one in an npm package.

    Raises:
        CannotInstall: None of these; names each with its reason.
    """
    try:
        return first_way("browser", {"installed before": _found, "apt-get": _from_apt, "npm": _from_npm})
    except CannotInstall as failed:
        raise CannotInstall(
            f"{failed}. The browser tests need one: install chromium (apt-get install chromium), or npm and node, "
            "or set GLYPHOXA_CHROMIUM to a Chrome or Chromium executable"
        ) from failed


def _found() -> str:
    given = os.environ.get("GLYPHOXA_CHROMIUM")
    if given:
        return given
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise CannotInstall(f"none of {', '.join(NAMES)} is on the PATH")


def _from_apt() -> str:
    apt_install("chromium")
    return _found()


def _from_npm() -> str:
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glyphoxa" / "test-browser"
    folder.mkdir(parents=True, exist_ok=True)
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), NPM_PACKAGE])
    # The package unpacks its browser at first use and says where.
    program = "import('@sparticuz/chromium').then(m => m.default.executablePath()).then(p => console.log(p))"
    if path := run(["node", "--input-type=module", "-e", program], cwd=folder).strip():
        return path
    raise CannotInstall(f"{NPM_PACKAGE} does not say where its browser is")


@asynccontextmanager
async def a_browser(
    *, speech: Path | None = None, again: bool = False, microphone: bool = True
) -> AsyncIterator[Browser]:
    """A browser in a process of its own.

    Args:
        speech: Sound for its microphone: a WAV file, from the moment the microphone is opened.
        again: Whether it hears that over and over, and not once for each time that it is opened.
        microphone: Whether the user allows the microphone.
    """
    flags = [*FLAGS, "--use-fake-device-for-media-stream"]
    # Without this the question for the microphone stays open in a headless browser; with it, it is answered by flag.
    flags.append("--use-fake-ui-for-media-stream" if microphone else "--deny-permission-prompts")
    if speech is not None:
        flags.append(f"--use-file-for-fake-audio-capture={speech}{'' if again else '%noloop'}")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=chromium_path(), headless=True, timeout=DEADLINE_MS, args=flags
        )
        try:
            yield launched
        finally:
            await launched.close()


@asynccontextmanager
async def a_page(
    browser: Browser, *, width: int = 1280, height: int = 860, locale: str = "en-US"
) -> AsyncIterator[Page]:
    """A page that shares nothing with the other pages of `browser`: neither storage nor cookies nor cache."""
    # Nothing moves: drawing what does takes a quarter of a browser's time here.
    context = await browser.new_context(
        viewport={"width": width, "height": height}, locale=locale, reduced_motion="reduce"
    )
    context.set_default_timeout(DEADLINE_MS)
    try:
        yield await context.new_page()
    finally:
        await context.close()


Open = Callable[..., AbstractAsyncContextManager[Page]]
"""Opens a page of a table that shares nothing with another."""


async def sit(page: Page, player: str) -> None:
    await page.click(f'.seat[data-player="{player}"]')
    await expect(page.locator("#voice-state")).to_have_attribute("data-state", "on")


async def say(page: Page, text: str) -> None:
    await page.fill("#say-text", text)
    await page.press("#say-text", "Enter")


_LOUDEST = """async ([ms, louder_than]) => {
  const voices = document.getElementById('voices');
  while (!voices.srcObject) await new Promise((done) => setTimeout(done, 40));
  const context = new AudioContext();
  const analyser = new AnalyserNode(context, {fftSize: 4096, smoothingTimeConstant: 0});
  context.createMediaStreamSource(voices.srcObject).connect(analyser);
  const samples = new Float32Array(analyser.fftSize), bins = new Float32Array(analyser.frequencyBinCount);
  let best = {rms: 0, hz: 0};
  let until = Infinity;
  while (performance.now() < until) {
    await new Promise((done) => setTimeout(done, 40));
    analyser.getFloatTimeDomainData(samples);
    const rms = Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length);
    if (until === Infinity && rms >= louder_than) until = performance.now() + ms;
    if (rms <= best.rms) continue;
    analyser.getFloatFrequencyData(bins);
    best = {rms, hz: bins.indexOf(Math.max(...bins)) * context.sampleRate / analyser.fftSize};
  }
  await context.close();
  return best;
}"""


async def listen(page: Page, *, ms: int, louder_than: float = 0.0) -> None:
    """Begin to listen to what the page plays. What comes from now on is not missed, however slow the machine is.

    Args:
        ms: For so long, from when it is `louder_than` on.
    """
    await page.evaluate(f"(asked) => {{ window.loudest = ({_LOUDEST})(asked) }}", [ms, louder_than])


async def heard(page: Page) -> dict[str, float]:
    """The loudest moment since `listen`: its root mean square (`rms`) and its pitch (`hz`)."""
    async with asyncio.timeout(DEADLINE_S):
        loudest: dict[str, float] = await page.evaluate("window.loudest")
    return loudest


if __name__ == "__main__":
    try:
        sys.stdout.write(f"browser tests run in {chromium_path()}\n")
    except CannotInstall as failed:
        sys.exit(str(failed))
