"""Define the sections of the settings file, with what all sections have in common.

Engines run programs. The settings name them, and a campaign file may not: it is passed on and opened by others. The
settings belong to the machine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import CoreSchema, core_schema

from glyphoxa.config.located_yaml import Wrong, short, written_as
from glyphoxa.domain.budgets import BARGE_IN_MS, GAP_MS, Position, Role
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.registry import NONE, Kind, names


class Section(BaseModel):
    # What a user wrote is shown by whoever knows whether it may be: it can be a password.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _or_defaults(cls, value: object) -> object:
        return or_empty(value)

    def contradictions(self) -> Wrong:
        """Yield values that are valid alone and wrong together, each with its path in this section."""
        yield from ()

    def recipients(self) -> Mapping[str, Collection[str]]:
        """Return who receives what players say, by the setting that sends it to them; nobody if that is off."""
        return {}

    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        """Return host and port on which a served table listens, by the setting of the port; None if it does not."""
        return {}


def or_empty(value: object) -> object:
    """`server:` with nothing below it means its defaults."""
    return {} if value is None else value


def from_folder(path: Path, info: ValidationInfo) -> Path:
    """Return a path of a settings file: a relative one counts from the folder of that file."""
    return info.context["folder"] / path.expanduser() if info.context else path


FilePath = Annotated[Path, AfterValidator(from_folder)]


class NameOf:
    """A text that is the name of a provider of that kind; `none` too, where one may be missing."""

    def __init__(self, kind: Kind, *, or_none: bool = False) -> None:
        self.names = (*((NONE,) if or_none else ()), *names(kind))

    def __get_pydantic_core_schema__(self, *_: Any) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def _variable(value: object) -> object:
    """Raises without the value: people paste their key here."""
    if value is None or (isinstance(value, str) and VARIABLE.fullmatch(value)):
        return value
    raise ValueError("must be the name of an environment variable, such as OPENAI_API_KEY, and not the key itself")


Variable = Annotated[str, BeforeValidator(_variable)]
"""The name of an environment variable."""
KeyVariable = Annotated[str | None, BeforeValidator(_variable)]


class ProviderSettings(Section):
    """
    Attributes:
        name: The provider.
        model: The provider's model. Default: the one in the list of providers.
        base_url: Another address than the provider's own, such as a proxy, a region or your own server.
        api_key_env: The environment variable that holds the key. Default: the provider's usual one.
    """

    name: str
    model: str | None = None
    base_url: str | None = None
    api_key_env: KeyVariable = None


_Usd = Annotated[float, Field(ge=0, le=10_000)] | None


class Price(Section):
    """Prices of a model, in USD. `glyphoxa config check` uses them to estimate the cost of an evening.

    Attributes:
        input: A million tokens of text that the model reads.
        cached_input: A million of these tokens that are in the provider's cache. Default: as `input`.
        output: A million tokens of text that the model writes.
        minute: A minute of sound that is recognised, or that speech to speech answers with.
        characters: 1,000 characters of text that a voice speaks.
    """

    input: _Usd = None
    cached_input: _Usd = None
    output: _Usd = None
    minute: _Usd = None
    characters: _Usd = None


def _unset(value: object) -> object:
    """`postgres_dsn: ""` and `postgres_dsn:` mean the same."""
    value = value.strip() if isinstance(value, str) else value
    return None if value == "" else value


def _readable(dsn: str | None) -> str | None:
    if dsn is not None and dsn != "none":
        try:
            return Dsn.read(dsn).text
        except InvalidInput as error:
            raise ValueError(str(error)) from None
    return dsn


DsnText = Annotated[str | None, BeforeValidator(_unset), AfterValidator(_readable), Field(repr=False)]


class TurnsSettings(Section):
    """When a turn ends, and how long an answer may take. All times are milliseconds.

    Attributes:
        pause_ms: Silence after which an answer is prepared.
        complete_ms: Silence after which a turn ends if it is a question or a long sentence; at most `end_of_turn_ms`.
        end_of_turn_ms: Silence after which any other turn ends.
        unfinished_ms: Silence after which a turn ends if it is short or sounds unfinished ("and then ...").
        discarded_tokens: Tokens of prepared answers that may be discarded for one question because its words changed.
            With 0, no answer is prepared before the end of the turn.
        reply_deadline_ms: Longest time from the end of a turn to the first sound of the reply. A later reply has the
            outcome `timed_out`.
        filler_after_ms: Silence after which an NPC makes a short sound in character; 0 turns it off.
        gap_ms: Silence between the replies of two NPCs, varied by a sixth. No extra gap is added after a player's turn.
        barge_in_ms: How long a player must speak to interrupt an NPC. With 0, only recognised words interrupt it: use
            this in a room where microphones pick up the NPCs.
        npc_to_npc: How many replies in a row NPCs may give to each other when one calls another by name. With 0, they
            answer only players.
        eagerness: How readily NPCs answer words that may not be meant for them: `quiet`, `balanced` or `eager`. With
            `balanced`, an answer that nobody wanted counts as much as three questions that nobody answered.
    """

    pause_ms: Annotated[int, Field(ge=50, le=2000)] = 200
    complete_ms: Annotated[int, Field(ge=50, le=5000)] = 200
    end_of_turn_ms: Annotated[int, Field(ge=50, le=5000)] = 480
    unfinished_ms: Annotated[int, Field(ge=50, le=10_000)] = 1_200
    discarded_tokens: Annotated[int, Field(ge=0, le=1_000_000)] = 8_000
    reply_deadline_ms: Annotated[int, Field(ge=500, le=120_000)] = 15_000
    filler_after_ms: Annotated[int, Field(ge=0, le=10_000)] = 1_000
    gap_ms: Annotated[int, Field(ge=0, le=2000)] = GAP_MS
    barge_in_ms: Annotated[int, Field(ge=0, le=2000)] = BARGE_IN_MS
    npc_to_npc: Annotated[int, Field(ge=0, le=10)] = 0
    eagerness: Literal["quiet", "balanced", "eager"] = "balanced"

    def contradictions(self) -> Wrong:
        stated = [("complete_ms", "end_of_turn_ms")] * ("complete_ms" in self.model_fields_set)
        for shorter, longer in (*pairwise(("pause_ms", "end_of_turn_ms", "unfinished_ms")), *stated):
            least, found = getattr(self, shorter), getattr(self, longer)
            if found < least:
                yield (longer,), f"turns.{longer} ({found}) must not be less than turns.{shorter} ({least})"


class ContextSettings(Section):
    """Contents of the prompt for one turn.

    Attributes:
        recall_deadline_ms: Deadline for memory: earlier utterances and changes of the world. What is later is not in
            the answer.
        identity_tokens: Budget for what the NPC knows about itself, in tokens of 4 characters. Default of this and of
            the other budgets: the model's profile.
        scene_tokens: Budget for the NPC's location and who is present.
        bible_tokens: Budget for the campaign's bible. The glossary takes what the model's window leaves.
        past_tokens: Budget for the summaries of earlier sessions.
        facts_tokens: Budget for what the NPC recalls.
        max_facts: Most sentences that are recalled. Default: one for each 22 tokens of `facts_tokens`.
        facts_position: Where recalled sentences are: in the message of the question, after it, or in a message of their
            own at `facts_depth`. Default: `depth` if `facts_depth` is set, otherwise the model's profile. `question`
            keeps the prompt cache of a hosted model valid. Speech-to-speech NPCs always use `question`.
        facts_depth: How many messages of the conversation follow that message. Default: 9999, before the conversation.
        facts_role: Role of that message. With `system`, recalled utterances follow it in a message of the user.
        history_tokens: Budget for this session's conversation with its summary. When its lines take three quarters,
            a summary replaces the older ones.
        summary_tokens: Budget for that summary. Default: 200, but at most a quarter of `history_tokens`.
        memory_interval: Rounds (a player's words and the answer) after which the summary is brought up to date. A
            campaign may set its own.
        guard_secrets: Block sentences that reveal one of the NPC's own secrets. With false, the prompt still marks
            secrets as such, and the model decides.
    """

    recall_deadline_ms: Annotated[int, Field(ge=1, le=5000)] = 50
    identity_tokens: Annotated[int, Field(ge=20, le=4_000)] | None = None
    scene_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    bible_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    past_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    facts_tokens: Annotated[int, Field(ge=0, le=20_000)] | None = None
    max_facts: Annotated[int, Field(ge=0, le=500)] | None = None
    facts_position: Position | None = None
    facts_depth: Annotated[int, Field(ge=0, le=9999)] | None = None
    facts_role: Role = "system"
    history_tokens: Annotated[int, Field(ge=0, le=100_000)] | None = None
    summary_tokens: Annotated[int, Field(ge=0, le=2_000)] | None = None
    memory_interval: Annotated[int, Field(ge=1, le=50)] = 4
    guard_secrets: bool = True

    def contradictions(self) -> Wrong:
        if self.facts_position == "question" and self.facts_depth is not None:
            yield ("facts_depth",), f"context.facts_depth {self.facts_depth} needs context.facts_position depth"
        if self.facts_depth == 0 and self.facts_role == "assistant":
            text = "context.facts_role assistant at context.facts_depth 0 would look like the NPC's own answer"
            yield ("facts_role",), f"{text}; valid: system, user"


# Engines of the user's own: files with Python.

_ENGINE: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FILE: Final = re.compile(r"(.+\.py):([A-Za-z_][A-Za-z0-9_]*)")
NO_MOUTHS: Final = ("ear", "host", "live_check", "webrtc")
"""Installed pipelines that are not an NPC's."""
_TAKEN_ENGINES: Final = ("cascaded", "s2s", "host", "live_check", "webrtc")


def not_a_name(engine: str) -> str:
    """Return why a campaign file cannot name such an engine; "" if it can."""
    if not re.search(r"[/\\:]|\.py\b", engine):
        return ""
    return (
        f"{short(engine)!r} is a Python file, which a campaign file cannot name: add it to the settings "
        "(`engines: {loud: ./loud.py:build}`), and write its name here (`engine: loud`)"
    )


def wrong_engine(name: str, value: str) -> str:
    """Return why the settings cannot name such an engine; "" if they can."""
    if name in _TAKEN_ENGINES:
        return f"engines: {name!r} is a built-in engine; choose another name"
    if not _ENGINE.fullmatch(name):
        return f"engines: {short(name)!r} is not a valid name: use lower-case letters, digits, - and _, such as `loud`"
    if not _FILE.fullmatch(value):
        return f"engines.{name}: {short(value)!r} is not a file and a function; valid: `./loud.py:build`"
    return ""


def _engine_from_folder(value: str, info: ValidationInfo) -> str:
    found = _FILE.fullmatch(value)
    return value if found is None or not info.context else f"{from_folder(Path(found[1]), info)}:{found[2]}"


EngineFile = Annotated[str, AfterValidator(_engine_from_folder)]
"""A file and a function, or a value that `wrong_engine` reports."""


def file_and_function(value: str) -> tuple[Path, str]:
    """Split a value that `wrong_engine` accepts."""
    file, _, function = value.rpartition(":")
    return Path(file), function


def missing_files(engines: Mapping[str, str]) -> list[str]:
    """Return which files of engines are missing."""
    return [
        f"{name}: no such file: {file}"
        for name, value in engines.items()
        if not (file := file_and_function(value)[0]).is_file()
    ]


# The page.

IceUrl = Annotated[str, written_as(r"^(stuns?|turns?):[^\s/?#]+(\?transport=(udp|tcp))?$", "turn:turn.example:3478")]


class IceServerSettings(Section):
    """
    Attributes:
        urls: Such as `stun:stun.example:3478` or `turn:turn.example:3478?transport=udp`.
        secret_env: The environment variable with the secret that the TURN server shares with Glyphoxa (coturn's
            `static-auth-secret`). Each player gets a password made from it, which is valid for a day.
    """

    urls: Annotated[tuple[IceUrl, ...], Field(min_length=1)]
    secret_env: KeyVariable = None


def _network(text: str) -> str:
    ip_network(text)
    return text


Proxy = Annotated[str, AfterValidator(_network)]
"""An address or a network."""


class ServerSettings(Section):
    """The page of `glyphoxa serve`.

    Attributes:
        host: Address to listen on. The default is reachable from this machine only.
        port: Port to listen on; 0 takes any free port.
        public_url: Address that players open, if a reverse proxy with https is in front: `https://table.example/`.
        tls_cert: Certificate with its chain (PEM). With it, the page is served over https.
        tls_key: Private key of the certificate (PEM).
        tls_self_signed: Serve over https with a generated certificate, which is kept in the data directory. Browsers
            warn about it once.
        trusted_proxies: Addresses or networks (`10.0.0.0/8`) of reverse proxies whose `X-Forwarded-For` is believed.
        ice_servers: STUN and TURN servers for sound between networks. Without them, sound works within one network,
            and for browsers that can reach this machine's address directly.
        close_after_minutes: End the session and close the table after nobody has had a seat for this long. Default:
            never.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 7860
    public_url: Annotated[str, written_as(r"^https?://[^/?#\s]+/?$", "https://table.example")] | None = None
    tls_cert: FilePath | None = None
    tls_key: FilePath | None = None
    tls_self_signed: bool = False
    trusted_proxies: tuple[Proxy, ...] = ("127.0.0.1", "::1")
    ice_servers: tuple[IceServerSettings, ...] = ()
    close_after_minutes: Annotated[int, Field(ge=1)] | None = None

    def ports(self) -> Mapping[str, tuple[str, int | None]]:
        return {"server.port": (self.host, self.port)}

    def recipients(self) -> Mapping[str, Collection[str]]:
        return {"server.ice_servers": [url for each in self.ice_servers for url in each.urls if url.startswith("turn")]}

    def contradictions(self) -> Wrong:
        for n, server in enumerate(self.ice_servers):
            if server.secret_env is None and any(url.startswith("turn") for url in server.urls):
                yield ("ice_servers", n), "a TURN server needs a password: set secret_env"


class PrivacySettings(Section):
    """How long transcripts are kept.

    Attributes:
        retain_days: Erase utterances older than this, with everything that depends only on them, when a table opens
            and once a day while `glyphoxa worker` runs. Default: keep them.
    """

    retain_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
