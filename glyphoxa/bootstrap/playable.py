"""Whether a table can be opened with a campaign file: asked by `campaign check`, `campaign load` and the table itself,
before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from glyphoxa.bootstrap.engines import mouth_names
from glyphoxa.config.campaign_file import CampaignFile, read_campaign
from glyphoxa.config.located_yaml import InvalidFile, Problem, YamlPath
from glyphoxa.config.sections import missing_files
from glyphoxa.config.settings import Settings
from glyphoxa.domain.errors import did_you_mean
from glyphoxa.providers.building import NONE, STT, names, unknown_language


def read_playable(path: Path, settings: Settings, text: str | None = None) -> CampaignFile:
    """Read a campaign file that can be played with these settings.

    Args:
        text: What the file is to hold, if that is not what it holds now.

    Raises:
        NotFound: There is no such file.
        InvalidFile: With every mistake in it, each at its line.
    """
    file = read_campaign(path, text)
    problems = list(_not_playable(file, settings))
    if problems:
        raise InvalidFile(path, problems)
    return file


def _not_playable(file: CampaignFile, settings: Settings) -> Iterator[Problem]:
    campaign = file.campaign
    for part, there, what in (
        ("npcs", campaign.npcs, "one NPC that speaks"),
        ("players", campaign.players, "one player"),
        ("scenes", campaign.scenes, "one scene (the first one opens the session)"),
    ):
        if not there:
            yield file.source.problem((part,), f"nothing can be played: list at least {what} under `{part}:`")
    if wrong := unknown_language(STT, settings.providers.stt.name, campaign.language):
        yield file.source.problem(("campaign", "language"), wrong)
    engines = mouth_names(settings)
    for n, npc in enumerate(campaign.npcs):
        at: YamlPath = ("npcs", n)
        if npc.engine not in engines:
            text = f"{npc.name!r}: no engine {npc.engine!r}, {did_you_mean(npc.engine, engines)}"
            yield file.source.problem((*at, "engine"), f"{text} (of your own: `engines:` in the settings)")
        elif npc.engine == "s2s" and settings.providers.s2s.name == NONE:
            text = f"{npc.name!r} has engine s2s, but the settings name none: set providers.s2s.name to"
            text = f"{text} {' or '.join(names('s2s'))}"
            yield file.source.problem((*at, "engine"), text)
        elif npc.engine in settings.engines:
            for missing in missing_files({npc.engine: settings.engines[npc.engine]}):
                yield file.source.problem((*at, "engine"), f"engines.{missing}")
        if settings.providers.tts.name == "hibari" and (npc.engine != "s2s" or settings.providers.s2s.rescue):
            yield from _voice(file, n, npc.voice.preset)


def _voice(file: CampaignFile, n: int, preset: str) -> Iterator[Problem]:
    from glyphoxa.adapters.local.hibari_voice import PRESETS

    if preset not in PRESETS:
        name = file.campaign.npcs[n].name
        text = f"{name!r}: no voice preset {preset!r}, {did_you_mean(preset, PRESETS)} (all: glyphoxa models voices)"
        yield file.source.problem(("npcs", n, "voice", "preset"), text)
