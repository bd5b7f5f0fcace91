"""Contents of an NPC's prompt, whose beginning stays the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glyphoxa.domain.budgets import Placement
from glyphoxa.domain.campaign import Exchange, Npc, Relationship
from glyphoxa.domain.ids import UtteranceId
from glyphoxa.language.sentences import tokens_of
from glyphoxa.prompt.conversation import Conversation
from glyphoxa.prompt.prompt import HotContext, Message, with_hot_context
from glyphoxa.prompt.wording import DIRECTION, wording
from tests.support.builders import FORGE, INNKEEPER, MARKET, SMITH, a_campaign, an_utterance
from tests.support.minds import beginning

GRIMJAW = a_campaign().npc(SMITH)
FRAME = wording("en").frame.format(name="Grimjaw")
THE_FORGE = a_campaign().scene(FORGE)
THE_MARKET = a_campaign().scene(MARKET)
LINES = {THE_FORGE: "the forge.", THE_MARKET: "the market."}


def a_conversation(npc: Npc = GRIMJAW, *, history_tokens: int = 500) -> Conversation:
    return Conversation(npc, beginning=beginning(a_campaign(), npc), history_tokens=history_tokens)


def test_a_prompt_is_persona_examples_talk_and_the_question() -> None:
    conversation = a_conversation()
    conversation.hear(an_utterance("An ale, please.", id="u1"), to="Mirelle")
    conversation.spoke(an_utterance("No sparks in here.", id="u2", speaker="Grimjaw", npc=SMITH))
    prompt = conversation.prompt("How is my blade?", "Tamsin")
    assert [(m.role, m.content) for m in prompt.messages] == [
        ("system", f"You are Grimjaw, a smith.\n{FRAME}"),
        ("user", "Tamsin says: Hello."),
        ("assistant", "Mind the sparks."),
        ("user", "Tamsin says to Mirelle: An ale, please."),
        ("assistant", "No sparks in here."),
        ("user", "Tamsin says: How is my blade?"),
    ]


def test_it_is_known_which_words_a_prompt_holds_already() -> None:
    conversation = a_conversation()
    conversation.hear(an_utterance("An ale, please.", id="u1"), to="Mirelle")
    conversation.spoke(an_utterance("No sparks in here.", id="u2", speaker="Grimjaw", npc=SMITH))
    assert conversation.spoken == ["An ale, please.", "No sparks in here."]
    conversation.revise(an_utterance("An ale, please."), an_utterance("A pale, please."))
    conversation.hear(an_utterance("And bread: two loaves.", id="u3"))
    assert conversation.spoken == ["A pale, please.", "No sparks in here.", "And bread: two loaves."]
    conversation.retract(UtteranceId("u3"))
    assert conversation.spoken == ["A pale, please.", "No sparks in here."]


def test_the_question_does_not_stand_twice_in_its_own_prompt() -> None:
    conversation = a_conversation()
    question = an_utterance("How is my blade?")
    conversation.hear(question)
    prompt = conversation.prompt("How is my blade?", "Tamsin", unless=[question.id])
    assert sum("blade" in message.content for message in prompt.messages) == 1


@example([389, 389], 200)
@given(st.lists(st.integers(0, 2_600), min_size=1, max_size=30), st.sampled_from([20, 200, 500]))
def test_the_newest_line_stays_however_long_and_what_is_cut_is_cut_in_large_steps(
    lengths: list[int], history_tokens: int
) -> None:
    conversation = a_conversation(history_tokens=history_tokens)
    before: list[str] = []
    for n, length in enumerate(lengths):
        conversation.hear(an_utterance("x" * length, id=f"u{n}"))
        now = list(conversation.utterance_ids)
        lines = [message.content for message in conversation.prompt("", "Tamsin").messages[3:-1]]
        tokens = sum(map(tokens_of, lines))
        assert now == [*before, f"u{n}"][-len(now) :]
        assert now[-1] == f"u{n}"
        assert tokens <= history_tokens or len(now) == 1
        assert len(now) == len(before) + 1 or tokens <= history_tokens // 2 or len(now) == 1
        before = now


def test_an_npc_that_was_cut_off_before_a_word_was_heard_said_nothing() -> None:
    conversation = a_conversation()
    conversation.spoke(an_utterance("", npc=SMITH))
    assert conversation.prompt("", "Tamsin").messages[-2].content == "Mind the sparks."


def test_hot_context_joins_a_copy_near_the_end() -> None:
    prompt = a_conversation().prompt("How is my blade?", "Tamsin")
    hot = HotContext(
        facts=("The blade is half done.", "It is called Emberlyth."),
        identity=("Mirelle knows Grimjaw.",),
        scenes=LINES,
    )
    asked = with_hot_context(replace(prompt, scenes=((len(prompt.messages) - 1, THE_FORGE),)), hot)
    assert asked.messages[0].content == f"You are Grimjaw, a smith.\n{FRAME}\nMirelle knows Grimjaw."
    assert asked.messages[-1].content == (
        "Scene: the forge.\nTamsin says: How is my blade?\nFacts: The blade is half done. It is called Emberlyth."
    )
    assert asked.messages[1:-1] == prompt.messages[1:-1]
    assert prompt.messages[-1].content == "Tamsin says: How is my blade?"


def texts(conversation: Conversation, question: str = "And now?") -> list[str]:
    """Return the messages after the examples."""
    prompt = with_hot_context(conversation.prompt(question, "Tamsin"), HotContext(scenes=LINES))
    return [message.content for message in prompt.messages[len(conversation.beginning) :]]


def test_a_scene_stands_where_the_talk_in_it_begins_and_stays_there() -> None:
    conversation = a_conversation()
    conversation.enter(THE_FORGE)
    assert texts(conversation) == ["Scene: the forge.\nTamsin says: And now?"]
    conversation.spoke(an_utterance("Come in.", id="u1", speaker="Grimjaw", npc=SMITH))
    conversation.hear(an_utterance("Hello.", id="u2"))
    in_forge = ["Come in.", "Scene: the forge.\nTamsin says: Hello."]
    assert texts(conversation) == [*in_forge, "Tamsin says: And now?"]
    conversation.enter(THE_MARKET)
    assert texts(conversation) == [*in_forge, "Scene: the market.\nTamsin says: And now?"]
    conversation.hear(an_utterance("How loud!", id="u3"))
    in_market = "Scene: the market.\nTamsin says: How loud!"
    assert texts(conversation) == [*in_forge, in_market, "Tamsin says: And now?"]
    conversation.enter(THE_FORGE)
    assert texts(conversation) == [*in_forge, in_market, "Scene: the forge.\nTamsin says: And now?"]


def test_the_line_that_is_asked_tells_its_scene_also_when_it_is_in_the_talk_already() -> None:
    conversation = a_conversation()
    conversation.enter(THE_FORGE)
    conversation.hear(an_utterance("Hello.", id="u1"))
    prompt = conversation.prompt("Hello. Well?", "Tamsin", unless=["u1"])
    asked = with_hot_context(prompt, HotContext(scenes=LINES)).messages
    assert [message.content for message in asked[3:]] == ["Scene: the forge.\nTamsin says: Hello. Well?"]


@given(st.lists(st.sampled_from(["hear", "spoke", "forge", "market", "retract"]), max_size=40))
def test_the_talk_that_is_left_is_always_told_with_its_scene(steps: list[str]) -> None:
    conversation = a_conversation(history_tokens=60)
    conversation.enter(THE_FORGE)
    now = THE_FORGE
    for n, step in enumerate(steps):
        match step:
            case "hear":
                conversation.hear(an_utterance("Some words of talk.", id=f"u{n}"))
            case "spoke":
                conversation.spoke(an_utterance("An answer to them.", id=f"u{n}", speaker="Grimjaw", npc=SMITH))
            case "retract":
                conversation.retract(f"u{n // 2}")
            case _:
                now = THE_FORGE if step == "forge" else THE_MARKET
                conversation.enter(now)
    scenes = [line for line in texts(conversation) if line.startswith("Scene: ")]
    assert scenes[-1].startswith(f"Scene: {LINES[now]}\n")
    heard = [line for line in texts(conversation) if "says:" in line]
    assert heard[0] == scenes[0]


def test_what_was_said_stands_apart_from_what_is_so_as_in_the_examples() -> None:
    example = Exchange("Tamsin says: And?", "Aye.", facts="It rains.", remembered="Tamsin said: It will snow.")
    prompt = a_conversation(replace(GRIMJAW, examples=(example,))).prompt("Who was it?", "Tamsin")
    hot = HotContext(facts=("The bell is gone.",), remembered=("Bran said: It was Liora.", "Tamsin said: No."))
    asked = [message.content for message in with_hot_context(prompt, hot).messages]
    assert asked[1] == "Tamsin says: And?\nFacts: It rains.\nRemembered: Tamsin said: It will snow."
    assert asked[-1] == (
        "Tamsin says: Who was it?\nFacts: The bell is gone.\nRemembered: Bran said: It was Liora. Tamsin said: No."
    )
    remembered = "Remembered: Bran said: It was Liora. Tamsin said: No."
    apart = with_hot_context(prompt, replace(hot, facts=()), Placement(0, "system")).messages
    assert apart[-1] == Message("user", remembered)


@pytest.mark.parametrize("depth", [0, 1, 9999])
def test_what_was_said_is_never_the_systems(depth: int) -> None:
    hot = HotContext(facts=("The bell is gone.",), remembered=("Bran said: It was Liora.",))
    asked = with_hot_context(a_conversation().prompt("Who was it?", "Tamsin"), hot, Placement(depth, "system")).messages
    at = asked.index(Message("system", "Facts: The bell is gone."))
    assert asked[at + 1] == Message("user", "Remembered: Bran said: It was Liora.")
    assert not any("said:" in message.content for message in asked if message.role == "system")


@pytest.mark.parametrize(("depth", "place"), [(0, -1), (1, -2), (9999, -3)])
def test_what_it_is_reminded_of_stands_where_the_dm_wants_it(depth: int, place: int) -> None:
    conversation = a_conversation()
    conversation.hear(an_utterance("Good evening.", id="u1"))
    prompt = conversation.prompt("How is my blade?", "Tamsin")
    hot = HotContext(facts=("The blade is half done.",))
    asked = with_hot_context(prompt, hot, Placement(depth, "system")).messages
    assert asked[place] == Message("system", "Facts: The blade is half done.")
    without = [message for message in asked if message is not asked[place]]
    assert tuple(without) == prompt.messages
    assert with_hot_context(prompt, HotContext(), Placement(depth)) == prompt


def test_an_npc_without_examples_has_some_in_the_form_that_questions_have() -> None:
    mirelle = a_campaign().npc(INNKEEPER)
    prompt = a_conversation(mirelle).prompt("Hello.", "Tamsin")
    _, *examples, asked = [(m.role, m.content) for m in prompt.messages]
    assert asked == ("user", "Tamsin says: Hello.")
    assert [role for role, _ in examples] == ["user", "assistant"] * (len(examples) // 2)
    said = [content for role, content in examples if role == "user"]
    assert said[0] == "Somebody says: Hello, Mirelle. How are you?"
    assert "Somebody says: Who mended the roof?\nFacts: Mirelle mended the roof." in said
    assert any("You keep this to yourself" in line for line in said)


def test_the_examples_say_what_is_known_of_an_npc_in_the_campaigns_language() -> None:
    town = a_campaign()
    occupied = replace(town.entities[1], attributes={"occupation": "innkeeper", "secret_of": "x" * 300})
    inn = Relationship(occupied.id, town.entities[2].id, "LOCATED_AT")
    town = replace(town, entities=(town.entities[0], occupied, *town.entities[2:]), relationships=(inn,))
    shown = [message.content for message in beginning(town, town.npc(INNKEEPER))]
    assert "Somebody says: What do you do here?\nFacts: Mirelle is the innkeeper." in shown
    assert "Somebody says: Where do I find you?\nFacts: Mirelle is at Market Square." in shown
    assert "You find me at Market Square." in shown
    auf_deutsch = beginning(replace(town, language="de-AT"), town.npc(INNKEEPER))
    assert Message("assistant", "Ich bin hier innkeeper.") in auf_deutsch


@pytest.mark.parametrize(
    ("bible", "is_shown"),
    [
        ("It is the spring of 1350.", True),
        ("The year is 2139.", False),
        ("In 1926 a liner sails, built in 1899.", False),
        ("In 1900 a liner sails.", False),
        ("A berth costs 1,200 credits.", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("language", ["en", "de"])
def test_only_a_campaign_of_old_times_has_an_example_of_a_new_thing(language: str, bible: str, is_shown: bool) -> None:
    town = replace(a_campaign(), bible=bible, language=language)
    shown = " ".join(message.content for message in beginning(town, town.npc(INNKEEPER)))
    assert ("omputer" in shown) is is_shown


def test_who_said_the_last_line_is_no_word_of_it() -> None:
    """A secret about Tamsin does not come to mind whenever Tamsin speaks."""
    talk = a_conversation()
    talk.hear(an_utterance("An ale, please."))
    assert talk.heard_before("Thank you.") == "An ale, please."
    talk.hear(an_utterance("Good evening.", id="u2"), to="Mirelle")
    assert talk.heard_before("Thank you.") == "Good evening."
    assert talk.heard_before("Good evening.") == "An ale, please."  # the question was heard already


def test_an_npc_without_a_persona_is_told_its_name() -> None:
    first, *_ = beginning(replace(a_campaign(), language="de"), replace(GRIMJAW, persona=""))
    assert first.content.startswith("Du bist Grimjaw.\nDu sprichst laut, als Grimjaw,")


def test_better_words_take_the_place_of_those_that_were_heard_and_nothing_else_changes() -> None:
    conversation = a_conversation()
    heard = an_utterance("Where is elder nacks?", id="u1")
    conversation.hear(heard, to="Mirelle")
    conversation.hear(an_utterance("Where is elder nacks?", id="u2"))
    before = conversation.prompt("", "Tamsin").messages
    assert conversation.revise(heard, an_utterance("Where is Eldrinax?"))
    after = conversation.prompt("", "Tamsin").messages
    assert [m.content for m in after if m not in before] == ["Tamsin says to Mirelle: Where is Eldrinax?"]
    assert not conversation.revise(heard, an_utterance("Where is Eldrinax?"))


def test_prompt_names_nobody_as_the_asker_if_the_speaker_is_unknown() -> None:
    conversation = Conversation(a_campaign().npcs[0], unknown_speakers=["somebody at the table"])
    prompt = conversation.prompt("Do you remember me?", "somebody at the table")
    assert prompt.messages[-1].content == "somebody at the table says: Do you remember me?"
    assert (prompt.speaker_name, conversation.prompt("Well?", "Tamsin").speaker_name) == ("", "Tamsin")


def test_line_of_an_unknown_speaker_is_relabelled_when_corrected() -> None:
    conversation = a_conversation()
    heard = an_utterance("Is it done?", speaker="somebody at the table")
    conversation.hear(heard, to="Mirelle")
    assert conversation.revise(heard, replace(heard, speaker_name="Tamsin"))
    assert conversation.prompt("", "Bran").messages[-2].content == "Tamsin says to Mirelle: Is it done?"


def test_what_is_retracted_leaves_the_prompt_and_nothing_else_does() -> None:
    conversation = a_conversation()
    conversation.hear(an_utterance("It was Liora.", id="u1"))
    conversation.spoke(an_utterance("It was Liora.", id="u2", npc=SMITH))
    assert conversation.retract(an_utterance("", id="u1").id)
    assert [m.content for m in conversation.prompt("", "Tamsin").messages[3:-1]] == ["It was Liora."]
    assert not conversation.retract(an_utterance("", id="u1").id)
    assert conversation.retract(an_utterance("", id="u2").id)
    assert "It was Liora." not in conversation.spoken


def test_what_the_dm_wants_of_an_answer_stands_behind_all_that_a_prompt_cache_has_read() -> None:
    conversation = a_conversation()
    conversation.hear(an_utterance("Hello.", id="u1"))
    prompt = conversation.prompt("How is my blade?", "Tamsin")
    hot = HotContext(facts=("It is done.",), kept=("He broke it.",))
    plain = with_hot_context(prompt, hot)
    directed = with_hot_context(replace(prompt, direction="Be short."), hot)
    assert directed.messages[:-1] == plain.messages[:-1]
    assert directed.messages[-1].content == f"{plain.messages[-1].content}\n{DIRECTION}Be short."
    assert directed.before == plain.before
