"""`glyphoxa config`, `doctor` and `models`: settings, machine, local models and voices, before a table is opened."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import psutil
from rich.filesize import decimal
from rich.text import Text

from glyphoxa.adapters.local.machine import is_busy
from glyphoxa.adapters.weights.download import ShownProgress
from glyphoxa.adapters.weights.store import ModelFile, WeightStore
from glyphoxa.app.doctor import ask_providers, before_a_table, of_settings, without_settings
from glyphoxa.app.engines import campaign_of, languages_in_words, languages_of, settings_for
from glyphoxa.app.models import needed, weights_for
from glyphoxa.chat.models import CHAT_MODELS, WITHIN_S, Machine, Measured, Reckoned, best, hub_name, judged
from glyphoxa.cli.render import show_rows
from glyphoxa.cli.scope import CONFIG as CONFIG_FILE
from glyphoxa.cli.verb import Argument, Verb, argument, at_once
from glyphoxa.config.check import Finding
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, did_you_mean
from glyphoxa.providers.extras import LOCAL, need
from glyphoxa.providers.registry import LLM, TTS, find, weights_of
from glyphoxa.providers.registry import rows as provider_rows

_SAMPLE_TEXT = "Good evening, traveller. Sit down by the fire, and tell me what brings you here."
_LONGEST_TEXT = 1_000
_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}

CONFIG = Verb(at_once)
DOCTOR = Verb(at_once)
MODELS = Verb(at_once, common=[CONFIG_FILE])


@CONFIG.action(
    "check the settings: show what will be used, what is missing, and what an evening costs",
    argument("file", nargs="?", type=Path, help="settings file (YAML); default: all defaults"),
    argument("--live", help="also ask each remote provider one short question: show its latency and what it can do"),
)
def _check(options: argparse.Namespace) -> int:
    """Exit with status 1 if something that the settings need is missing, or does not answer."""
    settings = read_settings(options.file)
    findings = of_settings(settings)
    if options.live:
        wrong = {finding.subject for finding in findings if finding.level == "error"}
        findings += ask_providers(settings, but_not=wrong)
    _show_findings(findings)
    return 1 if any(finding.level == "error" for finding in findings) else 0


def _show_findings(findings: Iterable[Finding]) -> None:
    show_rows(("", "", ""), ((Text(one.level, style=_COLOURS[one.level]), one.subject, one.text) for one in findings))


@CONFIG.action("print every setting with its type, default and meaning, in Markdown")
def _reference(_options: argparse.Namespace) -> int:
    from glyphoxa.config.reference import reference

    print(reference(languages_of), end="")
    return 0


@DOCTOR.itself(
    CONFIG_FILE,
    argument("--campaign", type=Path, metavar="FILE", help="campaign file; overrides the settings"),
    argument("--quick", help="skip the database and the measurement of the model"),
    argument("--json", help="the findings, as JSON"),
    text="Check Python, packages, settings, models, database, disk, ports, clock, https and memory, and measure the "
    "language model for a few seconds. Each line is ok, or says what is wrong and what to do. The exit status is 1 "
    "if there is an error.",
)
def _doctor(options: argparse.Namespace) -> int:
    findings = _found(options)
    is_well = all(each.level != "error" for each in findings)
    if options.json:
        told = {"ok": is_well, "findings": [asdict(each) for each in findings]}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        _show_findings(findings)
    return 0 if is_well else 1


def _found(options: argparse.Namespace) -> list[Finding]:
    try:
        settings = read_settings(options.config)
    except GlyphoxaError as error:
        # What needs no settings is checked all the same.
        mistakes = [Finding("error", "settings", line) for line in str(error).splitlines()]
        return [*mistakes, *without_settings()]
    if options.campaign is not None:
        settings = settings.model_copy(update={"campaign": options.campaign.absolute()})
    return before_a_table(settings, is_quick=options.quick)


# Local models

_ALL = argument("--all", help="every model of the list")


def _named(otherwise: str) -> Argument:
    return argument(
        "names",
        nargs="*",
        metavar="ARTEFACT",
        help=f"names as `models list` shows them, or OWNER/REPO/FILE.gguf of the hub; {otherwise}",
    )


@MODELS.action("list the models: size, licence, and which are here")
def _list(options: argparse.Namespace) -> int:
    store, rows = _weights(options), []
    for status in store.status():
        one = status.artefact
        state = status.state if status.state != "partial" else f"{100 * status.have // one.size} %"
        rows.append((status.name, state, decimal(one.size), one.licence, languages_in_words(one.languages), one.what))
    show_rows(("artefact", "state", Text("size", justify="right"), "licence", "languages", "what"), rows)
    print(f"stored in {store.directory}")
    return 0


@MODELS.action(
    "download missing models; an interrupted download continues",
    _named("default: what a table with these settings and their campaign needs"),
    _ALL,
    argument("--refetch", help="accept the files that the hub offers now, even if they differ from the pinned ones"),
    argument("--from", dest="copy_from", type=Path, metavar="PATH", help="a file or directory to copy from"),
)
def _fetch(options: argparse.Namespace) -> int:
    settings = read_settings(options.config)
    weights = weights_for(settings)
    names = _names(options, weights) or needed(settings_for(settings, campaign_of(settings)))
    with ShownProgress(sys.stderr) as progress:
        paths = weights.ensure(names, progress, copy_from=options.copy_from, refetch=options.refetch)
    for name, path in paths.items():
        print(f"{name}: {path}", file=sys.stderr)
    return 0


@MODELS.action(
    "compare the checksums of models; a file that differs is removed", _named("default: all that are here"), _ALL
)
def _verify(options: argparse.Namespace) -> int:
    weights = _weights(options)
    here = [status.name for status in weights.status() if status.state in ("ready", "unverified")]
    for name, path in weights.verify(_names(options, weights) or here):
        print(f"{name}: {path.name} is correct", flush=True)
    return 0


@MODELS.action(
    "measure this machine for a few seconds, and list the chat models that are fast enough",
    argument(
        "--npcs",
        type=int,
        choices=range(1, 33),
        default=3,
        metavar="N",
        help="NPCs at the table; default 3",
    ),
)
def _recommend(options: argparse.Namespace) -> int:
    from glyphoxa.adapters.local.llama import measure

    settings = read_settings(options.config)
    name, file = model_to_measure(settings, _weights(options))
    machine = Machine(psutil.virtual_memory().available, n_npcs=options.npcs)
    print(f"measuring with {file.path.name} ...", file=sys.stderr, flush=True)
    if is_busy():
        busy = "other programs are busy on this machine, so the result is too low; measure again when it is idle"
        print(busy, file=sys.stderr, flush=True)
    measured = measure(file.path)
    told(name, measured, machine, [judged(each, measured, machine) for each in CHAT_MODELS])
    return 0


def _weights(options: argparse.Namespace) -> WeightStore:
    return weights_for(read_settings(options.config))


def _names(options: argparse.Namespace, weights: WeightStore) -> list[str] | None:
    if options.all:
        return list(weights.artefacts())
    return list(options.names) or None


# Recommending


def model_to_measure(settings: Settings, weights: WeightStore) -> tuple[str, ModelFile]:
    """Return the model of the settings if it is local and present, else a shipped one that is.

    Raises:
        NotFound: No language model is here.
        Corrupt: It is not what it must be.
    """
    shipped = [name for row in provider_rows() if row.kind == "llm" for name in row.weights]
    for name in (*weights_of(LLM, settings.providers.llm), *shipped):
        if weights.has(name):
            return name, weights.find(name)
    raise NotFound(f"no language model is installed to measure with; run `glyphoxa models fetch {shipped[0]}`")


def told(name: str, measured: Measured, machine: Machine, verdicts: Sequence[Reckoned]) -> None:
    """Print what this machine can run."""
    print(
        f"{Path(name).name} reads {measured.reads_per_s:.0f} tokens per second here and generates"
        f" {measured.speaks_per_s:.0f}. {decimal(machine.free_bytes)} of memory is free."
        f" Estimates for {machine.n_npcs} NPCs:\n"
    )
    headings = "model, parameters, licence, file, memory, reads an NPC, first words, generates, fast enough"
    rows = (
        (
            one.model.name.rpartition("/")[2],
            f"{one.model.billions:.1f} B {one.model.quantisation}",
            one.model.licence,
            decimal(one.model.bytes),
            decimal(one.bytes),
            f"{one.opens_s:.0f} s",
            f"{one.first_clause_s:.1f} s",
            f"{one.speaks_per_s:.0f}/s",
            "no: " + "; ".join(one.against) if one.against else "yes",
        )
        for one in verdicts
    )
    show_rows(headings.split(", "), rows)
    found = best(verdicts)
    if found is None:
        print(f"\nNo model answers within {WITHIN_S:g} s here: use a server (`ollama`, `openai` ...).")
        return
    fits = found.model.name
    shipped = next((row.name for row in provider_rows() if row.kind == "llm" and fits in row.weights), None)
    llm = f"name: {shipped}" if hub_name(fits) is None else f"name: local, model: {fits}"
    print(f"\nThe largest model that is fast enough: {fits}")
    print(f"  glyphoxa models fetch {fits}")
    print(f"  providers: {{llm: {{{llm}}}}}")


# Voices


@MODELS.action(
    "list the voices for `voice:` in a campaign file; or play one",
    argument("name", nargs="?", help="a preset; or a voice id of the cloud provider"),
    argument("--text", default=_SAMPLE_TEXT, help="what it says"),
    argument("--out", type=Path, metavar="FILE", help="write a WAV file instead of playing it"),
)
def _voices(options: argparse.Namespace) -> int:
    settings = read_settings(options.config)
    if options.name is None:
        _list_voices(settings)
        return 0
    if not options.text.strip() or len(options.text) > _LONGEST_TEXT:
        raise InvalidInput(f"--text has {len(options.text)} characters; valid: 1 to {_LONGEST_TEXT}")
    from glyphoxa.adapters.local.machine import play, write_wav
    from glyphoxa.npc.table_interface import OUTPUT_RATE_HZ

    pcm = _spoken(settings, options.name, options.text)
    if not pcm:
        raise InvalidInput(f"nothing in --text has a sound: {options.text[:40]!r}")
    if options.out is None:
        with tempfile.TemporaryDirectory(prefix="glyphoxa-voice-") as folder:
            played = Path(folder) / "voice.wav"
            write_wav(played, pcm, rate_hz=OUTPUT_RATE_HZ)
            if play(played):
                return 0
    path = options.out or Path(f"voice-{''.join(c if c.isalnum() or c in '-_' else '-' for c in options.name)}.wav")
    try:
        write_wav(path, pcm, rate_hz=OUTPUT_RATE_HZ)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}; another place: --out FILE") from None
    print(path.absolute())
    return 0


def _list_voices(settings: Settings) -> None:
    tts = settings.providers.tts
    languages = languages_in_words(languages_of(find(TTS, tts.name)))
    if tts.name != "hibari":
        print(
            f"{tts.name} lists its voices on its own site; select one for an NPC with `voice: {{provider_voice: ID}}`."
        )
        print(f"Languages by default: {languages}")
        print(
            f"Default: {tts.voice or 'set by Glyphoxa'} (providers.tts.voice). To hear one: glyphoxa models voices ID"
        )
        return
    from glyphoxa.adapters.local.hibari_voice import PRESETS

    show_rows(("name", "languages", "voice"), ((name, languages, preset.about) for name, preset in PRESETS.items()))


def _spoken(settings: Settings, name: str, text: str) -> bytes:
    """Return speech as mono s16le, as an NPC is heard."""
    if settings.providers.tts.name != "hibari":
        return asyncio.run(_spoken_far_away(settings, name, text))
    from glyphoxa.adapters.local.hibari_voice import PRESETS, HibariVoice, load_engine

    if name not in PRESETS:
        raise InvalidInput(f"no voice preset {name[:60]!r}, {did_you_mean(name, PRESETS)}")
    need("hibari", by="a voice that runs here", extra=LOCAL)
    return b"".join(part.tobytes() for part in HibariVoice(load_engine(), name).synthesise(text))


async def _spoken_far_away(settings: Settings, name: str, text: str) -> bytes:
    from glyphoxa.app.engines import installed

    sound: bytes = await installed("live_check").sample(text, settings.providers.tts, voice=name)
    return sound
