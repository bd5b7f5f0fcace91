"""What a user can set, with defaults that need no key: the local models and an embedded database.

Read from one YAML file. Keys of cloud providers never stand in it: it names the environment variable that
holds them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BeforeValidator, Field, PrivateAttr

from glyphoxa.config.chronicle_settings import ChronicleSettings
from glyphoxa.config.context_settings import ContextSettings, placement_contradictions
from glyphoxa.config.correction_settings import CorrectionSettings
from glyphoxa.config.engine_files import from_folder, wrong_engine
from glyphoxa.config.located_yaml import InvalidFile, LocatedYaml, Problem, read_yaml, validate
from glyphoxa.config.mcp_settings import McpSettings, mcp_contradictions
from glyphoxa.config.observability_settings import ObservabilitySettings
from glyphoxa.config.privacy_settings import PrivacySettings
from glyphoxa.config.provider_settings import ProvidersSettings, in_turn, provider_contradictions, with_model_from
from glyphoxa.config.recall_settings import DeepRecallSettings, not_here, recall_contradictions
from glyphoxa.config.sections import DsnText, Section, empty_section
from glyphoxa.config.server_settings import ServerSettings, server_contradictions, server_from
from glyphoxa.config.turns_settings import TurnsSettings, turns_contradictions
from glyphoxa.context.budgets import BUDGETS, STANDING_TOKENS, Budgets
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.providers.profiles import Profile
from glyphoxa.providers.registry import (
    CHRONICLE,
    EMBEDDINGS,
    KINDS,
    LLM,
    NONE,
    SECOND_LOOK,
    Choice,
    find,
    missing_settings,
    profile_of,
    runs_here,
)

LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]

_SYSTEM_DATA = Path("/var/lib/glyphoxa")
_FILLER_AFTER_MS = 1_500
"""With a language model on this machine: a pause of two seconds, the end of the turn included, is one that is felt."""


class MemorySettings(Section):
    """
    Attributes:
        postgres_dsn: Left out: an embedded PostgreSQL in `data_dir`. "none": no long-term memory, the voice runs
            all the same. Anything else: the DSN of a server with pgvector.
        embedding_dimensions: Of the embeddings model; left out, the usual ones of providers.embeddings. Once the
            database is made, only `glyphoxa worker reindex` brings it to others.
        auto_accept: A fact at least so certain is accepted without the DM's word; one below waits for it.
        chronicle: What makes facts of what is said: `rules`; `llm`, which is rules and the model of `chronicle.llm`; or
            `none`. `glyphoxa worker read` and `glyphoxa worker` read at any time, by rules where it is `none`. A
            model that runs here is asked by those two alone: an open table reads by rules.
    """

    postgres_dsn: DsnText = None
    embedding_dimensions: Annotated[int, Field(ge=1, le=2000)] = 384
    auto_accept: Annotated[float, Field(ge=0.0, le=1.0)] = AUTO_ACCEPT
    chronicle: Literal["rules", "llm", "none"] = "rules"


class TiersSettings(Section):
    """Which words of a question let an NPC look longer into its memory, up to its `budget_tier`. Those of the
    campaign's language (English and German) are known; these are added.

    Attributes:
        deep_words: Phrases that ask for tier DEEP, such as "think carefully".
        standard_words: Phrases that ask for tier STANDARD, such as "remember".
    """

    deep_words: tuple[str, ...] = ()
    standard_words: tuple[str, ...] = ()


class ModelsSettings(Section):
    """
    Attributes:
        dir: Where model weights are; left out, the user's cache directory.
    """

    dir: Path | None = None


class LoggingSettings(Section):
    """
    Attributes:
        level: What is less important is not logged.
        content: Whether logs may hold what people say. Off unless somebody at the table asks for it.
        form: `text` for people; `json` for programs: one object a line.
    """

    level: LogLevel = "INFO"
    content: bool = False
    form: Literal["text", "json"] = "text"


class Settings(Section):
    """All of it.

    Attributes:
        campaign: The campaign file. Relative paths of a settings file count from that file.
        data_dir: Database and spool. Left out: the directory that GLYPHOXA_DATA names, else the user's data directory;
            root's is /var/lib/glyphoxa.
        engines: Pipelines of the user's own, as `./file.py:function`, by the name that an NPC's `engine` gives.
    """

    _file: Path | None = PrivateAttr(None)

    campaign: Path | None = None
    data_dir: Path | None = None
    engines: Annotated[dict[str, str], BeforeValidator(empty_section)] = Field(default_factory=dict)
    memory: Annotated[MemorySettings, BeforeValidator(empty_section)] = MemorySettings()
    providers: Annotated[ProvidersSettings, BeforeValidator(empty_section)] = ProvidersSettings()
    correction: Annotated[CorrectionSettings, BeforeValidator(empty_section)] = CorrectionSettings()
    recall: Annotated[DeepRecallSettings, BeforeValidator(empty_section)] = DeepRecallSettings()
    chronicle: Annotated[ChronicleSettings, BeforeValidator(empty_section)] = ChronicleSettings()
    privacy: Annotated[PrivacySettings, BeforeValidator(empty_section)] = PrivacySettings()
    turns: Annotated[TurnsSettings, BeforeValidator(empty_section)] = TurnsSettings()
    context: Annotated[ContextSettings, BeforeValidator(empty_section)] = ContextSettings()
    mcp: Annotated[McpSettings, BeforeValidator(empty_section)] = McpSettings()
    tiers: Annotated[TiersSettings, BeforeValidator(empty_section)] = TiersSettings()
    models: Annotated[ModelsSettings, BeforeValidator(empty_section)] = ModelsSettings()
    server: Annotated[ServerSettings, BeforeValidator(empty_section)] = ServerSettings()
    logging: Annotated[LoggingSettings, BeforeValidator(empty_section)] = LoggingSettings()
    observability: Annotated[ObservabilitySettings, BeforeValidator(empty_section)] = ObservabilitySettings()

    def chosen(self, section: str) -> Choice:
        """The provider that a section names.

        Args:
            section: As in `glyphoxa.providers.registry.KINDS`.
        """
        found: Any = self
        for name in section.split("."):
            found = getattr(found, name)
        choice: Choice = found
        return choice

    def chain(self, section: str) -> tuple[Choice, ...]:
        """As `chosen`, with whoever answers when it fails, in order."""
        first = self.chosen(section)
        return (first, *getattr(first, "fallback", ()))

    @property
    def in_turn(self) -> list[Settings]:
        """These settings with the language model and the voice that are asked first, then with those in their place."""
        return [self.model_copy(update={"providers": each}) for each in in_turn(self.providers)]

    @property
    def profile(self) -> Profile:
        """Of the model that NPCs think with."""
        return profile_of(self.providers.llm)

    @property
    def context_tokens(self) -> int:
        """Of prompt and reply together, for the model that NPCs think with."""
        return self.providers.llm.context_tokens or self.profile.context_tokens

    @property
    def budgets(self) -> Budgets:
        """What a prompt may hold: as it is set, else as the profile has it."""
        context, profile = self.context, self.profile
        told = {name: getattr(context, name) for name in BUDGETS}
        return Budgets(
            **{name: getattr(profile, name) if set_to is None else set_to for name, set_to in told.items()},
            max_facts=context.max_facts,
            part_deadline_ms=context.part_deadline_ms,
            recall_deadline_ms=context.recall_deadline_ms,
        )

    @property
    def filler_after_ms(self) -> int:
        """As it is set, else as the language model needs it; 0 is never."""
        if self.turns.filler_after_ms is not None:
            return self.turns.filler_after_ms
        return _FILLER_AFTER_MS if runs_here(LLM, self.providers.llm.name) else 0

    @property
    def file(self) -> Path | None:
        """From which they were read."""
        return self._file

    @property
    def has_memory(self) -> bool:
        return self.memory.postgres_dsn != "none"

    @property
    def data_directory(self) -> Path:
        """`data_dir`, else GLYPHOXA_DATA, else the user's data directory.

        Root's is /var/lib/glyphoxa: the database server runs as an ordinary account, which cannot enter /root.
        """
        if self.data_dir is not None:
            return self.data_dir
        named = os.environ.get("GLYPHOXA_DATA")
        if named:
            return Path(named).expanduser().absolute()
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            return _SYSTEM_DATA
        return Path(platformdirs.user_data_dir("glyphoxa"))


def read_settings(path: Path | None) -> Settings:
    """Settings from a file; None is the defaults.

    Raises:
        NotFound: There is no such file.
        InvalidFile: With every mistake in it, each at its line.
    """
    if path is None:
        return Settings()
    source = read_yaml(path)
    settings = validate(source, Settings)
    settings._file = path
    problems = _contradictions(source, settings)
    if problems:
        raise InvalidFile(path, problems)
    embeddings = settings.providers.embeddings.name
    dimensions = None if embeddings == NONE else find(EMBEDDINGS, embeddings).dimensions
    if dimensions is not None and "embedding_dimensions" not in settings.memory.model_fields_set:
        memory = settings.memory.model_copy(update={"embedding_dimensions": dimensions})
        settings = settings.model_copy(update={"memory": memory})
    base = path.absolute().parent
    return settings.model_copy(
        update={
            "campaign": _from(base, settings.campaign),
            "data_dir": _from(base, settings.data_dir),
            "engines": from_folder(base, settings.engines),
            "providers": with_model_from(base, settings.providers),
            "server": server_from(base, settings.server),
            "models": settings.models.model_copy(update={"dir": _from(base, settings.models.dir)}),
        }
    )


def _from(base: Path, path: Path | None) -> Path | None:
    return None if path is None else base / path.expanduser()


def _contradictions(source: LocatedYaml, settings: Settings) -> list[Problem]:
    """Values that are fine alone and wrong together."""
    problems: list[Problem] = []
    problems += [source.problem(place, text) for place, text in turns_contradictions(settings.turns)]
    problems += [
        source.problem(("engines", name), wrong)
        for name, value in settings.engines.items()
        if (wrong := wrong_engine(name, value))
    ]
    problems += [source.problem(place, text) for place, text in mcp_contradictions(settings.mcp)]
    problems += [source.problem(place, text) for place, text in server_contradictions(settings.server)]
    problems += [source.problem(place, text) for place, text in placement_contradictions(settings.context)]
    problems += _budget_contradictions(source, settings)
    problems += [source.problem(place, text) for place, text in provider_contradictions(settings.providers)]
    problems += recall_contradictions(source, settings.recall, thinks_with=settings.providers.llm.name)
    problems += _chronicle_contradictions(source, settings)
    for section in KINDS:
        place = (*section.split("."), "name")
        problems += [source.problem(place, text) for text in _missing(section, settings)]
    return problems


def _missing(section: str, settings: Settings) -> Iterator[str]:
    """What a provider that is named cannot do without."""
    choice = settings.chosen(section)
    for setting in missing_settings(section, choice):
        yield f"{choice.name} needs {setting}"
    if choice.name == NONE:
        return
    row = find(section, choice.name)
    has_dimensions = row.dimensions is not None or "embedding_dimensions" in settings.memory.model_fields_set
    if row.kind == "embeddings" and not has_dimensions:
        yield f"{choice.name} needs memory.embedding_dimensions"
    if section == SECOND_LOOK and row.runs_here and (text := not_here(settings.providers.llm.name)):
        yield text


def _chronicle_contradictions(source: LocatedYaml, settings: Settings) -> list[Problem]:
    is_asked = settings.memory.chronicle == "llm" and runs_here(CHRONICLE, settings.chronicle.llm.name)
    text = not_here(settings.providers.llm.name) if is_asked else ""
    return [source.problem(("memory", "chronicle"), f"llm asks chronicle.llm: {text}")] if text else []


def _budget_contradictions(source: LocatedYaml, settings: Settings) -> list[Problem]:
    """A model that runs here refuses a prompt that is too long. How much another takes is not known."""
    llm, budgets = settings.providers.llm.name, settings.budgets
    told = {name: getattr(budgets, name) for name in BUDGETS}
    room, wanted = settings.context_tokens - STANDING_TOKENS, sum(told.values())
    if wanted <= room or not runs_here(LLM, llm):
        return []
    named = [("context", name) for name in BUDGETS if name in settings.context.model_fields_set]
    place = max(named, key=lambda each: told[each[-1]], default=("providers", "llm", "context_tokens"))
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in told.items())
    text = f"{'.'.join(place)}: {parts} are {wanted:,} tokens together, and {llm} has room for {room:,}"
    return [source.problem(place, text)]
