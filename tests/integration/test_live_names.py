"""Names at an open table, with the real database: what others decide, what talk proves, a database that is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.openai import OpenAiServer, Reply
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.learned_names import PostgresLearnedNames
from glyphoxa.cli.main import main
from glyphoxa.config.settings import Settings
from glyphoxa.dm.source_world import EVERYTHING, SourceDocument, SourceWorld
from glyphoxa.domain.events import UtteranceRevised
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, NpcId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, secret_of
from glyphoxa.transcript.ports import TalkQuery
from glyphoxa.world.event_kinds import AliasAdded, AliasRemoved, EntityAdded, EntityRemoved, EntityScoped
from glyphoxa.world.event_log import Cause, Event
from tests.support.live_table import SESSION, Evening, an_evening, settings_for, write_campaign
from tests.support.patience import DEADLINE_S

TOWN, GRIMJAW = CampaignId("town"), NpcId("grimjaw")
CROWD = [{"name": f"Zorvath{a}{b}", "type": "concept"} for a in "bdfghjklmn" for b in "prstvwxzqk"]
"""More names than a recogniser takes hints for."""


@pytest.fixture
def settings(tmp_path: Path, dsn: str) -> Settings:
    return settings_for(write_campaign(tmp_path), dsn, tmp_path)


async def dm(directory: Path, dsn: str, *arguments: str) -> None:
    """`glyphoxa names ...` on a connection of its own."""
    file = directory / "dm.yaml"
    file.write_text(f"memory: {{postgres_dsn: '{dsn}'}}\n", "utf-8")
    assert await asyncio.to_thread(main, ["names", *arguments, "--config", str(file)]) == 0


async def happen(dsn: str, *events: Event) -> None:
    """Commit events like the DM's commands, on a connection of their own."""
    async with open_store(dsn) as store:
        await store.world.commit(TOWN, events, Cause("dm", at_ms=1))


async def taken_by(evening: Evening, happens: Awaitable[None]) -> None:
    """Until the table has taken what happens elsewhere."""
    changed = evening.names_change()
    await happens
    async with asyncio.timeout(DEADLINE_S):
        await changed.wait()


async def stored(store: Store) -> list[Utterance]:
    return await store.log.recent(TOWN, SESSION, since_ms=0)


# -- what others decide while the table is open


async def test_what_the_dm_confirms_elsewhere_is_heard_right_from_the_next_utterance_until_it_is_undone(
    settings: Settings, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, right = "Grimjaw, have you seen Quibbleworth?", "Grimjaw, have you seen Eldrinax?"
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        assert ear.say(said) == said
        await taken_by(evening, dm(tmp_path, dsn, "accept", "Quibbleworth", "Eldrinax"))
        assert ear.say(said) == right
        assert (await evening.finished(right)).raw_text == said
        evening.table.say(evening.table.campaign.players[1].id, said)
        await evening.until(lambda: evening.kept_texts.count(right) == 2)
        await taken_by(evening, dm(tmp_path, dsn, "undo"))
        assert ear.say(said) == said


async def test_a_name_that_was_misheard_is_listened_for_from_then_on(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = write_campaign(tmp_path, more=[*CROWD, *({"name": f"Zorv{c}", "type": "item"} for c in ("aq", "eq"))])
    settings = settings_for(campaign, dsn, tmp_path)
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        assert "Zorveq" not in ear.keyterms()
        n_told = ear.n_told_of_names
        for heard in ("Quibbleworth", "Mumblesnort"):
            await taken_by(evening, dm(tmp_path, dsn, "accept", heard, "Zorveq"))
        assert "Zorveq" in ear.keyterms()
        assert ear.n_told_of_names > n_told
    async with an_evening(settings, monkeypatch, session="the next") as evening:
        assert "Zorveq" in (await evening.ear()).keyterms()


async def test_a_new_entity_is_known_at_the_open_table_to_all_who_hear(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        assert ear.partial("and then vash karri came") == "and then vash karri came"
        await taken_by(evening, happen(dsn, EntityAdded(EntityId("vashkari"), "npc", "Vashkari")))
        assert ear.partial("and then vash karri came") == "and then Vashkari came"
        assert "Vashkari" in ear.keyterms()
        [named] = evening.table.names.current.mentions("Where is Vashkari?")
        assert named.name.entity_id == "vashkari"
        await taken_by(evening, happen(dsn, EntityRemoved(EntityId("vashkari"))))
        assert ear.partial("and then vash karri came") == "and then vash karri came"


async def accept_import(dsn: str, *documents: SourceDocument) -> None:
    """On a connection of its own."""
    async with open_store(dsn) as store:
        desk = store.imports(TOWN)
        await desk.take_in(SourceWorld("foundry", "coast", "Coast", documents))
        await desk.accept(EVERYTHING)


async def test_accepted_import_is_heard_right_at_the_open_table(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        assert ear.partial("and then vash karri came") == "and then vash karri came"
        seen = SourceDocument("a1", "Vashkari", "npc", "Actor (npc)", "a.db", hidden=False)
        await taken_by(
            evening, accept_import(dsn, seen, SourceDocument("a2", "Ozymbrax", "npc", "Actor (npc)", "a.db"))
        )
        assert ear.partial("and then vash karri came") == "and then Vashkari came"
        assert evening.table.may_show("Vashkari came")
        assert not evening.table.may_show("Ozymbrax came")


async def test_removed_name_is_no_longer_hinted_or_corrected(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [{"name": "Zorvaq", "id": "zorvaq", "type": "item", "aliases": ["Mumblesnort"]}]
    settings = settings_for(write_campaign(tmp_path, more=more), dsn, tmp_path)
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        assert ear.partial("and then mumble snort came") == "and then Mumblesnort came"
        await taken_by(evening, happen(dsn, AliasRemoved(EntityId("zorvaq"), "Mumblesnort")))
        assert ear.partial("and then mumble snort came") == "and then mumble snort came"
        assert "Zorvaq" in ear.keyterms() and "Mumblesnort" not in ear.keyterms()
        await taken_by(evening, happen(dsn, EntityRemoved(EntityId("zorvaq"))))
        assert ear.partial("the zorvack is here") == "the zorvack is here"
        assert "Zorvaq" not in ear.keyterms() and "Zorvaq" not in evening.table.names.hints.glossary()
    async with an_evening(settings, monkeypatch, session="the next") as evening:
        ear = await evening.ear()
        assert "Zorvaq" not in ear.keyterms() and "Mumblesnort" not in ear.keyterms()
        assert ear.partial("and then mumble snort came") == "and then mumble snort came"


async def test_what_players_may_read_follows_what_the_dm_hides_and_reveals(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        await taken_by(evening, happen(dsn, EntityAdded(EntityId("vashkari"), "npc", "Vashkari", (), HIDDEN)))
        assert not evening.table.may_show("Vashkari came")
        await taken_by(evening, happen(dsn, EntityScoped(EntityId("vashkari"), PUBLIC)))
        assert evening.table.may_show("Vashkari came")
        await taken_by(evening, happen(dsn, EntityScoped(EntityId("vashkari"), secret_of([GRIMJAW]))))
        assert not evening.table.may_show("Vashkari came")


async def test_a_new_player_who_is_called_is_answered_by_no_npc_and_a_new_alias_calls_one(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        await taken_by(evening, happen(dsn, EntityAdded(EntityId("ysolde"), "player", "Ysolde")))
        ear.say("Ysolde, what do you think?")
        unanswered = await evening.finished("Ysolde, what do you think?")
        assert (unanswered.npc_id, unanswered.address_reason) == (None, "Ysolde, a player, was called")
        await taken_by(evening, happen(dsn, AliasAdded(EntityId("grimjaw"), "Old Hammerhand")))
        ear.say("Old Hammerhand, is it done?")
        answered = await evening.finished("Old Hammerhand, is it done?")
        assert (answered.npc_id, answered.address_reason) == (GRIMJAW, "Grimjaw was called")


# -- what talk proves


def right_name(body: Mapping[str, Any]) -> Reply:
    """A model that knows whom the marked words mean."""
    transcript = body["messages"][-1]["content"].rpartition("Transcript: ")[2]
    marked = transcript[transcript.index("<<") + 2 : transcript.index(">>")]
    edit = {"original": marked, "corrected": "Eldrinax", "reason": "sounds alike"}
    whole = transcript.replace(f"<<{marked}>>", "Eldrinax")
    return Reply(json.dumps({"corrections": [edit], "corrected_text": whole}))


async def test_missed_garble_is_corrected_in_the_background_and_learned(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, better = "I met the linux in the hills.", "I met Eldrinax in the hills."
    async with OpenAiServer(right_name) as server:
        look = {"name": "openai-compatible", "base_url": server.base_url}
        settings = settings_for(write_campaign(tmp_path), dsn, tmp_path, llm=look)
        async with an_evening(settings, monkeypatch) as evening:
            ear = await evening.ear()
            assert ear.say(line, unsure="the linux") == line
            [revised] = await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceRevised)])
            assert (revised.was.text, revised.utterance.raw_text, revised.utterance.text) == (line, line, better)
            assert "eldrinax" in evening.table.names.nearby()
    async with open_store(dsn) as store:
        [said] = [each for each in await stored(store) if each.npc_id is None]
        assert (said.raw_text, said.text) == (line, better)
        [edit] = said.corrections
        assert (edit.stage, edit.before, edit.after) == ("llm", "the linux", "Eldrinax")
        recalled = await store.past_talk.recall(TOWN, GRIMJAW, TalkQuery("Where did they meet Eldrinax?", limit=1))
        assert [each.text for each in recalled] == [better]
        [pair] = await PostgresLearnedNames(store.database).statuses(TOWN)
    assert (pair.heard, pair.name, pair.status.state) == ("the linux", "Eldrinax", "suggested")
    assert pair.status.utterances == (said.id,)


async def test_provider_transcript_of_an_npc_is_corrected_later(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(write_campaign(tmp_path, engine="s2s"), dsn, tmp_path)
    async with an_evening(settings, monkeypatch, reply="I forged it in iron hold.") as evening:
        (await evening.ear()).say("Grimjaw, where is it from?")
        [revised] = await evening.until(lambda: [e for e in evening.told if isinstance(e, UtteranceRevised)])
        assert (revised.was.text, revised.utterance.text) == ("I forged it in iron hold.", "I forged it in Ironhold.")
    async with open_store(dsn) as store:
        [said] = [each for each in await stored(store) if each.npc_id == GRIMJAW]
        assert (said.raw_text, said.text) == ("I forged it in iron hold.", "I forged it in Ironhold.")
        assert [edit.stage for edit in said.corrections] == ["phonetic"]
        assert await PostgresLearnedNames(store.database).statuses(TOWN) == []


async def test_a_name_that_a_player_spells_out_is_heard_right_in_the_next_session(
    settings: Settings, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    garble = "Is Aldrunix at home?"
    async with an_evening(settings.model_copy(update={"correction": WITHOUT_SOUND}), monkeypatch) as evening:
        ear = await evening.ear()
        for line in (garble, "No, E-L-D-R-I-N-A-X.", "So Aldrunix is away?", "No, Eldrinax!"):
            assert ear.say(line) == line
            await evening.kept(line)
    async with an_evening(settings, monkeypatch, session="the next") as evening:
        assert (await evening.ear()).say(garble) == "Is Eldrinax at home?"
        kept = await evening.kept(garble)
    assert [edit.stage for edit in kept.corrections] == ["learned"]


WITHOUT_SOUND = settings_for(Path("c"), "none", Path("d"), phonetic=False).correction


# -- settings


@pytest.mark.parametrize(
    ("correction", "said", "right"),
    [
        ({}, "Ride to iron hold.", "Ride to Ironhold."),
        ({}, "We ate brown bread.", "We ate brown bread."),
        ({"phonetic": False}, "Ride to iron hold.", "Ride to iron hold."),
        ({"algorithm": "documents"}, "We ate brown bread.", "Bran bread."),
        (
            {"algorithm": "documents", "phonetic_threshold": 1.0, "fuzzy_threshold": 1.0},
            "We ate brown bread.",
            "We ate brown bread.",
        ),
    ],
)
async def test_the_stage_by_sound_is_as_the_settings_want_it(
    tmp_path: Path, correction: dict[str, Any], said: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(write_campaign(tmp_path), "none", tmp_path, **correction)
    async with an_evening(settings, monkeypatch) as evening:
        assert (await evening.ear()).say(said) == right
        evening.table.say(evening.table.campaign.players[1].id, said)
        await evening.until(lambda: evening.kept_texts.count(right) == 2)


# -- what is near


# -- a database that is away


async def test_without_its_database_a_table_plays_with_the_names_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(write_campaign(tmp_path), "postgresql://127.0.0.1:1/none", tmp_path)
    async with an_evening(settings, monkeypatch) as evening:
        ear = await evening.ear()
        assert ear.say("Grimjaw, ride to iron hold.") == "Grimjaw, ride to Ironhold."
        assert (await evening.finished("Grimjaw, ride to Ironhold.")).npc_id == GRIMJAW
        assert ear.say("Eldrinax, not Aldrunix.") == "Eldrinax, not Aldrunix."
        await evening.kept("Eldrinax, not Aldrunix.")
