"""The part of a prompt that stays the same from turn to turn, byte by byte: a prompt cache reads it once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import mean

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.domain.budgets import Budgets
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import SceneId
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.prompt import with_hot_context
from tests.support.builders import FORGE, MARKET, a_campaign, an_utterance
from tests.support.memory import LogTwin
from tests.support.minds import Mind

TURNS = 60
BIBLE = "Tamsin seeks the bell. Eldrinax stole it."
DEMO = Path(__file__).parents[3] / "demo" / "campaign.yaml"
ASKED = (
    "What do you know of Eldrinax?",
    "Who made the king's crown, and where is it now?",
    "Do you remember what I said of Mirelle last night?",
    "And what would that cost me, if I came back for it tomorrow?",
    "Good evening.",
)


@dataclass(slots=True)
class Composed:
    """A prompt as a model reads it.

    Attributes:
        stands: All of it but the question and what is in mind for it.
        n_lines: Messages of it.
    """

    stands: str
    n_lines: int


@dataclass
class PlayedSession:
    """An evening of one NPC, in which it answers.

    Args:
        moves: Turn, and where the table goes before it.
    """

    moves: dict[int, SceneId] = field(default_factory=dict)
    history_tokens: int = 100_000
    campaign: Campaign = field(default_factory=lambda: replace(a_campaign(), bible=BIBLE))

    async def prompts(self) -> list[Composed]:
        campaign, log = self.campaign, LogTwin()
        npc = campaign.npcs[0]
        talk = Conversation(npc, history_tokens=self.history_tokens)
        mind = Mind(campaign, talk=log, conversations={npc.id: talk})
        assembly = mind.assembly
        found: list[Composed] = []
        for turn in range(TURNS):
            if turn in {0, *self.moves}:
                scene = campaign.scene(self.moves.get(turn, campaign.scenes[0].id))
                await assembly.enter(scene)
                talk.beginning = beginning_of(campaign, npc, assembly.known(npc.id))
                talk.enter(scene)
            asked = f"{ASKED[turn % len(ASKED)]} That is the {turn}th time."
            hot = await assembly.gather(npc.id, asked)
            *messages, _last = with_hot_context(talk.prompt(asked, "Tamsin"), hot).messages
            found.append(Composed("\n".join(f"{m.role}: {m.content}" for m in messages), len(messages)))
            heard = an_utterance(asked, id=f"asked-{turn}")
            talk.hear(heard)
            talk.spoke(an_utterance(f"Aye, {turn} times.", id=f"said-{turn}", speaker="Grimjaw", npc=npc.id))
            await log.append([heard])
        await mind.prefetch.close()
        return found


def shares(prompts: list[Composed]) -> list[float]:
    """Return, for each prompt but the first, the share of the one before it with which it begins."""
    return [_n_same(one.stands, next_.stands) / len(one.stands) for one, next_ in pairwise(prompts)]


def _n_same(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


async def test_prompt_before_a_question_is_a_prefix_of_the_next() -> None:
    assert set(shares(await PlayedSession().prompts())) == {1.0}


async def test_so_it_does_when_the_table_moves() -> None:
    moved = PlayedSession({20: FORGE, 40: MARKET})
    prompts = await moved.prompts()
    assert prompts[-1].stands.count("Scene: ") >= 3
    assert set(shares(prompts)) == {1.0}


async def test_95_of_100_stand_though_a_small_history_is_cut() -> None:
    """The budget is that of the small local model."""
    tokens = Budgets().history_tokens
    prompts = await PlayedSession(history_tokens=tokens, campaign=read_campaign(DEMO).campaign).prompts()
    assert any(next_.n_lines < one.n_lines for one, next_ in pairwise(prompts))
    assert mean(shares(prompts)) >= 0.95
