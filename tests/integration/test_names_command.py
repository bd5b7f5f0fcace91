from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, a_settings_file, run
from tests.support.postgres import wait_until

CAMPAIGN = Path(__file__).parents[1] / "support" / "campaign.yaml"


@pytest.fixture
async def cli(tmp_path: Path, dsn: str, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    cli = CommandLine(a_settings_file(tmp_path, dsn), capsys)
    await cli.told("campaign", "load", CAMPAIGN, "--yes")
    return cli


async def test_a_dm_confirms_sees_and_takes_back(cli: CommandLine) -> None:
    done = await cli.told("names", "accept", "Grim show", "grimjaw", "--why", "heard on Monday")
    assert "Grim show means Grimjaw from now on" in done
    assert "Grim show (1)" in await cli.told("names", "list")
    shown = await cli.told("names", "history")
    assert "confirmed" in shown and "Grim show" in shown and "heard on Monday" in shown
    assert await cli.told("names", "export") == "Grim show\tGrimjaw\n"
    assert "undone: accepted Grim show for Grimjaw" in await cli.told("names", "undo")
    assert await cli.told("names", "export") == ""
    assert "there is no decision to undo" in await cli.problem("names", "undo")


async def test_a_dm_rejects(cli: CommandLine) -> None:
    assert "will not be suggested again" in await cli.told("names", "reject", "Grim show", "Grimjaw")
    assert "no names need review" in await cli.told("names", "review")
    assert "Grim show (0, rejected)" in await cli.told("names", "list")


async def test_suggestions_come_with_their_reasons_however_many_wait(
    cli: CommandLine, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncpg

    monkeypatch.setenv("COLUMNS", "200")
    connection = await asyncpg.connect(dsn)
    [entity] = await connection.fetch("SELECT id FROM entities WHERE name = 'Grimjaw'")
    add = (
        "INSERT INTO world_events (campaign_id, seq, event_type, payload, at, by) "
        "SELECT 'saltmere', max(seq) + 1, 'form_heard', $1, now(), 'talk' "
        "FROM world_events WHERE campaign_id = 'saltmere'"
    )
    count = "INSERT INTO form_counts (campaign_id, heard, entity_id, n) VALUES ('saltmere', $1, $2, $3)"
    for n in range(60):
        key, form = f"grimshow{n}", f"Grim show {n}"
        for by, why in (("llm", "sounds alike"), ("phonetic", "fits the talk"), ("llm", "sounds alike")):
            step = {"heard": key, "as_heard": form, "entity": entity["id"], "kind": "proved", "by": by}
            await connection.execute(add, json.dumps(step | {"why": f"{why} {n}"}))
        await connection.execute(count, key, entity["id"], 100 - n)
    await connection.close()

    shown = await cli.told("names", "review")
    lines = [line.split("llm: ", 1) for line in shown.splitlines() if "Grim show" in line]
    assert len(lines) == 50
    for n, (pair, reasons) in enumerate(lines):
        assert pair.split() == ["Grim", "show", str(n), "Grimjaw", str(100 - n)]
        assert reasons.strip() == f"sounds alike {n}; phonetic: fits the talk {n}"
    assert "and 10 more, heard less often" in shown


async def test_a_mistake_is_one_line_that_names_the_thing(cli: CommandLine) -> None:
    for arguments, told in (
        (("accept", "Grim show", "Grimjow"), "no name 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("accept", "of the", "Grimjaw"), "'of the' cannot be learned: it consists only of very common words"),
        (("accept", "GRIM JAW", "Grimjaw"), "it is this name, but for case, spaces or an ending (Grimjaw)"),
        (("list", "--campaign", "saltmer"), "no campaign 'saltmer' here: did you mean 'saltmere'?"),
        (("undo", "Grim show"), "there is no decision on 'Grim show' to undo"),
        (("import", "/no/such/file.tsv"), "no such file: /no/such/file.tsv"),
    ):
        assert told in await cli.problem("names", *arguments), arguments


async def test_a_list_is_imported_and_what_cannot_be_learned_is_named(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "heard.tsv"
    file.write_text("# heard\tname\nGrim show\tGrimjaw\nof the\tGrimjaw\n\nTide whisker\tTidewhisper\tnote\n")
    code, told, skipped = await cli.run("names", "import", file)
    assert (code, "2 wrong forms accepted; 1 skipped" in told) == (0, True)
    assert f"skipped: {file}:3: 'of the' cannot be learned" in skipped
    exported = await cli.told("names", "export")
    assert sorted(exported.splitlines()) == ["Grim show\tGrimjaw", "Tide whisker\tTidewhisper"]
    (tmp_path / "again.tsv").write_text(exported)
    await cli.told("names", "import", tmp_path / "again.tsv")


async def test_a_list_with_a_mistake_changes_nothing(cli: CommandLine, tmp_path: Path) -> None:
    for content, told in (
        (b"Grim show Grimjaw\n", "heard.tsv:1: 'Grim show Grimjaw' is not HEARD, a tab and NAME"),
        (b"Grim show\tGrimjaw\nX Y\tGrimjov\n", "heard.tsv:2: no name 'Grimjov' in campaign 'saltmere'"),
        (b"Gr\xff\tGrimjaw\n", "heard.tsv:1: not UTF-8 text; save the file as UTF-8"),
    ):
        (tmp_path / "heard.tsv").write_bytes(content)
        assert told in await cli.problem("names", "import", tmp_path / "heard.tsv"), content
    assert await cli.told("names", "export") == ""


async def test_ordinary_words_that_were_said_are_only_taken_when_that_was_said(cli: CommandLine, dsn: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO sessions VALUES ('saltmere', 's1', now())")
    await connection.execute(
        "INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, text) "
        "VALUES ('saltmere', 's1', 1, 'u1', 'What a grim show that was.')"
    )
    await connection.close()
    said = await cli.problem("names", "accept", "grim show", "Grimjaw")
    assert "occur in 1 earlier utterance: all such uses would be rewritten. Use --yes" in said
    await cli.told("names", "accept", "grim show", "Grimjaw", "--yes")


async def test_names_are_learned_while_another_process_uses_the_embedded_server(
    reachable_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from glyphoxa.adapters.postgres.server.embedded import EmbeddedPostgres

    monkeypatch.setenv("GLYPHOXA_DATA", str(reachable_dir))
    server = EmbeddedPostgres(reachable_dir / "postgres")
    await asyncio.to_thread(server.start)
    try:
        assert await run("campaign", "load", CAMPAIGN, "--yes") == 0
        assert await run("names", "accept", "Grim show", "Grimjaw") == 0
        assert server.pid() is not None
    finally:
        server.release()
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)
    assert await run("names", "export") == 0
    assert "Grim show\tGrimjaw" in capsys.readouterr().out
    await asyncio.to_thread(wait_until, lambda: server.pid() is None)
