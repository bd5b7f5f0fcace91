"""The awaited parts of a hot context have one deadline, and each is there or not whatever becomes of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import product
from typing import Any, Literal

import pytest

from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.errors import Unavailable
from glyphoxa.domain.ids import NpcId, PlayerId
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.gather import AS_BEFORE, RECALLED_AHEAD
from glyphoxa.prompt.prompt import HotContext, Message, compose
from tests.support.builders import FORGE, SMITH, TAMSIN, a_campaign, an_utterance
from tests.support.memory import GraphTwin, LogTwin, WorldTwin
from tests.support.minds import Mind
from tests.support.virtual_time import run_in_virtual_time

How = Literal["there", "slow", "late", "away", "broken"]
PARTS = ("facts", "recall")
DEADLINE_MS, SLOW_MS = 50, 20
ASKED = "What do you know of Eldrinax, and of my brother Joren?"
BROTHER = an_utterance("My brother Joren was lost in the fen.", id="told")


class Memory:
    """Twins, each of which can be slow or fail by itself; in virtual time."""

    def __init__(self) -> None:
        self.how: dict[str, How] = dict.fromkeys(PARTS, "there")
        graph, log = GraphTwin.of(a_campaign()), LogTwin()
        by_name = WorldTwin(graph)
        self._answers = {"facts": by_name.refresh, "recall": log.recall}
        by_name.refresh = self._through("facts")  # type: ignore[method-assign] # the network
        log.recall = self._through("recall")  # type: ignore[method-assign]
        self.log = log
        mind = Mind(
            a_campaign(),
            graph=graph,
            by_name=by_name,
            talk=log,
            present=lambda: {SMITH: "Grimjaw"},
            budgets=Budgets(recall_deadline_ms=DEADLINE_MS),
        )
        self.prefetch, self.assembly = mind.prefetch, mind.assembly

    async def at_the_forge(self) -> None:
        await self.prefetch.world.refresh()
        await self.assembly.enter(a_campaign().scene(FORGE))
        await self.log.append([BROTHER])

    def _through(self, part: str) -> Any:
        async def answer(*asked: Any, **options: Any) -> Any:
            match self.how[part]:
                case "slow":
                    await asyncio.sleep(SLOW_MS / 1_000)
                case "late":
                    await asyncio.Event().wait()
                case "away":
                    raise Unavailable("the database is away")
                case "broken":
                    raise ZeroDivisionError
            return await self._answers[part](*asked, **options)

        return answer


def now_ms() -> float:
    return asyncio.get_running_loop().time() * 1_000


WHY: Mapping[How, str] = {
    "late": f"not there within {DEADLINE_MS} ms",
    "away": "the database is away",
    "broken": "ZeroDivisionError",
}
TAKES_MS: Mapping[How, int] = {"there": 0, "slow": SLOW_MS, "late": DEADLINE_MS, "away": 0, "broken": 0}


def test_each_part_alone_and_together_is_there_or_left_out_with_the_reason() -> None:
    async def scene() -> None:
        memory = Memory()
        await memory.at_the_forge()
        for hows in product(TAKES_MS, repeat=len(PARTS)):
            memory.how = dict(zip(PARTS, hows, strict=True))
            began_ms = now_ms()
            hot = await memory.assembly.gather(SMITH, ASKED, asker=BROTHER.speaker_name)
            assert round(now_ms() - began_ms) == max(TAKES_MS[how] for how in hows)
            assert set(hot.omitted) == {f"{part}: {WHY[how]}" for part, how in memory.how.items() if how in WHY}
            assert {part: hot.gathered[part].took_us for part in PARTS} == {
                part: 1_000 * TAKES_MS[how] for part, how in memory.how.items()
            }
            assert "Grimjaw is a smith." in hot.identity  # else as it was read before
            assert hot.facts == ("Eldrinax is an old wizard.",)
            assert bool(hot.remembered) == (memory.how["recall"] not in WHY)
            assert hot.gathered["identity"].took_us is None  # it is in memory
            assert (hot.gathered["identity"].source == AS_BEFORE) == (memory.how["facts"] in WHY)
        memory.how = dict.fromkeys(PARTS, "there")
        await memory.prefetch.close()

    run_in_virtual_time(scene())


def test_what_was_answered_while_it_was_asked_is_noted_as_such() -> None:
    async def scene() -> None:
        memory = Memory()
        await memory.at_the_forge()
        memory.prefetch.on_partial(TAMSIN, ASKED)
        await asyncio.sleep(1)
        memory.how["recall"] = "late"
        hot = await memory.assembly.gather(SMITH, ASKED, asker=BROTHER.speaker_name)
        assert hot.omitted == ()
        assert hot.remembered == ("Tamsin said: My brother Joren was lost in the fen.",)
        assert (hot.gathered["recall"].source, hot.gathered["recall"].took_us) == (RECALLED_AHEAD, None)
        await memory.prefetch.close()

    run_in_virtual_time(scene())


def test_what_was_answered_for_one_player_is_recalled_again_for_a_later_question_of_another() -> None:
    """It may have been withheld, retracted or reworded since, and more may have been said."""

    async def scene() -> None:
        memory = Memory()
        await memory.at_the_forge()
        memory.prefetch.begin(TAMSIN)
        memory.prefetch.on_partial(TAMSIN, ASKED)
        await asyncio.sleep(1)
        assert (await memory.assembly.gather(SMITH, ASKED)).remembered
        memory.log.forget(BROTHER)
        await asyncio.sleep(60)
        memory.prefetch.begin(PlayerId("orin"))
        assert memory.assembly.gather_nowait(SMITH, ASKED).remembered == ()
        assert (await memory.assembly.gather(SMITH, ASKED)).remembered == ()
        await memory.prefetch.close()

    run_in_virtual_time(scene())


class Source:
    """Has always the same in mind."""

    def __init__(self, hot: HotContext) -> None:
        self.hot = hot

    async def gather(self, npc: NpcId, question: str, *, asker: str = "", within_ms: int = 0) -> HotContext:
        return self.hot

    def gather_nowait(self, npc: NpcId, question: str, *, asker: str = "") -> HotContext:
        return self.hot


async def test_a_prompt_says_what_it_consists_of_and_leaves_nothing_out() -> None:
    """All its words are of one of the parts."""
    npc = a_campaign().npc(SMITH)
    beginning = tuple(Message(role, "word " * 40) for role in ("system", "user", "assistant"))
    conversation = Conversation(npc, beginning=beginning)
    conversation.hear(an_utterance("word " * 40, id="u1"))
    forge = a_campaign().scene(FORGE)
    conversation.enter(forge)
    prompt = conversation.prompt("word " * 40, "Tamsin")
    words = ("word " * 40,)
    hot = HotContext(identity=words, scenes={forge: words[0]}, facts=words, remembered=words, kept=words)
    composed = await compose(Source(hot), prompt)
    names = ["persona", "identity", "examples", "talk", "scene", "question", "facts", "recall", "secrets"]
    assert [part.name for part in composed.parts] == names
    said = sum(len(message.content) for message in composed.prompt.messages)
    labels = said - 4 * sum(part.tokens for part in composed.parts)
    assert 0 <= labels < 100


async def test_a_bug_in_memory_costs_memory_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("oh")

    mind = Mind(a_campaign())
    monkeypatch.setattr(mind.prefetch.world, "facts", broken)
    prompt = Conversation(a_campaign().npc(SMITH), beginning=(Message("system", "You."),)).prompt("Hello?", "Tamsin")
    composed = await compose(mind.assembly, prompt)
    assert composed.prompt == prompt
    assert composed.hot.omitted == ("hot context: ZeroDivisionError",)
    assert [part.name for part in composed.parts] == ["persona", "question"]
