"""Topics that a group does not play, or that nobody may, are sent down every road to a model, a player or a voice.

A new road is a new function here, and a new row of the table in `docs/how-it-works.md`.
"""

from __future__ import annotations

import asyncio
import json
import re
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphoxa.app.background import TalkReaders
from glyphoxa.app.desk import SessionRecaps
from glyphoxa.app.table import state_of
from glyphoxa.chat.asker import ModelAsker
from glyphoxa.chronicle.coined_terms import CoinedTerms
from glyphoxa.chronicle.rules_extractor import names_of
from glyphoxa.chronicle.summaries import LlmSummariser
from glyphoxa.chronicle.timeline_writer import StoredTimeline, TimelineWriter
from glyphoxa.config.settings import Settings
from glyphoxa.dm.handouts import PlayersView, PublicPart
from glyphoxa.domain.campaign import Campaign, Entity, Exchange, Safety, Secret
from glyphoxa.domain.events import NpcSpeaks, SceneChanged, TableEvent, UtteranceKept, UtteranceRevised
from glyphoxa.domain.heard import PartialHeard, TurnEnded, Utterance
from glyphoxa.domain.ids import CampaignId, EntityId, SessionId, SpeakerId, TurnId, UtteranceId
from glyphoxa.domain.knowledge import PUBLIC, Claim, Fact, Provenance, RecalledSummary, RecalledUtterance
from glyphoxa.domain.turn_record import Asked, Character, LookUp
from glyphoxa.judgement.reply import ReplyCheck
from glyphoxa.judgement.safety import topics_of
from glyphoxa.language.sentences import sentences
from glyphoxa.npc.memory_tools import NpcMemory, specs_in
from glyphoxa.npc.table_state import Covered, TableState
from glyphoxa.npc.tool_spec import CallableTool, ToolSpec
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.prompt import gather
from glyphoxa.prompt.conversation import Conversation, others_line
from glyphoxa.prompt.prompt import HotContext, with_hot_context
from glyphoxa.prompt.scene import Past
from glyphoxa.prompt.wording import SaidWhen, wording
from glyphoxa.recall.world import World
from glyphoxa.transcript.journal import SessionMark
from glyphoxa.transcript.sessions import (
    EPISODE,
    LastSessions,
    SessionState,
    SummarySentence,
    View,
    episode_name,
    episode_of,
)
from glyphoxa.web.events import Hub, PageOutbox, PageReader
from glyphoxa.world.event_log import Cause, Event
from glyphoxa.world.state import WorldEntity, WorldState
from tests.support.builders import CAMPAIGN, FORGE, INNKEEPER, SESSION, SMITH, TAMSIN, a_campaign, a_draft
from tests.support.builders import an_utterance as said
from tests.support.memory import GraphTwin, WorldTwin
from tests.support.minds import PATIENT, Mind, SessionsTwin, beginning
from tests.support.model_twin import ModelTwin
from tests.support.proof import n_examples
from tests.support.talk import TranscriptTwin, a_stretch, numbered
from tests.support.web_table import TwinTable

ROOMY: Final = replace(PATIENT, scene_tokens=300, facts_tokens=1_500, bible_tokens=300, past_tokens=2_000)
FILE: Final = Provenance(origin="campaign_file", dm_confirmed=True)
BEFORE: Final = SessionId("before")
GRIMJAW: Final = EntityId("e-grimjaw")


def stated(subject: EntityId, name: str, value: str) -> Fact:
    claim = Claim.attribute(subject, name, value)
    return Fact(claim.fact_id, claim, seq=1, provenance=FILE)


# Talk


def opened(campaign: Campaign) -> TableState:
    settings = Settings(data_dir=Path("/nonexistent"))
    mark = SessionMark(LastSessions(settings.data_directory), campaign.id, SESSION, now_ms=lambda: 0)
    return state_of(settings, campaign, SESSION, mark)


def talk(campaign: Campaign) -> Conversation:
    return opened(campaign).conversations[SMITH]


def read(conversation: Conversation, question: str = "", **options: Any) -> str:
    prompt = conversation.prompt(question, "Tamsin", **options)
    return "\n".join((prompt.question, prompt.direction, *(message.content for message in prompt.messages)))


async def line_heard(campaign: Campaign, text: str) -> str:
    conversation = talk(campaign)
    conversation.hear(said(text))
    return read(conversation)


async def line_of_the_npc(campaign: Campaign, text: str) -> str:
    conversation = talk(campaign)
    conversation.spoke(said(text, npc=SMITH))
    return read(conversation)


async def line_corrected(campaign: Campaign, text: str) -> str:
    conversation = talk(campaign)
    conversation.hear(said("Good day."))
    conversation.revise(said("Good day."), said(text))
    return read(conversation)


async def line_expected(campaign: Campaign, text: str) -> str:
    return read(talk(campaign), expecting=others_line("Mirelle", text))


async def question(campaign: Campaign, text: str) -> str:
    return read(talk(campaign), text)


async def summary_of_the_session(campaign: Campaign, text: str) -> str:
    conversation = talk(campaign)
    conversation.cover([SummarySentence(f"Tamsin said: “{text}”", (UtteranceId("u1"),))], ())
    conversation.fold()
    return read(conversation)


async def restart(campaign: Campaign, covered: Covered | None, *lines: Utterance) -> str:
    state = opened(campaign)
    state.remember(lines, covered)
    return read(state.conversations[SMITH])


async def line_before_a_restart(campaign: Campaign, text: str) -> str:
    return await restart(campaign, None, said(text))


async def summary_before_a_restart(campaign: Campaign, text: str) -> str:
    state = SessionState((SummarySentence(text, (UtteranceId("u1"),)),), last_ordinal=1)
    return await restart(campaign, Covered({View(SMITH): state}, {UtteranceId("u1"): 1}))


# The file of a campaign, and what an NPC has in mind


async def persona(campaign: Campaign, text: str) -> str:
    npc = replace(campaign.npc(SMITH), persona=f"You are Grimjaw. {text}")
    return "\n".join(message.content for message in beginning(campaign, npc))


async def example(campaign: Campaign, text: str) -> str:
    npc = replace(campaign.npc(SMITH), examples=(Exchange(said="What now?", reply=text),))
    return "\n".join(message.content for message in beginning(campaign, npc))


class Heard:
    """Past talk: the same for every question."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    async def recall(self, campaign: Any, npc: Any, query: Any, *, patient: bool = False) -> Sequence[Any]:
        return self.items

    def recall_nowait(self, campaign: Any, npc: Any, query: Any) -> None:
        return None


async def in_mind(campaign: Campaign, asked: str, *facts: Fact, repairs: bool = True, **options: Any) -> str:
    """All that an engine or a voice gets for a question: asked, while it is spoken, and as a deep search reads it."""
    graph = GraphTwin.of(campaign)
    graph.of_world += facts
    mind = Mind(campaign, graph=graph, repairs=repairs, **options)
    conversation = talk(campaign)
    await mind.by_name.refresh()
    scene = campaign.scene(FORGE)
    await mind.assembly.enter(scene)
    conversation.enter(scene)
    await mind.partial(TAMSIN, asked)
    found = [
        await mind.assembly.gather(SMITH, asked, asker="Tamsin"),
        mind.assembly.gather_nowait(SMITH, asked, asker="Tamsin"),
        mind.assembly.gather_nowait(SMITH, ""),
    ]
    await mind.prefetch.close()
    prompt = conversation.prompt(asked, "Tamsin")
    doubts = [hot.doubt for hot in found if hot.doubt is not None]
    found += [hot.resolved(by_model) for hot in found for by_model in (5.0, -5.0)]
    spoken = [line for hot in found for line in (*hot.told, *hot.shrugs, *hot.not_known)]
    spoken += [line for doubt in doubts for line in (doubt.notes, *doubt.not_known, *doubt.shrugs)]
    prompts = [message.content for hot in found for message in with_hot_context(prompt, hot).messages]
    return "\n".join((*spoken, *prompts, *mind.assembly.standing(SMITH)))


async def bible(campaign: Campaign, text: str) -> str:
    return await in_mind(replace(campaign, bible=text), "Where are we?")


async def standing_order(campaign: Campaign, text: str) -> str:
    npcs = tuple(replace(npc, standing=(text,)) for npc in campaign.npcs)
    return await in_mind(replace(campaign, npcs=npcs), "Where are we?")


async def glossary(campaign: Campaign, text: str) -> str:
    return await in_mind(replace(campaign, glossary={"Zorn": text}), "What is the Zorn?")


class WithTerm(WorldTwin):
    text = ""

    async def refresh(self) -> World:
        world = await super().refresh()
        world.terms = lambda _viewer: [("Zorn", self.text)]  # type: ignore[method-assign]
        return world


async def coined_term_in_mind(campaign: Campaign, text: str) -> str:
    by_name = WithTerm(GraphTwin.of(campaign))
    by_name.text = text
    mind = Mind(campaign, by_name=by_name)
    await by_name.refresh()
    await mind.assembly.enter(campaign.scene(FORGE))
    return "\n".join((await mind.assembly.gather(SMITH, "Good day.")).glossary)


async def identity(campaign: Campaign, text: str) -> str:
    return await in_mind(campaign, "Who are you?", stated(GRIMJAW, "fear", text))


async def fact(campaign: Campaign, text: str) -> str:
    wizard = Entity(EntityId("e-eldrinax"), "npc", "Eldrinax", (), {"description": text})
    entities = (*(each for each in campaign.entities if each.id != wizard.id), wizard)
    return await in_mind(replace(campaign, entities=entities), "Who is Eldrinax?")


async def secret(campaign: Campaign, text: str) -> str:
    kept = Secret(f"The bellows hide this: {text}", frozenset({SMITH}), EntityId("e-grimjaw"))
    return await in_mind(replace(campaign, secrets=(kept,)), "What do the bellows hide?")


async def scene(campaign: Campaign, text: str) -> str:
    scenes = tuple(replace(each, description=text) for each in campaign.scenes)
    return await in_mind(replace(campaign, scenes=scenes), "Where are we?", budgets=ROOMY)


async def earlier_sessions(campaign: Campaign, text: str) -> str:
    earlier = [RecalledSummary(SessionId("before"), f"Tamsin said: “{text}”")]
    past = Past(SaidWhen(campaign, SESSION, None), SessionsTwin(lambda _: earlier), tokens=2_000)
    return await in_mind(campaign, "What happened?", past=past)


async def recalled_line(campaign: Campaign, text: str) -> str:
    line = RecalledUtterance(UtteranceId("b1"), BEFORE, SpeakerId("tamsin"), "Tamsin", text, 1_000, similarity=0.9)
    return await in_mind(campaign, "What did I tell you of the old mill?", talk=Heard(line), budgets=ROOMY)


async def recalled_summary(campaign: Campaign, text: str) -> str:
    summary = RecalledSummary(BEFORE, f"Tamsin said: “{text}”", 1_000)
    return await in_mind(campaign, "What happened last time?", talk=Heard(summary), budgets=ROOMY)


# Tools


async def used(campaign: Campaign, tool: str, arguments: Mapping[str, object], text: str) -> str:
    graph = GraphTwin.of(campaign)
    graph.of_world.append(stated(GRIMJAW, "past", text))
    episode = Entity(episode_of(BEFORE), "event", episode_name(BEFORE))
    graph.scoped.append((episode, PUBLIC))
    graph.of_world += [stated(episode.id, "kind", EPISODE), stated(episode.id, "summary", text)]
    line = RecalledUtterance(UtteranceId("b1"), BEFORE, SpeakerId("tamsin"), "Tamsin", text, 1_000)
    talk: Any = Heard(line)
    memory = NpcMemory(CAMPAIGN, SMITH, WorldTwin(graph), talk, safety=topics_of(campaign))
    return json.dumps(await Toolbox(memory, tier="DEEP").call(tool, arguments), ensure_ascii=False)


async def tool_of_entities(campaign: Campaign, text: str) -> str:
    return await used(campaign, "memory.query_entities", {"name": "Grimjaw"}, text)


async def tool_of_talk(campaign: Campaign, text: str) -> str:
    return await used(campaign, "memory.search_sessions", {"query": "the mill"}, text)


async def tool_of_summaries(campaign: Campaign, text: str) -> str:
    return await used(campaign, "memory.get_session_summary", {"session": "before"}, text)


async def tool_of_facts(campaign: Campaign, text: str) -> str:
    return await used(campaign, "memory.search_facts", {"query": "Grimjaw past mill"}, text)


async def tool_of_another_server(campaign: Campaign, text: str) -> str:
    async def ask(_: Mapping[str, object]) -> dict[str, object]:
        return {"found": [{"page": text}]}

    tool = CallableTool(ToolSpec("wiki.page", "A page.", {}, (), 50), ask, topics_of(campaign))
    told: list[LookUp] = []
    box = Toolbox(None, [tool], tier="DEEP", tell=told.append)
    return json.dumps(await box.call(tool.spec.wire_name, {}), ensure_ascii=False)


# Models in the background, and summaries of sessions


class Transcript(TranscriptTwin):
    """A log of one session, and where its summaries go."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*(numbered(n, (line, (SMITH, INNKEEPER))) for n, line in enumerate(lines, start=1)))
        self.written: list[Event] = []

    async def read(self, campaign: CampaignId) -> StoredTimeline:
        return StoredTimeline()

    async def grow(
        self, campaign: CampaignId, seen: StoredTimeline, events: Sequence[Event], cause: Cause, said: object
    ) -> bool:
        self.written += events
        return True


async def model_in_the_background(campaign: Campaign, text: str) -> str:
    llm = ModelTwin({"sentences": []})
    asking = ModelAsker(llm, forbids=topics_of(campaign).forbids)
    await LlmSummariser(asking, campaign.language).summarise([said("We came by the river road."), said(text)])
    return "".join(llm.asked)


async def talk_read_by_a_model(campaign: Campaign, text: str) -> str:
    llm = ModelTwin({"sentences": []})
    talk = a_stretch(text, language=campaign.language)
    await TalkReaders(ModelAsker(llm)).readers(campaign)[0].extract(talk, ())
    return "".join(llm.asked)


async def coined_term(campaign: Campaign, text: str) -> str:
    log: Any = Transcript(f"{text} So say the Zornites.", "Who are the Zornites? I saw the Zornites.")
    return repr([found async for found in CoinedTerms(campaign, log).due(SESSION, up_to=2)])


async def summary_of_an_earlier_session(campaign: Campaign, text: str) -> str:
    log: Any = Transcript(text)
    await TimelineWriter(campaign, log, log).sum_up(BEFORE)
    return repr(log.written)


# What players read, and what they hear


async def recap_for(audience: Any, campaign: Campaign, text: str) -> str:
    log: Any = Transcript(text)
    recaps = SessionRecaps(campaign, log, (), names_of((), campaign.language), PlayersView((), campaign))
    return "\n".join(await recaps.told(log.lines, audience))


async def recap_of_players(campaign: Campaign, text: str) -> str:
    return await recap_for("players", campaign, text)


async def recap_of_an_npc(campaign: Campaign, text: str) -> str:
    return await recap_for(SMITH, campaign, text)


async def bundle_for_players(campaign: Campaign, text: str) -> str:
    state = WorldState()
    entities = (WorldEntity(GRIMJAW, "npc", "Grimjaw"), WorldEntity(EntityId("zorn"), "concept", text))
    state.load(entities=entities, facts=[stated(GRIMJAW, "past", text)])
    public = PublicPart(state, campaign)
    plain = {"speaker_id": "tamsin", "npc_id": None, "retracted": False, "withheld": False, "aside": None}
    of_session = {"session_id": "s1", "ordinal": 1, "utterance_id": "u1", "timestamp": 1, "duration_ns": 1}
    row = {**plain, **of_session, "speaker_name": "Tamsin", "text": text, "raw_text": text, "fts_config": "english"}
    return repr((public.events(Cause("dm", 1)), public.rows("session_entries", [row], 0)))


def told(campaign: Campaign, *events: TableEvent, is_dm: bool = False, earlier: Sequence[Utterance] = ()) -> str:
    table: Any = TwinTable(campaign, earlier=earlier)
    hub, outbox = Hub(table), PageOutbox()
    messages: list[str] = []
    outbox.put = messages.append  # type: ignore[method-assign]
    with hub.joined(outbox, PageReader(TAMSIN, is_dm=is_dm)):
        for event in events:
            hub.on(event)
    return "\n".join((*messages, json.dumps(hub.history(TAMSIN, is_dm=is_dm), ensure_ascii=False)))


def events_with(campaign: Campaign, text: str) -> list[TableEvent]:
    draft = a_draft(TAMSIN, text)
    read_aloud = replace(campaign.scenes[0], read_aloud=text)
    return [
        PartialHeard(TAMSIN, draft.heard, 1),
        TurnEnded(draft, 2),
        UtteranceKept(said(text)),
        UtteranceRevised(said(text), said("Good day.")),
        NpcSpeaks(SMITH, "Grimjaw", TurnId("t1"), text, 3),
        SceneChanged(read_aloud, 4),
    ]


async def page(campaign: Campaign, text: str) -> str:
    return told(campaign, *events_with(campaign, text))


async def page_after_a_restart(campaign: Campaign, text: str) -> str:
    return told(campaign, earlier=[said(text)])


async def voice(campaign: Campaign, text: str) -> str:
    check = ReplyCheck(Character("Grimjaw"), Asked(), repairs=False, more_rules=(topics_of(campaign).rejects,))
    return " ".join(check.decide(piece).text for piece in sentences(text))


ROADS: Final[Mapping[str, Sequence[Callable[[Campaign, str], Awaitable[str]]]]] = {
    "talk": (line_heard, line_of_the_npc, line_corrected, line_expected, question, line_before_a_restart),
    "summary of the session": (summary_of_the_session, summary_before_a_restart),
    "persona and examples": (persona, example),
    "the rest of a prompt": (
        *(bible, standing_order, glossary, coined_term_in_mind, identity, fact, secret, scene),
        *(earlier_sessions, recalled_line, recalled_summary),
    ),
    "tools": (tool_of_entities, tool_of_talk, tool_of_summaries, tool_of_facts, tool_of_another_server),
    "models in the background": (model_in_the_background, talk_read_by_a_model, coined_term),
    "summaries of sessions": (summary_of_an_earlier_session,),
    "recaps, vaults and bundles": (recap_of_players, recap_of_an_npc, bundle_for_players),
    "pages of players": (page, page_after_a_restart),
    "a voice": (voice,),
}
ALL: Final = [road for roads in ROADS.values() for road in roads]

FLOOR: Final = ("They undressed the child of {} at the old mill.", "A naked little girl, said {}, was at the old mill.")
LINES: Final = (
    "A spider bit {} at the old mill.",
    "I promise that they will hurt the children of {} at the old mill.",
    "I found {} and a nest of tarantulas at the old mill.",
)
PLAIN: Final = ("The road is dry.", "We came by the river.", "I have the map and the ring.", "")
WITH_LINES: Final = Safety(("spiders", "harm to children"), ("torture",))


@st.composite
def forbidden(draw: st.DrawFn) -> tuple[Safety, str, str]:
    """Draw a group's limits, a text with a sentence that it does not play, and a name in that sentence."""
    safety = draw(st.sampled_from((Safety(), WITH_LINES)))
    sentence = draw(st.sampled_from(FLOOR if safety == Safety() else (*FLOOR, *LINES)))
    name = draw(st.text(string.ascii_lowercase, min_size=5, max_size=8)).capitalize() + "qx"
    sentence = draw(st.sampled_from((str, str.upper)))(sentence.format(name))
    text = " ".join(filter(None, (draw(st.sampled_from(PLAIN)), sentence, draw(st.sampled_from(PLAIN)))))
    return safety, text, name.casefold()


@pytest.mark.parametrize("road", ALL, ids=lambda road: road.__name__)
@settings(max_examples=n_examples(100), deadline=None)
@given(sent=forbidden())
def test_road_carries_nothing_that_must_not_come_up(
    road: Callable[[Campaign, str], Awaitable[str]], sent: tuple[Safety, str, str]
) -> None:
    safety, text, name = sent
    campaign = replace(a_campaign(), safety=safety)
    assert topics_of(campaign).forbids(text)
    assert name not in asyncio.run(road(campaign, text)).casefold()


@pytest.mark.parametrize("road", ALL, ids=lambda road: road.__name__)
@pytest.mark.parametrize(
    "text", ["I promise to bring the ring to Ilvaraqx at the old mill.", "They tortured Ilvaraqx at the old mill."]
)
async def test_road_carries_what_may_come_up_veiled_or_not(
    road: Callable[[Campaign, str], Awaitable[str]], text: str
) -> None:
    assert "Ilvaraqx" in await road(replace(a_campaign(), safety=WITH_LINES), text)


def test_table_of_the_documentation_lists_these_roads() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-it-works.md"
    _, _, after = page.read_text("utf-8").partition("| road | left out |\n|---|---|\n")
    assert re.findall(r"^\| (.+?) \|", after.partition("\n\n")[0], re.MULTILINE) == list(ROADS)


def test_every_tool_and_every_part_of_a_hot_context_is_on_a_road() -> None:
    tools = ("query_entities", "search_sessions", "get_session_summary", "search_facts")
    assert {spec.name.rpartition(".")[2] for spec in specs_in("en").values()} == set(tools)
    records = {"recalled", "rejected", "omitted", "gathered", "guarded"}
    """They are shown to the DM, or are no text of the campaign."""
    parts = {*gather._LINES, "scenes", "past", "direction", "doubt"}
    assert {each.name for each in fields(HotContext)} == parts | records


async def test_recalled_veil_comes_with_the_direction_not_to_describe_it() -> None:
    campaign = replace(a_campaign(), safety=WITH_LINES)
    told_not_to = wording("en").veil
    assert told_not_to in await fact(campaign, "He tortured a thief.")
    assert told_not_to in await recalled_line(campaign, "They tortured a thief at the old mill.")
    assert told_not_to not in await fact(campaign, "He hired a thief.")


def test_dm_reads_on_the_page_what_players_do_not() -> None:
    campaign = replace(a_campaign(), safety=WITH_LINES)
    text = "A spider bit me."
    assert told(campaign, *events_with(campaign, text), is_dm=True).count(text) >= 8
    assert told(campaign, earlier=[said(text)], is_dm=True).count(text) == 1
