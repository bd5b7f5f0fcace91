"""Run stand-ins for the providers in a process of their own, so that their work is not counted as ours.

    python -m benchmarks.provider_process

reads one JSON object from standard input (see `providers`), prints one with the addresses, and serves until standard
input is closed: when the benchmark ends, however it ends, its providers end with it.

The recogniser cannot recognise speech. It knows the demo's recordings and identifies one by its first 20 ms. It returns
the words spoken so far: growing partials while the player speaks, and a final transcript a given time after it is asked
to finalise.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import WSMsgType, web

from benchmarks.servers.deepgram import Word, results
from benchmarks.servers.local import LocalServer, until
from benchmarks.servers.openai import OpenAiServer, Pace, Reply
from demo.recordings import RATE_HZ, read_recording, samples_of
from demo.script import read_evening
from glyphoxa.domain.errors import InvalidInput, Unavailable
from glyphoxa.language.sentences import SentenceSplitter

CHUNK_MS = 20
CHUNK_BYTES = RATE_HZ * CHUNK_MS // 1_000 * 2
EVENING = Path(__file__).resolve().parents[1] / "demo" / "evening.yaml"
_FRAME = RATE_HZ // 100
_VOICED = 0.02
"""Relative to the loudest 10 ms: quieter audio (-34 dB) is the room, not the voice."""
REPLY = "That much I know. Ask the others, friend."
MS_PER_CHARACTER = 25
PARTIAL_EVERY_MS = 300
MS_PER_WORD = 200
STARTS_WITHIN_S = 30
STOPS_WITHIN_S = 5


# -- the recorded players


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded line of a player.

    Attributes:
        pcm: 16 kHz mono s16le.
        voiced_from_ms: Where the voice starts.
        voiced_until_ms: Where it ends: the last 10 ms that are louder than the room.
        longest_pause_ms: Between two voiced places.
    """

    path: Path
    text: str
    pcm: bytes
    voiced_from_ms: int
    voiced_until_ms: int
    longest_pause_ms: int

    def words_until(self, ms: int) -> list[str]:
        """Return the words spoken so far, assuming that all characters take equally long."""
        words = self.text.split()
        if ms >= self.voiced_until_ms:
            return words
        share = (ms - self.voiced_from_ms) / (self.voiced_until_ms - self.voiced_from_ms)
        said, spoken = 0, share * sum(map(len, words))
        for n, word in enumerate(words):
            said += len(word)
            if said > spoken:
                return words[:n]
        return words


def read_recorded(path: Path, text: str) -> Recorded:
    """Read a recording.

    Raises:
        NotFound: There is no such recording.
        InvalidInput: It cannot be used, or is silent.
    """
    pcm = read_recording(path).pcm
    samples = samples_of(pcm)
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    loudness = np.sqrt((frames**2).mean(axis=1)) if len(frames) else np.zeros(0)
    voiced = np.flatnonzero(loudness > loudness.max(initial=0.0) * _VOICED)
    if len(voiced) < 2:
        raise InvalidInput(f"recording {path} is silent")
    pauses = (np.diff(voiced) - 1) * 10
    return Recorded(path, text, pcm, int(voiced[0]) * 10, int(voiced[-1] + 1) * 10, int(pauses.max()))


def demo_recordings() -> list[Recorded]:
    """Return all lines of the demo."""
    evening = read_evening(EVENING)
    return [read_recorded(evening.wav(line), line.text) for session in evening.sessions for line in session.lines]


def questions(recordings: Sequence[Recorded], *, to: Sequence[str]) -> list[Recorded]:
    """Return lines that are one sentence and call somebody by name: with an endpointing wait of 200 ms, each is one
    turn.
    """
    return [r for r in recordings if not set(r.text[:-1]) & set(".?!") and any(name in r.text for name in to)]


# -- for the benchmark


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of the providers, in milliseconds.

    Attributes:
        stt_final_ms: From the request for the final transcript to the transcript.
        llm_ttft_ms: From the last byte of the request to the first event of the stream.
        tts_ttfb_ms: From the last byte of the request to the first sound.
    """

    stt_final_ms: float = 20
    llm_ttft_ms: float = 200
    llm_tokens_per_s: float = 80
    tts_ttfb_ms: float = 80

    @property
    def to_first_sound_ms(self) -> float:
        """Return the time from the detected pause to the first sound, if only the providers took time.

        The model's stream starts with an event without words; the first clause is complete one token after its end.
        """
        a_token_ms = 1_000 / self.llm_tokens_per_s if self.llm_tokens_per_s else 0.0
        return self.stt_final_ms + self.llm_ttft_ms + tokens_of_first_clause(REPLY) * a_token_ms + self.tts_ttfb_ms


def tokens_of_first_clause(reply: str) -> int:
    """Return how many tokens of the stream the first clause takes."""
    splitter = SentenceSplitter()
    for n, word in enumerate(reply.split(" ")):
        if splitter.push(word if n == 0 else f" {word}"):
            return n + 1
    return len(reply.split(" "))


@dataclass(frozen=True, slots=True)
class Addresses:
    deepgram: str
    openai: str


@asynccontextmanager
async def providers(recordings: Sequence[Recorded], delays: Delays, *, reply: str = REPLY) -> AsyncIterator[Addresses]:
    """Run the providers' process for the time of the block.

    Raises:
        Unavailable: It did not start.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.provider_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    plan = {"recordings": [[str(r.path), r.text] for r in recordings], "delays": asdict(delays), "reply": reply}
    try:
        process.stdin.write(json.dumps(plan).encode() + b"\n")
        async with asyncio.timeout(STARTS_WITHIN_S):
            line = await process.stdout.readline()
        if not line:
            raise Unavailable("the benchmark's providers did not start")
        yield Addresses(**json.loads(line))
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(STOPS_WITHIN_S):
                await process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            raise


# -- in the process


class KnowingDeepgram(LocalServer):
    """Nova's WebSocket protocol for players whose recordings are known."""

    def __init__(self, recordings: Sequence[Recorded], *, final_ms: float) -> None:
        super().__init__()
        self._by_beginning = {recorded.pcm[:CHUNK_BYTES]: recorded for recorded in recordings}
        self._final_ms = final_ms

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/listen", self._listen)]

    async def _listen(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        listening = Listening(self._by_beginning)
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                if listening.take(message.data):
                    await socket.send_json(listening.results(is_final=False))
            elif message.type is WSMsgType.TEXT:
                kind = json.loads(message.data)["type"]
                if kind == "CloseStream":
                    break
                if kind == "Finalize":
                    due_s = asyncio.get_running_loop().time() + self._final_ms / 1_000
                    final = listening.results(is_final=True)
                    await until(due_s)
                    await socket.send_json(final)
        await socket.close()
        return socket


class Listening:
    """One player's position in a recording. Audio comes in pieces of 20 ms."""

    def __init__(self, by_beginning: dict[bytes, Recorded]) -> None:
        self._by_beginning = by_beginning
        self._recorded: Recorded | None = None
        self._heard_ms = 0
        self._confirmed = 0
        self._all_ms = 0
        self._confirmed_ms = 0

    def take(self, sound: bytes) -> bool:
        """Take audio; return True when it is time for a partial transcript."""
        begins = self._by_beginning.get(sound)
        if begins is not None:
            self._recorded, self._heard_ms, self._confirmed = begins, 0, 0
        self._heard_ms += CHUNK_MS
        self._all_ms += CHUNK_MS
        return self._heard_ms % PARTIAL_EVERY_MS == 0 and bool(self.words())

    def words(self) -> list[str]:
        """Return the words so far that are not confirmed yet."""
        return self._recorded.words_until(self._heard_ms)[self._confirmed :] if self._recorded is not None else []

    def results(self, *, is_final: bool) -> dict[str, Any]:
        """Return a message of Nova's with those words. A final one confirms them."""
        words, spoken_ms = self.words(), self._all_ms - self._heard_ms + MS_PER_WORD * self._confirmed
        heard_ms = (self._confirmed_ms, self._all_ms)
        if is_final:
            self._confirmed += len(words)
            self._confirmed_ms = self._all_ms
        said = tuple(map(Word, words))
        return results(said, is_final=is_final, from_finalize=is_final, heard_ms=heard_ms, spoken_ms=spoken_ms)


async def serve(plan: dict[str, Any]) -> None:
    delays = Delays(**plan["delays"])
    pace = Pace(delays.llm_ttft_ms, delays.llm_tokens_per_s, delays.tts_ttfb_ms, MS_PER_CHARACTER)
    recordings = [read_recorded(Path(path), text) for path, text in plan["recordings"]]
    async with (
        KnowingDeepgram(recordings, final_ms=delays.stt_final_ms) as deepgram,
        OpenAiServer([Reply(plan["reply"])], pace=pace) as openai,
    ):
        print(json.dumps(asdict(Addresses(deepgram.ws_url, openai.base_url))), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    # The terminal's Ctrl-C reaches this process too, and the benchmark still needs it while it closes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A client that disconnects is normal: it no longer wants an answer that was prepared.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    asyncio.run(serve(json.loads(sys.stdin.readline())))


if __name__ == "__main__":
    main()
