"""The specifications of ears and mouths, the lookup of the pipelines that build them, and checks of what they can play.

Glyphoxa does not import pipecat. A wheel with pipelines registers its builders as entry points of the group
`glyphoxa.pipelines`. An NPC's `engine` is such a name, or a name that the settings map to a file of the user. `ear`
builds the ears, `host` runs the graphs, `live_check` asks providers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast

from glyphoxa.adapters.weights.store import own_manifest
from glyphoxa.app.models import LocalModels
from glyphoxa.config.campaign_file import CampaignFile, read_campaign
from glyphoxa.config.campaign_schema import CampaignDocument, NpcBlock
from glyphoxa.config.check import Finding, chosen_providers
from glyphoxa.config.located_yaml import Wrong, YamlPath
from glyphoxa.config.sections import NO_MOUTHS, file_and_function, missing_files, not_a_name
from glyphoxa.config.settings import Settings
from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Campaign, Npc, Player
from glyphoxa.domain.errors import GlyphoxaError, InvalidInput, NotFound, did_you_mean
from glyphoxa.domain.ids import PlayerId
from glyphoxa.language.language_data import primary_language
from glyphoxa.names.corrector import Correct
from glyphoxa.names.keyterms import Hints
from glyphoxa.npc.mouth import Listener, Mouth
from glyphoxa.npc.table_interface import AudioSink, Ear, EarListener
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.observability import ServiceTime
from glyphoxa.prompt.prompt import HotContextSource
from glyphoxa.providers.extras import not_installed
from glyphoxa.providers.registry import EMBEDDINGS, NONE, STT, TTS, Choice, Provider, find, names, rows, weights_of

GROUP = "glyphoxa.pipelines"


class Host(Protocol):
    """Runs graphs."""

    def measure(self, tell: Callable[[ServiceTime], None]) -> None:
        """Report the service times of graphs built from now on."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EarSpec:
    """Specification of one player's ear.

    Attributes:
        correct: Corrects names; must return at once.
        hints: Names that a recogniser should expect. They change up to several times a second.
        on_partial: Starts look-ups; must return at once.
    """

    player: Player
    language: str
    settings: Settings
    local: LocalModels
    host: Host
    correct: Correct
    hints: Hints
    on_partial: Callable[[PlayerId, str], None]
    listener: EarListener
    now_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class MouthSpec:
    """Specification of one NPC's mouth.

    Attributes:
        slot: The NPC's slot in the local model's prompt cache, from 0.
        tools: Tools for the model; None without memory.
        gathered_for: Budgets of the model that the context is gathered for; None: the model of `settings`.
    """

    campaign: Campaign
    npc: Npc
    slot: int
    settings: Settings
    local: LocalModels
    host: Host
    context: HotContextSource
    tools: Toolbox | None
    listener: Listener
    sink: AudioSink
    now_ms: Callable[[], int]
    gathered_for: Budgets | None = None

    @property
    def others(self) -> tuple[str, ...]:
        """Names of all other speakers. A reply that continues in their name ends there."""
        npcs = (npc.name for npc in self.campaign.npcs if npc.id != self.npc.id)
        return (*npcs, *(player.name for player in self.campaign.known_players))


OpenEar = Callable[[EarSpec], Awaitable[Ear]]
OpenMouth = Callable[[MouthSpec], Awaitable[Mouth]]


def find_ear(*, files: Mapping[str, str]) -> OpenEar:
    """Return the builder of ears: the user's own, or else the installed one. See `find_mouth`."""
    return cast(OpenEar, find_mouth("ear", files=files))


def find_mouth(engine: str, *, files: Mapping[str, str]) -> OpenMouth:
    """Return the builder that an NPC's `engine` names.

    Args:
        files: Pipelines of the user: `Settings.engines`.

    Raises:
        NotFound: No such pipeline is installed, or the file has no such function.
        InvalidInput: The file raises an error.
    """
    if engine in files:
        return cast(OpenMouth, _from_file(engine, *file_and_function(files[engine])))
    return cast(OpenMouth, installed(engine))


def installed(name: str) -> Any:
    """Return what a wheel has registered: the builder of a mouth, `ear`, `host` (see `Host`), `live_check` or `webrtc`.

    Raises:
        NotFound: There is none of this name.
        NotInstalled: An extra that it needs is missing.
    """
    found = _pipelines()
    if name not in found:
        raise NotFound(f"no pipeline {name!r} is installed: {did_you_mean(name, found)}")
    try:
        return found[name].load()
    except ModuleNotFoundError as error:
        raise not_installed(error, by=f"the pipeline {name!r}") or error from error


@cache
def _pipelines() -> Mapping[str, EntryPoint]:
    """Return the installed pipelines by name. To find them, the metadata of all packages is read."""
    return {point.name: point for point in entry_points(group=GROUP)}


def _from_file(engine: str, path: Path, function: str) -> Any:
    if not path.is_file():
        raise NotFound(f"engine {engine!r}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"glyphoxa_user_pipeline_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"engine {engine!r}: {path} is not Python")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises
        raise InvalidInput(f"engine {engine!r}: {path} raises {type(error).__name__}: {error}") from error
    builder = getattr(module, function, None)
    if not callable(builder):
        raise NotFound(
            f"engine {engine!r}: {path} has no function {function!r}: {did_you_mean(function, vars(module))}"
        )
    return builder


# Languages of models and voices, as tags separated by spaces, compared with the campaign's; "" is any.


def _of_weights(name: str) -> str:
    artefact = own_manifest().get(name)
    return "" if artefact is None else artefact.languages


def languages_of(row: Provider) -> str:
    """Return the languages that a provider knows by default."""
    return max(map(_of_weights, row.weights), key=len, default=row.languages)


def languages_in_words(languages: str) -> str:
    """Return languages as users read them: the first four, and the number of others."""
    first, others = languages.split()[:4], languages.split()[4:]
    return ", ".join(first) + (f" and {len(others)} more" if others else "") or "any"


def campaign_of(settings: Settings) -> Campaign | None:
    """Return the campaign that the settings name; None without one, or if another check reports that it is wrong."""
    try:
        return None if settings.campaign is None else read_campaign(settings.campaign).campaign
    except GlyphoxaError:
        return None


def settings_for(settings: Settings, campaign: Campaign | None) -> Settings:
    """Return the settings with a local recogniser that knows the campaign's language, unless they name its model."""
    stt = settings.providers.stt
    weights = find(STT, stt.name).weights
    fitting = [name for name in weights if campaign is None or _knows(_of_weights(name), campaign.language)]
    if stt.model is not None or not fitting or fitting[0] == weights[0]:
        return settings
    providers = settings.providers.model_copy(update={"stt": stt.model_copy(update={"model": fitting[0]})})
    return settings.model_copy(update={"providers": providers})


def language_findings(settings: Settings, campaign: Campaign | None) -> Iterator[Finding]:
    """Yield a warning for each part that does not know the campaign's language. Named hosted models are not checked."""
    if campaign is None:
        return
    for subject, section, choice in chosen_providers(settings_for(settings, campaign)):
        row = find(section, choice.name)
        known = _known_to(row, section, choice, campaign)
        if not _knows(known, campaign.language):
            made_for = languages_in_words(known)
            text = f"{row.name} is made for {made_for}, but the campaign's language is {campaign.language}"
            remedy = _remedy(row, section, campaign.language, is_fallback=" fallback " in subject)
            yield Finding("warning", subject, f"{text}: {remedy}")


def _known_to(row: Provider, section: str, choice: Choice, campaign: Campaign) -> str:
    if row.runs_here:
        return next(map(_of_weights, weights_of(section, choice)), row.languages)
    has_voices = all(npc.voice.provider_voice or getattr(choice, "voice", None) for npc in campaign.npcs)
    return "" if choice.model not in (None, row.model) or (section == TTS and has_voices) else row.languages


def _remedy(row: Provider, section: str, language: str, *, is_fallback: bool) -> str:
    if row.runs_here and _knows(languages_of(row), language):
        return f"remove {section}.model from the settings"
    fitting = [one for one in rows() if one.kind == row.kind and _knows(languages_of(one), language)]
    others = [f"{one.name} (with a model)" if "model" in one.needs else one.name for one in fitting]
    others += [NONE] if section == EMBEDDINGS else []
    own = "" if row.runs_here else f", or {section}.{'voice' if section == TTS else 'model'} to one that knows it"
    setting = f"{section}.{'fallback' if is_fallback else 'name'}"
    return f"set {setting} in the settings to {' or '.join(others) or 'one that knows it'}{own}"


def _knows(languages: str, language: str) -> bool:
    return not languages or primary_language(language) in languages.split()


# Whether a campaign can be played. Checked by `campaign check`, `campaign load` and the table before anything is
# loaded.


def read_playable(path: Path, settings: Settings, text: str | None = None) -> CampaignFile:
    """Read a campaign file and check that it can be played with these settings.

    Args:
        text: New content to check instead of the file's own.

    Raises:
        NotFound: The file does not exist.
        InvalidFile: The file has errors. Each is reported with its line.
    """
    file = read_campaign(path, text, also=lambda document: _not_playable(document, settings))
    line = file.source.line(("campaign", "language"))
    remarks = (f"{path}:{line}: {one.subject}: {one.text}" for one in language_findings(settings, file.campaign))
    return replace(file, warnings=(*file.warnings, *remarks))


def _not_playable(document: CampaignDocument, settings: Settings) -> Wrong:
    for part, there, what in (
        ("npcs", document.npcs, "one NPC that speaks"),
        ("players", document.players, "one player"),
        ("scenes", document.scenes, "one scene (the first one opens the session)"),
    ):
        if not there:
            yield (part,), f"the campaign cannot be played: list at least {what} under `{part}:`"
    engines = (_pipelines().keys() | settings.engines.keys()) - {*NO_MOUTHS}
    for n, npc in enumerate(document.npcs):
        at: YamlPath = ("npcs", n, "engine")
        if not_a_name(npc.engine):
            continue  # reported with the file's own mistakes
        if not engines:
            yield at, f"{npc.entity!r}: no engine is installed: reinstall glyphoxa"
        elif npc.engine not in engines:
            text = f"{npc.entity!r}: no engine {npc.engine!r}, {did_you_mean(npc.engine, engines)}"
            yield at, f"{text} (your own: `engines:` in the settings)"
        elif npc.engine == "s2s" and settings.providers.s2s.name == NONE:
            text = f"{npc.entity!r} has engine s2s, but the settings have no provider: set providers.s2s.name to"
            yield at, f"{text} {' or '.join(names('s2s'))}"
        elif npc.engine in settings.engines:
            for missing in missing_files({npc.engine: settings.engines[npc.engine]}):
                yield at, f"engines.{missing}"
        if settings.providers.tts.name == "hibari" and (npc.engine != "s2s" or settings.providers.s2s.rescue):
            yield from _voice(n, npc)


def _voice(n: int, npc: NpcBlock) -> Wrong:
    from glyphoxa.adapters.local.hibari_voice import PRESETS

    preset = npc.voice.preset
    if preset not in PRESETS:
        hint = f"{did_you_mean(preset, PRESETS)} (list them: glyphoxa models voices)"
        yield ("npcs", n, "voice", "preset"), f"{npc.entity!r}: no voice preset {preset!r}, {hint}"
