from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from glyphoxa.cli.main import main
from tests.support.postgres import wait_until

CAMPAIGN = Path(__file__).parents[1] / "support" / "campaign.yaml"


@pytest.fixture
async def settings_file(tmp_path: Path, dsn: str) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(f"memory:\n  postgres_dsn: {dsn}\n")
    assert await run("campaign", "load", CAMPAIGN, "--yes", "--config", path) == 0
    return path


async def run(*arguments: object) -> int:
    """The command line, in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(main, [str(argument) for argument in arguments])


async def names(settings_file: Path, *arguments: object) -> int:
    return await run("names", *arguments, "--config", settings_file)


async def test_a_dm_confirms_sees_and_takes_back(settings_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await names(settings_file, "accept", "Grim show", "grimjaw", "--why", "heard on Monday") == 0
    assert "Grim show means Grimjaw from now on" in capsys.readouterr().out
    assert await names(settings_file, "list") == 0
    assert "Grim show (1)" in capsys.readouterr().out
    assert await names(settings_file, "history") == 0
    shown = capsys.readouterr().out
    assert "confirmed" in shown and "Grim show" in shown and "heard on Monday" in shown
    assert await names(settings_file, "export") == 0
    assert capsys.readouterr().out == "Grim show\tGrimjaw\n"
    assert await names(settings_file, "undo") == 0
    assert "undone: confirmed Grim show = Grimjaw" in capsys.readouterr().out
    assert await names(settings_file, "export") == 0
    assert capsys.readouterr().out == ""
    assert await names(settings_file, "undo") == 1
    assert "there is no decision to undo" in capsys.readouterr().err


async def test_a_dm_rejects(settings_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await names(settings_file, "reject", "Grim show", "Grimjaw") == 0
    assert "will not be suggested again" in capsys.readouterr().out
    assert await names(settings_file, "review") == 0
    assert "no names need review" in capsys.readouterr().out
    assert await names(settings_file, "list") == 0
    assert "Grim show (0, rejected)" in capsys.readouterr().out


async def test_suggestions_come_with_their_reasons_however_many_wait(
    settings_file: Path, dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncpg

    monkeypatch.setenv("COLUMNS", "200")
    connection = await asyncpg.connect(dsn)
    [entity] = await connection.fetch("SELECT id FROM entities WHERE name = 'Grimjaw'")
    for n in range(60):
        for why in ("sounds alike", "fits the talk", "sounds alike"):
            await connection.execute(
                "INSERT INTO learned_name_events (campaign_id, heard, as_heard, entity_id, kind, witness, why, at) "
                "VALUES ('saltmere', $1, $2, $3, 'proved', 'llm', $4, now())",
                f"grimshow{n}", f"Grim show {n}", entity["id"], f"{why} {n}",
            )  # fmt: skip
        await connection.execute(
            "INSERT INTO learned_names (campaign_id, heard, entity_id, as_heard, state, count, provenance) "
            "VALUES ('saltmere', $1, $2, $3, 'suggested', $4, '{\"utterances\": []}')",
            f"grimshow{n}", entity["id"], f"Grim show {n}", 100 - n,
        )  # fmt: skip
    await connection.close()

    capsys.readouterr()
    assert await names(settings_file, "review") == 0
    shown = capsys.readouterr().out
    lines = [line.split("llm: ", 1) for line in shown.splitlines() if "Grim show" in line]
    assert len(lines) == 50
    for n, (pair, reasons) in enumerate(lines):
        assert pair.split() == ["Grim", "show", str(n), "Grimjaw", str(100 - n)]
        assert reasons.strip() == f"sounds alike {n}; llm: fits the talk {n}"
    assert "and 10 that were heard less often" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("accept", "Grim show", "Grimjow"), "no name 'Grimjow' in campaign 'saltmere': did you mean 'Grimjaw'?"),
        (("accept", "of the", "Grimjaw"), "'of the' cannot be learned: it is made of nothing but little words"),
        (("accept", "GRIM JAW", "Grimjaw"), "it is this name, but for case, spaces or an ending (Grimjaw)"),
        (("list", "--campaign", "saltmer"), "no campaign 'saltmer' here: did you mean 'saltmere'?"),
        (("undo", "Grim show"), "there is no decision on 'Grim show' to undo"),
        (("import", "/no/such/file.tsv"), "no such file: /no/such/file.tsv"),
    ],
)
async def test_a_mistake_is_one_line_that_names_the_thing(
    settings_file: Path, arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert await names(settings_file, *arguments) == 1
    said = capsys.readouterr()
    assert told in said.err and said.err.count("\n") == 1 and said.out == ""


async def test_a_list_is_imported_and_what_cannot_be_learned_is_named(
    settings_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "heard.tsv"
    file.write_text("# heard\tname\nGrim show\tGrimjaw\nof the\tGrimjaw\n\nTide whisker\tTidewhisper\tnote\n")
    assert await names(settings_file, "import", file) == 0
    told = capsys.readouterr()
    assert "2 wrong forms are corrected from now on; 1 were skipped" in told.out
    assert f"skipped: {file}:3: 'of the' cannot be learned" in told.err
    await names(settings_file, "export")
    exported = capsys.readouterr().out
    assert sorted(exported.splitlines()) == ["Grim show\tGrimjaw", "Tide whisker\tTidewhisper"]
    (tmp_path / "again.tsv").write_text(exported)
    assert await names(settings_file, "import", tmp_path / "again.tsv") == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"Grim show Grimjaw\n", "heard.tsv:1: 'Grim show Grimjaw' is not HEARD and NAME with a tab between them"),
        (b"Grim show\tGrimjaw\nX Y\tGrimjov\n", "heard.tsv:2: no name 'Grimjov' in campaign 'saltmere'"),
        (b"Gr\xff\tGrimjaw\n", "heard.tsv:1: not UTF-8 text; save the file as UTF-8"),
    ],
)
async def test_a_list_with_a_mistake_changes_nothing(
    settings_file: Path, tmp_path: Path, content: bytes, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "heard.tsv").write_bytes(content)
    assert await names(settings_file, "import", tmp_path / "heard.tsv") == 1
    assert told in capsys.readouterr().err
    await names(settings_file, "export")
    assert capsys.readouterr().out == ""


async def test_ordinary_words_that_were_said_are_only_taken_when_that_was_said(
    settings_file: Path, dsn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncpg

    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO sessions VALUES ('saltmere', 's1', now())")
    await connection.execute(
        "INSERT INTO session_entries (campaign_id, session_id, ordinal, utterance_id, text) "
        "VALUES ('saltmere', 's1', 1, 'u1', 'What a grim show that was.')"
    )
    await connection.close()
    assert await names(settings_file, "accept", "grim show", "Grimjaw") == 1
    assert "stand in 1 earlier utterance: all like them would be rewritten. Use --yes" in capsys.readouterr().err
    assert await names(settings_file, "accept", "grim show", "Grimjaw", "--yes") == 0


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
