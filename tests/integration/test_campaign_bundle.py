"""A whole campaign as one file, out of one database and into one: as a DM types it, on the real server."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from glyphoxa.adapters.postgres.store import Store
from glyphoxa.adapters.postgres.world.bundle import (
    BUNDLED,
    Parts,
    Place,
    bind_campaign,
    export_campaign,
    import_campaign,
)
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.dm.campaign_bundle import VERSION
from glyphoxa.dm.sessions import SessionDesk
from glyphoxa.domain.errors import InvalidInput, NotFound, Unavailable
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, Claim, Provenance
from glyphoxa.names.wrong_forms import FormHeard, form_of
from glyphoxa.world.event_kinds import EntitiesMerged, EntityAdded, FactRejected, FactStated, SlotDeclared
from glyphoxa.world.event_log import Cause, RolledBack, UtteranceCorrected, difference
from tests.support.builders import an_utterance
from tests.support.bundle_schema import SCHEMA, schema
from tests.support.bundles import exported, exported_for_players, imported
from tests.support.command_line import CommandLine, a_settings_file
from tests.support.world_tables import (
    A_ROW_EACH,
    DM,
    INN,
    MIRA,
    SWORD,
    TOWN,
    a_campaign_row,
    a_town,
    stands_as_replayed,
)

OTHER = CampaignId("other")
FIRST = SessionId("first")
CALLED = FactStated(Claim.attribute(MIRA, "occupation", "innkeeper"), Provenance(confidence=0.5))
OWNS = FactStated(Claim.relation(MIRA, "OWNS", SWORD))
RUNS = FactStated(Claim.relation(MIRA, "LOCATED_AT", INN), supports=(OWNS.claim.fact_id,))


async def told_by_the_dm_alone(_: SessionId) -> None:
    """The town was never loaded as a campaign, so nobody else sums up its sessions."""


@pytest.fixture
async def town(store: Store) -> Store:
    """A campaign with talk, corrections, facts that rest on others, what was taken back, and learned names."""
    await a_town(store, TOWN)
    said = [
        replace(an_utterance(f"word {n}", id=f"first-{n}"), campaign_id=TOWN, session_id=FIRST) for n in range(1, 5)
    ]
    await store.log.append(said)
    talk = Cause("talk", 0, FIRST, 1, UtteranceId("first-1"))
    await store.world.commit(TOWN, [OWNS, RUNS, CALLED, SlotDeclared("note", "one")], talk)
    await store.world.commit(TOWN, [FactRejected(CALLED.claim.fact_id)], DM)
    await store.world.correct(TOWN, UtteranceId("first-2"), "other words", DM)
    await store.world.rollback(TOWN, FIRST, 3, DM)
    inspection = PostgresInspection(store.database)
    desk = SessionDesk(TOWN, store.world, inspection, store.talk_search, told_by_the_dm_alone, lambda: 3_000_000)
    await desk.summarise(FIRST, "They met the innkeeper.", None)
    gone = EntityId("x")
    await store.world.commit(TOWN, [EntityAdded(gone, "item", "X"), EntitiesMerged(SWORD, gone)], DM)
    learned = PostgresLearnedNames(store.database)
    for form in ("Mirra", "Mirror"):
        await learned.record(TOWN, FormHeard(*form_of(form), MIRA, "confirmed", "dm"), at_ms=4_000_000)
    await learned.undo(TOWN, at_ms=4_000_000)
    async with store.database.use(TOWN) as connection:
        await connection.execute(A_ROW_EACH)
    return store


@pytest.fixture
def cli(tmp_path: Path, dsn: str, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(a_settings_file(tmp_path, dsn), capsys)


async def test_what_comes_in_goes_out_the_same_byte_by_byte(town: Store, cli: CommandLine, tmp_path: Path) -> None:
    one, two, three = (tmp_path / name for name in ("one.json", "two.json", "three.json"))
    await cli.told("campaign", "export", one, "--campaign", "town")
    assert "the campaign 'town' already exists: choose another id with --as NEWID" in await cli.problem(
        "campaign", "import", one
    )
    assert "4 utterances" in await cli.told("campaign", "import", one, "--as", "other")
    await cli.told("campaign", "export", two, "--campaign", "other")
    text = one.read_text()
    assert all(json.loads(text)["tables"][table] for table in BUNDLED)
    assert "They met the innkeeper." in text
    assert "embedding" not in text
    assert two.read_text() == text.replace('"id": "town"', '"id": "other"')
    past = await stands_as_replayed(town, TOWN)
    assert difference(await stands_as_replayed(town, OTHER), past).is_empty

    async with town.database.administer() as connection:
        for table in (*reversed(BUNDLED), "chunks", "talk_to_embed", "world_snapshots"):
            await connection.execute(f"DELETE FROM {table} WHERE campaign_id = 'town'")
        await connection.execute("DELETE FROM campaigns WHERE id = 'town'")
    await cli.told("campaign", "import", two, "--as", "town")
    await cli.told("campaign", "export", three, "--campaign", "town")
    assert three.read_bytes() == one.read_bytes()
    assert one.stat().st_mode & 0o077 == 0
    assert f"{one} exists already" in await cli.problem("campaign", "export", one, "--campaign", "town")


async def test_a_campaign_that_came_in_goes_on_by_itself(town: Store) -> None:
    await imported(town, await exported(town, TOWN), OTHER)
    await town.log.append(
        [replace(an_utterance("more", id="more"), campaign_id=OTHER, session_id=FIRST)],
    )
    await town.world.undo(OTHER, [1], DM)
    await stands_as_replayed(town, OTHER)
    async with town.database.use(OTHER) as connection:
        said = await connection.fetch("SELECT utterance_id, ordinal FROM session_entries ORDER BY id")
        waiting = await connection.fetchval("SELECT count(*) FROM talk_to_embed")
    assert [tuple(row) for row in said] == [("first-1", 1), ("first-2", 2), ("first-3", 3), ("first-4", 4), ("more", 5)]
    learned = PostgresLearnedNames(town.database)
    assert [(one.heard, one.status.count) for one in await learned.statuses(OTHER)] == [("Mirra", 2)]
    assert [one.step.kind for one in await learned.history(OTHER, heard="mirror")] == ["undone", "confirmed"]
    assert waiting == 5
    assert await town.log.count(TOWN) == 4


async def test_a_world_goes_along_without_its_talk(town: Store, cli: CommandLine, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    await cli.told("campaign", "export", one, "--campaign", "town", "--without-talk")
    text = one.read_text()
    assert "word 1" not in text and "They met the innkeeper." in text
    await cli.told("campaign", "import", one, "--as", "other")
    await cli.told("campaign", "export", two, "--campaign", "other")
    assert two.read_text() == text.replace('"id": "town"', '"id": "other"')
    assert difference(await stands_as_replayed(town, OTHER), await stands_as_replayed(town, TOWN)).is_empty
    async with town.database.use(OTHER) as connection:
        unread = "SELECT last_ordinal - read_ordinal FROM sessions s JOIN chronicle_progress p ON p.session_id = s.id"
        assert [row[0] for row in await connection.fetch(unread)] == [0]
    await town.log.append([replace(an_utterance("more", id="more"), campaign_id=OTHER, session_id=FIRST)])
    for event in await town.world.events(OTHER, latest_first=True):
        if event.event.__class__ in (RolledBack, UtteranceCorrected):
            await town.world.undo(OTHER, [event.seq], DM)
    await stands_as_replayed(town, OTHER)
    async with town.database.use(OTHER) as connection:
        said = await connection.fetch("SELECT utterance_id, ordinal, retracted FROM session_entries")
    assert [tuple(row) for row in said] == [("more", 5, False)]


async def test_hidden_document_of_an_import_is_a_secret(town: Store) -> None:
    await exported(town, TOWN, Parts())
    async with town.database.use(TOWN) as connection:
        await connection.execute("""UPDATE import_documents SET document = document || '{"hidden": true}'""")
    with pytest.raises(InvalidInput, match="--with-secrets"):
        await exported(town, TOWN, Parts())
    assert "Inn.md" not in await exported_for_players(town, TOWN)


async def test_a_file_tells_secrets_only_when_it_may(town: Store, cli: CommandLine, tmp_path: Path) -> None:
    secret = FactStated(Claim.attribute(MIRA, "truth", "zwielichtig"), visibility=HIDDEN)
    event = (await town.world.commit(TOWN, [secret], DM))[-1]
    path = tmp_path / "town.json"
    assert "--with-secrets" in await cli.problem("campaign", "export", path, "--campaign", "town")
    await town.world.undo(TOWN, [event.seq], DM)  # its words still stand in what happened
    await cli.problem("campaign", "export", path, "--campaign", "town")
    assert not await asyncio.to_thread(path.exists)
    await cli.told("campaign", "export", path, "--with-secrets", "--campaign", "town")
    assert "zwielichtig" in path.read_text()


def _of(table: str, at: int, **columns: object) -> Callable[[Any], None]:
    return lambda found: found["tables"][table][at].update(columns)


_BROKEN: dict[str, tuple[Callable[[Any], object], str]] = {
    "no table": (lambda b: b["tables"].pop("turns"), "tables has no 'turns'"),
    "rows": (lambda b: b["tables"].update(turns=5), "tables.turns is 5: it must be a list of rows"),
    "kind": (_of("session_entries", 2, text=5), r"tables.session_entries\[2\].text is '5': it must be a text"),
    "truth": (_of("session_entries", 2, ordinal=True), "ordinal is 'True': it must be a whole number"),
    "size": (_of("session_entries", 2, ordinal=2**70), r"below 2\^63"),
    "null": (_of("session_entries", 2, text=None), "cannot be null"),
    "character": (_of("session_entries", 2, text="a\0b"), r"tables.session_entries\[2\] cannot be stored"),
    "half a character": (_of("sessions", 0, id="\ud800"), r"tables.sessions\[0\] cannot be stored"),
    "object": (_of("turns", 0, stages=[]), r"tables.turns\[0\].stages is '\[\]': it must be an object"),
    "document": (
        _of("campaign_documents", 0, document={"id": "town"}),
        r"tables.campaign_documents\[0\].document.name",
    ),
    "whose": (lambda b: b["campaign"].update(id="village"), "document.id is 'town': it must be the campaign's id"),
    "time": (_of("sessions", 0, started_at="soon"), r"tables.sessions\[0\] cannot be stored: .*soon"),
    "twice": (
        _of("session_entries", 2, utterance_id="first-1"),
        r"tables.session_entries\[2\] cannot be stored: .*unique",
    ),
    "long": (
        _of("entities", 0, id="".join(chr(0x4E00 + n) for n in range(9_000))),
        r"tables.entities\[0\] cannot be stored",
    ),
    "order": (_of("session_entries", 2, id=9), r"tables.session_entries\[2\].id is 9: it must be 3"),
    "column": (lambda b: b["tables"]["sessions"][0].update(x=1), r"tables.sessions\[0\] has 'x', not a column"),
    "gap": (_of("world_events", 2, seq=30), r"rows count from 1"),
    "world": (_of("entities", 0, name="Nobody"), "does not match"),
    "event": (_of("world_events", 0, event_type="dreamt"), "tables.world_events"),
    "import": (_of("import_documents", 0, document={}), r"tables.import_documents\[0\] has a document, accepted"),
    "accepted import": (_of("import_documents", 0, accepted={"key": 3}), r"tables.import_documents\[0\] has a"),
    "edited import": (_of("import_documents", 0, edit={"name": 5}), r"tables.import_documents\[0\] has a document"),
    "form": (
        lambda b: b["tables"].update(learned_name_events=[{"id": "x"}]),
        "tables.learned_name_events cannot be stored",
    ),
    "step": (
        lambda b: b["tables"].update(learned_name_events=[{"id": 1, "at": "2026-11-26", "kind": "dreamt"}]),
        "tables.world_events contains an unreadable event",
    ),
}


async def test_a_broken_bundle_is_refused_and_leaves_nothing(town: Store, cli: CommandLine, tmp_path: Path) -> None:
    text = await exported(town, TOWN)
    before, path = await _counts(town), tmp_path / "broken.json"
    for name, (breaks, told) in _BROKEN.items():
        found = json.loads(text)
        breaks(found)
        try:
            await imported(town, json.dumps(found), OTHER)
        except InvalidInput as error:
            assert re.search(told, str(error)), (name, error)
        else:
            pytest.fail(f"{name}: it was imported")
        assert await _counts(town) == before, name
    path.write_text(text[: len(text) // 2])
    error = await cli.problem("campaign", "import", path, "--as", "other")
    assert str(path) in error and "after tables." in error and "nothing was imported" in error
    assert await _counts(town) == before


async def _counts(store: Store) -> list[int]:
    async with store.database.administer() as connection:
        return [await connection.fetchval(f"SELECT count(*) FROM {table}") for table in ("campaigns", *BUNDLED)]


class _Broken(BytesIO):
    """A file of which only the first part can be read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > 8_000:
            raise OSError(5, "Input/output error")
        return super().read(1_000)


async def test_import_that_fails_in_the_middle_leaves_nothing(town: Store) -> None:
    text, before = (await exported(town, TOWN)).encode(), await _counts(town)
    with pytest.raises(InvalidInput, match=r"^after tables.*: cannot be read: Input/output error$"):
        await import_campaign(town.database, _Broken(text), into=OTHER)

    class _WithoutServer(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            asyncio.run(_end_others())
            return super().read(size)

    async def _end_others() -> None:
        async with town.database.administer() as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
            )

    with pytest.raises(Unavailable):
        await import_campaign(town.database, _WithoutServer(text), into=OTHER)
    assert await _counts(town) == before


async def test_one_of_two_imports_at_once_is_refused(town: Store) -> None:
    text = await exported(town, TOWN)
    done = await asyncio.gather(imported(town, text, OTHER), imported(town, text, OTHER), return_exceptions=True)
    [refused] = [each for each in done if each is not None]
    assert isinstance(refused, InvalidInput) and "'other' already exists" in str(refused)
    assert await exported(town, OTHER) == text.replace('"id": "town"', '"id": "other"')


async def test_full_disk_ends_an_export(town: Store) -> None:
    class _Full(BytesIO):
        def write(self, _data: object) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(InvalidInput, match="cannot be written: No space left on device"):
        await export_campaign(town.database, TOWN, _Full(), Parts())


# Earlier versions


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("file", ["bundle-1-early.json", "bundle-1.json", "bundle-2.json"])
async def test_bundle_of_each_version_is_exported_as_the_newest(store: Store, file: str) -> None:
    text = (DATA / file).read_text("utf-8")
    await imported(store, text)
    found, kept = json.loads(await exported(store, TOWN)), json.loads(text)
    assert found["version"] == VERSION
    *events, confirmed, undone = found["tables"].pop("world_events")
    assert events == kept["tables"].pop("world_events")
    assert (confirmed["event_type"], confirmed["payload"]["as_heard"]) == ("form_heard", "Mirra")
    assert (undone["event_type"], undone["payload"]) == ("undone", {"event": confirmed["seq"]})
    kept["tables"]["sessions"] = [{**row, "title": ""} for row in kept["tables"]["sessions"]]
    assert found["tables"] == {table: kept["tables"].get(table, []) for table in BUNDLED if table != "world_events"}
    assert found["campaign"] == kept["campaign"]


async def test_published_schema_accepts_exports_and_is_current(town: Store) -> None:
    text = await schema(town)
    assert SCHEMA.read_text("utf-8") == text, "write it again: python -m tests.support.bundle_schema"
    validator = Draft202012Validator(json.loads(text), format_checker=FormatChecker())
    embedded = await exported(town, TOWN, Parts(embeddings=True))
    for bundle in (embedded, await exported_for_players(town, TOWN), (DATA / "bundle-1-early.json").read_text("utf-8")):
        assert [error.message for error in validator.iter_errors(json.loads(bundle))] == []
    assert list(validator.iter_errors({**json.loads(embedded), "version": 3}))


async def test_embeddings_go_along_and_other_dimensions_are_skipped(town: Store) -> None:
    add = (
        "INSERT INTO chunks (campaign_id, id, utterance_id, session_id, content, content_hash, embedding, model) "
        "VALUES ('town', 'first-1', 'first-1', 'first', 'word', 'hash', $1, 'model')"
    )
    async with town.database.use(TOWN) as connection:
        await connection.execute(add, [0.5] * 384)
    text = await exported(town, TOWN, Parts(embeddings=True))
    assert "chunks" not in json.loads(await exported(town, TOWN))["tables"]
    await imported(town, text, OTHER)
    assert await exported(town, OTHER, Parts(embeddings=True)) == text.replace('"id": "town"', '"id": "other"')
    smaller = CampaignId("smaller")
    await imported(town, text.replace(",".join(["0.5"] * 384), "0.5,0.5"), smaller)
    assert json.loads(await exported(town, smaller, Parts(embeddings=True)))["tables"]["chunks"] == []
    assert await town.log.count(smaller) == 4


# New game plus


async def _claims(store: Store, campaign: CampaignId) -> dict[Claim, tuple[str, str]]:
    facts = (await store.world.now(campaign)).facts.values()
    return {fact.claim: (fact.status, fact.visibility.scope) for fact in facts}


async def test_bound_bundle_goes_with_a_rollback_of_its_utterance(
    town: Store, cli: CommandLine, tmp_path: Path
) -> None:
    secret = FactStated(Claim.attribute(MIRA, "truth", "She is a dragon."), visibility=HIDDEN)
    waiting = FactStated(Claim.attribute(MIRA, "mood", "sad"), Provenance(confidence=0.3))
    refused = FactStated(Claim.attribute(MIRA, "wish", "a crown"))
    await town.world.commit(TOWN, [OWNS, RUNS, secret, waiting, refused], DM)
    path = tmp_path / "town.json"
    await cli.told("campaign", "export", path, "--campaign", "town", "--with-secrets")
    await a_campaign_row(town, OTHER)
    here = EntityAdded(EntityId("mira-2"), "npc", "mira")
    wish = Claim.attribute(here.entity, "wish", "a crown")
    stated = [FactStated(Claim.attribute(here.entity, "age", "40")), FactStated(wish), FactRejected(wish.fact_id)]
    await town.world.commit(OTHER, [here, *stated], DM)
    said = [replace(an_utterance(f"new {n}", id=f"new-{n}"), campaign_id=OTHER, session_id=FIRST) for n in range(1, 4)]
    await town.log.append(said)
    before = await _claims(town, OTHER)

    told = await cli.told("campaign", "import", path, "--bind", "latest", "--campaign", "other")
    assert "at utterance 3 of first" in told
    claims = await _claims(town, OTHER)
    assert claims == before | {
        Claim.relation(here.entity, "OWNS", SWORD): ("accepted", "public"),
        Claim.relation(here.entity, "LOCATED_AT", INN): ("accepted", "public"),
        Claim.attribute(here.entity, "truth", "She is a dragon."): ("accepted", "hidden"),
        Claim.attribute(here.entity, "mood", "sad"): ("pending", "public"),
    }
    await stands_as_replayed(town, OTHER)
    assert await town.log.count(OTHER) == 3
    await town.world.rollback(OTHER, FIRST, 2, DM)
    assert await _claims(town, OTHER) == before
    assert set((await town.world.now(OTHER)).entities) == {here.entity}

    for _twice in range(2):
        assert "at utterance 1" in await cli.told("campaign", "import", path, "--bind", "1:1", "--campaign", "other")
    await town.world.rollback(OTHER, FIRST, 1, DM)
    assert await _claims(town, OTHER) == claims
    with pytest.raises(NotFound, match="no utterance 3 in session 'first'"):  # retracted
        await bind_campaign(town.database, town.world, BytesIO(path.read_bytes()), Place(OTHER, FIRST, 3), now_ms=1)


async def test_bundle_is_bound_to_a_campaign_without_transcript(town: Store) -> None:
    text = (await exported(town, TOWN)).encode()
    await a_campaign_row(town, OTHER)
    _, events = await bind_campaign(town.database, town.world, BytesIO(text), Place(OTHER), now_ms=5)
    assert {event.cause for event in events} == {Cause("import", 5)}
    assert "episode-first" not in (await stands_as_replayed(town, OTHER)).entities


async def test_broken_bundle_binds_nothing(town: Store, cli: CommandLine, tmp_path: Path) -> None:
    found = json.loads(await exported(town, TOWN))
    found["tables"]["entities"][0]["name"] = "Nobody"
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(found))
    await a_campaign_row(town, OTHER)
    before = await _counts(town)
    for options, told in (
        (("--bind", "latest", "--campaign", "other"), "does not match"),
        (("--bind", "latest", "--campaign", "nowhere"), "'nowhere'"),
        (("--bind", "first", "--campaign", "other"), "write restore, latest or SESSION:ORDINAL"),
        (("--bind", "9:1", "--campaign", "other"), "no session '9'"),
        (("--bind", "latest", "--as", "new"), "--as needs --bind restore"),
        (("--campaign", "other"), "--campaign needs --bind latest"),
    ):
        assert told in await cli.problem("campaign", "import", path, *options)
    assert await _counts(town) == before


# Ten lines of Python


async def test_lines_of_the_docs_turn_a_bundle_into_markdown(
    town: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.world.commit(TOWN, [OWNS], DM)
    page = (DATA.parents[1] / "docs" / "writing-a-campaign.md").read_text("utf-8")
    [lines] = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "bundle" in block]
    assert len([line for line in lines.splitlines() if line]) == 10
    (tmp_path / "bundle.json").write_text(await exported(town, TOWN), "utf-8")
    monkeypatch.chdir(tmp_path)
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-I", "-c", lines], capture_output=True, check=True)
    text = done.stdout.decode()
    assert text.startswith("# town\n")
    for part in ("## Mira (npc)", "- OWNS: The Sword", "## Session first", "**Tamsin:** word 1"):
        assert part in text
