from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from glyphoxa.prompt.prompt import Message
from glyphoxa_processors.openai_realtime import ClientEvent, RealtimeTalk

PERSONA = Message("system", "You are Grimjaw.")


def said(text: str) -> Message:
    return Message("user", text)


def replied(text: str) -> Message:
    return Message("assistant", text)


class Session:
    """The provider's side of a conversation, by its rules."""

    def __init__(self) -> None:
        ids = count()
        self.talk = RealtimeTalk(lambda: f"item_{next(ids)}")
        self.items: list[tuple[str, str]] = []
        self.n_sent = 0

    def ask(self, *messages: Message) -> list[str]:
        self.perform(self.talk.ask((PERSONA, *messages)))
        return [text for _, text in self.items]

    def perform(self, events: list[ClientEvent]) -> None:
        for event in events:
            self.n_sent += 1
            ids = [item_id for item_id, _ in self.items]
            match event["type"]:
                case "conversation.item.create":
                    after = event["previous_item_id"]
                    at = 0 if after == "root" else ids.index(after) + 1
                    self.items.insert(at, (event["item"]["id"], event["item"]["content"][0]["text"]))
                case "conversation.item.delete":
                    del self.items[ids.index(event["item_id"])]

    def speak(self, item_id: str, text: str) -> None:
        self.items.append((item_id, text))
        self.talk.replied(item_id, text)


messages = st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), st.sampled_from("abcd")), max_size=6)


@given(st.lists(messages, max_size=5))
def test_the_session_always_knows_exactly_what_the_prompt_says(prompts: list[list[Message]]) -> None:
    """Whatever the prompt drops, keeps or inserts."""
    session = Session()
    for prompt in prompts:
        assert session.ask(*prompt) == [message.content for message in prompt]


def test_hot_context_leaves_the_session_with_its_turn() -> None:
    session = Session()
    session.ask(said("Facts: The bell is silent.\nTamsin: What of the bell?"))
    session.speak("reply_1", "It lost its clapper.")
    known = session.ask(said("Tamsin: What of the bell?"), replied("It lost its clapper."), said("Tamsin: Since when?"))
    assert not any("Facts" in text for text in known)


def test_a_reply_that_was_heard_keeps_its_sound() -> None:
    session = Session()
    session.ask(said("Good evening."))
    session.speak("reply_1", "Well met.")
    session.ask(said("Good evening."), replied("Well met."), said("How is my blade?"))
    assert ("reply_1", "Well met.") in session.items


def test_what_is_known_already_is_not_sent_again() -> None:
    session = Session()
    session.ask(said("Good evening."))
    before = session.n_sent
    session.ask(said("Good evening."), said("How is my blade?"))
    assert session.n_sent == before + 1


def test_a_reply_that_was_cut_off_is_truncated_to_what_was_heard() -> None:
    talk = RealtimeTalk(lambda: "id")
    talk.replied("reply_1", "It is sharp and it is yours.")
    assert talk.heard("reply_1", "It is sharp", audio_ms=700) == [
        {
            "type": "conversation.item.truncate",
            "event_id": "cut",
            "item_id": "reply_1",
            "content_index": 0,
            "audio_end_ms": 700,
        }
    ]


def test_a_reply_that_nobody_heard_is_taken_back() -> None:
    talk = RealtimeTalk(lambda: "id")
    talk.replied("reply_1", "It is sharp.")
    assert talk.heard("reply_1", "", audio_ms=0) == [{"type": "conversation.item.delete", "item_id": "reply_1"}]
    assert talk.heard("reply_1", "", audio_ms=0) == []


def test_a_reply_heard_whole_is_left_alone() -> None:
    talk = RealtimeTalk(lambda: "id")
    talk.replied("reply_1", "It is sharp.")
    assert talk.heard("reply_1", "It is sharp.", audio_ms=900) == []
