"""Results of an evening: asides, NPCs' inventions and a secret are played through a table's room."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from glyphoxa.adapters.postgres.chronicle_nodes import PostgresAtoms
from glyphoxa.adapters.postgres.reading_progress import PostgresChronicleLog
from glyphoxa.adapters.postgres.store import Store, open_store
from glyphoxa.adapters.postgres.world.inspection import PostgresInspection
from glyphoxa.app.background import chronicle_worker, timeline_writer
from glyphoxa.app.desk import recap_of
from glyphoxa.chronicle.ports import said_in
from glyphoxa.config.settings import Settings
from glyphoxa.domain.events import TurnFinished
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import CampaignId, NpcId
from glyphoxa.domain.knowledge import DM
from glyphoxa.transcript.ports import TalkQuery
from tests.integration.conftest import hurry_nobody
from tests.support.live_table import SESSION, an_evening, patient, settings_for, write_campaign
from tests.support.postgres import TestServer

TOWN, GRIMJAW, ELDRINAX = CampaignId("town"), NpcId("grimjaw"), NpcId("eldrinax")

# Who types it, what, and the answer of the NPC that it calls. "<" precedes the reason why a line is an aside.
ENGLISH: Final = """
Bran | We could just burn the granary tonight. < planning
Tamsin | (to Bran) Watch the smith, he hides the zircon key under the anvil. < whisper
Bran | (to Tamsin) I promise you half of the opal hoard. < whisper
Bran | ooc: my cousin Xaver flies to Porto tomorrow. < out_of_character
Tamsin | ((pizza with Lorenzo?)) < out_of_character
Tamsin | Grimjaw, good evening. | Good evening to you.
Tamsin | Grimjaw, I promise to bring you the copper bell before the harvest. | I promise you a sword by Sunday.
Tamsin | Grimjaw, who else lives here? | My cousin Edvard owns the Gilded Plough.
Tamsin | Grimjaw, who is Edvard? | Edvard married Marguerite of Thornwick.
Bran | (to Tamsin) Edvard is a liar, he serves the Veiled Sultan. < whisper
Tamsin | Grimjaw, my sister Ysmay Corrin lives in Harth Hollow. | Ysmay Corrin is a queen.
Tamsin | // does a griffin get advantage here? < out_of_character
Tamsin | Grimjaw, did you forge a false crown for the king? | Never.
Tamsin | Grimjaw forged the false crown, I am sure of it.
Tamsin | (ooc back in five, the kettle boils) < out_of_character
Bran | We should poison the ferryman before dawn. < planning
Bran | brb, my toddler cries < out_of_character
Tamsin | Eldrinax, what do you see in the stars? | A comet called Vashti falls on Ironhold.
Tamsin | Eldrinax, we found a silver letter in the old well. | The letter is from Baron Osric.
Tamsin | Eldrinax, who is Baron Osric? | He rules Marrowgate.
Tamsin | [whispers to Bran] Eldrinax is drunk, steal his lodestone. < whisper
Bran | @Tamsin I keep the lodestone in my boot. < whisper
Tamsin | Eldrinax, I am a healer from Ironhold. | You are a thief.
Tamsin | Eldrinax, my brother Rowan Corrin is missing. | Rowan Corrin is in the Gilded Plough.
Tamsin | I walk over to the window and look at the rain.
Bran | /w Tamsin The rain hides the smugglers of Quay Nine. < whisper
Bran | ooc: Quillon's sister is the funniest dungeon master. < out_of_character
Bran | Hm.
Tamsin | Grimjaw, we decided to leave for Ironhold at dawn. | I come with you to Marrowgate.
Tamsin | Grimjaw, is the bridge to Ironhold safe? | The troll Brogmar eats travellers.
Tamsin | Grimjaw, thank you. | Aye.
Bran | roll for initiative, Kowalski < out_of_character
Tamsin | whisper to Bran: I owe the Raven Bank forty crowns. < whisper
Bran | (to Tamsin) My father is the hangman of Ostrava. < whisper
Tamsin | Eldrinax, what do you want for the map? | Forty doubloons.
Tamsin | Eldrinax, I gave Grimjaw the old map. | I gave him a dragon.
Bran | Grimjaw, I fear the deep water. | I fear nothing but Brogmar.
Bran | Grimjaw, what is hidden under your anvil? | Dust.
Tamsin | Eldrinax, what do we burn tonight, and what of the bell? | Nothing.
Tamsin | Grimjaw, what of the bell? | You promised it.
"""
GERMAN: Final = """
Bran | Wir sollten heute Nacht die Kornkammer anzünden. < planning
Tamsin | (zu Bran) Der Schmied versteckt den Zirkon unter dem Amboss. < whisper
Bran | (an Tamsin) Ich verspreche dir die Hälfte der Opale. < whisper
Bran | ooc: mein Cousin Xaver fliegt morgen nach Porto. < out_of_character
Tamsin | Grimjaw, guten Abend. | Guten Abend.
Tamsin | Grimjaw, ich verspreche dir die kupferne Glocke vor der Ernte. | Ich verspreche dir ein Schwert bis Sonntag.
Tamsin | Grimjaw, wer wohnt hier noch? | Meinem Vetter Edvard gehört der Goldene Pflug.
Tamsin | Grimjaw, wer ist Edvard? | Edvard ist der Mann von Marguerite.
Tamsin | Grimjaw, meine Schwester Ysmay Corrin wohnt in Harthal. | Ysmay Corrin ist eine Königin.
Tamsin | // hat ein Greif hier Vorteil? < out_of_character
Tamsin | (zu Bran) Edvard lügt, er dient dem Sultan. < whisper
Tamsin | Grimjaw, hast du eine falsche Krone geschmiedet? | Niemals.
Tamsin | Grimjaw, wir haben beschlossen, im Morgengrauen nach Ironhold aufzubrechen. | Ich komme mit nach Marrowgate.
Bran | Grimjaw, was liegt unter deinem Amboss? | Staub.
Tamsin | Grimjaw, was ist mit der Glocke? | Du hast sie versprochen.
"""
SECRETS: Final = {
    "en": "Grimjaw forged the king's false crown.",
    "de": "Grimjaw hat die falsche Krone des Königs geschmiedet.",
}
OWN_WORDS = re.compile(r'(?:You said|Du hast gesagt): "[^"]*"')
APART: Final = {
    "en": (
        *("granary", "zircon", "opal", "Xaver", "Lorenzo", "Sultan", "griffin", "kettle", "ferryman", "toddler"),
        *("lodestone", "smugglers", "funniest", "Kowalski", "Raven", "hangman"),
    ),
    "de": ("Kornkammer", "Zirkon", "Opale", "Xaver", "Greif", "Sultan"),
}
INVENTED: Final = {
    "en": ("sword", "Plough", "Marguerite", "queen", "Vashti", "Osric", "Marrowgate", "thief", "Brogmar", "doubloons"),
    "de": ("Schwert", "Pflug", "Marguerite", "Königin", "Marrowgate"),
}
LEARNED: Final = {
    "en": {"Ysmay Corrin", "Harth Hollow", "Rowan Corrin"},
    "de": {"Ysmay Corrin", "Harthal"},
}
SECRET_WORDS: Final = {"en": ("crown",), "de": ("Krone",)}
BELL: Final = {"en": "copper bell", "de": "kupferne Glocke"}


@dataclass(frozen=True, slots=True)
class Line:
    """A typed line, the answer to it, and why it is an aside."""

    player: str
    text: str
    reply: str
    aside: str


def lines_of(script: str) -> list[Line]:
    lines: list[Line] = []
    for row in script.strip().splitlines():
        said, _, aside = row.partition(" < ")
        player, text, *reply = said.split(" | ")
        lines.append(Line(player, text, " ".join(reply), aside))
    return lines


SCRIPTS: Final = {"en": lines_of(ENGLISH), "de": lines_of(GERMAN)}


@dataclass(frozen=True, slots=True)
class Played:
    """An evening after it was played and read.

    Attributes:
        prompts: All that each NPC's model was sent.
    """

    language: str
    script: list[Line]
    store: Store
    prompts: dict[NpcId, str]
    states: tuple[str, ...]
    log: list[Utterance]


def has_none(text: str, *words: str) -> bool:
    return [word for word in words if word.casefold() in text.casefold()] == []


def settings_of(language: str, directory: Path, dsn: str) -> Settings:
    campaign = write_campaign(
        directory,
        others=["Eldrinax"],
        more=[{"name": name, "type": "player"} for name in ("Tamsin", "Bran")],
        language=language,
        secrets=[{"text": SECRETS[language], "known_by": ["Grimjaw"]}],
    )
    settings = patient(settings_for(campaign, dsn, directory))
    short = {"history_tokens": 400, "memory_interval": 1}
    return settings.model_copy(update={"context": settings.context.model_copy(update=short)})


async def play(language: str, directory: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> dict[NpcId, str]:
    """Play the whole evening, and read it. Returns all that each NPC's model was sent."""
    async with an_evening(settings_of(language, directory, dsn), monkeypatch) as evening:
        players = {player.name: player for player in evening.table.campaign.players}
        for line in SCRIPTS[language]:
            for mouth in evening.mouths.values():
                mouth.reply = line.reply or "Nobody hears this."
            evening.table.say(players[line.player].id, line.text)
            await evening.finished(line.text)
        prompts = {
            npc: str([prompt.messages for prompt in (*mouth.asked, *mouth.primed)])
            + " ".join(e.turn.prompt.text for e in evening.told if isinstance(e, TurnFinished) and e.turn.npc_id == npc)
            for npc, mouth in evening.mouths.items()
        }
    async with open_store(dsn) as store:
        await chronicle_worker(store).read_new(TOWN)
    return prompts


@pytest.fixture(scope="module", params=["en", "de"])
def once(
    request: pytest.FixtureRequest, postgres: TestServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, dict[NpcId, str]]]:
    """An evening that is played once: its language, its database, and all that each NPC's model was sent."""
    language, database = str(request.param), asyncio.run(postgres.create())
    dsn = postgres.server.dsn(database)
    with pytest.MonkeyPatch.context() as monkeypatch:
        hurry_nobody(monkeypatch)
        prompts = asyncio.run(play(language, tmp_path_factory.mktemp("evening"), dsn, monkeypatch))
    yield language, dsn, prompts
    asyncio.run(postgres.drop(database))


@pytest.fixture
async def played(once: tuple[str, str, dict[NpcId, str]]) -> AsyncIterator[Played]:
    language, dsn, prompts = once
    async with open_store(dsn) as store:
        states = await store.states(TOWN, SESSION).all()
        log = await said_in(PostgresChronicleLog(store.database, store.world), TOWN, SESSION)
        texts = tuple(state.text for state in states.values())
        yield Played(language, SCRIPTS[language], store, prompts, texts, [each.utterance for each in log])


async def test_asides_are_marked_and_reach_no_prompt_or_recall(played: Played) -> None:
    kept = [each for each in played.log if each.npc_id is None]
    assert [(each.raw_text, each.aside or "") for each in kept] == [(line.text, line.aside) for line in played.script]
    assert {each.witnesses for each in kept if each.aside} == {frozenset()}
    for prompt in played.prompts.values():
        assert has_none(prompt, *APART[played.language])
    assert BELL[played.language] in played.prompts[GRIMJAW]
    assert SECRETS[played.language] not in played.prompts[ELDRINAX]
    for npc in played.prompts:
        told = [
            one.text
            for question in (BELL[played.language], *(f"What of {word}?" for word in APART[played.language]))
            for one in await played.store.past_talk.recall(TOWN, npc, TalkQuery(question, limit=50))
        ]
        assert BELL[played.language] in " ".join(told)
        assert has_none(" ".join(told), *APART[played.language])


async def test_findings_need_review_and_rest_on_players_words(played: Played) -> None:
    known = await PostgresChronicleLog(played.store.database, played.store.world).known(TOWN)
    assert {each.name for each in known if each.is_of_talk} == LEARNED[played.language]
    facts = await PostgresInspection(played.store.database).current(TOWN, DM, limit=500)
    found = [each for each in facts if each.provenance.origin == "talk" and each.provenance.utterance_id is not None]
    assert {each.status for each in found} == {"pending"}
    stated = {each.id for each in played.log if each.npc_id is None and each.aside is None}
    assert {each.provenance.utterance_id for each in found} <= stated
    assert {"promise", "decision"} <= {each.claim.predicate for each in found}
    claims = " ".join(str(each.claim) for each in found)
    assert has_none(claims, *APART[played.language], *INVENTED[played.language])


async def test_recaps_summaries_and_threads_tell_only_the_story(played: Played) -> None:
    recap = " ".join(await recap_of(played.store, TOWN, SESSION, "players", tokens=2_000))
    assert has_none(recap, "Edvard", *SECRET_WORDS[played.language])
    told = await (await timeline_writer(played.store, TOWN)).sum_up(SESSION) or {}
    assert BELL[played.language] in recap
    assert BELL[played.language] in told[GRIMJAW]
    threads = await PostgresAtoms(played.store.database).open_threads(TOWN, limit=100)
    atoms = [f"{each.title} {each.summary}" for each in threads]
    assert all([played.states, *played.states])
    assert atoms
    # An NPC keeps its own promises, whatever they contain, and only it does.
    views = [OWN_WORDS.sub("", each) for each in (*told.values(), *played.states)]
    for text in (recap, *views, *atoms):
        assert has_none(text, *APART[played.language], *INVENTED[played.language])
