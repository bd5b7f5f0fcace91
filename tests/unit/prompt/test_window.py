"""No prompt is longer than its model's window, whatever a campaign and an evening put into it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from glyphoxa.config.campaign_file import read_campaign
from glyphoxa.config.settings import Settings
from glyphoxa.domain.campaign import Campaign
from glyphoxa.domain.ids import FactId, UtteranceId
from glyphoxa.domain.knowledge import RecalledFact
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.identity import beginning_of
from glyphoxa.prompt.prompt import (
    ComposedPrompt,
    HotContext,
    Message,
    Prompt,
    PromptShape,
    compose,
    composed,
    tokens_at_most,
    with_hot_context,
)
from glyphoxa.transcript.sessions import SummarySentence
from tests.support.builders import FORGE, SMITH, a_campaign, an_utterance
from tests.support.memory import LogTwin
from tests.support.minds import PATIENT, Mind, beginning

LOCAL = Settings().budgets
DEMO = Path(__file__).parents[3] / "demo" / "campaign.yaml"
TERMS = {
    f"Quorn{'abcdefghij'[n % 10]}{n:03}": f"the guild number {n} that keeps the lamps of the hall" for n in range(300)
}


class Evening:
    """An NPC of the local profile in a long talk."""

    def __init__(self, campaign: Campaign, *, n_lines: int = 30) -> None:
        npc = campaign.npcs[0]
        self.npc = npc.id
        self.talk = Conversation(npc, beginning(campaign, npc), LOCAL.history_tokens, campaign.language)
        summary = [SummarySentence(f"Tamsin says: The lamp {n} went out.", (UtteranceId(f"s{n}"),)) for n in range(12)]
        self.talk.cover(summary, ())
        self.talk.fold()
        for n in range(n_lines):
            said = an_utterance(f"And what of the old bridge, and the toll of {n} crowns?", id=f"q{n}")
            self.talk.hear(said) if n % 2 == 0 else self.talk.spoke(said)
        budgets = replace(PATIENT, window_tokens=LOCAL.window_tokens)
        self.mind = Mind(campaign, talk=LogTwin(), conversations={npc.id: self.talk}, budgets=budgets)

    async def ask(self, question: str) -> ComposedPrompt:
        prompt = self.talk.prompt(question, "Tamsin")
        return await compose(self.mind.assembly, prompt, PromptShape(window_tokens=LOCAL.window_tokens))


def with_terms(**changed: object) -> Campaign:
    return replace(a_campaign(), glossary=TERMS, **changed)


@pytest.mark.parametrize("language", ["en", "de"])
async def test_300_terms_fit_the_local_model(language: str) -> None:
    town = with_terms(language=language)
    evening = Evening(town)
    await evening.mind.assembly.enter(town.scene(FORGE))
    for term in list(TERMS)[::10]:
        found = await evening.ask(f"What do you know about {term}?")
        assert f"{term}: {TERMS[term]}." in found.prompt.messages[-1].content
        assert tokens_at_most(found.prompt) <= LOCAL.window_tokens
    await evening.mind.prefetch.close()


async def test_terms_of_question_and_talk_leave_the_start_unchanged() -> None:
    town = with_terms()
    one, other, of_persona = list(TERMS)[3:6]
    smith, *others = town.npcs
    town = replace(town, npcs=(replace(smith, persona=f"{smith.persona} You serve {of_persona}."), *others))
    evening = Evening(town, n_lines=0)
    await evening.mind.assembly.enter(town.scene(FORGE))
    evening.talk.hear(an_utterance(f"The {one} is here.", id="mentions"))
    asked = [await evening.ask(question) for question in (f"Who is {other}?", "Good evening.", f"And {one}?")]
    await evening.mind.prefetch.close()
    lines = {term: f"{term}: {TERMS[term]}." for term in (one, other, of_persona)}
    for found in asked:
        assert lines[of_persona] in found.prompt.messages[0].content
        assert lines[one] in found.prompt.messages[-1].content
        assert sum(term in found.assembled.text for term in TERMS) <= 3
    assert lines[other] in asked[0].prompt.messages[-1].content and other not in asked[1].assembled.text
    assert len({found.prompt.messages[:-1] for found in asked}) == 1


def a_prompt(n_lines: int, *, language: str = "en") -> Prompt:
    before = (Message("system", "You are Grimjaw."), Message("user", "example"), Message("assistant", "example"))
    told = Message("user", "So far: they met.", is_synthetic=True)
    talk = [Message("user" if n % 2 == 0 else "assistant", f"line {n:03} ".ljust(80, ".")) for n in range(n_lines)]
    messages = (*before, told, *talk, Message("user", "And now?"))
    return Prompt(SMITH, messages, "And now?", "Tamsin", n_examples=2, language=language)


def a_fact(n: int, score: float) -> RecalledFact:
    return RecalledFact(f"The king has {n} crowns.", FactId(f"f{n}"), score=score)


FACTS = [a_fact(1, 0.9), a_fact(2, 0.2), a_fact(3, 0.6)]
HOT = HotContext(
    identity=("You are old.",),
    glossary=("ORACLE: the machine.", "Geometers: the builders."),
    past="They sang all night.",
    facts=(*(fact.text for fact in FACTS), "Nobody told you.", "Quorn: a guild."),
    not_known=("Nobody told you.",),
    recalled=tuple(FACTS),
)


def test_prompt_within_the_window_is_unchanged() -> None:
    prompt = a_prompt(20)
    whole = with_hot_context(prompt, HOT)
    found = composed(prompt, HOT, PromptShape(window_tokens=tokens_at_most(whole)))
    assert (found.prompt, found.hot) == (whole, HOT)


def test_oldest_lines_leave_first_and_the_rest_by_rank() -> None:
    prompt, stages = a_prompt(20), list[tuple[int, int, int, bool]]()
    size = tokens_at_most(with_hot_context(prompt, HOT))
    for window_tokens in range(size, 0, -1):
        found = composed(prompt, HOT, PromptShape(window_tokens=window_tokens))
        text, last = found.assembled.text, found.prompt.messages[-1].content
        for always in ("You are Grimjaw.", "You are old.", "example", "So far: they met.", "And now?"):
            assert always in text
        for always in ("Nobody told you.", "Quorn: a guild."):
            assert always in last
        facts = [fact for fact in FACTS if fact.text in last]
        assert facts == [fact for fact in FACTS if fact in sorted(FACTS, key=lambda one: -one.score)[: len(facts)]]
        assert found.hot.recalled == tuple(facts)
        assert {one.recalled for one in found.hot.rejected} == set(FACTS) - set(facts)
        n_terms = sum(term in text for term in HOT.glossary)
        stages.append((text.count("line "), len(facts), n_terms, HOT.past in text))
        assert tokens_at_most(found.prompt) <= window_tokens or stages[-1] == (0, 0, 0, False)
    assert list(dict.fromkeys(stages)) == [
        (20, 3, 2, True), (12, 3, 2, True), (4, 3, 2, True), (0, 3, 2, True),
        (0, 2, 2, True), (0, 1, 2, True), (0, 0, 2, True), (0, 0, 1, True), (0, 0, 0, True), (0, 0, 0, False),
    ]  # fmt: skip


def test_lines_that_left_stay_away_for_several_turns() -> None:
    window_tokens = tokens_at_most(a_prompt(30))
    kept = [
        composed(a_prompt(n), HotContext(), PromptShape(window_tokens=window_tokens)).prompt.messages
        for n in range(28, 46, 2)
    ]
    changes = sum(later[: len(earlier) - 1] != earlier[:-1] for earlier, later in pairwise(kept))
    assert changes == 2


def test_german_counts_more_tokens_than_english() -> None:
    assert tokens_at_most(a_prompt(9, language="de-AT")) > tokens_at_most(a_prompt(9))


async def test_demo_prompts_fit_whole() -> None:
    campaign = read_campaign(DEMO).campaign
    for npc in campaign.npcs:
        one = replace(campaign, npcs=(npc, *(other for other in campaign.npcs if other != npc)))
        evening = Evening(one, n_lines=60)
        await evening.mind.assembly.enter(one.scenes[0])
        evening.talk.beginning = beginning_of(one, npc, evening.mind.assembly.known(npc.id))
        question = "What do you know about the old bridge, and who pays its toll?"
        prompt = evening.talk.prompt(question, "Tamsin")
        found = await evening.ask(question)
        assert found.prompt == with_hot_context(prompt, found.hot)
        assert not any("window" in one.why for one in found.hot.rejected)
        await evening.mind.prefetch.close()
