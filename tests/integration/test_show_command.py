from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.models import load_embedder
from glyphoxa.config.settings import read_settings
from glyphoxa.recall.vectors import Embedder
from tests.support.command_line import SALTMERE, CommandLine, rows


async def test_utterances_of_each_session_are_counted(cli: CommandLine) -> None:
    assert rows(await cli.told("show", "sessions")) == [
        ["1", "s1", "2096-10-02 07:07", "2096-10-02 07:09", "3"],
        ["2", "s2", "2096-10-03 07:07", "2096-10-03 07:08", "2"],
    ]


async def test_nodes_are_listed_with_their_fields_and_as_json(cli: CommandLine) -> None:
    people = rows(await cli.told("show", "nodes", "--type", "character_sheet"))
    assert {row[0] for row in people} == {"character_sheet"} and "Elowen" in {row[1] for row in people}
    assert people == rows(await cli.told("show", "nodes", "--type", "npc")) or len(people) > 2
    found = {each["id"]: each for each in json.loads(await cli.told("show", "nodes", "--json", "--limit", "100"))}
    assert found["elowen"]["fields"]["fears"] == "the sea"
    assert set(found["elowen"]) == {"id", "type", "level", "title", "fields", "floor"}
    assert "ferry" in await cli.told("show", "nodes", "--npc", "Grimjaw")
    assert "ferry" not in await cli.told("show", "nodes", "--npc", "Elowen")
    assert "no type 'npcs' in campaign 'saltmere': did you mean 'npc'" in await cli.problem(
        "show", "nodes", "--type", "npcs"
    )


async def test_what_was_rolled_back_is_told_apart(cli: CommandLine) -> None:
    await cli.told("facts", "rollback", "s1", "2", "--yes")
    assert [row[4:] for row in rows(await cli.told("show", "sessions"))] == [["3", "1"], ["2", "2"]]
    shown = await cli.told("show", "transcript", "s1")
    assert [row[0] for row in rows(shown) if row[-1] == "rolled back"] == ["3"]


async def test_last_utterances_of_a_session_are_listed_in_order(cli: CommandLine) -> None:
    found = rows(await cli.told("show", "transcript", "s1", "--limit", "2"))
    assert found == [
        ["2", "2096-10-02 07:08", "Tamsin", "I heard she owes forty silver."],
        ["3", "2096-10-02 07:09", "Tamsin", "Grimjaw is a baker, isn't he?"],
        ["the last 2; --limit shows more"],
    ]


async def test_last_minutes_of_a_session_are_listed(cli: CommandLine) -> None:
    ordinals = [row[0] for row in rows(await cli.told("show", "transcript", "s1", "--minutes", "1"))]
    assert ordinals == ["2", "3"]
    assert len(rows(await cli.told("show", "transcript", "s1", "--minutes", "5"))) == 3


async def test_memory_of_a_session_is_shown_for_each_view(cli: CommandLine) -> None:
    shown = await cli.told("show", "memory", "s1")
    assert [line.partition(":")[0] for line in shown.splitlines() if not line.startswith(" ")] == [
        "DM",
        "Grimjaw",
        "Elowen",
    ]
    assert "secrets:" in shown and "ferry" in shown
    assert "ferry" not in await cli.told("show", "memory", "s1", "--view", "Elowen")


async def test_what_was_said_is_found_by_its_words_its_speaker_and_its_time(cli: CommandLine) -> None:
    debt = ["s1-2", "2096-10-02 07:08", "s1", "2", "Tamsin", "I heard she owes forty silver."]
    night = ["s2-2", "2096-10-03 07:08", "s2", "2", "Tamsin", "What a night."]

    async def said(*arguments: object) -> list[list[str]]:
        return rows(await cli.told("show", "said", *arguments))

    assert await said("owe") == [debt]
    assert {row[3] for row in await said("silver", "baker")} == {"2", "3"}
    assert await said("silver forty", "--all-words") == [debt]
    assert await said("silver baker", "--all-words") == []
    assert (await said())[0] == night and len(await said()) == 5
    latest, more = await said("--session", "s1", "--speaker", "tamsin", "--limit", "1")
    assert latest[3] == "3" and more == ["the last 1; --limit shows more"]
    assert await said("--after", "2096-10-03 07:08") == [night]
    assert [row[3] for row in await said("--after", "2096-10-02", "--before", "2096-10-03")] == ["3", "2", "1"]
    assert await said("--as", "Elowen") == [] and len(await said("--as", "the smith")) == 5
    assert await said("--speaker", "Grimjaw") == []


async def test_entities_are_told_by_type(cli: CommandLine) -> None:
    shown = await cli.told("show", "entities", "item")
    assert re.search(
        r"^item +Vaelith +the blue blade +vaelith +magical: yes; .*type: sword +public$", shown, re.MULTILINE
    )
    assert "Grimjaw" not in shown
    assert "Grimjaw" in await cli.told("show", "entities")


async def test_an_npcs_relations_come_with_confidence_and_source(cli: CommandLine) -> None:
    shown = await cli.told("show", "relations", "elowen")
    assert re.search(r"Elowen owes money to Grimjaw +pending +0.60 inferred +public +campaign file", shown)
    assert re.search(r"Elowen is at The Anvil +accepted +0.90 stated +witnessed: Grimjaw +session 2, line 1", shown)
    assert "Elowen has no relations" not in shown


async def test_reach_counts_the_fewest_relations(cli: CommandLine) -> None:
    found = rows(await cli.told("show", "relations", "the silent bell", "--depth", "3"))
    assert [(row[0], row[2]) for row in found] == [
        ("0", "The Silent Bell"),
        ("1", "Elowen"),
        ("2", "Grimjaw"),
        ("2", "The Anvil"),
        ("3", "Vaelith"),
        ("3", "Wardens of the Tide"),
    ]
    assert len(rows(await cli.told("show", "relations", "the silent bell", "--depth", "0"))) == 1


async def test_what_an_npc_knows_and_how(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    shown = await cli.told("show", "facts", "--as", "the smith")
    assert re.search(r"Elowen, fears: the sea .* session 1, line 1 +witnessed$", shown, re.MULTILINE)
    assert re.search(r"Grimjaw, secret: Grimjaw forged the chain .* campaign file +secret$", shown, re.MULTILINE)
    assert re.search(r"Grimjaw knows Elowen .* campaign file +public$", shown, re.MULTILINE)
    assert "debt" not in shown
    shown = await cli.told("show", "facts", "--as", "Elowen")
    assert "fears" not in shown and "forged" not in shown and "Grimjaw knows Elowen" in shown


async def test_coverage_is_what_part_of_talk_is_embedded(cli: CommandLine, evenings_dsn: str) -> None:
    assert [row[2:] for row in rows(await cli.told("show", "coverage"))] == [
        ["3", "0", "0", "0 %"],
        ["2", "0", "0", "0 %"],
    ]
    await _embed(evenings_dsn, cli.settings.parent, Embedder("twin", 384, _one_for_all))
    shown = await cli.told("show", "coverage")
    assert all(row[5] == "100 %" and row[2] == row[3] for row in rows(shown))


async def test_what_is_nearest_in_meaning_is_found(cli: CommandLine, evenings_dsn: str) -> None:
    await _embed(evenings_dsn, cli.settings.parent, await load_embedder(read_settings(cli.settings)))
    found = rows(await cli.told("show", "nearest", "she is afraid of the ocean", "--limit", "2"))
    assert [row[-1] for row in found[2:]] == ["type", "faction", "spell"]
    assert found[0][1] == "s1" and "never goes near the water" in found[0][3] and found[0][4] == "Grimjaw"
    assert 0 <= float(found[0][0]) < float(found[1][0])


async def test_without_the_model_or_its_vectors_nothing_is_near(
    cli: CommandLine, evenings_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = await cli.problem("show", "nearest", "the sea")
    assert "nothing in campaign 'saltmere' was embedded by minilm-l6-v2-int8 yet" in said
    await _embed(evenings_dsn, tmp_path, Embedder("twin", 384, _one_for_all))
    assert "yet; what there is was embedded by twin" in await cli.problem("show", "nearest", "the sea")

    monkeypatch.delenv("GLYPHOXA_MODELS", raising=False)
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(f"memory:\n  postgres_dsn: {evenings_dsn}\nmodels:\n  dir: {tmp_path / 'models'}\n")
    said = await CommandLine(elsewhere, cli.capsys).problem("show", "nearest", "the sea")
    assert "model weights are missing; fetch them with `glyphoxa models fetch minilm-l6-v2-int8`" in said


async def test_a_mistake_is_one_line_that_names_the_thing(cli: CommandLine) -> None:
    for arguments, said in (
        (("transcript", "s11"), "no session 's11' in campaign 'saltmere': did you mean 's1'?"),
        (("transcript", "s1", "--minutes", "0"), "--minutes must be at least 1, and is not for --corrected; it is 0"),
        (("entities", "itm"), "no entity of type 'itm': did you mean 'item'?"),
        (("relations", "Grimjow"), "no entity 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("relations", "Grimjaw", "--depth", "11"), "--depth must be from 0 to 10, not 11"),
        (("facts", "--as", "Vaelith"), "no NPC 'Vaelith' in campaign 'saltmere'"),
        (("entity", "Grimjow"), "no entity 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("fact", "xyz"), "no fact 'xyz' in campaign 'saltmere': nearest: "),
        (("history", "\0'"), "no fact \"\\x00'\" in campaign 'saltmere': nearest: "),
        (("facts", "--as-of", "s9"), "'s9' is not a time such as 2026-11-22"),
        (("said", "--session", "s3"), "no session 's3' in campaign 'saltmere': valid: 1 (s1), 2 (s2), last"),
        (("said", "--speaker", "Grimjow"), "no speaker 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("said", "--after", "yesterday"), "--after 'yesterday' is not a time such as 2026-11-22"),
    ):
        assert said in await cli.problem("show", *arguments), arguments


async def _embed(dsn: str, directory: Path, embedder: Embedder) -> None:
    async with open_store(dsn, embedder=embedder) as store:
        await store.chunks.fill_missing(SALTMERE)


async def _one_for_all(texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    vectors = np.zeros((len(texts), 384), np.float32)
    vectors[:, 0] = 1
    return vectors
