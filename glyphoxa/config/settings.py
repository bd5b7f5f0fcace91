"""Hold what a user can set, with defaults that need no key: the local models and an embedded database.

Read from one YAML file. Keys of cloud providers never stand in it: it names the environment variable that
holds them. `PROVIDERS` says which providers these settings use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import platformdirs
from pydantic import BeforeValidator, Field, create_model

from glyphoxa.chat.models import Profile, profile_by_name
from glyphoxa.config.located_yaml import InvalidFile, Wrong, read_yaml, validate
from glyphoxa.config.provider_sections import (
    ChronicleSettings,
    CorrectionSettings,
    CuratorSettings,
    DeepRecallSettings,
    ProvidersSettings,
    not_here,
)
from glyphoxa.config.sections import (
    ContextSettings,
    DsnText,
    EngineFile,
    FilePath,
    Price,
    PrivacySettings,
    Section,
    ServerSettings,
    TurnsSettings,
    or_empty,
    wrong_engine,
)
from glyphoxa.domain.budgets import (
    BEFORE_THE_TALK,
    BEHIND_THE_QUESTION,
    BUDGETS,
    CHECK_EVERY,
    CHECK_MINUTES,
    STANDING_TOKENS,
    SUMMARY_TOKENS,
    TIER_RULES,
    Budgets,
    MemoryTool,
    Placement,
    TierRule,
)
from glyphoxa.domain.campaign import BudgetTier
from glyphoxa.domain.knowledge import AUTO_ACCEPT
from glyphoxa.plugin import claims
from glyphoxa.providers.registry import (
    CHRONICLE,
    CURATOR,
    EMBEDDINGS,
    KINDS,
    LLM,
    NONE,
    RECALL,
    RERANK,
    S2S,
    SECOND_LOOK,
    STT,
    TTS,
    Choice,
    find,
    missing_settings,
    runs_here,
)

S = TypeVar("S", bound=Section)


class MemorySettings(Section):
    """
    Attributes:
        postgres_dsn: The DSN of a PostgreSQL server with pgvector. "none" turns long-term memory off. Default: an
            embedded PostgreSQL in `data_dir`.
        embedding_dimensions: Dimensions of the embeddings model. Default: those of providers.embeddings. For an
            existing database, only `glyphoxa worker reindex` changes them.
        auto_accept: Facts with at least this certainty are accepted automatically. The others need review.
        chronicle: How facts are extracted from the transcript: `rules`; `llm`, which is the rules and the model of
            `chronicle.llm`; or `none`. An open table never uses a local model for this: `glyphoxa worker` and `glyphoxa
            worker read` do. These two use the rules with `none`.
        curator: Whether the model of `curator.llm` looks up what is known and adds facts that are missing, in several
            rounds: besides `chronicle`, or alone with `none`. It also sums up the timeline. A local model is used by
            `glyphoxa worker` only.
        summaries: Who summarises a session and the timeline: `selection` keeps the most important lines; `llm` is the
            model of `chronicle.llm`. A local model is used by `glyphoxa worker` only: at a table it is the NPCs'.
        summary_views: Whose summaries of a running session the model of `summaries` writes: `all`, with a call for each
            NPC that heard other lines than the game master; or `dm`, the game master's and those of the same lines.
        judge: Who decides in the background which utterances are worth remembering: `rules`; or `llm`, which is the
            model of `chronicle.llm` with the rules as its floor. It is asked about each line of a player. Where a local
            model is not used, as at an open table, the rules decide.
        backstop: Utterances after which those that were not worth remembering are judged again, with what was said
            after them.
        check_minutes: Minutes after which an open table compares the utterances on disk with the database, and sends
            again what the database lost.
    """

    postgres_dsn: DsnText = None
    embedding_dimensions: Annotated[int, Field(ge=1, le=2000)] = 384
    auto_accept: Annotated[float, Field(ge=0.0, le=1.0)] = AUTO_ACCEPT
    chronicle: Literal["rules", "llm", "none"] = "rules"
    curator: bool = False
    summaries: Literal["selection", "llm"] = "selection"
    summary_views: Literal["all", "dm"] = "all"
    judge: Literal["rules", "llm"] = "rules"
    backstop: Annotated[int, Field(ge=1, le=1000)] = CHECK_EVERY
    check_minutes: Annotated[int, Field(ge=1, le=1440)] = CHECK_MINUTES

    @property
    def asks_a_model(self) -> bool:
        """Return whether the chronicle asks the model of `chronicle.llm`."""
        return "llm" in (self.chronicle, self.judge, self.summaries)


class TiersSettings(Section):
    """Words of a question that make an NPC search its memory longer, up to its `budget_tier`. They are added to the
    built-in words for English and German.

    Attributes:
        deep_words: Phrases that request tier DEEP, such as "think carefully".
        standard_words: Phrases that request tier STANDARD, such as "remember".
        fast_tools, standard_tools, deep_tools: Memory tools that an NPC's model sees in an answer of this tier.
    """

    deep_words: tuple[str, ...] = ()
    standard_words: tuple[str, ...] = ()
    fast_tools: tuple[MemoryTool, ...] = TIER_RULES["FAST"].tools
    standard_tools: tuple[MemoryTool, ...] = TIER_RULES["STANDARD"].tools
    deep_tools: tuple[MemoryTool, ...] = TIER_RULES["DEEP"].tools

    @property
    def rules(self) -> Mapping[BudgetTier, TierRule]:
        """Return the limits of each tier, with its tools as set."""
        tools = {"FAST": self.fast_tools, "STANDARD": self.standard_tools, "DEEP": self.deep_tools}
        return {tier: replace(rule, tools=tools[tier]) for tier, rule in TIER_RULES.items()}


class ModelsSettings(Section):
    """
    Attributes:
        dir: Directory of local models. Default: the user's cache directory.
    """

    dir: FilePath | None = None


class LoggingSettings(Section):
    """
    Attributes:
        level: Lowest level that is logged.
        content: Allow logs to contain speech. Ask everybody at the table before you turn it on.
        form: `text` for people; `json` for programs, with one object per line.
    """

    level: Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    content: bool = False
    form: Literal["text", "json"] = "text"

    def recipients(self) -> Mapping[str, Collection[str]]:
        return {"logging.content": ["the logs"] if self.content else ()}


class Settings(Section):
    """All settings of Glyphoxa itself; `settings_type` adds the sections of plug-ins.

    Attributes:
        campaign: The campaign file. Relative paths in a settings file start from the directory of that file.
        data_dir: Directory of the database and of utterances that are not in it yet. Default: the directory in
            GLYPHOXA_DATA, otherwise the user's data directory, which is /var/lib/glyphoxa for root.
        prices: Prices by the name of the model. They replace the built-in ones.
        engines: Your own pipelines, as `./file.py:function`. The key is the name that an NPC's `engine` uses; `ear` is
            the ear of every player.
    """

    campaign: FilePath | None = None
    data_dir: FilePath | None = None
    engines: Annotated[dict[str, EngineFile], BeforeValidator(or_empty)] = Field(default_factory=dict)
    memory: MemorySettings = MemorySettings()
    providers: ProvidersSettings = ProvidersSettings()
    correction: CorrectionSettings = CorrectionSettings()
    recall: DeepRecallSettings = DeepRecallSettings()
    chronicle: ChronicleSettings = ChronicleSettings()
    curator: CuratorSettings = CuratorSettings()
    privacy: PrivacySettings = PrivacySettings()
    turns: TurnsSettings = TurnsSettings()
    context: ContextSettings = ContextSettings()
    tiers: TiersSettings = TiersSettings()
    models: ModelsSettings = ModelsSettings()
    prices: Annotated[dict[str, Price], BeforeValidator(or_empty)] = Field(default_factory=dict)
    server: ServerSettings = ServerSettings()
    logging: LoggingSettings = LoggingSettings()

    @property
    def sections(self) -> Mapping[str, Section]:
        """Return all sections by name."""
        return {name: value for name, value in self if isinstance(value, Section)}

    def section(self, kind: type[S]) -> S:
        """Return the section that a plug-in added; with its defaults if no settings file was read."""
        return next((each for each in self.sections.values() if isinstance(each, kind)), kind())

    def recipients(self) -> Mapping[str, Collection[str]]:
        found: dict[str, Collection[str]] = {"engines": self.engines}
        for section in self.sections.values():
            found |= section.recipients()
        return found

    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        return {name: port for section in self.sections.values() for name, port in section.ports().items()}

    def contradictions(self) -> Wrong:
        for name, section in self.sections.items():
            yield from (((name, *place), text) for place, text in section.contradictions())
        for name, value in self.engines.items():
            if wrong := wrong_engine(name, value):
                yield ("engines", name), wrong
        if (role := self.context.facts_role) != "system" and self.facts_at.depth is None:
            text = f"context.facts_role {role} needs context.facts_position depth, or context.facts_depth, 0 to 9999"
            yield ("context", "facts_role"), text
        yield from _over_budget(self)
        yield from _not_local(self)
        for kind in KINDS:
            yield from (((*kind.split("."), "name"), text) for text in _missing(kind, self))

    def chosen(self, section: str) -> Choice:
        """Return the provider that a section names.

        Args:
            section: A key of `glyphoxa.providers.registry.KINDS`.
        """
        found: Any = self
        for name in section.split("."):
            found = getattr(found, name)
        choice: Choice = found
        return choice

    def chain(self, section: str) -> tuple[Choice, ...]:
        """Return the provider that a section names, then its fallbacks in order."""
        first = self.chosen(section)
        return (first, *getattr(first, "fallback", ()))

    @property
    def reads_talk(self) -> bool:
        """Return whether a table has what is said read in the background."""
        curates = self.memory.curator and not runs_here(CURATOR, self.curator.llm.name)
        return curates or self.memory.chronicle != "none"

    @property
    def in_turn(self) -> list[Settings]:
        """Return these settings for the language model and voice that are asked first, then for each fallback.

        They have no fallbacks. A voice is changed only after every language model was tried with it.
        """
        providers, llm, tts = self.providers, self.providers.llm, self.providers.tts
        thinkers = [llm.model_copy(update={"fallback": ()})]
        thinkers += [
            llm.model_copy(update={**each.model_dump(), "fallback": (), "context_tokens": None})
            for each in llm.fallback
        ]
        speakers = [tts.model_copy(update={"fallback": ()})]
        speakers += [tts.model_copy(update={**each.model_dump(), "fallback": ()}) for each in tts.fallback]
        chain = [providers.model_copy(update={"llm": one, "tts": voice}) for voice in speakers for one in thinkers]
        return [self.model_copy(update={"providers": each}) for each in chain]

    @property
    def profile(self) -> Profile:
        """Return the profile of the model that NPCs think with."""
        llm = self.providers.llm
        row = find(LLM, llm.name)
        return row.profile or profile_by_name(llm.model or row.model)

    @property
    def context_tokens(self) -> int:
        """Return the tokens of prompt and reply together for the model that NPCs think with."""
        return self.providers.llm.context_tokens or self.profile.context_tokens

    @property
    def budgets(self) -> Budgets:
        """Return what a prompt may hold: as set, else as the profile has it."""
        context, profile = self.context, self.profile
        told = {name: getattr(context, name) for name in BUDGETS}
        budgets = {name: getattr(profile, name) if set_to is None else set_to for name, set_to in told.items()}
        at_most = min(SUMMARY_TOKENS, budgets["history_tokens"] // 4)
        return Budgets(
            **budgets,
            summary_tokens=at_most if context.summary_tokens is None else context.summary_tokens,
            glossary_tokens=max(0, self.context_tokens - STANDING_TOKENS - sum(budgets.values())),
            window_tokens=max(self.context_tokens - self.providers.llm.max_tokens, self.context_tokens // 2),
            max_facts=context.max_facts,
            recall_deadline_ms=context.recall_deadline_ms,
        )

    @property
    def facts_at(self) -> Placement:
        """Return where in the prompt recalled facts are: as set, else as the profile has it."""
        depth = self.context.facts_depth
        position = self.context.facts_position or ("depth" if depth is not None else self.profile.facts_position)
        if position == "question":
            return BEHIND_THE_QUESTION
        return Placement(BEFORE_THE_TALK if depth is None else depth, self.context.facts_role)

    @property
    def has_memory(self) -> bool:
        return self.memory.postgres_dsn != "none"

    @property
    def data_directory(self) -> Path:
        """Return `data_dir`, else GLYPHOXA_DATA, else the user's data directory.

        Root's is /var/lib/glyphoxa: the database server runs as an ordinary account, which cannot enter /root.
        """
        if self.data_dir is not None:
            return self.data_dir
        named = os.environ.get("GLYPHOXA_DATA")
        if named:
            return Path(named).expanduser().absolute()
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            return Path("/var/lib/glyphoxa")
        return Path(platformdirs.user_data_dir("glyphoxa"))


HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that are this machine."""

PROVIDERS: Final[Mapping[str, tuple[str, Callable[[Settings], bool]]]] = {
    STT: (STT, lambda _: True),
    LLM: (LLM, lambda _: True),
    TTS: (TTS, lambda _: True),
    S2S: (S2S, lambda _: True),
    EMBEDDINGS: (EMBEDDINGS, lambda settings: settings.has_memory),
    SECOND_LOOK: (SECOND_LOOK, lambda _: True),
    RECALL: (RECALL, lambda settings: settings.has_memory and settings.recall.asks_a_model),
    RERANK: (RERANK, lambda settings: settings.has_memory and settings.recall.searches_by == "hybrid_rerank"),
    "memory.chronicle": (CHRONICLE, lambda settings: settings.has_memory and settings.memory.chronicle == "llm"),
    "memory.curator": (CURATOR, lambda settings: settings.has_memory and settings.memory.curator),
    "memory.judge": (CHRONICLE, lambda settings: settings.has_memory and settings.memory.judge == "llm"),
    "memory.summaries": (CHRONICLE, lambda settings: settings.memory.summaries == "llm"),
}
"""Settings that have a provider read what players say, or what is made of it: each with the section that names the
provider, and whether it is on.

The consent text of players and `glyphoxa config check` follow this table and `Section.recipients`, which names all
others. `docs/privacy.md` names each setting.
"""


def is_asked(section: str, settings: Settings) -> bool:
    """Return whether these settings use the provider of a section."""
    return any(is_on(settings) for named_in, is_on in PROVIDERS.values() if named_in == section)


def host_of(url: str | None) -> str:
    """Return the host of an address; "" without one, or if it cannot be read."""
    try:
        return (urlsplit(url).hostname or "") if url else ""
    except ValueError:
        return ""


@cache
def settings_type() -> type[Settings]:
    """Return the class of all settings, with the sections of plug-ins.

    Raises:
        BrokenPlugin: A section cannot be loaded, has no defaults, or has a name that is taken.
    """
    sections: dict[str, Any] = {}
    for name, (plugin, reference) in claims(
        "settings", dict.fromkeys((*dir(Settings), *Settings.model_fields), "")
    ).items():
        if plugin is not None:
            kind = plugin.load(reference, kind=type)
            with plugin.named_in_errors(reference):
                if not issubclass(kind, Section):
                    raise TypeError(f"it is no subclass of {Section.__module__}.Section")
                sections[name] = (kind, kind())
    return create_model("Settings", __base__=Settings, __doc__=Settings.__doc__, **sections)


def read_settings(path: Path | None) -> Settings:
    """Read settings from a file; None means the defaults.

    Raises:
        NotFound: There is no such file.
        InvalidFile: With every mistake in it, each at its line.
    """
    if path is None:
        return Settings()
    source = read_yaml(path)
    settings = validate(source, settings_type(), folder=path.absolute().parent)
    problems = [source.problem(place, text) for place, text in settings.contradictions()]
    if problems:
        raise InvalidFile(path, problems)
    embeddings = settings.providers.embeddings.name
    dimensions = None if embeddings == NONE else find(EMBEDDINGS, embeddings).dimensions
    if dimensions is not None and "embedding_dimensions" not in settings.memory.model_fields_set:
        memory = settings.memory.model_copy(update={"embedding_dimensions": dimensions})
        settings = settings.model_copy(update={"memory": memory})
    return settings


def _missing(section: str, settings: Settings) -> Iterator[str]:
    """Yield what the named provider cannot do without."""
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


def _not_local(settings: Settings) -> Wrong:
    """`local` is the model that NPCs think with, which has to run here."""
    text, recall = not_here(settings.providers.llm.name), settings.recall
    if not text:
        return
    if recall.method in ("hybrid_llm", "llm") and runs_here(RECALL, recall.llm.name):
        yield ("recall", "method"), f"recall.method {recall.method} needs recall.llm: {text}"
    for name in ("chronicle", "judge", "summaries"):
        if getattr(settings.memory, name) == "llm" and runs_here(CHRONICLE, settings.chronicle.llm.name):
            yield ("memory", name), f"llm needs chronicle.llm: {text}"
    if settings.memory.curator and runs_here(CURATOR, settings.curator.llm.name):
        yield ("memory", "curator"), f"it needs curator.llm: {text}"


def _over_budget(settings: Settings) -> Wrong:
    """A model that runs here refuses a prompt that is too long. How much another takes is not known."""
    llm, budgets = settings.providers.llm.name, settings.budgets
    told = {name: getattr(budgets, name) for name in BUDGETS}
    room, wanted = settings.context_tokens - STANDING_TOKENS, sum(told.values())
    if wanted <= room or not runs_here(LLM, llm):
        return
    named = [("context", name) for name in BUDGETS if name in settings.context.model_fields_set]
    place = max(named, key=lambda each: told[each[-1]], default=("providers", "llm", "context_tokens"))
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in told.items())
    text = f"{'.'.join(place)}: {parts}: together {wanted:,} tokens, but {llm} has room for {room:,}"
    yield place, text
