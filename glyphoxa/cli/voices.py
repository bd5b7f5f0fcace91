"""`glyphoxa voices`: which voices there are, and how one sounds."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from glyphoxa.cli.scope import CONFIG
from glyphoxa.cli.tables import a_table, show
from glyphoxa.cli.verb import Verb, argument, at_once
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.extras import LOCAL, need

TEXT = "Good evening, traveller. Sit down by the fire, and tell me what brings you here."
_LONGEST_TEXT = 1_000


VERB = Verb(at_once)


@VERB.itself(
    argument("name", nargs="?", help="a preset; of a cloud provider, the id that it has for a voice"),
    argument("--text", default=TEXT, help="what it says"),
    argument("--out", type=Path, metavar="FILE", help="write a WAV file instead of playing it"),
    CONFIG,
)
def run(options: argparse.Namespace) -> int:
    settings = read_settings(options.config)
    if options.name is None:
        _list(settings)
        return 0
    if not options.text.strip() or len(options.text) > _LONGEST_TEXT:
        raise InvalidInput(f"--text has {len(options.text)} characters; valid: 1 to {_LONGEST_TEXT} of them")
    from glyphoxa.adapters.audio.wav import write_wav
    from glyphoxa.npc.table import OUTPUT_RATE_HZ

    pcm = _spoken(settings, options.name, options.text)
    if not pcm:
        raise InvalidInput(f"nothing in --text has a sound: {options.text[:40]!r}")
    if options.out is None and _is_played(pcm, OUTPUT_RATE_HZ):
        return 0
    path = options.out or Path(f"voice-{''.join(c if c.isalnum() or c in '-_' else '-' for c in options.name)}.wav")
    try:
        write_wav(path, pcm, rate_hz=OUTPUT_RATE_HZ)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}; another place: --out FILE") from None
    print(path.absolute())
    return 0


def _list(settings: Settings) -> None:
    tts = settings.providers.tts
    if tts.name != "hibari":
        print(f"{tts.name} has its voices with the provider; an NPC names one as `voice: {{provider_voice: ID}}`.")
        print(
            f"Without, it has {tts.voice or 'the one of ours'} (providers.tts.voice). To hear one: glyphoxa voices ID"
        )
        return
    from glyphoxa.adapters.local.hibari_voice import PRESETS

    table = a_table("name", "voice")
    for name, preset in PRESETS.items():
        table.add_row(name, preset.about)
    show(table)


def _spoken(settings: Settings, name: str, text: str) -> bytes:
    """Mono s16le, as an NPC would be heard."""
    if settings.providers.tts.name != "hibari":
        return asyncio.run(_spoken_far_away(settings, name, text))
    from glyphoxa.adapters.local.hibari_voice import PRESETS, HibariVoice, load_engine
    from glyphoxa.domain.errors import did_you_mean

    if name not in PRESETS:
        raise InvalidInput(f"no voice preset {name[:60]!r}, {did_you_mean(name, PRESETS)}")
    need("hibari", by="a voice that runs here", extra=LOCAL)
    return b"".join(part.tobytes() for part in HibariVoice(load_engine(), name).synthesise(text))


async def _spoken_far_away(settings: Settings, name: str, text: str) -> bytes:
    from glyphoxa.bootstrap.engines import find_host

    host = find_host()()
    try:
        return await host.sample(text, tts=settings.providers.tts, voice=name)
    finally:
        await host.close()


def _is_played(pcm: bytes, rate_hz: int) -> bool:
    from glyphoxa.adapters.audio.player import play
    from glyphoxa.adapters.audio.wav import write_wav

    with tempfile.TemporaryDirectory(prefix="glyphoxa-voice-") as folder:
        path = Path(folder) / "voice.wav"
        write_wav(path, pcm, rate_hz=rate_hz)
        return bool(play(path))
