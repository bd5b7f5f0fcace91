"""Define the sections of the settings file, with what all sections have in common.

Engines and servers of tools run programs. The settings name them, and a campaign file may not: it is passed on and
opened by others. The settings belong to the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import CoreSchema, core_schema

from glyphoxa.config.located_yaml import Wrong, short
from glyphoxa.context.composition import AT_MOST_LATER_MS
from glyphoxa.context.prompt import Placement, Role
from glyphoxa.domain.dsn import Dsn
from glyphoxa.domain.errors import InvalidInput
from glyphoxa.providers.building import NONE, names
from glyphoxa.providers.rows import Kind
from glyphoxa.turns.barge_in import AFTER_MS
from glyphoxa.turns.effects import GAP_MS


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


def or_empty(value: object) -> object:
    """`server:` with nothing below it means its defaults."""
    return {} if value is None else value


def _from_folder(path: Path, info: ValidationInfo) -> Path:
    return info.context["folder"] / path.expanduser() if info.context else path


FilePath = Annotated[Path, AfterValidator(_from_folder)]
"""In a settings file, a relative path counts from the folder of that file."""


class NameOf:
    """A text that is the name of a provider of that kind; `none` too, where one may be missing."""

    def __init__(self, kind: Kind, *, or_none: bool = False) -> None:
        self.names = (*((NONE,) if or_none else ()), *names(kind))

    def __get_pydantic_core_schema__(self, *_: Any) -> CoreSchema:
        return core_schema.literal_schema(list(self.names))


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def _variable(value: object) -> object:
    """Raises without the value: people paste their key here."""
    if value is None or (isinstance(value, str) and _VARIABLE.fullmatch(value)):
        return value
    raise ValueError("must be the name of an environment variable, such as OPENAI_API_KEY, and not the key itself")


KeyVariable = Annotated[str | None, BeforeValidator(_variable)]


class ProviderSettings(Section):
    """
    Attributes:
        name: Which provider.
        model: Left out: the provider's usual one.
        base_url: Another address than the provider's own: a proxy, a regional one, a server of your own.
        api_key_env: The environment variable with the key; left out, the provider's usual one.
    """

    name: str
    model: str | None = None
    base_url: str | None = None
    api_key_env: KeyVariable = None


def _unset(value: object) -> object:
    """`postgres_dsn: ""` and `postgres_dsn:` mean the same."""
    return None if value == "" else value


def _readable(dsn: str | None) -> str | None:
    if dsn is not None and dsn != "none":
        try:
            Dsn.read(dsn)
        except InvalidInput as error:
            raise ValueError(str(error)) from None
    return dsn


DsnText = Annotated[str | None, BeforeValidator(_unset), AfterValidator(_readable), Field(repr=False)]


class TurnsSettings(Section):
    """When somebody has finished, and how long an answer may take. Milliseconds.

    Attributes:
        pause_ms: Silence after which an answer is prepared.
        end_of_turn_ms: Silence after which the speaker is taken to have finished.
        unfinished_ms: The same, when the words so far sound unfinished ("and then ...").
        reply_deadline_ms: From when a reply may be heard to its first sound; later is `timed_out`.
        filler_after_ms: A short sound in character when nothing is heard after that; 0 is never. Left out, 1500 with a
            language model on this machine, which may be slow, else never.
        gap_ms: Silence between two NPCs, a sixth more or less. Behind a player an NPC leaves none: the end of their
            turn was waited for.
        barge_in_ms: A player's voice that goes on for so long silences an NPC until what it says is known; 0: words
            alone do, for a room in which microphones hear the NPCs.
        npc_to_npc: So many answers in a row may NPCs give to each other, where one calls another by name; 0: they
            answer players alone.
    """

    pause_ms: Annotated[int, Field(ge=50, le=2000)] = 200
    end_of_turn_ms: Annotated[int, Field(ge=50, le=5000)] = 480
    unfinished_ms: Annotated[int, Field(ge=50, le=10_000)] = 900
    reply_deadline_ms: Annotated[int, Field(ge=500, le=120_000)] = 15_000
    filler_after_ms: Annotated[int, Field(ge=0, le=10_000)] | None = None
    gap_ms: Annotated[int, Field(ge=0, le=2000)] = GAP_MS
    barge_in_ms: Annotated[int, Field(ge=0, le=2000)] = AFTER_MS
    npc_to_npc: Annotated[int, Field(ge=0, le=10)] = 0

    def contradictions(self) -> Wrong:
        for shorter, longer in pairwise(("pause_ms", "end_of_turn_ms", "unfinished_ms")):
            least, found = getattr(self, shorter), getattr(self, longer)
            if found < least:
                yield (longer,), f"turns.{longer} ({found}) must not be less than turns.{shorter} ({least})"


class ContextSettings(Section):
    """What an NPC has in mind for one turn.

    Attributes:
        part_deadline_ms: For identity and facts each; a late part is left out.
        recall_deadline_ms: For recall of past talk.
        identity_tokens: Of what an NPC knows of itself, tokens of 4 characters each. Left out, this and the other
            budgets are those of the model's profile.
        scene_tokens: Of where it is, and with whom.
        bible_tokens: Of the campaign's bible and coined words.
        past_tokens: Of the summaries of earlier sessions.
        facts_tokens: Of what an NPC recalls.
        max_facts: Sentences of it; left out, one for each 22 tokens.
        facts_depth: It stands in a message of its own, with so many messages of talk behind it. Left out: in the
            message of the question, behind it. An NPC with engine s2s has it there always.
        facts_role: Of that message. system: what was said stands behind it in one of the user's.
        history_tokens: Of recent talk; the oldest half is cut when there is more.
        guard_secrets: No sentence that tells one of the NPC's own secrets is said. false: the prompt still marks them
            to be kept, and the model decides.
    """

    part_deadline_ms: Annotated[int, Field(ge=1, le=5000)] = 50
    recall_deadline_ms: Annotated[int, Field(ge=1, le=5000)] = 50
    identity_tokens: Annotated[int, Field(ge=20, le=4_000)] | None = None
    scene_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    bible_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    past_tokens: Annotated[int, Field(ge=0, le=4_000)] | None = None
    facts_tokens: Annotated[int, Field(ge=0, le=20_000)] | None = None
    max_facts: Annotated[int, Field(ge=0, le=500)] | None = None
    facts_depth: Annotated[int, Field(ge=0, le=9999)] | None = None
    facts_role: Role = "system"
    history_tokens: Annotated[int, Field(ge=0, le=100_000)] | None = None
    guard_secrets: bool = True

    @property
    def facts_at(self) -> Placement:
        """Return where in the prompt the facts stand."""
        return Placement(self.facts_depth, self.facts_role)

    @property
    def deadline_ms(self) -> int:
        """Return the deadline of a context whose parts miss theirs."""
        return max(self.part_deadline_ms, self.recall_deadline_ms) + AT_MOST_LATER_MS

    def contradictions(self) -> Wrong:
        role = self.facts_role
        if self.facts_depth is None and role != "system":
            text = f"context.facts_role {role} is of a message of its own: set context.facts_depth, 0 to 9999, as well"
            yield ("facts_role",), text
        elif self.facts_depth == 0 and role == "assistant":
            text = "context.facts_role assistant at context.facts_depth 0 would be what the NPC has answered already"
            yield ("facts_role",), f"{text}; valid: system, user"


# Engines of the user's own: files with Python.

_ENGINE: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FILE: Final = re.compile(r"(.+\.py):([A-Za-z_][A-Za-z0-9_]*)")
NO_MOUTHS: Final = ("ear", "host", "webrtc")
"""Installed pipelines that are not an NPC's."""
_TAKEN_ENGINES: Final = ("cascaded", "s2s", *NO_MOUTHS)


def not_a_name(engine: str) -> str:
    """Return why a campaign file cannot name such an engine; "" if it can."""
    if not re.search(r"[/\\:]|\.py\b", engine):
        return ""
    return (
        f"{short(engine)!r} is a file, and a campaign file runs none: name it in the settings "
        "(`engines: {loud: ./loud.py:build}`), and write its name here (`engine: loud`)"
    )


def wrong_engine(name: str, value: str) -> str:
    """Return why the settings cannot name such an engine; "" if they can."""
    if name in _TAKEN_ENGINES:
        return f"engines: {name!r} is an engine that is there already; give yours another name"
    if not _ENGINE.fullmatch(name):
        return f"engines: {short(name)!r} is no name: lower-case letters, digits, - and _, such as `loud`"
    if not _FILE.fullmatch(value):
        return f"engines.{name}: {short(value)!r} names no function of a file; valid: `./loud.py:build`"
    return ""


def file_and_function(value: str) -> tuple[Path, str]:
    """Split a value that `wrong_engine` accepts."""
    file, _, function = value.rpartition(":")
    return Path(file), function


def from_folder(base: Path, engines: Mapping[str, str]) -> dict[str, str]:
    """Return engines whose paths count from `base`."""
    found: dict[str, str] = {}
    for name, value in engines.items():
        file, function = file_and_function(value)
        found[name] = f"{base / file.expanduser()}:{function}"
    return found


def missing_files(engines: Mapping[str, str]) -> list[str]:
    """Return which files of engines are missing."""
    return [
        f"{name}: there is no file {file}"
        for name, value in engines.items()
        if not (file := file_and_function(value)[0]).is_file()
    ]


# Servers of tools for NPCs, and the page.

_TOOL_SERVER: Final = re.compile(r"[a-z][a-z0-9]{0,23}")
_TAKEN_SERVER: Final = "memory"


class McpServerSettings(Section):
    """A server of tools by the Model Context Protocol, under a name of its own; see [MCP](mcp.md). It has a `command`
    or a `url`.

    Attributes:
        command: The program to start and its arguments.
        env: Environment variables that the program is given besides PATH, HOME and the like.
        url: Where it is served over streamable HTTP.
        token_env: The environment variable with the token to send there.
        tools: Its only tools that are offered; left out, all.
        npcs: The ids of the NPCs that have them; left out, all.
        usual_ms: What a call usually takes. An NPC whose tier allows less time does not have its tools.
    """

    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    url: str | None = None
    token_env: KeyVariable = None
    tools: tuple[str, ...] | None = None
    npcs: tuple[str, ...] | None = None
    usual_ms: Annotated[int, Field(ge=1, le=60_000)] = 300


class McpSettings(Section):
    """
    Attributes:
        servers: Servers whose tools NPCs are given, by name; each is a block as below.
    """

    servers: Annotated[dict[str, McpServerSettings], BeforeValidator(or_empty)] = Field(default_factory=dict)

    def contradictions(self) -> Wrong:
        for name, server in self.servers.items():
            at = ("servers", name)
            if not _TOOL_SERVER.fullmatch(name) or name == _TAKEN_SERVER:
                yield at, f"mcp.servers: {short(name)!r} is no name: lower-case letters and digits, and not `memory`"
            if bool(server.command) == (server.url is not None):
                yield at, f"mcp.servers.{name} needs a command or a url, and not both"
            if server.url is not None and not _is_url(server.url):
                yield (*at, "url"), f"mcp.servers.{name}.url must begin with http:// or https://, and name a host"
            if server.token_env is not None and server.url is None:
                yield (*at, "token_env"), f"mcp.servers.{name}.token_env is sent to a url; a command gets it by `env`"
            if not all(map(_VARIABLE.fullmatch, server.env)):
                yield (*at, "env"), f"mcp.servers.{name}.env lists names of environment variables, and no values"


def missing_variables(settings: McpSettings, environ: Mapping[str, str]) -> list[str]:
    """Return which environment variables of the servers are not set."""
    return [
        f"{name}: environment variable {variable} is not set"
        for name, server in settings.servers.items()
        for variable in (*server.env, *filter(None, [server.token_env]))
        if not environ.get(variable, "").strip()
    ]


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


IceUrl = Annotated[str, Field(pattern=r"^(stuns?|turns?):[^\s/?#]+(\?transport=(udp|tcp))?$")]


class IceServerSettings(Section):
    """
    Attributes:
        urls: Such as `stun:stun.example:3478` or `turn:turn.example:3478?transport=udp`.
        secret_env: Of a TURN server, the environment variable with the secret that it shares with us (coturn's
            `static-auth-secret`). Each player is given a password made of it, which is good for a day.
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
        host: The address to serve on; the default is reachable from this machine only.
        port: 0 takes any free one.
        public_url: Where players open the table, if not at that address: that of a server with https in front,
            `https://table.example/`.
        tls_cert: A certificate with its chain (PEM); the page is then served over https.
        tls_key: Its private key (PEM).
        tls_self_signed: Serve over https with a certificate that is made here and kept in the data directory. Browsers
            warn of it once.
        trusted_proxies: Addresses or networks (`10.0.0.0/8`) of servers with https in front. What they say of who asks
            is believed (`X-Forwarded-For`); of nobody else.
        ice_servers: STUN and TURN servers, by which browsers behind routers find a way to the table's sound. Without
            any, sound reaches this machine's own network, and whoever can reach this machine's address directly.
        close_after_minutes: The session ends, and the table closes, when nobody has sat at it for so long. Left out:
            never.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 7860
    public_url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]+/?$")] | None = None
    tls_cert: FilePath | None = None
    tls_key: FilePath | None = None
    tls_self_signed: bool = False
    trusted_proxies: tuple[Proxy, ...] = ("127.0.0.1", "::1")
    ice_servers: tuple[IceServerSettings, ...] = ()
    close_after_minutes: Annotated[int, Field(ge=1)] | None = None

    def contradictions(self) -> Wrong:
        for n, server in enumerate(self.ice_servers):
            if server.secret_env is None and any(url.startswith("turn") for url in server.urls):
                yield ("ice_servers", n), "a TURN server lets nobody in without a password: set secret_env"


class ObservabilitySettings(Section):
    """How a table is watched from outside. Nothing of it holds what anybody said.

    Attributes:
        metrics_port: Where `glyphoxa serve` answers `/metrics` for Prometheus, and `/healthz` and `/readyz` once more,
            on a port of their own; 0 takes any free one. Left out: nowhere.
        metrics_host: The address for that port; the default is reachable from this machine only.
        traces_endpoint: Where a trace of each turn is sent, as OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`. Left
            out: nowhere.
    """

    metrics_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    metrics_host: str = "127.0.0.1"
    traces_endpoint: Annotated[str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$")] | None = None


class PrivacySettings(Section):
    """How long talk is kept.

    Attributes:
        retain_days: What was said longer ago is erased for good when a table opens, and once a day by
            `glyphoxa worker`, with what rests on it alone. Left out: it is kept until somebody erases it.
    """

    retain_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
