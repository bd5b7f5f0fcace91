from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from glyphoxa.domain.budgets import TierRule
from glyphoxa.domain.campaign import BudgetTier, Entity
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import EntityId, SessionId, UtteranceId
from glyphoxa.domain.knowledge import HIDDEN, PUBLIC, RecalledTalk, RecalledUtterance
from glyphoxa.domain.turn_record import LookUp
from glyphoxa.language.prompt_quotes import recalled_line
from glyphoxa.language.relations import RelationWords
from glyphoxa.npc.memory_tools import NpcMemory
from glyphoxa.npc.toolbox import Toolbox
from glyphoxa.recall.world import World
from glyphoxa.transcript.sessions import episode_name, episode_of
from glyphoxa.world.graph import Passage
from tests.support.memory import WorldTwin
from tests.support.memory_twins import ELOWEN, GRIMJAW, SALTMERE, Talk, a_graph, a_world, tools_of
from tests.support.recalled import heard, said_itself


class AwayTalk(Talk):
    async def recall(self, *args: object, **kwargs: object) -> list[RecalledTalk]:
        raise Unavailable("database away")


class BrokenTalk(Talk):
    async def recall(self, *args: object, **kwargs: object) -> list[RecalledTalk]:
        raise ZeroDivisionError


class EndlessTalk(Talk):
    async def recall(self, *args: object, **kwargs: object) -> list[RecalledTalk]:
        await asyncio.Event().wait()
        raise AssertionError


async def nothing() -> None:
    return None


OCTOBER = heard("My sister is ill.", at_ms=1_791_000_000_000)
NOVEMBER = heard("She is well again.", session="s2", at_ms=1_794_000_000_000)
TIMELESS = heard("She likes plums.")
S1 = SessionId("s1")


@pytest.mark.parametrize(
    ("tier", "names"),
    [
        ("FAST", ["memory_query_entities"]),
        (
            "STANDARD",
            [
                "memory_query_entities",
                "memory_search_sessions",
                "memory_get_session_summary",
                "memory_search_facts",
            ],
        ),
        (
            "DEEP",
            [
                "memory_query_entities",
                "memory_search_sessions",
                "memory_get_session_summary",
                "memory_search_facts",
            ],
        ),
    ],
)
def test_a_tier_shows_the_model_its_tools_and_no_other(tier: BudgetTier, names: list[str]) -> None:
    assert [spec.wire_name for spec in tools_of(tier=tier).declared] == names


async def test_membership_is_found_by_alias_and_relation() -> None:
    answer = await tools_of().call("memory.query_entities", {"name": "The Smith", "relation": "member of"})
    assert answer["found"] == [
        {
            "name": "Grimjaw",
            "type": "npc",
            "about": {"occupation": "blacksmith"},
            "relations": ["Grimjaw belongs to Wardens of the Tide."],
            "keep secret": ["Grimjaw: The anvil is hollow."],
        }
    ]


async def test_an_npc_finds_nothing_of_what_it_may_not_know() -> None:
    """Neither an entity, nor a fact about one that it knows, nor by name in a list or a hint."""
    ask = {"name": "The Drowned Cult"}
    assert (await tools_of(ELOWEN).call("memory_query_entities", ask))["found"] != []
    hidden = await tools_of().call("memory_query_entities", ask)
    assert hidden["found"] == []
    assert "Cult" not in str(hidden["note"]).replace("The Drowned Cult", "")
    wardens = await tools_of().call("memory_query_entities", {"name": "Wardens of the Tide"})
    assert "Cult" not in str(wardens)
    smith = await tools_of(ELOWEN).call("memory_query_entities", {"name": "Grimjaw"})
    assert "anvil" not in str(smith)
    assert "Orla" not in str(wardens)  # not accepted


async def test_known_fact_is_found_with_how_it_is_known() -> None:
    ask = {"query": "When do the Reavers land, and have the Wardens ships?"}
    found = (await tools_of().call("memory_search_facts", ask))["found"]
    why = {one["fact"]: (one["why"], one["session"]) for one in found}  # type: ignore[attr-defined]
    assert why["The Reavers of Skarn land at dawn. (not certain)"] == ("witnessed", "s2")
    assert why["The Wardens of the Tide have no ships. (not certain)"] == ("told by Tamsin", "s2")
    others = str((await tools_of(ELOWEN).call("memory_search_facts", ask))["found"])
    assert "dawn" not in others
    assert "no ships" not in others


async def test_a_type_alone_lists_what_there_is() -> None:
    answer = await tools_of().call("memory_query_entities", {"type": "faction"})
    assert [one["name"] for one in answer["found"]] == ["Reavers of Skarn", "Wardens of the Tide"]  # type: ignore[attr-defined]


async def test_past_talk_is_searched_in_the_name_of_the_npc_that_asks() -> None:
    """An NPC that was not there finds nothing."""
    talk = Talk((OCTOBER,))
    told = await tools_of(talk=talk).call("memory_search_sessions", {"query": "sister"})
    absent = await tools_of(ELOWEN, talk=talk).call("memory_search_sessions", {"query": "sister"})
    assert told["found"] == [{"said": recalled_line(OCTOBER), "session": "s1", "when": "2026-10-03T04:00+00:00"}]
    assert absent == {"found": [], "note": "nothing found"}
    assert talk.asked_for == [GRIMJAW, ELOWEN]


async def test_facts_are_what_is_held_and_what_was_said_about_it() -> None:
    answer = await tools_of(talk=Talk((OCTOBER,))).call("memory_search_facts", {"query": "Is Grimjaw a blacksmith?"})
    *facts, said = answer["found"]  # type: ignore[misc]
    occupation = {"fact": "Grimjaw, occupation: blacksmith.", "why": "public", "session": None, "when": None}
    assert occupation in facts
    assert said["said"] == recalled_line(OCTOBER)


async def test_a_secret_that_is_found_is_marked_to_be_kept() -> None:
    found = (await tools_of().call("memory_search_facts", {"query": "Is the anvil hollow?"}))["found"]
    [kept] = [one for one in found if "anvil" in str(one)]  # type: ignore[attr-defined]
    assert (kept["keep secret"], kept["why"]) == ("Grimjaw: The anvil is hollow.", "secret")
    assert "fact" not in kept


async def test_time_filter_is_not_crowded_out_by_other_times() -> None:
    before = tuple(replace(OCTOBER, text=f"Tamsin: My sister is ill, {n} days.") for n in range(20))
    answer = await tools_of(talk=Talk((*before, NOVEMBER))).call(
        "memory_search_facts", {"query": "sister", "after": "2026-10-31"}
    )
    assert recalled_line(NOVEMBER) in [one.get("said") for one in answer["found"]]  # type: ignore[attr-defined]


MIRA = heard("The Reavers took my sister.", by="mira vale", session="s2", at_ms=1_794_000_000_001)
IN_TIME = {"after": "2026-10-31", "before": "2026-11-30"}


@pytest.mark.parametrize("tool", ["memory_search_sessions", "memory_search_facts"])
@pytest.mark.parametrize(
    ("only", "said"),
    [
        ({"session": "s2"}, [NOVEMBER, MIRA]),
        ({"session": "s9"}, []),
        ({"speaker": "MIRA"}, [MIRA]),
        ({"speaker": "Mira Vale", "session": "s1"}, []),
        ({"speaker": "?!"}, []),
        ({"speaker": "nobody"}, []),
        (IN_TIME, [NOVEMBER, MIRA]),
        ({**IN_TIME, "speaker": "tamsin"}, [NOVEMBER]),
    ],
)
async def test_search_is_limited_to_a_session_a_speaker_and_a_time(
    tool: str, only: dict[str, str], said: list[RecalledUtterance]
) -> None:
    answer = await tools_of(talk=Talk((OCTOBER, NOVEMBER, TIMELESS, MIRA))).call(tool, {"query": "sister", **only})
    assert [one["said"] for one in answer["found"]] == [recalled_line(one) for one in said]  # type: ignore[attr-defined]


@pytest.mark.parametrize("only", [{"session": "s2"}, {"speaker": "mira"}, IN_TIME])
async def test_search_around_an_entity_is_limited_as_well(only: dict[str, str]) -> None:
    crowd = [replace(OCTOBER, text=f"Day {n} of my sister.") for n in range(50)]

    async def around(*args: object, limit: int, **kwargs: object) -> list[Passage]:
        return [Passage(one, 1.0, (EntityId("wardens"),)) for one in (*crowd, MIRA)][:limit]

    memory = NpcMemory(SALTMERE, GRIMJAW, a_world(), Talk(), around=around)
    asked = {"query": "sister", "around": "the Wardens of the Tide", **only}
    answer = await Toolbox(memory, tier="DEEP").call("memory_search_sessions", asked)
    assert [one["said"] for one in answer["found"]] == [recalled_line(MIRA)]  # type: ignore[attr-defined]


async def test_facts_are_limited_to_what_a_speaker_said_and_the_npc_heard() -> None:
    graph = a_graph()
    note = next(fact for fact in graph.of_world if fact.claim.content == "The Reavers of Skarn land at dawn.")
    by_line = note.with_(provenance=replace(note.provenance, utterance_id=UtteranceId("u9")))
    graph.of_world = [by_line if fact is note else fact for fact in graph.of_world]
    speakers = {"u9": "Mira Vale"}
    memory = NpcMemory(SALTMERE, GRIMJAW, WorldTwin(graph), Talk(), speaker_of=lambda one: speakers.get(one, ""))
    ask = {"query": "When do the Reavers land?", "speaker": "Mira"}
    [found] = (await Toolbox(memory, tier="DEEP").call("memory_search_facts", ask))["found"]  # type: ignore[misc]
    assert found["fact"] == "The Reavers of Skarn land at dawn. (not certain)"
    assert (await Toolbox(memory, tier="DEEP").call("memory_search_facts", {**ask, "speaker": "Orla"}))["found"] == []


OWN = said_itself("It was Liora who stole the tithe box.", npc=GRIMJAW, at_ms=1)


@pytest.mark.parametrize("tool", ["memory_search_sessions", "memory_search_facts"])
async def test_npcs_own_words_answer_only_searches_for_them(tool: str) -> None:
    own = tuple(replace(OWN, at_ms=n) for n in range(5))
    tools = tools_of(talk=Talk((*own, OCTOBER)))
    told = (await tools.call(tool, {"query": "who stole the tithe box"}))["found"]
    assert [one["said"] for one in told if "said" in one] == [recalled_line(OCTOBER)]  # type: ignore[attr-defined]
    asked = (await tools.call(tool, {"query": "what I said about the tithe box"}))["found"]
    assert recalled_line(OWN) in [one.get("said") for one in asked]  # type: ignore[attr-defined]


async def test_summary_tool_says_if_there_is_no_summary() -> None:
    answer = await tools_of().call("memory_get_session_summary", {"session": "s1"})
    assert answer["found"] == []
    assert "has no summary" in str(answer["note"])


@pytest.mark.parametrize(
    ("n_others", "name", "note"),
    [
        (0, "Grimjow", "nothing called 'Grimjow' is known; did you mean 'Grimjaw'?"),
        (0, "Xyzzy", "nothing called 'Xyzzy' is known; valid: Grimjaw, Reavers of Skarn, Wardens of the Tide"),
        (60, "Grimjow", "nothing called 'Grimjow' is known; did you mean 'Grimjaw'?"),
        (60, "Xyzzy", "nothing called 'Xyzzy' is known"),
    ],
)
async def test_unknown_name_error_lists_nearest_or_all_names(n_others: int, name: str, note: str) -> None:
    graph = a_graph()
    graph.scoped += [(Entity(EntityId(f"e{n}"), "item", f"Coin {n}"), PUBLIC) for n in range(n_others)]
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, WorldTwin(graph), Talk()), tier="STANDARD")
    assert await tools.call("memory_query_entities", {"name": name}) == {"found": [], "note": note}


async def test_summary_of_a_session_is_no_entity() -> None:
    graph = a_graph()
    graph.scoped.append((Entity(episode_of(S1), "event", episode_name(S1)), PUBLIC))
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, WorldTwin(graph), Talk()), tier="STANDARD")
    assert (await tools.call("memory_query_entities", {"type": "event"}))["found"] == []


@pytest.mark.parametrize("is_late", [False, True])
async def test_world_in_memory_answers_while_the_database_does_not(is_late: bool) -> None:
    graph = a_graph()
    worlds = WorldTwin(graph)
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, worlds, Talk((OCTOBER,)), is_at_table=True), tier="STANDARD")
    asked = {"memory_query_entities": {"name": "the smith"}, "memory_search_facts": {"query": "a blacksmith"}}
    before = [await tools.call(*each) for each in asked.items()]
    assert all(each["found"] for each in before)
    graph.weather.away, graph.weather.late = not is_late, is_late
    assert [await tools.call(*each) for each in asked.items()] == before


class Slow(WorldTwin):
    """Changes of the world arrive after more than the time that a turn has for them."""

    is_slow = False

    async def refresh(self) -> World:
        if self.is_slow:
            await asyncio.sleep(0.2)
        return await super().refresh()


async def test_world_that_no_table_follows_is_read_before_it_answers() -> None:
    """A server of tools may have read it hours ago; what was hidden since is not told."""
    graph = a_graph()
    worlds = Slow(graph)
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, worlds, Talk()), tier="DEEP")
    ask = {"name": "Reavers of Skarn"}
    assert (await tools.call("memory_query_entities", ask))["found"]
    graph.scoped = [(one, HIDDEN if one.name == ask["name"] else scope) for one, scope in graph.scoped]
    worlds.is_slow = True
    assert (await tools.call("memory_query_entities", ask))["found"] == []


async def test_what_is_hidden_while_talk_is_searched_is_not_told() -> None:
    graph = a_graph()

    def hide() -> None:
        graph.scoped = [(one, HIDDEN if one.name == "Reavers of Skarn" else scope) for one, scope in graph.scoped]

    class Searched(Talk):
        async def recall(self, *args: object, **kwargs: object) -> list[RecalledTalk]:
            await asyncio.sleep(0)
            hide()
            return []

    async def around(*args: object, **kwargs: object) -> list[Passage]:
        hide()
        return [Passage(OCTOBER, 1.0, (EntityId("reavers"), EntityId("wardens")))]

    async def told(tool: str, **arguments: str) -> str:
        graph.scoped = a_graph().scoped
        memory = NpcMemory(SALTMERE, GRIMJAW, WorldTwin(graph), Searched(), around=around)
        return str(await Toolbox(memory, tier="DEEP").call(tool, arguments))

    assert "land at dawn" not in await told("memory_search_facts", query="When do the Reavers land?")
    about = await told("memory_search_sessions", query="sister", around="the Wardens of the Tide")
    assert "Wardens of the Tide" in about
    assert "Reavers" not in about


async def test_tool_without_any_world_says_that_memory_is_unavailable() -> None:
    graph = a_graph()
    graph.weather.away = True
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, WorldTwin(graph), Talk()), tier="STANDARD")
    answer = await tools.call("memory_query_entities", {"name": "the smith"})
    assert answer == {"found": [], "note": "memory is unavailable now: answer from what you already know"}


@pytest.mark.parametrize("talk", [AwayTalk(), BrokenTalk()])
async def test_a_tool_that_fails_lets_the_turn_go_on(talk: Talk) -> None:
    answer = await tools_of(talk=talk).call("memory_search_sessions", {"query": "sister"})
    assert answer == {"found": [], "note": "memory is unavailable now: answer from what you already know"}


async def test_a_tool_that_is_late_is_cut_at_the_ceiling() -> None:
    rules = {"STANDARD": TierRule(ceiling_ms=0, tools=("memory.search_sessions",))}
    tools = Toolbox(NpcMemory(SALTMERE, GRIMJAW, a_world(), EndlessTalk()), tier="STANDARD", rules=rules)  # type: ignore[arg-type]
    answer = await tools.call("memory_search_sessions", {"query": "sister"})
    assert answer == {"found": [], "note": "too slow: answer from what you already know"}


@pytest.mark.parametrize(
    ("name", "arguments", "note"),
    [
        ("memory_search_sessions", {}, "needs the argument 'query'"),
        ("memory_search_sessions", {"query": 7}, "'query' of memory_search_sessions must be text, not int"),
        ("memory_query_entities", {}, "at least one of"),
        ("memory_search_facts", {"query": "x", "after": "last week"}, "not an ISO 8601 time: 'last week'"),
        ("memory_serch_facts", {"query": "x"}, "did you mean 'memory_search_facts'"),
    ],
)
async def test_wrong_arguments_are_explained_to_the_model(name: str, arguments: dict[str, object], note: str) -> None:
    answer = await tools_of().call(name, arguments)
    assert answer["found"] == []
    assert note in str(answer["note"])


async def test_any_tool_argument_can_be_recorded() -> None:
    told: list[LookUp] = []
    memory = NpcMemory(SALTMERE, GRIMJAW, a_world(), AwayTalk())
    tools = Toolbox(memory, tier="STANDARD", tell=told.append)
    nested: object = "sister"
    for _ in range(5_000):
        nested = [nested]
    for wrong in (float("nan"), float("-inf"), nested, {"sister": nested}, 7, None):
        assert (await tools.call("memory_search_sessions", {"query": wrong}))["found"] == []
    noted = [each.arguments["query"] for each in told]
    assert noted == ["(float)", "(float)", "(list)", "(dict)", 7, None]


async def test_repeated_tool_call_runs_once_per_turn() -> None:
    talk = Talk((OCTOBER,))
    tools = tools_of(talk=talk)
    turn = tools.at("STANDARD")
    first = await turn.call("memory_search_sessions", {"query": "sister"})
    assert await turn.call("memory_search_sessions", {"query": "sister"}) == first
    assert len(talk.asked_for) == 1
    await turn.call("memory_search_sessions", {"query": "brother"})
    await tools.at("STANDARD").call("memory_search_sessions", {"query": "sister"})
    assert len(talk.asked_for) == 3


async def test_a_turn_of_a_lower_tier_cannot_call_what_it_is_not_shown() -> None:
    talk = Talk((OCTOBER,))
    answer = await tools_of(talk=talk).at("FAST").call("memory_search_sessions", {"query": "sister"})
    assert answer["found"] == []
    assert talk.asked_for == []


def test_no_turn_is_deeper_than_the_npc() -> None:
    assert [spec.name for spec in tools_of(tier="FAST").at("DEEP").declared] == ["memory.query_entities"]


@pytest.mark.parametrize(("language", "begins"), [("de-DE", "Schlag eine Person"), ("fr", "Look up a person")])
def test_tools_are_described_in_the_language_of_the_campaign(language: str, begins: str) -> None:
    memory = NpcMemory(SALTMERE, GRIMJAW, a_world(), Talk(), words=RelationWords(language))
    query, *_ = Toolbox(memory, tier="DEEP").declared
    assert query.description.startswith(begins)
    assert all(each["description"] for each in query.parameters.values())
