"""A table can be opened with a campaign that passes the check, and the check refuses what a table refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from glyphoxa.adapters.local.hibari_voice import PRESETS
from glyphoxa.app.engines import read_playable
from glyphoxa.app.table import open_table
from glyphoxa.config.located_yaml import InvalidFile
from glyphoxa.config.settings import Settings, read_settings
from glyphoxa.domain.errors import InvalidInput, did_you_mean

ROOT = Path(__file__).parents[3]
TOWN = """\
campaign: {name: Town}
entities:
  - {name: Grimjaw, type: npc}
  - {name: Elowen, type: npc}
  - {name: The Forge, type: location}
npcs:
  - {entity: Grimjaw, persona: You are Grimjaw.}
players: [{name: Tamsin}]
scenes:
  - {location: The Forge, npcs: [Grimjaw]}
"""
WRONG = [
    ("You are Grimjaw.}", "You are Grimjaw., voice: grufff_smith}", 7, "no voice preset 'grufff_smith', did you mean"),
    ("You are Grimjaw.}", "You are Grimjaw., voice: {preset: x}}", 7, "no voice preset 'x', valid: gruff_smith, "),
    ("You are Grimjaw.}", "You are Grimjaw., engine: cascadet}", 7, "no engine 'cascadet', did you mean 'cascaded'?"),
    ("You are Grimjaw.}", "You are Grimjaw., engine: host}", 7, "no engine 'host', valid: cascaded, s2s"),
    ("You are Grimjaw.}", "You are Grimjaw., engine: s2s}", 7, "set providers.s2s.name to openai-realtime"),
    ("You are Grimjaw.}", "You are Grimjaw., engine: ./loud.py:build}", 7, "which a campaign file cannot name"),
    ("You are Grimjaw.}", "You are Grimjaw., engine: /tmp/x.py:f}", 7, "(`engines: {loud: ./loud.py:build}`)"),
    ("You are Grimjaw.}", "You are Grimjaw., engine: 'os:system'}", 7, "write its name here (`engine: loud`)"),
    (
        "scenes:\n  - {location: The Forge, npcs: [Grimjaw]}\n",
        "",
        1,
        "list at least one scene (the first one opens the session)",
    ),
    ("players: [{name: Tamsin}]", "players: []", 8, "list at least one player under `players:`"),
    ("name: Tamsin", "name: Tamsin, id: grimjaw", 8, "player 'Tamsin' has the id 'grimjaw', which NPC 'Grimjaw' has"),
    ("name: Tamsin", "name: Tamsin, id: elowen", 8, "which is that of the entity 'Elowen'"),
    ("name: Tamsin", "name: Tamsin, id: dm", 8, "is reserved for the game master"),
    ("name: Tamsin", "name: Tamsin}, {name: Bran, id: tamsin", 8, "which player 'Tamsin' has"),
    ("name: Tamsin", "name: The-Forge", 8, "gives the id 'the-forge', which entity 'The Forge' has"),
    ("entity: Grimjaw,", "entity: Grimjaw, id: elowen,", 7, "which is that of the entity 'Elowen'"),
    (
        "You are Grimjaw.}",
        "You are Grimjaw.}\n  - {entity: Elowen, id: grimjaw, persona: You are Elowen.}",
        8,
        "NPC 'Elowen' has the id 'grimjaw', which NPC 'Grimjaw' has",
    ),
    ("campaign: {name: Town}", "campaign: {name: Town, language: klingon}", 1, "'klingon' is not a language tag"),
    ("campaign: {name: Town}", "campaign: {name: Town, time_zone: ../../etc/passwd}", 1, "campaign.time_zone"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "mistake"), WRONG)
async def test_the_check_and_the_table_refuse_with_the_same_words_before_a_model_is_loaded(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    right: str,
    wrong: str,
    line: int,
    mistake: str,
) -> None:
    async def load(*_: object, **__: object) -> None:
        pytest.fail("a model is loaded for a campaign that cannot be played")

    monkeypatch.setattr("glyphoxa.app.table.load_local_models", load)
    path = tmp_path / "town.yaml"
    assert right in TOWN
    path.write_text(TOWN.replace(right, wrong))
    with pytest.raises(InvalidFile) as caught:
        await open_table(Settings(campaign=path))
    assert f"town.yaml:{line}: " in str(caught.value) and mistake in str(caught.value)
    with pytest.raises(InvalidFile) as checked:
        read_playable(path, Settings())
    assert str(checked.value) == str(caught.value)


def test_campaigns_that_are_shipped_can_be_played(tmp_path: Path) -> None:
    for campaign in ("demo/campaign.yaml", "tests/support/campaign.yaml"):
        assert read_playable(ROOT / campaign, Settings()).campaign.players


def test_a_preset_is_only_asked_for_where_it_is_heard(tmp_path: Path) -> None:
    path = tmp_path / "town.yaml"
    path.write_text(TOWN.replace("You are Grimjaw.", "You are Grimjaw., voice: onyx"))
    (tmp_path / "cloud.yaml").write_text("providers: {tts: {name: openai}}\n")
    assert read_playable(path, read_settings(tmp_path / "cloud.yaml")).campaign.npcs[0].voice.preset == "onyx"
    assert "onyx" not in PRESETS


def test_language_unknown_to_a_hosted_recogniser_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "town.yaml"
    (tmp_path / "nova.yaml").write_text("providers: {stt: {name: deepgram-nova}}\n")
    settings = read_settings(tmp_path / "nova.yaml")
    path.write_text(TOWN.replace("{name: Town}", "{name: Town, language: tlh}"))
    wrong = (
        f"{path}:1: stt: deepgram-nova is made for en, de, es, fr and 51 more, but the campaign's language is tlh: set "
    )
    assert any(warning.startswith(wrong) for warning in read_playable(path, settings).warnings)
    path.write_text(TOWN.replace("{name: Town}", "{name: Town, language: de-AT}"))
    assert not [warning for warning in read_playable(path, settings).warnings if " stt: " in warning]


# Engines of one's own


def test_an_engine_of_ones_own_is_named_in_the_settings(tmp_path: Path) -> None:
    (tmp_path / "glyphoxa.yaml").write_text("engines: {loud: ./loud.py:build}\n")
    (tmp_path / "loud.py").touch()
    (tmp_path / "town.yaml").write_text(TOWN.replace("You are Grimjaw.", "You are Grimjaw., engine: loud"))
    settings = read_settings(tmp_path / "glyphoxa.yaml")
    assert settings.engines == {"loud": f"{tmp_path / 'loud.py'}:build"}
    assert read_playable(tmp_path / "town.yaml", settings).campaign.npcs[0].engine == "loud"


def test_ear_of_the_settings_is_no_engine_of_an_npc(tmp_path: Path) -> None:
    (tmp_path / "glyphoxa.yaml").write_text("engines: {ear: ./my_ear.py:build}\n")
    (tmp_path / "my_ear.py").touch()
    (tmp_path / "town.yaml").write_text(TOWN.replace("You are Grimjaw.", "You are Grimjaw., engine: ear"))
    with pytest.raises(InvalidFile, match="no engine 'ear'"):
        read_playable(tmp_path / "town.yaml", read_settings(tmp_path / "glyphoxa.yaml"))


@pytest.mark.parametrize(
    ("engines", "mistake"),
    [
        ("{cascaded: ./a.py:f}", "2: engines: 'cascaded' is a built-in engine"),
        ("{webrtc: ./a.py:f}", "2: engines: 'webrtc' is a built-in engine"),
        ("{Loud One: ./a.py:f}", "2: engines: 'Loud One' is not a valid name"),
        ("{loud: ./a.py}", "2: engines.loud: './a.py' is not a file and a function; valid: `./loud.py:build`"),
        ("{loud: os.system}", "2: engines.loud: 'os.system' is not a file and a function"),
        ("{loud: 3}", "2: engines.loud must be text, not 3"),
    ],
)
def test_what_cannot_be_an_engine_is_refused_with_its_line(tmp_path: Path, engines: str, mistake: str) -> None:
    (tmp_path / "glyphoxa.yaml").write_text(f"server: {{port: 1}}\nengines: {engines}\n")
    with pytest.raises(InvalidFile) as caught:
        read_settings(tmp_path / "glyphoxa.yaml")
    assert mistake in str(caught.value)


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (None, "no such file"),
        ("x = 1\n", "has no function 'build'"),
        ("def build(:\n", "raises SyntaxError"),
        ("import nothing_of_that_name\n", "raises ModuleNotFoundError"),
    ],
)
async def test_a_file_that_gives_no_engine_is_refused_before_a_model_is_loaded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    mistake: str,
) -> None:
    async def load(*_: object, **__: object) -> None:
        pytest.fail("a model is loaded for a campaign that cannot be played")

    monkeypatch.setattr("glyphoxa.app.table.load_local_models", load)
    (tmp_path / "glyphoxa.yaml").write_text("campaign: town.yaml\nengines: {loud: loud.py:build}\n")
    (tmp_path / "town.yaml").write_text(TOWN.replace("You are Grimjaw.", "You are Grimjaw., engine: loud"))
    if content is not None:
        (tmp_path / "loud.py").write_text(content)
    with pytest.raises(InvalidInput, match=mistake):
        await open_table(read_settings(tmp_path / "glyphoxa.yaml"))


def test_all_kinds_of_mistakes_are_reported_in_one_pass(tmp_path: Path) -> None:
    path = tmp_path / "town.yaml"
    text = TOWN.replace("name: Grimjaw, type: npc", "name: Grimjaw, type: npc, aliases: [the smith]")
    text = text.replace("name: Elowen, type: npc", "name: Elowen, type: npc, aliases: the healer")
    text = text.replace("You are Grimjaw.}", "You are Grimjaw., voice: grufff_smith, priorty: 3}")
    path.write_text(text.replace("npcs: [Grimjaw]}", "npcs: [the smith, Orla]}"))
    with pytest.raises(InvalidFile) as caught:
        read_playable(path, Settings())
    assert [problem.text for problem in caught.value.problems] == [
        "aliases of 'Elowen' must be a list: [the healer]",
        "unknown key 'priorty', did you mean 'priority'?",
        f"'Grimjaw': no voice preset 'grufff_smith', {did_you_mean('grufff_smith', PRESETS)} "
        "(list them: glyphoxa models voices)",
        "'the smith' is an alias of 'Grimjaw': write that name",
        "'Orla' is not listed under `npcs:`, valid: Grimjaw",
    ]
