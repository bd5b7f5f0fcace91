"""Compare the languages of models and voices, as tags separated by spaces, with the campaign's; "" is any."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from glyphoxa.adapters.weights.store import own_manifest
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.check import Finding, chosen_providers
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.errors import GlyphoxaError
from glyphoxa.language.lexicon import primary_language
from glyphoxa.providers.building import EMBEDDINGS, NONE, STT, TTS, Choice, find, weights_of
from glyphoxa.providers.rows import Provider, rows


@cache
def _of_weights(name: str) -> str:
    artefact = own_manifest().get(name)
    return "" if artefact is None else artefact.languages


def languages_of(row: Provider) -> str:
    """Return the languages that a provider knows by default."""
    return max(map(_of_weights, row.weights), key=len, default=row.languages)


def in_words(languages: str) -> str:
    """Return languages as users read them: the first four, and the number of others."""
    first, others = languages.split()[:4], languages.split()[4:]
    return ", ".join(first) + (f" and {len(others)} more" if others else "") or "any"


def campaign_of(settings: Settings) -> Campaign | None:
    """Return the campaign that the settings name; None without one, or if another check reports that it is wrong."""
    try:
        return None if settings.campaign is None else read_campaign(settings.campaign).campaign
    except GlyphoxaError:
        return None


def for_campaign(settings: Settings, campaign: Campaign | None) -> Settings:
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
    for subject, section, choice in chosen_providers(for_campaign(settings, campaign)):
        row = find(section, choice.name)
        known = _known_to(row, section, choice, campaign)
        if not _knows(known, campaign.language):
            text = f"{row.name} is made for {in_words(known)}, but the campaign's language is {campaign.language}"
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
