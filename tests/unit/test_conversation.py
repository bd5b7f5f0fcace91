"""What an NPC's prompt holds, and that its beginning stays the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.context.conversation import Conversation
from glyphoxa.context.ports import HotContext
from glyphoxa.context.prompt import Message, Placement, with_hot_context
from tests.support.builders import INNKEEPER, SMITH, a_campaign, an_utterance

GRIMJAW = a_campaign().npc(SMITH)


def test_a_prompt_is_persona_examples_talk_and_the_question() -> None:
    conversation = Conversation(GRIMJAW)
    conversation.hear(an_utterance("An ale, please.", id="u1"), to="Mirelle")
    conversation.spoke(an_utterance("No sparks in here.", id="u2", speaker="Grimjaw", npc=SMITH))
    prompt = conversation.prompt("How is my blade?", "Tamsin")
    assert [(m.role, m.content) for m in prompt.messages] == [
        ("system", "You are Grimjaw, a smith."),
        ("user", "Tamsin says: Hello."),
        ("assistant", "Mind the sparks."),
        ("user", "Tamsin says to Mirelle: An ale, please."),
        ("assistant", "No sparks in here."),
        ("user", "Tamsin says: How is my blade?"),
    ]


def test_it_is_known_which_words_a_prompt_holds_already() -> None:
    conversation = Conversation(GRIMJAW)
    conversation.hear(an_utterance("An ale, please.", id="u1"), to="Mirelle")
    conversation.spoke(an_utterance("No sparks in here.", id="u2", speaker="Grimjaw", npc=SMITH))
    assert conversation.holds("an ale, please.")
    assert conversation.holds("No sparks in here.")
    assert not conversation.holds("here.")
    assert not conversation.holds("Mind the sparks.")


def test_the_question_does_not_stand_twice_in_its_own_prompt() -> None:
    conversation = Conversation(GRIMJAW)
    question = an_utterance("How is my blade?")
    conversation.hear(question)
    prompt = conversation.prompt("How is my blade?", "Tamsin", unless=[question.id])
    assert sum("blade" in message.content for message in prompt.messages) == 1


def test_the_beginning_of_a_prompt_stays_the_same_from_turn_to_turn() -> None:
    """Up to the question, the next prompt begins as the last one did (prompt caches, R-032 of the design)."""
    conversation = Conversation(GRIMJAW)
    before = conversation.prompt("", "Tamsin").messages[:-1]
    for n in range(5):
        conversation.hear(an_utterance(f"Line {n}.", id=f"u{n}"))
        now = conversation.prompt("", "Tamsin").messages[:-1]
        assert now[: len(before)] == before
        before = now


def test_old_talk_is_cut_in_large_steps_and_the_persona_never() -> None:
    conversation = Conversation(GRIMJAW, history_tokens=200)
    cuts, length = 0, 0
    for n in range(100):
        conversation.hear(an_utterance("Some words that fill a line of talk.", id=f"u{n}"))
        messages = conversation.prompt("", "Tamsin").messages
        cuts += len(messages) < length
        length = len(messages)
        assert sum(len(m.content) for m in messages[3:]) // 4 <= 200 + 20
        assert messages[0].role == "system"
    assert 0 < cuts < 20


@given(st.lists(st.integers(0, 2_600), min_size=1, max_size=30), st.sampled_from([20, 200, 500]))
def test_the_newest_line_stays_however_long_and_what_is_cut_is_cut_in_large_steps(
    lengths: list[int], history_tokens: int
) -> None:
    conversation = Conversation(GRIMJAW, history_tokens=history_tokens)
    before: list[str] = []
    for n, length in enumerate(lengths):
        conversation.hear(an_utterance("x" * length, id=f"u{n}"))
        now = list(conversation.utterance_ids)
        lines = [message.content for message in conversation.prompt("", "Tamsin").messages[3:-1]]
        tokens = sum(map(len, lines)) // 4
        assert now == [*before, f"u{n}"][-len(now) :]
        assert now[-1] == f"u{n}"
        assert tokens <= history_tokens or len(now) == 1
        assert len(now) == len(before) + 1 or tokens <= history_tokens // 2 or len(now) == 1
        before = now


def test_an_npc_that_was_cut_off_before_a_word_was_heard_said_nothing() -> None:
    conversation = Conversation(GRIMJAW)
    conversation.spoke(replace(an_utterance("x", npc=SMITH), text=""))
    assert conversation.prompt("", "Tamsin").messages[-2].content == "Mind the sparks."


def test_hot_context_joins_a_copy_near_the_end() -> None:
    prompt = Conversation(GRIMJAW).prompt("How is my blade?", "Tamsin")
    hot = HotContext(
        facts=("The blade is half done.", "It is called Emberlyth."),
        identity=("Mirelle knows Grimjaw.",),
        scene="forge.",
    )
    asked = with_hot_context(prompt, hot)
    assert asked.messages[0].content == "You are Grimjaw, a smith.\nMirelle knows Grimjaw."
    assert asked.messages[-1].content == (
        "Scene: forge.\nTamsin says: How is my blade?\nFacts: The blade is half done. It is called Emberlyth."
    )
    assert asked.messages[1:-1] == prompt.messages[1:-1]
    assert prompt.messages[-1].content == "Tamsin says: How is my blade?"


@pytest.mark.parametrize(("depth", "place"), [(0, -1), (1, -2), (9999, 1)])
def test_what_it_is_reminded_of_stands_where_the_dm_wants_it(depth: int, place: int) -> None:
    """R-411 to R-413"""
    conversation = Conversation(GRIMJAW)
    conversation.hear(an_utterance("Good evening.", id="u1"))
    prompt = conversation.prompt("How is my blade?", "Tamsin")
    hot = HotContext(facts=("The blade is half done.",), scene="forge.")
    asked = with_hot_context(prompt, hot, Placement(depth, "system")).messages
    assert asked[place] == Message("system", "Facts: The blade is half done.")
    without = [message for message in asked if message is not asked[place]]
    assert without == [*prompt.messages[:-1], Message("user", "Scene: forge.\nTamsin says: How is my blade?")]
    assert with_hot_context(prompt, HotContext(), Placement(depth)) == prompt


def test_an_npc_without_examples_has_only_its_persona_before_the_talk() -> None:
    prompt = Conversation(a_campaign().npc(INNKEEPER)).prompt("Hello.", "Tamsin")
    assert [message.role for message in prompt.messages] == ["system", "user"]


def test_better_words_take_the_place_of_those_that_were_heard_and_nothing_else_changes() -> None:
    conversation = Conversation(GRIMJAW)
    heard = an_utterance("Where is elder nacks?", id="u1")
    conversation.hear(heard, to="Mirelle")
    conversation.hear(an_utterance("Where is elder nacks?", id="u2"))
    before = conversation.prompt("", "Tamsin").messages
    assert conversation.revise(heard.id, was=heard.text, now="Where is Eldrinax?")
    after = conversation.prompt("", "Tamsin").messages
    assert [m.content for m in after if m not in before] == ["Tamsin says to Mirelle: Where is Eldrinax?"]
    assert not conversation.revise(heard.id, was=heard.text, now="Where is Eldrinax?")


def test_what_has_left_the_talk_is_not_revised() -> None:
    assert not Conversation(GRIMJAW).revise(an_utterance("Hm.").id, was="Hm.", now="Hmm.")
