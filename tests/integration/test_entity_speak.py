"""A person of the world is made an NPC that speaks, on the command line and on the desk."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path

import httpx
import pytest

from benchmarks.asking import answered
from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.adapters.local.hibari_voice import PRESETS
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.scope import Scope
from glyphoxa.app.table import open_table
from glyphoxa.config.campaign_edit import additions, insert
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.located_yaml import text_of
from glyphoxa.config.settings import Settings
from glyphoxa.web.access.roles import Grant, Role
from tests.support.command_line import CAMPAIGN_FILE, SALTMERE, CommandLine, a_settings_file
from tests.support.web_door import a_door
from tests.support.web_table import TwinTable

DROWNED = "Berta drowned her brother"
HP = "hit points"


def a_foundry_world(directory: Path) -> Path:
    """Berta, whom players see, with GM notes and statistics; Vask, whom they do not see."""
    world = directory / "coast"
    biography = "<p>Berta grinds salt in the mill by the sea.</p><p>She fears spiders.</p>"
    secret = f'<section class="secret" id="s">{DROWNED}.</section>'
    actors = [
        {
            "_id": "b1",
            "name": "Berta Moor",
            "type": "npc",
            "ownership": {"default": 2},
            "system": {
                "attributes": {"hp": {"value": 11, "formula": "2d8 hit points"}, "ac": {"flat": 12}},
                "details": {"race": "dwarf", "biography": {"value": biography + secret}},
            },
        },
        {
            "_id": "v1",
            "name": "Vask",
            "type": "npc",
            "ownership": {"default": 0},
            "system": {"details": {"race": "elf", "biography": {"value": "<p>Vask robs the mill by night.</p>"}}},
        },
    ]
    world.mkdir()
    (world / "world.json").write_text('{"id": "coast", "title": "Coast", "coreVersion": "10.291"}')
    (world / "data").mkdir()
    (world / "data/actors.db").write_text("\n".join(map(json.dumps, actors)))
    return world


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAMPAIGN_FILE, tmp_path / "campaign.yaml"))


@pytest.fixture
async def cli(tmp_path: Path, campaign_dsn: str, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    cli = CommandLine(a_settings_file(tmp_path, campaign_dsn), capsys)
    await cli.told("import", "foundry", a_foundry_world(tmp_path))
    await cli.told("import", "accept", "--all", "--yes")
    return cli


def added_to(before: str, file: Path) -> list[str]:
    """The lines that are new; all others stay, but for the scene's list of NPCs."""
    after = text_of(file).splitlines()
    gone = [line for line in before.splitlines() if line not in after]
    assert gone in ([], ["    npcs: [Grimjaw]"]), gone
    return [line for line in after if line not in before.splitlines()]


def append(file: Path, text: str, *, instead: str = "") -> None:
    file.write_text((instead or text_of(file)) + text)


async def test_imported_person_gets_an_npc_entry_in_the_campaign_file(cli: CommandLine, file: Path) -> None:
    before = text_of(file)
    shown = await cli.told("entity", "speak", "berta moor", "--campaign", file)
    campaign = read_campaign(file).campaign
    npc = campaign.npcs[-1]
    assert npc.name == "Berta Moor"
    assert npc.persona.startswith("You are Berta Moor. This is known of you: Berta grinds salt in the mill by the sea.")
    assert "Race: dwarf." in npc.persona
    assert DROWNED not in text_of(file) and HP not in npc.persona
    assert npc.voice.preset not in {each.voice.preset for each in campaign.npcs[:-1]}
    assert npc.id in campaign.scenes[0].npcs
    line = next(n for n, text in enumerate(text_of(file).splitlines(), 1) if "- entity: Berta Moor" in text)
    assert f"added to {file}, line {line}: edit the persona there" in shown
    assert "when the table is next opened" in shown and npc.persona in shown
    assert added_to(before, file)


async def test_dry_run_prints_the_draft_and_writes_nothing(cli: CommandLine, file: Path) -> None:
    before = text_of(file)
    shown = await cli.told("entity", "speak", "Berta Moor", "--campaign", file, "--dry-run", "--voice", "old_woman")
    assert "Berta Moor, voice old_woman: You are Berta Moor." in shown and "nothing was written" in shown
    assert text_of(file) == before


async def test_draft_has_no_rumour_and_no_name_of_a_merged_secret(cli: CommandLine, file: Path) -> None:
    await cli.told("entity", "add", "Salt Queen", "npc", "--alias", "the Grey Lady")
    await cli.told("entity", "hide", "Salt Queen")
    await cli.told("entity", "merge", "Berta Moor", "Salt Queen")
    described = "Nan serves the Salt Queen. Nan bakes bread."
    await cli.told("entity", "add", "Old Nan", "npc", "--description", described, "--rumour", "Nan poisoned a miller.")
    shown = await cli.told("entity", "speak", "Old Nan", "--campaign", file, "--dry-run")
    assert "Nan bakes bread." in shown
    assert "Salt Queen" not in shown and "poisoned" not in shown


async def test_least_used_voice_is_chosen_if_all_are_used(cli: CommandLine, file: Path) -> None:
    text = text_of(file)
    for voice in [*PRESETS, *list(PRESETS)[:-1]]:
        form = {"add": "person", "name": f"Npc {len(text)}", "voice": voice, "persona": "You are one."}
        text = insert(text, *additions(form, read_campaign(file, text).campaign))
    append(file, "", instead=text)
    shown = await cli.told("entity", "speak", "Berta Moor", "--campaign", file, "--dry-run")
    assert f"Berta Moor, voice {list(PRESETS)[-1]}:" in shown


async def test_hidden_person_is_drafted_with_the_name_alone(cli: CommandLine, file: Path) -> None:
    before = text_of(file)
    shown = await cli.told("entity", "speak", "Vask", "--campaign", file, "--scene", "smithy")
    assert "not everybody may know of Vask, so the draft contains only the name" in shown
    assert "glyphoxa entity reveal Vask" in shown
    npc = read_campaign(file).campaign.npcs[-1]
    assert (npc.name, npc.persona, npc.aliases) == ("Vask", "You are Vask.", ())
    assert not {"elf", "robs"} & set(re.findall(r"\w+", "\n".join(added_to(before, file))))


async def test_draft_contains_no_secret_name_and_no_topic_that_is_a_line(cli: CommandLine, file: Path) -> None:
    append(file, "\nsafety:\n  lines: [spiders]\n")
    await cli.told("facts", "state", "Berta Moor", "note", "--value", "Vask pays her. She sings.")
    await cli.told("facts", "state", "Berta Moor", "debt", "--value", "forty crowns", "--known-by", "Grimjaw")
    shown = await cli.told("entity", "speak", "Berta Moor", "--campaign", file, "--dry-run")
    assert "She sings." in shown and "grinds salt" in shown
    assert not {"Vask", "spiders", "crowns"} & set(re.findall(r"\w+", shown))


async def test_refused_speak_command_says_why(cli: CommandLine, file: Path) -> None:
    before = text_of(file)
    for arguments, words in (
        (("Berta Moar",), "no entity 'Berta Moar' in campaign 'saltmere': did you mean 'Berta Moor'?"),
        (("Grimjaw",), "Grimjaw already speaks: the campaign file lists it under `npcs:`"),
        (("The Anvil",), "The Anvil is an entity of type 'location': only a person of type 'npc' can speak"),
        (("Berta Moor", "--voice", "bariton"), "no voice preset 'bariton'"),
        (("Berta Moor", "--scene", "smithi"), "no scene 'smithi' in campaign 'saltmere': did you mean 'smithy'?"),
    ):
        assert words in await cli.problem("entity", "speak", *arguments, "--campaign", file), arguments
    assert text_of(file) == before


async def test_speak_without_a_campaign_file_names_the_option(cli: CommandLine) -> None:
    assert "stored without a file; name its file: --campaign FILE" in await cli.problem("entity", "speak", "Berta Moor")


async def test_second_speak_command_for_a_person_is_refused(cli: CommandLine, file: Path) -> None:
    await cli.told("entity", "speak", "Berta Moor", "--campaign", file)
    assert "Berta Moor already speaks" in await cli.problem("entity", "speak", "Berta Moor", "--campaign", file)


async def test_person_answers_at_the_next_table_and_hidden_facts_stay_out(
    cli: CommandLine, file: Path, campaign_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cli.told("entity", "speak", "Berta Moor", "--campaign", file)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("DEEPGRAM_API_KEY", "test")
    async with OpenAiServer([Reply("I grind salt.")]) as server:
        cloud = {"name": "openai", "base_url": server.base_url}
        settings = Settings.model_validate(
            {
                "campaign": file,
                "data_dir": tmp_path,
                "memory": {"postgres_dsn": campaign_dsn, "chronicle": "none"},
                "providers": {
                    "stt": {"name": "deepgram-nova"},
                    "llm": cloud,
                    "tts": cloud,
                    "embeddings": {"name": "none"},
                },
            }
        )
        table = (await open_table(settings)).table
        try:
            player, npc = table.campaign.players[0], table.campaign.npcs[-1]
            assert npc.name == "Berta Moor"
            table.state.add_player(player)
            record = await answered(table, player, "What do you do, and what of your brother?", npc=npc)
        finally:
            await table.close()
    assert record is not None and record.reply == "I grind salt."
    prompt = json.dumps(server.completions[-1]["messages"])
    assert "You are Berta Moor. This is known of you: Berta grinds salt" in prompt
    assert DROWNED not in prompt and HP not in prompt


async def test_button_on_the_world_page_opens_the_drafted_form(
    cli: CommandLine, file: Path, campaign_dsn: str, tmp_path: Path
) -> None:
    campaign, before = read_campaign(file).campaign, text_of(file)
    async with open_store(campaign_dsn) as store:
        await store.campaigns.load(campaign)
        table = TwinTable(campaign)
        async with a_door(tmp_path, table, desk=Scope(store, Settings(campaign=file), SALTMERE)) as door:
            dm = (await door.invited(Grant(Role.DM))).http
            assert "Let this NPC speak" not in (await dm.get("/desk/world/grimjaw")).text
            assert "Let this NPC speak" not in (await dm.get("/desk/world/the-anvil")).text
            person = await dm.get("/desk/world/berta-moor")
            assert '<input type="hidden" name="speak" value="berta-moor">' in person.text
            page = await dm.get("/desk/campaign", params={"speak": "berta-moor"})
            assert DROWNED not in page.text
            form = fields_of(page)
            assert form["person-persona"].startswith("You are Berta Moor. This is known of you: Berta grinds salt")
            added = await dm.post("/desk/campaign", data={**form, "do": "add person"})
            assert "<li>NPC Berta Moor</li>" in added.text
            assert text_of(file) == before, "nothing is stored before the DM saves it"
            saved = await dm.post("/desk/campaign", data={**fields_of(added), "do": "save"}, follow_redirects=True)
            assert "The campaign file is saved" in saved.text
            assert "Let this NPC speak" not in (await dm.get("/desk/world/berta-moor")).text
            refused = await dm.get("/desk/campaign", params={"speak": "berta-moor"})
            assert refused.status_code == 400 and "Berta Moor already speaks" in refused.text
    npc = read_campaign(file).campaign.npcs[-1]
    assert (npc.name, npc.entity_id) == ("Berta Moor", "berta-moor")


def fields_of(page: httpx.Response) -> dict[str, str]:
    """The values of the campaign page's form, as a browser sends them."""
    assert page.status_code == 200, page.text
    form = page.text[page.text.index('action="/desk/campaign"') :]
    found = dict(re.findall(r'<input(?: type="hidden")? name="([\w-]+)" value="([^"]*)"', form))
    found |= dict(re.findall(r'<textarea name="([\w-]+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL))
    for name, options in re.findall(r'<select name="([\w-]+)">(.*?)</select>', form):
        chosen = re.search(r'<option(?: value="([\w-]*)")? selected>([^<]*)', options)
        found[name] = (chosen[1] or chosen[2]) if chosen else ""
    return {name: html.unescape(value) for name, value in found.items()}
