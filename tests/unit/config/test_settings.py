"""Settings are read with every mistake at its line, and checked before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from glyphoxa.config.check import Finding, check, place_of_memory, without_effect
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import Settings, read_settings, settings_type
from glyphoxa.domain.budgets import BEHIND_THE_QUESTION, TIER_RULES, Placement, TierRule
from glyphoxa.domain.errors import InvalidInput, NotFound
from glyphoxa.turns.open_turns import Floor


def read(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "glyphoxa.yaml"
    path.write_text(text)
    return read_settings(path)


def mistakes(tmp_path: Path, text: str) -> list[str]:
    """Each as `line: what`."""
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, text)
    return [line.removeprefix(f"{tmp_path / 'glyphoxa.yaml'}:") for line in str(caught.value).splitlines()]


def findings(settings: Settings, **world: object) -> dict[str, Finding]:
    everything = {
        "has_module": lambda _name: True,
        "environ": {},
    }
    return {found.subject: found for found in check(settings, **{**everything, **world})}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "section"),
    [
        ("chronicle", "llm", "chronicle"),
        ("judge", "llm", "chronicle"),
        ("summaries", "llm", "chronicle"),
        ("curator", "on", "curator"),
    ],
)
def test_setting_without_effect_at_a_table_is_a_warning(name: str, value: str, section: str) -> None:
    local = {"memory": {name: value}}
    [warning] = without_effect(Settings.model_validate(local))
    assert warning.startswith(f"memory.{name}: {value} has no effect at an open table")
    assert f"{section}.llm" in warning and ("glyphoxa worker" in warning) == (name != "summaries")
    found = check(Settings.model_validate(local))
    assert Finding("warning", "memory", warning) in found
    assert [*without_effect(Settings.model_validate({**local, section: {"llm": {"name": "openai"}}}))] == []


def test_default_settings_are_local_and_need_no_key() -> None:
    settings = read_settings(None)
    assert settings.has_memory
    assert {found.level for found in findings(settings).values()} == {"ok"}


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "server:\n", "memory: {postgres_dsn: }\n"])
def test_an_empty_file_or_section_means_the_defaults(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).model_dump() == settings_type()().model_dump()


def test_large_model_may_have_more_memory_in_its_prompt(tmp_path: Path) -> None:
    assert (Settings().budgets.facts_tokens, Settings().budgets.max_facts) == (90, None)
    text = "providers: {llm: {name: openai-compatible, base_url: 'http://here', model: m}}\n"
    assert read(tmp_path, f"{text}context: {{facts_tokens: 1500}}\n").budgets.facts_tokens == 1500
    [mistake] = mistakes(tmp_path, "context: {facts_tokens: -1}\n")
    assert mistake.startswith("1: context.facts_tokens")
    [mistake] = mistakes(tmp_path, "context:\n  facts_depth: 0\n  facts_role: assistant\n")
    assert mistake.startswith("3: context.facts_role assistant at context.facts_depth 0 would look")
    [mistake] = mistakes(tmp_path, "context: {facts_role: user}\n")
    assert mistake.endswith("needs context.facts_position depth, or context.facts_depth, 0 to 9999")
    [mistake] = mistakes(tmp_path, "context: {facts_position: question, facts_depth: 3}\n")
    assert mistake == "1: context.facts_depth 3 needs context.facts_position depth"
    assert read(tmp_path, "context: {facts_depth: 9999, facts_role: user}\n").facts_at == Placement(9999, "user")


@pytest.mark.parametrize(
    ("model", "context", "place"),
    [
        ("llama3.2:1b", "", BEHIND_THE_QUESTION),
        ("qwen2.5-7b", "", BEHIND_THE_QUESTION),
        ("gpt-4.1", "", Placement(9999)),
        ("gpt-4.1", "context: {facts_role: user}", Placement(9999, "user")),
        ("gpt-4.1", "context: {facts_depth: 2}", Placement(2)),
        ("gpt-4.1", "context: {facts_position: question}", BEHIND_THE_QUESTION),
        ("llama3.2:1b", "context: {facts_position: depth}", Placement(9999)),
    ],
)
def test_large_model_reads_facts_before_the_conversation(
    tmp_path: Path, model: str, context: str, place: Placement
) -> None:
    llm = f"providers: {{llm: {{name: openai-compatible, base_url: 'http://here', model: '{model}'}}}}\n"
    assert read(tmp_path, f"{llm}{context}\n").facts_at == place


def test_each_tier_declares_the_tools_that_the_settings_name(tmp_path: Path) -> None:
    assert read(tmp_path, "").tiers.rules == TIER_RULES
    both = "[memory.query_entities, memory.search_facts]"
    rules = read(tmp_path, f"tiers: {{fast_tools: {both}, deep_tools: []}}\n").tiers.rules
    assert rules["FAST"] == TierRule(500, ("memory.query_entities", "memory.search_facts"))
    assert rules["STANDARD"] == TIER_RULES["STANDARD"]
    assert rules["DEEP"] == TierRule(4_000, (), can_search_around=True)
    [mistake] = mistakes(tmp_path, "tiers:\n  fast_tools: [memory.forget]\n")
    assert mistake.startswith("2: tiers.fast_tools.0: 'memory.forget' is not valid")


def test_misspelt_key_is_reported_with_line_and_nearest_key(tmp_path: Path) -> None:
    text = "server:\n  port: 7000\nprividers:\n  llm: {name: ollama}\n"
    assert mistakes(tmp_path, text) == ["3: unknown key 'prividers', did you mean 'providers'?"]
    text = "providers:\n  llm:\n    name: ollama\n    modle: llama3\n"
    assert mistakes(tmp_path, text) == ["4: unknown key 'modle', did you mean 'model'?"]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = "server:\n  port: 70000\nproviders:\n  stt: {name: wisper}\nturns: quick\n"
    assert mistakes(tmp_path, text) == [
        "2: server.port must be at most 65535, not 70000",
        "4: providers.stt.name: 'wisper' is not valid, did you mean 'whisper'?",
        "5: turns must be a block of keys, not 'quick'",
    ]


def test_values_that_are_wrong_together_are_reported(tmp_path: Path) -> None:
    text = "turns:\n  pause_ms: 700\nproviders:\n  llm:\n    name: openai-compatible\n"
    found = mistakes(tmp_path, text)
    assert found[0].startswith("1: turns.end_of_turn_ms (480) must not be less than turns.pause_ms (700)")
    assert found[1:] == [f"5: openai-compatible needs providers.llm.{what}" for what in ("base_url", "model")]
    read(tmp_path, "turns: {end_of_turn_ms: 199, pause_ms: 199}\n")  # complete_ms is 200 by default
    [found] = mistakes(tmp_path, "turns:\n  complete_ms: 700\n")
    assert "turns.end_of_turn_ms (480) must not be less than turns.complete_ms (700)" in found
    text = "providers:\n  llm: {name: openai}\ncorrection:\n  llm:\n    name: local\n"
    [found] = mistakes(tmp_path, text)
    assert found == "5: local means the model of providers.llm, and openai is not local"


def test_deep_recall_method_is_checked_by_name(tmp_path: Path) -> None:
    text = "recall:\n  method: hybird\n  stages: [difusion, topics]\n"
    assert mistakes(tmp_path, text) == [
        "2: recall.method: 'hybird' is not valid, did you mean 'hybrid'?",
        "3: recall.stages.0: 'difusion' is not valid, did you mean 'diffusion'?",
    ]
    assert mistakes(tmp_path, "recall:\n  diffusion_steps: 0\n")[0].startswith("2: recall.diffusion_steps")
    text = "recall: {stages: [diffusion], diffusion_steps: 3, half_lives_turns: {event: 80}}"
    recall = read(tmp_path, text).recall
    assert (recall.diffusion_steps, recall.half_life_turns("event")) == (3, 80)
    text = "providers:\n  llm: {name: openai}\nrecall:\n  method: llm\n"
    [found] = mistakes(tmp_path, text)
    assert found == (
        "4: recall.method llm needs recall.llm: local means the model of providers.llm, and openai is not local"
    )
    text = "recall:\n  llm:\n    name: openai-compatible\n"
    assert mistakes(tmp_path, text) == ["3: openai-compatible needs recall.llm.base_url"]
    [found] = mistakes(tmp_path, "recall: {method: hybrid_rerank}")
    assert found.startswith("1: recall.method hybrid_rerank needs recall.rerank, which is none")
    [found] = mistakes(tmp_path, "recall:\n  rerank: {name: cohere-compatible, base_url: http://x/v1}\n")
    assert found == "2: cohere-compatible needs recall.rerank.model"


def test_a_local_model_that_reads_talk_is_the_npcs_own(tmp_path: Path) -> None:
    cloud = "providers: {llm: {name: openai}}\n"
    [found] = mistakes(tmp_path, f"memory: {{chronicle: llm}}\n{cloud}")
    assert found.startswith("1: llm needs chronicle.llm: local means the model of providers.llm, and openai")
    [found] = mistakes(tmp_path, f"memory: {{curator: on}}\n{cloud}")
    assert found.startswith("1: it needs curator.llm: local means the model of providers.llm, and openai")
    assert read(tmp_path, cloud).memory.chronicle == "rules"
    assert read(tmp_path, f"memory: {{chronicle: llm}}\nchronicle: {{llm: {{name: google}}}}\n{cloud}")
    [found] = mistakes(tmp_path, "chronicle: {calls_per_minute: -1}\n")
    assert "calls_per_minute" in found


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("{}", "hybrid"),
        ("{stages: [topics]}", "hybrid"),
        ("{llm: {name: google}}", "llm"),
        ("{rerank: {name: cohere-compatible, base_url: http://x/v1, model: m}}", "hybrid_rerank"),
        ("{method: hybrid, llm: {name: google}}", "hybrid"),
    ],
)
def test_deep_recall_model_is_used_unless_a_method_is_set(tmp_path: Path, text: str, method: str) -> None:
    assert read(tmp_path, f"recall: {text}").recall.searches_by == method


def test_recall_model_is_shown_and_its_key_checked_if_used(tmp_path: Path) -> None:
    shown = findings(read(tmp_path, "recall: {method: hybrid, llm: {name: openai}}"), environ={})
    assert "recall.llm" not in shown
    assert shown["recall"] == Finding("ok", "recall", "hybrid")
    asking = read(tmp_path, "recall: {method: hybrid_llm, stages: [diffusion], llm: {name: openai}}")
    shown = findings(asking, environ={})
    assert shown["recall.llm"] == Finding(
        "error", "recall.llm", "openai: environment variable OPENAI_API_KEY is not set"
    )
    assert shown["recall"].text == ("hybrid_llm, with diffusion, for the tools of NPCs of tier DEEP; hybrid otherwise")
    assert findings(asking, environ={"OPENAI_API_KEY": "x"})["recall.llm"].level == "ok"
    assert findings(read(tmp_path, "recall: {method: llm}"))["recall.llm"].level == "warning"


def test_embeddings_model_has_default_dimensions_unless_set(tmp_path: Path) -> None:
    assert read(tmp_path, "").memory.embedding_dimensions == 384
    assert read(tmp_path, "providers: {embeddings: {name: openai}}").memory.embedding_dimensions == 1536
    text = "providers: {embeddings: {name: google}}\nmemory: {embedding_dimensions: 768}\n"
    settings = read(tmp_path, text)
    assert settings.memory.embedding_dimensions == 768
    shown = findings(settings, environ={"GOOGLE_API_KEY": "x"})["embeddings"]
    told = "google, key from GOOGLE_API_KEY; model gemini-embedding-2, 768 dimensions"
    assert shown == Finding("ok", "embeddings", told)
    shown = findings(settings, environ={})["embeddings"]
    assert shown == Finding("error", "embeddings", "google: environment variable GOOGLE_API_KEY is not set")


def test_a_server_of_one_s_own_for_embeddings_is_to_be_described(tmp_path: Path) -> None:
    text = "providers:\n  embeddings:\n    name: openai-compatible\n"
    assert [found.partition(" needs ")[2].partition(" ")[0] for found in mistakes(tmp_path, text)] == [
        "providers.embeddings.base_url",
        "providers.embeddings.model",
        "memory.embedding_dimensions",
    ]
    text += "    base_url: http://127.0.0.1:11434/v1\n    model: nomic-embed-text\n"
    settings = read(tmp_path, text + "memory: {embedding_dimensions: 768}\n")
    shown = findings(settings)["embeddings"].text
    assert shown == "openai-compatible, model nomic-embed-text at 127.0.0.1:11434; 768 dimensions"


def test_a_pasted_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "providers:\n  llm: {name: openai, api_key_env: sk-very-secret}\n")
    assert "name of an environment variable" in found[0]
    assert "very-secret" not in found[0]


def test_invalid_settings_file_is_refused_with_its_line(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "server: {}\na: [1\nb: 2\n")[0].startswith("3: not YAML")
    assert "NUL" in mistakes(tmp_path, 'host: "a\\0b"\n')[0]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read_settings(tmp_path / "none.yaml")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_settings(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"host: x\nname: caf\xe9\n")
    with pytest.raises(InvalidInput, match=r"latin\.yaml:2: not UTF-8"):
        read_settings(tmp_path / "latin.yaml")


def test_paths_count_from_the_settings_file(tmp_path: Path) -> None:
    settings = read(tmp_path, "campaign: town/campaign.yaml\ndata_dir: /srv/data\n")
    assert settings.campaign == tmp_path / "town" / "campaign.yaml"
    assert settings.data_directory == Path("/srv/data")


def test_the_data_directory_can_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLYPHOXA_DATA", "/srv/glyphoxa data")
    assert Settings().data_directory == Path("/srv/glyphoxa data")
    monkeypatch.delenv("GLYPHOXA_DATA")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert Settings().data_directory == Path("/var/lib/glyphoxa")


def test_the_three_meanings_of_the_dsn(tmp_path: Path) -> None:
    assert read(tmp_path, "memory: {postgres_dsn: ''}").memory.postgres_dsn is None
    assert not read(tmp_path, "memory: {postgres_dsn: none}").has_memory
    assert read(tmp_path, "memory: {postgres_dsn: 'postgresql://db/x'}").has_memory
    assert "must begin with postgresql://" in mistakes(tmp_path, "memory:\n  postgres_dsn: 'db.example'\n")[0]


def test_a_missing_key_is_named_by_its_variable(tmp_path: Path) -> None:
    settings = read(tmp_path, "providers: {stt: {name: deepgram-nova}, llm: {name: openai, api_key_env: MY_KEY}}")
    found = findings(settings, environ={"DEEPGRAM_API_KEY": "dg-secret"})
    assert found["stt"] == Finding("ok", "stt", "deepgram-nova, key from DEEPGRAM_API_KEY")
    assert found["llm"] == Finding("error", "llm", "openai: environment variable MY_KEY is not set")


def test_no_key_and_no_password_is_ever_shown(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "memory: {postgres_dsn: 'postgresql://gm:hunter2@db.example/town'}\n"
        "providers:\n  llm: {name: openai-compatible, base_url: 'https://me:hunter2@llm.example/v1', model: m, "
        "api_key_env: K}\n",
    )
    found = [*findings(settings, environ={"K": "hunter2"}).values(), place_of_memory(settings)]
    shown = "\n".join(each.text for each in found)
    assert "hunter2" not in shown
    assert "db.example/town" in shown and "llm.example" in shown


def test_missing_packages_are_named_with_what_brings_them(tmp_path: Path) -> None:
    found = findings(Settings(), has_module=lambda name: name != "xllamacpp")
    assert "pip install 'glyphoxa[local]'" in found["llm"].text


def test_the_silence_between_two_npcs_has_one_value() -> None:
    assert Settings().turns.gap_ms == Floor().gap_ms == 300


# Servers of tools


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("    dice: {}\n", "3: mcp.servers.dice needs a command or a url, and not both"),
        ("    dice: {command: [x], url: 'http://a'}\n", "3: mcp.servers.dice needs a command or a url, and not both"),
        ("    Dice!: {command: [x]}\n", "3: mcp.servers: 'Dice!' is not a valid name: use letters a to z and digits"),
        ("    memory: {command: [x]}\n", "3: mcp.servers: 'memory' is not a valid name"),
        ("    dice: {url: ftp://a}\n", "3: mcp.servers.dice.url must begin with http:// or https://"),
        ("    dice: {command: [x], token_env: A}\n", "is only for a url; for a command, use `env`"),
        ("    dice: {url: 'http://a', token_env: sk-1234}\n", "must be the name of an environment variable"),
        ("    dice: {command: [x], env: [A=b]}\n", "must list names of environment variables, not values"),
        ("    dice: {command: [x], usual_ms: 0}\n", "mcp.servers.dice.usual_ms"),
        ("    dice: {comand: [x]}\n", "comand"),
    ],
)
def test_a_mistake_in_a_server_of_tools_is_told_with_its_line(tmp_path: Path, server: str, why: str) -> None:
    [found] = mistakes(tmp_path, f"mcp:\n  servers:\n{server}")
    assert why in found


def test_the_check_says_which_servers_are_used_and_what_is_missing(tmp_path: Path) -> None:
    servers = "{dice: {command: [glyphoxa, mcp, dice]}, maps: {url: 'http://a/mcp', token_env: MAPS}}"
    settings = read(tmp_path, f"mcp: {{servers: {servers}}}\n")

    def of_mcp(environ: dict[str, str], *, has_sdk: bool = True) -> list[Finding]:
        found = check(
            settings,
            environ=environ,
            has_module=lambda name: has_sdk or name != "mcp",
        )
        return [each for each in found if each.subject == "mcp"]

    assert of_mcp({"MAPS": "x"}) == [Finding("ok", "mcp", "tools of dice, maps, for models that can call tools")]
    assert of_mcp({}) == [Finding("error", "mcp", "maps: environment variable MAPS is not set")]
    assert of_mcp({"MAPS": "x"}, has_sdk=False)[0].level == "error"
