"""An NPC's facts are found by the meaning of a question, with the embedding model of a default installation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from glyphoxa.adapters.local.minilm import MiniLm
from glyphoxa.adapters.postgres.store import open_store
from glyphoxa.app.memory import TableMemory
from glyphoxa.app.models import embedder_of
from glyphoxa.app.table import table_context
from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.sections import ContextSettings
from glyphoxa.config.settings import Settings
from glyphoxa.domain.heard import Utterance
from glyphoxa.domain.ids import NpcId, SessionId, SpeakerId, UtteranceId
from glyphoxa.domain.knowledge import Claim
from glyphoxa.npc.table_state import TableState
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.gather import HotContexts
from glyphoxa.prompt.prompt import HotContext, with_hot_context
from glyphoxa.recall.vectors import TextVectors
from glyphoxa.world.event_kinds import FactRejected, FactStated
from glyphoxa.world.event_log import Cause
from glyphoxa.world.graph import WorldHistory
from tests.support.minds import beginning
from tests.support.patience import DEADLINE_MS
from tests.support.recalled import PATIENT
from tests.support.weights import weights

CAMPAIGN = read_campaign(Path(__file__).parents[1] / "support" / "deep_station.yaml").campaign
NPCS: Mapping[str, NpcId] = {npc.name.split()[0]: npc.id for npc in CAMPAIGN.npcs}
LAST_EVENING = [
    ("Ruben", "Ilse", "How many people work on the day shift?"),
    ("Ruben", "Ruben", "Eleven, if they all get up."),
    ("Ruben", "Ilse", "We will dive tomorrow at six."),
    ("Ruben", "Ruben", "Then check the seals twice."),
    ("Tala", "Marek", "My ears have been ringing since the last dive."),
    ("Tala", "Tala", "That is the pressure. Come back on Tuesday."),
]


@pytest.fixture(scope="module")
def minilm() -> MiniLm:
    return MiniLm(weights("minilm-l6-v2-int8"))


@dataclass(frozen=True, slots=True)
class Station:
    state: TableState
    context: HotContexts
    world: WorldHistory
    meanings: TextVectors

    async def asked(self, npc: str, question: str, asker: str = "Ilse") -> HotContext:
        return await self.context.gather(NPCS[npc], question, asker=asker, within_ms=DEADLINE_MS)

    def prompt(self, npc: str, question: str, hot: HotContext) -> str:
        whole = with_hot_context(self.state.conversations[NPCS[npc]].prompt(question, "Ilse"), hot)
        return "\n".join(message.content for message in whole.messages)


@pytest.fixture
async def station(dsn: str, tmp_path: Path, minilm: MiniLm) -> AsyncIterator[Station]:
    patient = ContextSettings(recall_deadline_ms=5_000)
    settings = Settings(data_dir=tmp_path, context=patient)
    async with open_store(dsn, embedder=embedder_of(minilm), recall=PATIENT) as store:
        talks = {npc.id: Conversation(npc, beginning=beginning(CAMPAIGN, npc)) for npc in CAMPAIGN.npcs}
        state = TableState(CAMPAIGN, SessionId("tonight"), CAMPAIGN.scenes[0], talks)
        memory = TableMemory(store, state, tmp_path / "spool")
        await memory.open()
        await store.log.append([_utterance(n, *line) for n, line in enumerate(LAST_EVENING)])
        await store.chunks.fill_missing(CAMPAIGN.id)
        await store.past_talk.transcript(CAMPAIGN.id).refresh()
        context = table_context(settings, state, store)
        await context.enter(CAMPAIGN.scenes[0])
        await store.meanings.wait_until_learned()
        yield Station(state, context, store.world, store.meanings)
        await context.prefetch.close()
        await memory.close()


def _utterance(number: int, heard_by: str, speaker: str, text: str) -> Utterance:
    return Utterance(
        id=UtteranceId(f"said-{number}"),
        campaign_id=CAMPAIGN.id,
        session_id=SessionId("last evening"),
        speaker_id=SpeakerId(NPCS.get(speaker, speaker.lower())),
        speaker_name=CAMPAIGN.npc(NPCS[speaker]).name if speaker in NPCS else speaker,
        text=text,
        raw_text=text,
        at_ms=1_000 * number + 1,
        npc_id=NPCS.get(speaker),
        witnesses=frozenset({NPCS[heard_by]}),
    )


@pytest.mark.parametrize(
    ("npc", "question", "needed"),
    [
        ("Ruben", "How deep are we here, foreman?", "860 metres"),
        ("Ruben", "How far below the surface are we?", "860 metres"),
        ("Tala", "How many metres of water are above us?", "860 metres"),
        ("Ruben", "What year is it?", "2139"),
        ("Ruben", "How many people live down here?", "Forty-three"),
        ("Sill", "How many of us are on board?", "Forty-three"),
        ("Ruben", "May I go outside by myself?", "alone"),
        ("Ruben", "Why does the lower ring smell so odd?", "bleach"),
        ("Ruben", "How old will you be in October?", "sixty"),
        ("Ruben", "When is your birthday?", "sixty"),
        ("Ruben", "Do you have any children?", "Maja"),
        ("Ruben", "What happened to your hand?", "winch"),
        ("Tala", "Are you scared of anything?", "dark"),
        ("Sill", "Where were you born?", "freighter"),
        ("Ruben", "When does the next supply sub come?", "Friday"),
        ("Ruben", "When do we get our mail?", "Friday"),
        ("Sill", "Who commands the supply boat?", "Joris Vane"),
        ("Ruben", "How fast is Crawler Nine?", "four knots"),
        ("Ruben", "What is wrong with Crawler Nine?", "track slips"),
        ("Ruben", "When was this place built?", "2117"),
        ("Tala", "Which room is warm?", "Galley"),
        ("Tala", "Doc, did you know Solveig?", "cards"),
        ("Tala", "What does the voice on the hydrophone do?", "backwards"),
        ("Ruben", "When are we going down tomorrow?", "at six"),
        ("Ruben", "What time are we leaving?", "at six"),
        ("Ruben", "Who do we work for?", "Nordlys"),
    ],
)
async def test_meaning_of_question_finds_what_answers_it(
    station: Station, npc: str, question: str, needed: str
) -> None:
    hot = await station.asked(npc, question)

    assert needed in " ".join((*hot.facts, *hot.remembered)), hot.recalled
    assert (hot.not_known, hot.shrugs) == ((), ())


async def test_asker_is_told_its_own_question_in_its_own_words(station: Station) -> None:
    hot = await station.asked("Ruben", "What did I ask you last time?")

    assert hot.shrugs == ('You said: "How many people work on the day shift?"',)


OTHERS_SECRETS: Mapping[str, tuple[str, ...]] = {
    "Ruben": ("Ghost Signal", "hydrophone", "drowned diver", "Bunker", "912", "distils", "owes"),
    "Tala": ("Bunker", "912", "oxygen", "smuggler", "distils", "owes"),
    "Sill": ("Ghost Signal", "hydrophone", "drowned diver", "oxygen", "smuggler"),
}


@pytest.mark.parametrize("npc", OTHERS_SECRETS)
async def test_nothing_near_in_meaning_is_anothers_secret(station: Station, npc: str) -> None:
    for question in (
        "How deep is the deepest room?",
        "How many metres below the surface is the supply of food?",
        "Where is there food for a year?",
        "What is the voice that counts backwards at night?",
        "Who speaks with the voice of a drowned diver?",
        "Who sold the spare oxygen to a smuggler?",
        "Who distils spirits behind the water tank?",
        "Who owes money to the foreman?",
        "What do the others keep secret?",
    ):
        prompt = station.prompt(npc, question, await station.asked(npc, question)).replace(question, "")

        assert [word for word in OTHERS_SECRETS[npc] if word in prompt] == [], question


async def test_changed_fact_is_found_by_its_new_meaning(station: Station) -> None:
    asked = "When does the next supply sub come?"
    assert "Friday" in " ".join((await station.asked("Ruben", asked)).facts)
    schedule = Claim.attribute(CAMPAIGN.entities[5].id, "schedule", "every second Friday")
    told = Claim.attribute(schedule.subject, "delayed", "the Aurora comes on the third of May only")

    await station.world.commit(CAMPAIGN.id, [FactRejected(schedule.fact_id), FactStated(told)], Cause("dm", 100))
    await station.asked("Ruben", "Good evening.")
    await station.meanings.wait_until_learned()

    facts = " ".join((await station.asked("Ruben", asked)).facts)
    assert "third of May" in facts
    assert "Friday" not in facts
